"""Scored candidates and their comparison, row by row on the same held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import FlatTree

if TYPE_CHECKING:
    from crisptree.selection.evaluators import EnsemblePredictions

Doubles = npt.NDArray[np.float64]

MAX_ERRORS_OF_FINALISTS = 3.0
"""Families that are no more standard errors below the best take part in the final round."""


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
    trees: tuple[FlatTree, ...] = ()
    predictions: EnsemblePredictions | None = None

    @property
    def score(self) -> float:
        """Weighted mean over the rows."""
        return float(np.average(self.row_scores, weights=self.row_weights))

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
    """Return the trial with the highest score, the first one of equals."""
    return max(trials, key=lambda trial: trial.score)


def find_best_by_family(trials: Sequence[Trial], family: Callable[[dict[str, Any]], Any]) -> list[Trial]:
    """Return the best trial of every family; ``family`` maps values to a key."""
    best: dict[Any, Trial] = {}
    for trial in trials:
        key = family(trial.values)
        if key not in best or trial.score > best[key].score:
            best[key] = trial
    return list(best.values())


def find_finalists(trials: Sequence[Trial]) -> list[Trial]:
    """Return the best of every family (sparse or not, hyperplanes or thresholds) that is close to the best of all."""
    names = ("split", "finetune_epochs", "min_samples_leaf")
    families = find_best_by_family(trials, lambda values: (bool(values.get("l1")), *map(values.get, names)))
    best = find_best(trials)
    close = [t for t in families if best.score - t.score <= MAX_ERRORS_OF_FINALISTS * best.error_against(t)]
    return sorted(close, key=lambda trial: -trial.score)


def select_simplest(trials: Sequence[Trial], max_errors: float = 1.0) -> Trial:
    """Return the trial with the fewest weights among those within so many standard errors of the best.

    The error is that of the paired difference: two candidates that err on the same rows are told apart by few others.
    """
    best = find_best(trials)
    close = [trial for trial in trials if best.score - trial.score <= max_errors * best.error_against(trial)]
    return min(close, key=lambda trial: trial.weights)


def select_cart(trials: Sequence[Trial]) -> Trial | None:
    """Return the best thresholds as CART finds them, if within one standard error of the best.

    Refitted on all rows CART finds nearly the same thresholds, while hyperplanes may converge to another optimum.
    """
    cart = [trial for trial in trials if trial.values.get("finetune_epochs") == 0]
    if not cart:
        return None
    first, best = find_best(cart), find_best(trials)
    return first if best.score - first.score <= best.error_against(first) else None


def select_against(reference: Trial, trials: Sequence[Trial], min_errors: float) -> Trial:
    """Return the best trial if it exceeds a reference by more than so many standard errors, else the reference."""
    best = find_best(trials)
    return best if best.score - reference.score > min_errors * best.error_against(reference) else reference
