"""Growth without a limit on depth."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from crisptree import CrispForestClassifier
from tests.toys import plain_regressor, plain_tree


def noise(n=150, n_features=3):
    rng = np.random.default_rng(3)
    return rng.normal(size=(n, n_features)), rng


UNLIMITED = {"max_depth": None, "epochs": 3, "finetune_epochs": 0, "min_updates": 20, "random_state": 0, "n_jobs": 1}


@pytest.mark.parametrize("split", ["oblique", "axis"])
def test_without_a_depth_limit_growth_ends_in_pure_leaves(split):
    X, rng = noise()
    y = rng.integers(3, size=len(X))
    assert plain_tree(split=split, **UNLIMITED).fit(X, y).score(X, y) == 1.0
    numbers = rng.normal(size=len(X))
    model = plain_regressor(split=split, **UNLIMITED).fit(X, numbers)
    assert model.get_n_leaves() == len(X)
    np.testing.assert_allclose(model.predict(X), numbers, atol=1e-9)


def test_diabetes_and_exclusive_or_are_learned_by_heart():
    X, y = load_diabetes(return_X_y=True)
    assert plain_regressor(**UNLIMITED).fit(X, y).score(X, y) == pytest.approx(1.0)
    X, _ = noise(400, 2)
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    assert plain_tree(**UNLIMITED).fit(X, y).score(X, y) == 1.0


def test_rows_that_are_all_alike_stay_one_leaf_and_other_limits_hold():
    X, rng = noise()
    X, y = np.repeat(X[:75], 2, axis=0), np.tile([0, 1], 75)
    model = plain_tree(**UNLIMITED).fit(X, y)
    assert model.get_n_leaves() == 75
    held = plain_tree(**UNLIMITED, min_samples_leaf=10).fit(X, rng.integers(2, size=150))
    assert np.bincount(held.leaf_indices(X)).min() >= 10


def test_a_forest_without_a_depth_limit_learns_its_rows_by_heart():
    X, rng = noise(80)
    y = rng.integers(2, size=len(X))
    settled = {"split": "oblique", "input_noise": 0.0, "l1": 0.0, "bootstrap": False}
    assert CrispForestClassifier.from_flat(n_estimators=2, **settled, **UNLIMITED).fit(X, y).score(X, y) == 1.0
