"""Rows in training: the protocol ``RowSource``, rows in memory, and the training task of rows, scaling and target."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
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
from crisptree.learning.engines.base import Engine, Groups, TrainState, group_rows
from crisptree.learning.history import EpochCallback, EpochRecord, StopTraining
from crisptree.learning.options import Plan
from crisptree.native import training
from crisptree.splits import AbstractSplits, ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.targets import Classes, Gaussians, Target
from crisptree.threads import n_threads
from crisptree.tree import Tree

Doubles = npt.NDArray[np.float64]


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


class RowSource(ABC):
    """Training rows on the device, wherever they come from: passes over them, and sums over all of them.

    Growth and finetuning ask for nothing else. ``Samples`` are rows in memory (arrays, sparse rows, windows of images);
    of a ``SummedRows`` only sums are known: rows read in batches, and the shards of a process group.
    """

    target: Target
    weight: Tensor
    """Weights on the device and in the precision of training; none where only sums are known."""

    is_sparse = False
    """True if only non-zero values are stored."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of rows."""

    @property
    @abstractmethod
    def n_features(self) -> int: ...

    @property
    def device(self) -> torch.device:
        return self.weight.device

    @abstractmethod
    def as_one_group(self) -> Groups:
        """Return all rows as one group."""

    @abstractmethod
    def table(self) -> Tensor:
        """Return the table of one leaf that holds all rows.  (1, n_values)"""

    @abstractmethod
    def hard_counts(self, tree: Tree) -> Tensor:
        """Return the statistics of the rows that reach every leaf under deterministic routing.

        (n_leaves, n_statistics)
        """

    @abstractmethod
    def score(self, tree: Tree, tables: Tensor) -> float:
        """Return the weighted mean score of the rows under a deterministic tree with such leaf tables."""

    @abstractmethod
    def grow_in_memory(self, grow: Callable[[Samples], Tree]) -> Tree:
        """Return the tree that a function grows on all rows at once, in one process for all."""

    draws_shifts = False
    """True if ``shift`` draws random numbers."""

    def shift(self, generator: torch.Generator) -> AbstractContextManager[None]:
        """Shift images randomly inside, where they are to be; other rows are as always, and nothing is drawn."""
        return nullcontext()


Source = TypeVar("Source", bound=RowSource)


@dataclass(frozen=True, eq=False)
class Samples(RowSource):
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
    def is_sparse(self) -> bool:  # type: ignore[override]
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

    @property
    def draws_shifts(self) -> bool:  # type: ignore[override]
        return isinstance(self.rows, ShiftedImages)

    def shift(self, generator: torch.Generator) -> AbstractContextManager[None]:
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
        rows = torch.arange(len(self), device=self.device) if rows is None else rows
        if in_place:
            return rows.split(ROWS_IN_PLACE)
        return rows.split(max(1, VALUES_AT_ONCE // self.n_features) if self.is_sparse else ROWS_AT_ONCE)

    def mean(self) -> Tensor:
        """Return the weighted mean of all rows.  (n_features,)"""
        return self.group_means(Groups.single(len(self), self.device))[0]

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
        group = np.zeros(len(self), dtype=np.int64)
        totals = self.target.tally(self.y.cpu().numpy(), self.weight.cpu().double().numpy(), group, 1)
        return torch.from_numpy(self.target.tables(totals)).to(self.weight)

    def as_one_group(self) -> Groups:
        return Groups.single(len(self), self.device)

    def grow_in_memory(self, grow: Callable[[Samples], Tree]) -> Tree:
        return grow(self)

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
        target, n_leaves = self.target, tree.structure.n_leaves
        counts = torch.zeros(n_leaves, target.n_statistics, dtype=tree.leaves.dtype, device=self.device)
        for rows in self.pieces(in_place=self.reads_in_place(tree.splits)):
            leaf = self.leaves(tree, rows)
            counts += target.tally(self.y[rows], self.weight[rows].to(counts), leaf, n_leaves)
        return counts

    def score(self, tree: Tree, tables: Tensor) -> float:
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for rows in self.pieces(in_place=self.reads_in_place(tree.splits)):
            score = self.target.score(tables, self.leaves(tree, rows), self.y[rows])
            total += (self.weight[rows] * score).sum()
        return float(total / self.weight.double().sum())


class LeafState(NamedTuple):
    """A leaf that may be split: number of rows, their statistics, and the weighted mean of their scaled features."""

    n_rows: int
    statistics: Doubles
    center: Tensor


class Side(NamedTuple):
    """Sums over the rows that m stumps send one way: statistics (m, s), number of rows (m,), features Σ w x (m, p)."""

    statistics: Doubles
    n_rows: Doubles
    sums: Doubles

    def where(self, takes: npt.NDArray[np.bool_], other: Side) -> Side:
        """Take the sums of another side at some stumps."""
        pairs = zip(self, other, strict=True)
        return Side(*(np.where(takes if one.ndim == 1 else takes[:, None], two, one) for one, two in pairs))

    def leaf(self, number: int, target: Target, like: Tensor) -> LeafState:
        """Return one of the sides as a leaf."""
        statistics = self.statistics[number]
        weight = max(float(target.weight(statistics)), np.finfo(float).tiny)
        center = torch.from_numpy(self.sums[number] / weight).to(like)
        return LeafState(int(self.n_rows[number]), statistics, center)


class LeafGroups(NamedTuple):
    """The rows of some leaves of a tree, known by their sums only."""

    tree: Tree
    leaves: list[int]
    states: list[LeafState]

    @property
    def sizes(self) -> list[int]:
        """Number of rows of every leaf."""
        return [state.n_rows for state in self.states]

    @property
    def centers(self) -> Tensor:
        """Weighted mean of the rows of every leaf.  (n_leaves, n_features)"""
        return torch.stack([state.center for state in self.states])


class SummedRows(RowSource):
    """Training rows that are summed over, never held as a whole.

    ``template`` has no rows, but their device, precision and target. ``sample`` are some of all rows, on which the
    stumps of regression trees search for a start.
    """

    retries_later = False
    """True if a leaf whose stump failed waits for the next level, because every training needs further passes."""

    def __init__(self, template: Samples, sample: Samples | None) -> None:
        self.template, self.sample = template, sample
        self.target, self.weight = template.target, template.weight

    @property
    def n_features(self) -> int:
        return self.template.n_features

    @abstractmethod
    def total(self, function: Callable[[Samples], Any], shape: tuple[int, ...]) -> Doubles:
        """Return the sum of what a function gives for all parts of the rows, arrays of a shape."""

    @abstractmethod
    def make_engine(self, state: TrainState, plan: Plan, generator: torch.Generator, *, fresh: bool) -> Engine:
        """Make the engine of a training phase on all rows."""

    def grow_in_memory(self, grow: Callable[[Samples], Tree]) -> Tree:
        raise TypeError("CART needs all rows in memory.")

    @abstractmethod
    def replace_y(self, function: Callable[[Samples], Tensor]) -> SummedRows:
        """Return the same rows with the y that a function gives for each part of them."""

    @cached_property
    def root(self) -> LeafState:
        """All rows as one leaf."""
        none = ObliqueSplits(self.weight.new_zeros(0, self.n_features), self.weight.new_zeros(0))
        tree = Tree(TreeStructure.single_leaf(), none, self.weight, self.target.name)
        return self.sides(tree, [0], None)[0].leaf(0, self.target, self.weight)

    @torch.no_grad()
    def sides(self, tree: Tree, leaves: list[int], splits: AbstractSplits | None) -> tuple[Side, Side]:
        """Sums over the rows of some leaves that their splits send left and right; all left without splits."""
        n = self.target.n_statistics
        sums = self.total(
            lambda part: side_sums(part, group_leaves(tree, part, leaves), splits),
            (2, len(leaves), n + 1 + self.n_features),
        )
        left, right = (Side(side[:, :n], side[:, n].round(), side[:, n + 1 :]) for side in sums)
        return left, right

    def hard_counts(self, tree: Tree) -> Tensor:
        shape = tree.structure.n_leaves, self.target.n_statistics
        return torch.from_numpy(self.total(lambda part: part.hard_counts(tree).double().cpu().numpy(), shape))

    def score(self, tree: Tree, tables: Tensor) -> float:
        def add_up(part: Samples) -> Doubles:
            weight = float(part.weight.double().sum())
            return np.array([weight * part.score(tree, tables) if weight else 0.0, weight])

        total, weight = self.total(add_up, (2,))
        return float(total / weight)

    def as_one_group(self) -> Groups:
        """Return all rows as one group without row indices."""
        return Groups(torch.zeros(0, dtype=torch.long), torch.tensor([len(self)]))

    def table(self) -> Tensor:
        return torch.from_numpy(self.target.tables(self.root.statistics[None])).to(self.weight)


def group_leaves(tree: Tree, samples: Samples, leaves: list[int]) -> Groups:
    """Return the rows of some leaves of a tree; a leaf may have none."""
    if not len(samples):
        return Groups(
            torch.zeros(0, dtype=torch.long, device=samples.device), torch.zeros(len(leaves), dtype=torch.long)
        )
    leaf = samples.all_leaves(tree)
    wide = torch.cat([leaf, leaf.new_tensor([max(leaves)])])  # all of them must be there to be numbered
    groups = group_rows(wide, leaves)
    is_row = groups.rows < len(leaf)
    sizes = groups.sizes.clone()
    sizes[groups.group[~is_row]] -= 1
    return Groups(groups.rows[is_row], sizes)


def side_sums(samples: Samples, groups: Groups, splits: AbstractSplits | None) -> Doubles:
    """Statistics, number and Σ w x of the rows that splits send left and right; all left without splits.

    → (2, n_groups, n_statistics + 1 + n_features)
    """
    target, n_groups, n = samples.target, len(groups.sizes), samples.target.n_statistics
    found = torch.zeros(2, n_groups, n + 1 + samples.n_features, dtype=torch.float64, device=samples.device)
    for rows, group in zip(samples.pieces(groups.rows), samples.pieces(groups.group), strict=True):
        went_right = torch.zeros(len(rows), dtype=torch.bool, device=rows.device)
        if splits is not None:
            went_right = samples.goes_right(splits, rows, group).reshape(-1)
        weight, x = samples.weight[rows].double(), samples.batch(rows).double()
        for side, index in enumerate((~went_right, went_right)):
            g, w = group[index], weight[index]
            found[side, :, :n] += target.tally(samples.y[rows][index], w, g, n_groups)
            found[side, :, n] += torch.bincount(g, minlength=n_groups)
            found[side, :, n + 1 :].index_add_(0, g, x[index] * w[:, None])
    return found.cpu().numpy()


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


def relative_weights(weight: npt.NDArray[np.float64], mean: float | None = None) -> torch.Tensor:
    """Return weights in units of a mean, by default of their own, in single precision.  (n,)"""
    mean = weight.mean() if mean is None else mean
    return torch.from_numpy(np.maximum(weight / mean, MIN_RELATIVE_WEIGHT)).to(torch.float32)


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

    def make_callback(self, on_epoch: EpochCallback | None) -> StoppableCallback:
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

    def scale(
        self,
        rows: RowSet,
        device: torch.device,
        n_jobs: int | None,
        mean_weight: float | None = None,
        shifts: Shifts | None = None,
        *,
        as_array: bool = False,
    ) -> Samples:
        """Return scaled rows on the training device; weights are relative to a mean, by default their own.

        ``shifts`` shift them in every epoch.
        """
        scaled: ScaledRows = scale_rows(rows.X, self.scaling, device, n_jobs, as_array=as_array or shifts is not None)
        if shifts is not None:
            assert isinstance(scaled, ArrayRows)
            scaled = ShiftedImages.of(scaled.values, shifts.image_shape, shifts.max_shift)
        y, weight = torch.from_numpy(rows.y).to(device), relative_weights(rows.weight, mean_weight).to(device)
        return Samples(scaled, y, weight, self.target, n_jobs)

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
            training = self.scale(self.training, device, n_jobs, shifts=shifts, as_array=as_array)
            validation = None if self.validation is None else self.scale(self.validation, device, n_jobs)
            self._ready[key] = training, validation
        return self._ready[key]


class SummedTask(TrainingTask, ABC):
    """A training on rows that are summed over, part by part."""

    is_small_table: ClassVar[bool] = False

    @abstractmethod
    def total(self, function: Callable[[RowSet], Doubles], shape: tuple[int, ...]) -> Doubles:
        """Return the sum of what a function gives for all parts of the training rows."""

    @abstractmethod
    def maximum(self, function: Callable[[RowSet], Doubles], shape: tuple[int, ...]) -> Doubles:
        """Return the element-wise maximum of what a function gives for all parts of the training rows."""

    def sum_statistics(self, tree: CrispTree, n_jobs: int | None) -> SufficientStatistics:
        structure = tree.structure

        def add_up(part: RowSet) -> Doubles:
            sums = sum_statistics(tree, part.X, part.y, part.weight, n_jobs, self.target)
            return np.concatenate([one.reshape(-1) for one in sums])

        size = structure.n_leaves * self.target.n_statistics
        leaves, moments = np.split(self.total(add_up, (size + 3 * structure.n_splits,)), [size])
        return SufficientStatistics(leaves.reshape(structure.n_leaves, -1), moments.reshape(structure.n_splits, 3))

    def with_ranges(self, tree: SomeTree) -> SomeTree:
        def bound(part: RowSet) -> Doubles:
            """Minus the smallest value, the largest, and whether some value is not a whole number."""
            seen = record_ranges(tree, part.X).statistics
            assert seen.lowest is not None
            assert seen.highest is not None
            assert seen.whole is not None
            return np.stack([-seen.lowest, seen.highest, 1.0 - seen.whole])

        low, high, fraction = self.maximum(bound, (3, len(tree.statistics.scaling.center)))
        ranges = {"lowest": 0.0 - low, "highest": high + 0.0, "whole": (fraction == 0).astype(np.uint8)}
        return replace(tree, statistics=replace(tree.statistics, **ranges))
