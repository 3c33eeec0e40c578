"""Large trees on noisy rows are finetuned from above: first their upper levels, all that lies below each of them being
one leaf, then twice as many, and in the end the whole tree.

A soft tree of thousands of splits costs a row hundreds of them, and most of what it learns that way is where its upper
splits had better lie. Few levels learn that better, from few splits. What is left then lies along few paths of a row,
and where splits part single rows a coarser threshold on its mass loses nothing; see docs/results/training-speed.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.learning.plan import Plan
from crisptree.splits import AbstractSplits
from crisptree.structure import TreeStructure
from crisptree.tree import Tree

MANY_SPLITS = 1024
"""A tree of so many splits, more than ten levels can have, is large; smaller ones are cheap while they are soft."""

ROWS_PER_SPLIT = 4
"""Large trees with more rows to a split part them by what they are, soon become steep, and are trained at once."""

COARSER = 50.0
"""What ``mass_threshold`` is multiplied by once the first upper levels are finetuned."""


class Stage(NamedTuple):
    """How many levels are finetuned, and how."""

    levels: int
    plan: Plan


def stages(plan: Plan, structure: TreeStructure, n_rows: int) -> list[Stage]:
    """What is finetuned one after the other, the whole tree last.

    A tree that is not large, or that has parted its rows without splitting nearly all of them, has no other stage.

    >>> [stage.levels for stage in stages(Plan(upper_levels=4), TreeStructure.balanced(11), n_rows=5_000)]
    [4, 8, 11]
    """
    alone, depth, n_splits = replace(plan, upper_levels=None), structure.depth, structure.n_splits
    if plan.upper_levels is None or n_splits < MANY_SPLITS or n_rows > ROWS_PER_SPLIT * n_splits:
        return [Stage(depth, alone)]
    coarse = replace(alone, mass_threshold=min(COARSER * plan.mass_threshold, 1.0))
    found = [Stage(plan.upper_levels, alone)]
    while found[-1].levels < depth:
        found.append(Stage(min(2 * found[-1].levels, depth), coarse))
    return found


@dataclass(frozen=True, eq=False)
class UpperLevels:
    """The upper levels of a tree as a tree of their own.

    Parameters
    ----------
    whole : Tree
        The large tree.
    tree : Tree
        Its upper levels; the tables of its leaves come from the rows that reach them.
    splits : list of int
        Which split of the whole each of its splits is.
    """

    whole: Tree
    tree: Tree
    splits: list[int]

    @classmethod
    def of(cls, whole: Tree, stage: Stage, count: Callable[[Tree], Tensor]) -> UpperLevels:
        """Those of a stage. ``count`` gives what the rows that reach each leaf add up to.  (n_leaves, n_statistics)"""
        structure, nodes = whole.structure.cut(stage.levels)
        splits, ends = nodes[: structure.n_splits].tolist(), nodes[structure.n_splits :]
        below = whole.structure.means_below(whole.leaves.detach().cpu().double().numpy(), np.ones(len(whole.leaves)))
        tables = torch.from_numpy(below[ends]).to(whole.leaves)  # they stay where no row comes
        tree = replace(whole, structure=structure, splits=whole.splits.select(splits), leaves=tables)
        tables = tree.meaning.update(count(tree).to(tables), tables, stage.plan.leaf_prior)
        return cls(whole, replace(tree, leaves=tables), splits)

    def put_back(self, trained: Tree) -> Tree:
        """The whole tree, with the upper splits as they were trained."""
        order: npt.NDArray[np.int64] = np.arange(self.whole.structure.n_splits)
        order[self.splits] = len(order) + np.arange(len(self.splits))
        splits = AbstractSplits.concatenated([self.whole.splits, trained.splits])
        return replace(self.whole, splits=splits.select(order.tolist()))
