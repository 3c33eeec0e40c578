"""Linear models of a few features in the leaves of readable trees, and their round numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from crisptree.inference import FlatTree, route_rows
from crisptree.learning.samples import RowSet
from crisptree.targets.base import Target

Doubles = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Link = Callable[[Doubles], Doubles]

RIDGE = 1.0
"""Rows of unit variance by which weights are shrunk."""

PENALTY = 2.0
"""Logarithms of the number of rows that a term must save, in −2 log likelihood: twice as many as by BIC, since the term
is the best of all features."""

MIN_GAIN = 0.002
"""Share of the variance in a leaf that a term of a regression must explain; targets that a model smoothed have little
noise."""

MIN_ROWS_PER_TERM = 5

PRIOR_ROWS = 1.0
"""Rows distributed like all training rows that every group counts with."""

NEWTON_STEPS = 12

MAX_CHANGE_OF_SHARES = 0.01
"""Root mean square change of the shares of a class in a leaf by which its model may be rounded."""

MAX_CHANGE = 0.02
"""Root mean square change of the predictions of a leaf by which its model may be rounded, in units of its residuals."""


class TargetRows(NamedTuple):
    """Rows with y of several outputs, for classes their probabilities: (n, n_features), (n, n_outputs), (n,)."""

    X: npt.NDArray[np.float32]
    y: Doubles
    weight: Doubles

    @classmethod
    def of(cls, rows: RowSet, target: Target) -> TargetRows:
        """Take training rows as they are."""
        y = rows.y if np.ndim(rows.y) > 1 else np.eye(target.n_classes or 0)[rows.y]
        weight = np.asarray(rows.weight, dtype=np.float64)
        return cls(np.asarray(rows.X, dtype=np.float32), np.asarray(y, dtype=np.float64), weight)


class SparseModels(NamedTuple):
    """Linear functions of groups of rows: (n_groups, n_outputs, n_features) and (n_groups, n_outputs)."""

    weight: Doubles
    bias: Doubles

    def predict(self, x: Doubles) -> Doubles:
        """Predict all rows by the functions of all groups.  (n, n_features) → (n, n_groups, n_outputs)"""
        return np.asarray(np.einsum("np,gop->ngo", x, self.weight, optimize=True) + self.bias)


def fit_sparse_models(
    x: Doubles,
    y: Doubles,
    weight: Doubles,
    groups: list[Rows],
    max_terms: int,
    *,
    is_regression: bool,
    tops: Rows | None = None,
) -> SparseModels:
    """Fit a function of at most ``max_terms`` features to every group of rows: of y, or of the log odds of a class.

    Among classes only one of a group has a function, that of ``tops`` or the most frequent one: its log odds against
    all others, which keep their shares among themselves.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(100, 4))
    >>> y = 3 + 2 * x[:, [1]]
    >>> models = fit_sparse_models(x, y, np.ones(100), [np.arange(100)], 2, is_regression=True)
    >>> np.flatnonzero(models.weight[0, 0]).tolist(), models.bias.round(1).tolist()
    ([1], [[3.0]])
    """
    prior = PRIOR_ROWS * (weight @ y) / weight.sum()
    models = SparseModels(np.zeros((len(groups), y.shape[1], x.shape[1])), np.zeros((len(groups), y.shape[1])))
    for group, rows in enumerate(groups):
        if not len(rows):
            continue
        own = (x[rows], y[rows], weight[rows], prior, max_terms)
        if is_regression:
            models.weight[group], models.bias[group] = _fit_sparse(*own)
        else:
            top = int((weight[rows] @ y[rows] + prior).argmax() if tops is None else tops[group])
            models.weight[group], models.bias[group] = _fit_class(*own, top)
    return models


def _fit_class(
    x: Doubles, y: Doubles, weight: Doubles, prior: Doubles, max_terms: int, top: int
) -> tuple[Doubles, Doubles]:
    """Fit the log odds of a class."""
    if len(prior) == 1:
        return np.zeros((1, x.shape[1])), np.zeros(1)
    shares = np.maximum(weight @ y + prior, 1e-9)
    bias = np.log(shares / (shares.sum() - shares[top]))
    result = np.zeros((len(prior), x.shape[1]))
    terms, weights, bias[top] = _fit_logistic(x, y[:, top], weight, shares[top] / shares.sum(), max_terms)
    result[top, terms] = weights
    return result, bias


def _fit_logistic(
    x: Doubles, z: Doubles, weight: Doubles, share: float, max_terms: int
) -> tuple[list[int], Doubles, float]:
    """Select features one after the other, each the one with the largest score statistic, and fit log odds to them."""
    n, total = len(x), weight.sum()
    mean = weight @ x / total
    design = np.column_stack([np.ones(n), x - mean])
    limit = min(max_terms, int(min(z.sum(), n - z.sum())) // MIN_ROWS_PER_TERM)
    usable = np.ptp(x, axis=0) > 0
    terms: list[int] = []
    found = np.array([math.log(share / (1 - share))])
    scores = np.full(n, found[0])
    loss = weight @ (np.logaddexp(0, scores) - z * scores)
    while len(terms) < limit and usable.any():
        p = expit(scores)
        curvature = weight * p * (1 - p)
        slopes, seconds = (weight * (z - p)) @ design[:, 1:], curvature @ design[:, 1:] ** 2
        seconds -= (curvature @ design[:, 1:]) ** 2 / curvature.sum()
        gain = np.where(usable, slopes**2 / (seconds + RIDGE), -1.0)
        terms.append(int(gain.argmax()))
        usable[terms[-1]] = False
        part = design[:, [0, *(term + 1 for term in terms)]]
        longer, scores = _maximise(part, z, weight, np.append(found, 0.0))
        left = weight @ (np.logaddexp(0, scores) - z * scores)
        if 2 * (loss - left) < PENALTY * math.log(n):
            terms.pop()
            break
        found, loss = longer, left
    return terms, found[1:], float(found[0] - found[1:] @ mean[terms])


def _maximise(part: Doubles, z: Doubles, weight: Doubles, start: Doubles) -> tuple[Doubles, Doubles]:
    """Fit a penalised logistic regression by Newton's method; return its weights and scores."""
    strength = np.full(len(start), RIDGE)
    strength[0] = 1e-3
    found = start
    for _ in range(NEWTON_STEPS):
        p = expit(part @ found)
        curvature = (part * (weight * np.maximum(p * (1 - p), 1e-3))[:, None]).T @ part + np.diag(strength)
        step = np.linalg.solve(curvature, part.T @ (weight * (z - p)) - strength * found)
        found = found + step * min(1.0, 3.0 / max(np.abs(step).max(), 1e-12))
        if np.abs(step).max() < 1e-3:
            break
    return found, part @ found


def _fit_sparse(x: Doubles, y: Doubles, weight: Doubles, prior: Doubles, max_terms: int) -> tuple[Doubles, Doubles]:
    """Select features one after the other, each the one that lowers the squared error most."""
    if not max_terms:
        return np.zeros((y.shape[1], x.shape[1])), (weight @ y + prior) / (weight.sum() + PRIOR_ROWS)
    n, total = len(x), weight.sum()
    root = np.sqrt(weight)[:, None]
    x_mean, y_mean = weight @ x / total, weight @ y / total
    design, target = (x - x_mean) * root, (y - y_mean) * root
    lengths = (design**2).sum(axis=0)
    usable = lengths > 1e-9 * (1 + x_mean**2) * total
    ridge = RIDGE * lengths / n
    terms: list[int] = []
    result, error = np.zeros((y.shape[1], x.shape[1])), float((target**2).sum()) + 1e-12
    variance = error
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
        saves_penalty = n * math.log(error / left) >= PENALTY * math.log(n) * y.shape[1]
        if not saves_penalty or error - left < MIN_GAIN * variance:
            break
        error, result = left, np.zeros_like(result)
        result[:, terms] = found.T
        basis = np.linalg.qr(part)[0]
        rest, residuals = design - basis @ (basis.T @ design), target - basis @ (basis.T @ target)
    return result, y_mean - result @ x_mean


def with_sparse_models(tree: FlatTree, rows: TargetRows, max_terms: int) -> FlatTree:
    """Return a finalized tree with a linear model of at most ``max_terms`` features in every node.

    The class that has a function is the most frequent one among the rows that the tree was finalized with.
    """
    x, y, weight = rows.X.astype(np.float64), rows.y, rows.weight / rows.weight.mean()
    groups = _rows_of_nodes(tree, route_rows(tree, rows.X))
    center, spread = x.mean(axis=0), x.std(axis=0)
    spread[spread == 0] = 1.0
    is_regression, counts = tree.target.is_regression, tree.statistics.node_counts
    tops = None if is_regression else counts.argmax(axis=1)
    models = fit_sparse_models(
        (x - center) / spread, y, weight, groups, max_terms, is_regression=is_regression, tops=tops
    )
    if not is_regression:  # what is said about leaves without a function are the shares of their training rows
        shares = counts + PRIOR_ROWS * counts[0] / counts[0].sum()
        is_constant = ~models.weight.any(axis=(1, 2))
        models.bias[is_constant] = np.log(np.maximum(shares[is_constant], 1e-9))
    scaled = models.weight / spread
    return _with_models(tree, rows, groups, SparseModels(scaled, models.bias - scaled @ center))


def _rows_of_nodes(tree: FlatTree, leaf: npt.NDArray[np.int64]) -> list[Rows]:
    """Return the rows of every node."""
    structure = tree.structure
    of_leaves = [np.flatnonzero(leaf == number) for number in range(structure.n_leaves)]
    spans = [structure.leaves_left_to_right[start:stop] for start, stop in structure.leaf_spans[: structure.n_splits]]
    return [np.sort(np.concatenate([of_leaves[number] for number in span])) for span in spans] + of_leaves


def _with_models(tree: FlatTree, rows: TargetRows, groups: list[Rows], models: SparseModels) -> FlatTree:
    """Return a tree with these models; of a regression with the variances of their residuals."""
    variance = np.zeros_like(models.bias) if tree.target.is_regression else None
    for node, own in enumerate(groups):
        if variance is not None and len(own):
            errors = (rows.y[own] - rows.X[own] @ models.weight[node].T - models.bias[node]) ** 2
            variance[node] = np.average(errors, axis=0, weights=rows.weight[own])
    return replace(tree, linear_weight=models.weight, linear_bias=models.bias, linear_variance=variance)


def round_sparse_models(tree: FlatTree, rows: TargetRows) -> FlatTree:
    """Round the models of a tree in the units of X and y; ``rows`` are those of training, with y as in training.

    Weights get the fewest digits, and offsets the fewest decimals, that change the predictions of a leaf by at most
    ``MAX_CHANGE`` of its residuals, or the shares of a class by ``MAX_CHANGE_OF_SHARES``. The mean prediction of every
    leaf stays. A tree of classes without any score in its leaves becomes one of constant leaves.
    """
    groups, statistics = _rows_of_nodes(tree, route_rows(tree, rows.X)), tree.statistics
    assert tree.linear_weight is not None
    assert tree.linear_bias is not None
    if not tree.target.is_regression and not tree.linear_weight[tree.structure.n_splits :].any():
        return replace(tree, linear_weight=None, linear_bias=None)
    models, is_regression = SparseModels(tree.linear_weight.copy(), tree.linear_bias.copy()), tree.target.is_regression
    center, unit = np.zeros(models.bias.shape[1]), np.ones(models.bias.shape[1])
    if statistics.y_center is not None and statistics.y_unit is not None:
        center, unit = statistics.y_center, statistics.y_unit
    variances = _with_models(tree, rows, groups, models).linear_variance
    for node, own in enumerate(groups):
        for output in np.flatnonzero(unit) if len(own) else ():
            if not is_regression and not models.weight[node, output].any():
                continue  # the shares of the other classes are not shown
            largest = MAX_CHANGE_OF_SHARES
            if variances is not None:
                largest = MAX_CHANGE * math.sqrt(variances[node, output]) * unit[output]
            rounded, bias = _round_model(
                models.weight[node, output] * unit[output],
                models.bias[node, output] * unit[output] + center[output],
                *(rows.X[own].astype(np.float64), rows.weight[own], largest),
                (lambda scores: scores) if is_regression else expit,
            )
            models.weight[node, output] = rounded / unit[output]
            models.bias[node, output] = (bias - center[output]) / unit[output]
    return _with_models(tree, rows, groups, models)


def _round_model(
    weight: Doubles, bias: float, x: Doubles, row_weight: Doubles, max_change: float, link: Link
) -> tuple[Doubles, float]:
    used = np.flatnonzero(weight)
    part, mean = x[:, used], np.average(x[:, used], axis=0, weights=row_weight)
    exact = link(part @ weight[used] + bias)
    for digits in range(1, 8):
        rounded = np.array([float(f"{value:.{digits}g}") for value in weight[used]])
        offset = bias + float((weight[used] - rounded) @ mean)
        for decimals in range(-9, 10):
            constant = round(offset, decimals)
            change = np.average((link(part @ rounded + constant) - exact) ** 2, weights=row_weight)
            if change <= max_change**2:
                result = np.zeros_like(weight)
                result[used] = rounded
                return result, constant
    return weight, bias
