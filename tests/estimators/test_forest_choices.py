"""What a forest takes of the settings that it tried."""

import numpy as np
import pytest

from crisptree.estimators.forest_choices import ForestSearch
from crisptree.learning.choosing import Trial

ROWS = 400


def tried(width: float, n_right: int) -> Trial:
    return Trial({"input_noise": width}, np.repeat([1.0, 0.0], [n_right, ROWS - n_right]), np.ones(ROWS), 0.0, 1.0)


def search_of(trials: list[Trial], image_shape: tuple[int, int] | None) -> ForestSearch:
    search = ForestSearch.__new__(ForestSearch)
    search.trials, search.image_shape, search.on_trial = [], image_shape, lambda trial: None
    search._add(*trials)
    search.taken_otherwise = None if image_shape is None else trials[0]
    return search


@pytest.mark.parametrize(
    ("image_shape", "n_right", "width"), [((8, 8), 303, 0.5), ((8, 8), 320, 1.0), (None, 303, 1.0)]
)
def test_on_images_another_width_of_noise_wins_only_beyond_chance(image_shape, n_right, width):
    search = search_of([tried(0.5, 300), tried(1.0, n_right), tried(0.0, 299)], image_shape)
    assert search.best.values["input_noise"] == width


def numbers(values: dict[str, object], error: float) -> Trial:
    noise = np.tile([0.1, -0.1], ROWS // 2) * (values["split"] == "oblique")
    return Trial(values, 1 - error + noise, np.ones(ROWS), 0.0, 1.0)


@pytest.mark.parametrize(("error", "wins"), [(0.199, False), (0.18, True)])
def test_of_numbers_another_forest_wins_over_the_sharp_mixture_only_beyond_chance(error, wins):
    mixture, other = numbers({"split": "mixed"}, 0.2), numbers({"split": "oblique"}, error)
    search = search_of([other, mixture], None)
    search.taken_otherwise = mixture
    assert search.best is (other if wins else mixture)
