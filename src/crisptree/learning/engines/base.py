"""The contract of engines: what is trained, the rows of every step, and its state as the arrays of a checkpoint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.learning.options import EpochSettings, Plan
from crisptree.persistence.checkpoints import Arrays, CheckpointStore, Record
from crisptree.splits import AbstractSplits
from crisptree.structure import TreeStructure
from crisptree.threads import one_training_at_a_time

if TYPE_CHECKING:
    from crisptree.learning.samples import Samples


Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Update:
    """Rows of one optimiser step: of each group in ``active`` positions ``begin`` to ``end`` of the epoch's order.

    An epoch's order (``Orders``) is new every time; its updates are always the same positions.
    """

    active: Integers
    begin: Integers
    end: Integers

    @property
    def lengths(self) -> Integers:
        """Rows of each active group."""
        return self.end - self.begin

    @property
    def positions(self) -> Integers:
        """All positions, group after group.  (b,)"""
        lengths = self.lengths
        return np.arange(lengths.sum()) + np.repeat(self.begin - (np.cumsum(lengths) - lengths), lengths)

    def per_row(self, values: npt.NDArray[np.generic]) -> Tensor:
        """Repeat a value of each active group for its rows.  (a,) → (b,)"""
        return torch.from_numpy(np.repeat(values, self.lengths))


MAX_GROUPS_OF_NARROW_KEYS = 2048
"""Groups that leave 20 random bits of a key of 32 bits; keys that are equal stay in the order of their rows."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Row numbers (n,) sorted by group, and the number of rows in each group (n_groups,), none empty.

    Each group makes its own batches and its own number of passes.
    """

    rows: Tensor
    sizes: Tensor

    @classmethod
    def single(cls, n_rows: int, device: torch.device) -> Groups:
        """Return one group of all rows."""
        return cls(torch.arange(n_rows, device=device), torch.tensor([n_rows], device=device))

    @cached_property
    def group(self) -> Tensor:
        """The group of each of ``rows``.  (n,)"""
        return torch.repeat_interleave(torch.arange(len(self.sizes), device=self.sizes.device), self.sizes)

    @cached_property
    def host_sizes(self) -> Integers:
        """``sizes`` as an array."""
        return self.sizes.cpu().numpy()

    def count_taken(self, plan: Plan) -> Integers:
        """Return the number of rows of each group in an epoch: all of them, or the group's share of ``rows_per_epoch``.

        A small group gives more than its share: a batch, and as many batches as ``min_updates`` demands of an epoch.
        """
        sizes = self.host_sizes
        if plan.rows_per_epoch is None or plan.rows_per_epoch >= sizes.sum():
            return sizes
        share = np.ceil(sizes * (plan.rows_per_epoch / sizes.sum())).astype(np.int64)
        batches = max(1, -(-plan.min_updates // max(plan.epochs, 1)))
        return np.minimum(sizes, np.maximum(share, batches * plan.batch_size))

    def sample(self, plan: Plan) -> Groups:
        """Select evenly as many rows of each group as an epoch visits."""
        sizes, taken = self.host_sizes, self.count_taken(plan)
        if np.array_equal(taken, sizes):
            return self
        starts = np.repeat(np.cumsum(sizes) - sizes, taken)
        number = np.arange(taken.sum()) - np.repeat(np.cumsum(taken) - taken, taken)
        positions = torch.from_numpy(starts + number * np.repeat(sizes, taken) // np.repeat(taken, taken))
        device = self.rows.device
        return Groups(self.rows[positions.to(device)], torch.from_numpy(taken).to(device))

    def n_batches(self, plan: Plan) -> Integers:
        """Batches of each group: as few as hold ``batch_size`` rows at most, and all of nearly one size."""
        return -(-self.count_taken(plan) // plan.batch_size)

    def passes(self, plan: Plan) -> Integers:
        """Return the number of passes of an epoch over each group: once, or as often as ``min_updates`` demands."""
        return np.maximum(-(-plan.min_updates // (self.n_batches(plan) * max(plan.epochs, 1))), 1)

    def iter_steps(self, plan: Plan) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Of every step of an epoch: the groups that have one, which of its batches each takes, and of how many.

        A group that has finished its batches drops out.
        """
        n_batches = self.n_batches(plan)
        n_updates = n_batches * self.passes(plan)
        longest_first = np.argsort(-n_updates, kind="stable")
        n_active = np.searchsorted(-n_updates[longest_first], -np.arange(n_updates.max()), side="left")
        active = np.arange(0)
        for step, number in enumerate(n_active):
            if number != len(active):
                active = np.sort(longest_first[:number])
                whole = n_batches[active]
            yield active, step % whole, whole

    def schedule(self, plan: Plan) -> Iterator[Update]:
        """Yield the steps of every epoch."""
        sizes = self.count_taken(plan)
        starts = np.cumsum(sizes) - sizes
        for active, batch, whole in self.iter_steps(plan):
            start, size = starts[active], sizes[active]
            yield Update(active, start + batch * size // whole, start + (batch + 1) * size // whole)

    def shuffle(self, plan: Plan, generator: torch.Generator) -> Tensor:
        """Shuffle the rows of every group.  (n,)"""
        if self.n_batches(plan).max() == 1:
            return self.rows  # one batch holds them all: their order means nothing
        if self.rows.is_cuda:
            # Sorting on the device is quicker than sending an order there; it draws only from a generator of its own.
            own, keys = torch.Generator(self.rows.device), self._lowest_keys
            own.manual_seed(int(torch.randint(2**62, (), generator=generator)))
            random = torch.randint(2**self._key_bits, keys.shape, dtype=keys.dtype, device=keys.device, generator=own)
            return self.rows[torch.argsort(keys + random, stable=True)]
        random = torch.rand(len(self.rows), dtype=torch.float64, generator=generator)
        order = np.argsort((random + self.group).numpy())  # several times quicker than torch's sort
        return self.rows[torch.from_numpy(order)]

    @property
    def _key_bits(self) -> int:
        """Random bits of the keys by which rows are sorted; narrow keys are sorted in half of the time."""
        n_groups = len(self.sizes)
        return (31 if n_groups <= MAX_GROUPS_OF_NARROW_KEYS else 62) - (n_groups - 1).bit_length()

    @cached_property
    def _lowest_keys(self) -> Tensor:
        """The lowest key of every row's group.  (n,)"""
        dtype = torch.int32 if len(self.sizes) <= MAX_GROUPS_OF_NARROW_KEYS else torch.int64
        return (self.group << self._key_bits).to(dtype)

    def epoch(self, plan: Plan, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield rows and groups of every step of one epoch.  (b,), (b,)"""
        order = Orders(self, plan, generator).next()
        for update in self.schedule(plan):
            rows = order[torch.from_numpy(update.positions).to(order.device)]
            yield rows, update.per_row(update.active).to(order.device)


class RowOrders:
    """Row orders of successive epochs; this one is for engines that draw the order themselves."""

    def __init__(self, generators: Sequence[torch.Generator]) -> None:
        self.generators = generators

    def next(self) -> Tensor:
        """Return the order of the next epoch.  (taken rows,)"""
        return torch.zeros(0, dtype=torch.long)

    def to_arrays(self) -> Arrays:
        """Return what a checkpoint must hold beside the generators."""
        return {}

    def restore(self, record: Record) -> None:
        """Return to the state after the epochs of a record."""


class Orders(RowOrders):
    """All rows in random order, or a share of every group.

    With a share, epochs walk on through one shuffled order; a group that is used up is shuffled again.
    """

    def __init__(self, groups: Groups, plan: Plan, generator: torch.Generator) -> None:
        super().__init__([generator])
        self.groups, self.plan, self.generator = groups, plan, generator
        self.sizes, self.taken = groups.host_sizes, groups.count_taken(plan)
        self.takes_all = np.array_equal(self.sizes, self.taken)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.position = self.sizes.copy()  # all used up
        self.positions: npt.NDArray[np.signedinteger] | None = None

    def next(self) -> Tensor:
        """Return the order of the next epoch.  (taken rows,)"""
        if self.takes_all:
            return self.groups.shuffle(self.plan, self.generator)
        if self.positions is None:
            self._begin(int(torch.randint(2**62, (), generator=self.generator)))
        positions = self._next_positions()
        return self.groups.rows[torch.from_numpy(positions).to(self.groups.rows.device)]

    def _begin(self, seed: int) -> None:
        small = len(self.groups.rows) < 2**31
        self.positions = np.arange(len(self.groups.rows), dtype=np.int32 if small else np.int64)
        self.seed, self.shuffler = seed, np.random.default_rng(seed)

    def _next_positions(self) -> npt.NDArray[np.signedinteger]:
        assert self.positions is not None
        for group in np.flatnonzero(self.position + self.taken > self.sizes):
            start = self.starts[group]
            self.shuffler.shuffle(self.positions[start : start + self.sizes[group]])
            self.position[group] = 0
        begin = self.starts + self.position
        self.position += self.taken
        return self.positions[Update(np.arange(len(begin)), begin, begin + self.taken).positions]

    def to_arrays(self) -> Arrays:
        return {} if self.takes_all else {"orders.seed": np.array([self.seed])}

    def restore(self, record: Record) -> None:
        if not self.takes_all:
            seed = int(record.take("orders.seed", np.zeros(1, dtype=np.int64))[0])
            if seed < 0:
                raise record.make_error("the seed of its orders is negative")
            self._begin(seed)
            for _ in range(record.epochs):
                self._next_positions()


def group_rows(group_of_row: Tensor, wanted: list[int]) -> Groups:
    """Return the rows of some groups, in the order of ``wanted``; rows of other groups are left out."""
    device = group_of_row.device
    if device.type == "cpu" and len(wanted) < np.iinfo(np.int16).max:
        return _group_by_digits(group_of_row.numpy(), wanted)
    index_of_group = torch.full((int(group_of_row.max()) + 1,), -1, device=device)
    index_of_group[torch.tensor(wanted, device=device)] = torch.arange(len(wanted), device=device)
    here = index_of_group[group_of_row]
    rows = torch.nonzero(here >= 0)[:, 0]
    order = torch.argsort(here[rows], stable=True)
    return Groups(rows[order], torch.bincount(here[rows], minlength=len(wanted)))


def _group_by_digits(group_of_row: Integers, wanted: list[int]) -> Groups:
    """Group rows by a radix sort, which NumPy uses for 16-bit numbers, in a fraction of the time and memory."""
    index_of_group = np.zeros(int(group_of_row.max()) + 1, dtype=np.int16)
    index_of_group[wanted] = np.arange(1, len(wanted) + 1)
    here = index_of_group[group_of_row]
    sizes = np.bincount(here, minlength=len(wanted) + 1)
    rows = np.argsort(here, kind="stable")[sizes[0] :]
    return Groups(torch.from_numpy(rows), torch.from_numpy(sizes[1:]))


_store: ContextVar[CheckpointStore | None] = ContextVar("crisptree_checkpoints", default=None)


def get_store() -> CheckpointStore | None:
    """Return the store of the fit, if it has one."""
    return _store.get()


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
        """The part of the rows, by weight, that each split trains on.  (n_splits,), float64"""

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


class PendingEpoch:
    """The result of an epoch that a device may still compute: reading ``loss`` or ``finite`` waits for it."""

    def __init__(self, counts: Tensor, read: Callable[[], tuple[float, bool]]) -> None:
        self.counts, self.read = counts, read

    @cached_property
    def _values(self) -> tuple[float, bool]:
        return self.read()

    @property
    def loss(self) -> float:
        return self._values[0]

    @property
    def finite(self) -> bool:
        return self._values[1]


class Engine(Protocol):
    """The steps of a training, epoch by epoch."""

    def epoch(self, settings: EpochSettings, order: Tensor) -> EpochResult | PendingEpoch:
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
