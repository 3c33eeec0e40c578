"""The metric that candidates are compared by: ``scoring``."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.metrics import get_scorer

from crisptree import CrispForestClassifier, CrispForestRegressor, CrispTreeClassifier, CrispTreeRegressor
from crisptree.parameters.estimators import CLASSIFICATION_SCORINGS, REGRESSION_SCORINGS
from crisptree.selection.evaluators import score_rows, weigh_rows
from crisptree.targets import Classes, Gaussians

FEW = {"training__max_candidates": 2, "random_state": 0}


def metric(name, y, predictions, weight):
    """scikit-learn's metric by its scorer's function, higher is better."""
    scorer = get_scorer(name)
    options = {"labels": np.arange(predictions.shape[1])} if name in ("neg_log_loss", "neg_brier_score") else {}
    values = predictions if options or name in REGRESSION_SCORINGS else predictions.argmax(axis=1)
    return scorer._sign * scorer._score_func(y, values, sample_weight=weight, **options)


@pytest.mark.parametrize("name", CLASSIFICATION_SCORINGS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_weighted_mean_of_row_scores_is_the_metric_of_scikit_learn(name, n_classes):
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(n_classes), 300)
    y, weight = rng.integers(0, n_classes, 300), rng.uniform(0.1, 3.0, 300)
    y[:200] = 0
    losses = -np.log(probabilities[np.arange(300), y])
    scores = score_rows(name, probabilities, y, Classes(n_classes), losses)
    expected = metric(name, y, probabilities, weight)
    assert np.average(scores, weights=weigh_rows(name, y, weight)) == pytest.approx(expected)


@pytest.mark.parametrize("name", REGRESSION_SCORINGS)
def test_the_same_for_regression_of_y_with_variance_1(name):
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    y = (y - y.mean()) / y.std()
    means = y + rng.normal(size=300)
    scores = score_rows(name, np.stack([means, np.ones(300)], axis=1), y[:, None], Gaussians(2), None)
    assert scores.mean() == pytest.approx(metric(name, y, means, None))


def rare_class(seed=0):
    return make_classification(600, 8, n_informative=4, weights=[0.9], flip_y=0.1, class_sep=0.7, random_state=seed)


@pytest.mark.parametrize("kind", [CrispTreeClassifier, CrispForestClassifier])
def test_the_default_is_the_accuracy(kind):
    X, y = rare_class()
    fits = [kind(scoring=scoring).set_params(**FEW).fit(X, y) for scoring in (None, "accuracy", "neg_log_loss")]
    scores = [[trial.score for trial in model.cv_results_] for model in fits]
    assert scores[0] == scores[1] != scores[2]
    assert fits[0].best_params_ == fits[1].best_params_
    assert max(scores[2]) < 0


def test_the_selected_trial_is_the_best_by_the_metric():
    X, y = rare_class(seed=5)
    selected = {}
    for scoring in ("accuracy", "balanced_accuracy"):
        model = CrispTreeClassifier(scoring=scoring, random_state=0).fit(X, y)
        values = {name: value for name, value in model.best_params_.items() if name != "shrinkage"}
        selected[scoring] = next(trial for trial in model.cv_results_ if trial.values == values)
        best = max(trial.score for trial in model.cv_results_)
        assert best - selected[scoring].score <= 0.5 * selected[scoring].error
    is_rare = y == 1

    def recall(trial):
        order = np.argsort(selected["balanced_accuracy"].row_weights)  # rows of the rare class have more weight
        return trial.row_scores[order[-is_rare.sum() :]].mean()

    assert recall(selected["balanced_accuracy"]) > recall(selected["accuracy"])


def test_a_regression_forest_is_scored_by_absolute_and_squared_errors():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = 1000 * X[:, 0] + rng.normal(size=200)
    trials = {
        scoring: CrispForestRegressor(n_estimators=5, scoring=scoring).set_params(**FEW).fit(X, y).cv_results_
        for scoring in (None, "neg_mean_squared_error", "neg_mean_absolute_error")
    }
    for r2, mse, mae in zip(*trials.values(), strict=True):
        assert mse.score == pytest.approx(r2.score - 1)
        assert -1 < mae.score < 0


@pytest.mark.parametrize(
    ("kind", "scoring", "words"),
    [
        (CrispTreeClassifier, "f1", "one of None, 'accuracy', 'balanced_accuracy', 'neg_brier_score', 'neg_log_loss'"),
        (CrispForestClassifier, "r2", "one of None, 'accuracy'"),
        (CrispTreeRegressor, "accuracy", "one of None, 'r2', 'neg_mean_squared_error', 'neg_mean_absolute_error'"),
    ],
)
def test_other_names_are_refused_with_the_list(kind, scoring, words):
    with pytest.raises(ValueError, match=f"`scoring` must be {words}.*; got '{scoring}'"):
        kind(scoring=scoring).fit(np.eye(4), [0, 1, 0, 1])


def test_trees_with_linear_leaves_are_scored_by_the_same_metric():
    X, y = rare_class()
    model = CrispTreeClassifier(scoring="neg_log_loss", leaf_model="linear", random_state=0).fit(X, y)
    assert all(trial.values["leaf_model"] == "linear" for trial in model.cv_results_ if "leaf_model" in trial.values)
    for trial in model.cv_results_:
        assert trial.score == pytest.approx(-trial.log_loss)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + rng.standard_t(2, size=200)
    fits = {
        name: CrispTreeRegressor.from_flat(scoring=name, leaf_model="linear", leaf_l2=1.0, random_state=0).fit(X, y)
        for name in (None, "neg_mean_squared_error")
    }
    scores = [[trial.score for trial in model.cv_results_] for model in fits.values()]
    np.testing.assert_allclose(np.subtract(*scores), 1)
