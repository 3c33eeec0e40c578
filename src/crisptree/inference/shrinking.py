"""Leaf tables drawn towards those of the nodes above them: fewer rows, less trust in what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference.dispatch import route_rows
from crisptree.inference.flat import CrispTree, Rows
from crisptree.inference.statistics import SomeTree, inherited_counts
from crisptree.structure import TreeStructure
from crisptree.targets import Target

Doubles = npt.NDArray[np.float64]

STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""What is tried, in rows. Zero is not among them: where the few rows that judge are all right, it would seem best, and
the first wrong row later would cost an infinite log loss."""


def shrunk_tables(
    target: Target, structure: TreeStructure, node_counts: Doubles, prior: float, strength: float
) -> Doubles:
    """Hierarchical shrinkage (Agarwal et al. 2022): p_root + Σ (p_child − p_parent) / (1 + λ / n_parent) over a path.

    With s = n / (n + λ), which falls along a path, that is (1 − s_0) p_0 + (s_0 − s_1) p_1 + … + s_{L−1} p_L: a mean of
    the tables on the path, so that whatever is true of means of tables is true of it. λ = 0 leaves the leaf's own.

    Parameters
    ----------
    target : Target
        Of which tables can be averaged, as class probabilities and means can.
    structure : TreeStructure
        The shape.
    node_counts : ndarray of shape (n_nodes, n_statistics)
        What the training rows that pass each node add up to.
    prior : float
        Pseudo-count of every class in every node.
    strength : float
        λ, as a weight of rows: a node of so many rows is trusted by half.

    Returns
    -------
    ndarray of shape (n_leaves, n_values)
        The tables of the leaves.
    """
    n_splits = structure.n_splits
    tables = target.tables(inherited_counts(structure, node_counts), prior)
    if not strength:
        return tables[n_splits:]
    rows = target.weight(node_counts)
    trust = np.where(np.arange(len(rows)) < n_splits, rows / (rows + strength), 0.0)
    mixed = (1 - trust[:, None]) * tables
    for level in structure.levels:
        for children in (structure.left_nodes[level], structure.right_nodes[level]):
            mixed[children] = mixed[level] + (trust[level] - trust[children])[:, None] * tables[children]
    return mixed[n_splits:]


def shrunk(tree: SomeTree, strength: float | None, leaf_prior: float = 0.0) -> SomeTree:
    """The tree with tables shrunk by a strength, whatever they were shrunk by before; its splits stay as they are.

    Parameters
    ----------
    tree : FlatTree or ModuleTree
        Settled on its training rows.
    strength : float or None
        λ; 0 and None are the plain tables.
    leaf_prior : float, default=0.0
        Pseudo-count of every class in every leaf.
    """
    now = strength or None
    if now == tree.statistics.shrinkage:
        return tree
    tables = shrunk_tables(tree.meaning, tree.structure, tree.statistics.node_counts, leaf_prior, now or 0.0)
    return replace(tree, leaves=tables, statistics=replace(tree.statistics, shrinkage=now))


def chosen_strength(
    tree: CrispTree,
    X: Rows,
    y: npt.NDArray[Any],
    weight: Doubles,
    leaf_prior: float = 0.0,
    unit: float = 1.0,
    n_jobs: int | None = None,
) -> float:
    """The strength out of a few whose tables have the least loss on rows that did not train the tree.

    The training rows themselves cannot judge, not even one at a time with its own count taken off: splits are laid
    around them, and nearly every leaf looks pure.

    Parameters
    ----------
    tree : CrispTree
        Settled on its training rows.
    X : ndarray or Windows
        Rows that did not train it.
    y : ndarray of shape (n,)
        The numbers of their classes.
    weight : ndarray of shape (n,)
        Their weights.
    leaf_prior : float, default=0.0
        Pseudo-count of every class in every leaf.
    unit : float, default=1.0
        What a training row weighs in the mean.
    n_jobs : int or None
        Threads.
    """
    return best_strength([(tree, (X, y, weight))], leaf_prior, unit, n_jobs)


Judges = tuple[Rows, npt.NDArray[Any], Doubles]
"""Rows that did not train a tree, what they are and their weights."""


def best_strength(
    judged: Sequence[tuple[CrispTree, Judges]], leaf_prior: float = 0.0, unit: float = 1.0, n_jobs: int | None = None
) -> float:
    """The same for several trees together, each with rows of its own."""
    strengths = [unit * strength for strength in STRENGTHS]
    losses = np.zeros(len(strengths))
    for tree, (X, y, weight) in judged:
        structure, counts = tree.structure, tree.statistics.node_counts
        mass = tree.meaning.tally(y, weight, route_rows(tree, X, n_jobs), structure.n_leaves)
        for number, strength in enumerate(strengths):
            tables = shrunk_tables(tree.meaning, structure, counts, leaf_prior, strength)
            losses[number] += tree.meaning.loss(tables, mass)
    return strengths[int(np.argmin(losses))]
