"""What the training rows do in the deterministic tree: its final leaf tables and its statistics."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from crisptree.blocks import ROWS_AT_ONCE, row_blocks
from crisptree.data.scaling import Scaling
from crisptree.data.sparse import SparseRows
from crisptree.data.windows import Windows
from crisptree.inference.compiled import SPARSE_VALUES_AT_ONCE, score_moments
from crisptree.inference.dispatch import route_rows
from crisptree.inference.flat import CrispTree, FlatTree, Statistics
from crisptree.inference.reference import visits
from crisptree.structure import TreeStructure
from crisptree.targets import Target, gain

Doubles = npt.NDArray[np.float64]
SomeTree = TypeVar("SomeTree", bound=CrispTree)


def settled(
    tree: SomeTree,
    X: npt.NDArray[np.float32] | Windows | SparseRows,
    y: npt.NDArray[Any],
    sample_weight: Doubles,
    leaf_prior: float,
    n_jobs: int | None = None,
    target: Target | None = None,
) -> SomeTree:
    """The tree with leaf tables and statistics from the hard routing of its training rows.

    These tables are the best ones for the tree's splits, and the counts agree with what it predicts. ``target`` says
    what y is, where that is more than what the leaves mean.
    """
    return settled_by(tree, counted(tree, X, y, sample_weight, n_jobs, target), leaf_prior)


class Counted(NamedTuple):
    """What rows leave behind in a tree: statistics of y at every leaf, and Σw, Σwf, Σwf² at every split."""

    leaves: Doubles
    moments: Doubles


def counted(
    tree: CrispTree,
    X: npt.NDArray[np.float32] | Windows | SparseRows,
    y: npt.NDArray[Any],
    sample_weight: Doubles,
    n_jobs: int | None = None,
    target: Target | None = None,
) -> Counted:
    """What some rows add to the counts of a tree; see ``settled``."""
    moments = score_moments(tree, X, sample_weight, n_jobs) if isinstance(tree, FlatTree) else None
    if moments is None:
        leaf, moments = _leaves_and_moments(tree, X, sample_weight)
    else:
        leaf = route_rows(tree, X, n_jobs)
    return Counted((target or tree.meaning).tally(y, sample_weight, leaf, tree.structure.n_leaves), moments)


def settled_by(tree: SomeTree, found: Counted, leaf_prior: float) -> SomeTree:
    """The tree with the tables and statistics that follow from what all its rows have left behind."""
    structure = tree.structure
    mean, spread = _mean_and_spread(found.moments)
    node_counts = structure.sums_below(found.leaves)
    statistics = replace(
        tree.statistics,
        node_counts=node_counts,
        gain=_gains(tree.meaning, structure, node_counts),
        score_mean=mean,
        score_spread=spread,
    )
    return replace(tree, leaves=leaf_tables(tree.meaning, structure, node_counts, leaf_prior), statistics=statistics)


def unsettled(
    structure: TreeStructure, scaling: Scaling, soft_leaves: Doubles, steepness: float, n_statistics: int | None = None
) -> Statistics:
    """Statistics before any row has been counted; a row leaves as many numbers behind as a table has, if not others."""
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


def leaf_tables(target: Target, structure: TreeStructure, node_counts: Doubles, prior: float) -> Doubles:
    """The tables of the leaves; a leaf that no training row reaches takes that of the last split above it that some row
    does reach.
    """
    return target.tables(inherited_counts(structure, node_counts)[structure.n_splits :], prior)


def node_tables(tree: CrispTree) -> Doubles:
    """A table for every node, splits first, then those of the leaves; a split that no training row reaches takes that
    of the last one above it that some row does reach.  (n_nodes, n_outputs)
    """
    tables = tree.meaning.tables(inherited_counts(tree.structure, tree.statistics.node_counts))
    tables[tree.structure.n_splits :] = tree.leaves
    return tables


def inherited_counts(structure: TreeStructure, node_counts: Doubles) -> Doubles:
    """The counts of all nodes, with those of the parent where there are none.  (n_nodes, n_statistics)"""
    counts = node_counts.copy()
    for split in range(structure.n_splits):
        for child in (structure.left_nodes[split], structure.right_nodes[split]):
            if not counts[child].any():
                counts[child] = counts[split]
    return counts


def _mean_and_spread(moments: Doubles) -> tuple[Doubles, Doubles]:
    """Mean and standard deviation of the scores that each split gives to its own rows."""
    total = np.maximum(moments[:, 0], np.finfo(float).tiny)
    mean = moments[:, 1] / total
    return mean, np.sqrt(np.maximum(moments[:, 2] / total - mean**2, 0.0))


def _leaves_and_moments(
    tree: CrispTree, X: npt.NDArray[np.float32] | Windows | SparseRows, sample_weight: Doubles
) -> tuple[npt.NDArray[np.int64], Doubles]:
    """The leaf of every row, and Σw, Σwf, Σwf² of the rows at each split: one visit serves both."""
    structure = tree.structure
    leaf = np.zeros(len(X), dtype=np.int64)
    moments = np.zeros((structure.n_splits, 3))
    at_once = max(1, SPARSE_VALUES_AT_ONCE // X.n_features) if isinstance(X, SparseRows) else ROWS_AT_ONCE
    for block in row_blocks(len(X), at_once):
        here = X[block].dense() if isinstance(X, SparseRows) else X[block]
        for split, rows, scores in visits(tree, here):
            leaf[block][rows] = ~np.where(scores > 0, structure.right[split], structure.left[split])
            exact, weights = scores.astype(np.float64), sample_weight[block][rows]
            moments[split] += weights.sum(), weights @ exact, weights @ exact**2
    return leaf, moments


def _gains(target: Target, structure: TreeStructure, node_counts: Doubles) -> Doubles:
    return gain(target, node_counts[structure.left_nodes], node_counts[structure.right_nodes])
