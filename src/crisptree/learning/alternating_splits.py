"""Alternating optimisation of the splits of a small deterministic tree, of a few features each.

Tree alternating optimisation (Carreira-Perpiñán and Tavallali 2018): with all other splits and the leaves fixed, a row
at a split costs what its leaf below the left child costs, or what its leaf below the right child costs. The best split
minimises the sum of these costs, a weighted binary classification; the costs are negative log-likelihoods, in nats.
Splits are optimised from the leaves to the root, then the leaves are fitted anew, until nothing is gained.

Every threshold of a direction is tried: of every feature, then of sums of two and three features from a grid of ratios.
``PENALTY`` nats per term beyond the first are what a term must save.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, softmax

from crisptree.learning.cart import TREES
from crisptree.learning.options import GrowthLimits
from crisptree.learning.sparse_leaves import SparseModels, TargetRows, fit_sparse_models
from crisptree.structure import TreeStructure

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Rows = npt.NDArray[np.intp]

PENALTY = 2.0
"""Nats that a term of a split must save, and a split of classes."""

MIN_ROWS, MIN_ROWS_OF_LINEAR_LEAVES = 5, 10
"""Minimum rows on each side of a split."""

MAX_SWEEPS, MAX_SWEEPS_OF_STUMPS = 2, 1
MAX_ROWS = 5_000
"""Larger tables are sampled."""

RATIOS = (0.2, 0.35, 0.6, 1.0, 1.7, 3.0, 5.0)
"""Ratios of a new weight to the largest one, of features that are scaled to unit variance, with either sign."""

MAX_STARTS, MAX_LINEAR_STARTS = 3, 1
"""Features that directions start from: those of the best thresholds, and of the largest weights of a linear model."""

MAX_ADDED, MAX_LINEAR_ADDED = 10, 5
"""The same for features that are added."""

SCREENED_ROWS, MAX_EXACT_LINES = 400, 8
"""Many directions are compared on so many rows first, and only the best of them on all rows."""

N_CELLS = 65_535
"""Cells in which the scores of a direction are sorted."""

MIN_VARIANCE = 1e-9
"""Of the residuals of y with variance 1."""


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
        structure, leaves = self.structure, np.empty(len(x), dtype=np.intp)
        waiting = [(node, np.arange(len(x)))]
        while waiting:
            node, rows = waiting.pop()
            if node >= structure.n_splits:
                leaves[rows] = node - structure.n_splits
                continue
            used = np.flatnonzero(self.weight[node])
            right = x[np.ix_(rows, used)] @ self.weight[node, used] + self.bias[node] > 0
            waiting += [
                (int(structure.right_nodes[node]), rows[right]),
                (int(structure.left_nodes[node]), rows[~right]),
            ]
        return leaves

    def rows_at(self, leaf: Rows, split: int) -> Rows:
        """Return the rows that reach a split, by their leaves."""
        start, stop = self.structure.leaf_spans[split]
        return np.flatnonzero(np.isin(leaf, self.structure.leaves_left_to_right[start:stop]))


class SplitSearch(NamedTuple):
    """Scaled rows, and the limits of splits and of the models in the leaves."""

    x: Doubles
    y: Doubles  # (n, n_outputs), for classes their probabilities
    weight: Doubles  # of mean 1
    is_regression: bool
    max_terms: int
    min_rows: int
    mean: Doubles
    spread: Doubles
    leaf_terms: int = 0
    """Features of the linear models in the leaves; 0 for constant leaves."""

    @classmethod
    def of(
        cls, rows: TargetRows, limits: GrowthLimits, max_terms: int, leaf_terms: int = 0, *, is_regression: bool
    ) -> SplitSearch:
        """Scale the features to unit variance."""
        x, y, weight = rows.X.astype(np.float64), rows.y, rows.weight
        if len(x) > MAX_ROWS:
            kept = np.sort(np.random.default_rng(0).choice(len(x), MAX_ROWS, replace=False))
            x, y, weight = x[kept], y[kept], weight[kept]
        mean, spread = x.mean(axis=0), x.std(axis=0)
        spread[spread == 0] = 1.0
        min_rows = max(limits.min_samples_leaf, MIN_ROWS_OF_LINEAR_LEAVES if leaf_terms else MIN_ROWS)
        scaled = (x - mean) / spread, y, weight / weight.mean()
        return cls(*scaled, is_regression, max_terms, min_rows, mean, spread, leaf_terms)

    def fit_leaves(self, leaf: Rows, n_leaves: int) -> SparseModels:
        """Fit the models of all leaves."""
        groups = [np.flatnonzero(leaf == number) for number in range(n_leaves)]
        return fit_sparse_models(self.x, self.y, self.weight, groups, self.leaf_terms, is_regression=self.is_regression)

    def leaf_losses(self, leaf: Rows, n_leaves: int) -> Doubles:
        """Compute what every row loses in every leaf: −log p(y) of classes, or the squared error.  (n, n_leaves)"""
        outputs = self.fit_leaves(leaf, n_leaves).predict(self.x)
        if self.is_regression:
            return np.asarray(((self.y[:, None] - outputs) ** 2).sum(axis=2))
        return np.asarray(logsumexp(outputs, axis=2) - np.einsum("nk,nlk->nl", self.y, outputs))

    def leaf_costs(self, leaf: Rows, n_leaves: int) -> Doubles:
        """Compute what every row costs in every leaf, in nats: squared errors by their variance.  (n, n_leaves)"""
        losses, n_outputs = self.leaf_losses(leaf, n_leaves), self.y.shape[1]
        if not self.is_regression:
            return losses
        mean_error = float(np.average(losses[np.arange(len(leaf)), leaf], weights=self.weight))
        variance = max(mean_error / n_outputs, MIN_VARIANCE)
        return np.asarray(losses / (2 * variance) + n_outputs / 2 * np.log(variance))

    def hyperplanes(self, tree: SmallTree) -> tuple[Singles, Singles]:
        """Return the weights and offsets on raw features."""
        weight = tree.weight / self.spread
        return weight.astype(np.float32), (tree.bias - weight @ self.mean).astype(np.float32)

    def find_stump(self, rows: Rows) -> Stump | None:
        """Find the best split of some rows, optimised with its two leaves; None where there is none.

        It starts from the threshold that separates y, or that separates the residuals of one leaf: a trend that the
        models of the leaves follow needs no threshold, but their models may have more to gain from a part of the rows.
        """
        if len(rows) < 2 * self.min_rows:
            return None
        own = self._replace(x=self.x[rows], y=self.y[rows], weight=self.weight[rows])
        whole = np.zeros(len(rows), dtype=np.intp)
        starts = [own.y]
        if self.leaf_terms:
            outputs = own.fit_leaves(whole, 1).predict(own.x)[:, 0]
            starts.append(own.y - (outputs if self.is_regression else softmax(outputs, axis=1)))
        before = float(own.weight @ own.leaf_losses(whole, 1)[:, 0])
        stumps = [own._optimise_threshold(values, before, rows) for values in starts]
        return max((stump for stump in stumps if stump is not None), key=lambda stump: stump.gain, default=None)

    def _optimise_threshold(self, values: Doubles, before: float, rows: Rows) -> Stump | None:
        """Optimise the threshold of the lowest squared error of some values; ``before`` is the loss without a split."""
        threshold = TREES["gaussians"](max_leaf_nodes=2, min_samples_leaf=self.min_rows, random_state=0)
        nodes = threshold.fit(self.x, values, sample_weight=self.weight).tree_
        if nodes.node_count < 3:
            return None
        structure = TreeStructure(np.array([-1], dtype=np.int32), np.array([-2], dtype=np.int32))
        start = np.eye(self.x.shape[1])[nodes.feature[:1]]
        tree = _sweep(SmallTree(structure, start, -nodes.threshold[:1].astype(np.float64)), self, MAX_SWEEPS_OF_STUMPS)
        leaf = tree.leaves_of(self.x)
        after = self.leaf_losses(leaf, 2)[np.arange(len(rows)), leaf]
        gain = before - float(self.weight @ after)
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


def grow_sums(search: SplitSearch, sizes: Sequence[int]) -> dict[int, GrownSplits]:
    """Grow a tree best first, each split optimised with its two leaves; then all splits of every size in turn.

    Returns a tree for each of ``sizes``, with fewer leaves where growth ends earlier; none where there is no split. The
    score of one class in a leaf hides what splits gain for the others: of more than two classes leaves are constant
    until all splits stand.
    """
    grown: list[Stump] = []
    places: list[tuple[int, bool]] = []  # the parent of every split, and its side
    has_many_classes = not search.is_regression and search.y.shape[1] > 2
    stumps = search._replace(leaf_terms=0) if has_many_classes else search
    waiting = [(stumps.find_stump(np.arange(len(search.x))), (-1, False))]
    while len(grown) < max(sizes) - 1:
        found = [(stump.gain, number) for number, (stump, _) in enumerate(waiting) if stump is not None]
        if not found or max(found)[0] <= (0 if search.is_regression else PENALTY):
            break
        stump, place = waiting.pop(max(found)[1])
        assert stump is not None
        grown.append(stump)
        places.append(place)
        for side, rows in ((False, stump.left), (True, stump.right)):
            waiting.append((stumps.find_stump(rows), (len(grown) - 1, side)))
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
    return GrownSplits(structure, *search.hyperplanes(_sweep(tree, search, MAX_SWEEPS)))


def _sweep(tree: SmallTree, search: SplitSearch, max_sweeps: int) -> SmallTree:
    """Optimise all splits in turn while the penalised likelihood rises."""
    x, weight, max_terms, min_rows = search.x, search.weight, search.max_terms, search.min_rows
    leaf = tree.leaves_of(x)
    costs = search.leaf_costs(leaf, tree.structure.n_leaves)
    best, lowest = tree.copy(), _objective(tree, costs, leaf, weight)
    for _ in range(max_sweeps):
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
    columns = np.ascontiguousarray(x.T, dtype=np.float32)
    costs = best_thresholds(columns, saved, min_rows).cost
    if not np.isfinite(costs).any():
        return None
    directions = [np.eye(len(columns))[int(costs.argmin())]]
    if max_terms > 1 and len(columns) > 1:
        linear = _fit_linear(x, saved, np.arange(len(columns)))
        by_cost, by_weight = np.argsort(costs, kind="stable"), np.argsort(-np.abs(linear), kind="stable")
        added = np.union1d(by_cost[:MAX_ADDED], by_weight[:MAX_LINEAR_ADDED])
        for start in dict.fromkeys([*by_cost[:MAX_STARTS].tolist(), *by_weight[:MAX_LINEAR_STARTS].tolist()]):
            directions += _extend(columns, saved, int(start), float(costs[start]), added, max_terms, min_rows)
        for size in range(2, min(max_terms, len(columns)) + 1):
            direction = np.zeros(len(columns))
            direction[by_weight[:size]] = _fit_linear(x, saved, by_weight[:size])
            directions.append(direction)
    lines = np.array(directions, dtype=np.float32) @ columns
    found = best_thresholds(lines, saved, min_rows)
    penalised = found.cost + [_penalty(direction) for direction in directions]
    best = int(penalised.argmin())
    if not np.isfinite(penalised[best]):
        return None
    direction, scores = directions[best], x @ directions[best]
    above = lines[best] > found.cut[best]
    threshold = (scores[~above].max() + scores[above].min()) / 2
    sign = -1.0 if found.is_flipped[best] else 1.0
    return ScaledSplit(float(penalised[best]), sign * direction, -sign * float(threshold))


def _extend(
    columns: Singles, saved: Doubles, start: int, cost: float, added: Rows, max_terms: int, min_rows: int
) -> list[Doubles]:
    """Add the best feature and ratio to a direction, one after the other, while each saves its penalty."""
    direction, found = np.eye(len(columns))[start], []
    ratios = np.array([*RATIOS, *(-ratio for ratio in RATIOS)], dtype=np.float32)
    for _ in range(1, max_terms):
        others = added[direction[added] == 0]
        if not len(others):
            break
        line = direction.astype(np.float32) @ columns
        lines = (line + ratios[:, None, None] * columns[others]).reshape(-1, columns.shape[1])
        costs = _best_of_many(lines, saved, min_rows)
        best = int(costs.argmin())
        if not costs[best] < cost - PENALTY:
            break
        cost, direction = float(costs[best]), direction.copy()
        direction[others[best % len(others)]] = ratios[best // len(others)]
        direction /= np.abs(direction).max()
        found.append(direction)
    return found


def _fit_linear(x: Doubles, saved: Doubles, features: Rows) -> Doubles:
    """Fit weights of some features to the signs of the costs by weighted least squares.  (len(features),)"""
    root = np.sqrt(np.abs(saved))
    design = np.column_stack([x[:, features], np.ones(len(x))]) * root[:, None]
    moments = design.T @ design
    moments[np.diag_indices_from(moments)] += 1e-6 * np.trace(moments) + 1e-9
    return np.asarray(np.linalg.solve(moments, design.T @ (-root * np.sign(saved)))[:-1])


def _best_of_many(lines: Singles, saved: Doubles, min_rows: int) -> Doubles:
    """Find the lowest cost on every line; of many rows only for the lines that are best on a sample, inf for others."""
    if lines.shape[1] <= SCREENED_ROWS:
        return best_thresholds(lines, saved, min_rows).cost
    step = lines.shape[1] / SCREENED_ROWS
    sample = (np.arange(SCREENED_ROWS) * step).astype(np.intp)
    some = best_thresholds(lines[:, sample], saved[sample], max(int(min_rows / step), 1)).cost
    promising = np.argsort(some, kind="stable")[:MAX_EXACT_LINES]
    costs = np.full(len(lines), np.inf)
    costs[promising] = best_thresholds(lines[promising], saved, min_rows).cost
    return costs


class BestCuts(NamedTuple):
    """The lowest cost on every line, the score above which rows go right, and whether they go left instead."""

    cost: Doubles
    cut: Singles
    is_flipped: npt.NDArray[np.bool_]


def best_thresholds(lines: Singles, saved: Doubles, min_rows: int) -> BestCuts:
    """Find the threshold and direction of the lowest cost on every line; inf where there is none.  (m, n), (n,)

    Scores are sorted in ``N_CELLS`` cells between the lowest and the highest of a line, as whole numbers of 16 bits.
    """
    low = lines.min(axis=1, keepdims=True)
    unit = np.maximum((lines.max(axis=1, keepdims=True) - low) / N_CELLS, np.finfo(np.float32).tiny)
    cells = ((lines - low) / unit).clip(0, N_CELLS).astype(np.uint16)
    order = np.argsort(cells, axis=1, kind="stable")
    ordered = np.take_along_axis(cells, order, axis=1)
    below = np.cumsum(saved[order], axis=1)
    n, total = lines.shape[1], below[:, -1:]
    rows = slice(min_rows - 1, max(n - min_rows, 0))  # of the last row below the threshold
    below = below[:, rows]
    if not below.shape[1]:
        return BestCuts(np.full(len(lines), np.inf), low[:, 0], np.zeros(len(lines), dtype=np.bool_))
    is_tied = ordered[:, rows] == ordered[:, min_rows : n - min_rows + 1]
    flipped, usual = np.where(is_tied, np.inf, below), np.where(is_tied, -np.inf, below)
    places = np.stack([usual.argmax(axis=1), flipped.argmin(axis=1)])
    each = np.arange(len(lines))
    costs = np.stack([total[:, 0] - usual[each, places[0]], flipped[each, places[1]]])
    is_flipped = costs[1] < costs[0]
    place = np.where(is_flipped, places[1], places[0]) + min_rows - 1
    middle = (ordered[each, place].astype(np.float32) + ordered[each, place + 1] + 1) / 2
    return BestCuts(costs.min(axis=0), low[:, 0] + middle * unit[:, 0], is_flipped)
