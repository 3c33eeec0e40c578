"""The growth of a tree on shards: which leaves become splits, level by level or best first.

It is that of ``learning.growing``; of rows it knows what all shards add up to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.learning.batches import Groups, group_rows
from crisptree.learning.constraints import begun
from crisptree.learning.growing import TRIES
from crisptree.learning.history import StopTraining
from crisptree.learning.plan import Plan
from crisptree.learning.row_routing import turns_of
from crisptree.learning.samples import Samples
from crisptree.learning.sharded.groups import ShardedGroups
from crisptree.learning.sharded.work import Doubles, Work
from crisptree.learning.starts import looked_around
from crisptree.learning.stumps import Stumps, started_tables
from crisptree.splits import AbstractSplits
from crisptree.structure import TreeStructure
from crisptree.targets import gain
from crisptree.tree import Tree


class Open(NamedTuple):
    """A leaf that may be split: its rows, their statistics and the mean of their scaled features."""

    n_rows: int
    statistics: Doubles
    center: Tensor


@dataclass(frozen=True, eq=False)
class Candidate:
    """A trained stump that waits at a leaf: what it adds to the likelihood, and what would be on its sides."""

    leaf: int
    split: AbstractSplits
    tables: Tensor
    decrease: float
    sides: tuple[Open, Open]


class Level:
    """Stumps at some leaves, in training."""

    is_whole_tree = False
    models = None
    structure = TreeStructure.stump()

    def __init__(
        self, work: Work, groups: ShardedGroups, splits: AbstractSplits, leaves: Tensor, zeros: Tensor | None = None
    ) -> None:
        self.work, self.sharded, self.leaves = work, groups, leaves
        self.splits = splits.trainable()
        self.zeros, self.signs = zeros, work.signs

    @property
    def n_places(self) -> int:
        return self.sharded.sizes.shape[1]

    @property
    def groups(self) -> Groups:
        """Those of all shards, without their rows."""
        return self.sharded.all

    @property
    def penalty_shares(self) -> Tensor:
        return torch.ones(self.splits.n_splits, dtype=torch.float64, device=self.leaves.device)

    def scores(self, splits: AbstractSplits, x: Tensor, group: Tensor) -> Tensor:
        return splits.at(x, group).reshape(-1, 1)

    def places(self, group: Tensor) -> Tensor:
        return group

    @torch.no_grad()
    def hard_counts(self, samples: Samples) -> Tensor:
        splits, tables = self.splits.detached(), self.leaves.double()
        own = zip(self.work.shards, self.sharded.own, strict=True)
        counts = [Stumps(splits, tables, groups).hard_counts(shard) for shard, groups in own]
        shape = (2, self.n_places * samples.target.n_statistics)
        return torch.from_numpy(self.work.team.total(counts, shape)).to(self.leaves)


class Growth:
    """A tree that grows."""

    def __init__(self, work: Work) -> None:
        self.work, self.limits = work, work.spec.limits
        like = work.none.weight
        splits = work.kind.initial(like.new_zeros(0, work.none.n_features), work.generator)
        self.leaf_of_row = [torch.zeros(len(shard), dtype=torch.long, device=like.device) for shard in work.shards]
        self.open = {0: self._root()}
        table = torch.from_numpy(work.target.tables(self.open[0].statistics[None])).to(like)
        self.tree = Tree(TreeStructure.single_leaf(), splits, table, work.target.name)
        self.total = float(work.target.weight(self.open[0].statistics))

    def grown(self) -> Tree:
        """The tree when its limits hold, or when a callback has asked to stop."""
        waiting: dict[int, Candidate] = {}
        fresh, most = [0], self.limits.max_leaf_nodes
        while fresh and (most is None or self.tree.structure.n_leaves < most):
            try:
                waiting |= {candidate.leaf: candidate for candidate in self._candidates(fresh)}
            except StopTraining:
                return self.tree
            chosen = list(waiting.values())
            if most is not None and waiting:
                chosen = [max(chosen, key=lambda candidate: candidate.decrease)]
            fresh = self._split(chosen)
            for candidate in chosen:
                del waiting[candidate.leaf]
        return self.tree

    def _root(self) -> Open:
        own = [Groups.everything(len(shard), shard.device) for shard in self.work.shards]
        return self._counted(own, 1)[0].open(0, self.work)

    def _candidates(self, fresh: list[int]) -> list[Candidate]:
        leaves, found = [leaf for leaf in fresh if self._may_split(leaf)], list[Candidate]()
        for _ in range(TRIES):
            if not leaves:
                break
            new, leaves = self._tried(leaves)
            found += new
        return found

    def _may_split(self, leaf: int) -> bool:
        limits, state = self.limits, self.open[leaf]
        deep = limits.max_depth is not None and self.tree.structure.leaf_depths[leaf] >= limits.max_depth
        mixed = bool(self.work.target.is_mixed(state.statistics[None])[0])
        return mixed and not deep and state.n_rows >= max(limits.min_samples_split, 2 * limits.min_samples_leaf)

    def _tried(self, leaves: list[int]) -> tuple[list[Candidate], list[int]]:
        """Stumps at some leaves: those of use, and the leaves whose stump leaves too little on a side."""
        work, target = self.work, self.work.target
        own = [_grouped(of_row, leaves) for of_row in self.leaf_of_row]
        groups = ShardedGroups.of(own, len(leaves), work.n_shards, work.first, work.team)
        centers = torch.stack([self.open[leaf].center for leaf in leaves])
        splits = begun(work.kind.candidates(centers, work.generator), centers, work.held, is_sparse=False)
        tables = started_tables(target, [self.open[leaf].statistics for leaf in leaves], work.generator)
        tables = tables.to(work.none.weight)
        if work.sample is not None and work.held is None:
            splits, tables = looked_around(splits, tables, self.tree, leaves, work.sample, work.generator)
        tried = [self._outcome(leaves, own, Level(work, groups, splits, tables), centers)]
        if work.signs is not None:  # they say what is on the right side: the other way round is tried too
            turned = Level(work, groups, splits, tables.flip(0))
            tried.append(self._outcome(leaves, own, turned, centers, heard=False))
        found, again = [], []
        for number, leaf in enumerate(leaves):
            good = [one for one in tried if one.good[number]]
            best = max(good, key=lambda one: one.decreases[number], default=None)
            if best is None:
                again.append(leaf)
            elif best.decreases[number] >= self.limits.min_impurity_decrease:
                found.append(best.candidate(number, leaf, work))
        return found, again

    def _outcome(
        self, leaves: list[int], own: list[Groups], level: Level, centers: Tensor, *, heard: bool = True
    ) -> Tried:
        """What trained stumps do to the rows of all shards."""
        work, plan, limits = self.work, self.work.spec.growth, self.limits
        depth = int(self.tree.structure.leaf_depths[leaves].max()) + 1

        def trained(level: Level, plan: Plan, *, heard: bool) -> None:
            work.train(level, level.sharded, plan, phase="grow", level=depth, n_splits=len(leaves), heard=heard)

        trained(level, plan, heard=heard)
        if work.held is not None and work.held.chooses:
            splits, zeros = work.held.thinned(level.splits, centers)
            level = Level(work, level.sharded, splits, level.leaves, zeros)
            trained(level, plan.later_half, heard=False)
        left, right = self._counted(own, len(leaves), level.splits.detached())
        target = work.target
        weights = target.weight(left.statistics), target.weight(right.statistics)
        good = np.minimum(left.n, right.n) >= max(limits.min_samples_leaf, 1)
        good &= np.minimum(*weights) >= limits.min_weight_fraction_leaf * self.total
        decreases = gain(target, left.statistics, right.statistics) * (weights[0] + weights[1]) / self.total
        return Tried(level, left, right, good, decreases)

    def _split(self, chosen: list[Candidate]) -> list[int]:
        """Stumps in the place of their leaves; the new leaves."""
        if not chosen:
            return []
        leaves, n_leaves = [candidate.leaf for candidate in chosen], self.tree.structure.n_leaves
        splits = AbstractSplits.concatenated([candidate.split for candidate in chosen])
        for shard, of_row in zip(self.work.shards, self.leaf_of_row, strict=True):
            for rows, group, turned in _turns(splits, shard, _grouped(of_row, leaves)):
                of_row[rows[turned]] = n_leaves + group[turned]
        self.tree = self.tree.grown(leaves, splits, torch.cat([candidate.tables for candidate in chosen]))
        fresh = []
        for new, candidate in enumerate(chosen, start=n_leaves):
            self.open[candidate.leaf], self.open[new] = candidate.sides
            fresh += [candidate.leaf, new]
        return fresh

    @torch.no_grad()
    def _counted(self, own: list[Groups], n_groups: int, splits: AbstractSplits | None = None) -> tuple[Side, Side]:
        """What the rows of groups add up to that their splits send left, and right; all left where there are none."""
        work, target = self.work, self.work.target
        n, p, parts = target.n_statistics, work.none.n_features, []
        for shard, groups in zip(work.shards, own, strict=True):
            found = shard.weight.new_zeros(2, n_groups, n + 1 + p, dtype=torch.float64)
            for rows, group, turned in _turns(splits, shard, groups):
                weight, x = shard.weight[rows].double(), shard.batch(rows).double()
                for side, index in enumerate((~turned, turned)):
                    g, w = group[index], weight[index]
                    found[side, :, :n] += target.tally(shard.y[rows][index], w, g, n_groups)
                    found[side, :, n] += torch.bincount(g, minlength=n_groups)
                    found[side, :, n + 1 :].index_add_(0, g, x[index] * w[:, None])
            parts.append(found)
        sides = work.team.total(parts, (2, n_groups, n + 1 + p))
        left, right = (Side(side[:, :n], side[:, n].round(), side[:, n + 1 :]) for side in sides)
        return left, right


class Side(NamedTuple):
    """What stumps send one way: statistics, how many rows, and the sums of their features."""

    statistics: Doubles
    n: Doubles
    sums: Doubles

    def open(self, number: int, work: Work) -> Open:
        """That of one stump as a leaf."""
        own = self.statistics[number]
        weight = max(float(work.target.weight(own)), np.finfo(float).tiny)
        return Open(int(self.n[number]), own, torch.from_numpy(self.sums[number] / weight).to(work.none.weight))


class Tried(NamedTuple):
    """Trained stumps, what they send left and right, whether that is enough, and what they add to the likelihood."""

    level: Level
    left: Side
    right: Side
    good: npt.NDArray[np.bool_]
    decreases: Doubles

    def candidate(self, number: int, leaf: int, work: Work) -> Candidate:
        """One of them, as it waits at its leaf."""
        tables = self.level.leaves.reshape(2, len(self.good), -1).transpose(0, 1)[[number]]
        sides = self.left.open(number, work), self.right.open(number, work)
        split = self.level.splits.select([number]).detached()
        return Candidate(leaf, split, tables, float(self.decreases[number]), sides)


def _grouped(leaf_of_row: Tensor, leaves: list[int]) -> Groups:
    if not len(leaf_of_row):
        return Groups(leaf_of_row, leaf_of_row.new_zeros(len(leaves)))
    wide = torch.cat([leaf_of_row, leaf_of_row.new_tensor([max(leaves)])])  # all of them must be there to be numbered
    groups = group_rows(wide, leaves)
    is_row = groups.rows < len(leaf_of_row)
    sizes = groups.sizes.clone()
    sizes[groups.group[~is_row]] -= 1
    return Groups(groups.rows[is_row], sizes)


def _turns(splits: AbstractSplits | None, samples: Samples, groups: Groups) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Rows, their groups, and whether the group's split sends them right, some at a time."""
    found = []
    for rows, group in zip(samples.pieces(groups.rows), samples.pieces(groups.group), strict=True):
        nobody = torch.zeros(len(rows), dtype=torch.bool, device=rows.device)
        turned = nobody if splits is None else turns_of(splits, samples, rows, group).reshape(-1)
        found.append((rows, group, turned))
    return found
