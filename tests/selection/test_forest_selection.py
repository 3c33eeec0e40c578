"""Selection among trials of forests."""

from types import SimpleNamespace

import numpy as np
import pytest

from crisptree import CrispForestRegressor
from crisptree.selection.candidates import SHARP, Trial, find_best, select_against
from crisptree.selection.evaluators import EnsemblePredictions, ForestEvaluator
from crisptree.selection.parameters import MIXED
from crisptree.targets import Classes, Gaussians

ROWS = 400


def trial_of(noise: float, n_right: int) -> Trial:
    return Trial({"input_noise": noise}, np.repeat([1.0, 0.0], [n_right, ROWS - n_right]), np.ones(ROWS), 0.0, 1.0)


@pytest.mark.parametrize(
    ("image_shape", "n_right", "noise"), [((8, 8), 303, 0.5), ((8, 8), 320, 1.0), (None, 303, 1.0)]
)
def test_on_images_another_noise_level_wins_only_beyond_chance(image_shape, n_right, noise):
    trials = [trial_of(0.5, 300), trial_of(1.0, n_right), trial_of(0.0, 299)]
    parameters = {"n_jobs": 1, "n_estimators": 25}
    search = SimpleNamespace(image_shape=image_shape, trials=trials, best=find_best(trials), leaf_model="constant")
    search.target, search.parameters, search.is_free = Classes(2), parameters, lambda name: True
    assert ForestEvaluator(parameters, lambda *options: []).select(search)["input_noise"] == noise


@pytest.mark.parametrize(("error", "wins"), [(0.199, False), (0.18, True)])
def test_a_reference_is_exceeded_only_beyond_its_standard_error(error, wins):
    noise = np.tile([0.1, -0.1], ROWS // 2)
    reference = Trial({"split": MIXED}, np.full(ROWS, 0.8), np.ones(ROWS), 0.0, 1.0)
    other = Trial({"split": "oblique"}, 1 - error + noise, np.ones(ROWS), 0.0, 1.0)
    assert select_against(reference, [other, reference], 1.0) is (other if wins else reference)


class RecordedSearch:
    """Trials of a regression forest with known predictions."""

    image_shape, has_linear_leaves = None, False

    def __init__(self, y: np.ndarray, errors: dict[str, float]) -> None:
        self.target, self.parameters = Gaussians(2), CrispForestRegressor().get_params()
        shared, trials = np.tile([1.0, -1.0], len(y) // 2), []
        values = {
            "planes": {"split": "oblique", "max_depth": 8},
            "sharp": self.complete(SHARP),
            "cart": {"split": "axis", "finetune_epochs": 0, "max_features": None, "max_depth": None},
        }
        for name, error in errors.items():
            mean = y + (error * shared)[:, None]
            predictions = EnsemblePredictions(mean, np.zeros_like(mean), y, np.full(len(y), 5.0))
            scores = predictions.score(self.target, 25)
            trials.append(Trial(values[name], scores, np.ones(len(y)), 0.0, 1.0, predictions=predictions))
        self.trials, self.add = trials, trials.append

    def complete(self, values):
        return {"max_depth": 8, **values}

    def is_free(self, name):
        return True

    @property
    def best(self):
        return find_best(self.trials)


@pytest.mark.parametrize(
    ("errors", "selected"),
    [
        # Opposite errors cancel in the mean of hyperplanes and thresholds.
        ({"planes": 0.6, "sharp": 0.5, "cart": -0.5}, SHARP["input_noise"]),
        ({"planes": 0.2, "sharp": 0.5, "cart": -0.2}, None),
    ],
)
def test_mixtures_are_scored_by_the_predictions_of_their_parts(errors, selected):
    search = RecordedSearch(np.random.default_rng(0).normal(size=(ROWS, 1)), errors)
    parameters = search.parameters
    chosen = ForestEvaluator(parameters, lambda *options: []).select(search)
    assert chosen["split"] == MIXED
    assert chosen.get("input_noise") == selected
    mixtures = [trial for trial in search.trials if trial.values["split"] == MIXED]
    assert len(search.trials) == 4
    assert [trial.score for trial in mixtures] == [pytest.approx(1.0)]
