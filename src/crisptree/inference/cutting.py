"""A trained tree cut at a depth: grown once, it serves as every shallower tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from crisptree.inference.flat import CrispTree
from crisptree.inference.statistics import SomeTree, leaf_tables


def cut(tree: SomeTree, depth: int, leaf_prior: float = 0.0) -> SomeTree:
    """The tree of at most ``depth``, with leaf tables from the training rows that reach its leaves.

    Parameters
    ----------
    tree : FlatTree or ModuleTree
        Settled on its training rows.
    depth : int
        Splits at this depth become leaves.
    leaf_prior : float, default=0.0
        Pseudo-count of every class in every leaf.
    """
    structure, nodes = tree.structure.cut(depth)
    splits, ends = nodes[: structure.n_splits], nodes[structure.n_splits :]
    before = tree.statistics
    node_counts = before.node_counts[nodes]
    statistics = replace(
        before,
        node_counts=node_counts,
        gain=before.gain[splits],
        score_mean=before.score_mean[splits],
        score_spread=before.score_spread[splits],
        soft_leaves=_soft_tables(tree)[ends],
    )
    leaves = leaf_tables(structure, node_counts, leaf_prior)
    return replace(tree, structure=structure, leaves=leaves, statistics=statistics, **tree.parts_of(splits))


def _soft_tables(tree: CrispTree) -> npt.NDArray[np.float64]:
    """For every node the soft tables of its leaves, mixed by the training rows they hold.  (n_nodes, n_classes)"""
    structure, soft = tree.structure, tree.statistics.soft_leaves
    held = tree.statistics.node_counts[structure.n_splits :].sum(axis=1)
    mixed, total = structure.sums_below(soft * held[:, None]), structure.sums_below(held)
    plain, number = structure.sums_below(soft), structure.sums_below(np.ones(structure.n_leaves))
    tables = np.where(total[:, None] > 0, mixed / np.maximum(total, 1e-300)[:, None], plain / number[:, None])
    tables[structure.n_splits :] = soft
    return tables
