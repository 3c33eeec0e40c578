"""The only epoch loop: E-step, steps on the splits, leaf tables, once per epoch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from crisptree.learning.backends import Trainee, quickest
from crisptree.learning.batches import Orders
from crisptree.learning.plan import Plan
from crisptree.learning.samples import Samples
from crisptree.targets import Target


@dataclass(frozen=True)
class Algorithm:
    """Where the responsibilities and the leaf tables of an epoch come from.

    All algorithms take the same step on the splits, one weighted logistic regression per split. With
    responsibilities from the parameters at the start of the epoch it is EM's M-step; with responsibilities from
    the current parameters its gradient is the log-likelihood's.
    """

    fresh_responsibilities: bool
    hard_leaves: bool


ALGORITHMS = {
    "em": Algorithm(fresh_responsibilities=False, hard_leaves=False),
    "likelihood": Algorithm(fresh_responsibilities=True, hard_leaves=False),
    "alternating": Algorithm(fresh_responsibilities=True, hard_leaves=True),
}


class DivergenceError(ValueError):
    """A loss became infinite or not a number."""


class EpochEnd(NamedTuple):
    """What ``train`` reports after an epoch, the first one being 0."""

    epoch: int
    steepness: float
    loss: float


def train(
    trainee: Trainee,
    samples: Samples,
    plan: Plan,
    *,
    generator: torch.Generator,
    on_epoch: Callable[[EpochEnd], None] | None = None,
    name: str = "training",
) -> None:
    """Train splits and leaf tables for ``plan.epochs`` epochs, in place.

    Parameters
    ----------
    trainee : Trainee
        A batch of stumps or a whole tree.
    samples : Samples
        The training rows.
    plan : Plan
        Every number of the phase.
    generator : torch.Generator
        Shuffles the batches, where there is more than one, and shifts images that are to be.
    on_epoch : callable, optional
        Hears of every epoch.
    name : str
        The phase, for error messages.
    """
    algorithm = ALGORITHMS[plan.algorithm]
    steps = quickest(trainee, samples, plan)(trainee, samples, plan, fresh=algorithm.fresh_responsibilities)
    orders = Orders(trainee.groups, plan, generator)
    for epoch in range(plan.epochs):
        pace = plan.pace(epoch)
        with samples.shifted(generator):
            counts, loss, finite = steps.epoch(pace, orders.next())
        if not (finite and math.isfinite(loss)):
            raise _diverged(loss, finite, name, epoch, pace.steepness)
        if trainee.models is not None:
            loss -= trainee.models.offset
            trainee.leaves = trainee.models.refit(counts)
        else:
            if algorithm.hard_leaves:
                counts = trainee.hard_counts(samples)
            trainee.leaves = _updated(samples.target, counts, trainee.leaves, plan.leaf_prior)
        if on_epoch is not None:
            on_epoch(EpochEnd(epoch, pace.steepness, loss))


def _updated(target: Target, counts: Tensor, leaves: Tensor, prior: float) -> Tensor:
    statistics = counts.reshape(-1, target.n_statistics)
    tables = target.update(statistics, leaves.reshape(-1, target.n_values), prior)
    side_by_side = (part.reshape(len(leaves), -1, part.shape[1]) for part in (tables, statistics))
    return target.drawn_together(*side_by_side).reshape_as(leaves)


def _diverged(loss: float, finite: bool, name: str, epoch: int, steepness: float) -> DivergenceError:
    found = f"the loss became {loss:g}" if finite else "weights of splits became infinite or not a number"
    return DivergenceError(
        f"{name} stopped in epoch {epoch + 1} (steepness {steepness:g}): all must stay finite, but {found}. "
        "Lower learning_rate, steepness_step or the penalties, or train with scale='feature'."
    )
