"""Which rows of which shards the steps of an epoch take: every batch has its share of every shard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.learning.backends.base import Doubles
from crisptree.learning.batches import Groups
from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.plan import Plan

Integers = npt.NDArray[np.int64]


class Turn(NamedTuple):
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
    """The rows of every group in the shards of this process, and how many rows all shards have of each.

    Parameters
    ----------
    own : list of Groups
        Of the shards here; a group may have no rows in one.
    sizes : ndarray of shape (n_shards, n_groups)
        Of all shards.
    first : int
        The number of the first shard here.
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

    def turns(self) -> Iterator[Turn]:
        """All steps, in order."""
        groups, share = self.groups, 1 / self.groups.all.passes(self.plan)
        here = slice(groups.first, groups.first + len(groups.own))
        for active, batch, whole in groups.all.turns(self.plan):
            begin, end = groups.ranges(active, batch, whole)
            lengths = end - begin
            in_loss = 1 / (self.mean_weight[active] * np.maximum(lengths.sum(axis=0), 1))
            yield Turn(active, begin[here], end[here], int(lengths.max()), in_loss, share[active])
