"""The engine of a process group: gradients of all shards are added up, and all processes take the same step.

The native kernel adds them up where they arise; ``sharded_torch`` does the same on any device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.engines.base import DivergenceError, EpochResult, all_finite
from crisptree.learning.engines.native_engine import LEAVES, Hyperplanes, NativeSteps
from crisptree.learning.engines.shard_schedule import Found, Gradients, Schedule, ShardedGroups, ShardRows, Turn
from crisptree.learning.engines.sharded_torch import BatchedGradients
from crisptree.learning.options import Pace, Plan


class NativeGradients:
    """By the native kernel, which adds them up where they arise, shard after shard."""

    @staticmethod
    def supports(trainee: Any, rows: ShardRows, plan: Plan) -> bool:
        return NativeSteps.supports(trainee, rows.none, plan)

    def __init__(self, trainee: Any, rows: ShardRows, schedule: Schedule, *, fresh: bool) -> None:
        self.trainee, self.schedule, self.plan, self.fresh = trainee, schedule, schedule.plan, fresh
        self.planes = Hyperplanes(trainee, rows.none, self.plan)
        shape = (trainee.splits.n_splits, rows.none.n_features + 2)
        self.sums = torch.zeros(shape, dtype=torch.int64)
        self.kernels = [self.planes.kernel(samples) for samples in (rows.none, *rows.shards)]
        for kernel in self.kernels:
            kernel.collect(self.sums.numpy(), None, rows.units)
        kind = LEAVES[type(rows.none.target)]
        self.leaves = [kind(trainee, samples) if len(samples) else None for samples in rows.shards]
        self.n_columns = trainee.n_places * rows.none.target.n_statistics

    def memory(self) -> dict[str, Tensor]:
        return self.planes.memory()

    def epoch(self, pace: Pace, seed: int, group: ProcessGroup) -> Found:
        self._begin(pace)
        groups, is_good = self.schedule.groups, True
        shuffled = self.schedule.is_shuffled
        orders = [groups.order(place, seed, shuffled=shuffled).numpy() for place in range(len(groups.own))]
        for turn in self.schedule.turns():
            for place, rows in enumerate(orders):
                self._add(place, rows, turn)
            moves_all = self.trainee.is_whole_tree or len(turn.active) == len(self.sums)
            group.reduce_rows(self.sums, None if moves_all else torch.from_numpy(turn.active))
            is_good &= bool(self.kernels[0].move(pace.steepness))
        parts = [(counts, *found) for counts, found in zip(self.counts, self.found.tolist(), strict=True)]
        return Found(parts, is_good)

    def _begin(self, pace: Pace) -> None:
        self.steepness = pace.steepness
        for kernel in self.kernels:
            kernel.learning_rate = pace.learning_rate
            kernel.forget()
        self.before = self.planes.before(fresh=self.fresh)
        self.tables = [() if leaves is None else leaves.tables() for leaves in self.leaves]
        self.counts = np.zeros((len(self.leaves), len(self.trainee.leaves), self.n_columns))
        self.found = np.zeros((len(self.leaves), 2))

    def _add(self, place: int, order: Any, turn: Turn) -> None:
        """What one of the shards here adds to the sums of a step."""
        there, leaves = np.flatnonzero(turn.end[place] > turn.begin[place]), self.leaves[place]
        if leaves is None or not len(there):
            return
        active = turn.active[there]
        starts = self.schedule.groups.starts[place][active]
        begin, end = starts + turn.begin[place, there], starts + turn.end[place, there]
        rows = (order, active, begin, end, turn.in_loss[there], turn.in_counts[there])
        common = (*rows, *self.before, *self.tables[place], self.counts[place], self.steepness)
        kernel = self.kernels[place + 1]
        if self.trainee.is_whole_tree:
            structure = self.trainee.structure
            result = getattr(kernel, leaves.tree)(*common, structure.left, structure.right, self.plan.mass_threshold)
        else:
            result = getattr(kernel, leaves.stumps)(*common)
        self.found[place] += result.log_likelihood, result.weight


def gradients_for(trainee: Any, rows: ShardRows, plan: Plan) -> type[Gradients]:
    """By the native kernel, where it can."""
    return NativeGradients if NativeGradients.supports(trainee, rows, plan) else BatchedGradients


class ShardedSteps:
    """Steps whose gradients all shards add to."""

    def __init__(
        self,
        trainee: Any,
        groups: ShardedGroups,
        rows: ShardRows,
        plan: Plan,
        group: ProcessGroup,
        generator: torch.Generator,
        *,
        fresh: bool,
    ) -> None:
        self.trainee, self.group, self.generator = trainee, group, generator
        weights = [
            torch.zeros(groups.n_groups, dtype=torch.float64, device=samples.device).index_add_(
                0, own.group, samples.weight[own.rows].double()
            )
            for samples, own in zip(rows.shards, groups.own, strict=True)
        ]
        mean_weight = group.total(weights, (groups.n_groups,)) / groups.sizes.sum(axis=0)
        schedule = Schedule(groups, plan, mean_weight)
        self.gradients = gradients_for(trainee, rows, plan)(trainee, rows, schedule, fresh=fresh)
        self.shape = len(trainee.leaves), trainee.n_places * rows.none.target.n_statistics

    def memory(self) -> dict[str, Tensor]:
        return self.gradients.memory()

    def epoch(self, pace: Pace, order: Tensor) -> EpochResult:
        """All steps; the order of the rows is drawn here."""
        seed = int(torch.randint(2**62, (), generator=self.generator))
        found, is_good = self.gradients.epoch(pace, seed, self.group)
        if not is_good:
            raise DivergenceError(
                "gradients must stay within 2^10 times the largest value of their feature (steepness "
                f"{pace.steepness:g}), and be numbers; some did not. Lower learning_rate, steepness_step or the "
                "weights of heavy rows, or train with scale='feature'."
            )
        counts = self.group.total([counts for counts, _, _ in found], self.shape)
        log_likelihood, weight = self.group.total([numbers for _, *numbers in found], (2,))
        result = torch.from_numpy(counts).to(self.trainee.leaves)
        return EpochResult(result, float(-log_likelihood / weight), all_finite(self.trainee.splits))
