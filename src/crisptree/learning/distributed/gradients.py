"""What shards add to the gradients of a step, and the step itself when those of all shards are there.

Sums are (n_splits, n_features + 2): weights, bias, and how many shards had rows at a split. They are integers of some
unit, so that no order of the shards changes them.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from crisptree.data.rows import ArrayRows
from crisptree.learning.backends.base import Doubles
from crisptree.learning.backends.native_leaves import LEAVES
from crisptree.learning.backends.native_steps import Hyperplanes, NativeSteps
from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.distributed.schedule import Schedule, Turn
from crisptree.learning.plan import Pace, Plan
from crisptree.learning.samples import Samples

MOST_UNITS = 2.0**50
OUT_OF_BOUNDS = 2**32
"""What a shard counts for whose gradients are not finite, or more than so many units."""

FINENESS = 40
"""A gradient of γ · the largest value of a feature · the largest weight of a row is so many bits long."""


class ShardRows:
    """What the steps need of some shards: their rows, none for a process that only follows, and the units of sums."""

    def __init__(self, shards: list[Samples], none: Samples, units: Doubles) -> None:
        self.shards, self.none, self.units = shards, none, units

    @cached_property
    def joint(self) -> Samples:
        """The rows of all shards here, after each other. The shards become views of it: nothing is held twice."""
        everything = torch.cat([self.none.rows.arrays[0], *(shard.rows.arrays[0] for shard in self.shards)])
        start = 0
        for place, shard in enumerate(self.shards):
            rows = ArrayRows(everything[start : start + len(shard)])
            self.shards[place] = Samples(rows, shard.y, shard.weight, shard.target, shard.n_jobs)
            start += len(shard)
        y, weight = (torch.cat([getattr(part, name) for part in (self.none, *self.shards)]) for name in ("y", "weight"))
        return Samples(ArrayRows(everything), y, weight, self.none.target, self.none.n_jobs)


def gradient_units(largest: Doubles, heaviest: float) -> Doubles:
    """The unit of every weight's gradient, and of the bias's, for γ from 1 to 2.  (n_features + 1,)

    A row adds γ x w to a gradient at most, w being its weight beside the mean of its batch, so that the sum of a batch
    is no more than γ max|x| times how much heavier than others its rows are. 2¹⁰ times as much would be told.
    """
    bounds = np.append(largest, 1.0) * max(heaviest, 1.0)
    _, exponent = np.frexp(bounds)
    return np.where(bounds > 0, np.ldexp(1.0, np.maximum(exponent - FINENESS, -1000)), 1.0)


class Found(NamedTuple):
    """Of every shard here the leaf statistics, log-likelihood and weight of an epoch; whether gradients were in bounds.

    They are added up over all processes, and so is whether they were.
    """

    parts: list[tuple[Any, float, float]]
    is_good: bool


class Gradients(Protocol):
    """Who computes them."""

    def __init__(self, trainee: Any, rows: ShardRows, schedule: Schedule, *, fresh: bool) -> None: ...

    def memory(self) -> dict[str, Tensor]:
        """What the optimiser remembers."""

    def epoch(self, pace: Pace, seed: int, group: ProcessGroup) -> Found:
        """All steps of an epoch, its rows in an order of the seed."""


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
