"""Quantiles of y among the training rows of a leaf, or of the leaves of all trees of a forest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from crisptree.inference.flat_tree import CrispTree

Doubles = npt.NDArray[np.float64]


def leaf_quantiles(
    tree: CrispTree, leaf: npt.NDArray[np.int64], y: Doubles, weight: Doubles, quantiles: Doubles
) -> Doubles:
    """Weighted quantiles of the rows that reach each leaf; those of its normal distribution if none does.

    Quantiles between two rows are interpolated linearly, as NumPy's are.

    Parameters
    ----------
    tree : CrispTree
        A regression tree.
    leaf : ndarray of shape (n,)
        The leaf of every row.
    y : ndarray of shape (n, n_targets)
        Their targets, in the units of y.
    weight : ndarray of shape (n,)
        Their weights.
    quantiles : ndarray of shape (q,)
        From 0 to 1.

    Returns
    -------
    ndarray of shape (n_leaves, q, n_targets)
    """
    values, n_targets = tree.leaf_values(), y.shape[1]
    mean, spread = values[:, None, :n_targets], np.sqrt(values[:, None, n_targets:])
    found = mean + ndtri(np.clip(quantiles, 1e-6, 1 - 1e-6))[None, :, None] * spread
    order = np.argsort(leaf, kind="stable")
    order = order[weight[order] > 0]
    for rows in np.split(order, np.flatnonzero(np.diff(leaf[order])) + 1):
        for output in range(n_targets if len(rows) else 0):
            found[leaf[rows[0]], :, output] = _quantiles(y[rows, output], weight[rows], quantiles)
    return found


def _quantiles(y: Doubles, weight: Doubles, quantiles: Doubles) -> Doubles:
    order = np.argsort(y, kind="stable")
    y, weight = y[order], weight[order]
    if len(y) == 1:
        return np.full(len(quantiles), y[0])
    # A row stands from its first copy to its last, where the lightest row is one copy: a weight of two is the row
    # twice, and with equal weights row k is at k / (n − 1).
    last = np.cumsum(weight) - weight.min()
    places = np.column_stack([last - (weight - weight.min()), last]).ravel()
    return np.interp(quantiles * last[-1], places, np.repeat(y, 2))


def forest_quantiles(
    leaves: npt.NDArray[np.int64],
    train_leaves: npt.NDArray[np.int64],
    y: Doubles,
    weight: Doubles,
    quantiles: Doubles,
) -> Doubles:
    """Quantile regression forest (Meinshausen 2006): quantiles of y among the rows that share leaves with a row.

    The weight of a training row i for a row x is Σ_t w_i 1(i in the leaf of x in tree t) / (weight of that leaf). The
    quantiles of a row that shares no leaf with any are NaN.

    Parameters
    ----------
    leaves : ndarray of shape (n, n_trees)
        The leaves of the rows to predict.
    train_leaves : ndarray of shape (m, n_trees)
        The leaves of the training rows.
    y : ndarray of shape (m, n_targets)
        Their targets.
    weight : ndarray of shape (m,)
        Their weights.
    quantiles : ndarray of shape (q,)
        From 0 to 1.

    Returns
    -------
    ndarray of shape (n, q, n_targets)
    """
    kept = np.flatnonzero(weight > 0)
    members = [_members(of_tree[kept]) for of_tree in train_leaves.T]
    weight, y = weight[kept], y[kept]
    totals = [{leaf: weight[rows].sum() for leaf, rows in groups.items()} for groups in members]
    found = np.full((len(leaves), len(quantiles), y.shape[1]), np.nan)
    for row, reached in enumerate(leaves.tolist()):
        shared = [
            (groups[leaf], total[leaf])
            for groups, total, leaf in zip(members, totals, reached, strict=True)
            if leaf in groups
        ]
        if not shared:
            continue
        rows, which = np.unique(np.concatenate([some for some, _ in shared]), return_inverse=True)
        counts = np.bincount(which, np.concatenate([weight[some] / total for some, total in shared]))
        shares = counts.astype(np.float64)
        for output in range(y.shape[1]):
            found[row, :, output] = _quantiles(y[rows, output], shares, quantiles)
    return found


def _members(leaves: npt.NDArray[np.int64]) -> dict[int, npt.NDArray[np.int64]]:
    """Rows of every leaf that is reached."""
    order = np.argsort(leaves, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(leaves[order])) + 1) if len(order) else []
    return {int(leaves[rows[0]]): rows for rows in parts}
