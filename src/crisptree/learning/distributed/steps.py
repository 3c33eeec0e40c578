"""The steps of an epoch on shards: gradients of all of them are added up, and all processes move alike."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from crisptree.learning.backends.base import EpochResult, all_finite
from crisptree.learning.distributed.batched import BatchedGradients
from crisptree.learning.distributed.gradients import Gradients, NativeGradients, ShardRows
from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.distributed.schedule import Schedule, ShardedGroups
from crisptree.learning.plan import Pace, Plan
from crisptree.learning.train import DivergenceError


def gradients_for(trainee: Any, rows: ShardRows, plan: Plan) -> type[Gradients]:
    """By the native kernel, where it can."""
    return NativeGradients if NativeGradients.supports(trainee, rows, plan) else BatchedGradients


class ShardedSteps:
    """Steps whose gradients all shards add to."""

    def __init__(
        self,
        trainee: Any,
        groups: ShardedGroups,
        rows: ShardRows,
        plan: Plan,
        group: ProcessGroup,
        generator: torch.Generator,
        *,
        fresh: bool,
    ) -> None:
        self.trainee, self.group, self.generator = trainee, group, generator
        weights = [
            torch.zeros(groups.n_groups, dtype=torch.float64, device=samples.device).index_add_(
                0, own.group, samples.weight[own.rows].double()
            )
            for samples, own in zip(rows.shards, groups.own, strict=True)
        ]
        mean_weight = group.total(weights, (groups.n_groups,)) / groups.sizes.sum(axis=0)
        schedule = Schedule(groups, plan, mean_weight)
        self.gradients = gradients_for(trainee, rows, plan)(trainee, rows, schedule, fresh=fresh)
        self.shape = len(trainee.leaves), trainee.n_places * rows.none.target.n_statistics

    def memory(self) -> dict[str, Tensor]:
        return self.gradients.memory()

    def epoch(self, pace: Pace, order: Tensor) -> EpochResult:
        """All steps; the order of the rows is drawn here."""
        seed = int(torch.randint(2**62, (), generator=self.generator))
        found, is_good = self.gradients.epoch(pace, seed, self.group)
        if not is_good:
            raise DivergenceError(
                "gradients must stay within 2^10 times the largest value of their feature (steepness "
                f"{pace.steepness:g}), and be numbers; some did not. Lower learning_rate, steepness_step or the "
                "weights of heavy rows, or train with scale='feature'."
            )
        counts = self.group.total([counts for counts, _, _ in found], self.shape)
        log_likelihood, weight = self.group.total([numbers for _, *numbers in found], (2,))
        result = torch.from_numpy(counts).to(self.trainee.leaves)
        return EpochResult(result, float(-log_likelihood / weight), all_finite(self.trainee.splits))
