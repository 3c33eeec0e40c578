"""Deterministic prediction, without torch: a row visits one path and ends in one leaf.

``flat`` holds trained trees as arrays, ``summation`` and ``reference`` define which leaf a row reaches, ``compiled`` is
the fast way to the same leaf, ``statistics`` counts what the training rows did.
"""

from crisptree.inference.dispatch import route_rows
from crisptree.inference.flat import CrispTree, FlatTree, Statistics

__all__ = ["CrispTree", "FlatTree", "Statistics", "route_rows"]
