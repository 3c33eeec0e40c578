"""Postprocessing of trained trees: truncation, dead splits, cost–complexity pruning, hierarchical shrinkage.

All functions take trees that are finalized on their training rows; ``leaf_prior`` is the pseudo-count of every class in
every leaf.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.inference.flat_tree import CrispTree, Rows
from crisptree.inference.routing import route_rows
from crisptree.inference.statistics import SomeTree, leaf_tables, node_tables
from crisptree.structure import TreeStructure

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

GAIN_TOLERANCE = 1e-12
"""Nats per row: a smaller gain is rounding, which depends on the order of sums."""

STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Candidates, in rows. Zero is not among them: with few validation rows, all of them right, it would seem best, and the
first wrong row later would cost an infinite log loss."""

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
    return replace(tree, structure=structure, leaves=leaves, statistics=statistics, **parts)


def find_dead_splits(tree: CrispTree) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Find the splits that send all their training rows to one side, and whether that is the right one.

    Splits with all weights zero are among them. Splits that no row reaches are not: they go with the split above them.
    """
    structure = tree.structure
    rows = tree.target.weight(tree.statistics.node_counts)
    left, right = rows[structure.left_nodes], rows[structure.right_nodes]
    dead = ((left > 0) != (right > 0)) & (rows[: structure.n_splits] > 0)
    return np.flatnonzero(dead), right[dead] > 0


def remove_dead_splits(tree: SomeTree, leaf_prior: float = 0.0) -> SomeTree:
    """Replace every split without training rows on both sides by the child that has them.

    Every training row reaches the same leaf as before; a new row on the empty side now follows the others.
    """
    dead, to_right = find_dead_splits(tree)
    return select_nodes(tree, *tree.structure.splice(dead, to_right), leaf_prior) if len(dead) else tree


class PruningPath(NamedTuple):
    """Cost–complexity pruning path.

    ``alphas`` are the values of ccp_alpha at which the tree loses splits, ascending from 0, in nats per unit of
    training weight; ``leaves`` are the numbers of leaves at those values.
    """

    alphas: Doubles
    leaves: Ints


def cost_complexity_path(tree: CrispTree) -> PruningPath:
    """Minimal cost–complexity pruning path (Breiman et al. 1984) of a tree finalized on its training rows.

    A subtree is pruned at alpha = (R(t) − R(T_t)) / (leaves(T_t) − 1), the impurity per training row that it saves for
    each additional leaf; R is the target's impurity, for classification the entropy in nats.
    """
    alphas, sizes = [0.0], [tree.structure.n_leaves]
    for alpha, _, n_leaves in _weakest_links(tree):
        if alpha > alphas[-1] + GAIN_TOLERANCE:
            alphas.append(alpha)
            sizes.append(n_leaves)
        sizes[-1] = n_leaves
    return PruningPath(np.array(alphas), np.array(sizes))


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
    """True if an ancestor of the split has become a leaf."""
    node = int(parents[split])
    while node >= 0:
        if size[node] == 1:
            return True
        node = int(parents[node])
    return False


def shrink(tree: SomeTree, strength: float | None, leaf_prior: float = 0.0) -> SomeTree:
    """Shrink leaf tables by a strength, λ of ``statistics.leaf_tables``, in place of any earlier one."""
    now = strength or None
    if now == tree.statistics.shrinkage:
        return tree
    tables = leaf_tables(tree.target, tree.structure, tree.statistics.node_counts, leaf_prior, now or 0.0)
    return replace(tree, leaves=tables, statistics=replace(tree.statistics, shrinkage=now))


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
