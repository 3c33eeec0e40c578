"""Model selection of regression trees and forests."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman3

import crisptree
from crisptree import CrispForestRegressor, CrispTreeClassifier, CrispTreeRegressor
from crisptree.learning.samples import RowSet
from crisptree.selection.candidates import Trial
from crisptree.selection.evaluators import EnsemblePredictions, select_penalty
from crisptree.targets import Gaussians
from tests.estimators.forests import QUICK, regressor

X, y = make_friedman3(240, noise=0.1, random_state=0)


def predict(n_trees, noise, rng, y, bias):
    """Predictions of trees with independent errors and a shared one."""
    predicted = y + bias + noise * rng.normal(size=(n_trees, *y.shape))
    return EnsemblePredictions(predicted.mean(axis=0), predicted.var(axis=0, ddof=1), y, np.full(len(y), n_trees))


def test_a_few_trees_estimate_how_good_many_would_be():
    rng = np.random.default_rng(0)
    y, bias = rng.normal(size=(20_000, 1)), 0.3
    few, many = (predict(trees, 1.0, rng, y, bias) for trees in (5, 25))
    expected = many.score(Gaussians(1), 25).mean()
    assert few.score(Gaussians(1), 5).mean() < expected - 0.1
    assert few.score(Gaussians(1), 25).mean() == pytest.approx(expected, abs=0.02)


def test_a_file_of_a_forest_of_a_removed_kind_of_split_loads(tmp_path):
    forest = regressor(n_estimators=2).fit(X, y)
    forest.split = "mixed"  # until 2026-11-19 every second tree had thresholds
    forest.best_params_ = {"split": "mixed"}
    forest.save(tmp_path / "mixed.crisp")
    again = crisptree.load(tmp_path / "mixed.crisp")
    assert again.split == again.best_params_["split"] == "oblique"
    np.testing.assert_array_equal(again.predict(X), forest.predict(X))
    with pytest.raises(ValueError, match="`split` must be"):
        regressor(split="mixed").fit(X, y)


BRIEF = QUICK | {"epochs": 1, "finetune_epochs": 1, "min_updates": 1, "max_depth": 2}


def test_regression_forests_are_scored_on_rows_out_of_the_bags_of_several_trees():
    forest = CrispForestRegressor.from_flat(**BRIEF, n_estimators=4).fit(X[:90], y[:90])
    weights = {tuple(trial.row_weights) for trial in forest.cv_results_}
    (weight,) = weights
    assert len(weight) == 90
    assert 0.8 < np.mean(np.array(weight) > 0) < 1
    kept = CrispForestRegressor.from_flat(**BRIEF, n_estimators=4, bootstrap=False).fit(X[:90], y[:90])
    assert min(kept.cv_results_[0].row_weights) > 0
    held_out = CrispForestRegressor.from_flat(**BRIEF, n_estimators=4).fit(
        X[:90], y[:90], eval_set=(X[90:120], y[90:120])
    )
    assert len(held_out.cv_results_[0].row_scores) == 30


def test_a_row_is_predicted_by_the_trees_that_are_to_predict_it():
    forest = regressor(n_estimators=4).fit(X, y)
    rows = RowSet(np.float32(X), y[:, None], np.ones(len(y)))
    is_predicted = np.random.default_rng(0).random((4, len(y))) < 0.6
    found = EnsemblePredictions.of(forest.forest_.trees, rows, 1, is_predicted)
    every = np.array([tree.predict(X) for tree in forest.estimators_])
    for row in np.flatnonzero(is_predicted.sum(axis=0) > 1):
        predicted = every[is_predicted[:, row], row]
        assert found.n_trees[row] == len(predicted)
        assert found.mean[row, 0] == pytest.approx(np.mean(predicted))
        assert found.variance[row, 0] == pytest.approx(np.var(predicted, ddof=1))


def test_linear_leaves_are_selected_where_y_is_piecewise_linear():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4))
    numbers = 3 * np.abs(rows[:, 0] + rows[:, 1]) + 2 * rows[:, 2] + 0.1 * rng.normal(size=300)
    model = CrispTreeRegressor(random_state=0).fit(rows, numbers)
    assert model.best_params_["leaf_model"] in ("linear", "branch_linear")
    assert model.get_depth() >= 1
    assert model.score(rows, numbers) > 0.9
    constant = CrispTreeRegressor(leaf_model="constant", random_state=0).fit(rows, numbers)
    assert all("leaf_model" not in trial.values for trial in constant.cv_results_)


@pytest.mark.parametrize("split", ["auto", "oblique", "axis"])
@pytest.mark.parametrize("leaf_model", ["constant", "linear", "branch_linear"])
@pytest.mark.parametrize("estimator", [CrispTreeClassifier, CrispTreeRegressor])
def test_every_split_goes_with_every_leaf_model(split, leaf_model, estimator):
    labels = y > np.median(y) if estimator is CrispTreeClassifier else y
    model = estimator(split=split, leaf_model=leaf_model, max_depth=2, random_state=0).fit(X, labels)
    assert model.cv_results_
    assert model.score(X, labels) > 0.5


def test_a_linear_model_is_a_tree_of_one_leaf():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 5))
    numbers = rows @ [1.0, -2.0, 0.5, 0.0, 0.0] + 0.3 * rng.normal(size=200)
    model = CrispTreeRegressor(random_state=0).fit(rows, numbers)
    assert model.best_params_["leaf_model"] in ("linear", "branch_linear")
    assert model.score(rows, numbers) > 0.97


def make_trial(score, loss, penalty):
    even = np.ones(100)
    return Trial({"leaf_l2": penalty}, score * even, even, 0.0, 1.0, None if loss is None else loss * even)


def test_penalties_are_selected_by_score_in_regression_and_by_log_loss_in_classification():
    scores = [make_trial(score, None, penalty) for score, penalty in ((0.7, 1.0), (0.8, 10.0), (0.79, 100.0))]
    assert select_penalty(scores).values == {"leaf_l2": 10.0}
    losses = [make_trial(0.9, 0.5, 1.0), make_trial(0.8, 0.3, 10.0), make_trial(0.8, 0.4, 100.0)]
    assert select_penalty(losses).values == {"leaf_l2": 10.0}


def test_candidates_with_linear_leaves_have_thresholds_and_hyperplanes_and_both_sets_of_features():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 6))
    numbers = np.where(rows[:, 0] > 0.3, 4 + 3 * rows[:, 1], rows[:, 1]) + 0.1 * rng.normal(size=200)
    model = CrispTreeRegressor(random_state=0).fit(rows[:150], numbers[:150])
    linear = [trial.values for trial in model.cv_results_ if "leaf_model" in trial.values]
    kinds = {(values["split"], values["leaf_model"]) for values in linear}
    assert kinds == {("oblique", "linear"), ("axis", "linear"), ("axis", "branch_linear")}
    assert {values["max_depth"] for values in linear} >= {0, 1, 2}
    assert model.score(rows[150:], numbers[150:]) > 0.8


def test_forests_try_linear_leaves_where_they_are_free():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 4))
    numbers = rows @ [1.0, -2.0, 0.5, 0.0] + np.abs(rows[:, 3]) + 0.1 * rng.normal(size=200)
    forest = CrispForestRegressor(n_estimators=5, random_state=0).fit(rows, numbers)
    assert forest.best_params_["leaf_model"] in ("linear", "branch_linear")
    constant = CrispForestRegressor(n_estimators=5, leaf_model="constant", random_state=0).fit(rows, numbers)
    assert all("leaf_model" not in trial.values for trial in constant.cv_results_)
