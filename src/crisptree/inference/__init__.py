"""Deterministic prediction, without torch: a row visits one path and ends in one leaf.

``flat`` holds trained trees as arrays, ``reference`` defines which leaf a row reaches, ``statistics`` counts what
the training rows did.
"""

from crisptree.inference.flat import CrispTree, FlatTree, Statistics
from crisptree.inference.reference import route_rows

__all__ = ["CrispTree", "FlatTree", "Statistics", "route_rows"]
