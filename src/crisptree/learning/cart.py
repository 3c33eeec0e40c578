"""CART: trees of thresholds as scikit-learn fits them, and the exact search for thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import xlogy
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from crisptree.learning.options import GrowthLimits
from crisptree.learning.samples import Samples
from crisptree.native import training
from crisptree.splits import ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.tree import Tree

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating]
Ints = npt.NDArray[np.integer]
Bools = npt.NDArray[np.bool_]
Values = npt.NDArray[Any]

GAIN_DIGITS = 6
"""Gains that agree in so many decimals count as equal, and the first partition wins: rounding must not decide, and
sample weights are in single precision."""

CROSSINGS_PER_CHUNK = 2**20
"""Lines are processed in chunks of about so many crossings, to bound the memory."""


class LeafLimits(NamedTuple):
    """Minimum rows and minimum weight of each side of a split."""

    rows: int = 1
    weight: float = 0.0


ONE_ROW = LeafLimits()


class BestThresholds(NamedTuple):
    """The value of α with the highest gain on every line, and that gain; −1 where no partition is allowed."""

    threshold: Doubles
    gain: Doubles

    def best_line(self) -> int | None:
        """Index of the line with the highest gain, the first of equals; None if no partition is allowed."""
        line = int(self.gain.round(GAIN_DIGITS).argmax())
        return line if self.gain[line] >= 0 else None


def best_thresholds(
    scores: Floats, y: Values, weight: Doubles, n_classes: int | None, leaf_limits: LeafLimits = ONE_ROW
) -> BestThresholds:
    """Find the threshold t of every line of scores for which ``score > t`` gains most.

    Parameters
    ----------
    scores : ndarray of shape (n_lines, n)
        One line for every direction.
    y : ndarray of shape (n,) or (n, n_outputs)
        Class indices or regression targets.
    weight : ndarray of shape (n,)
        Positive sample weights.
    n_classes : int or None
        Number of classes; None for regression.
    leaf_limits : LeafLimits
        Minimum size of each side.
    """
    if training is None or n_classes is None or scores.dtype != np.float32:
        return best_thresholds_reference(scores, y, weight, n_classes, leaf_limits)
    best = BestThresholds(np.zeros(len(scores)), np.full(len(scores), -1.0))
    lines = (np.ascontiguousarray(scores), np.ascontiguousarray(y, dtype=np.int64), np.ascontiguousarray(weight))
    training.best_thresholds(*lines, n_classes, tuple(leaf_limits), *best, torch.get_num_threads())
    return best


def best_thresholds_reference(
    scores: Floats, y: Values, weight: Doubles, n_classes: int | None, leaf_limits: LeafLimits = ONE_ROW
) -> BestThresholds:
    """Define ``best_thresholds`` in NumPy."""
    return best_crossings(scores, np.ones(scores.shape, dtype=bool), y, weight, n_classes, leaf_limits)


def best_crossings(
    points: Floats, right: Bools, y: Values, weight: Doubles, n_classes: int | None, leaf_limits: LeafLimits = ONE_ROW
) -> BestThresholds:
    """Find the value of α on every line for which the partition of its rows gains most.

    ``points`` (n_lines, n) are where rows change sides, infinite for a row that never does; ``right`` says which rows
    are on the right before. ``y`` and ``weight`` may differ by line, (n_lines, n); rows of weight zero are ignored.
    """
    n_lines, n = points.shape
    outputs = () if n_classes is not None else y.shape[-1:]
    y, weight = np.broadcast_to(y, points.shape + outputs), np.broadcast_to(weight, points.shape)
    at_once = max(CROSSINGS_PER_CHUNK // max(n, 1), 1)
    chunks = [slice(start, start + at_once) for start in range(0, n_lines, at_once)]
    best = [_best(points[chunk], right[chunk], y[chunk], weight[chunk], n_classes, leaf_limits) for chunk in chunks]
    return BestThresholds(*(np.concatenate(values) for values in zip(*best, strict=True)))


def _best(
    points: Floats, right: Bools, y: Values, weight: Doubles, n_classes: int | None, leaf_limits: LeafLimits
) -> BestThresholds:
    order = np.argsort(points, axis=1)
    points, right = np.take_along_axis(points, order, axis=1), np.take_along_axis(right, order, axis=1)
    y = np.take_along_axis(y, order if y.ndim == 2 else order[:, :, None], axis=1)
    weight = np.take_along_axis(weight, order, axis=1)
    moved = np.where(right, -1.0, 1.0) * np.isfinite(points)
    if n_classes is None:
        gains = _variance_reductions(y, weight, right, moved)
    else:
        totals, starts = _class_sums(y, weight, n_classes), _class_sums(y, weight * right, n_classes)
        gains = _gains(y, weight * moved, totals, starts)
    is_present = (weight > 0).astype(np.float64)
    allowed = _keeps(is_present, is_present * right, is_present * moved, leaf_limits.rows)
    if leaf_limits.weight > 0:
        allowed &= _keeps(weight, weight * right, weight * moved, leaf_limits.weight)
    low = np.concatenate([np.full((len(points), 1), -np.inf, points.dtype), points], axis=1)
    high = np.concatenate([points, np.full((len(points), 1), np.inf, points.dtype)], axis=1)
    allowed &= low < high
    state = np.where(allowed, gains.round(GAIN_DIGITS), -1.0).argmax(axis=1)[:, None]
    low, high, gain, allowed = (np.take_along_axis(part, state, axis=1)[:, 0] for part in (low, high, gains, allowed))
    return BestThresholds(_middle(low, high), np.where(allowed, np.maximum(gain, 0.0), -1.0))


def _keeps(values: Doubles, right: Doubles, changes: Doubles, minimum: float) -> Bools:
    """Return True where both sides keep enough of the rows' values, before the first crossing and after each."""
    on_the_right = _from(right.sum(axis=1), changes)
    return np.asarray(np.minimum(on_the_right, values.sum(axis=1)[:, None] - on_the_right) >= minimum)


def _from(start: Doubles, changes: Doubles) -> Doubles:
    """Compute running sums, the start included.  (m,), (m, n) → (m, n + 1)"""
    return np.concatenate([start[:, None], start[:, None] + np.cumsum(changes, axis=1)], axis=1)


def _class_sums(y: Ints, weight: Doubles, n_classes: int) -> Doubles:
    """Sum the weights of every class on every line.  (m, n) → (m, n_classes)"""
    cells = y + np.arange(len(y))[:, None] * n_classes
    sums = np.bincount(cells.ravel(), weights=weight.ravel(), minlength=len(y) * n_classes)
    return sums.astype(np.float64).reshape(len(y), n_classes)


def _gains(y: Ints, change: Doubles, totals: Doubles, starts: Doubles) -> Doubles:
    """Compute the information gain before the first crossing and after each.  (m, n) → (m, n + 1)"""
    after = _own_class(y, change, starts)
    total = np.take_along_axis(totals, y.astype(np.int64), axis=1)
    before = after - change
    step = _phi(after) - _phi(before) + _phi(total - after) - _phi(total - before)
    pure = _from((_phi(starts) + _phi(totals - starts)).sum(axis=1), step)
    all_weight, right = totals.sum(axis=1), _from(starts.sum(axis=1), change)
    impure = (_phi(all_weight) - _phi(totals).sum(axis=1))[:, None]
    sides = _phi(right) + _phi(all_weight[:, None] - right)
    return (impure - sides + pure) / np.maximum(all_weight, np.finfo(float).tiny)[:, None]


def _variance_reductions(y: Values, weight: Doubles, right: Bools, moved: Doubles) -> Doubles:
    """Reduction of variance before the first crossing and after each.  (m, n, n_outputs), (m, n) → (m, n + 1)"""
    tiny = np.finfo(float).tiny
    overall, on_right = weight.sum(axis=1)[:, None], _from((weight * right).sum(axis=1), weight * moved)
    on_left = overall - on_right
    gains = np.zeros(on_right.shape)
    for output in np.moveaxis(y, 2, 0):
        each = weight * output
        total, rights = each.sum(axis=1)[:, None], _from((each * right).sum(axis=1), each * moved)
        # A side that keeps nothing but rounding has no mean, and is not allowed either.
        parts = ((total - rights, on_left), (rights, on_right))
        sides = sum(np.where(rows > 1e-9 * overall, sums**2 / np.maximum(rows, tiny), 0.0) for sums, rows in parts)
        gains += sides - total**2 / np.maximum(overall, tiny)
    return gains / (y.shape[2] * np.maximum(overall, tiny))


def _own_class(y: Ints, change: Doubles, starts: Doubles) -> Doubles:
    """Compute the weight of a row's own class on the right after its crossing.  (m, n)"""
    by_class = np.argsort(y, axis=1, kind="stable")
    sums = np.cumsum(np.take_along_axis(change, by_class, axis=1), axis=1)
    sizes = _class_sums(y, np.ones_like(change), starts.shape[1]).astype(np.int64)
    ends = np.cumsum(sizes, axis=1)
    at_ends = np.concatenate([np.zeros((len(y), 1)), sums], axis=1)
    earlier = np.take_along_axis(at_ends, ends - sizes, axis=1)
    own = np.empty_like(sums)
    np.put_along_axis(own, by_class, sums, axis=1)
    return own + np.take_along_axis(starts - earlier, y.astype(np.int64), axis=1)


def _phi(values: Doubles) -> Doubles:
    """φ(z) = z log z, zero at zero; what rounding leaves below zero counts as zero."""
    positive = np.maximum(values, 0.0)
    return np.asarray(xlogy(positive, positive))


def _middle(low: Floats, high: Floats) -> Doubles:
    """Return a number between two crossings, of which the first may be −inf and the second inf."""
    low, high = low.astype(np.float64), high.astype(np.float64)
    lower, upper = np.isfinite(low), np.isfinite(high)
    low, high = np.where(lower, low, 0.0), np.where(upper, high, 0.0)
    below = np.where(lower, low, (high - 1 - np.abs(high)) * upper)
    above = np.where(upper, high, (low + 1 + np.abs(low)) * lower)
    return np.asarray(below / 2 + above / 2)


def round_down(threshold: float) -> np.float32:
    """Largest float32 that is not above the threshold: x ≤ t in double precision iff x ≤ t in single precision."""
    single = np.float32(threshold)
    return np.nextafter(single, np.float32(-np.inf)) if float(single) > float(threshold) else single


TREES: dict[str, Callable[..., Any]] = {
    "classes": partial(DecisionTreeClassifier, criterion="entropy"),
    "gaussians": DecisionTreeRegressor,
}
"""scikit-learn's tree, by target: information gain, or reduction of variance."""

IMPURITY_UNITS = {"classes": 1 / math.log(2)}
"""scikit-learn's unit of impurity in ours, by target: its entropy is in bits."""


def fit_cart(samples: Samples, limits: GrowthLimits, max_features: int | None, seed: int) -> Tree:
    """Fit a whole tree at once, with scikit-learn's stopping rules: for forests, which need many and deep ones.

    With ``max_features``, each split is the best of so many features, drawn for it.
    """
    every_row = torch.arange(len(samples), device=samples.device)
    parts = (samples.batch(every_row), samples.y, samples.weight.double())
    x, y, weight = (part.cpu().numpy() for part in parts)
    x = np.ascontiguousarray(x, dtype=np.float32)
    target = samples.target
    is_leaf = limits.max_depth == 0  # which scikit-learn does not accept
    fitted = TREES[target.name](
        max_depth=None if is_leaf else limits.max_depth,
        max_leaf_nodes=limits.max_leaf_nodes,
        min_samples_split=len(x) + 1 if is_leaf else limits.min_samples_split,
        min_samples_leaf=limits.min_samples_leaf,
        min_weight_fraction_leaf=limits.min_weight_fraction_leaf,
        min_impurity_decrease=limits.min_impurity_decrease * IMPURITY_UNITS.get(target.name, 1.0),
        max_features=max_features,
        random_state=seed % 2**32,
    ).fit(x, y, sample_weight=weight, check_input=False)
    nodes = fitted.tree_
    structure, splits, leaf_number = _structure(nodes)
    weights = np.zeros((len(splits), samples.n_features), dtype=np.float32)
    weights[np.arange(len(splits)), nodes.feature[splits]] = 1.0
    bias = np.array([-round_down(threshold) for threshold in nodes.threshold[splits]], dtype=np.float32)
    counts = target.tally(y, weight, leaf_number[fitted.apply(x, check_input=False)], structure.n_leaves)
    like = samples.weight
    statistics, before = (torch.from_numpy(part).to(like) for part in (counts, target.tables(counts)))
    hyperplanes = (torch.from_numpy(part).to(like) for part in (weights, bias))
    return Tree(structure, ObliqueSplits(*hyperplanes), target.update(statistics, before, 0.0), target.name)


def _structure(nodes: Any) -> tuple[TreeStructure, np.ndarray, np.ndarray]:
    """Convert scikit-learn's tree; return its structure, its split nodes, and the index of each node as a leaf."""
    is_split = nodes.children_left >= 0
    splits = np.flatnonzero(is_split)  # parents come before their children, as in ours
    number = np.where(is_split, np.cumsum(is_split) - 1, ~(np.cumsum(~is_split) - 1)).astype(np.int32)
    children = (number[side[splits]] for side in (nodes.children_left, nodes.children_right))
    return TreeStructure(*children), splits, np.cumsum(~is_split) - 1
