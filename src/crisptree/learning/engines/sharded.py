"""Training steps of a process group: their order, and the deterministic sum of the gradients of all shards.

Gradients come from the engines of a single process, which keep those of every shard apart (``PartSums``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.engines.base import (
    DivergenceError,
    Doubles,
    EpochResult,
    Integers,
    Parts,
    PartStep,
    PartSums,
    all_finite,
)
from crisptree.learning.engines.cuda_part_sums import CudaPartSums
from crisptree.learning.engines.native_engine import NativePartSums
from crisptree.learning.engines.torch_engine import TorchPartSums
from crisptree.learning.options import EpochSettings, Plan
from crisptree.learning.samples import Groups, Samples, Update

GRADIENT_BITS = 40
"""Bits of a gradient of γ · the largest value of a feature · the largest weight of a row."""

PART_SUMS: tuple[type[PartSums], ...] = (NativePartSums, CudaPartSums, TorchPartSums)
"""Engines, the fastest first; the last one supports everything."""


def gradient_units(largest: Doubles, heaviest: float) -> Doubles:
    """Return the unit of the gradient of every weight, and of the bias, for γ from 1 to 2.  (n_features + 1,)

    A row adds at most γ x w to a gradient, where w is its weight relative to the mean of its batch, so that the sum of
    a batch is at most γ max|x| times the largest relative weight. Units leave room for 2¹⁰ times as much.
    """
    bounds = np.append(largest, 1.0) * max(heaviest, 1.0)
    _, exponent = np.frexp(bounds)
    return np.where(bounds > 0, np.ldexp(1.0, np.maximum(exponent - GRADIENT_BITS, -1000)), 1.0)


class ShardedGroups:
    """The rows of every group in the shards of this process, and the ``sizes`` (n_shards, n_groups) in all shards.

    A group may have no rows in a shard. ``own`` are numbers of this process's rows, by shard; ``first`` is the number
    of its first shard.
    """

    def __init__(self, own: list[Groups], sizes: Integers, first: int) -> None:
        self.own, self.sizes, self.first = own, sizes, first
        self.all = Groups(torch.zeros(0, dtype=torch.long), torch.from_numpy(sizes.sum(axis=0)))

    @classmethod
    def of(cls, own: list[Groups], n_groups: int, n_shards: int, first: int, group: ProcessGroup) -> ShardedGroups:
        """Gather the sizes of the groups of all processes."""
        sizes = np.zeros((n_shards, n_groups), dtype=np.int64)
        for number, groups in enumerate(own, start=first):
            sizes[number] = groups.host_sizes
        group.reduce(torch.from_numpy(sizes))
        return cls(own, sizes, first)

    def ranges(self, active: Integers, batch: Integers, n_batches: Integers) -> tuple[Integers, Integers]:
        """Return where a batch of every active group begins and ends among its rows in every shard.  Two (n_shards, a)

        The remainder of a division goes to another batch in every shard, so that batches are of one size.
        """
        sizes, n_shards = self.sizes[:, active], len(self.sizes)
        offset = np.arange(n_shards)[:, None] * n_batches // n_shards
        return (batch * sizes + offset) // n_batches, ((batch + 1) * sizes + offset) // n_batches

    def mean_weight(self, samples: Samples, group: ProcessGroup) -> Doubles:
        """Mean weight of every group's rows in all shards.  (n_groups,)"""
        n_groups = self.sizes.shape[1]
        none = torch.zeros(n_groups, dtype=torch.float64, device=samples.device)
        weights = [none.index_add(0, own.group, samples.weight[own.rows].double()) for own in self.own]
        return group.total(weights, (n_groups,)) / self.sizes.sum(axis=0)

    def steps(self, plan: Plan, mean_weight: Doubles) -> list[PartStep]:
        """Return the steps of every epoch, whose positions are those of ``order``."""
        share, here = 1 / self.all.passes(plan), slice(self.first, self.first + len(self.own))
        n_rows = np.cumsum([0, *(len(own.rows) for own in self.own)])
        starts = [np.cumsum(own.host_sizes) - own.host_sizes + n for own, n in zip(self.own, n_rows, strict=False)]
        begins = np.array(starts, dtype=np.int64).reshape(-1, self.sizes.shape[1])
        steps = []
        for active, batch, n_batches in self.all.iter_steps(plan):
            begin, end = self.ranges(active, batch, n_batches)
            lengths = end - begin
            in_loss = 1 / (mean_weight[active] * np.maximum(lengths.sum(axis=0), 1))
            place, part = np.nonzero(lengths[here].T)
            group, first = active[place], begin[here][part, place]
            start = begins[part, group] + first
            update = Update(group * max(len(self.own), 1) + part, start, start + lengths[here][part, place])
            moves = None if len(active) == self.sizes.shape[1] else torch.from_numpy(active)
            steps.append(PartStep(update, in_loss[place], share[group], moves, int(lengths.max())))
        return steps

    def order(self, plan: Plan, seed: int, device: torch.device) -> Tensor:
        """Return the rows of every shard, group after group, each group's in an order of the seed and the shard."""
        rows = torch.cat([torch.zeros(0, dtype=torch.long, device=device), *(own.rows for own in self.own)])
        if self.all.n_batches(plan).max() == 1 or not len(rows):
            return rows  # one batch holds them all: their order means nothing
        n_groups, keys = self.sizes.shape[1], []
        for place, own in enumerate(self.own):
            number = self.first + place
            if device.type == "cpu":
                random = torch.from_numpy(np.random.default_rng([seed, number]).random(len(own.rows)))
            else:
                state = int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0] >> np.uint64(1))
                generator = torch.Generator(device).manual_seed(state)
                random = torch.rand(len(own.rows), dtype=torch.float64, device=device, generator=generator)
            keys.append(random + own.group + place * n_groups)
        key = torch.cat(keys)
        if device.type == "cpu":
            return rows[torch.from_numpy(np.argsort(key.numpy()))]  # several times faster than torch's sort
        return rows[torch.argsort(key)]


class ShardedEngine:
    """Training steps whose gradients are the sum over all shards."""

    def __init__(
        self,
        state: Any,
        groups: ShardedGroups,
        samples: Samples,
        parts: Parts,
        plan: Plan,
        group: ProcessGroup,
        generator: torch.Generator,
        *,
        fresh: bool,
    ) -> None:
        self.state, self.groups, self.plan, self.group, self.generator = state, groups, plan, group, generator
        self.device, self.shape = samples.device, (len(state.leaves), state.n_stumps * samples.target.n_statistics)
        self.steps = groups.steps(plan, groups.mean_weight(samples, group))
        kind = next(kind for kind in PART_SUMS if kind.supports(state, samples, plan))
        self.engine = kind(state, samples, plan, parts, self.steps, fresh=fresh)

    def optimizer_state(self) -> dict[str, Tensor]:
        return self.engine.optimizer_state()

    def epoch(self, settings: EpochSettings, order: Tensor) -> EpochResult:
        """Take all steps; the order of the rows is drawn here."""
        seed, engine = int(torch.randint(2**62, (), generator=self.generator)), self.engine
        engine.begin_parts(settings, self.groups.order(self.plan, seed, self.device))
        engine.run(self._take_steps, is_local=not self.group.communicates)
        if not engine.is_in_bounds():
            raise DivergenceError(
                "gradients must stay within 2^10 times the largest value of their feature (steepness "
                f"{settings.steepness:g}), and be numbers; some did not. Lower learning_rate, steepness_step or the "
                "weights of heavy rows, or train with scale='feature'."
            )
        counts, likelihoods = engine.part_results()
        total = self.group.total(list(counts), self.shape)
        log_likelihood, weight = self.group.total(list(likelihoods), (2,))
        result = torch.from_numpy(total).to(self.state.leaves)
        return EpochResult(result, float(-log_likelihood / weight), all_finite(self.state.splits))

    def _take_steps(self) -> None:
        for number, step in enumerate(self.steps):
            if len(step.update.active):
                self.engine.add(number)
            self.group.reduce_rows(self.engine.sums, None if self.state.is_whole_tree else step.moves)
            self.engine.move()
