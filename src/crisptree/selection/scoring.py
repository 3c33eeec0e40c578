"""Metrics of ``scoring``: scores of held-out rows whose weighted mean is scikit-learn's metric.

Candidates are compared row by row, with the standard error of the paired difference; so every metric here is a mean
over rows. Without ``scoring`` the target scores its rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.targets import Target

Doubles = npt.NDArray[np.float64]

BALANCED, BRIER, LOG_LOSS = "balanced_accuracy", "neg_brier_score", "neg_log_loss"
ABSOLUTE_ERROR, SQUARED_ERROR = "neg_mean_absolute_error", "neg_mean_squared_error"


def score_rows(
    scoring: str | None, values: Doubles, y: npt.NDArray[Any], target: Target, losses: Doubles | None
) -> Doubles:
    """Score held-out rows by class probabilities and log losses, or by scaled means.  (n, n_values) → (n,)"""
    if scoring == LOG_LOSS:
        assert losses is not None
        return -losses
    if scoring == BRIER:
        return score_brier(values, y)
    if scoring == ABSOLUTE_ERROR:
        return score_absolute_error(target.predict(values), y)
    scores = np.asarray(target.score_predictions(target.predict(values), y), dtype=np.float64)
    return scores - 1 if scoring == SQUARED_ERROR else scores


def score_brier(probabilities: Doubles, y: npt.NDArray[Any]) -> Doubles:
    """Minus the squared distance to the one-hot label, halved for two classes as in scikit-learn.  (n,)"""
    squares = (probabilities**2).sum(axis=1) + 1 - 2 * probabilities[np.arange(len(y)), y]
    return np.asarray(-squares / (2 if probabilities.shape[1] == 2 else 1))


def score_absolute_error(predicted: Doubles, y: npt.NDArray[Any]) -> Doubles:
    """Minus the absolute error, averaged over outputs.  (n,)"""
    return np.asarray(-np.abs(predicted - y).mean(axis=-1))


def weigh_rows(scoring: str | None, y: npt.NDArray[Any], weight: Doubles) -> Doubles:
    """Return the weights of the mean over rows: for balanced accuracy the same total for every class.  (n,)"""
    if scoring != BALANCED:
        return weight
    _, classes = np.unique(y, return_inverse=True)
    return np.asarray(weight / np.bincount(classes, weight)[classes])
