"""Deterministic prediction, without torch: a row visits one path and ends in one leaf.

``flat_tree`` holds trained trees as arrays, ``routing`` finds the leaf of a row, ``statistics`` counts the training
rows at every node; ``pruning`` and ``shrinkage`` simplify a tree after training, ``rounding`` rounds its splits.
"""

from crisptree.inference.flat_tree import CrispTree, FlatTree, Statistics, route_rows
from crisptree.inference.rounding import round_splits

__all__ = ["CrispTree", "FlatTree", "Statistics", "route_rows", "round_splits"]
