"""The steps of an epoch on shards: every batch has its share of every shard, and all processes move alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.learning.backends.base import EpochResult, all_finite
from crisptree.learning.batches import Groups, Update
from crisptree.learning.plan import Pace, Plan
from crisptree.learning.sharded.gradients import Rows, gradients_for
from crisptree.learning.sharded.team import Team
from crisptree.learning.train import DivergenceError

Integers = npt.NDArray[np.int64]


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
    def of(cls, own: list[Groups], n_groups: int, n_shards: int, first: int, team: Team) -> ShardedGroups:
        """Ask all processes for the sizes of their groups."""
        sizes = np.zeros((n_shards, n_groups), dtype=np.int64)
        for number, groups in enumerate(own, start=first):
            sizes[number] = groups.host_sizes
        team.reduce(torch.from_numpy(sizes))
        return cls(own, sizes, first)

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


class ShardedSteps:
    """Steps whose gradients all shards add to."""

    def __init__(
        self,
        trainee: Any,
        groups: ShardedGroups,
        rows: Rows,
        plan: Plan,
        team: Team,
        generator: torch.Generator,
        *,
        fresh: bool,
    ) -> None:
        self.trainee, self.groups, self.plan, self.team, self.generator = trainee, groups, plan, team, generator
        self.gradients = gradients_for(trainee, rows, plan)(trainee, rows, plan, fresh=fresh)
        n_groups = groups.sizes.shape[1]
        weights = [
            torch.zeros(n_groups, dtype=torch.float64, device=samples.device).index_add_(
                0, own.group, samples.weight[own.rows].double()
            )
            for samples, own in zip(rows.shards, groups.own, strict=True)
        ]
        self.mean_weight = team.total(weights, (n_groups,)) / groups.sizes.sum(axis=0)
        self.share = 1 / groups.all.passes(plan)
        self.n_columns = trainee.n_places * rows.none.target.n_statistics

    def memory(self) -> dict[str, Tensor]:
        return self.gradients.memory()

    def epoch(self, pace: Pace, order: Tensor) -> EpochResult:
        """All steps; the order of the rows is drawn here."""
        groups, plan = self.groups, self.plan
        seed = int(torch.randint(2**62, (), generator=self.generator))
        several = bool(groups.all.n_batches(plan).max() > 1)  # else their order means nothing
        orders = [groups.order(place, seed, shuffled=several) for place in range(len(groups.own))]
        self.gradients.begin(pace)
        for active, batch, whole in groups.all.turns(plan):
            begin, end = groups.ranges(active, batch, whole)
            lengths = (end - begin).sum(axis=0)
            in_loss, in_counts = 1 / (self.mean_weight[active] * np.maximum(lengths, 1)), self.share[active]
            for place, rows in enumerate(orders):
                first, last = begin[groups.first + place], end[groups.first + place]
                there = np.flatnonzero(last > first)
                if len(there):
                    starts = groups.starts[place][active[there]]
                    update = Update(active[there], starts + first[there], starts + last[there])
                    self.gradients.add(place, rows, update, in_loss[there], in_counts[there])
            self._move(active, pace.steepness)
        found = self.gradients.end()
        shape = (len(self.trainee.leaves), self.n_columns)
        counts = self.team.total([counts for counts, _, _ in found], shape)
        log_likelihood, weight = self.team.total([numbers for _, *numbers in found], (2,))
        result = torch.from_numpy(counts).to(self.trainee.leaves)
        return EpochResult(result, float(-log_likelihood / weight), all_finite(self.trainee.splits))

    def _move(self, active: Integers, steepness: float) -> None:
        """One step on the splits of the active groups, or of the whole tree."""
        sums = self.gradients.sums
        if self.trainee.is_whole_tree or len(active) == len(sums):
            self.team.reduce(sums)
        else:
            index = torch.from_numpy(active).to(sums.device)
            some = sums[index]
            self.team.reduce(some)
            sums[index] = some
        if not self.gradients.move(active):
            raise DivergenceError(
                f"gradients must stay within 2^10 times the largest value of their feature (steepness {steepness:g}), "
                "and be numbers; some did not. Lower learning_rate, steepness_step or the weights of heavy rows, "
                "train with scale='feature', or add them up with sums='plain'."
            )
