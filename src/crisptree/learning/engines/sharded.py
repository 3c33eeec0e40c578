"""Engines of process groups: gradients of all shards, summed deterministically, and their schedule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.data.rows import ArrayRows
from crisptree.equations.annealing import SLOPE, damped_steepness
from crisptree.equations.em import node_masses, responsibilities
from crisptree.equations.routing import log_branch_probabilities, log_likelihoods, log_path_probabilities
from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.engines.base import DivergenceError, Doubles, EpochResult, all_finite
from crisptree.learning.engines.cuda_graphs import on_device, recorded
from crisptree.learning.engines.native_engine import LEAVES, Hyperplanes, NativeEngine
from crisptree.learning.engines.torch_engine import TorchEngine, add_penalty_gradient
from crisptree.learning.options import EpochSettings, Plan
from crisptree.learning.samples import Groups, Samples
from crisptree.splits import AbstractSplits

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


VALUES_AT_ONCE = 2**26
"""A step goes through its rows in pieces of about so many values."""


class Tasks(NamedTuple):
    """Of some tasks: the cell (shard and group) and the group, where its rows begin in the order and how many they are,
    and what their weights are multiplied by, in the loss and in the counts.  Six (t,)
    """

    cell: Tensor
    group: Tensor
    begin: Tensor
    length: Tensor
    in_loss: Tensor
    in_counts: Tensor


@dataclass(frozen=True, eq=False)
class Layout:
    """The tasks of all steps after each other; of each step where they begin and end, and the groups that it moves.

    Their number is filled up to a power of two by tasks without rows: a graph can be replayed for as many tasks only.
    """

    whole: Tensor
    factors: Tensor
    bounds: list[tuple[int, int]]
    active: list[Tensor | None]
    longest: int

    @classmethod
    def of(cls, schedule: Schedule, like: Tensor) -> Layout:
        """The layout of a schedule, where ``like`` lies and with its precision."""
        groups, device = schedule.groups, like.device
        first_rows = np.cumsum([0, *(len(own.rows) for own in groups.own)])
        starts = np.array([start + first for start, first in zip(groups.starts, first_rows, strict=False)])
        whole: list[Any] = []
        factors: list[Any] = []
        bounds, active, n_tasks, longest = [], [], 0, 1
        for step in schedule.iter_steps():
            shard, place = np.nonzero(step.end > step.begin)
            group = step.active[place]
            if len(shard):
                begin = starts[shard, group] + step.begin[shard, place]
                lines = [shard * groups.n_groups + group, group, begin, (step.end - step.begin)[shard, place]]
                more = (1 << (len(shard) - 1).bit_length()) - len(shard)
                whole.append(np.pad(np.stack(lines), ((0, 0), (0, more))))
                factors.append(np.pad(np.stack([step.in_loss[place], step.in_counts[place]]), ((0, 0), (0, more))))
            here = whole[-1].shape[1] if len(shard) else 0
            bounds.append((n_tasks, n_tasks + here))
            n_tasks, longest = n_tasks + here, max(longest, step.longest)
            moves_all = len(step.active) == groups.n_groups
            active.append(None if moves_all else torch.from_numpy(step.active).to(device))
        numbers = np.concatenate([np.zeros((4, 0), dtype=np.int64), *whole], axis=1)
        weights = np.concatenate([np.zeros((2, 0)), *factors], axis=1)
        return cls(torch.from_numpy(numbers).to(device), torch.from_numpy(weights).to(like), bounds, active, longest)

    def tasks(self, step: int) -> tuple[Tensor, Tensor]:
        """Those of a step.  (4, t), (2, t)"""
        begin, end = self.bounds[step]
        return self.whole[:, begin:end], self.factors[:, begin:end]


class BatchedGradients:
    """By torch, on any device."""

    def __init__(self, state: Any, rows: ShardRows, schedule: Schedule, *, fresh: bool) -> None:
        self.state, self.schedule, self.plan = state, schedule, schedule.plan
        self.samples, self.n_shards = rows.joint, len(rows.shards)
        self.leader = TorchEngine(state, rows.none, self.plan, fresh=fresh)  # its optimiser and penalties
        like, splits = rows.none.weight, state.splits
        self.layout, groups = Layout.of(schedule, like), schedule.groups
        wide = len(groups.sizes) * (1 if state.is_whole_tree else groups.n_groups)
        width = max(rows.none.n_features, state.structure.n_nodes)
        self.piece = max(1, VALUES_AT_ONCE // (wide * width))  # of all shards: it must not depend on who has which
        self.lanes = torch.arange(self.layout.longest, device=like.device)
        self.firsts = np.cumsum([0, *map(len, rows.shards)]).tolist()[:-1]
        none = torch.zeros(0, dtype=torch.long, device=like.device)
        self.rows = torch.cat([none, *(own.rows + first for own, first in zip(groups.own, self.firsts, strict=True))])
        self.cell = torch.cat([none, *(own.group + n * groups.n_groups for n, own in enumerate(groups.own))])
        self.order = self.rows.clone()
        shape = (splits.n_splits, rows.none.n_features + 2)
        self.sums = torch.zeros(shape, dtype=torch.int64, device=like.device)
        self.units = torch.from_numpy(rows.units).to(like.device)
        self.scaled_units = torch.empty_like(self.units)
        self.steepness = torch.zeros((), dtype=torch.float64, device=like.device)
        self.leader.adam.learning_rate = torch.zeros_like(self.steepness)
        self.leaves = state.leaves.detach().clone()
        self.before = None if fresh else splits.detached()
        n_cells = self.n_shards * groups.n_groups
        n_leaves, n_statistics = len(state.leaves), rows.none.target.n_statistics
        self.counts = torch.zeros(n_cells, n_leaves, n_statistics, dtype=torch.float64, device=like.device)
        self.found = torch.zeros(n_cells, 2, dtype=torch.float64, device=like.device)
        self.worst = torch.zeros((), dtype=self.sums.dtype, device=like.device)
        self.graphs: Graphs | None = None
        self.n_epochs = 0

    def optimizer_state(self) -> dict[str, Tensor]:
        return self.leader.optimizer_state()

    def epoch(self, settings: EpochSettings, seed: int, group: ProcessGroup) -> ShardSums:
        with on_device(self.samples.device):
            self._begin(settings, seed)
            for step in range(len(self.layout.bounds)):
                tasks = self.layout.tasks(step)
                if self.graphs is None:
                    self._add(*tasks)
                    group.reduce_rows(self.sums, self.layout.active[step])
                    self._move()
                else:
                    self.graphs.add(*tasks)
                    group.reduce_rows(self.sums, self.layout.active[step])
                    self.graphs.move()
            self.n_epochs += 1
            if self.n_epochs == 1 and self.plan.epochs > 2 and self.samples.device.type == "cuda":
                self.graphs = Graphs(self)  # the first epoch has chosen algorithms and memory
            return self._end()

    @torch.no_grad()
    def _begin(self, settings: EpochSettings, seed: int) -> None:
        assert isinstance(self.leader.adam.learning_rate, Tensor)
        self.steepness.fill_(settings.steepness)
        self.leader.adam.learning_rate.fill_(settings.learning_rate)
        self.scaled_units.copy_(self.units * 2.0 ** np.floor(np.log2(settings.steepness)))
        self.leaves.copy_(self.state.leaves)
        for place in (self.counts, self.found, self.worst):
            place.zero_()
        if self.before is not None:
            for name, value in self.before.parameters.items():
                value.copy_(self.state.splits.parameters[name])
        if self.schedule.is_shuffled:
            self.order.copy_(self._order(seed))

    def _order(self, seed: int) -> Tensor:
        """The rows of every cell in an order of the seed and the shard; on CUDA one that is drawn and sorted there."""
        device, groups = self.samples.device, self.schedule.groups
        if device.type == "cpu":
            own = [groups.order(place, seed, shuffled=True) + first for place, first in enumerate(self.firsts)]
            return torch.cat([self.rows[:0], *own])
        keys = [self.cell[:0].double()]
        for number, rows in enumerate(groups.own, start=groups.first):
            state = int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0] >> np.uint64(1))
            random = torch.Generator(device).manual_seed(state)
            keys.append(torch.rand(len(rows.rows), dtype=torch.float64, device=device, generator=random))
        return self.rows[torch.argsort(torch.cat(keys) + self.cell)]

    @torch.no_grad()
    def _add(self, whole: Tensor, factors: Tensor) -> None:
        """What the tasks of a step add to the sums, the counts and the log-likelihood."""
        if not whole.shape[1]:
            return
        tasks = Tasks(*whole, *factors)
        pieces = [self._part(tasks, lanes) for lanes in self.lanes.split(self.piece)]
        gradient, reached = pieces[0]
        for more, there in pieces[1:]:
            gradient, reached = gradient + more, reached | there
        units = (gradient.double() / self.scaled_units).round()
        is_good = (units.abs() < MOST_UNITS).all(dim=2)
        number = reached * torch.where(is_good, 1, OUT_OF_BOUNDS)
        found = torch.cat([units.where(is_good[..., None], 0.0).long(), number[..., None]], dim=2)
        if self.state.is_whole_tree:
            self.sums += found.sum(dim=0)
        else:
            self.sums.index_add_(0, tasks.group, found[:, 0])

    def _part(self, tasks: Tasks, lanes: Tensor) -> tuple[Tensor, Tensor]:
        """Gradients of some rows of every task, and the splits that they reach.  (t, m, n_features + 1), (t, m)

        m are all splits of a tree, or the one of the task's stump.
        """
        samples, state, target = self.samples, self.state, self.samples.target
        shape = (len(tasks.cell), len(lanes))
        here = lanes < tasks.length[:, None]
        last = (tasks.length - 1).clamp_min(0)[:, None]
        rows = self.order[(tasks.begin[:, None] + lanes.minimum(last)).reshape(-1)]
        x, y = samples.batch(rows).reshape(*shape, -1), samples.y[rows]
        weight = samples.weight[rows].reshape(shape) * here
        place = None if state.is_whole_tree else tasks.group.repeat_interleave(len(lanes), output_size=len(rows))
        scores, steepness = self._scores(state.splits, x, tasks.group)
        basis = (scores, steepness) if self.before is None else self._scores(self.before, x, tasks.group)
        log_paths = log_path_probabilities(basis[0], state.structure, basis[1])
        evidence = target.evidence(self.leaves, y, place)
        h = responsibilities(log_paths, evidence)
        once = (weight * tasks.in_counts[:, None]).reshape(-1)
        each = target.tally(y, once, torch.arange(len(rows), device=rows.device), len(rows)).reshape(*shape, -1)
        counts = h.reshape(*shape, -1).mT @ each.to(h)
        self.counts.index_add_(0, tasks.cell, counts.double())
        likelihood = (once * log_likelihoods(log_paths, evidence)).reshape(shape).double().sum(dim=1)
        both = torch.stack([likelihood, once.reshape(shape).double().sum(dim=1)], dim=1)
        self.found.index_add_(0, tasks.cell, both)

        left, right = node_masses(h, state.structure)
        enough = (left + right >= self.plan.mass_threshold) & here.reshape(-1, 1)
        mass = (weight * tasks.in_loss[:, None]).reshape(-1, 1) * enough
        # Not torch.sigmoid, whose bits hang on where in memory a number lies.
        on_left, on_right = (log.exp() for log in log_branch_probabilities(scores, steepness))
        wrong = steepness * mass * (left * on_right - right * on_left)
        wrong = wrong.to(x).reshape(*shape, -1)
        gradient = torch.cat([wrong.mT @ x, wrong.sum(dim=1)[..., None]], dim=2)
        return gradient, enough.reshape(*shape, -1).any(dim=1)

    def _scores(self, splits: AbstractSplits, x: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
        """Scores of the rows of all tasks and the steepness of their splits.  (t · r, m), and what multiplies it"""
        weight, bias = (splits.parameters[name].detach() for name in ("weight", "bias"))
        damped = self._damped(splits) if self.plan.input_noise else None
        if self.state.is_whole_tree:
            scores = torch.baddbmm(bias.expand(len(x), 1, -1), x, weight.T.expand(len(x), -1, -1))
            return scores.reshape(-1, len(bias)), self.steepness if damped is None else damped
        scores = torch.bmm(x, weight[group][:, :, None])[..., 0] + bias[group][:, None]
        own = self.steepness if damped is None else damped[group][:, None].expand_as(scores).reshape(-1, 1)
        return scores.reshape(-1, 1), own

    def _damped(self, splits: AbstractSplits) -> Tensor:
        """γ of every split under noise on the inputs.  (n_splits,)"""
        return damped_steepness(self.steepness, self.plan.input_noise, splits.squared_norms()).detach()

    def _move(self) -> None:
        """The step of all splits that some shard has rows for; sums are zero again."""
        adam, splits = self.leader.adam, self.state.splits
        there, number = self.sums[:, :-1], self.sums[:, -1]
        weight, bias = (splits.parameters[name].detach() for name in ("weight", "bias"))
        gradient = (there * self.scaled_units).to(weight)
        by_name = {"weight": gradient[:, :-1], "bias": gradient[:, -1]}
        if self.plan.input_noise:
            # The steepness falls with the norm: −(π/8) σ² γ² Σ g f, where Σ g f follows from the sums themselves.
            damped = self._damped(splits)
            along = torch.linalg.vecdot(weight, by_name["weight"]) + bias * by_name["bias"]
            pull = -SLOPE * self.plan.input_noise**2 * damped.square() * along
            by_name["weight"] = by_name["weight"] + pull[:, None].to(weight) * weight
        adam.zero_grad()
        adam.add([by_name[name] for name in adam.parameters])
        add_penalty_gradient(splits, self.plan, self.leader.shares)
        adam.step(number > 0)
        self.leader.project_constraints()
        self.worst.copy_(torch.maximum(self.worst, number.max()))
        self.sums.zero_()

    def _end(self) -> ShardSums:
        n_groups, n_leaves = self.schedule.groups.n_groups, self.counts.shape[1]
        by_shard = self.counts.reshape(self.n_shards, n_groups, n_leaves, -1).transpose(1, 2)
        counts = by_shard.reshape(self.n_shards, n_leaves, -1).cpu().numpy()
        found = self.found.reshape(self.n_shards, n_groups, 2).sum(dim=1).tolist()
        is_good = int(self.worst) < OUT_OF_BOUNDS
        return ShardSums([(part, *numbers) for part, numbers in zip(counts, found, strict=True)], is_good)


class Graphs:
    """The launches of a step, recorded: one graph for every number of tasks, and one for the move."""

    def __init__(self, gradients: BatchedGradients) -> None:
        self.inputs: dict[int, tuple[Tensor, Tensor]] = {}
        self.adding: dict[int, torch.cuda.CUDAGraph] = {}
        for step in range(len(gradients.layout.bounds)):
            whole, factors = gradients.layout.tasks(step)
            n_tasks = whole.shape[1]
            if n_tasks and n_tasks not in self.inputs:
                self.inputs[n_tasks] = whole.clone(), factors.clone()
                self.adding[n_tasks] = recorded(partial(gradients._add, *self.inputs[n_tasks]))
        self.moving = recorded(gradients._move)

    def add(self, whole: Tensor, factors: Tensor) -> None:
        n_tasks = whole.shape[1]
        if n_tasks:
            for input_, value in zip(self.inputs[n_tasks], (whole, factors), strict=True):
                input_.copy_(value)
            self.adding[n_tasks].replay()

    def move(self) -> None:
        self.moving.replay()


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
