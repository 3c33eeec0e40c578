"""A trained tree cut at a depth: grown once, it serves as every shallower tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from crisptree.inference.shrinking import shrunk_tables
from crisptree.inference.statistics import SomeTree
from crisptree.structure import TreeStructure


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
    return reduced(tree, *tree.structure.cut(depth), leaf_prior)


def reduced(
    tree: SomeTree, structure: TreeStructure, nodes: npt.NDArray[np.int64], leaf_prior: float = 0.0
) -> SomeTree:
    """The tree of some nodes of a settled one, with leaf tables from the training rows that reach its leaves, shrunk as
    before.

    Parameters
    ----------
    tree : FlatTree or ModuleTree
        Settled on its training rows.
    structure : TreeStructure
        The shape that is left.
    nodes : ndarray of int
        Which node of the tree each of its nodes was, splits first, then leaves.
    leaf_prior : float, default=0.0
        Pseudo-count of every class in every leaf.
    """
    splits, ends = nodes[: structure.n_splits], nodes[structure.n_splits :]
    before = tree.statistics
    node_counts = before.node_counts[nodes]
    held = tree.meaning.weight(before.node_counts[tree.structure.n_splits :])
    statistics = replace(
        before,
        node_counts=node_counts,
        gain=before.gain[splits],
        score_mean=before.score_mean[splits],
        score_spread=before.score_spread[splits],
        soft_leaves=tree.structure.means_below(before.soft_leaves, held)[ends],
    )
    leaves = shrunk_tables(tree.meaning, structure, node_counts, leaf_prior, before.shrinkage or 0.0)
    parts = tree.parts_of(splits) | tree.models_of(nodes)
    return replace(tree, structure=structure, leaves=leaves, statistics=statistics, **parts)
