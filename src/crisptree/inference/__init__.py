"""Deterministic prediction, without torch: a row visits one path and ends in one leaf.

``flat_tree`` holds trained trees as arrays and finds the leaf of a row, ``node_arrays`` describes their nodes as
scikit-learn does; ``finalization`` counts the training rows at every node, prunes and shrinks; ``rounding`` rounds
splits.
"""

from crisptree.inference.flat_tree import CrispTree, FlatTree, Statistics, route_rows
from crisptree.inference.node_arrays import visited_nodes
from crisptree.inference.rounding import round_splits

__all__ = ["CrispTree", "FlatTree", "Statistics", "route_rows", "round_splits", "visited_nodes"]
