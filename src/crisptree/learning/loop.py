"""The only epoch loop: E-step, steps on the splits, leaf tables, once per epoch, by the fastest engine."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from crisptree.learning.engines.base import (
    Checkpointable,
    DivergenceError,
    Engine,
    LeafTableState,
    PartSums,
    Progress,
    RngState,
    SampleEngine,
    TensorState,
    TrainState,
)
from crisptree.learning.engines.cuda_engine import CudaEngine
from crisptree.learning.engines.cuda_graphs import GraphedEngine
from crisptree.learning.engines.cuda_part_sums import CudaPartSums
from crisptree.learning.engines.native_engine import LbfgsEngine, NativeEngine, NativePartSums
from crisptree.learning.engines.torch_engine import TorchEngine, TorchPartSums
from crisptree.learning.history import EpochCallback, EpochRecord
from crisptree.learning.options import LBFGS, Plan
from crisptree.learning.samples import Orders, RowOrders, Samples
from crisptree.learning.sources.base import SummedRows
from crisptree.persistence.checkpoints import Arrays, Record
from crisptree.targets import Target

ENGINES: dict[str, type[SampleEngine]] = {
    "lbfgs": LbfgsEngine,
    "native": NativeEngine,
    "cuda": CudaEngine,
    "graphed": GraphedEngine,
    "torch": TorchEngine,
}
"""By name, in the order in which they are tried."""

PART_SUMS: tuple[type[PartSums], ...] = (NativePartSums, CudaPartSums, TorchPartSums)
"""Engines of a process group, the fastest first; the last one supports everything."""


def select_engine(state: TrainState, samples: Samples, plan: Plan) -> type[SampleEngine]:
    """Return the first engine that supports all of it; L-BFGS has a schedule that no other engine could take."""
    if plan.optimizer == LBFGS and not LbfgsEngine.supports(state, samples, plan):
        raise ValueError(
            "`optimizer` must be 'auto' or 'adam' here: 'lbfgs' needs hyperplanes, class labels or numbers as y, dense "
            "rows in memory, and the compiled kernels."
        )
    return next(engine for engine in ENGINES.values() if engine.supports(state, samples, plan))


@dataclass(frozen=True)
class Algorithm:
    """Sources of the responsibilities and leaf tables of an epoch.

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
    """Report of ``train`` after an epoch, counted from 0, with a score if there is a scorer."""

    epoch: int
    steepness: float
    loss: float
    score: float | None = None


class TreeScorer(Checkpointable, Protocol):
    """Scores a state after every epoch."""

    def __call__(self, steepness: float) -> float | None:
        """Score the current state."""

    @property
    def is_done(self) -> bool:
        """True if training ends here (early stopping)."""


class EpochHistory:
    """Ends of all epochs so far, which are reported again when a training is resumed."""

    def __init__(self) -> None:
        self.ends: list[EpochEnd] = []

    def to_arrays(self) -> Arrays:
        scores = [math.nan if end.score is None else end.score for end in self.ends]
        numbers = {"steepness": [end.steepness for end in self.ends], "loss": [end.loss for end in self.ends]}
        return {f"ends.{name}": np.array(values) for name, values in {**numbers, "score": scores}.items()}

    def restore(self, record: Record) -> None:
        steepness, loss = (record.take(f"ends.{name}", np.zeros(record.epochs)) for name in ("steepness", "loss"))
        found = record.arrays.get("ends.score")
        scores = (
            record.take("ends.score", np.zeros(record.epochs)) if found is None or not np.isnan(found).all() else None
        )
        self.ends = [
            EpochEnd(
                epoch, float(steepness[epoch]), float(loss[epoch]), None if scores is None else float(scores[epoch])
            )
            for epoch in range(record.epochs)
        ]


def train(
    state: TrainState,
    samples: Samples | SummedRows,
    plan: Plan,
    *,
    generator: torch.Generator,
    orders: RowOrders | None = None,
    on_epoch: Callable[[EpochEnd], None] | None = None,
    name: str = "training",
    scorer: TreeScorer | None = None,
    prior_counts: Tensor | None = None,
) -> None:
    """Train splits and leaf tables for ``plan.epochs`` epochs, in place, or until the scorer is done.

    Epochs in the checkpoint of a fit are restored from it.

    Parameters
    ----------
    state : TrainState
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
        Called at the end of every epoch.
    name : str
        The phase, for error messages.
    scorer : TreeScorer, optional
        Scores the state after every epoch, and may end the training.
    prior_counts : Tensor, optional
        Leaf statistics of earlier rows, which are added to those of every epoch.
    """
    algorithm = ALGORITHMS[plan.algorithm]
    fresh, in_memory = algorithm.fresh_responsibilities, isinstance(samples, Samples)
    orders = orders or (Orders(state.groups, plan, generator) if in_memory else RowOrders([generator]))
    history, progress = EpochHistory(), Progress(name, plan.epochs)
    engine: Engine | None = None
    if isinstance(samples, SummedRows) and not progress.is_over:
        engine = samples.make_engine(state, plan, generator, fresh=fresh)
    elif isinstance(samples, Samples) and not progress.is_over:
        engine = select_engine(state, samples, plan)(state, samples, plan, fresh=fresh)
    parts: list[Checkpointable] = [TensorState("splits", state.splits.parameters), LeafTableState(state), history]
    parts += [RngState(orders.generators, state.splits)]
    parts += [part for part in (scorer, state.models) if part is not None]
    progress.restore(parts)
    notify = (lambda end: None) if on_epoch is None else on_epoch
    for end in history.ends:
        notify(end)
    if engine is None:
        return
    working: list[Checkpointable] = [orders, TensorState("optimiser", engine.optimizer_state())]
    progress.restore(working)
    for epoch in range(progress.epochs, plan.epochs):
        settings = plan.settings_at(epoch)
        with samples.shift(generator):
            counts, loss, finite = engine.epoch(settings, orders.next())
        if not (finite and math.isfinite(loss)):
            raise make_divergence_error(loss, finite, name, epoch, settings.steepness)
        if state.models is not None:
            loss -= state.models.offset
            state.leaves = state.models.refit(counts)
        else:
            if algorithm.hard_leaves:
                counts = state.hard_counts(samples)
            if prior_counts is not None:
                counts = counts + prior_counts
            state.leaves = _update_leaves(samples.target, counts, state.leaves, plan.leaf_prior)
        end = EpochEnd(epoch, settings.steepness, loss, None if scorer is None else scorer(settings.steepness))
        history.ends.append(end)
        notify(end)
        is_done = scorer is not None and scorer.is_done
        progress.keep(epoch + 1, parts, working, is_over=is_done)
        if is_done:
            break


def make_reporter(on_epoch: EpochCallback | None, **phase: Any) -> Callable[[EpochEnd], None] | None:
    """Turn the ends of epochs into records for a callback. ``phase`` are the fields that all of its records share."""
    if on_epoch is None:
        return None

    def report(end: EpochEnd) -> None:
        numbers: dict[str, Any] = {"epoch": end.epoch + 1, "steepness": end.steepness, "loss": end.loss}
        on_epoch(EpochRecord(**phase, **numbers, validation_score=end.score))

    return report


def _update_leaves(target: Target, counts: Tensor, leaves: Tensor, prior: float) -> Tensor:
    statistics = counts.reshape(-1, target.n_statistics)
    tables = target.update(statistics, leaves.reshape(-1, target.n_values), prior)
    side_by_side = (part.reshape(len(leaves), -1, part.shape[1]) for part in (tables, statistics))
    return target.pool_variances(*side_by_side).reshape_as(leaves)


def make_divergence_error(loss: float, finite: bool, name: str, epoch: int, steepness: float) -> DivergenceError:
    """Return the error of a training whose loss or weights did not stay finite; the first epoch is 0."""
    found = f"the loss became {loss:g}" if finite else "weights of splits became infinite or not a number"
    return DivergenceError(
        f"{name} stopped in epoch {epoch + 1} (steepness {steepness:g}): all must stay finite, but {found}. "
        "Lower learning_rate, steepness_step or the penalties, or train with scale='feature'."
    )
