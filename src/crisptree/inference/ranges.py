"""What values the features took in training: from where to where, and whether they were whole numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from crisptree.blocks import row_blocks
from crisptree.inference.flat import CrispTree
from crisptree.inference.statistics import SomeTree

Singles = npt.NDArray[np.float32]


def with_ranges(tree: SomeTree, X: Singles) -> SomeTree:
    """The tree with the smallest and the largest value of every feature, and whether all of them are whole.

    Examples
    --------
    >>> from crisptree.inference.statistics import unsettled
    >>> from crisptree.inference import FlatTree
    >>> from crisptree.scaling import Scaling
    >>> from crisptree.structure import TreeStructure
    >>> leaf = TreeStructure.single_leaf()
    >>> weight, bias = np.zeros((0, 2), dtype=np.float32), np.zeros(0, dtype=np.float32)
    >>> statistics = unsettled(leaf, Scaling.none(2), np.ones((1, 1)), 1.0)
    >>> tree = FlatTree(leaf, np.ones((1, 1)), statistics, weight=weight, bias=bias)
    >>> seen = with_ranges(tree, np.array([[1, 0.5], [3, 0.0]], dtype=np.float32)).statistics
    >>> seen.lowest.tolist(), seen.highest.tolist(), seen.whole.tolist()
    ([1.0, 0.0], [3.0, 0.5], [1, 0])
    """
    n_features = X.shape[1]
    lowest, highest = np.full(n_features, np.inf), np.full(n_features, -np.inf)
    whole = np.ones(n_features, dtype=bool)
    for rows in row_blocks(len(X)):
        block = X[rows]
        lowest, highest = np.minimum(lowest, block.min(axis=0)), np.maximum(highest, block.max(axis=0))
        still = np.flatnonzero(whole)
        whole[still] = (block[:, still] == np.rint(block[:, still])).all(axis=0)
    statistics = replace(tree.statistics, lowest=lowest, highest=highest, whole=whole.astype(np.uint8))
    return replace(tree, statistics=statistics)


def carried_over(tree: SomeTree, earlier: CrispTree) -> SomeTree:
    """The tree with the ranges that an earlier one has seen."""
    seen = earlier.statistics
    statistics = replace(tree.statistics, lowest=seen.lowest, highest=seen.highest, whole=seen.whole)
    return replace(tree, statistics=statistics)
