"""Rows that are not all in memory: growth and finetuning need sums over all rows only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.learning.engines.base import Engine, TrainState
from crisptree.learning.options import Plan
from crisptree.learning.samples import Groups, Samples, group_rows
from crisptree.splits import AbstractSplits, ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.targets import Target
from crisptree.tree import Tree

Doubles = npt.NDArray[np.float64]


class LeafState(NamedTuple):
    """A leaf that may be split: number of rows, their statistics, and the weighted mean of their scaled features."""

    n_rows: int
    statistics: Doubles
    center: Tensor


class Side(NamedTuple):
    """Sums over the rows that m stumps send one way: statistics (m, s), number of rows (m,), features Σ w x (m, p)."""

    statistics: Doubles
    n_rows: Doubles
    sums: Doubles

    def where(self, takes: npt.NDArray[np.bool_], other: Side) -> Side:
        """Take the sums of another side at some stumps."""
        pairs = zip(self, other, strict=True)
        return Side(*(np.where(takes if one.ndim == 1 else takes[:, None], two, one) for one, two in pairs))

    def leaf(self, number: int, target: Target, like: Tensor) -> LeafState:
        """Return one of the sides as a leaf."""
        statistics = self.statistics[number]
        weight = max(float(target.weight(statistics)), np.finfo(float).tiny)
        center = torch.from_numpy(self.sums[number] / weight).to(like)
        return LeafState(int(self.n_rows[number]), statistics, center)


class LeafGroups(NamedTuple):
    """The rows of some leaves of a tree, known by their sums only."""

    tree: Tree
    leaves: list[int]
    states: list[LeafState]

    @property
    def sizes(self) -> list[int]:
        """Number of rows of every leaf."""
        return [state.n_rows for state in self.states]

    @property
    def centers(self) -> Tensor:
        """Weighted mean of the rows of every leaf.  (n_leaves, n_features)"""
        return torch.stack([state.center for state in self.states])


class SummedRows(ABC):
    """Training rows that are summed over, never held as a whole.

    ``template`` has no rows, but their device, precision and target. ``sample`` are some of all rows, on which the
    stumps of regression trees search for a start.
    """

    retries_later = False
    """True if a leaf whose stump failed waits for the next level, because every training needs further passes."""

    def __init__(self, template: Samples, sample: Samples | None) -> None:
        self.template, self.sample = template, sample

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @abstractmethod
    def hard_counts(self, tree: Tree) -> Tensor:
        """Return the statistics of the rows that reach every leaf.  (n_leaves, n_statistics), float64"""

    @abstractmethod
    def sides(self, tree: Tree, leaves: list[int], splits: AbstractSplits | None) -> tuple[Side, Side]:
        """Sums over the rows of some leaves that their splits send left and right; all left without splits."""

    @abstractmethod
    def make_engine(self, state: TrainState, plan: Plan, generator: torch.Generator, *, fresh: bool) -> Engine:
        """Make the engine of a training phase on all rows."""

    @abstractmethod
    def score(self, tree: Tree, tables: Tensor) -> float:
        """Return the weighted mean score of all rows under a deterministic tree with such leaf tables."""

    @property
    def target(self) -> Target:
        return self.template.target

    @property
    def device(self) -> torch.device:
        return self.template.device

    @property
    def n_features(self) -> int:
        return self.template.n_features

    @property
    def weight(self) -> Tensor:
        """No weights, of the device and precision that training has."""
        return self.template.weight

    @property
    def is_sparse(self) -> bool:
        return False

    @cached_property
    def root(self) -> LeafState:
        """All rows as one leaf."""
        none = ObliqueSplits(self.weight.new_zeros(0, self.n_features), self.weight.new_zeros(0))
        tree = Tree(TreeStructure.single_leaf(), none, self.weight, self.target.name)
        return self.sides(tree, [0], None)[0].leaf(0, self.target, self.weight)

    def everything(self) -> Groups:
        """Return all rows as one group without row indices."""
        return Groups(torch.zeros(0, dtype=torch.long), torch.tensor([len(self)]))

    def shift(self, generator: torch.Generator) -> AbstractContextManager[None]:
        """Do nothing; see ``Samples.shift``."""
        return nullcontext()

    def table(self) -> Tensor:
        """Return the table of one leaf that holds all rows.  (1, n_values)"""
        return torch.from_numpy(self.target.tables(self.root.statistics[None])).to(self.weight)


def group_leaves(tree: Tree, samples: Samples, leaves: list[int]) -> Groups:
    """Return the rows of some leaves of a tree; a leaf may have none."""
    if not len(samples):
        return Groups(
            torch.zeros(0, dtype=torch.long, device=samples.device), torch.zeros(len(leaves), dtype=torch.long)
        )
    leaf = samples.all_leaves(tree)
    wide = torch.cat([leaf, leaf.new_tensor([max(leaves)])])  # all of them must be there to be numbered
    groups = group_rows(wide, leaves)
    is_row = groups.rows < len(leaf)
    sizes = groups.sizes.clone()
    sizes[groups.group[~is_row]] -= 1
    return Groups(groups.rows[is_row], sizes)


def side_sums(samples: Samples, groups: Groups, splits: AbstractSplits | None) -> Doubles:
    """Statistics, number and Σ w x of the rows that splits send left and right; all left without splits.

    → (2, n_groups, n_statistics + 1 + n_features)
    """
    target, n_groups, n = samples.target, len(groups.sizes), samples.target.n_statistics
    found = torch.zeros(2, n_groups, n + 1 + samples.n_features, dtype=torch.float64, device=samples.device)
    for rows, group in zip(samples.pieces(groups.rows), samples.pieces(groups.group), strict=True):
        went_right = torch.zeros(len(rows), dtype=torch.bool, device=rows.device)
        if splits is not None:
            went_right = samples.goes_right(splits, rows, group).reshape(-1)
        weight, x = samples.weight[rows].double(), samples.batch(rows).double()
        for side, index in enumerate((~went_right, went_right)):
            g, w = group[index], weight[index]
            found[side, :, :n] += target.tally(samples.y[rows][index], w, g, n_groups)
            found[side, :, n] += torch.bincount(g, minlength=n_groups)
            found[side, :, n + 1 :].index_add_(0, g, x[index] * w[:, None])
    return found.cpu().numpy()


def split_sides(sums: Doubles, n_statistics: int) -> tuple[Side, Side]:
    """Split the result of ``side_sums`` into its two sides."""
    n = n_statistics
    left, right = (Side(side[:, :n], side[:, n].round(), side[:, n + 1 :]) for side in sums)
    return left, right
