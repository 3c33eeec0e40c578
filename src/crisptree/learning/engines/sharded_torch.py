"""Gradients of all shards by torch, in one operation each: for CUDA, and where the native kernels are not there.

A *task* is the rows of one shard and one group in a step. Tasks stand side by side, (tasks, rows, features), as long as
the longest, so that one product gives the gradients of all of them. On CUDA a step is two recorded graphs: gradients,
and, once all processes have added theirs, the move. The host reads nothing before the epoch ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from crisptree.equations.em import node_masses, responsibilities
from crisptree.equations.noise import SLOPE, damped_steepness
from crisptree.equations.routing import log_branch_probabilities, log_likelihoods, log_path_probabilities
from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.engines.cuda_graphs import on_device, recorded
from crisptree.learning.engines.shard_schedule import MOST_UNITS, OUT_OF_BOUNDS, Schedule, ShardRows, ShardSums
from crisptree.learning.engines.torch_engine import TorchEngine, add_penalty_gradient
from crisptree.learning.options import EpochSettings
from crisptree.splits import AbstractSplits

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
