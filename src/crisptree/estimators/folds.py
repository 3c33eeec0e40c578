"""Rows that judge choices: given ones, a part of the training rows, or several parts in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from crisptree.holdout import and_copies, hold_out, own_rows
from crisptree.learning.choosing import Fold
from crisptree.learning.task import Part, Problem

FEWEST_ROWS = 60
FEWEST_JUDGES = 20
"""Fewer validation rows than these say nothing; the training rows are cross-validated then."""

ROWS_FOR_ONE_FOLD = 4000
"""With so many rows a single part judges; fewer are cross-validated."""

FEW_ROWS = 1000
"""Below this three folds judge, from here on two."""

VERY_FEW_ROWS, MORE_FOLDS = 500, 5
"""Fewer numbers than these are judged by five folds: a squared error of few rows is told by chance."""

MOST_ROWS = {"classes": 50_000, "gaussians": 25_000}
"""A choice looks at no more rows than these."""

HELD_OUT = 0.2

THEIR_TREES: dict[str, Callable[..., Any]] = {
    "classes": partial(DecisionTreeClassifier, criterion="entropy"),
    "gaussians": partial(DecisionTreeRegressor, min_samples_leaf=5),
}
"""scikit-learn's trees, by what a leaf predicts; those of numbers overfit more."""


def folds_of(
    problem: Problem,
    seed: int,
    source: npt.NDArray[np.intp] | None = None,
    *,
    more: bool = False,
    n_folds: int | None = None,
) -> list[Fold]:
    """Rows to train on and rows that judge: the validation rows, or a part of the rows, or several in turn.

    ``more`` takes more parts where very few numbers are to tell single trees apart; forests tell with fewer.
    ``n_folds`` says how many parts few rows have.
    """
    part, most = problem.training, MOST_ROWS[problem.target.name]
    if problem.validation is not None and len(problem.validation.y) >= FEWEST_JUDGES:
        kept = _at_most(np.arange(len(part.y)), most, seed)
        return [Fold(_only(problem, kept), problem.validation)]
    own = own_rows(len(part.y), source)
    strata = problem.target.strata(part.y)
    n_rows, counts = len(own), np.bincount(strata[own])
    n_folds = n_folds or _n_folds(n_rows, more=more and problem.target.name == "gaussians")
    counts = counts[counts > 0]
    if n_rows < FEWEST_ROWS or len(counts) < 2:
        return []
    if n_rows >= ROWS_FOR_ONE_FOLD:
        pairs = [hold_out(strata[own], HELD_OUT, seed)]
    else:
        # A class with fewer rows than folds cannot be in all of them.
        kind = StratifiedKFold if counts.min() >= n_folds else KFold
        pairs = list(kind(n_folds, shuffle=True, random_state=seed).split(own, strata[own]))
    with_copies = [
        (_at_most(and_copies(own[kept], source), most, seed), _at_most(own[held], most, seed)) for kept, held in pairs
    ]
    return [Fold(_only(problem, kept), _rows(part, held)) for kept, held in with_copies]


def _n_folds(n_rows: int, *, more: bool) -> int:
    if more and n_rows < VERY_FEW_ROWS:
        return MORE_FOLDS
    return 3 if n_rows < FEW_ROWS else 2


def _at_most(rows: Any, most: int, seed: int) -> Any:
    return rows if len(rows) <= most else np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


def _only(problem: Problem, rows: Any) -> Problem:
    return Problem(_rows(problem.training, rows), problem.scaling, problem.target)


def _rows(part: Part, rows: Any) -> Part:
    return Part(part.X[rows], part.y[rows], part.weight[rows])


def scikit_learns_score(folds: Sequence[Fold], depth: int | None, seed: int) -> float:
    """What thresholds may reach: a tree of the full depth takes a fraction of the time of any trial."""
    scores, weights = [], []
    for fold in folds:
        rows, held, target = fold.problem.training, fold.held, fold.problem.target
        tree = THEIR_TREES[target.name](max_depth=depth, random_state=seed % 2**32)
        tree.fit(rows.X, rows.y, rows.weight)
        scores.append(target.agreement(tree.predict(held.X).reshape(held.y.shape), held.y))
        weights.append(held.weight)
    return float(np.average(np.concatenate(scores), weights=np.concatenate(weights)))
