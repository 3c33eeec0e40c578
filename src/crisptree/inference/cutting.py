"""A trained tree cut at a depth: grown once, it serves as every shallower tree."""

from __future__ import annotations

from dataclasses import replace

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
    held = before.node_counts[tree.structure.n_splits :].sum(axis=1)
    statistics = replace(
        before,
        node_counts=node_counts,
        gain=before.gain[splits],
        score_mean=before.score_mean[splits],
        score_spread=before.score_spread[splits],
        soft_leaves=tree.structure.means_below(before.soft_leaves, held)[ends],
    )
    leaves = leaf_tables(tree.meaning, structure, node_counts, leaf_prior)
    return replace(tree, structure=structure, leaves=leaves, statistics=statistics, **tree.parts_of(splits))
