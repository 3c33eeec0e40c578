"""Hierarchical shrinkage of leaf tables towards those of their ancestors: the fewer rows, the stronger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference.flat_tree import CrispTree, Rows
from crisptree.inference.routing import route_rows
from crisptree.inference.statistics import SomeTree, leaf_tables

STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""Candidates, in rows. Zero is not among them: with few validation rows, all of them right, it would seem best, and the
first wrong row later would cost an infinite log loss."""

ValidationRows = tuple[Rows, npt.NDArray[Any], npt.NDArray[np.float64]]
"""X, y and weights of rows that did not train a tree."""


def shrink(tree: SomeTree, strength: float | None, leaf_prior: float = 0.0) -> SomeTree:
    """Shrink leaf tables by a strength, which replaces any earlier one; the splits stay.

    Parameters
    ----------
    tree : FlatTree or ModuleTree
        Finalized on its training rows.
    strength : float or None
        λ of ``statistics.leaf_tables``; 0 and None give the plain tables.
    leaf_prior : float, default=0.0
        Pseudo-count of every class in every leaf.
    """
    now = strength or None
    if now == tree.statistics.shrinkage:
        return tree
    tables = leaf_tables(tree.meaning, tree.structure, tree.statistics.node_counts, leaf_prior, now or 0.0)
    return replace(tree, leaves=tables, statistics=replace(tree.statistics, shrinkage=now))


def select_strength(
    validation: Sequence[tuple[CrispTree, ValidationRows]],
    leaf_prior: float = 0.0,
    unit: float = 1.0,
    n_jobs: int | None = None,
) -> float:
    """Select the strength with the least validation loss, summed over trees that have validation rows of their own.

    Training rows cannot serve, not even one at a time with its own count taken off: splits are fitted to them, and
    nearly every leaf looks pure.

    Parameters
    ----------
    validation : sequence of (CrispTree, (X, y, weight))
        Trees finalized on their training rows, with rows that did not train them.
    leaf_prior : float, default=0.0
        Pseudo-count of every class in every leaf.
    unit : float, default=1.0
        Mean weight of a training row.
    n_jobs : int or None
        Threads.
    """
    strengths = [unit * strength for strength in STRENGTHS]
    losses = np.zeros(len(strengths))
    for tree, (X, y, weight) in validation:
        structure, counts = tree.structure, tree.statistics.node_counts
        mass = tree.meaning.tally(y, weight, route_rows(tree, X, n_jobs), structure.n_leaves)
        for number, strength in enumerate(strengths):
            tables = leaf_tables(tree.meaning, structure, counts, leaf_prior, strength)
            losses[number] += tree.meaning.loss(tables, mass)
    return strengths[int(np.argmin(losses))]
