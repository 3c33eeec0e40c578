"""Simpler trees after training: truncated at a depth, without dead splits, and pruned by cost–complexity."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
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


def truncate(tree: SomeTree, depth: int, leaf_prior: float = 0.0) -> SomeTree:
    """Truncate a tree at a depth, with leaf tables from the training rows that reach its new leaves.

    Parameters
    ----------
    tree : FlatTree or ModuleTree
        Finalized on its training rows.
    depth : int
        Splits at this depth become leaves.
    leaf_prior : float, default=0.0
        Pseudo-count of every class in every leaf.
    """
    return select_nodes(tree, *tree.structure.cut(depth), leaf_prior)


def select_nodes(
    tree: SomeTree, structure: TreeStructure, nodes: npt.NDArray[np.int64], leaf_prior: float = 0.0
) -> SomeTree:
    """Restrict a tree to some of its nodes, with leaf tables from the training rows that reach its new leaves.

    The shrinkage of the leaf tables stays the same.

    Parameters
    ----------
    tree : FlatTree or ModuleTree
        Finalized on its training rows.
    structure : TreeStructure
        The structure of the result.
    nodes : ndarray of int
        Index in ``tree`` of each node of the result, splits first, then leaves.
    leaf_prior : float, default=0.0
        Pseudo-count of every class in every leaf.
    """
    splits, ends = nodes[: structure.n_splits], nodes[structure.n_splits :]
    before = tree.statistics
    node_counts = before.node_counts[nodes]
    leaf_weight = tree.meaning.weight(before.node_counts[tree.structure.n_splits :])
    statistics = replace(
        before,
        node_counts=node_counts,
        gain=before.gain[splits],
        score_mean=before.score_mean[splits],
        score_spread=before.score_spread[splits],
        soft_leaves=tree.structure.means_below(before.soft_leaves, leaf_weight)[ends],
    )
    leaves = leaf_tables(tree.meaning, structure, node_counts, leaf_prior, before.shrinkage or 0.0)
    parts = tree.parts_of(splits) | tree.models_of(nodes)
    return replace(tree, structure=structure, leaves=leaves, statistics=statistics, **parts)


def find_dead_splits(tree: CrispTree) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Find the splits that send all their training rows to one side, and whether that is the right one.

    A split with all weights zero is among them: its score is the same for every row. Splits that no row reaches are
    not: they go with the split above them.
    """
    structure = tree.structure
    rows = tree.meaning.weight(tree.statistics.node_counts)
    left, right = rows[structure.left_nodes], rows[structure.right_nodes]
    dead = ((left > 0) != (right > 0)) & (rows[: structure.n_splits] > 0)
    return np.flatnonzero(dead), right[dead] > 0


def remove_dead_splits(tree: SomeTree, leaf_prior: float = 0.0) -> SomeTree:
    """Replace every split without training rows on both sides by the child that has them.

    Every training row reaches the same leaf as before; a new row on the empty side now follows the others. A tree
    without such splits is returned unchanged.

    Parameters
    ----------
    tree : FlatTree or ModuleTree
        Finalized on its training rows.
    leaf_prior : float, default=0.0
        Pseudo-count of every class in every leaf.
    """
    dead, to_right = find_dead_splits(tree)
    return select_nodes(tree, *tree.structure.spliced(dead, to_right), leaf_prior) if len(dead) else tree


class PruningPath(NamedTuple):
    """Cost–complexity pruning path.

    Parameters
    ----------
    alphas : ndarray of shape (n_steps,)
        Values of ccp_alpha at which the tree loses splits, ascending from 0, in nats per unit of training weight.
    leaves : ndarray of shape (n_steps,)
        Number of leaves at that value.
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

    Parameters
    ----------
    tree : FlatTree or ModuleTree
        Finalized on its training rows.
    alpha : float
        ccp_alpha, in nats per unit of training weight; 0 removes splits that save nothing.
    leaf_prior : float, default=0.0
        Pseudo-count of every class in every leaf.
    """
    ends = [split for price, split, _ in _weakest_links(tree) if price <= alpha + GAIN_TOLERANCE]
    return select_nodes(tree, *tree.structure.pruned(ends), leaf_prior) if ends else tree


def select_alpha(tree: CrispTree, X: Rows, y: npt.NDArray[Any], weight: Doubles, n_jobs: int | None = None) -> float:
    """Select the largest alpha on the path whose validation score is within one standard error of the best.

    It is the standard error of the paired difference of the two trees, which is much smaller than that of an accuracy,
    because most rows are right, or wrong, in both.

    Parameters
    ----------
    tree : CrispTree
        Finalized on its training rows.
    X : ndarray or Windows
        Validation rows.
    y : ndarray of shape (n,)
        Their class indices, or their encoded targets of another kind.
    weight : ndarray of shape (n,)
        Their weights.
    n_jobs : int or None
        Threads.
    """
    leaf, tables, share = route_rows(tree, X, n_jobs), node_tables(tree), weight / weight.sum()

    def scores(ends: Ints) -> Doubles:
        return np.asarray(tree.meaning.score(tables[ends], leaf, y), dtype=np.float64)

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
    structure, meaning = tree.structure, tree.meaning
    n_splits, parents = structure.n_splits, structure.parents
    counts = tree.statistics.node_counts
    as_leaf = meaning.impurity(counts) / max(float(meaning.weight(counts[0])), np.finfo(float).tiny)
    below = structure.sums_below(as_leaf[n_splits:])
    size = structure.sums_below(np.ones(structure.n_leaves))

    def price(split: int) -> float:
        return float((as_leaf[split] - below[split]) / (size[split] - 1))

    waiting = [(price(split), split) for split in range(n_splits)]
    heapq.heapify(waiting)
    reached = 0.0
    while waiting:
        found, split = heapq.heappop(waiting)
        # An entry is out of date when something below the split has gone since, or the split itself.
        if size[split] == 1 or _is_gone(split, size, parents) or found != price(split):
            continue
        reached = max(reached, found)
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
