"""Trees with less in them: without splits that part nothing, and pruned by cost–complexity."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.inference.cutting import reduced
from crisptree.inference.dispatch import route_rows
from crisptree.inference.flat import CrispTree, Rows
from crisptree.inference.statistics import SomeTree, node_tables

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROUNDING = 1e-12
"""Nats per row: a split that gains less than this gains nothing, but for the order in which sums were taken."""


def dead_splits(tree: CrispTree) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The splits that all training rows which reach them leave on one side, and whether that is the right one.

    A split whose weights are all zero is among them: its score is the same for every row. So is a split that no row
    reaches, though it goes with what stands above it. Where no row has been counted yet, none is dead.
    """
    structure = tree.structure
    rows = tree.meaning.weight(tree.statistics.node_counts)
    left, right = rows[structure.left_nodes], rows[structure.right_nodes]
    dead = ((left > 0) != (right > 0)) & (rows[: structure.n_splits] > 0)
    return np.flatnonzero(dead), right[dead] > 0


def without_dead_splits(tree: SomeTree, leaf_prior: float = 0.0) -> SomeTree:
    """The tree in which every split has training rows on both sides; what they reach takes the place of a split that
    does not part them.

    Every training row reaches the leaf that it reached before. A new row that would have gone to the empty side now
    goes on with the others. A tree without such splits is returned as it is.

    Parameters
    ----------
    tree : FlatTree or ModuleTree
        Settled on its training rows.
    leaf_prior : float, default=0.0
        Pseudo-count of every class in every leaf.
    """
    dead, to_right = dead_splits(tree)
    return reduced(tree, *tree.structure.spliced(dead, to_right), leaf_prior) if len(dead) else tree


class PruningPath(NamedTuple):
    """How a tree shrinks as leaves become dearer.

    Parameters
    ----------
    alphas : ndarray of shape (n_steps,)
        Prices of a leaf, in nats for each unit of training weight, from 0 up; at each of them the tree loses splits.
    leaves : ndarray of shape (n_steps,)
        The leaves that are left at that price.
    """

    alphas: Doubles
    leaves: Ints


def ccp_path(tree: CrispTree) -> PruningPath:
    """Minimal cost–complexity pruning (Breiman et al. 1984) of a tree that is settled on its training rows.

    The price of a subtree is (R(t) − R(T_t)) / (leaves(T_t) − 1): how much impurity per training row it saves for each
    leaf more than one; R is the target's impurity, for classes the entropy in nats. The cheapest goes first.
    """
    alphas, sizes = [0.0], [tree.structure.n_leaves]
    for alpha, _, n_leaves in _weakest_links(tree):
        if alpha > alphas[-1] + ROUNDING:
            alphas.append(alpha)
            sizes.append(n_leaves)
        sizes[-1] = n_leaves
    return PruningPath(np.array(alphas), np.array(sizes))


def pruned_at(tree: SomeTree, alpha: float, leaf_prior: float = 0.0) -> SomeTree:
    """The smallest tree with the least impurity plus ``alpha`` times the number of leaves.

    Parameters
    ----------
    tree : FlatTree or ModuleTree
        Settled on its training rows.
    alpha : float
        What a leaf must save, in nats for each unit of training weight; 0 takes away what saves nothing.
    leaf_prior : float, default=0.0
        Pseudo-count of every class in every leaf.
    """
    ends = [split for price, split, _ in _weakest_links(tree) if price <= alpha + ROUNDING]
    return reduced(tree, *tree.structure.pruned(ends), leaf_prior) if ends else tree


def chosen_alpha(tree: CrispTree, X: Rows, y: npt.NDArray[Any], weight: Doubles, n_jobs: int | None = None) -> float:
    """The largest price on the path whose tree is as good on held-out rows as the best one, within an error.

    The error is the standard error of the difference of the two trees, row by row on the same rows. It is much smaller
    than that of an accuracy, because most rows are right, or wrong, in both.

    Parameters
    ----------
    tree : CrispTree
        Settled on its training rows.
    X : ndarray or Windows
        Rows that did not train it.
    y : ndarray of shape (n,)
        The numbers of their classes; or what else the tree was trained to predict.
    weight : ndarray of shape (n,)
        Their weights.
    n_jobs : int or None
        Threads.
    """
    leaf, tables, share = route_rows(tree, X, n_jobs), node_tables(tree), weight / weight.sum()

    def scores(ends: Ints) -> Doubles:
        return np.asarray(tree.meaning.score(tables[ends], leaf, y), dtype=np.float64)

    best = max((scores(ends) for _, ends in trees_on_path(tree)), key=lambda score: float(share @ score))
    chosen = 0.0
    for alpha, ends in trees_on_path(tree):
        lost = best - scores(ends)
        mean = float(share @ lost)
        error = np.sqrt(share**2 @ (lost - mean) ** 2)
        if mean <= error + ROUNDING:
            chosen = alpha
    return chosen


def trees_on_path(tree: CrispTree) -> Iterator[tuple[float, Ints]]:
    """For every price on the path, at which node the rows of every leaf end."""
    structure = tree.structure
    ends = np.arange(structure.n_splits, structure.n_nodes)
    now = 0.0
    for alpha, split, _ in _weakest_links(tree):
        if alpha > now + ROUNDING:
            yield now, ends.copy()
            now = alpha
        start, stop = structure.leaf_spans[split]
        ends[structure.leaves_left_to_right[start:stop]] = split
    yield now, ends


def _weakest_links(tree: CrispTree) -> Iterator[tuple[float, int, int]]:
    """The splits in the order in which they become leaves: price, split, leaves that the tree then has."""
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
    """Whether a split stands under one that is a leaf by now."""
    node = int(parents[split])
    while node >= 0:
        if size[node] == 1:
            return True
        node = int(parents[node])
    return False
