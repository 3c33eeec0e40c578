"""The comparison methods through the estimator, as the experiments call them."""

import numpy as np
import pytest
from experiments.methods import BASELINES, Bounded, baseline
from experiments.trees import train_on

from tests.toys import clouds

X, Y = clouds(300, n_features=6, n_classes=5)


def fitted(name, depth=4, **bounded):
    return baseline(name, depth, 5, 0, Bounded(**bounded)).set_params(training__min_updates=20).fit(X, Y)


@pytest.mark.parametrize("name", [name for name in BASELINES if name != "non_greedy"])
def test_a_fit_repeats_and_is_saved_like_any_tree(name, tmp_path):
    model, again = fitted(name), fitted(name)
    assert np.array_equal(model.tree_.weight, again.tree_.weight)
    assert model.score(X, Y) > 0.8
    assert model.get_depth() <= 4
    model.save(tmp_path / "baseline.crisp")


def test_non_greedy_training_trains_the_splits_of_its_start():
    start = fitted("co2")
    trained = train_on(start, baseline("non_greedy", 4, 5, 0, Bounded(100.0)), (X, Y))
    assert trained.get_depth() <= start.get_depth()  # splits that no longer part rows are gone
    assert not np.array_equal(trained.tree_.weight, start.tree_.weight)
    assert trained.score(X, Y) > 0.6


def test_growth_continues_from_a_warm_start():
    model = fitted("axis_aligned", 2)
    before = model.tree_.weight
    model.set_params(max_depth=4, warm_start=True).fit(X, Y)
    assert model.get_depth() == 4
    np.testing.assert_allclose(model.tree_.weight[: len(before)], before, rtol=1e-5)
