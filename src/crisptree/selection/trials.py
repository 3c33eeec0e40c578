"""Scored candidates and their comparison, row by row on the same held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import FlatTree

if TYPE_CHECKING:
    from crisptree.selection.evaluators import EnsemblePredictions

Doubles = npt.NDArray[np.float64]

MAX_ERRORS = 0.5
"""Trials within so many standard errors of the highest score are told apart by their log loss."""

LOSS_SHARE = 0.1
"""What a nat of log loss counts beside accuracy in the comparison of classification trials."""


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate and its scores on held-out rows.

    Parameters
    ----------
    values : dict
        The candidate: values of parameters.
    row_scores : ndarray of shape (n,)
        Score of every held-out row, fold after fold: for classification 1 or 0, for regression 1 − the squared error.
    row_weights : ndarray of shape (n,)
        Weights of these rows.
    weights, leaves : float
        Number of non-zero weights and of leaves, averaged over the folds.
    row_losses : ndarray of shape (n,) or None
        Log loss of every held-out row; None for regression.
    trees : tuple of FlatTree
        Trees of the folds, kept while candidates are compared.
    predictions : EnsemblePredictions or None
        Held-out predictions of a regression forest, kept while candidates are compared.
    """

    values: dict[str, Any]
    row_scores: Doubles
    row_weights: Doubles
    weights: float
    leaves: float
    row_losses: Doubles | None = None
    trees: tuple[FlatTree, ...] = ()
    predictions: EnsemblePredictions | None = None

    @property
    def score(self) -> float:
        """Weighted mean over the rows."""
        return float(np.average(self.row_scores, weights=self.row_weights))

    @cached_property
    def merit(self) -> float:
        """The score less a share of the log loss, which tells trees apart that are right on the same rows."""
        return self.score - LOSS_SHARE * self.log_loss

    @property
    def log_loss(self) -> float:
        """Weighted mean log loss of the rows; 0 for regression."""
        return 0.0 if self.row_losses is None else float(np.average(self.row_losses, weights=self.row_weights))

    def error_against(self, other: Trial) -> float:
        """Standard error of the difference of two scores, row by row."""
        return self._error(self.row_scores - other.row_scores)

    @property
    def error(self) -> float:
        """Standard error of the score."""
        return self._error(self.row_scores)

    def _error(self, values: Doubles) -> float:
        share = self.row_weights / self.row_weights.sum()
        return float(np.sqrt((share**2 * (values - share @ values) ** 2).sum()))


def find_best(trials: Sequence[Trial]) -> Trial:
    """Return the trial of the highest merit, the first one of equals."""
    return max(trials, key=lambda trial: trial.merit)


def select_close(trials: Sequence[Trial]) -> Trial:
    """Return the trial of the lowest log loss among those close to the highest score; for regression the highest.

    The standard error is that of the paired difference: two candidates that err on the same rows are told apart by few
    others.
    """
    best = max(trials, key=lambda trial: (trial.score, trial.merit))
    close = [trial for trial in trials if best.score - trial.score <= MAX_ERRORS * best.error_against(trial)]
    return best if best.row_losses is None else min(close, key=lambda trial: trial.log_loss)


def select_against(reference: Trial, trials: Sequence[Trial], min_errors: float) -> Trial:
    """Return the best trial if it exceeds a reference by more than so many standard errors, else the reference."""
    best = find_best(trials)
    return best if best.score - reference.score > min_errors * best.error_against(reference) else reference
