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
from crisptree.learning.engines.native_engine import LEAVES, Hyperplanes, NativeEngine
from crisptree.learning.engines.shard_schedule import (
    Gradients,
    Schedule,
    ShardedGroups,
    ShardRows,
    ShardStep,
    ShardSums,
)
from crisptree.learning.engines.sharded_torch import BatchedGradients
from crisptree.learning.options import EpochSettings, Plan


class NativeGradients:
    """By the native kernel, which adds them up where they arise, shard after shard."""

    @staticmethod
    def supports(state: Any, rows: ShardRows, plan: Plan) -> bool:
        return NativeEngine.supports(state, rows.none, plan)

    def __init__(self, state: Any, rows: ShardRows, schedule: Schedule, *, fresh: bool) -> None:
        self.state, self.schedule, self.plan, self.fresh = state, schedule, schedule.plan, fresh
        self.planes = Hyperplanes(state, rows.none, self.plan)
        shape = (state.splits.n_splits, rows.none.n_features + 2)
        self.sums = torch.zeros(shape, dtype=torch.int64)
        self.kernels = [self.planes.kernel(samples) for samples in (rows.none, *rows.shards)]
        for kernel in self.kernels:
            kernel.collect(self.sums.numpy(), None, rows.units)
        kind = LEAVES[type(rows.none.target)]
        self.leaves = [kind(state, samples) if len(samples) else None for samples in rows.shards]
        self.n_columns = state.n_stumps * rows.none.target.n_statistics

    def optimizer_state(self) -> dict[str, Tensor]:
        return self.planes.optimizer_state()

    def epoch(self, settings: EpochSettings, seed: int, group: ProcessGroup) -> ShardSums:
        self._begin(settings)
        groups, is_good = self.schedule.groups, True
        shuffled = self.schedule.is_shuffled
        orders = [groups.order(place, seed, shuffled=shuffled).numpy() for place in range(len(groups.own))]
        for step in self.schedule.iter_steps():
            for place, rows in enumerate(orders):
                self._add(place, rows, step)
            moves_all = self.state.is_whole_tree or len(step.active) == len(self.sums)
            group.reduce_rows(self.sums, None if moves_all else torch.from_numpy(step.active))
            is_good &= bool(self.kernels[0].move(settings.steepness))
        parts = [(counts, *found) for counts, found in zip(self.counts, self.found.tolist(), strict=True)]
        return ShardSums(parts, is_good)

    def _begin(self, settings: EpochSettings) -> None:
        self.steepness = settings.steepness
        for kernel in self.kernels:
            kernel.learning_rate = settings.learning_rate
            kernel.forget()
        self.before = self.planes.before(fresh=self.fresh)
        self.tables = [() if leaves is None else leaves.tables() for leaves in self.leaves]
        self.counts = np.zeros((len(self.leaves), len(self.state.leaves), self.n_columns))
        self.found = np.zeros((len(self.leaves), 2))

    def _add(self, place: int, order: Any, step: ShardStep) -> None:
        """What one of the shards here adds to the sums of a step."""
        there, leaves = np.flatnonzero(step.end[place] > step.begin[place]), self.leaves[place]
        if leaves is None or not len(there):
            return
        active = step.active[there]
        starts = self.schedule.groups.starts[place][active]
        begin, end = starts + step.begin[place, there], starts + step.end[place, there]
        rows = (order, active, begin, end, step.in_loss[there], step.in_counts[there])
        common = (*rows, *self.before, *self.tables[place], self.counts[place], self.steepness)
        kernel = self.kernels[place + 1]
        if self.state.is_whole_tree:
            structure = self.state.structure
            result = getattr(kernel, leaves.tree)(*common, structure.left, structure.right, self.plan.mass_threshold)
        else:
            result = getattr(kernel, leaves.stumps)(*common)
        self.found[place] += result.log_likelihood, result.weight


def gradients_for(state: Any, rows: ShardRows, plan: Plan) -> type[Gradients]:
    """By the native kernel, where it can."""
    return NativeGradients if NativeGradients.supports(state, rows, plan) else BatchedGradients


class ShardedEngine:
    """Steps whose gradients all shards add to."""

    def __init__(
        self,
        state: Any,
        groups: ShardedGroups,
        rows: ShardRows,
        plan: Plan,
        group: ProcessGroup,
        generator: torch.Generator,
        *,
        fresh: bool,
    ) -> None:
        self.state, self.group, self.generator = state, group, generator
        weights = [
            torch.zeros(groups.n_groups, dtype=torch.float64, device=samples.device).index_add_(
                0, own.group, samples.weight[own.rows].double()
            )
            for samples, own in zip(rows.shards, groups.own, strict=True)
        ]
        mean_weight = group.total(weights, (groups.n_groups,)) / groups.sizes.sum(axis=0)
        schedule = Schedule(groups, plan, mean_weight)
        self.gradients = gradients_for(state, rows, plan)(state, rows, schedule, fresh=fresh)
        self.shape = len(state.leaves), state.n_stumps * rows.none.target.n_statistics

    def optimizer_state(self) -> dict[str, Tensor]:
        return self.gradients.optimizer_state()

    def epoch(self, settings: EpochSettings, order: Tensor) -> EpochResult:
        """All steps; the order of the rows is drawn here."""
        seed = int(torch.randint(2**62, (), generator=self.generator))
        found, is_good = self.gradients.epoch(settings, seed, self.group)
        if not is_good:
            raise DivergenceError(
                "gradients must stay within 2^10 times the largest value of their feature (steepness "
                f"{settings.steepness:g}), and be numbers; some did not. Lower learning_rate, steepness_step or the "
                "weights of heavy rows, or train with scale='feature'."
            )
        counts = self.group.total([counts for counts, _, _ in found], self.shape)
        log_likelihood, weight = self.group.total([numbers for _, *numbers in found], (2,))
        result = torch.from_numpy(counts).to(self.state.leaves)
        return EpochResult(result, float(-log_likelihood / weight), all_finite(self.state.splits))
