"""What values the features took in training: from where to where, and whether they were whole numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.blocks import row_blocks
from crisptree.data.sparse import SparseRows
from crisptree.inference.flat import CrispTree
from crisptree.inference.statistics import SomeTree

Ranges = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.bool_]]


def with_ranges(tree: SomeTree, X: Any, holes: Mapping[int, int] | None = None) -> SomeTree:
    """The tree with the smallest and the largest value of every feature, and whether all of them are whole.

    ``holes`` are features and those that tell where their values are missing: what stands in for these is no value.

    Examples
    --------
    >>> from crisptree.inference.statistics import unsettled
    >>> from crisptree.inference import FlatTree
    >>> from crisptree.data.scaling import Scaling
    >>> from crisptree.structure import TreeStructure
    >>> leaf = TreeStructure.single_leaf()
    >>> weight, bias = np.zeros((0, 2), dtype=np.float32), np.zeros(0, dtype=np.float32)
    >>> statistics = unsettled(leaf, Scaling.none(2), np.ones((1, 1)), 1.0)
    >>> tree = FlatTree(leaf, np.ones((1, 1)), statistics, weight=weight, bias=bias)
    >>> seen = with_ranges(tree, np.array([[1, 0.5], [3, 0.0]], dtype=np.float32)).statistics
    >>> seen.lowest.tolist(), seen.highest.tolist(), seen.whole.tolist()
    ([1.0, 0.0], [3.0, 0.5], [1, 0])
    """
    lowest, highest, whole = _of_sparse(X) if isinstance(X, SparseRows) else _of_dense(X, holes or {})
    statistics = replace(tree.statistics, lowest=lowest, highest=highest, whole=whole.astype(np.uint8))
    return replace(tree, statistics=statistics)


def _of_dense(X: npt.NDArray[np.float32], holes: Mapping[int, int]) -> Ranges:
    n_features = X.shape[1]
    lowest, highest = np.full(n_features, np.inf), np.full(n_features, -np.inf)
    whole = np.ones(n_features, dtype=bool)
    for rows in row_blocks(len(X)):
        block = X[rows].copy() if holes else X[rows]
        for feature, tells in holes.items():
            block[block[:, tells] > 0, feature] = np.nan
        lowest, highest = np.fmin(lowest, np.fmin.reduce(block)), np.fmax(highest, np.fmax.reduce(block))
        still = np.flatnonzero(whole)
        whole[still] = ((block[:, still] == np.rint(block[:, still])) | np.isnan(block[:, still])).all(axis=0)
    empty = lowest > highest
    lowest[empty] = highest[empty] = X[0, empty]
    return lowest, highest, whole


def _of_sparse(X: SparseRows) -> Ranges:
    """Zero is one of the values of a feature that not every row has."""
    is_full = np.bincount(X.index, minlength=X.n_features) == len(X)
    lowest, highest = np.where(is_full, np.inf, 0.0), np.where(is_full, -np.inf, 0.0)
    np.minimum.at(lowest, X.index, X.data)
    np.maximum.at(highest, X.index, X.data)
    whole = np.ones(X.n_features, dtype=bool)
    whole[X.index[np.rint(X.data) != X.data]] = False
    return lowest, highest, whole


def carried_over(tree: SomeTree, earlier: CrispTree, *, and_own: bool = False) -> SomeTree:
    """The tree with the ranges that an earlier one has seen; those of both, where it is to keep its own."""
    seen, own = earlier.statistics, tree.statistics
    lowest, highest, whole = seen.lowest, seen.highest, seen.whole
    if and_own and not (lowest is None or highest is None or whole is None):
        assert own.lowest is not None
        assert own.highest is not None
        assert own.whole is not None
        lowest, highest = np.minimum(lowest, own.lowest), np.maximum(highest, own.highest)
        whole = whole & own.whole
    return replace(tree, statistics=replace(own, lowest=lowest, highest=highest, whole=whole))
