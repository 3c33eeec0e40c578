"""What a tree remembers of rows that it has seen before, beside those that it is settled on now."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from crisptree.inference.flat import CrispTree
from crisptree.inference.shrinking import shrunk_tables
from crisptree.inference.statistics import SomeTree
from crisptree.targets import gain

Doubles = npt.NDArray[np.float64]


def remembering(now: SomeTree, earlier: CrispTree, memory: float, leaf_prior: float) -> SomeTree:
    """A tree with counts and tables of its new rows and, times ``memory``, of those that an earlier one has counted.

    Parameters
    ----------
    now : FlatTree or ModuleTree
        Settled on the new rows. Its first splits are those of ``earlier``, at the same places; it may have more below.
    earlier : FlatTree or ModuleTree
        What it was before.
    memory : float
        What a row of the past counts beside a new one.
    leaf_prior : float
        Pseudo-count of every class in every leaf.
    """
    structure, target, fresh = now.structure, now.meaning, now.statistics
    n_old, past = earlier.structure.n_splits, earlier.statistics
    old = memory * _old_counts(now, earlier)
    counts = structure.sums_below(fresh.node_counts[structure.n_splits :] + old[structure.n_splits :])
    # Scores of the old rows at a split are known by their mean and spread.
    weights = target.weight(memory * past.node_counts[:n_old]), target.weight(fresh.node_counts[:n_old])
    total = np.maximum(weights[0] + weights[1], np.finfo(float).tiny)
    mean, spread = fresh.score_mean.copy(), fresh.score_spread.copy()
    mean[:n_old] = (weights[0] * past.score_mean + weights[1] * fresh.score_mean[:n_old]) / total
    squares = [
        weight * (part.score_spread[:n_old] ** 2 + part.score_mean[:n_old] ** 2)
        for weight, part in zip(weights, (past, fresh), strict=True)
    ]
    spread[:n_old] = np.sqrt(np.maximum((squares[0] + squares[1]) / total - mean[:n_old] ** 2, 0.0))
    statistics = replace(
        fresh,
        node_counts=counts,
        gain=gain(target, counts[structure.left_nodes], counts[structure.right_nodes]),
        score_mean=mean,
        score_spread=spread,
        shrinkage=past.shrinkage,
        y_center=past.y_center,
        y_unit=past.y_unit,
    )
    leaves = shrunk_tables(target, structure, counts, leaf_prior, past.shrinkage or 0.0)
    return replace(now, leaves=leaves, statistics=statistics)


def _old_counts(now: CrispTree, earlier: CrispTree) -> Doubles:
    """The counts of the earlier leaves at the nodes that stand there now, and below them.  (n_nodes, n_statistics)

    A leaf that has been split since has its old rows go the ways of the new ones.
    """
    structure, before = now.structure, earlier.structure
    leaves = earlier.statistics.node_counts[before.n_splits :]
    counts = np.zeros_like(now.statistics.node_counts)
    if not before.n_splits:
        counts[0] = leaves[0]
    for children, nodes in ((before.left, structure.left_nodes), (before.right, structure.right_nodes)):
        ends = np.flatnonzero(children < 0)
        counts[nodes[ends]] = leaves[~children[ends]]
    weight = now.meaning.weight(now.statistics.node_counts)
    for split in range(before.n_splits, structure.n_splits):
        left, right = structure.left_nodes[split], structure.right_nodes[split]
        share = weight[right] / weight[split] if weight[split] else 0.5
        counts[left], counts[right] = (1 - share) * counts[split], share * counts[split]
    return counts
