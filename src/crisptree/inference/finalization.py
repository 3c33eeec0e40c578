"""Leaf statistics and leaf tables of a deterministic tree; pruning and shrinkage."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from crisptree.data.raw_rows import Scaling, SparseRows, Windows
from crisptree.inference.flat_tree import (
    CrispTree,
    FlatTree,
    Rows,
    Statistics,
    dense_blocks,
    route_rows,
    score_moments,
    visit_splits,
)
from crisptree.inference.monotonic import order_leaf_values
from crisptree.inference.node_arrays import node_tables
from crisptree.structure import TreeStructure
from crisptree.targets import Target, gain
from crisptree.threads import ROWS_IN_CACHE, row_blocks

Doubles = npt.NDArray[np.float64]
SomeTree = TypeVar("SomeTree", bound=CrispTree)
Ranges = tuple[Doubles, Doubles, npt.NDArray[np.bool_]]


Nodes = tuple[TreeStructure, npt.NDArray[np.int64]]
"""A structure, and the index of each of its nodes in a larger tree."""


class SufficientStatistics(NamedTuple):
    """Sums over rows that can be merged: statistics of y at every leaf, and Σw, Σwf, Σwf² at every split."""

    leaves: Doubles
    moments: Doubles


def finalize(
    tree: SomeTree,
    X: npt.NDArray[np.float32] | Windows | SparseRows,
    y: npt.NDArray[Any],
    sample_weight: Doubles,
    leaf_prior: float,
    n_jobs: int | None = None,
    target: Target | None = None,
) -> SomeTree:
    """Compute leaf tables and statistics from the hard routing of the training rows.

    These tables are the best ones for the tree's splits, and the counts agree with its predictions. ``target`` encodes
    y, where that differs from the leaves' own.
    """
    return finalize_from(tree, sum_statistics(tree, X, y, sample_weight, n_jobs, target), leaf_prior)


def sum_statistics(
    tree: CrispTree,
    X: npt.NDArray[np.float32] | Windows | SparseRows,
    y: npt.NDArray[Any],
    sample_weight: Doubles,
    n_jobs: int | None = None,
    target: Target | None = None,
) -> SufficientStatistics:
    """Sum the statistics of rows in a tree; see ``finalize``."""
    moments = score_moments(tree, X, sample_weight, n_jobs) if isinstance(tree, FlatTree) else None
    if moments is None:
        leaf, moments = _leaves_and_moments(tree, X, sample_weight)
    else:
        leaf = route_rows(tree, X, n_jobs)
    leaves = (target or tree.target).tally(y, sample_weight, leaf, tree.structure.n_leaves)
    return SufficientStatistics(leaves, moments)


def finalize_from(tree: SomeTree, sums: SufficientStatistics, leaf_prior: float) -> SomeTree:
    """Compute leaf tables and statistics from the sums over all training rows."""
    structure = tree.structure
    total = np.maximum(sums.moments[:, 0], np.finfo(float).tiny)
    mean = sums.moments[:, 1] / total
    node_counts = structure.sums_below(sums.leaves)
    statistics = replace(
        tree.statistics,
        node_counts=node_counts,
        gain=gain(tree.target, node_counts[structure.left_nodes], node_counts[structure.right_nodes]),
        score_mean=mean,
        score_spread=np.sqrt(np.maximum(sums.moments[:, 2] / total - mean**2, 0.0)),
    )
    tables = leaf_tables(tree.target, structure, node_counts, leaf_prior)
    return order_leaves(replace(tree, leaves=tables, statistics=statistics))


def constrain_monotonic(tree: SomeTree, features: Iterable[int]) -> SomeTree:
    """Order the leaf tables by some features, whose weights have one sign each; later tables will be ordered, too."""
    monotonic = np.zeros(tree.n_features, dtype=np.uint8)
    monotonic[list(features)] = 1
    return order_leaves(replace(tree, statistics=replace(tree.statistics, monotonic=monotonic)))


def order_leaves(tree: SomeTree) -> SomeTree:
    """Move leaf values as little as monotonic constraints require, weighted by the training rows."""
    monotonic = tree.statistics.monotonic
    if monotonic is None or not isinstance(tree, FlatTree) or tree.n_values != 2 or not tree.structure.n_splits:
        return tree
    is_ordered = (tree.weight[:, monotonic > 0] != 0).any(axis=1)
    rows = tree.target.weight(tree.statistics.node_counts[tree.structure.n_splits :])
    weights = np.maximum(rows, EMPTY_LEAF_SHARE * max(float(rows.sum()), np.finfo(float).tiny))
    values = order_leaf_values(tree.structure, is_ordered, tree.target.ordered_values(tree.leaves), weights)
    return replace(tree, leaves=tree.target.with_ordered_values(tree.leaves, values))


def add_prior_statistics(
    tree: SomeTree, sums: SufficientStatistics, previous: CrispTree, decay: float, leaf_prior: float
) -> SomeTree:
    """Finalize a tree from the sums over new rows plus ``decay`` times those of a previous tree of equal structure."""
    n_splits, past = previous.structure.n_splits, previous.statistics
    weight = previous.target.weight(past.node_counts[:n_splits])
    mean, square = past.score_mean, past.score_mean**2 + past.score_spread**2
    moments = sums.moments + decay * np.stack([weight, weight * mean, weight * square], axis=1)
    leaves = sums.leaves + decay * past.node_counts[n_splits:]
    tree = replace(tree, statistics=replace(tree.statistics, monotonic=past.monotonic))
    return shrink(finalize_from(tree, SufficientStatistics(leaves, moments), leaf_prior), past.shrinkage, leaf_prior)


def empty_statistics(
    structure: TreeStructure, scaling: Scaling, soft_leaves: Doubles, steepness: float, n_statistics: int | None = None
) -> Statistics:
    """Return statistics of no rows; ``n_statistics`` per node, by default as many as a leaf table has."""
    none = np.zeros(structure.n_splits)
    return Statistics(
        node_counts=np.zeros((structure.n_nodes, n_statistics or soft_leaves.shape[1])),
        gain=none,
        score_mean=none,
        score_spread=none,
        scaling=scaling,
        soft_leaves=soft_leaves,
        steepness=steepness,
    )


def leaf_tables(
    target: Target, structure: TreeStructure, node_counts: Doubles, prior: float, shrinkage: float = 0.0
) -> Doubles:
    """Leaf tables with hierarchical shrinkage: p_root + Σ (p_child − p_parent) / (1 + λ / n_parent) over a path.

    After Agarwal et al. (2022). With s = n / (n + λ), which falls along a path, that is
    (1 − s_0) p_0 + (s_0 − s_1) p_1 + … + s_{L−1} p_L: a weighted mean of the tables on the path.

    λ = ``shrinkage`` is a weight of rows: a node of so many rows is trusted by half. A node that no training row
    reaches takes the table of the last split above it that some row reaches.  (n_nodes, n_statistics) → (n_leaves,
    n_outputs)
    """
    n_splits = structure.n_splits
    if not shrinkage:
        return target.tables(structure.inherit_counts(node_counts)[n_splits:], prior)
    return end_tables(target, structure, node_counts, prior, shrinkage)[n_splits:]


def end_tables(
    target: Target, structure: TreeStructure, node_counts: Doubles, prior: float, shrinkage: float
) -> Doubles:
    """Compute the table that every node would have as a leaf; see ``leaf_tables``.  → (n_nodes, n_outputs)"""
    tables, rows = target.tables(structure.inherit_counts(node_counts), prior), target.weight(node_counts)
    trust = rows / np.maximum(rows + shrinkage, np.finfo(float).tiny)
    mixed, ends = (1 - trust[:, None]) * tables, tables.copy()
    for level in structure.levels:
        for children in (structure.left_nodes[level], structure.right_nodes[level]):
            ends[children] = mixed[level] + trust[level][:, None] * tables[children]
            mixed[children] = mixed[level] + (trust[level] - trust[children])[:, None] * tables[children]
    return ends


def _leaves_and_moments(
    tree: CrispTree, X: npt.NDArray[np.float32] | Windows | SparseRows, sample_weight: Doubles
) -> tuple[npt.NDArray[np.int64], Doubles]:
    """Leaf of every row, and Σw, Σwf, Σwf² of the rows at each split, in one pass."""
    structure = tree.structure
    leaf = np.zeros(len(X), dtype=np.int64)
    moments = np.zeros((structure.n_splits, 3))
    for block, rows_x in dense_blocks(X):
        for split, rows, scores in visit_splits(tree, rows_x):
            leaf[block][rows] = ~np.where(scores > 0, structure.right[split], structure.left[split])
            exact, weights = scores.astype(np.float64), sample_weight[block][rows]
            moments[split] += weights.sum(), weights @ exact, weights @ exact**2
    return leaf, moments


def record_ranges(tree: SomeTree, X: Any, missing: Mapping[int, int] | None = None) -> SomeTree:
    """Record the smallest and the largest value of every feature, and whether all of them are whole numbers.

    ``missing`` maps features to their missing indicators: imputed values are left out.
    """
    lowest, highest, whole = _sparse_ranges(X) if isinstance(X, SparseRows) else _dense_ranges(X, missing or {})
    statistics = replace(tree.statistics, lowest=lowest, highest=highest, whole=whole.astype(np.uint8))
    return replace(tree, statistics=statistics)


def _dense_ranges(X: npt.NDArray[np.float32], missing: Mapping[int, int]) -> Ranges:
    n_features = X.shape[1]
    lowest, highest = np.full(n_features, np.inf), np.full(n_features, -np.inf)
    whole = np.ones(n_features, dtype=bool)
    for rows in row_blocks(len(X), ROWS_IN_CACHE):
        block = X[rows].copy() if missing else X[rows]
        for feature, indicator in missing.items():
            block[block[:, indicator] > 0, feature] = np.nan
        lowest, highest = np.fmin(lowest, np.fmin.reduce(block)), np.fmax(highest, np.fmax.reduce(block))
        still = np.flatnonzero(whole)
        if len(still):
            values = block[:, still]
            whole[still] = ((values == np.rint(values)) | np.isnan(values)).all(axis=0)
    empty = lowest > highest
    lowest[empty] = highest[empty] = X[0, empty]
    return lowest, highest, whole


def _sparse_ranges(X: SparseRows) -> Ranges:
    """Compute the ranges of sparse features, which include zero unless every row has a value."""
    is_full = np.bincount(X.index, minlength=X.n_features) == len(X)
    lowest, highest = np.where(is_full, np.inf, 0.0), np.where(is_full, -np.inf, 0.0)
    np.minimum.at(lowest, X.index, X.data)
    np.maximum.at(highest, X.index, X.data)
    whole = np.ones(X.n_features, dtype=bool)
    whole[X.index[np.rint(X.data) != X.data]] = False
    return lowest, highest, whole


def inherit_ranges(tree: SomeTree, previous: CrispTree, *, and_own: bool = False) -> SomeTree:
    """Take the ranges of a previous tree, merged with the tree's own if ``and_own``."""
    seen, own = previous.statistics, tree.statistics
    lowest, highest, whole = seen.lowest, seen.highest, seen.whole
    if and_own and not (lowest is None or highest is None or whole is None):
        assert own.lowest is not None
        assert own.highest is not None
        assert own.whole is not None
        lowest, highest = np.minimum(lowest, own.lowest), np.maximum(highest, own.highest)
        whole = whole & own.whole
    return replace(tree, statistics=replace(own, lowest=lowest, highest=highest, whole=whole))


Ints = npt.NDArray[np.int64]

GAIN_TOLERANCE = 1e-12
"""Nats per row: a smaller gain is rounding, which depends on the order of sums."""

STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Candidates, in rows. Zero is not among them: with few validation rows, all of them right, it would seem best, and the
first wrong row later would cost an infinite log loss."""

EMPTY_LEAF_SHARE = 1e-9
"""Weight of a leaf without training rows among ordered leaves: it follows the others."""

ValidationRows = tuple[Rows, npt.NDArray[Any], npt.NDArray[np.float64]]
"""X, y and weights of rows that did not train a tree."""


def truncate(tree: SomeTree, depth: int, leaf_prior: float = 0.0) -> SomeTree:
    """Turn the splits at a depth into leaves, with leaf tables from the training rows that reach them."""
    return select_nodes(tree, *tree.structure.truncate(depth), leaf_prior)


def select_nodes(
    tree: SomeTree, structure: TreeStructure, nodes: npt.NDArray[np.int64], leaf_prior: float = 0.0
) -> SomeTree:
    """Restrict a tree to some of its nodes, with leaf tables from the training rows that reach its new leaves.

    ``nodes`` are the indices in ``tree`` of the nodes of the new ``structure``, splits first, then leaves. The
    shrinkage of the leaf tables stays the same.
    """
    splits, ends = nodes[: structure.n_splits], nodes[structure.n_splits :]
    before = tree.statistics
    node_counts = before.node_counts[nodes]
    leaf_weight = tree.target.weight(before.node_counts[tree.structure.n_splits :])
    statistics = replace(
        before,
        node_counts=node_counts,
        gain=before.gain[splits],
        score_mean=before.score_mean[splits],
        score_spread=before.score_spread[splits],
        soft_leaves=tree.structure.means_below(before.soft_leaves, leaf_weight)[ends],
    )
    leaves = leaf_tables(tree.target, structure, node_counts, leaf_prior, before.shrinkage or 0.0)
    parts = tree.parts_of(splits) | tree.models_of(nodes)
    return order_leaves(replace(tree, structure=structure, leaves=leaves, statistics=statistics, **parts))


def find_dead_splits(tree: CrispTree) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Find the splits that send all their training rows to one side, and whether that is the right one.

    Splits with all weights zero are among them. Splits that no row reaches are not: they go with the split above them.
    """
    structure = tree.structure
    rows = tree.target.weight(tree.statistics.node_counts)
    left, right = rows[structure.left_nodes], rows[structure.right_nodes]
    dead = ((left > 0) != (right > 0)) & (rows[: structure.n_splits] > 0)
    return np.flatnonzero(dead), right[dead] > 0


class PruningPath(NamedTuple):
    """Cost–complexity pruning path.

    ``ccp_alphas`` are the values at which the tree loses splits, ascending from 0, in nats per unit of training weight,
    or as a share of the variance of y; ``impurities`` are the impurities of the trees at those values, in the same
    unit, and ``n_leaves`` their numbers of leaves.
    """

    ccp_alphas: Doubles
    impurities: Doubles
    n_leaves: Ints


def cost_complexity_path(tree: CrispTree) -> PruningPath:
    """Minimal cost–complexity pruning path (Breiman et al. 1984) of a tree finalized on its training rows.

    A subtree is pruned at alpha = (R(t) − R(T_t)) / (leaves(T_t) − 1), the impurity per training row that it saves for
    each additional leaf; R is the target's impurity, for classification the entropy in nats.
    """
    counts = tree.statistics.node_counts
    impurity = tree.target.impurity(counts) / max(float(tree.target.weight(counts[0])), np.finfo(float).tiny)
    alphas, impurities, sizes = list[float](), list[float](), list[int]()
    for alpha, ends in iterate_path(tree):
        leaves = np.unique(ends)
        alphas.append(alpha)
        impurities.append(float(impurity[leaves].sum()))
        sizes.append(len(leaves))
    return PruningPath(np.array(alphas), np.array(impurities), np.array(sizes))


def prune(tree: SomeTree, alpha: float, leaf_prior: float = 0.0) -> SomeTree:
    """Prune to the smallest tree with the least impurity plus ``alpha`` times the number of leaves.

    ``alpha`` is in nats per unit of training weight; 0 removes splits that save nothing.
    """
    ends = [split for price, split, _ in _weakest_links(tree) if price <= alpha + GAIN_TOLERANCE]
    return select_nodes(tree, *tree.structure.prune(ends), leaf_prior) if ends else tree


def select_alpha(tree: CrispTree, X: Rows, y: npt.NDArray[Any], weight: Doubles, n_jobs: int | None = None) -> float:
    """Select the largest alpha on the path whose validation score is within one standard error of the best.

    It is the standard error of the paired difference of the two trees, which is much smaller than that of an accuracy,
    because most rows are right, or wrong, in both.
    """
    leaf, tables, share = route_rows(tree, X, n_jobs), node_tables(tree), weight / weight.sum()

    def scores(ends: Ints) -> Doubles:
        return np.asarray(tree.target.score(tables[ends], leaf, y), dtype=np.float64)

    best = max((scores(ends) for _, ends in iterate_path(tree)), key=lambda score: float(share @ score))
    selected = 0.0
    for alpha, ends in iterate_path(tree):
        lost = best - scores(ends)
        mean = float(share @ lost)
        error = np.sqrt(share**2 @ (lost - mean) ** 2)
        if mean <= error + GAIN_TOLERANCE:
            selected = alpha
    return selected


def iterate_path(tree: CrispTree) -> Iterator[tuple[float, Ints]]:
    """Iterate over the pruning path: alpha, and the node in which the rows of every leaf then end."""
    structure = tree.structure
    ends = np.arange(structure.n_splits, structure.n_nodes)
    now = 0.0
    for alpha, split, _ in _weakest_links(tree):
        if alpha > now + GAIN_TOLERANCE:
            yield now, ends.copy()
            now = alpha
        start, stop = structure.leaf_spans[split]
        ends[structure.leaves_left_to_right[start:stop]] = split
    yield now, ends


def _weakest_links(tree: CrispTree) -> Iterator[tuple[float, int, int]]:
    """Iterate over splits in the order in which they become leaves: alpha, split, remaining leaves of the tree."""
    structure, target = tree.structure, tree.target
    n_splits, parents = structure.n_splits, structure.parents
    counts = tree.statistics.node_counts
    as_leaf = target.impurity(counts) / max(float(target.weight(counts[0])), np.finfo(float).tiny)
    below = structure.sums_below(as_leaf[n_splits:])
    size = structure.sums_below(np.ones(structure.n_leaves))

    def price(split: int) -> float:
        return float((as_leaf[split] - below[split]) / (size[split] - 1))

    waiting = [(price(split), split) for split in range(n_splits)]
    heapq.heapify(waiting)
    reached = 0.0
    while waiting:
        alpha, split = heapq.heappop(waiting)
        # An entry is out of date when something below the split has gone since, or the split itself.
        if size[split] == 1 or _is_gone(split, size, parents) or alpha != price(split):
            continue
        reached = max(reached, alpha)
        saved, fewer = as_leaf[split] - below[split], size[split] - 1
        below[split], size[split] = as_leaf[split], 1
        node = int(parents[split])
        while node >= 0:
            below[node] += saved
            size[node] -= fewer
            heapq.heappush(waiting, (price(node), node))
            node = int(parents[node])
        yield reached, split, int(size[0])


def _is_gone(split: int, size: Doubles, parents: Ints) -> bool:
    """Return True if an ancestor of the split has become a leaf."""
    node = int(parents[split])
    while node >= 0:
        if size[node] == 1:
            return True
        node = int(parents[node])
    return False


def shrink(tree: SomeTree, strength: float | None, leaf_prior: float = 0.0) -> SomeTree:
    """Shrink leaf tables by a strength, λ of ``statistics.leaf_tables``, in place of any previous one."""
    now = strength or None
    if now == tree.statistics.shrinkage:
        return tree
    tables = leaf_tables(tree.target, tree.structure, tree.statistics.node_counts, leaf_prior, now or 0.0)
    return order_leaves(replace(tree, leaves=tables, statistics=replace(tree.statistics, shrinkage=now)))


def select_strength(
    validation: Sequence[tuple[CrispTree, ValidationRows]],
    leaf_prior: float = 0.0,
    unit: float = 1.0,
    n_jobs: int | None = None,
) -> float:
    """Select the strength with the least validation loss, summed over trees that have validation rows of their own.

    Training rows cannot serve, not even one at a time with its own count taken off: splits are fitted to them, and
    nearly every leaf looks pure. ``unit`` is the mean weight of a training row.
    """
    strengths = [unit * strength for strength in STRENGTHS]
    losses = np.zeros(len(strengths))
    for tree, (X, y, weight) in validation:
        structure, counts = tree.structure, tree.statistics.node_counts
        mass = tree.target.tally(y, weight, route_rows(tree, X, n_jobs), structure.n_leaves)
        for number, strength in enumerate(strengths):
            tables = leaf_tables(tree.target, structure, counts, leaf_prior, strength)
            losses[number] += tree.target.loss(tables, mass)
    return strengths[int(np.argmin(losses))]
