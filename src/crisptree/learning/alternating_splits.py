"""Alternating optimisation of the splits of a small deterministic tree, of a few features each.

Tree alternating optimisation (Carreira-Perpiñán and Tavallali 2018): with all other splits and the leaves fixed, a row
at a split costs what its leaf below the left child costs, or what its leaf below the right child costs. The best split
minimises the sum of these costs, a weighted binary classification; the costs are negative log-likelihoods, in nats.
Splits are optimised from the leaves to the root, then the leaves are counted anew, until nothing is gained.

A split is searched exactly: every threshold of every feature, then directions of two and three features from a grid of
ratios, each with all of its thresholds. ``PENALTY`` nats per term beyond the first are what a term must save.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.inference.flat_tree import FlatTree
from crisptree.learning.options import GrowthLimits
from crisptree.learning.samples import RowSet
from crisptree.learning.sparse_leaves import fit_sparse_models
from crisptree.structure import TreeStructure
from crisptree.targets.base import Target

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Rows = npt.NDArray[np.intp]

PENALTY = 2.0
"""Nats that a term of a split must save."""

MIN_ROWS = 5
"""Minimum rows on each side of a split."""

MIN_ROWS_OF_LINEAR_LEAVES = 10

MAX_SWEEPS = 6
MAX_ROWS = 5_000
"""Larger tables are sampled."""

RATIOS = (0.2, 0.35, 0.6, 1.0, 1.7, 3.0, 5.0)
"""Ratios of a new weight to the largest one, of features that are scaled to unit variance, with either sign."""

MAX_STARTS, MAX_LINEAR_STARTS = 3, 2
"""Features that directions start from: those of the best thresholds, and of the largest weights of a linear model."""

MAX_ADDED, MAX_LINEAR_ADDED = 12, 6
"""The same for features that are added."""

N_CELLS, MAX_EXACT_LINES = 128, 12
"""Of many directions the thresholds are searched among so many cells first, and exactly for the best of them."""

MIN_VARIANCE = 1e-9
"""Of the residuals of y with variance 1."""

PRIOR_ROWS = 1.0
"""Rows distributed like all training rows that every leaf counts with."""


class ScaledSplit(NamedTuple):
    """A split of scaled features, and its cost beside that of sending all rows left."""

    cost: float
    weight: Doubles
    bias: float


class SmallTree(NamedTuple):
    """A tree whose splits are replaced in place."""

    structure: TreeStructure
    weight: Doubles  # (n_splits, n_features)
    bias: Doubles

    def copy(self) -> SmallTree:
        return SmallTree(self.structure, self.weight.copy(), self.bias.copy())

    def leaves_of(self, x: Doubles, node: int = 0) -> Rows:
        """Return the leaf below a node that every row reaches.  (n,)"""
        nodes, structure = np.full(len(x), node), self.structure
        while (nodes < structure.n_splits).any():
            rows = np.flatnonzero(nodes < structure.n_splits)
            splits = nodes[rows]
            right = (x[rows] * self.weight[splits]).sum(axis=1) + self.bias[splits] > 0
            nodes[rows] = np.where(right, structure.right_nodes[splits], structure.left_nodes[splits])
        return np.asarray(nodes - structure.n_splits)

    def rows_at(self, leaf: Rows, split: int) -> Rows:
        """Return the rows that reach a split, by their leaves."""
        start, stop = self.structure.leaf_spans[split]
        return np.flatnonzero(np.isin(leaf, self.structure.leaves_left_to_right[start:stop]))


class SplitSearch(NamedTuple):
    """Scaled rows, and the limits of splits."""

    x: Doubles
    y: npt.NDArray[np.generic]
    weight: Doubles  # of mean 1
    target: Target
    max_terms: int
    min_rows: int
    mean: Doubles
    spread: Doubles
    leaf_terms: int = 0
    """Features of the linear models in the leaves, of a regression; 0 for constant leaves."""

    @classmethod
    def of(cls, rows: RowSet, target: Target, limits: GrowthLimits, max_terms: int, leaf_terms: int = 0) -> SplitSearch:
        """Scale the features to unit variance."""
        x, y, weight = np.asarray(rows.X, dtype=np.float64), rows.y, np.asarray(rows.weight, dtype=np.float64)
        if len(x) > MAX_ROWS:
            kept = np.sort(np.random.default_rng(0).choice(len(x), MAX_ROWS, replace=False))
            x, y, weight = x[kept], y[kept], weight[kept]
        mean, spread = x.mean(axis=0), x.std(axis=0)
        spread[spread == 0] = 1.0
        min_rows = max(limits.min_samples_leaf, MIN_ROWS_OF_LINEAR_LEAVES if leaf_terms else MIN_ROWS)
        scaled = (x - mean) / spread, y, weight / weight.mean()
        return cls(*scaled, target, max_terms, min_rows, mean, spread, leaf_terms)

    def leaf_errors(self, leaf: Rows, n_leaves: int) -> Doubles:
        """Compute the squared error of every row by the linear model of every leaf.  (n, n_leaves)"""
        y = self.y.reshape(len(self.y), -1).astype(np.float64)
        groups = [np.flatnonzero(leaf == number) for number in range(n_leaves)]
        models = fit_sparse_models(self.x, y, self.weight, groups, self.leaf_terms)
        return np.asarray(((y[:, None, :] - models.predict(self.x)) ** 2).sum(axis=2))

    def leaf_costs(self, leaf: Rows, n_leaves: int) -> Doubles:
        """Compute what every row would cost in every leaf, in nats.  (n, n_leaves)"""
        if not self.leaf_terms:
            return _leaf_costs(self.target, self.y, self.weight, leaf, n_leaves)
        n_outputs = self.y.reshape(len(self.y), -1).shape[1]
        return _gaussian_costs(self.leaf_errors(leaf, n_leaves), n_outputs, self.weight, leaf)

    def scale(self, tree: FlatTree) -> SmallTree:
        """Return a tree on scaled features."""
        raw = tree.weight.astype(np.float64)
        return SmallTree(tree.structure, raw * self.spread, tree.bias + raw @ self.mean)

    def hyperplanes(self, tree: SmallTree) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return the weights and offsets on raw features."""
        weight = tree.weight / self.spread
        return weight.astype(np.float32), (tree.bias - weight @ self.mean).astype(np.float32)

    def find_stump(self, rows: Rows) -> Stump | None:
        """Find CART's split of some rows and optimise it with its two leaves; None where there is none."""
        from crisptree.learning.cart import TREES

        own = self._replace(x=self.x[rows], y=self.y[rows], weight=self.weight[rows])
        fitted = TREES[self.target.name](max_leaf_nodes=2, min_samples_leaf=self.min_rows, random_state=0)
        if len(rows) < 2 * self.min_rows:
            return None
        y: npt.NDArray[np.generic] = own.y
        whole = np.zeros(len(rows), dtype=np.intp)
        if self.leaf_terms:  # a trend that the models of the leaves follow needs no threshold
            values = own.y.astype(np.float64)
            models = fit_sparse_models(own.x, values, own.weight, [np.arange(len(rows))], self.leaf_terms)
            y = values - models.predict(own.x)[:, 0]
        nodes = fitted.fit(own.x, y, sample_weight=own.weight).tree_
        if nodes.node_count < 3:
            return None
        start = np.eye(own.x.shape[1])[nodes.feature[:1]]
        tree = SmallTree(
            TreeStructure(np.array([-1], dtype=np.int32), np.array([-2], dtype=np.int32)),
            start,
            -nodes.threshold[:1].astype(np.float64),
        )
        tree = _sweep_until_converged(tree, own)
        leaf = tree.leaves_of(own.x)
        if self.leaf_terms:
            before, after = own.leaf_errors(whole, 1)[:, 0], own.leaf_errors(leaf, 2)[np.arange(len(rows)), leaf]
            gain = float(own.weight @ (before - after))
            return Stump(tree.weight[0], float(tree.bias[0]), gain, rows[leaf == 0], rows[leaf == 1])
        counts = self.target.tally(own.y, own.weight, leaf, 2)
        impurity = self.target.impurity(np.concatenate([counts, counts.sum(axis=0, keepdims=True)]))
        gain = float(impurity[2] - impurity[:2].sum())
        return Stump(tree.weight[0], float(tree.bias[0]), gain, rows[leaf == 0], rows[leaf == 1])


class GrownSplits(NamedTuple):
    """A structure with the weights and offsets of its splits on raw features."""

    structure: TreeStructure
    weight: Singles
    bias: Singles


class Stump(NamedTuple):
    """A split, what it gains and the rows on both sides."""

    weight: Doubles
    bias: float
    gain: float
    left: Rows
    right: Rows


def alternate_splits(tree: FlatTree, search: SplitSearch) -> FlatTree:
    """Optimise the splits of a tree in turn; leaf statistics are those of the tree before."""
    weight, bias = search.hyperplanes(_sweep_until_converged(search.scale(tree), search))
    return replace(tree, weight=weight, bias=bias)


def grow_sums(search: SplitSearch, sizes: Sequence[int]) -> dict[int, GrownSplits]:
    """Grow a tree best first, each split optimised with its two leaves; then all splits of every size in turn.

    Returns a tree for each of ``sizes``, with fewer leaves where growth ends earlier; none where there is no split.
    """
    grown: list[Stump] = []
    places: list[tuple[int, bool]] = []  # the parent of every split, and its side
    waiting = [(search.find_stump(np.arange(len(search.x))), (-1, False))]
    while len(grown) < max(sizes) - 1:
        found = [(stump.gain, number) for number, (stump, _) in enumerate(waiting) if stump is not None]
        if not found or max(found)[0] <= 0:
            break
        stump, place = waiting.pop(max(found)[1])
        assert stump is not None
        grown.append(stump)
        places.append(place)
        for side, rows in ((False, stump.left), (True, stump.right)):
            waiting.append((search.find_stump(rows), (len(grown) - 1, side)))
    n_splits = {size: min(size - 1, len(grown)) for size in sizes}
    trees = {n: _sweep_grown(grown[:n], places[:n], search) for n in set(n_splits.values()) if n}
    return {size: trees[n] for size, n in n_splits.items() if n}


def _sweep_grown(grown: Sequence[Stump], places: Sequence[tuple[int, bool]], search: SplitSearch) -> GrownSplits:
    """Optimise the first splits of a growth in turn."""
    children = np.full((len(grown), 2), -1)
    for split, (parent, side) in enumerate(places[1:], start=1):
        children[parent, int(side)] = split
    is_leaf = children < 0
    children[is_leaf] = ~np.arange(is_leaf.sum())
    structure = TreeStructure(children[:, 0].astype(np.int32), children[:, 1].astype(np.int32))
    tree = SmallTree(structure, np.array([one.weight for one in grown]), np.array([one.bias for one in grown]))
    return GrownSplits(structure, *search.hyperplanes(_sweep_until_converged(tree, search)))


def _sweep_until_converged(tree: SmallTree, search: SplitSearch) -> SmallTree:
    """Optimise all splits in turn while the penalised likelihood rises."""
    x, weight, max_terms, min_rows = search.x, search.weight, search.max_terms, search.min_rows
    leaf = tree.leaves_of(x)
    costs = search.leaf_costs(leaf, tree.structure.n_leaves)
    best, lowest = tree.copy(), _objective(tree, costs, leaf, weight)
    for _ in range(MAX_SWEEPS):
        for split in reversed(range(tree.structure.n_splits)):
            rows = tree.rows_at(leaf, split)
            if len(rows) < 2 * min_rows:
                continue
            own, sides = x[rows], (tree.structure.left_nodes[split], tree.structure.right_nodes[split])
            left, right = (costs[rows, tree.leaves_of(own, int(side))] for side in sides)
            saved = (right - left) * weight[rows]
            now = saved[own @ tree.weight[split] + tree.bias[split] > 0].sum() + _penalty(tree.weight[split])
            found = search_split(own, saved, max_terms, min_rows)
            if found is not None and found.cost < now - 1e-9:
                tree.weight[split], tree.bias[split] = found.weight, found.bias
                leaf = tree.leaves_of(x)
        costs = search.leaf_costs(leaf, tree.structure.n_leaves)
        objective = _objective(tree, costs, leaf, weight)
        if objective >= lowest - 1e-6 * abs(lowest):
            break
        best, lowest = tree.copy(), objective
    return best


def _penalty(weight: Doubles) -> float:
    return PENALTY * max(int(np.count_nonzero(weight)) - 1, 0)


def _objective(tree: SmallTree, costs: Doubles, leaf: Rows, weight: Doubles) -> float:
    return float(weight @ costs[np.arange(len(leaf)), leaf]) + sum(map(_penalty, tree.weight))


def _leaf_costs(target: Target, y: npt.NDArray[np.generic], weight: Doubles, leaf: Rows, n_leaves: int) -> Doubles:
    """Compute what every row would cost in every leaf, in nats.  (n, n_leaves)"""
    counts = target.tally(y, weight, leaf, n_leaves)
    prior = counts.sum(axis=0) * PRIOR_ROWS / weight.sum()
    tables = target.tables(counts + prior)
    if not target.is_regression:
        return np.asarray(-np.log(np.maximum(tables[:, y.astype(np.intp)].T, 1e-9)))
    means = target.predict(tables)
    errors = ((y.reshape(len(y), 1, -1).astype(np.float64) - means) ** 2).sum(axis=2)
    return _gaussian_costs(errors, means.shape[1], weight, leaf)


def _gaussian_costs(errors: Doubles, n_outputs: int, weight: Doubles, leaf: Rows) -> Doubles:
    """Return squared errors in nats, for the variance of the errors of the rows in their own leaves."""
    mean_error = float(np.average(errors[np.arange(len(leaf)), leaf], weights=weight))
    variance = max(mean_error / n_outputs, MIN_VARIANCE)
    return np.asarray(errors / (2 * variance) + n_outputs / 2 * np.log(variance))


def search_split(x: Doubles, saved: Doubles, max_terms: int, min_rows: int) -> ScaledSplit | None:
    """Search the split of at most ``max_terms`` features with the lowest penalised cost; None where there is none.

    ``saved`` is what going right costs beyond going left, for every row.  (n, n_features), (n,)

    Examples
    --------
    >>> x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> found = search_split(x, np.array([9.0, -9.0, -9.0, -9.0]), max_terms=2, min_rows=1)
    >>> float(found.cost), (x @ found.weight + found.bias > 0).tolist()
    (-25.0, [False, True, True, True])
    """
    costs, splits = _best_thresholds(x.T, saved, min_rows)
    if not np.isfinite(costs).any():
        return None
    found = [_make_split(np.eye(x.shape[1])[int(costs.argmin())], *splits[int(costs.argmin())], float(costs.min()))]
    if max_terms > 1:
        linear = _fit_linear(x, saved, np.arange(x.shape[1]))
        by_cost, by_weight = np.argsort(costs, kind="stable"), np.argsort(-np.abs(linear), kind="stable")
        added = np.union1d(by_cost[:MAX_ADDED], by_weight[:MAX_LINEAR_ADDED])
        for start in dict.fromkeys([*by_cost[:MAX_STARTS].tolist(), *by_weight[:MAX_LINEAR_STARTS].tolist()]):
            found += _extend(x, saved, int(start), float(costs[start]), added, max_terms, min_rows)
        for size in range(2, min(max_terms, x.shape[1]) + 1):
            direction = np.zeros(x.shape[1])
            direction[by_weight[:size]] = _fit_linear(x, saved, by_weight[:size])
            cost, split = _best_thresholds((x @ direction)[None], saved, min_rows)
            found.append(_make_split(direction, *split[0], float(cost[0]) + _penalty(direction)))
    best = min(found, key=lambda one: one.cost)
    return best if np.isfinite(best.cost) else None


def _extend(
    x: Doubles, saved: Doubles, start: int, cost: float, added: Rows, max_terms: int, min_rows: int
) -> list[ScaledSplit]:
    """Add the best feature and ratio to a direction, one after the other, while each saves its penalty."""
    direction, ratios, found = np.eye(x.shape[1])[start], np.array([*RATIOS, *(-ratio for ratio in RATIOS)]), []
    for _ in range(1, max_terms):
        others = [int(feature) for feature in added if direction[feature] == 0]
        if not others:
            break
        lines = (x @ direction)[None, None] + ratios[None, :, None] * x.T[others][:, None, :]
        costs, splits = _best_of_many(lines.reshape(-1, len(x)), saved, min_rows)
        best = int(costs.argmin())
        if not costs[best] < cost - PENALTY:
            break
        cost = float(costs[best])
        direction = direction.copy()
        direction[others[best // len(ratios)]] = ratios[best % len(ratios)]
        found.append(_make_split(direction, *splits[best], cost + _penalty(direction)))
        scale = np.abs(direction).max()
        direction = direction / scale
    return found


def _make_split(direction: Doubles, threshold: float, is_flipped: bool, cost: float) -> ScaledSplit:
    return ScaledSplit(cost, *((-direction, threshold) if is_flipped else (direction.copy(), -threshold)))


def _fit_linear(x: Doubles, saved: Doubles, features: Rows) -> Doubles:
    """Fit weights of some features to the signs of the costs by weighted least squares.  (len(features),)"""
    root = np.sqrt(np.abs(saved))
    design = np.column_stack([x[:, features], np.ones(len(x))]) * root[:, None]
    return np.asarray(np.linalg.lstsq(design, -root * np.sign(saved), rcond=None)[0][:-1])


def _best_of_many(lines: Doubles, saved: Doubles, min_rows: int) -> tuple[Doubles, list[tuple[float, bool]]]:
    """Find the thresholds of the lines that are promising by ``N_CELLS`` cells each; inf for the others."""
    if lines.shape[1] <= 2 * N_CELLS or len(lines) <= MAX_EXACT_LINES:
        return _best_thresholds(lines, saved, min_rows)
    mean, spread = lines.mean(axis=1), lines.std(axis=1)
    low = np.maximum(lines.min(axis=1), mean - 3 * spread)
    high = np.minimum(lines.max(axis=1), mean + 3 * spread)
    scale = N_CELLS / np.where(high > low, high - low, 1.0)
    cells = ((lines - low[:, None]) * scale[:, None]).clip(0, N_CELLS - 1).astype(np.intp)
    cells += N_CELLS * np.arange(len(lines))[:, None]
    flat, shape = cells.ravel(), (len(lines), N_CELLS)
    sums = np.bincount(flat, np.broadcast_to(saved, lines.shape).ravel(), minlength=lines.shape[0] * N_CELLS)
    rows = np.bincount(flat, minlength=len(sums)).reshape(shape).cumsum(axis=1)
    below = sums.reshape(shape).cumsum(axis=1)
    lowest = np.minimum(below, below[:, -1:] - below)
    is_allowed = (rows >= min_rows) & (rows[:, -1:] - rows >= min_rows)
    promising = np.argsort(np.where(is_allowed, lowest, np.inf).min(axis=1), kind="stable")[:MAX_EXACT_LINES]
    costs, splits = np.full(len(lines), np.inf), [(0.0, False)] * len(lines)
    found, of_them = _best_thresholds(lines[promising], saved, min_rows)
    for number, cost, split in zip(promising.tolist(), found.tolist(), of_them, strict=True):
        costs[number], splits[number] = cost, split
    return costs, splits


def _best_thresholds(lines: Doubles, saved: Doubles, min_rows: int) -> tuple[Doubles, list[tuple[float, bool]]]:
    """Find the threshold and direction of the lowest cost on every line; inf where there is none.  (m, n), (n,)"""
    order = np.argsort(lines, axis=1, kind="stable")
    ordered = np.take_along_axis(lines, order, axis=1)
    below = np.cumsum(saved[order], axis=1)
    above = below[:, -1:] - below[:, :-1]
    rows = np.arange(1, lines.shape[1])
    allowed = np.diff(ordered, axis=1) > 1e-9 * (1 + np.abs(ordered[:, 1:]))
    allowed &= (rows >= min_rows) & (lines.shape[1] - rows >= min_rows)
    both = np.stack([np.where(allowed, above, np.inf), np.where(allowed, below[:, :-1], np.inf)])
    places, each = both.argmin(axis=2), np.arange(len(lines))
    lowest = np.take_along_axis(both, places[..., None], axis=2)[..., 0]
    flipped = lowest[1] < lowest[0]
    place = np.where(flipped, places[1], places[0])
    thresholds = (ordered[each, place] + ordered[each, place + 1]) / 2
    return lowest.min(axis=0), list(zip(thresholds.tolist(), flipped.tolist(), strict=True))
