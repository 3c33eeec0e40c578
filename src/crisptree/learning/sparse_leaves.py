"""Linear models of a few features in the leaves of readable regression trees, and their round numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.inference import FlatTree, route_rows
from crisptree.learning.samples import RowSet

Doubles = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

RIDGE = 1.0
"""Rows of unit variance by which weights are shrunk."""

PENALTY = 2.0
"""Logarithms of the number of rows that a term must save, in −2 log likelihood: twice as many as by BIC, since the term
is the best of all features."""

MIN_ROWS_PER_TERM = 5

MAX_CHANGE = 0.02
"""Root mean square change of the predictions of a leaf by which its model may be rounded, in units of its residuals."""


class SparseModels(NamedTuple):
    """Linear functions of groups of rows: (n_groups, n_outputs, n_features) and (n_groups, n_outputs)."""

    weight: Doubles
    bias: Doubles

    def predict(self, x: Doubles) -> Doubles:
        """Predict all rows by the functions of all groups.  (n, n_features) → (n, n_groups, n_outputs)"""
        return np.asarray(np.einsum("np,gop->ngo", x, self.weight, optimize=True) + self.bias)


def fit_sparse_models(x: Doubles, y: Doubles, weight: Doubles, groups: list[Rows], max_terms: int) -> SparseModels:
    """Fit a linear function of at most ``max_terms`` features to every group of rows.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(100, 4))
    >>> models = fit_sparse_models(x, 3 + 2 * x[:, [1]], np.ones(100), [np.arange(100)], max_terms=2)
    >>> np.flatnonzero(models.weight[0, 0]).tolist(), models.bias.round(1).tolist()
    ([1], [[3.0]])
    """
    models = SparseModels(np.zeros((len(groups), y.shape[1], x.shape[1])), np.zeros((len(groups), y.shape[1])))
    for group, rows in enumerate(groups):
        if len(rows):
            models.weight[group], models.bias[group] = _fit_sparse(x[rows], y[rows], weight[rows], max_terms)
    return models


def _fit_sparse(x: Doubles, y: Doubles, weight: Doubles, max_terms: int) -> tuple[Doubles, Doubles]:
    """Select features one after the other, each the one that lowers the squared error most."""
    n, total = len(x), weight.sum()
    root = np.sqrt(weight)[:, None]
    x_mean, y_mean = weight @ x / total, weight @ y / total
    design, target = (x - x_mean) * root, (y - y_mean) * root
    lengths = (design**2).sum(axis=0)
    usable = lengths > 1e-9 * (1 + x_mean**2) * total
    ridge = RIDGE * lengths / n
    terms: list[int] = []
    result, error = np.zeros((y.shape[1], x.shape[1])), float((target**2).sum()) + 1e-12
    rest, residuals = design, target
    while len(terms) < min(max_terms, n // MIN_ROWS_PER_TERM):
        own = (rest**2).sum(axis=0)
        is_free = usable & (own > 1e-6 * lengths)
        if not is_free.any():
            break
        saved = ((rest.T @ residuals) ** 2).sum(axis=1) / np.where(is_free, own + ridge, 1.0)
        terms.append(int(np.where(is_free, saved, -1.0).argmax()))
        part = design[:, terms]
        found = np.linalg.solve(part.T @ part + np.diag(ridge[terms]), part.T @ target)
        left = float(((target - part @ found) ** 2).sum()) + 1e-12
        if n * math.log(error / left) < PENALTY * math.log(n) * y.shape[1]:
            break
        error, result = left, np.zeros_like(result)
        result[:, terms] = found.T
        basis = np.linalg.qr(part)[0]
        rest, residuals = design - basis @ (basis.T @ design), target - basis @ (basis.T @ target)
    return result, y_mean - result @ x_mean


def with_sparse_models(tree: FlatTree, rows: RowSet, max_terms: int) -> FlatTree:
    """Return a finalized regression tree with a linear model of at most ``max_terms`` features in every node."""
    raw = np.asarray(rows.X, dtype=np.float32)
    x, y, weight = raw.astype(np.float64), np.asarray(rows.y, dtype=np.float64), np.asarray(rows.weight, np.float64)
    groups = _rows_of_nodes(tree, route_rows(tree, raw))
    center, spread = x.mean(axis=0), x.std(axis=0)
    spread[spread == 0] = 1.0
    models = fit_sparse_models((x - center) / spread, y, weight, groups, max_terms)
    scaled = models.weight / spread
    models = SparseModels(scaled, models.bias - scaled @ center)
    return _with_models(tree, x, y, weight, groups, models)


def _rows_of_nodes(tree: FlatTree, leaf: npt.NDArray[np.int64]) -> list[Rows]:
    """Return the rows of every node."""
    structure = tree.structure
    of_leaves = [np.flatnonzero(leaf == number) for number in range(structure.n_leaves)]
    spans = [structure.leaves_left_to_right[start:stop] for start, stop in structure.leaf_spans[: structure.n_splits]]
    return [np.sort(np.concatenate([of_leaves[number] for number in span])) for span in spans] + of_leaves


def _with_models(
    tree: FlatTree, x: Doubles, y: Doubles, weight: Doubles, groups: list[Rows], models: SparseModels
) -> FlatTree:
    variance = np.zeros_like(models.bias)
    for node, rows in enumerate(groups):
        if len(rows):
            errors = (y[rows] - x[rows] @ models.weight[node].T - models.bias[node]) ** 2
            variance[node] = np.average(errors, axis=0, weights=weight[rows])
    return replace(tree, linear_weight=models.weight, linear_bias=models.bias, linear_variance=variance)


def round_sparse_models(tree: FlatTree, rows: RowSet) -> FlatTree:
    """Round the models of a tree in the units of X and y; ``rows`` are those of training, with y as in training.

    Weights get the fewest digits, and offsets the fewest decimals, that change the predictions of a leaf by at most
    ``MAX_CHANGE`` of its residuals. The mean prediction of every leaf stays.
    """
    raw = np.asarray(rows.X, dtype=np.float32)
    x, y, weight = raw.astype(np.float64), np.asarray(rows.y, dtype=np.float64), np.asarray(rows.weight, np.float64)
    groups, (center, unit) = (
        _rows_of_nodes(tree, route_rows(tree, raw)),
        (tree.statistics.y_center, tree.statistics.y_unit),
    )
    assert tree.linear_weight is not None
    assert tree.linear_bias is not None
    assert tree.linear_variance is not None
    assert center is not None
    assert unit is not None
    models = SparseModels(tree.linear_weight.copy(), tree.linear_bias.copy())
    for node, own in enumerate(groups):
        for output in range(len(unit)):
            if not len(own) or not unit[output]:
                continue
            change = MAX_CHANGE * math.sqrt(tree.linear_variance[node, output]) * unit[output]
            rounded, bias = _round_model(
                models.weight[node, output] * unit[output],
                models.bias[node, output] * unit[output] + center[output],
                *(x[own], weight[own], change),
            )
            models.weight[node, output] = rounded / unit[output]
            models.bias[node, output] = (bias - center[output]) / unit[output]
    return _with_models(tree, x, y, weight, groups, models)


def _round_model(
    weight: Doubles, bias: float, x: Doubles, row_weight: Doubles, max_change: float
) -> tuple[Doubles, float]:
    used = np.flatnonzero(weight)
    part, mean = x[:, used], np.average(x[:, used], axis=0, weights=row_weight)
    exact = part @ weight[used] + bias
    for digits in range(1, 8):
        rounded = np.array([float(f"{value:.{digits}g}") for value in weight[used]])
        offset = bias + float((weight[used] - rounded) @ mean)
        for decimals in range(-9, 10):
            constant = round(offset, decimals)
            change = np.average((part @ rounded + constant - exact) ** 2, weights=row_weight)
            if change <= max_change**2:
                result = np.zeros_like(weight)
                result[used] = rounded
                return result, constant
    return weight, bias
