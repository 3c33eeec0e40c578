"""The only epoch loop: E-step, steps on the splits, leaf tables, once per epoch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from crisptree.learning.checkpoint import Chance, Keepsake, Leaves, Memory, Progress
from crisptree.learning.engines import Steps, Trainee, quickest
from crisptree.learning.engines.base import DivergenceError
from crisptree.learning.history import EpochRecord, Listener
from crisptree.learning.journal import Arrays, Page
from crisptree.learning.options import Plan
from crisptree.learning.samples import NoOrders, Orders, RowOrders, Samples
from crisptree.learning.sources.base import SummedRows
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


class EpochEnd(NamedTuple):
    """What ``train`` reports after an epoch, the first one being 0; with a score where there is a judge."""

    epoch: int
    steepness: float
    loss: float
    score: float | None = None


class Judge(Keepsake, Protocol):
    """Looks at a trainee after every epoch."""

    def __call__(self, steepness: float) -> float | None:
        """A score of it as it is now."""

    @property
    def is_done(self) -> bool:
        """Whether training ends here (early stopping)."""


class Ends:
    """The ends of all epochs so far, which listeners hear again when a training is resumed."""

    def __init__(self) -> None:
        self.ends: list[EpochEnd] = []

    def kept(self) -> Arrays:
        scores = [math.nan if end.score is None else end.score for end in self.ends]
        numbers = {"steepness": [end.steepness for end in self.ends], "loss": [end.loss for end in self.ends]}
        return {f"ends.{name}": np.array(values) for name, values in {**numbers, "score": scores}.items()}

    def restore(self, page: Page) -> None:
        steepness, loss = (page.take(f"ends.{name}", np.zeros(page.epochs)) for name in ("steepness", "loss"))
        found = page.arrays.get("ends.score")
        scores = page.take("ends.score", np.zeros(page.epochs)) if found is None or not np.isnan(found).all() else None
        self.ends = [
            EpochEnd(
                epoch, float(steepness[epoch]), float(loss[epoch]), None if scores is None else float(scores[epoch])
            )
            for epoch in range(page.epochs)
        ]


def train(
    trainee: Trainee,
    samples: Samples | SummedRows,
    plan: Plan,
    *,
    generator: torch.Generator,
    orders: RowOrders | None = None,
    on_epoch: Callable[[EpochEnd], None] | None = None,
    name: str = "training",
    judge: Judge | None = None,
    remembered: Tensor | None = None,
) -> None:
    """Train splits and leaf tables for ``plan.epochs`` epochs, in place, or until the judge is done.

    Where the fit keeps a journal, epochs that are in it are taken from there.

    Parameters
    ----------
    trainee : Trainee
        A batch of stumps or a whole tree.
    samples : Samples or SummedRows
        The training rows.
    plan : Plan
        Every number of the phase.
    generator : torch.Generator
        Shuffles the batches, where there is more than one, and shifts images that are to be.
    orders : RowOrders, optional
        The order of the rows in every epoch, where it is not the generator's.
    on_epoch : callable, optional
        Hears of every epoch.
    name : str
        The phase, for error messages.
    judge : Judge, optional
        Scores the trainee after every epoch, and may end the training.
    remembered : Tensor, optional
        Leaf statistics of earlier rows, which are added to those of every epoch.
    """
    algorithm = ALGORITHMS[plan.algorithm]
    fresh, in_memory = algorithm.fresh_responsibilities, isinstance(samples, Samples)
    orders = orders or (Orders(trainee.groups, plan, generator) if in_memory else NoOrders(generator))
    ends, progress = Ends(), Progress(name, plan.epochs)
    steps: Steps | None = None
    if isinstance(samples, SummedRows) and not progress.is_over:
        steps = samples.steps(trainee, plan, generator, fresh=fresh)
    elif isinstance(samples, Samples) and not progress.is_over:
        steps = quickest(trainee, samples, plan)(trainee, samples, plan, fresh=fresh)
    parts: list[Keepsake] = [Memory("splits", trainee.splits.parameters), Leaves(trainee), ends]
    parts += [Chance(orders.generators, trainee.splits)]
    parts += [part for part in (judge, trainee.models) if part is not None]
    progress.restore(parts)
    hear = (lambda end: None) if on_epoch is None else on_epoch
    for end in ends.ends:
        hear(end)
    if steps is None:
        return
    working: list[Keepsake] = [orders, Memory("optimiser", steps.memory())]
    progress.restore(working)
    for epoch in range(progress.epochs, plan.epochs):
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
            if remembered is not None:
                counts = counts + remembered
            trainee.leaves = _updated(samples.target, counts, trainee.leaves, plan.leaf_prior)
        end = EpochEnd(epoch, pace.steepness, loss, None if judge is None else judge(pace.steepness))
        ends.ends.append(end)
        hear(end)
        is_done = judge is not None and judge.is_done
        progress.keep(epoch + 1, parts, working, is_over=is_done)
        if is_done:
            break


def reporting(on_epoch: Listener | None, **phase: Any) -> Callable[[EpochEnd], None] | None:
    """Turn the ends of epochs into records for a callback. ``phase`` are the fields that all of its records share."""
    if on_epoch is None:
        return None

    def report(end: EpochEnd) -> None:
        numbers: dict[str, Any] = {"epoch": end.epoch + 1, "steepness": end.steepness, "loss": end.loss}
        on_epoch(EpochRecord(**phase, **numbers, validation_score=end.score))

    return report


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
