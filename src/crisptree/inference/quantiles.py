"""Quantiles of y among the rows of every leaf."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from crisptree.inference.flat import CrispTree

Doubles = npt.NDArray[np.float64]


def leaf_quantiles(
    tree: CrispTree, leaf: npt.NDArray[np.int64], y: Doubles, weight: Doubles, quantiles: Doubles
) -> Doubles:
    """Weighted quantiles of the rows that reach each leaf; those of its normal distribution where none does.

    Between two rows the quantile goes in a straight line, as NumPy's do.

    Parameters
    ----------
    tree : CrispTree
        A tree of numbers.
    leaf : ndarray of shape (n,)
        The leaf of every row.
    y : ndarray of shape (n, n_targets)
        Their numbers, in the units of y.
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
    # With equal weights row k stands at k / (n − 1).
    places = np.cumsum(weight) - weight
    return np.interp(quantiles * places[-1], places, y)
