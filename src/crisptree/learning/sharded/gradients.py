"""What shards add to the gradients of a step, and the step itself when those of all shards are there.

Sums are (n_splits, n_features + 2): weights, bias, and how many shards had rows at a split. In whole units (``units``)
no order changes them; a plain sum is one number of the rows' own precision.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.learning.backends.base import Doubles
from crisptree.learning.backends.native_leaves import LEAVES
from crisptree.learning.backends.native_steps import Hyperplanes, NativeSteps
from crisptree.learning.backends.torch_steps import TorchSteps, add_penalty_gradient
from crisptree.learning.batches import Update
from crisptree.learning.plan import Pace, Plan
from crisptree.learning.samples import Samples

MOST_UNITS = 2.0**50
OUT_OF_BOUNDS = 2**32
"""What a shard counts for whose gradients are not finite, or more than so many units."""

FINENESS = 40
"""A gradient of γ · the largest value of a feature · the largest weight of a row is so many bits long."""


class Rows:
    """What the kernels need of some shards: their rows, none for a process that only follows, and the units of sums."""

    def __init__(self, shards: list[Samples], none: Samples, units: Doubles, exact: bool) -> None:
        self.shards, self.none, self.units, self.exact = shards, none, units, exact


def units_of(largest: Doubles, heaviest: float) -> Doubles:
    """The unit of every weight's gradient, and of the bias's, for γ from 1 to 2.  (n_features + 1,)

    A row adds γ x w to a gradient at most, w being its weight beside the mean of its batch, so that the sum of a batch
    is no more than γ max|x| times how much heavier than others its rows are. 2¹⁰ times as much would be told.
    """
    bounds = np.append(largest, 1.0) * max(heaviest, 1.0)
    _, exponent = np.frexp(bounds)
    return np.where(bounds > 0, np.ldexp(1.0, np.maximum(exponent - FINENESS, -1000)), 1.0)


class Gradients(Protocol):
    """Who computes them."""

    sums: Tensor

    def __init__(self, trainee: Any, rows: Rows, plan: Plan, *, fresh: bool) -> None: ...

    def memory(self) -> dict[str, Tensor]:
        """What the optimiser remembers."""

    def begin(self, pace: Pace) -> None:
        """An epoch begins."""

    def add(self, shard: int, order: Tensor, update: Update, in_loss: Doubles, in_counts: Doubles) -> None:
        """What one of the shards here adds to the sums of a step."""

    def move(self, active: npt.NDArray[np.int64]) -> bool:
        """The step; False if gradients were out of bounds. Sums are zero again."""

    def end(self) -> list[tuple[Any, float, float]]:
        """Of every shard here: leaf statistics, log-likelihood and weight of the epoch."""


class NativeGradients:
    """By the native kernel, which adds them up where they arise."""

    def __init__(self, trainee: Any, rows: Rows, plan: Plan, *, fresh: bool) -> None:
        self.trainee, self.plan, self.fresh = trainee, plan, fresh
        self.planes = Hyperplanes(trainee, rows.none, plan)
        shape = (trainee.splits.n_splits, rows.none.n_features + 2)
        self.sums = torch.zeros(shape, dtype=torch.int64 if rows.exact else rows.none.rows.dtype)
        parts = (self.sums.numpy(), None) if rows.exact else (None, self.sums.numpy())
        self.kernels = [self.planes.kernel(samples) for samples in (rows.none, *rows.shards)]
        for kernel in self.kernels:
            kernel.collect(*parts, rows.units)
        self.leaves = LEAVES[type(rows.none.target)](trainee, rows.none)
        self.n_columns = trainee.n_places * rows.none.target.n_statistics

    def memory(self) -> dict[str, Tensor]:
        return self.planes.memory()

    def begin(self, pace: Pace) -> None:
        self.steepness = pace.steepness
        for kernel in self.kernels:
            kernel.learning_rate = pace.learning_rate
            kernel.forget()
        self.before, self.tables = self.planes.before(fresh=self.fresh), self.leaves.tables()
        n = len(self.kernels) - 1
        self.counts = np.zeros((n, len(self.trainee.leaves), self.n_columns))
        self.found = np.zeros((n, 2))

    def add(self, shard: int, order: Tensor, update: Update, in_loss: Doubles, in_counts: Doubles) -> None:
        kernel = self.kernels[shard + 1]
        rows = (order.numpy(), update.active, update.begin, update.end, in_loss, in_counts)
        common = (*rows, *self.before, *self.tables, self.counts[shard], self.steepness)
        if self.trainee.is_whole_tree:
            structure = self.trainee.structure
            step = getattr(kernel, self.leaves.tree)
            result = step(*common, structure.left, structure.right, self.plan.mass_threshold)
        else:
            result = getattr(kernel, self.leaves.stumps)(*common)
        self.found[shard] += result.log_likelihood, result.weight

    def move(self, active: npt.NDArray[np.int64]) -> bool:
        return bool(self.kernels[0].move(self.steepness))

    def end(self) -> list[tuple[Any, float, float]]:
        return [(counts, *found) for counts, found in zip(self.counts, self.found.tolist(), strict=True)]


class TorchGradients:
    """By torch, on any device."""

    def __init__(self, trainee: Any, rows: Rows, plan: Plan, *, fresh: bool) -> None:
        self.trainee, self.plan, self.exact = trainee, plan, rows.exact
        self.leader = TorchSteps(trainee, rows.none, plan, fresh=fresh)
        self.steps = [TorchSteps(trainee, samples, plan, fresh=fresh) for samples in rows.shards]
        like = rows.none.weight
        shape = (trainee.splits.n_splits, rows.none.n_features + 2)
        self.sums = torch.zeros(shape, dtype=torch.int64 if rows.exact else like.dtype, device=like.device)
        self.units = torch.from_numpy(rows.units).to(like.device)

    def memory(self) -> dict[str, Tensor]:
        return self.leader.memory()

    def begin(self, pace: Pace) -> None:
        self.scaled_units = self.units * 2.0 ** np.floor(np.log2(pace.steepness))
        for steps in (self.leader, *self.steps):
            steps.begin(pace)

    def add(self, shard: int, order: Tensor, update: Update, in_loss: Doubles, in_counts: Doubles) -> None:
        steps = self.steps[shard]
        prepared = steps.prepared(update, in_loss, in_counts)
        found, touches = steps.gradients(order, prepared)
        there = torch.cat([found["weight"], found["bias"][:, None]], dim=1)
        reached = torch.zeros(len(self.sums), dtype=torch.bool, device=there.device)
        if self.trainee.is_whole_tree and self.plan.mass_threshold:
            reached |= touches
        else:
            reached[slice(None) if prepared.active is None else prepared.active] = True
        if not self.exact:
            self.sums += torch.cat([there, reached[:, None].to(there)], dim=1)
            return
        units = (there.double() / self.scaled_units).round()
        is_good = (units.abs() < MOST_UNITS).all(dim=1)
        self.sums[:, :-1] += units.where(is_good[:, None], 0.0).long()
        self.sums[:, -1] += reached * torch.where(is_good, 1, OUT_OF_BOUNDS)

    def move(self, active: npt.NDArray[np.int64]) -> bool:
        adam, splits = self.leader.adam, self.trainee.splits
        there, number = self.sums[:, :-1], self.sums[:, -1]
        gradient = (there * self.scaled_units if self.exact else there).to(splits.parameters["weight"])
        adam.zero_grad()
        by_name = {"weight": gradient[:, :-1], "bias": gradient[:, -1]}
        adam.add([by_name[name] for name in adam.parameters])
        add_penalty_gradient(splits, self.plan, self.leader.shares)
        adam.step(number > 0)
        self.leader.put_right()
        is_good = not self.exact or bool((number < OUT_OF_BOUNDS).all())
        self.sums.zero_()
        return is_good

    def end(self) -> list[tuple[Any, float, float]]:
        return [(steps.counts, float(steps.log_likelihood), float(steps.total_weight)) for steps in self.steps]


def gradients_for(trainee: Any, rows: Rows, plan: Plan) -> type[Gradients]:
    """By the native kernel, where it can."""
    return NativeGradients if NativeSteps.supports(trainee, rows.none, plan) else TorchGradients
