"""The only epoch loop, and finetuning, which trains all splits and leaves of a tree jointly by it.

An epoch is an E-step, steps on the splits by the fastest engine, and new leaf tables. In finetuning every row is routed
probabilistically to all leaves.

Large trees on noisy rows are finetuned from above: first their upper levels, whose leaves stand for all that lies
below, then twice as many, and in the end the whole tree. A soft tree of thousands of splits costs a row hundreds of
them, and most of what it learns that way is where its upper splits should lie. Few levels learn that better, from few
splits. The rest then lies along few paths of a row, and where splits separate single rows a coarser threshold on its
mass loses nothing; see docs/results/training-speed.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.learning.engines.base import (
    Checkpointable,
    DivergenceError,
    Engine,
    EpochResult,
    LeafTableState,
    Models,
    Orders,
    PartSums,
    PendingEpoch,
    Progress,
    RngState,
    RowOrders,
    SampleEngine,
    TensorState,
    TrainState,
    array_of,
)
from crisptree.learning.engines.cuda_engine import CudaEngine
from crisptree.learning.engines.cuda_graphs import GraphedEngine
from crisptree.learning.engines.cuda_part_sums import CudaPartSums
from crisptree.learning.engines.native_engine import LbfgsEngine, NativeEngine, NativePartSums
from crisptree.learning.engines.torch_engine import TorchEngine, TorchPartSums
from crisptree.learning.history import EpochCallback, EpochRecord, StopTraining
from crisptree.learning.linear_leaves import LeafModels, can_train, linear_score
from crisptree.learning.options import LBFGS, Plan
from crisptree.learning.samples import RowSource, Samples, StoppableCallback, SummedRows
from crisptree.persistence.checkpoints import Arrays, Record
from crisptree.splits import AbstractSplits
from crisptree.structure import TreeStructure
from crisptree.targets import Target
from crisptree.tree import Tree

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
    samples: RowSource,
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
    samples : RowSource
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
        Leaf statistics of previous rows, which are added to those of every epoch.
    """
    fresh, in_memory = ALGORITHMS[plan.algorithm].fresh_responsibilities, isinstance(samples, Samples)
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
    # The order of the next epoch may be drawn while a device is busy, unless something between them draws or stops.
    draws_ahead = in_memory and scorer is None and progress.store is None and not samples.draws_shifts
    order: Tensor | None = None
    for epoch in range(progress.epochs, plan.epochs):
        settings = plan.settings_at(epoch)
        with samples.shift(generator):
            result = engine.epoch(settings, orders.next() if order is None else order)
        order = None
        is_pending = isinstance(result, PendingEpoch) and state.models is None
        if not is_pending:
            _check(result, name, epoch, settings.steepness)
        offset = 0.0 if state.models is None else state.models.offset  # of the models that the epoch trained with
        state.leaves = _make_leaves(state, samples, plan, result.counts, prior_counts)
        if is_pending:
            if draws_ahead and epoch + 1 < plan.epochs:
                order = orders.next()
            _check(result, name, epoch, settings.steepness)
        validation_score = None if scorer is None else scorer(settings.steepness)
        end = EpochEnd(epoch, settings.steepness, result.loss - offset, validation_score)
        history.ends.append(end)
        notify(end)
        is_done = scorer is not None and scorer.is_done
        progress.keep(epoch + 1, parts, working, is_over=is_done)
        if is_done:
            break


def _check(result: EpochResult | PendingEpoch, name: str, epoch: int, steepness: float) -> None:
    if not (result.finite and math.isfinite(result.loss)):
        raise make_divergence_error(result.loss, result.finite, name, epoch, steepness)


def make_reporter(on_epoch: EpochCallback | None, **phase: Any) -> Callable[[EpochEnd], None] | None:
    """Turn the ends of epochs into records for a callback. ``phase`` are the fields that all of its records share."""
    if on_epoch is None:
        return None

    def report(end: EpochEnd) -> None:
        numbers: dict[str, Any] = {"epoch": end.epoch + 1, "steepness": end.steepness, "loss": end.loss}
        on_epoch(EpochRecord(**phase, **numbers, validation_score=end.score))

    return report


def _make_leaves(
    state: TrainState, samples: RowSource, plan: Plan, counts: Tensor, prior_counts: Tensor | None
) -> Tensor:
    """Return the leaf tables after an epoch with these leaf statistics."""
    if state.models is not None:
        return state.models.refit(counts)
    if ALGORITHMS[plan.algorithm].hard_leaves:
        counts = state.hard_counts(samples)
    if prior_counts is not None:
        counts = counts + prior_counts
    return _update_leaves(samples.target, counts, state.leaves, plan.leaf_prior)


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


MIN_SPLITS_OF_LARGE_TREE = 1024
"""A tree of so many splits, more than ten levels can have, is large; smaller ones are cheap while they are soft."""

MAX_ROWS_PER_SPLIT = 4
"""Large trees with more rows to a split part them by what they are, soon become steep, and are trained at once."""

COARSE_THRESHOLD_FACTOR = 50.0
"""Factor of ``mass_threshold`` after the first upper levels are finetuned."""


class FinetuningStage(NamedTuple):
    """Levels that are finetuned, and their options."""

    levels: int
    plan: Plan


def list_stages(plan: Plan, structure: TreeStructure, n_rows: int) -> list[FinetuningStage]:
    """Return the stages of finetuning, the whole tree last.

    A tree that is not large, or that has parted its rows without splitting nearly all of them, has no other stage.

    >>> [stage.levels for stage in list_stages(Plan(upper_levels=4), TreeStructure.balanced(11), n_rows=5_000)]
    [4, 8, 11]
    """
    whole, depth, n_splits = replace(plan, upper_levels=None), structure.depth, structure.n_splits
    if plan.upper_levels is None or n_splits < MIN_SPLITS_OF_LARGE_TREE or n_rows > MAX_ROWS_PER_SPLIT * n_splits:
        return [FinetuningStage(depth, whole)]
    coarse = replace(whole, mass_threshold=min(COARSE_THRESHOLD_FACTOR * plan.mass_threshold, 1.0))
    found = [FinetuningStage(plan.upper_levels, whole)]
    while found[-1].levels < depth:
        found.append(FinetuningStage(min(2 * found[-1].levels, depth), coarse))
    return found


@dataclass(frozen=True, eq=False)
class UpperLevels:
    """The upper levels of a tree as a tree of their own.

    Parameters
    ----------
    whole : Tree
        The large tree.
    tree : Tree
        Its upper levels; the tables of its leaves come from the rows that reach them.
    splits : list of int
        Which split of the whole each of its splits is.
    """

    whole: Tree
    tree: Tree
    splits: list[int]

    @classmethod
    def of(cls, whole: Tree, stage: FinetuningStage, count: Callable[[Tree], Tensor]) -> UpperLevels:
        """Return those of a stage.

        ``count`` gives what the rows that reach each leaf add up to.  (n_leaves, n_statistics)
        """
        structure, nodes = whole.structure.truncate(stage.levels)
        splits, ends = nodes[: structure.n_splits].tolist(), nodes[structure.n_splits :]
        below = whole.structure.means_below(whole.leaves.detach().cpu().double().numpy(), np.ones(len(whole.leaves)))
        tables = torch.from_numpy(below[ends]).to(whole.leaves)  # they stay where no row comes
        tree = replace(whole, structure=structure, splits=whole.splits.select(splits), leaves=tables)
        tables = tree.target.update(count(tree).to(tables), tables, stage.plan.leaf_prior)
        return cls(whole, replace(tree, leaves=tables), splits)

    def put_back(self, trained: Tree) -> Tree:
        """Return the whole tree with the trained upper splits."""
        order: npt.NDArray[np.int64] = np.arange(self.whole.structure.n_splits)
        order[self.splits] = len(order) + np.arange(len(self.splits))
        splits = AbstractSplits.concatenate([self.whole.splits, trained.splits])
        return replace(self.whole, splits=splits.select(order.tolist()))


class WholeTree:
    """A tree in training: one group that holds all rows."""

    is_whole_tree = True
    n_stumps = 1

    def __init__(
        self,
        tree: Tree,
        samples: RowSource,
        zeros: Tensor | None = None,
        signs: Tensor | None = None,
        leaf_penalty: float | None = None,
        row_weight: float = 1.0,
    ) -> None:
        self.zeros, self.signs = zeros, signs
        self.models: Models | None = None
        self.structure = tree.structure
        self.splits = tree.splits.trainable()
        self.leaves = tree.leaves
        self.target = tree.target_name
        self.groups = samples.as_one_group()
        self.samples = samples
        self.rows: RowSource = samples
        self.tables = tree.leaves  # where leaves are constant, or were before they had models
        if leaf_penalty is not None:
            assert isinstance(samples, Samples)
            models = LeafModels(tree.structure, samples, leaf_penalty, row_weight)
            leaf = samples.all_leaves(tree).cpu().numpy()
            self.models, self.rows, self.leaves = models, models.samples, models.begin(leaf)

    @cached_property
    def penalty_shares(self) -> Tensor:
        """The part of all rows that visits each split before the training, that of one row at least.

        The loss is a mean over all rows, of which a deep split sees few; a penalty that did not shrink with their share
        would dominate deep splits.
        """
        counts = self.structure.sums_below(self.samples.hard_counts(self.tree()).double().cpu().numpy())
        visits = self.samples.target.weight(counts)
        shares = np.maximum(visits[: self.structure.n_splits] / visits[0], 1 / len(self.samples))
        return torch.from_numpy(shares).to(self.samples.device)

    def scores(self, splits: AbstractSplits, x: Tensor, group: Tensor) -> Tensor:
        return splits(x)

    def stump_index(self, group: Tensor) -> None:
        """Return None: one tree for all rows."""

    def tree(self) -> Tree:
        """Return the tree as it stands now."""
        leaves = self.leaves if self.models is None else self.tables
        return Tree(self.structure, self.splits.detach(), leaves.detach().clone(), self.target)

    def hard_counts(self, samples: RowSource) -> Tensor:
        return samples.hard_counts(self.tree()).to(self.leaves)


class TrainedTree(NamedTuple):
    """A probabilistic tree and its final steepness γ.

    ``record`` is that of the last finetuning epoch of the tree; None without finetuning.
    """

    tree: Tree
    steepness: float
    record: EpochRecord | None = None


def finetune(
    tree: Tree,
    samples: RowSource,
    plan: Plan,
    *,
    generator: torch.Generator,
    on_epoch: EpochCallback | None = None,
    validation: RowSource | None = None,
    patience: int | None = None,
    zeros: Tensor | None = None,
    signs: Tensor | None = None,
    leaf_penalty: float | None = None,
    row_weight: float = 1.0,
    trains_models: bool = True,
    prior_counts: Tensor | None = None,
) -> TrainedTree:
    """Train the whole tree from where it stands; of a large one the upper levels first, if the plan requires it.

    Parameters
    ----------
    tree : Tree
        Usually the greedy tree; it is left as it is.
    samples : RowSource
        The training rows.
    plan : Plan
        Options of the phase.
    generator : torch.Generator
        Shuffles the batches.
    on_epoch : callable, optional
        Called with a record of every epoch.
    validation : Samples, optional
        Rows on which the deterministic tree is scored after every epoch.
    patience : int, optional
        Early stopping: end after so many epochs without a higher validation score, and return the tree of the epoch
        with the highest (the first such), the start included.
    zeros, signs : Tensor, optional
        Constraints of the weights; see ``TrainState``.
    leaf_penalty, row_weight : float, optional
        λ of linear models in the leaves, which are trained alternately with the splits, and the mean weight of a row in
        the units of λ.
    trains_models : bool, default=True
        False where linear models come after the splits, as they do where rows are summed over: leaves then train and
        score as constants.
    prior_counts : Tensor of shape (n_leaves, n_statistics), optional
        Leaf statistics of previous rows, which are added to those of every epoch of the whole tree.
    """
    start = TrainedTree(tree, plan.steepness_at(0))
    if tree.structure.n_splits == 0 or plan.epochs == 0:
        return start
    *upper_stages, (_, plan) = list_stages(plan, tree.structure, len(samples))
    for stage in upper_stages:
        tree, stopped_at = _finetune_upper_levels(tree, samples, stage, generator, on_epoch, zeros, signs)
        if stopped_at is not None:
            return TrainedTree(tree, stopped_at)
    score: Callable[[Tree, Any, Any], float] = hard_score
    trains_models = trains_models and isinstance(samples, Samples)
    if trains_models and leaf_penalty is not None:
        score = partial(linear_score, penalty=leaf_penalty, row_weight=row_weight)
    if leaf_penalty is not None and not (trains_models and can_train(tree.structure, samples)):
        leaf_penalty = None  # the models come once the splits are trained; growth may have seen residuals
        tree = replace(tree, leaves=tree.hard_tables(samples.hard_counts(tree).to(tree.leaves)))
    state = WholeTree(tree, samples, zeros, signs, leaf_penalty, row_weight)
    best = None
    if validation is not None:
        best = BestTree(start, state.tree, lambda tree: score(tree, samples, validation), patience)
    callback, depth = StoppableCallback(on_epoch), tree.structure.depth
    report = make_reporter(
        callback,
        phase="finetune",
        level=depth,
        n_levels=depth,
        n_splits=tree.structure.n_splits,
        n_epochs=plan.epochs,
    )
    common: dict[str, Any] = {"generator": generator, "on_epoch": report, "name": "finetuning"}
    steepness = plan.final_steepness
    try:
        train(state, state.rows, plan, scorer=best, prior_counts=prior_counts, **common)
    except StopTraining:
        steepness = plan.steepness_at(callback.history[-1].epoch - 1)
    if patience is not None and best is not None:
        return best.with_record(callback.history)
    return TrainedTree(state.tree(), steepness, callback.history[-1] if callback.history else None)


def _finetune_upper_levels(
    tree: Tree,
    samples: RowSource,
    stage: FinetuningStage,
    generator: torch.Generator,
    on_epoch: EpochCallback | None,
    zeros: Tensor | None,
    signs: Tensor | None,
) -> tuple[Tree, float | None]:
    """Return the tree with its upper levels finetuned, and the steepness at which a callback stopped the training."""
    upper, callback = UpperLevels.of(tree, stage, samples.hard_counts), StoppableCallback(on_epoch)
    own_zeros = None if zeros is None else zeros[upper.splits]
    common: dict[str, Any] = {"generator": generator, "on_epoch": callback, "zeros": own_zeros, "signs": signs}
    trained = finetune(upper.tree, samples, stage.plan, **common)
    return upper.put_back(trained.tree), trained.steepness if callback else None


class BestTree:
    """The tree of the epoch with the highest score of the deterministic tree on validation rows, the first such.

    The start is among them; ``now`` gives the tree as it stands, and ``scored`` scores one. ``patience`` is the number
    of epochs without a higher score after which training is done; None trains on.
    """

    def __init__(
        self,
        start: TrainedTree,
        now: Callable[[], Tree],
        scored: Callable[[Tree], float],
        patience: int | None = None,
    ) -> None:
        self.tree, self.now, self.scored, self.patience = start, now, scored, patience
        self.score = scored(start.tree)
        self.n_epochs = self.best_epoch = 0

    def __call__(self, steepness: float) -> float:
        now = self.now()
        score = self.scored(now)
        self.n_epochs += 1
        if score > self.score:
            self.tree, self.score, self.best_epoch = TrainedTree(now, steepness), score, self.n_epochs
        return score

    @property
    def is_done(self) -> bool:
        """True if the score has not improved for ``patience`` epochs."""
        return self.patience is not None and self.n_epochs - self.best_epoch >= self.patience

    def with_record(self, records: Sequence[EpochRecord]) -> TrainedTree:
        """Return the best tree with the record of its epoch."""
        return self.tree._replace(record=records[self.best_epoch - 1]) if self.best_epoch else self.tree

    def to_arrays(self) -> Arrays:
        if not self.best_epoch:
            return {}
        tree = self.tree.tree
        numbers = np.array([self.score, self.tree.steepness, self.best_epoch])
        arrays = {"best.numbers": numbers, "best.leaves": array_of(tree.leaves)}
        return arrays | {f"best.splits.{name}": array_of(value) for name, value in tree.splits.parameters.items()}

    def restore(self, record: Record) -> None:
        self.n_epochs = record.epochs
        if "best.numbers" not in record.arrays:
            return
        score, steepness, epoch = record.take("best.numbers", np.zeros(3)).tolist()
        tree = self.now()

        def found(name: str, like: Tensor) -> Tensor:
            return torch.from_numpy(record.take(f"best.{name}", array_of(like)).copy()).to(like.device)

        parameters = {name: found(f"splits.{name}", value) for name, value in tree.splits.parameters.items()}
        tree = replace(tree, splits=tree.splits.replace_parameters(parameters), leaves=found("leaves", tree.leaves))
        self.tree, self.score, self.best_epoch = TrainedTree(tree, steepness), score, int(epoch)


def hard_score(tree: Tree, samples: RowSource, validation: RowSource) -> float:
    """Score the deterministic tree with leaf tables of ``samples`` on ``validation``, as a weighted mean."""
    return validation.score(tree, tree.hard_tables(samples.hard_counts(tree).to(tree.leaves)))
