"""What the phases of a training on shards share: the rows, the team, and the epoch loop."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.learning.backends import Trainee
from crisptree.learning.batches import NoOrders
from crisptree.learning.constraints import Held
from crisptree.learning.history import EpochRecord, Listener
from crisptree.learning.plan import Plan
from crisptree.learning.samples import Samples
from crisptree.learning.sharded.gradients import Rows, units_of
from crisptree.learning.sharded.groups import ShardedGroups
from crisptree.learning.sharded.steps import ShardedSteps
from crisptree.learning.sharded.team import Team
from crisptree.learning.spec import Spec
from crisptree.learning.train import ALGORITHMS, EpochEnd, Judge, train
from crisptree.splits import SplitKind
from crisptree.targets import Target

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Work:
    """A training on shards.

    Parameters
    ----------
    shards : list of Samples
        The scaled rows of the shards here.
    none : Samples
        No rows, but for all that is known of them.
    first, n_shards : int
        The number of the first shard here, and of all.
    on_epoch : callable
        Hears of every epoch, in every process alike.
    sample : Samples, optional
        Some rows of all shards, the same in every process.
    held : Held, optional
        What the weights of splits may be.
    """

    spec: Spec
    kind: SplitKind
    target: Target
    shards: list[Samples]
    none: Samples
    first: int
    n_shards: int
    team: Team
    generator: torch.Generator
    on_epoch: Listener
    sample: Samples | None = None
    held: Held | None = None

    @property
    def signs(self) -> Tensor | None:
        return None if self.held is None else self.held.signs

    @cached_property
    def rows(self) -> Rows:
        """What kernels need of the shards, with the units of their gradients."""
        n = self.none.n_features
        largest = np.zeros(n + 1)
        for samples in filter(len, self.shards):
            for rows in samples.pieces():
                there = samples.batch(rows).abs().amax(dim=0).double().cpu().numpy()
                largest[:n] = np.maximum(largest[:n], there)
                largest[n] = max(largest[n], float(samples.weight[rows].max()))
        largest = self.team.extremes(largest)
        return Rows(self.shards, self.none, units_of(largest[:n], float(largest[n])), self.team.exact)

    def train(
        self,
        trainee: Any,
        groups: ShardedGroups,
        plan: Plan,
        *,
        phase: str,
        level: int,
        n_splits: int,
        judge: Judge | None = None,
        heard: bool = True,
    ) -> None:
        """The epochs of a phase, of which listeners hear."""
        limits = self.spec.limits
        n_levels = level if phase == "finetune" else None if limits.max_leaf_nodes else limits.max_depth

        def report(end: EpochEnd) -> None:
            numbers = level, n_levels, n_splits, end.epoch + 1, plan.epochs
            self.on_epoch(EpochRecord(phase, *numbers, end.steepness, end.loss, end.score))

        fresh = ALGORITHMS[plan.algorithm].fresh_responsibilities
        train(
            cast(Trainee, trainee),
            self.none,
            plan,
            generator=self.generator,
            orders=NoOrders(self.generator),
            on_epoch=report if heard else None,
            name=f"growth at level {level}" if phase == "grow" else "finetuning",
            judge=judge,
            steps=ShardedSteps(trainee, groups, self.rows, plan, self.team, self.generator, fresh=fresh),
        )
