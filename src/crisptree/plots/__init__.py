"""Drawings. Each function takes values and an axis, and returns the axis; matplotlib is imported in here only."""

from crisptree.plots.tree import plot_tree

__all__ = ["plot_tree"]
