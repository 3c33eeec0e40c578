"""What the parameters of a forest must be, beside the rules of each."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from crisptree.data.sparse import SparseRows
from crisptree.estimators.bags import Bagging

if TYPE_CHECKING:
    from crisptree.estimators.validation import TrainingData

ROWS_LOOKED_AT = 1000
"""So many rows, spread over all, are compared where a warm start must go on with the same ones."""


def check_more_trees(
    parameters: Mapping[str, Any], n_trees: int, n_rows: int, n_given: int, *, has_models: bool
) -> None:
    """A warm start goes on with the same rows and the same kind of leaves, to more trees."""
    if has_models != (parameters["leaves"] == "linear"):
        before = "linear" if has_models else "constant"
        raise ValueError(
            f"`leaves` must be {before!r} with warm_start=True, as in the trees that are there; got "
            f"{parameters['leaves']!r}. Use a new estimator for other leaves."
        )
    if n_given != n_rows:
        raise ValueError(
            f"`warm_start` must go on with the same rows, {n_rows} of them; got {n_given}. Use a new estimator for "
            "other data."
        )
    wanted = parameters["n_estimators"]
    if wanted != "auto" and wanted < n_trees:
        raise ValueError(
            f"`n_estimators` must be at least {n_trees} with warm_start=True, because there are so many trees; got "
            f"{wanted}. Use a new estimator for fewer."
        )


def check_bags(before: str, bagging: Bagging, n_estimators: Any) -> None:
    """Trees of a warm start draw rows as those that are there, and some are left out where they must judge."""
    if bagging.kind != before:
        raise ValueError(
            f"`warm_start` must go on with trees that draw rows as those that are there did ({before}), or rows would "
            f"be judged by trees that have seen them; bootstrap, max_samples and the shape of X ask for "
            f"{bagging.kind}. Use a new estimator for others."
        )
    if n_estimators == "auto" and not bagging.leaves_rows_out:
        raise ValueError(
            f"`n_estimators` must be a number where every tree sees all rows ({bagging.kind}), because nothing judges "
            "then; got 'auto'. Give a number, or draw fewer rows with max_samples."
        )


def digest_of(data: TrainingData) -> str:
    """A checksum of y, of weights and of some rows."""
    some = np.linspace(0, len(data.y) - 1, min(len(data.y), ROWS_LOOKED_AT)).astype(np.int64)
    X = data.X[some]
    found = hashlib.sha256()
    for part in (data.y, data.weight, *((X.data, X.index) if isinstance(X, SparseRows) else (X,))):
        found.update(np.ascontiguousarray(part).data)
    return found.hexdigest()


def check_same_rows(before: str, here: str) -> None:
    """A warm start goes on with the same values, as far as a checksum of some of them tells."""
    if before != here:
        raise ValueError(
            "`warm_start` must go on with the same rows, because trees are judged by those of them that they have not "
            "drawn; X, y or sample_weight differ from those of the fit before. Use a new estimator for other data."
        )


def check_tree_number(number: Any, n_trees: int) -> int:
    """Which tree is meant, counted from the end below zero."""
    try:
        return range(n_trees)[index(number)]
    except (IndexError, TypeError):
        raise IndexError(
            f"the number of a tree must be a whole one from 0 to {n_trees - 1}, or from -{n_trees} to -1 counted from "
            f"the end; got {number!r}."
        ) from None
