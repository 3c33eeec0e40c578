"""Training and held-out rows of model selection: given validation rows, a holdout split or cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from crisptree.data.raw_rows import Scaling
from crisptree.learning.linear_leaves import LeafRows
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.targets.base import add_copies, find_originals, hold_out
from crisptree.threads import row_blocks

Doubles = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

MIN_ROWS = 60
"""Nothing is selected on fewer rows."""

MIN_VALIDATION_ROWS = 20
"""Fewer given validation rows are too noisy; the training rows are cross-validated instead."""

MIN_ROWS_FOR_HOLDOUT, MIN_ROWS_FOR_HOLDOUT_OF_SMALL_TABLES = 4000, 8000
"""From here on one holdout split replaces cross-validation; the second for single trees that L-BFGS trains."""

HOLDOUT_FRACTION = 0.2

MIN_ROWS_FOR_TWO_FOLDS = 1000
"""Fewer rows are cross-validated in three folds."""

MIN_ROWS_FOR_FEWER_FOLDS, MAX_FOLDS = 1500, 5
"""Single trees on fewer rows are compared in five folds."""

MAX_ROWS = {"classes": 50_000, "gaussians": 25_000}
"""Larger parts are subsampled."""

MAX_ROWS_OF_SMALL_TABLES = 10_000
"""The same for single trees that L-BFGS trains: many candidates tell more than many rows."""

SAMPLE_ROWS = 20_000
"""Rows sampled from batches or from all ranks of a process group, on which candidates are compared."""

CART: dict[str, Callable[..., Any]] = {
    "classes": partial(DecisionTreeClassifier, criterion="entropy"),
    "gaussians": partial(DecisionTreeRegressor, min_samples_leaf=5),
}
"""scikit-learn's trees by target; regression trees without a minimal leaf size overfit."""


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to train on, and held-out rows to score on."""

    problem: TrainingTask
    held_out: RowSet
    training_mask: npt.NDArray[np.int32] | None = None
    """Number of folds in which each row is a training row."""

    @cached_property
    def leaf_rows(self) -> LeafRows:
        """Scaled training rows as linear leaves take them."""
        return self._scale(self.problem.training)

    @cached_property
    def held_out_leaf_rows(self) -> LeafRows:
        """The same of the held-out rows."""
        return self._scale(self.held_out)

    def _scale(self, rows: RowSet) -> LeafRows:
        scaled = self.problem.scaling.apply(np.asarray(rows.X[:], dtype=np.float32), 1)
        return LeafRows.of(scaled, rows.y, self.problem.target)

    def rescale(self, scaling: Scaling) -> Fold:
        """Return the same rows on another scale."""
        return replace(self, problem=replace_scaling(self.problem, scaling))


def replace_scaling(problem: TrainingTask, scaling: Scaling) -> TrainingTask:
    """Return the training on the same rows with another scale."""
    return TrainingTask(problem.training, scaling, problem.target)


def count_folds(n_rows: int, *, is_ensemble: bool, is_thorough: bool = False) -> int:
    """Return the number of folds of a cross-validation."""
    times = 2 if is_thorough else 1
    if not is_ensemble:
        return times * (MAX_FOLDS if n_rows < MIN_ROWS_FOR_FEWER_FOLDS else 3)
    return times * (3 if n_rows < MIN_ROWS_FOR_TWO_FOLDS else 2)


def make_folds(
    problem: TrainingTask,
    seed: int,
    source: npt.NDArray[np.intp] | None = None,
    *,
    is_ensemble: bool = False,
    is_thorough: bool = False,
    max_rows: int | None = None,
) -> list[Fold]:
    """Split rows into training and held-out rows; return no fold where there are too few.

    Parameters
    ----------
    problem : TrainingTask
        All rows. Its validation rows, if there are enough, are the held-out rows of the only fold.
    seed : int
        Seed of the splits.
    source : ndarray of int or None
        Index of the row that a row is a copy of; no copy of a training row is held out.
    is_ensemble : bool
        Whether candidates are forests, which need fewer folds.
    is_thorough : bool
        Whether to make twice as many folds.
    max_rows : int or None
        Larger parts are subsampled; None takes the limit of the target.
    """
    min_rows_for_holdout = MIN_ROWS_FOR_HOLDOUT if max_rows is None else MIN_ROWS_FOR_HOLDOUT_OF_SMALL_TABLES
    part, max_rows = problem.training, max_rows or MAX_ROWS[problem.target.name]
    if problem.validation is not None and len(problem.validation.y) >= MIN_VALIDATION_ROWS:
        kept = _subsample(np.arange(len(part.y)), max_rows, seed)
        return [Fold(_take_problem(problem, kept), problem.validation)]
    own = find_originals(len(part.y), source)
    strata = problem.target.strata(part.y)
    n_rows, counts = len(own), np.bincount(strata[own])
    n_folds = count_folds(n_rows, is_ensemble=is_ensemble, is_thorough=is_thorough)
    counts = counts[counts > 0]
    if n_rows < MIN_ROWS or len(counts) < 2:
        return []
    if n_rows >= min_rows_for_holdout:
        pairs = [hold_out(strata[own], HOLDOUT_FRACTION, seed)]
    else:
        # A class with fewer rows than folds cannot be in all of them.
        splitter = StratifiedKFold if counts.min() >= n_folds else KFold
        pairs = list(splitter(n_folds, shuffle=True, random_state=seed).split(own, strata[own]))
    trained = [_subsample(add_copies(own[kept], source), max_rows, seed) for kept, _ in pairs]
    scored = [_subsample(own[held_out], max_rows, seed) for _, held_out in pairs]
    factors = weigh_repeated(part, own, trained, scored)
    folds = []
    for training, rows, factor in zip(trained, scored, factors, strict=True):
        mask = np.bincount(training, minlength=len(part.y)).astype(np.int32) if len(pairs) > 1 else None
        held_out = RowSet(part.X[rows], part.y[rows], part.weight[rows] * factor)
        folds.append(Fold(_take_problem(problem, training), held_out, mask))
    return folds


def weigh_repeated(part: RowSet, own: Rows, trained: Sequence[Rows], scored: Sequence[Rows]) -> list[Doubles]:
    """Weigh held-out rows so that those with the features of a training row have the share that new rows would have.

    A row is repeated more often in the whole table than in the training rows of a fold, so that without these factors
    trees that memorise rows, which is right where rows repeat, score less than they are worth. The share for the whole
    table is that of its rows with the features of another one.

    Returns
    -------
    list of ndarray of shape (n_scored,)
        Factors of the weights of the held-out rows of every fold, all 1 unless some of the rows are repeated.
    """
    ones = [np.ones(len(rows)) for rows in scored]
    if not isinstance(part.X, np.ndarray):
        return ones
    keys = hash_rows(part.X)
    _, key, counts = np.unique(keys[own], return_inverse=True, return_counts=True)
    share = float(np.average(counts[key] > 1, weights=part.weight[own]))
    is_seen = [np.isin(keys[rows], keys[training]) for training, rows in zip(trained, scored, strict=True)]
    seen = float(np.average(np.concatenate(is_seen), weights=part.weight[np.concatenate(scored)]))
    if not (0 < share < 1 and 0 < seen < 1):
        return ones
    return [np.where(one, share / seen, (1 - share) / (1 - seen)) for one in is_seen]


def hash_rows(X: npt.NDArray[np.float32]) -> npt.NDArray[np.uint64]:
    """Return a number for every row, the same for equal rows.  (n, n_features) → (n,)

    Examples
    --------
    >>> keys = hash_rows(np.float32([[1, 2], [2, 1], [1, 2]]))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    factors = np.random.default_rng(0).integers(2**63, size=X.shape[1], dtype=np.uint64) | np.uint64(1)
    keys = np.empty(len(X), dtype=np.uint64)
    for block in row_blocks(len(X)):
        # Adding zero makes −0 and 0 the same.
        products = np.ascontiguousarray(X[block] + np.float32(0)).view(np.uint32) * factors
        keys[block] = (products ^ (products >> np.uint64(32))).sum(axis=1)
    return keys


def _subsample(rows: Any, max_rows: int, seed: int) -> Any:
    return rows if len(rows) <= max_rows else np.sort(np.random.default_rng(seed).choice(rows, max_rows, replace=False))


def _take_problem(problem: TrainingTask, rows: Any) -> TrainingTask:
    return TrainingTask(_take(problem.training, rows), problem.scaling, problem.target)


def _take(part: RowSet, rows: Any) -> RowSet:
    return RowSet(part.X[rows], part.y[rows], part.weight[rows])


def score_cart(folds: Sequence[Fold], max_depth: int | None, seed: int) -> float:
    """Return the held-out score of scikit-learn's trees, a cheap bound on what thresholds may reach."""
    scores, weights = [], []
    for fold in folds:
        rows, held_out, target = fold.problem.training, fold.held_out, fold.problem.target
        tree = CART[target.name](max_depth=max_depth, random_state=seed % 2**32)
        tree.fit(rows.X, rows.y, rows.weight)
        scores.append(target.score_predictions(tree.predict(held_out.X).reshape(held_out.y.shape), held_out.y))
        weights.append(held_out.weight)
    return float(np.average(np.concatenate(scores), weights=np.concatenate(weights)))
