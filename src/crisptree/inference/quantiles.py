"""Quantiles of y among the training rows of a leaf, or of the leaves of all trees of a forest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from crisptree.inference.flat_tree import CrispTree, group_by_leaf

Doubles = npt.NDArray[np.float64]


def leaf_quantiles(
    tree: CrispTree, leaf: npt.NDArray[np.int64], y: Doubles, weight: Doubles, quantiles: Doubles
) -> Doubles:
    """Weighted quantiles of the rows that reach each leaf; those of its normal distribution if none does.

    Quantiles between two rows are interpolated linearly, as NumPy's are. ``leaf`` (n,) are the leaves of rows with the
    targets ``y`` (n, n_targets), in the units of y.  → (n_leaves, n_quantiles, n_targets)
    """
    values, n_targets = tree.leaf_values(), y.shape[1]
    mean, spread = values[:, None, :n_targets], np.sqrt(values[:, None, n_targets:])
    result = mean + ndtri(np.clip(quantiles, 1e-6, 1 - 1e-6))[None, :, None] * spread
    kept = np.flatnonzero(weight > 0)
    for rows in (kept[group] for group in group_by_leaf(leaf[kept])):
        for output in range(n_targets):
            result[leaf[rows[0]], :, output] = _quantiles(y[rows, output], weight[rows], quantiles)
    return result


def _quantiles(y: Doubles, weight: Doubles, quantiles: Doubles) -> Doubles:
    order = np.argsort(y, kind="stable")
    y, weight = y[order], weight[order]
    if len(y) == 1:
        return np.full(len(quantiles), y[0])
    # A row stands from its first copy to its last, where the lightest row is one copy: a weight of two is the row
    # twice, and with equal weights row k is at k / (n − 1).
    last = np.cumsum(weight) - weight.min()
    positions = np.column_stack([last - (weight - weight.min()), last]).ravel()
    return np.interp(quantiles * last[-1], positions, np.repeat(y, 2))


def forest_quantiles(
    leaves: npt.NDArray[np.int64],
    train_leaves: npt.NDArray[np.int64],
    y: Doubles,
    weight: Doubles,
    quantiles: Doubles,
) -> Doubles:
    """Quantile regression forest (Meinshausen 2006): quantiles of y among the rows that share leaves with a row.

    The weight of a training row i for a row x is Σ_t w_i 1(i in the leaf of x in tree t) / (weight of that leaf). The
    quantiles of a row that shares no leaf with any are NaN. ``leaves`` (n, n_trees) are those of the rows to predict,
    ``train_leaves`` (m, n_trees) those of the training rows.  → (n, n_quantiles, n_targets)
    """
    kept = np.flatnonzero(weight > 0)
    members = [{int(leaf[rows[0]]): rows for rows in group_by_leaf(leaf)} for leaf in train_leaves[kept].T]
    weight, y = weight[kept], y[kept]
    totals = [{leaf: weight[rows].sum() for leaf, rows in groups.items()} for groups in members]
    result = np.full((len(leaves), len(quantiles), y.shape[1]), np.nan)
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
            result[row, :, output] = _quantiles(y[rows, output], shares, quantiles)
    return result
