"""Rows of a process group: every process has some shards of them, and all processes train the same tree.

Rows belong to a fixed number of shards. What a shard adds to a sum is computed on its rows alone, in one order, and
sums over shards are taken in integer units, which no order changes: a fit has the same bits for any number of
processes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from crisptree.inference import CrispTree
from crisptree.inference.statistics import SomeTree, SufficientStatistics, record_ranges, sum_statistics
from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.distributed.rows import Shards
from crisptree.learning.engines.base import TrainState
from crisptree.learning.engines.shard_schedule import ShardedGroups, ShardRows, gradient_units
from crisptree.learning.engines.sharded import ShardedEngine
from crisptree.learning.history import EpochCallback, EpochRecord, StoppableCallback, StopTraining
from crisptree.learning.options import Plan
from crisptree.learning.samples import Groups, Samples
from crisptree.learning.sources.base import Side, SummedRows, group_leaves, side_sums, split_sides
from crisptree.learning.stumps import SummedLevel
from crisptree.learning.task import Result, RowSet, TrainingTask, scaled_samples
from crisptree.splits import AbstractSplits
from crisptree.tree import Tree


@dataclass(frozen=True, eq=False, kw_only=True)
class ShardedTask(TrainingTask):
    """A training by all processes of a group. ``training`` has no rows; they are in the shards of all processes.

    ``total_rows`` and ``row_weight`` are the number of rows in all processes and their mean weight. ``sample`` are some
    of all rows, the same in every process, on which stumps of regression trees search for a start.
    """

    group: ProcessGroup
    shards: Shards
    validation_shards: Shards | None
    total_rows: int
    row_weight: float
    sample: RowSet | None

    is_small_table: ClassVar[bool] = False

    @property
    def n_rows(self) -> int:
        return self.total_rows

    @property
    def mean_weight(self) -> float:
        return self.row_weight

    @property
    def is_first(self) -> bool:  # type: ignore[override]
        return self.group.is_first

    def compute_once(self, function: Callable[[], Result]) -> Result:
        return self.group.from_first(function)

    def listener(self, on_epoch: EpochCallback | None) -> GroupCallback:
        return GroupCallback(self.group, on_epoch)

    def on(self, device: torch.device, n_jobs: int | None, shifts: Any = None, **options: Any) -> tuple[Any, Any]:
        template = self.samples(self.training, device, n_jobs)
        sample = None if self.sample is None else self.samples(self.sample, device, n_jobs)

        def rows(shards: Shards, sample: Samples | None) -> ShardedRows:
            own = [self.samples(part, device, n_jobs) for part in shards.parts]
            return ShardedRows(self.group, own, shards.first, shards.n_shards, template, sample)

        return rows(self.shards, sample), None if self.validation_shards is None else rows(self.validation_shards, None)

    def samples(self, part: RowSet, device: torch.device, n_jobs: int | None) -> Samples:
        """Some rows on the training device."""
        return scaled_samples(part, self, self.mean_weight, device, n_jobs)

    def counted(self, tree: CrispTree, n_jobs: int | None) -> SufficientStatistics:
        structure, target = tree.structure, self.target
        parts = [part for part in self.shards.parts if len(part.y)]
        found = [sum_statistics(tree, part.X, part.y, part.weight, n_jobs, target) for part in parts]
        leaves = self.group.total([one.leaves for one in found], (structure.n_leaves, target.n_statistics))
        return SufficientStatistics(leaves, self.group.total([one.moments for one in found], (structure.n_splits, 3)))

    def with_ranges(self, tree: SomeTree) -> SomeTree:
        """The tree with the smallest and largest values of all rows, and whether they are whole numbers."""
        n = len(tree.statistics.scaling.center)
        # The maximum over all processes of minus the smallest, the largest, and whether some value is not whole.
        mine = np.concatenate([np.full(2 * n, -np.inf), np.zeros(n)])
        for part in self.shards.parts:
            if len(part.y):
                seen = record_ranges(tree, part.X).statistics
                assert seen.lowest is not None
                assert seen.highest is not None
                assert seen.whole is not None
                mine = np.maximum(mine, np.concatenate([-seen.lowest, seen.highest, 1.0 - seen.whole]))
        low, high, broken = self.group.maximum(mine).reshape(3, n)
        ranges = {"lowest": 0.0 - low, "highest": high + 0.0, "whole": (broken == 0).astype(np.uint8)}
        return replace(tree, statistics=replace(tree.statistics, **ranges))


class GroupCallback(StoppableCallback):
    """Call the callback in the first process; if it asks to stop, or fails, all processes do."""

    def __init__(self, group: ProcessGroup, callback: EpochCallback | None) -> None:
        super().__init__(callback)
        self.group = group

    def __call__(self, record: EpochRecord) -> None:
        self.asked = self.group.from_first(lambda: self._goes_on(record)) is False
        if self.asked:
            raise StopTraining(record)

    def _goes_on(self, record: EpochRecord) -> bool:
        try:
            super().__call__(record)
        except StopTraining:
            return False
        return True


class ShardedRows(SummedRows):
    """The rows of all processes, of which this one has some shards."""

    def __init__(
        self,
        group: ProcessGroup,
        samples: list[Samples],
        first: int,
        n_shards: int,
        template: Samples,
        sample: Samples | None = None,
    ) -> None:
        super().__init__(template, sample)
        self.group, self.samples, self.first, self.n_shards = group, samples, first, n_shards
        self.n_rows = int(self.group.total([float(len(samples)) for samples in self.samples]))

    def __len__(self) -> int:
        return self.n_rows

    def hard_counts(self, tree: Tree) -> Tensor:
        parts = [samples.hard_counts(tree).double() for samples in self.samples]
        shape = tree.structure.n_leaves, self.target.n_statistics
        return torch.from_numpy(self.group.total(parts, shape))

    @torch.no_grad()
    def sides(self, tree: Tree, leaves: list[int], splits: AbstractSplits | None) -> tuple[Side, Side]:
        n = self.target.n_statistics
        parts = [side_sums(samples, group_leaves(tree, samples, leaves), splits) for samples in self.samples]
        return split_sides(self.group.total(parts, (2, len(leaves), n + 1 + self.n_features)), n)

    def score(self, tree: Tree, tables: Tensor) -> float:
        found = []
        for samples in self.samples:
            weight = float(samples.weight.double().sum())
            found.append((weight * samples.score(tree, tables) if weight else 0.0, weight))
        right, everything = self.group.total(found, (2,))
        return float(right / everything)

    def make_engine(self, state: TrainState, plan: Plan, generator: torch.Generator, *, fresh: bool) -> ShardedEngine:
        if isinstance(state, SummedLevel):
            tree, leaves = state.open.tree, state.open.leaves
            own = [group_leaves(tree, samples, leaves) for samples in self.samples]
        else:
            own = [Groups.everything(len(samples), samples.device) for samples in self.samples]
        groups = ShardedGroups.of(own, state.n_stumps, self.n_shards, self.first, self.group)
        return ShardedEngine(state, groups, self.shard_rows, plan, self.group, generator, fresh=fresh)

    @cached_property
    def shard_rows(self) -> ShardRows:
        """What gradients need of the shards, with their units."""
        n = self.n_features
        largest = np.zeros(n + 1)
        for samples in filter(len, self.samples):
            for rows in samples.pieces():
                there = samples.batch(rows).abs().amax(dim=0).double().cpu().numpy()
                largest[:n] = np.maximum(largest[:n], there)
                largest[n] = max(largest[n], float(samples.weight[rows].max()))
        largest = self.group.maximum(largest)
        return ShardRows(self.samples, self.template, gradient_units(largest[:n], float(largest[n])))
