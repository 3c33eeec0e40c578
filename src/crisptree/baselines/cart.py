"""CART: thresholds on one feature as scikit-learn finds them, and exact searches for thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import xlogy
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from crisptree.learning.options import GrowthLimits, Plan
from crisptree.learning.samples import Groups, Samples
from crisptree.native import training
from crisptree.splits import ObliqueSplits, random_directions
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

TARGET_STEPS = 2.0**24
"""Regression targets are rounded to so many steps per spread: their sums are then exact, and rounding does not decide
among splits of equal gain."""

N_DIRECTIONS = 100
"""Random directions that compete at a leaf."""


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
    scores: Floats,
    y: Values,
    weight: Doubles,
    n_classes: int | None,
    leaf_limits: LeafLimits = ONE_ROW,
    absent: Bools | None = None,
) -> BestThresholds:
    """Find the threshold t of every line of scores for which ``score > t`` gains most.

    Parameters
    ----------
    scores : ndarray of shape (n_lines, n)
        One line for every direction.
    y, weight : ndarray of shape (n,) or (n_lines, n)
        Class indices, or regression targets with one more dimension for the outputs, and positive sample weights.
    n_classes : int or None
        Number of classes; None for regression.
    leaf_limits : LeafLimits
        Minimum size of each side.
    absent : ndarray of shape (n_lines, n), optional
        Padding of lines of different lengths.
    """
    one_line = absent is None and scores.dtype == np.float32 and np.ndim(y) == np.ndim(weight) == 1
    if training is not None and one_line and n_classes is not None:
        return _best_thresholds_native(scores, y, weight, n_classes, leaf_limits)
    return best_thresholds_reference(scores, y, weight, n_classes, leaf_limits, absent)


def _best_thresholds_native(
    scores: Floats, y: Ints, weight: Doubles, n_classes: int, leaf_limits: LeafLimits
) -> BestThresholds:
    assert training is not None
    best = BestThresholds(np.zeros(len(scores)), np.full(len(scores), -1.0))
    lines = (np.ascontiguousarray(scores), np.ascontiguousarray(y, dtype=np.int64), np.ascontiguousarray(weight))
    training.best_thresholds(*lines, n_classes, tuple(leaf_limits), *best, torch.get_num_threads())
    return best


def best_thresholds_reference(
    scores: Floats,
    y: Values,
    weight: Doubles,
    n_classes: int | None,
    leaf_limits: LeafLimits = ONE_ROW,
    absent: Bools | None = None,
) -> BestThresholds:
    """Define ``best_thresholds`` in NumPy."""
    right = np.ones(scores.shape, dtype=bool)
    points = scores if absent is None else np.where(absent, np.inf, scores)
    weight = weight if absent is None else np.where(absent, 0.0, weight)
    return best_crossings(points, right, y, weight, n_classes, leaf_limits)


def best_crossings(
    points: Floats, right: Bools, y: Values, weight: Doubles, n_classes: int | None, leaf_limits: LeafLimits = ONE_ROW
) -> BestThresholds:
    """Find the value of α on every line for which the partition of its rows gains most.

    ``points`` (n_lines, n) are where rows change sides, infinite for a row that never does; ``right`` says which rows
    are on the right before. The others are as in ``best_thresholds``; rows of weight zero are ignored.
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
    """True where both sides keep enough of the rows' values, before the first crossing and after each."""
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
    everyone, on_right = weight.sum(axis=1)[:, None], _from((weight * right).sum(axis=1), weight * moved)
    on_left = everyone - on_right
    gains = np.zeros(on_right.shape)
    for output in np.moveaxis(y, 2, 0):
        each = weight * output
        total, rights = each.sum(axis=1)[:, None], _from((each * right).sum(axis=1), each * moved)
        # A side that keeps nothing but rounding has no mean, and is not allowed either.
        parts = ((total - rights, on_left), (rights, on_right))
        sides = sum(np.where(rows > 1e-9 * everyone, sums**2 / np.maximum(rows, tiny), 0.0) for sums, rows in parts)
        gains += sides - total**2 / np.maximum(everyone, tiny)
    return gains / (y.shape[2] * np.maximum(everyone, tiny))


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


class NodeRows(NamedTuple):
    """The rows of one leaf as arrays: x (n, n_features), y (n,) or (n, n_outputs), weight (n,)."""

    x: npt.NDArray[np.float32]
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SearchContext:
    """What stays the same while a baseline grows a tree.

    ``plan`` is for baselines that use gradients, ``nu`` the bound ν on ‖w‖² of those that have one; every random number
    comes from ``generator``.
    """

    samples: Samples
    plan: Plan
    leaf_limits: LeafLimits
    generator: torch.Generator
    nu: float | None = None

    @property
    def n_classes(self) -> int | None:
        """Number of classes; None for regression."""
        return self.samples.target.n_classes

    def nodes(self, groups: Groups) -> Iterator[NodeRows]:
        """Iterate over the rows of every group."""
        for rows in groups.rows.split(groups.sizes.tolist()):
            x, y, weight = self.samples.batch(rows), self.samples.y[rows], self.samples.weight[rows].double()
            values = y.cpu().numpy()
            if self.n_classes is None:
                values = np.round(values * TARGET_STEPS) / TARGET_STEPS
            yield NodeRows(x.cpu().numpy(), values, weight.cpu().numpy())

    def seed(self) -> int:
        """Draw a seed for the generator of another library."""
        return int(torch.randint(2**31, (1,), generator=self.generator))

    def splits(self, hyperplanes: HyperplaneArrays) -> ObliqueSplits:
        """Convert hyperplanes to splits on the device of the samples."""
        weight, bias = (torch.from_numpy(np.asarray(part)).to(self.samples.weight) for part in hyperplanes)
        return ObliqueSplits(weight, bias)


class HyperplaneArrays(NamedTuple):
    """weight · x + bias > 0 goes right: (n, n_features) and (n,)."""

    weight: npt.NDArray[np.floating]
    bias: npt.NDArray[np.floating]

    @classmethod
    def idle(cls, n: int, n_features: int) -> HyperplaneArrays:
        """Splits that send every row left: the result where no split is found, which growth rejects."""
        return cls(np.zeros((n, n_features), dtype=np.float32), np.full(n, -1.0))

    def set_best(
        self, number: int, node: NodeRows, directions: npt.NDArray[np.floating], context: SearchContext
    ) -> None:
        """Set one hyperplane to the direction and threshold with the highest gain on the rows of a node, if any."""
        scores = directions @ node.x.T
        best = best_thresholds(scores, node.y, node.weight, context.n_classes, context.leaf_limits)
        line = best.best_line()
        if line is not None:
            self.weight[number], self.bias[number] = directions[line], -best.threshold[line]


def random_splits(context: SearchContext, groups: Groups, n_directions: int = N_DIRECTIONS) -> ObliqueSplits:
    """Find the best of ``n_directions`` random unit directions, drawn anew for every group of rows."""
    n_features = context.samples.n_features
    hyperplanes = HyperplaneArrays.idle(len(groups.sizes), n_features)
    for number, node in enumerate(context.nodes(groups)):
        directions = random_directions(n_directions, n_features, context.generator)
        hyperplanes.set_best(number, node, directions.detach().cpu().numpy().astype(np.float32, copy=False), context)
    return context.splits(hyperplanes)


TREES: dict[str, Callable[..., Any]] = {
    "classes": partial(DecisionTreeClassifier, criterion="entropy"),
    "gaussians": DecisionTreeRegressor,
}
"""scikit-learn's tree, by target: information gain, or reduction of variance."""

IMPURITY_UNITS = {"classes": 1 / math.log(2)}
"""scikit-learn's unit of impurity in ours, by target: its entropy is in bits."""


def axis_aligned_splits(context: SearchContext, groups: Groups) -> ObliqueSplits:
    """Find the best threshold on one feature for every group of rows.

    scikit-learn finds one stump per leaf, so that all stopping rules, weights and warm starts are the library's own.
    """
    return context.splits(axis_aligned_hyperplanes(context, groups))


def axis_aligned_hyperplanes(context: SearchContext, groups: Groups) -> HyperplaneArrays:
    """Find the same as arrays, each hyperplane with one weight, which is 1."""
    seed = context.seed()
    hyperplanes = HyperplaneArrays.idle(len(groups.sizes), context.samples.n_features)
    for number, node in enumerate(context.nodes(groups)):
        stump = best_stump(node, context.leaf_limits, seed, context.samples.target.name)
        if stump is not None:
            feature, threshold = stump
            hyperplanes.weight[number, feature] = 1.0
            hyperplanes.bias[number] = -threshold
    return hyperplanes


def best_stump(
    node: NodeRows, leaf_limits: LeafLimits, seed: int = 0, target: str = "classes"
) -> tuple[int, np.float32] | None:
    """Find the feature and the threshold with the highest gain; None if no threshold is allowed.

    ``seed`` decides among features of equal gain; ``target`` is a key of ``TREES``.
    """
    share = (1 - 1e-9) * leaf_limits.weight / node.weight.sum()  # the minimum itself is enough, despite rounding
    if share > 0.5:  # two sides cannot both keep so much
        return None
    tree = TREES[target](
        max_depth=1,
        min_samples_leaf=leaf_limits.rows,
        min_weight_fraction_leaf=share,
        random_state=seed,
    )
    fitted = tree.fit(node.x, node.y, sample_weight=node.weight).tree_
    if fitted.node_count == 1:
        return None
    return int(fitted.feature[0]), round_down(fitted.threshold[0])


def fit_cart(samples: Samples, limits: GrowthLimits, max_features: int | None, seed: int) -> Tree:
    """Fit a whole tree at once, with scikit-learn's stopping rules: for forests, which need many and deep ones.

    With ``max_features``, each split is the best of so many features, drawn for it.
    """
    everything = torch.arange(len(samples), device=samples.device)
    parts = (samples.batch(everything), samples.y, samples.weight.double())
    x, y, weight = (part.cpu().numpy() for part in parts)
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
    ).fit(x, y, sample_weight=weight)
    nodes = fitted.tree_
    structure, splits, leaf_number = _structure(nodes)
    weights = np.zeros((len(splits), samples.n_features), dtype=np.float32)
    weights[np.arange(len(splits)), nodes.feature[splits]] = 1.0
    bias = np.array([-round_down(threshold) for threshold in nodes.threshold[splits]], dtype=np.float32)
    counts = target.tally(y, weight, leaf_number[fitted.apply(x)], structure.n_leaves)
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
