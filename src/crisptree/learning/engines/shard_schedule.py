"""Which rows of which shards a step takes, and in which units shards add up what they find.

Every batch has its share of every shard. Gradient sums are (n_splits, n_features + 2): weights, bias, and how many
shards had rows at a split. They are integers of some unit, so that no order of the shards changes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.data.rows import ArrayRows
from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.engines.base import Doubles
from crisptree.learning.options import EpochSettings, Plan
from crisptree.learning.samples import Groups, Samples

Integers = npt.NDArray[np.int64]


class ShardStep(NamedTuple):
    """One step: the groups that take it, and which of their rows in the shards here.

    ``begin`` and ``end`` are (shards here, groups), counted from the first row of the group in the shard, and
    ``longest`` is the most rows that any shard of any process has of a group. The weights of a group's rows are
    multiplied by ``in_loss`` and by ``in_counts``.
    """

    active: Integers
    begin: Integers
    end: Integers
    longest: int
    in_loss: Doubles
    in_counts: Doubles


class ShardedGroups:
    """The rows of every group in the shards of this process, and the ``sizes`` (n_shards, n_groups) in all shards.

    A group may have no rows in a shard. ``first`` is the number of this process's first shard.
    """

    def __init__(self, own: list[Groups], sizes: Integers, first: int) -> None:
        self.own, self.sizes, self.first = own, sizes, first
        self.starts = [np.cumsum(groups.host_sizes) - groups.host_sizes for groups in own]
        self.all = Groups(torch.zeros(0, dtype=torch.long), torch.from_numpy(sizes.sum(axis=0)))

    @classmethod
    def of(cls, own: list[Groups], n_groups: int, n_shards: int, first: int, group: ProcessGroup) -> ShardedGroups:
        """Ask all processes for the sizes of their groups."""
        sizes = np.zeros((n_shards, n_groups), dtype=np.int64)
        for number, groups in enumerate(own, start=first):
            sizes[number] = groups.host_sizes
        group.reduce(torch.from_numpy(sizes))
        return cls(own, sizes, first)

    @property
    def n_groups(self) -> int:
        return self.sizes.shape[1]

    def ranges(self, active: Integers, batch: Integers, whole: Integers) -> tuple[Integers, Integers]:
        """Where a batch of every active group begins and ends among its rows in every shard.  Two (n_shards, a)

        Rows of a shard that do not divide evenly are in another batch in every shard, so that batches are of one size.
        """
        sizes, n_shards = self.sizes[:, active], len(self.sizes)
        late = np.arange(n_shards)[:, None] * whole // n_shards
        return (batch * sizes + late) // whole, ((batch + 1) * sizes + late) // whole

    def order(self, place: int, seed: int, *, shuffled: bool) -> Tensor:
        """The rows of one of the shards here, group after group, each group's in an order of the seed and the shard."""
        groups = self.own[place]
        if not shuffled:
            return groups.rows
        random = np.random.default_rng([seed, self.first + place]).random(len(groups.rows))
        order = np.argsort(random + groups.group.cpu().numpy())
        return groups.rows[torch.from_numpy(order).to(groups.rows.device)]


@dataclass(frozen=True, eq=False)
class Schedule:
    """The steps of every epoch of a phase. ``mean_weight`` is that of each group's rows in all shards."""

    groups: ShardedGroups
    plan: Plan
    mean_weight: Doubles

    @property
    def is_shuffled(self) -> bool:
        """Whether the order of rows means anything: where one batch holds them all, it does not."""
        return bool(self.groups.all.n_batches(self.plan).max() > 1)

    def iter_steps(self) -> Iterator[ShardStep]:
        """All steps, in order."""
        groups, share = self.groups, 1 / self.groups.all.passes(self.plan)
        here = slice(groups.first, groups.first + len(groups.own))
        for active, batch, whole in groups.all.iter_steps(self.plan):
            begin, end = groups.ranges(active, batch, whole)
            lengths = end - begin
            in_loss = 1 / (self.mean_weight[active] * np.maximum(lengths.sum(axis=0), 1))
            yield ShardStep(active, begin[here], end[here], int(lengths.max()), in_loss, share[active])


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


class ShardSums(NamedTuple):
    """Of every shard here the leaf statistics, log-likelihood and weight of an epoch; whether gradients were in bounds.

    They are added up over all processes, and so is whether they were.
    """

    parts: list[tuple[Any, float, float]]
    is_good: bool


class Gradients(Protocol):
    """Who computes them."""

    def __init__(self, state: Any, rows: ShardRows, schedule: Schedule, *, fresh: bool) -> None: ...

    def optimizer_state(self) -> dict[str, Tensor]:
        """What the optimiser remembers."""

    def epoch(self, settings: EpochSettings, seed: int, group: ProcessGroup) -> ShardSums:
        """All steps of an epoch, its rows in an order of the seed."""
