"""Training rows on the device that trains, and the training task: rows, scaling and target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.data.raw_rows import Scaling, SparseRows, Windows
from crisptree.data.rows import (
    ArrayRows,
    RawRows,
    ScaledRows,
    ShiftedImages,
    SparseTrainingRows,
    UnscaledRows,
    scale_rows,
)
from crisptree.equations.routing import goes_right
from crisptree.inference import CrispTree
from crisptree.inference.finalization import SomeTree, SufficientStatistics, record_ranges, sum_statistics
from crisptree.learning.history import EpochCallback, EpochRecord, StopTraining
from crisptree.learning.options import Plan
from crisptree.native import training
from crisptree.persistence.checkpoints import Arrays, Record
from crisptree.splits import AbstractSplits, ObliqueSplits
from crisptree.targets import Classes, Gaussians, Target
from crisptree.threads import n_threads
from crisptree.tree import Tree

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


@dataclass(frozen=True, eq=False)
class Groups:
    """Row numbers (n,) sorted by group, and the number of rows in each group (n_groups,), none empty.

    Each group makes its own batches and its own number of passes.
    """

    rows: Tensor
    sizes: Tensor

    @classmethod
    def everything(cls, n_rows: int, device: torch.device) -> Groups:
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
            own = torch.Generator(self.rows.device).manual_seed(int(torch.randint(2**62, (), generator=generator)))
            keys = torch.rand(len(self.rows), dtype=torch.float64, device=self.rows.device, generator=own)
            return self.rows[torch.argsort(keys + self.group)]
        random = torch.rand(len(self.rows), dtype=torch.float64, generator=generator)
        order = np.argsort((random + self.group).numpy())  # several times quicker than torch's sort
        return self.rows[torch.from_numpy(order)]

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


Ints = npt.NDArray[np.int32]

ROWS_AT_ONCE = 8192
"""Passes over all rows take this many at a time."""

VALUES_AT_ONCE = 2**24
"""Sparse rows, which may be wide, are written down so many values at a time."""

ROWS_IN_PLACE = 2**18
"""Passes that need no copy of the rows take this many."""

MIN_VALUES_FOR_THREADS = 2**22
"""Data of fewer values trains on one thread: two are no quicker there, and when another program holds one of the
cores they wait for each other a hundred times as long as they work."""

GROUPS_PER_PRODUCT = 32
"""Sums over groups are taken about so many groups at a time: a product with more would mostly multiply zeros."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Scaled rows, their y and positive weights (n,) on the training device.

    The torch engine and every pass over the rows ask ``batch`` for features; fused engines read an array in place, and
    on the CPU windows too. Results do not depend on ``n_jobs``.
    """

    rows: ScaledRows
    y: Tensor
    weight: Tensor
    target: Target
    n_jobs: int | None = 1

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_features(self) -> int:
        return self.rows.shape[1]

    @property
    def device(self) -> torch.device:
        return self.y.device

    @property
    def is_sparse(self) -> bool:
        """True if only non-zero values are stored."""
        return isinstance(self.rows, SparseTrainingRows)

    @property
    def are_many(self) -> bool:
        """True if the rows are enough for several threads."""
        values = self.rows.values.size if isinstance(self.rows, SparseTrainingRows) else len(self) * self.n_features
        return values > MIN_VALUES_FOR_THREADS

    @property
    def threads(self) -> int:
        """Number of threads for these rows."""
        return n_threads(self.n_jobs) if self.are_many else 1

    def batch(self, rows: Tensor) -> Tensor:
        """Return the features of some rows.  (b,) → (b, n_features)"""
        if self.native_rows is None or not isinstance(self.rows, Windows | UnscaledRows):
            return self.rows.batch(rows)
        copies = torch.empty(len(rows), self.n_features, dtype=self.rows.dtype)
        self.native_rows.gather(rows.numpy(), copies.numpy(), self.threads)
        return copies

    def shift(self, generator: torch.Generator) -> AbstractContextManager[None]:
        """Inside, images that are to be shifted are; other rows are as always, and nothing is drawn."""
        return self.rows.shift(generator) if isinstance(self.rows, ShiftedImages) else nullcontext()

    @cached_property
    def native_rows(self) -> Any:
        """The rows as the native kernels see them; None where they cannot read them."""
        kinds = {torch.float32: "SingleRows", torch.float64: "DoubleRows"}
        arrays = self.rows.arrays
        if training is None or self.device.type != "cpu" or self.rows.dtype not in kinds:
            return None
        if not arrays[0].is_contiguous():
            return None
        values = (np.require(array.detach().numpy(), requirements=("C", "A")) for array in arrays)
        width = (self.n_features,) if self.is_sparse else ()
        return getattr(training, kinds[self.rows.dtype])(*values, *width)

    def pieces(self, rows: Tensor | None = None, *, in_place: bool = False) -> tuple[Tensor, ...]:
        """Row numbers a few thousand at a time: all of them, or those given; more where the rows stay in place."""
        everything = torch.arange(len(self), device=self.device) if rows is None else rows
        if in_place:
            return everything.split(ROWS_IN_PLACE)
        return everything.split(max(1, VALUES_AT_ONCE // self.n_features) if self.is_sparse else ROWS_AT_ONCE)

    def mean(self) -> Tensor:
        """Return the weighted mean of all rows.  (n_features,)"""
        return self.group_means(Groups.everything(len(self), self.device))[0]

    def group_means(self, groups: Groups) -> Tensor:
        """Return the weighted mean of every group's rows.  (n_groups, n_features)"""
        total = self.group_mean_weight(groups) * groups.sizes
        if isinstance(self.rows, SparseTrainingRows):
            sums = self.rows.group_sums(groups.rows, groups.group, self.weight[groups.rows], len(groups.sizes))
            return (sums / total[:, None]).to(self.weight.dtype)
        sums = torch.zeros(len(groups.sizes), self.n_features, dtype=torch.float64, device=self.device)
        ends = np.cumsum(groups.host_sizes)
        at_once = int(np.clip(GROUPS_PER_PRODUCT * np.median(groups.host_sizes), 64, ROWS_AT_ONCE))
        for start in range(0, len(groups.rows), at_once):
            # A few rows belong to a few groups, which follow each other: their sums are one small product.
            rows = groups.rows[start : start + at_once]
            first, last = np.searchsorted(ends, (start, start + len(rows) - 1), side="right")
            here = torch.arange(first, last + 1, device=self.device)
            member = groups.group[start : start + len(rows)] == here[:, None]
            sums[first : last + 1] += (member * self.weight[rows]) @ self.batch(rows)
        return (sums / total[:, None]).to(self.weight.dtype)

    def group_mean_weight(self, groups: Groups) -> Tensor:
        """Return the mean weight of every group's rows.  (n_groups,)"""
        sizes = groups.host_sizes
        totals = np.add.reduceat(self.weight[groups.rows].cpu().double().numpy(), np.cumsum(sizes) - sizes)
        return torch.from_numpy(totals / sizes).to(self.device)

    def table(self) -> Tensor:
        """Return the table of one leaf that holds all rows.  (1, n_values)"""
        group = np.zeros(len(self), dtype=np.int64)
        totals = self.target.tally(self.y.cpu().numpy(), self.weight.cpu().double().numpy(), group, 1)
        return torch.from_numpy(self.target.tables(totals)).to(self.weight)

    def everything(self) -> Groups:
        """Return all rows as one group."""
        return Groups.everything(len(self), self.device)

    def reads_in_place(self, splits: AbstractSplits) -> bool:
        """Return True if the native kernel routes the rows without a copy."""
        if not isinstance(splits, ObliqueSplits) or self.native_rows is None:
            return False
        return splits.parameters["weight"].dtype == self.rows.dtype

    @torch.no_grad()
    def leaves(self, tree: Tree, rows: Tensor) -> Tensor:
        """Return the leaf of some rows under deterministic routing.  (b,) → (b,)"""
        if not tree.structure.n_splits:
            return torch.zeros_like(rows)
        if not self.reads_in_place(tree.splits):
            return tree.route(self.batch(rows))
        start = np.zeros(len(rows), dtype=np.int32)
        return self._ends(tree.splits, rows, start, tree.structure.left, tree.structure.right)

    def all_leaves(self, tree: Tree) -> Tensor:
        """Return the leaf of every row under deterministic routing.  (n,)"""
        pieces = self.pieces(in_place=self.reads_in_place(tree.splits))
        return torch.cat([self.leaves(tree, rows) for rows in pieces])

    @torch.no_grad()
    def goes_right(self, splits: AbstractSplits, rows: Tensor, split: Tensor) -> Tensor:
        """Return True for rows that go right, each at its own split.

        (b,), (b,) → (b,); candidates: (b, n_candidates)
        """
        if not self.reads_in_place(splits):
            return goes_right(splits.at(self.batch(rows), split))
        left = ~(2 * np.arange(splits.n_splits, dtype=np.int32))  # the ends of split i are 2i and 2i + 1
        return self._ends(splits, rows, split.numpy().astype(np.int32), left, left - 1) % 2 == 1

    def _ends(self, splits: AbstractSplits, rows: Tensor, node: Ints, left: Ints, right: Ints) -> Tensor:
        weight, bias = (splits.parameters[name].detach().contiguous().numpy() for name in ("weight", "bias"))
        self.native_rows.route(rows.numpy(), node, weight, bias, left, right, self.threads)
        return torch.from_numpy(~node.astype(np.int64))

    def hard_counts(self, tree: Tree) -> Tensor:
        """Return the statistics of the rows that reach every leaf under deterministic routing.

        (n_leaves, n_statistics)
        """
        target, n_leaves = self.target, tree.structure.n_leaves
        counts = torch.zeros(n_leaves, target.n_statistics, dtype=tree.leaves.dtype, device=self.device)
        for rows in self.pieces(in_place=self.reads_in_place(tree.splits)):
            leaf = self.leaves(tree, rows)
            counts += target.tally(self.y[rows], self.weight[rows].to(counts), leaf, n_leaves)
        return counts

    def score(self, tree: Tree, tables: Tensor) -> float:
        """Return the weighted mean score of the rows under a deterministic tree with such leaf tables."""
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for rows in self.pieces(in_place=self.reads_in_place(tree.splits)):
            score = self.target.score(tables, self.leaves(tree, rows), self.y[rows])
            total += (self.weight[rows] * score).sum()
        return float(total / self.weight.double().sum())


Result = TypeVar("Result")

MAX_COLUMNS_OF_SMALL_TABLE, MAX_VALUES_OF_SMALL_TABLE = 256, 2**20
"""Correlations of more columns take longer to factorise than they save; more values train faster in mini-batches."""

MIN_RELATIVE_WEIGHT = 1e-30
"""Weights are taken relative to their mean; a lighter row would have none left in single precision."""


class Shifts(NamedTuple):
    """Range of random shifts in pixels, and the shape of the images."""

    max_shift: int
    image_shape: tuple[int, ...]

    def check(self, scaling: Scaling) -> None:
        """Require that all pixels share a scale, so that they can be shifted."""
        if not scaling.is_same_for_pixels(*self.image_shape[2:]):
            raise ValueError(
                "`max_shift` must be set from the first fit on, because all pixels must then be scaled alike; got "
                f"max_shift={self.max_shift} for a tree that was trained without. Use a new estimator or max_shift=0."
            )


@dataclass(frozen=True, eq=False)
class RowSet:
    """Checked rows: float32 features (an array, or windows), y and positive weights."""

    X: RawRows
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]

    def select(self, rows: Any) -> RowSet:
        """Return a subset of the rows by indices, a mask or a slice."""
        return RowSet(self.X[rows], self.y[rows], self.weight[rows])

    @classmethod
    def concatenate(cls, parts: Sequence[RowSet]) -> RowSet:
        """Join rows of arrays in the order of the parts."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "weight")))

    def samples(
        self,
        scaling: Scaling,
        target: Target,
        device: torch.device,
        n_jobs: int | None,
        shifts: Shifts | None = None,
        *,
        as_array: bool = False,
    ) -> Samples:
        """Scale the rows on the training device, with y and weights; ``shifts`` shift them in every epoch."""
        rows = scale_rows(self.X, scaling, device, n_jobs, as_array=as_array or shifts is not None)
        if shifts is not None:
            assert isinstance(rows, ArrayRows)
            rows = ShiftedImages.of(rows.values, shifts.image_shape, shifts.max_shift)
        y, weight = torch.from_numpy(self.y).to(device), relative_weights(self.weight).to(device)
        return Samples(rows, y, weight, target, n_jobs)


def scale_samples(
    part: RowSet,
    task: TrainingTask,
    mean_weight: float,
    device: torch.device,
    n_jobs: int | None,
    *,
    as_array: bool = False,
) -> Samples:
    """Return some rows on the training device, with weights relative to the mean of all."""
    rows = scale_rows(part.X, task.scaling, device, n_jobs, as_array=as_array)
    relative = np.maximum(part.weight / mean_weight, MIN_RELATIVE_WEIGHT)
    y, weight = torch.from_numpy(part.y).to(device), torch.from_numpy(relative).float().to(device)
    return Samples(rows, y, weight, task.target, n_jobs)


def relative_weights(weight: npt.NDArray[np.float64]) -> torch.Tensor:
    """Return weights in units of their mean, in single precision.  (n,)"""
    return torch.from_numpy(np.maximum(weight / weight.mean(), MIN_RELATIVE_WEIGHT)).to(torch.float32)


class StoppableCallback:
    """Record epochs and pass them on to a callback; true once that has raised ``StopTraining``."""

    def __init__(self, callback: EpochCallback | None) -> None:
        self.callback, self.is_stopped = callback, False
        self.history: list[EpochRecord] = []

    def __call__(self, record: EpochRecord) -> None:
        self.history.append(record)
        try:
            if self.callback is not None:
                self.callback(record)
        except StopTraining:
            self.is_stopped = True
            raise StopTraining(record) from None

    def __bool__(self) -> bool:
        return self.is_stopped


def get_iteration(record: EpochRecord | None, history: Sequence[EpochRecord]) -> int:
    """Return the number of a record among those of finetuning in a history, counted from 1; 0 for none."""
    tuned = [one for one in history if one.phase == "finetune"]
    return 0 if record is None else 1 + next(number for number, one in enumerate(tuned) if one is record)


@dataclass(frozen=True, eq=False)
class TrainingTask:
    """Training rows, how they are scaled, what their y is, and validation rows."""

    training: RowSet
    scaling: Scaling
    target: Target
    validation: RowSet | None = None
    _ready: dict[Any, tuple[Samples, Samples | None]] = field(default_factory=dict, repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows that train, wherever they are."""
        return len(self.training.y)

    @property
    def mean_weight(self) -> float:
        """Mean weight of the rows that train."""
        return float(self.training.weight.mean())

    def listener(self, on_epoch: EpochCallback | None) -> StoppableCallback:
        """Pass records of epochs on to a callback, which may ask to stop."""
        return StoppableCallback(on_epoch)

    is_first: ClassVar[bool] = True
    """True if this process shows progress and calls callbacks."""

    def compute_once(self, function: Callable[[], Result]) -> Result:
        """Return the result of a function, computed by one process for all."""
        return function()

    def with_ranges(self, tree: SomeTree) -> SomeTree:
        """Return the tree with the ranges of the features of all rows."""
        return record_ranges(tree, self.training.X)

    def sum_statistics(self, tree: CrispTree, n_jobs: int | None) -> SufficientStatistics:
        """Return the statistics of all training rows in a deterministic tree."""
        rows = self.training
        return sum_statistics(tree, rows.X, rows.y, rows.weight, n_jobs, self.target)

    @property
    def is_sparse(self) -> bool:
        """True if only non-zero values are stored; such rows train on the CPU."""
        return isinstance(self.training.X, SparseRows)

    @property
    def is_small_table(self) -> bool:
        """True for dense rows that full-batch optimisation takes: few values, and few columns that may correlate."""
        X = self.training.X
        if not isinstance(X, np.ndarray) or type(self.target) not in (Classes, Gaussians) or training is None:
            return False
        return X.shape[1] <= MAX_COLUMNS_OF_SMALL_TABLE and X.size <= MAX_VALUES_OF_SMALL_TABLE

    @cached_property
    def input_norm(self) -> float:
        """Change of a score by a unit step on all weights: the number of features, or the mean Σ|x| of sparse rows."""
        X = self.training.X
        if not isinstance(X, SparseRows):
            return X.shape[1]
        sizes = np.abs(X.scale(self.scaling).data, dtype=np.float64)
        return float(sizes.sum() / len(X))

    def on(
        self, device: torch.device, n_jobs: int | None, shifts: Shifts | None = None, *, as_array: bool = False
    ) -> tuple[Samples, Samples | None]:
        """Training and validation samples on the device, made once. Validation rows are never shifted.

        ``as_array`` has the scaled training rows in memory, however large they are.
        """
        key = device, shifts, as_array
        if key not in self._ready:
            if shifts is not None:
                shifts.check(self.scaling)
            common = self.scaling, self.target, device, n_jobs
            training = self.training.samples(*common, shifts, as_array=as_array)
            validation = self.validation
            self._ready[key] = training, None if validation is None else validation.samples(*common)
        return self._ready[key]
