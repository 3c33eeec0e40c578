"""Isotonic regression of leaf values: predictions that rise with a column, whatever the other columns are.

Where the weights of a column have one sign in all splits, a larger value moves a row from left to right. Predictions
then rise if no leaf left of such a split has a higher value than one right of it. Every pair of leaves is ordered by
the split that parts them, or not at all, so that the best upper set is found by one pass up the tree.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crisptree.structure import TreeStructure

Doubles = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

TOLERANCE = 1e-12
"""A gain below this share of all deviations is rounding."""


def order_leaf_values(structure: TreeStructure, is_ordered: Mask, values: Doubles, weights: Doubles) -> Doubles:
    """Minimise Σ w (v − values)² such that v left of an ordered split is at most v right of it.  (n_leaves,)

    Exact, by recursive partitioning (Spouge, Wan and Wilbur, 2003): the leaves of a group are parted at their mean into
    a lower and an upper set, until no upper set of a group has a higher mean than the group.

    Parameters
    ----------
    structure : TreeStructure
        Structure of the tree.
    is_ordered : ndarray of shape (n_splits,)
        True for splits that order the leaves below them.
    values, weights : ndarray of shape (n_leaves,)
        Values of the leaves, and their weights, which are positive.

    Examples
    --------
    >>> stump = TreeStructure.stump()
    >>> order_leaf_values(stump, np.array([True]), np.array([3.0, 0.0]), np.array([1.0, 2.0])).tolist()
    [1.0, 1.0]
    """
    ordered = np.empty_like(values)
    pending: list[tuple[Mask, float, float]] = [(np.ones(len(values), dtype=bool), -np.inf, np.inf)]
    while pending:
        group, lowest, highest = pending.pop()
        mean = min(max(float(np.average(values[group], weights=weights[group])), lowest), highest)
        deviations = np.where(group, weights * (values - mean), 0.0)
        upper = find_upper_set(structure, is_ordered, deviations) & group
        if deviations[upper].sum() <= TOLERANCE * np.abs(deviations).sum() or upper.sum() == group.sum():
            ordered[group] = mean
        else:
            pending += [(group & ~upper, lowest, mean), (upper, mean, highest)]
    return ordered


def find_upper_set(structure: TreeStructure, is_ordered: Mask, deviations: Doubles) -> Mask:
    """Find the leaves of the largest sum that contain, with a leaf, all leaves that must not be below it.  (n_leaves,)

    Below an ordered split these are leaves of the right child, or all of them and some of the left child.
    """
    n_splits, left, right = structure.n_splits, structure.left_nodes, structure.right_nodes
    total = structure.sums_below(deviations)
    best = np.concatenate([np.zeros(n_splits), np.maximum(deviations, 0.0)])
    takes_right = np.zeros(n_splits, dtype=bool)
    for splits in reversed(structure.levels):
        apart, whole = best[left[splits]] + best[right[splits]], best[left[splits]] + total[right[splits]]
        takes_right[splits] = is_ordered[splits] & (whole > best[right[splits]])
        some = np.where(takes_right[splits], whole, best[right[splits]])
        best[splits] = np.where(is_ordered[splits], some, apart)
    all_of, none_of = np.zeros(structure.n_nodes, dtype=bool), np.zeros(structure.n_nodes, dtype=bool)
    for splits in structure.levels:
        for child in (left[splits], right[splits]):
            all_of[child], none_of[child] = all_of[splits], none_of[splits]
        is_free = is_ordered[splits] & ~(all_of[splits] | none_of[splits])
        all_of[right[splits]] |= is_free & takes_right[splits]
        none_of[left[splits]] |= is_free & ~takes_right[splits]
    return np.asarray(all_of[n_splits:] | (~none_of[n_splits:] & (deviations > 0)))
