"""Nested evaluation: how much higher the selected trial scores on its held-out rows than the fit on new rows."""

import numpy as np
import pytest

from crisptree import CrispTreeClassifier, CrispTreeRegressor

N_ROWS, N_NEW, SETS = 250, 4000, range(6)


def noisy_plane(n, seed):
    """Classes of a plane through six features, a fifth of them flipped: no tree can have more than 0.8."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    return X, (X[:, :2].sum(axis=1) > 0) ^ (rng.random(n) < 0.2)


def pure_noise(n, seed):
    """Labels that no feature tells: every candidate has an accuracy of one half."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 6)), rng.integers(0, 2, n)


def noisy_steps(n, seed):
    """A regression whose noise has half the variance of y."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    steps = 1.0 * (X[:, 0] > 0) + (X[:, 1] > 0.5)
    return X, steps + steps.std() * rng.normal(size=n)


def measure_optimism(kind, make):
    """Selected score less the score on new rows, and the standard error of the former, for every data set."""
    optimism, errors = [], []
    for seed in SETS:
        X, y = make(N_ROWS, seed)
        model = kind(random_state=0).fit(X, y)
        best = {name: value for name, value in model.best_params_.items() if name != "shrinkage"}
        trial = next(trial for trial in model.cv_results_ if trial.values == best)
        optimism.append(trial.score - model.score(*make(N_NEW, 1000 + seed)))
        errors.append(trial.error)
    return np.array(optimism), np.array(errors)


MAX_OF_A_HUNDRED = 2.5
"""Expected highest of a hundred independent scores of the same mean, in standard errors; trials share their rows."""


@pytest.mark.parametrize(
    ("kind", "make", "limit"),
    [
        (CrispTreeClassifier, noisy_plane, 1.25),
        (CrispTreeRegressor, noisy_steps, 1.25),
        (CrispTreeClassifier, pure_noise, MAX_OF_A_HUNDRED),
    ],
)
def test_the_optimism_of_the_selected_score_is_bounded(kind, make, limit):
    """With a signal candidates differ, and chance decides among few; without any, among all of them."""
    optimism, errors = measure_optimism(kind, make)
    assert optimism.mean() < limit * errors.mean()


def test_the_selected_score_is_optimistic_where_nothing_can_be_learned():
    """So a nested evaluation is needed for an honest figure, and this one would see a bias."""
    optimism, errors = measure_optimism(CrispTreeClassifier, pure_noise)
    assert optimism.mean() > 0.5 * errors.mean()
