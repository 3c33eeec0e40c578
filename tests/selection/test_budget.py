"""Fits that stop model selection after some seconds or candidates."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_friedman1

from crisptree import CrispForestClassifier, CrispForestRegressor, CrispTreeClassifier, CrispTreeRegressor
from crisptree.selection import search

CLASSES = load_iris(return_X_y=True)
REGRESSION = make_friedman1(120, random_state=0)
KINDS = [
    (CrispTreeClassifier, CLASSES, {}),
    (CrispTreeRegressor, REGRESSION, {}),
    (CrispForestClassifier, CLASSES, {"n_estimators": 3}),
    (CrispForestRegressor, REGRESSION, {"n_estimators": 3}),
]


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes on by a second whenever it is looked at."""
    now = iter(range(1_000_000))
    monkeypatch.setattr(search, "monotonic", lambda: float(next(now)))


def fit(kind, data, parameters, **options):
    options = {f"training__{name}": value for name, value in options.items()}
    return kind(random_state=0, **parameters).set_params(**options).fit(*data)


def predictions(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


@pytest.mark.parametrize(("kind", "data", "parameters"), KINDS)
def test_a_fit_with_a_time_budget_is_that_of_as_many_candidates(clock, kind, data, parameters):
    timed = fit(kind, data, parameters, time_budget=3.0)
    assert timed.n_candidates_ == 3
    repeated = fit(kind, data, parameters, max_candidates=timed.n_candidates_)
    assert repeated.best_params_ == timed.best_params_
    assert np.array_equal(predictions(repeated, data[0]), predictions(timed, data[0]))
    whole = fit(kind, data, parameters)
    assert whole.n_candidates_ > 3
    first = [trial.values for trial in whole.cv_results_ if trial.candidate <= 3]
    assert [trial.values for trial in timed.cv_results_][: len(first)] == first


@pytest.mark.parametrize(("kind", "data", "parameters"), KINDS)
def test_at_least_one_candidate_is_trained(clock, kind, data, parameters):
    model = fit(kind, data, parameters, time_budget=0.001)
    assert model.n_candidates_ == 1
    assert model.best_params_
    assert model.score(*data) > 0.3


def test_more_candidates_than_there_are_change_nothing():
    whole = fit(*KINDS[0])
    limited = fit(*KINDS[0], max_candidates=whole.n_candidates_)
    assert [trial.values for trial in limited.cv_results_] == [trial.values for trial in whole.cv_results_]


def test_a_checkpoint_needs_candidates_that_can_be_repeated(tmp_path):
    model = CrispTreeClassifier().set_params(training__time_budget=1.0)
    with pytest.raises(ValueError, match=r"`time_budget` must be None with `checkpoint`.*Take max_candidates"):
        model.fit(*CLASSES, checkpoint=tmp_path / "folder")


@pytest.mark.parametrize(("name", "value"), [("time_budget", 0.0), ("time_budget", -1.0), ("max_candidates", 0)])
def test_budgets_are_positive(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be "):
        fit(*KINDS[0], **{name: value})
