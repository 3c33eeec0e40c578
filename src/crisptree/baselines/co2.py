"""CO2: oblique stumps that minimise a convex–concave bound of their loss (Norouzi, Collins, Fleet & Kohli 2015).

For a stump with leaves g = ±1 the bound of a row is max_g [g wᵀx + loss(leaf g, y)] − |wᵀx|; see ``bound``. Stochastic
gradients lower it, ‖w‖² ≤ ν keeps it loose enough to have any. All leaves of a level train side by side.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from crisptree.baselines.bound import NUS, Paths, losses
from crisptree.baselines.bound_steps import Children, Floats, bound_steps
from crisptree.baselines.random_oblique import random_splits
from crisptree.baselines.task import Task
from crisptree.baselines.thresholds import GAIN_DIGITS
from crisptree.equations.routing import goes_right
from crisptree.learning.samples import Groups
from crisptree.learning.stumps import Stumps
from crisptree.splits import AbstractSplits, ObliqueSplits


@torch.no_grad()
def co2_splits(task: Task, groups: Groups) -> ObliqueSplits:
    """The best random split of every group of rows, improved; where that fails to gain, as it was.

    With ``task.nu`` None each ν of ``NUS`` has its try, and the highest information gain on the leaf's rows wins.
    """
    best = random_splits(task, groups)
    highest = _gains(best, task, groups)
    start = best
    for nu in NUS if task.nu is None else (task.nu,):
        trained = trained_stumps(start, task, groups, nu)
        gains = _gains(trained, task, groups)
        best = _where(gains > highest, trained, best)
        highest = torch.maximum(gains, highest)
    return best


def trained_stumps(start: ObliqueSplits, task: Task, groups: Groups, nu: float) -> ObliqueSplits:
    """Stumps after ``plan.epochs`` epochs; leaf tables are counted anew before each."""
    samples, plan = task.samples, task.plan
    splits = start.trainable()
    steps = bound_steps(splits, samples, StumpWays(len(groups.sizes)), nu)
    n_cells = len(groups.sizes) * samples.target.n_values
    for epoch in range(plan.epochs):
        counts = Stumps(splits, samples.weight.new_zeros(2, n_cells), groups).hard_counts(samples)
        steps.begin(losses(counts.reshape(-1, samples.target.n_values)), plan.pace(epoch).learning_rate)
        for rows, group in groups.epoch(plan, task.generator):
            steps.take(rows, group)
    return splits.detached()


class StumpWays:
    """Rows that begin each at the stump of its group; the left leaves of all stumps come before the right ones."""

    def __init__(self, n_stumps: int) -> None:
        self.n_stumps = n_stumps
        numbers = np.arange(n_stumps, dtype=np.int32)
        self.left: Children = ~numbers
        self.right: Children = ~(n_stumps + numbers)

    def paths(self, splits: ObliqueSplits, x: Tensor, y: Tensor, group: Tensor, loss: Tensor) -> Paths:
        return stump_paths(splits, x, y, group, loss.reshape(2, self.n_stumps, -1))

    def worst(self, loss: Floats) -> Floats:
        sides = loss.reshape(2, self.n_stumps, -1)
        return np.concatenate([sides.max(axis=0), loss])


def stump_paths(splits: ObliqueSplits, x: Tensor, y: Tensor, group: Tensor, loss: Tensor) -> Paths:
    """What the bound asks, for rows at the stump of their group.

    ``loss`` (2, n_groups, n_classes) is that of the left and the right leaves.
    """
    scores = splits.at(x, group)
    turn = goes_right(scores).long()
    return Paths(group[:, None], scores[:, None], loss[turn, group, y], loss[1 - turn, group, y][:, None])


def _gains(splits: AbstractSplits, task: Task, groups: Groups) -> Tensor:
    """The information gain of every split, −1 for those that leave too little on a side.  (n_groups,)"""
    samples = task.samples
    leaves = samples.weight.new_zeros(2, len(groups.sizes) * samples.target.n_values)
    outcome = Stumps(splits, leaves, groups).outcome(samples, task.least.rows, task.least.weight)
    gains = np.where(outcome.accepted, outcome.gains.round(GAIN_DIGITS), -1.0)
    return torch.from_numpy(gains).to(samples.device)


def _where(condition: Tensor, these: ObliqueSplits, others: ObliqueSplits) -> ObliqueSplits:
    weights, biases = zip(these.hyperplanes(), others.hyperplanes(), strict=True)
    return ObliqueSplits(torch.where(condition[:, None], *weights), torch.where(condition, *biases))
