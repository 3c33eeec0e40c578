"""Selection among trials of forests."""

from types import SimpleNamespace

import numpy as np
import pytest

from crisptree import CrispForestClassifier, CrispForestRegressor
from crisptree.selection.candidates import Trial, find_best, select_against
from crisptree.selection.evaluators import ForestEvaluator
from crisptree.targets import Classes

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
    reference = Trial({"split": "axis"}, np.full(ROWS, 0.8), np.ones(ROWS), 0.0, 1.0)
    other = Trial({"split": "oblique"}, 1 - error + noise, np.ones(ROWS), 0.0, 1.0)
    assert select_against(reference, [other, reference], 1.0) is (other if wins else reference)


BRIEF = {"n_estimators": 3, "max_depth": 2, "epochs": 1, "finetune_epochs": 1, "min_updates": 1, "random_state": 0}


def make_table(n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(150, n_columns))
    return X, np.where(X[:, 0] > 0.3, 4 + 3 * X[:, 1], X[:, 1])


def test_thresholds_of_regression_forests_are_tried_with_fewer_features():
    X, y = make_table(5)
    forest = CrispForestRegressor.from_flat(**BRIEF).fit(X, y)
    *others, third, two_thirds = forest.cv_results_
    best = max(others, key=lambda trial: trial.score).values
    assert best["split"] == "axis"
    assert [third.values, two_thirds.values] == [best | {"max_features": share} for share in (1 / 3, 2 / 3)]
    thresholds = CrispForestRegressor.from_flat(**BRIEF, split="axis").fit(X, y)
    assert [trial.values["max_features"] for trial in thresholds.cv_results_[-2:]] == [1 / 3, 2 / 3]
    classes = CrispForestClassifier.from_flat(**BRIEF).fit(X, y > 1)
    assert {trial.values.get("max_features") for trial in classes.cv_results_} <= {"sqrt", None, 0.4}
    given = CrispForestRegressor.from_flat(**BRIEF, max_features=0.5).fit(X, y)
    assert all("max_features" not in trial.values for trial in given.cv_results_)


@pytest.mark.parametrize(("n_columns", "models"), [(5, {"linear", "branch_linear"}), (70, {"branch_linear"})])
def test_forests_try_linear_leaves_of_path_features_for_any_number_of_columns(n_columns, models):
    forest = CrispForestRegressor.from_flat(**BRIEF).fit(*make_table(n_columns))
    assert {trial.values["leaf_model"] for trial in forest.cv_results_ if "leaf_model" in trial.values} == models
