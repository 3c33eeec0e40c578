"""The contract of engines: what is trained, its steps, and its state as the arrays of a checkpoint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.options import EpochSettings, Plan
from crisptree.learning.samples import Groups, Samples, Update
from crisptree.persistence.checkpoints import Arrays, CheckpointStore, Record
from crisptree.splits import AbstractSplits
from crisptree.structure import TreeStructure
from crisptree.threads import one_training_at_a_time


class SharedCheckpointStore(CheckpointStore):
    """The store of rank 0, from which all processes get the same records."""

    def __init__(self, store: CheckpointStore | None, group: ProcessGroup) -> None:
        self.store, self.group = store, group

    def next_record(self, name: str, epochs: int) -> Record:
        return self.group.from_first(lambda: self._own.next_record(name, epochs))

    def keep(self, record: Record, epochs: int, *, is_over: bool, arrays: Callable[[], Arrays]) -> None:
        self.group.from_first(lambda: self._own.keep(record, epochs, is_over=is_over, arrays=arrays))

    def write(self, current: Record | None = None) -> None:
        """Do nothing: rank 0 writes when its own store is closed."""

    @property
    def _own(self) -> CheckpointStore:
        assert self.store is not None
        return self.store


_store: ContextVar[CheckpointStore | None] = ContextVar("crisptree_checkpoints", default=None)


@contextmanager
def use_store(store: CheckpointStore) -> Iterator[None]:
    """Keep trainings inside the block in a store, one at a time; all are written if the block ends without an error."""
    before = _store.set(store)
    try:
        with one_training_at_a_time():
            yield
        store.write()
    finally:
        _store.reset(before)


@contextmanager
def keep_shared_checkpoints(group: ProcessGroup) -> Iterator[None]:
    """Keep trainings of all processes in the store of rank 0."""
    with use_store(SharedCheckpointStore(_store.get(), group)):
        yield


class Checkpointable(Protocol):
    """A part of a training whose state a record holds."""

    def to_arrays(self) -> Arrays:
        """Return copies of its state."""

    def restore(self, record: Record) -> None:
        """Return to the state of a record."""


class Progress:
    """Progress of a training of ``n_epochs`` epochs in the store of its fit, if there is one."""

    def __init__(self, name: str, n_epochs: int) -> None:
        self.n_epochs = n_epochs
        self.store = _store.get() if n_epochs else None
        self.record = Record(0, name) if self.store is None else self.store.next_record(name, n_epochs)

    @property
    def epochs(self) -> int:
        """Number of epochs that are done already."""
        return self.record.epochs

    @property
    def is_over(self) -> bool:
        return self.record.is_over

    def restore(self, parts: Sequence[Checkpointable]) -> None:
        """Return parts to their state after those epochs."""
        for part in parts if self.epochs else ():
            part.restore(self.record)

    def keep(
        self,
        epochs: int,
        parts: Sequence[Checkpointable],
        working: Sequence[Checkpointable] = (),
        *,
        is_over: bool = False,
    ) -> None:
        """Record that so many epochs are done; ``working`` are parts that only further epochs need."""
        if self.store is None:
            return
        is_over = is_over or epochs == self.n_epochs

        def arrays() -> Arrays:
            several = (part.to_arrays() for part in (*parts, *(() if is_over else working)))
            return {name: array for one in several for name, array in one.items()}

        self.store.keep(self.record, epochs, is_over=is_over, arrays=arrays)


class TensorState:
    """Tensors that are changed in place, such as weights and moments of an optimiser."""

    def __init__(self, prefix: str, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}

    def to_arrays(self) -> Arrays:
        return {name: array_of(tensor) for name, tensor in self.tensors.items()}

    def restore(self, record: Record) -> None:
        for name, tensor in self.tensors.items():
            tensor.data.copy_(torch.from_numpy(record.take(name, array_of(tensor))))


class LeafTableState:
    """The leaf tables of a ``TrainState``, which are replaced in every epoch."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def to_arrays(self) -> Arrays:
        return {"leaves": array_of(self.state.leaves)}

    def restore(self, record: Record) -> None:
        leaves = self.state.leaves
        self.state.leaves = torch.from_numpy(record.take("leaves", array_of(leaves)).copy()).to(leaves.device)


class RngState:
    """Random generators; torch's own too where splits draw from them, as dropout does."""

    def __init__(self, generators: Sequence[torch.Generator], splits: AbstractSplits | None = None) -> None:
        own: list[torch.Generator] = []
        if splits is not None and splits.is_random:
            own.append(torch.default_generator)
            device = next(iter(splits.parameters.values())).device
            if device.type == "cuda":
                own.append(torch.cuda.default_generators[device.index or 0])
        self.generators = {f"generator.{number}": each for number, each in enumerate((*generators, *own))}

    def to_arrays(self) -> Arrays:
        return {name: generator.get_state().numpy().copy() for name, generator in self.generators.items()}

    def restore(self, record: Record) -> None:
        for name, generator in self.generators.items():
            state = torch.from_numpy(record.take(name, generator.get_state().numpy()).copy())
            try:
                generator.set_state(state)
            except RuntimeError as error:
                raise record.make_error(f"{name!r} is no state of a random generator ({error})") from error


def array_of(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Copy a tensor to the host."""
    return np.array(tensor.detach().cpu().numpy(), order="C")


Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class DivergenceError(ValueError):
    """A loss became infinite or not a number."""


class Models(Checkpointable, Protocol):
    """Models in the leaves of a tree; ``offset`` is the mean log-likelihood that is left out of their tables."""

    offset: float

    def refit(self, counts: Tensor) -> Tensor:
        """Fit the models of all leaves, weighted by responsibilities; return the new tables."""


class TrainState(Protocol):
    """Splits and leaf tables in training, with their rows.

    ``leaves`` is (n_leaves, n_stumps · n_values) and ``structure`` is what one row goes through; a batch of stumps is a
    single stump whose rows have a stump index. ``is_whole_tree`` tells the two apart.

    Where ``zeros`` (of the weights' shape) is True a weight stays zero, and where ``signs`` (one for every feature) is
    +1 or -1 it has that sign or is zero: it is put back after every step, and as Adam moves each number by itself, the
    others never notice.

    Where leaves have linear ``models``, every row is a class of its own and these make the tables; see there.
    """

    models: Models | None
    is_whole_tree: bool
    zeros: Tensor | None
    signs: Tensor | None
    structure: TreeStructure
    splits: AbstractSplits
    leaves: Tensor
    groups: Groups

    @property
    def n_stumps(self) -> int:
        """Number of stumps in the batch, candidates included."""

    @property
    def penalty_shares(self) -> Tensor:
        """The part of the rows, by weight, that each split's own problem has.  (n_splits,), float64"""

    def scores(self, splits: AbstractSplits, x: Tensor, group: Tensor) -> Tensor:
        """Scores of the rows.  (b, n_features), (b,) → (b', structure.n_splits); b' is b times the candidates"""

    def stump_index(self, group: Tensor) -> Tensor | None:
        """Return the index of the stump of every row; None for a whole tree.  (b,) → (b',)"""

    def hard_counts(self, samples: Any) -> Tensor:
        """Return the statistics of the deterministic tree.  (n_leaves, n_stumps · n_statistics)"""


class EpochResult(NamedTuple):
    """Leaf statistics (n_leaves, …), the mean negative log-likelihood, and whether all weights are finite.

    The statistics may be overwritten by the next epoch.
    """

    counts: Tensor
    loss: float
    finite: bool


class Engine(Protocol):
    """The steps of a training, epoch by epoch."""

    def epoch(self, settings: EpochSettings, order: Tensor) -> EpochResult:
        """Take all steps of an epoch, with the rows in this order.

        Responsibilities come from the parameters as they are at its start, or from the current ones.
        """

    def optimizer_state(self) -> dict[str, Tensor]:
        """State of the optimiser, without copies."""


class SampleEngine(Engine, Protocol):
    """Steps that some machine takes."""

    def __init__(self, state: TrainState, samples: Samples, plan: Plan, *, fresh: bool) -> None: ...

    @staticmethod
    def supports(state: TrainState, samples: Samples, plan: Plan) -> bool:
        """Return True if the engine supports these splits, rows and target on this machine."""


@dataclass(frozen=True, eq=False)
class Parts:
    """Consecutive parts of the rows whose gradients are added up in integer units, which no order changes.

    ``cuts`` (n_parts + 1,) are row numbers, ``units`` (n_features + 1,) those of weights and bias for γ from 1 to 2.
    ``n_shards`` is the number of parts of all processes.
    """

    cuts: Integers
    units: Doubles
    n_shards: int

    def __len__(self) -> int:
        return len(self.cuts) - 1


class PartStep(NamedTuple):
    """One step: ranges of rows whose ``active`` number is group · n_parts + part, and their weights in loss and counts.

    ``moves`` are the groups that take it in any process, None for all; ``longest`` is the largest number of rows that
    any part of any process has of a group.
    """

    update: Update
    in_loss: Doubles
    in_counts: Doubles
    moves: Tensor | None
    longest: int


class PartSums(Protocol):
    """Steps whose gradients are kept apart by parts of the rows until ``move``, for sums over several processes.

    ``sums`` (n_splits, n_features + 2) are gradients of weights and bias in units, and how often a split was reached.
    """

    sums: Tensor

    def __init__(
        self, state: Any, samples: Samples, plan: Plan, parts: Parts, steps: list[PartStep], *, fresh: bool
    ) -> None: ...

    @staticmethod
    def supports(state: TrainState, samples: Samples, plan: Plan) -> bool:
        """Return True if the engine supports these splits, rows and target on this machine."""

    def optimizer_state(self) -> dict[str, Tensor]:
        """State of the optimiser from one epoch to the next."""

    def begin_parts(self, settings: EpochSettings, order: Tensor) -> None:
        """Begin an epoch."""

    def run(self, take_steps: Callable[[], None], *, is_local: bool) -> None:
        """Take all steps of an epoch; a local function communicates with no other process, and may be recorded."""

    def add(self, step: int) -> None:
        """Add the gradients of the rows of a step to ``sums``."""

    def move(self) -> None:
        """Move the splits by ``sums``, and set these to zero."""

    def is_in_bounds(self) -> bool:
        """Return True if all gradients of the epoch were finite and within bounds."""

    def part_results(self) -> tuple[Any, Any]:
        """Return leaf statistics, and log-likelihood and weight, of every part.  (n_parts, …), (n_parts, 2)"""


class LossWeights:
    """Weights of rows in the loss of a step.

    Each stump's loss is a mean over its own rows. A batch of light rows takes a small step: they are divided by the
    mean weight of the whole group. Leaf counts are shared out over the passes of an epoch, and stand for all rows where
    an epoch sees a share of them.
    """

    def __init__(self, samples: Samples, groups: Groups, plan: Plan) -> None:
        self.share = groups.host_sizes / groups.count_taken(plan) / groups.passes(plan)
        self.mean_weight = samples.group_mean_weight(groups).cpu().numpy()

    def __call__(self, update: Update) -> tuple[Doubles, Doubles]:
        """Return the factors of each active group's sample weights in the loss and in the leaf counts.  (a,), (a,)"""
        return 1 / (self.mean_weight[update.active] * update.lengths), self.share[update.active]


class StepwiseEngine(ABC):
    """Steps that are taken one after the other."""

    def __init__(self, state: TrainState, samples: Samples, plan: Plan, *, fresh: bool) -> None:
        self.state, self.samples, self.plan, self.fresh = state, samples, plan, fresh

    @cached_property
    def loss_weights(self) -> LossWeights:
        return LossWeights(self.samples, self.state.groups, self.plan)

    def epoch(self, settings: EpochSettings, order: Tensor) -> EpochResult:
        self.begin(settings)
        for update in self.state.groups.schedule(self.plan):
            self.take(order, update, *self.loss_weights(update))
            self.project_constraints()
        return EpochResult(*self.end(), all_finite(self.state.splits))

    @abstractmethod
    def begin(self, settings: EpochSettings) -> None:
        """Begin an epoch."""

    @abstractmethod
    def take(self, order: Tensor, update: Update, in_loss: Doubles, in_counts: Doubles) -> None:
        """Take a step on the splits; add its leaf counts and log-likelihood to those of the epoch."""

    def project_constraints(self) -> None:
        """Set weights to zero that must be zero or have another sign, after a step."""
        zeros, signs = self.state.zeros, self.state.signs
        if zeros is None and signs is None:
            return
        weight = self.state.splits.parameters["weight"].data
        if zeros is not None:
            weight.masked_fill_(zeros, 0.0)
        if signs is not None:
            weight.masked_fill_(weight * signs < 0, 0.0)

    @abstractmethod
    def end(self) -> tuple[Tensor, float]:
        """Return the epoch's leaf counts and its mean negative log-likelihood."""


def all_finite(splits: AbstractSplits) -> bool:
    """Return True if all weights are finite."""
    return all(bool(torch.isfinite(value).all()) for value in splits.parameters.values())


def penalty_shares(state: TrainState, plan: Plan) -> Tensor:
    """Factor of the penalties of each split: the share of the rows in its loss, or 1."""
    if plan.has_penalties and plan.penalty_share == "rows":
        return state.penalty_shares
    first = next(iter(state.splits.parameters.values()))
    return torch.ones(len(first), dtype=torch.float64, device=first.device)
