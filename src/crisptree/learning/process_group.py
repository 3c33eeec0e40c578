"""One tree by a process group: communication, shards of the rows, sums over all of them, and training steps.

The tree has the same bits for any number of processes. Rows belong to a fixed number of shards, contiguous parts of all
rows, and a process has whole shards. What a shard adds is computed from its rows alone, in one order; sums over shards
are taken in integer units (``ProcessGroup.total``), which no order changes. Random numbers are drawn from one seed, and
for the rows of a shard from that seed and the shard's number. Gradients come from the engines of a single process,
which keep those of every shard apart (``PartSums``).
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, NoReturn, cast

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor

from crisptree.data.raw_rows import MIN_SPREAD, SCALES, Scaling
from crisptree.data.rows import ArrayRows, UnscaledRows
from crisptree.exceptions import ProcessGroupError
from crisptree.learning.engines.base import (
    DivergenceError,
    Doubles,
    EpochResult,
    Groups,
    Integers,
    Parts,
    PartStep,
    TrainState,
    Update,
    all_finite,
    get_store,
    use_store,
)
from crisptree.learning.growth import SummedLevel
from crisptree.learning.history import EpochCallback, EpochRecord, StopTraining
from crisptree.learning.loop import PART_SUMS
from crisptree.learning.options import EpochSettings, Plan
from crisptree.learning.samples import (
    Result,
    RowSet,
    Samples,
    StoppableCallback,
    SummedRows,
    SummedTask,
    group_leaves,
)
from crisptree.persistence.checkpoints import Arrays, CheckpointStore, Record
from crisptree.threads import n_threads, row_blocks
from crisptree.tree import Tree

MAX_GATHERED_VALUES = 2**28
"""Values of the rows that the first process gathers to search thresholds, 1 GB of float32; it samples larger ones."""

SUM_BITS = 50
"""Bits of the largest part of a sum; the sum of up to 4096 parts fits into 63."""


class ProcessGroup:
    """One process's handle of a process group of torch; None is the default group."""

    def __init__(self, group: Any = None) -> None:
        self.group = group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.communicates = self.size > 1
        has_cpu = "cpu:" in str(dist.get_backend_config(group))
        self.device = torch.device("cpu") if has_cpu else torch.device("cuda", torch.cuda.current_device())

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def share_threads(self, n_jobs: int | None) -> int:
        """Return the number of threads of this process, one of several on its machine."""
        return n_threads(n_jobs, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))

    def reduce(self, values: Tensor, how: Any = dist.ReduceOp.SUM) -> None:
        """All-reduce values in place, by default to their sum."""
        if not self.communicates:
            return
        with _report_failures():
            there = values if values.is_cuda else values.to(self.device)
            dist.all_reduce(there, how, group=self.group)
            if there is not values:
                values.copy_(there)

    def reduce_rows(self, values: Tensor, index: Tensor | None) -> None:
        """All-reduce some rows of a matrix, or all, in place."""
        if not self.communicates:
            return
        if index is None:
            self.reduce(values)
            return
        some = values[index]
        self.reduce(some)
        values[index] = some

    def total(self, parts: Sequence[Any], shape: tuple[int, ...] = ()) -> Doubles:
        """Return the sum of arrays over the shards of all processes; ``parts`` are those of this process.

        Element by element the unit is 2⁻⁵⁰ of the largest absolute value in any shard. In units the parts are
        integers, whose sum is the same in any order. Where a part is not finite the sum is NaN.
        """
        own = np.zeros((len(parts), *shape))
        for place, part in enumerate(parts):
            own[place] = part.detach().cpu().numpy() if isinstance(part, Tensor) else part
        sizes = np.where(np.isfinite(own), np.abs(own), np.inf)
        largest = sizes.max(axis=0, initial=0.0)
        self.reduce(torch.from_numpy(largest.reshape(-1)), dist.ReduceOp.MAX)
        is_good = np.isfinite(largest)
        _, exponent = np.frexp(np.where(is_good, largest, 0.0))
        unit = np.ldexp(1.0, np.maximum(exponent - SUM_BITS, -1000))
        whole = np.asarray(np.rint(np.where(is_good, own, 0.0) / unit).astype(np.int64).sum(axis=0))
        self.reduce(torch.from_numpy(whole.reshape(-1)))
        return np.where(is_good, whole * unit, np.nan)

    def maximum(self, values: Doubles) -> Doubles:
        """Return the element-wise maximum over all processes."""
        found = np.array(values, dtype=np.float64)
        self.reduce(torch.from_numpy(found.reshape(-1)), dist.ReduceOp.MAX)
        return found

    def gather(self, mine: Any) -> list[Any]:
        """Return the objects of all processes, by rank."""
        if not self.communicates:
            return [mine]
        found: list[Any] = [None] * self.size
        with _report_failures(), self._on_device():
            dist.all_gather_object(found, mine, group=self.group)
        return found

    def gather_first(self, mine: Any) -> list[Any] | None:
        """Return the objects of all processes on rank 0, None on others."""
        if not self.communicates:
            return [mine]
        found: list[Any] | None = [None] * self.size if self.is_first else None
        with _report_failures(), self._on_device():
            dist.gather_object(mine, found, dst=0, group=self.group)
        return found

    def run_on_all(self, function: Callable[[], Result]) -> Result:
        """Call a function on every rank; if it fails on any, raise the error of the lowest such rank on all."""
        result, error = _try(function)
        for rank, other in enumerate(self.gather(error)):
            if other is not None:
                _raise(other, rank)
        return result  # type: ignore[return-value]

    def from_first(self, function: Callable[[], Result]) -> Result:
        """Call a function on rank 0; return its result, or raise its error, on all ranks."""
        found: list[Any] = [_try(function) if self.is_first else None]
        if self.communicates:
            with _report_failures(), self._on_device():
                dist.broadcast_object_list(found, src=0, group=self.group)
        result, error = found[0]
        if error is not None:
            _raise(error, 0)
        return result

    def exchange(self, values: npt.NDArray[Any], send: Sequence[int], receive: Sequence[int]) -> npt.NDArray[Any]:
        """Exchange rows: the first ``send[0]`` go to rank 0, and so on; ``receive`` are the numbers that come."""
        width = int(np.prod(values.shape[1:], dtype=np.int64)) * values.itemsize
        flat = torch.from_numpy(np.ascontiguousarray(values).reshape(-1).view(np.uint8))
        got = torch.empty(sum(receive) * width, dtype=torch.uint8, device=self.device)
        sizes = [n * width for n in receive], [n * width for n in send]
        with _report_failures():
            dist.all_to_all_single(got, flat.to(self.device), *sizes, group=self.group)
        return got.cpu().numpy().view(values.dtype).reshape(-1, *values.shape[1:])

    @contextmanager
    def _on_device(self) -> Iterator[None]:
        """Make the group's device the current one, through which torch sends objects."""
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                yield
        else:
            yield


@contextmanager
def _report_failures() -> Iterator[None]:
    """Raise a ``ProcessGroupError`` for errors of communication."""
    try:
        yield
    except RuntimeError as error:
        raise ProcessGroupError(
            "all processes of the group must answer; one has died or did not within the group's timeout, and this fit "
            f"ends with it. Start all of them again; with `checkpoint` and `resume=True` they resume. ({error})"
        ) from error


def _try(function: Callable[[], Result]) -> tuple[Result | None, Exception | None]:
    try:
        return function(), None
    except ProcessGroupError:
        raise
    except Exception as error:
        return None, _make_picklable(error)


def _make_picklable(error: Exception) -> Exception:
    """Return the error, or a copy that can be pickled."""
    try:
        again = pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error.with_traceback(None) if isinstance(again, type(error)) else RuntimeError(str(error))


def _raise(error: Exception, rank: int) -> NoReturn:
    error.add_note(f"(process {rank} of the group)")
    raise error


class SharedCheckpointStore(CheckpointStore):
    """The store of rank 0, from which all processes get the same records."""

    def __init__(self, store: CheckpointStore | None, group: ProcessGroup) -> None:
        self.store, self.group = store, group

    def next_record(self, name: str, epochs: int) -> Record:
        return self.group.from_first(lambda: self.own.next_record(name, epochs))

    def keep(self, record: Record, epochs: int, *, is_over: bool, arrays: Callable[[], Arrays]) -> None:
        self.group.from_first(lambda: self.own.keep(record, epochs, is_over=is_over, arrays=arrays))

    def write(self, current: Record | None = None) -> None:
        """Do nothing: rank 0 writes when its own store is closed."""

    @property
    def own(self) -> CheckpointStore:
        assert self.store is not None
        return self.store


@contextmanager
def keep_shared_checkpoints(group: ProcessGroup) -> Iterator[None]:
    """Keep trainings of all processes in the store of rank 0."""
    with use_store(SharedCheckpointStore(get_store(), group)):
        yield


GRADIENT_BITS = 40
"""Bits of a gradient of γ · the largest value of a feature · the largest weight of a row."""


@dataclass(frozen=True, eq=False)
class Shards:
    """The shards of one process, numbered from ``first`` among the ``n_shards`` of all processes; some have no rows.

    They are contiguous parts of ``rows``, from ``cuts[i]`` to ``cuts[i + 1]``.
    """

    rows: RowSet
    cuts: Integers
    first: int
    n_shards: int

    @property
    def numbers(self) -> range:
        """The numbers of the shards."""
        return range(self.first, self.first + len(self.cuts) - 1)

    @property
    def parts(self) -> list[RowSet]:
        """The rows of every shard."""
        return [self.rows.select(slice(begin, end)) for begin, end in pairwise(self.cuts)]

    def select(self, is_kept: npt.NDArray[np.bool_]) -> Shards:
        """Keep some rows of every shard."""
        if is_kept.all():
            return self
        cuts = np.concatenate([[0], np.cumsum(is_kept)])[self.cuts]
        return replace(self, rows=self.rows.select(is_kept), cuts=cuts)

    @classmethod
    def of(cls, part: RowSet, group: ProcessGroup, n_shards: int) -> Shards:
        """Distribute rows to shards, where all rows are those of process 0, then those of process 1, and so on.

        Shard s has the rows N·s // S to N·(s + 1) // S, and process r the shards S·r // R to S·(r + 1) // R. Where
        processes have about as many rows each, few have to move.
        """
        counts = np.array(group.gather(len(part.y)))
        starts, n = np.concatenate([[0], np.cumsum(counts)]), int(counts.sum())
        lows = [n * (n_shards * rank // group.size) // n_shards for rank in range(group.size + 1)]
        part = move_rows(part, group, starts, np.array(lows))
        first, last = (n_shards * rank // group.size for rank in (group.rank, group.rank + 1))
        low = lows[group.rank]
        return cls(part, np.array([n * shard // n_shards - low for shard in range(first, last + 1)]), first, n_shards)

    def sample(self, most: int, n_rows: int, seed: int) -> RowSet:
        """Sample about ``most`` of the ``n_rows`` rows of all shards, and return those of the shards here."""
        found = []
        for number, part in zip(self.numbers, self.parts, strict=True):
            found.append(part.select(sample_shard(len(part.y), most, n_rows, seed, number)))
        return RowSet.concatenate(found)

    def split_off(self, share: float, seed: int) -> tuple[Shards, Shards]:
        """Split off a share of held-out rows, drawn in every shard separately."""
        sizes = zip(self.numbers, np.diff(self.cuts), strict=True)
        drawn = [np.random.default_rng([seed, number]).random(size) < share for number, size in sizes]
        is_held = np.concatenate([np.zeros(0, bool), *drawn])
        return self.select(~is_held), self.select(is_held)


def sample_shard(n: int, most: int, n_rows: int, seed: int, number: int) -> npt.NDArray[np.int64]:
    """Draw rows of a shard of ``n`` where all ``n_rows`` are to give about ``most``; all of it where they are fewer."""
    some = n if n_rows <= most else -(-most * n // n_rows)
    return np.sort(np.random.default_rng([seed, number, 1]).permutation(n)[:some])


def move_rows(part: RowSet, group: ProcessGroup, starts: npt.NDArray[np.int64], lows: npt.NDArray[np.int64]) -> RowSet:
    """Move rows so that process r, which has starts[r] to starts[r + 1] of all, gets lows[r] to lows[r + 1]."""
    if np.array_equal(starts, lows):
        return part

    def common(mine: npt.NDArray[np.int64], theirs: npt.NDArray[np.int64]) -> list[int]:
        low, high = mine[group.rank], mine[group.rank + 1]
        return [int(max(0, min(high, theirs[r + 1]) - max(low, theirs[r]))) for r in range(group.size)]

    to, come = common(starts, lows), common(lows, starts)
    arrays: tuple[Any, ...] = (part.X, part.y, part.weight)
    return RowSet(*(group.exchange(values, to, come) for values in arrays))


class FeatureStatistics(NamedTuple):
    """Mean, spread and number of rows of a dataset over all processes."""

    n_rows: int
    mean_weight: float
    mean: npt.NDArray[np.float64]
    spread: npt.NDArray[np.float64]
    varies: npt.NDArray[np.bool_]

    @property
    def n_features(self) -> int:
        return len(self.mean)

    def scaling(self, kind: str | None) -> Scaling:
        """Scaling of the features, as ``Scaling.learn`` defines it."""
        return Scaling(*SCALES[kind](self.mean, self.spread, self.varies), self.mean, self.spread)

    @classmethod
    def of(cls, group: ProcessGroup, shards: Shards) -> FeatureStatistics:
        """Compute the statistics in two passes: ranges first, then mean and spread."""
        parts = [part for part in shards.parts if len(part.y)]
        n_rows, weight = group.total([(len(part.y), part.weight.sum()) for part in parts], (2,))
        n = shards.rows.X.shape[1]
        ends = np.full((2, n), -np.inf)
        for part in parts:
            X: Any = part.X
            ends = np.maximum(ends, np.stack([-X.min(axis=0), X.max(axis=0)]).astype(np.float64))
        low, high = group.maximum(ends)
        low = -low
        varies = high - low > MIN_SPREAD
        middle, half = low / 2 + high / 2, np.where(varies, high / 2 - low / 2, 1.0)
        first, second = group.total([_moments(part, middle, half) for part in parts], (2, n)) / weight
        spread = half * np.sqrt(np.maximum(second - first**2, 0.0))
        varies &= spread > MIN_SPREAD
        return cls(int(n_rows), float(weight / n_rows), middle + half * first, spread, varies)


def _moments(part: RowSet, middle: npt.NDArray[np.float64], half: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Σ w u and Σ w u² of the scaled features, without matrix products, whose bits depend on the threads."""
    sums, X = np.zeros((2, len(middle))), cast(Any, part.X)
    for rows in row_blocks(len(part.y), 1024):
        unit = (X[rows] - middle) / half
        weighted = unit * part.weight[rows][:, None]
        sums += weighted.sum(axis=0), (weighted * unit).sum(axis=0)
    return sums


@dataclass(frozen=True, eq=False, kw_only=True)
class ShardedTask(SummedTask):
    """A training by all processes of a group. ``training`` has no rows; they are in the shards of all processes.

    ``total_rows`` and ``row_weight`` are the number of rows in all processes and their mean weight. ``sample`` are some
    of all rows, the same in every process, on which stumps of regression trees search for a start.
    """

    group: ProcessGroup
    shards: Shards
    validation_shards: Shards | None
    total_rows: int
    row_weight: float
    sample: RowSet | None

    @property
    def n_rows(self) -> int:
        return self.total_rows

    @property
    def mean_weight(self) -> float:
        return self.row_weight

    @property
    def is_first(self) -> bool:  # type: ignore[override]
        return self.group.is_first

    def compute_once(self, function: Callable[[], Result]) -> Result:
        def compute() -> Result:
            store = get_store()  # of this process: the trainings inside are its own
            with use_store(store.own) if isinstance(store, SharedCheckpointStore) else nullcontext():
                return function()

        return self.group.from_first(compute)

    def make_callback(self, on_epoch: EpochCallback | None) -> GroupCallback:
        return GroupCallback(self.group, on_epoch)

    def on(self, device: torch.device, n_jobs: int | None, shifts: Any = None, **options: Any) -> tuple[Any, Any]:
        sample = None if self.sample is None else self.scale(self.sample, device, n_jobs, self.mean_weight)

        def rows(shards: Shards, sample: Samples | None) -> ShardedRows:
            own = self.scale(shards.rows, device, n_jobs, self.mean_weight)
            return ShardedRows(self.group, own, shards.cuts, shards.first, shards.n_shards, sample)

        return rows(self.shards, sample), None if self.validation_shards is None else rows(self.validation_shards, None)

    def total(self, function: Callable[[RowSet], Doubles], shape: tuple[int, ...]) -> Doubles:
        return self.group.total([function(part) for part in self.shards.parts if len(part.y)], shape)

    def maximum(self, function: Callable[[RowSet], Doubles], shape: tuple[int, ...]) -> Doubles:
        parts = [function(part) for part in self.shards.parts if len(part.y)]
        return self.group.maximum(np.max([np.full(shape, -np.inf), *parts], axis=0))


class GroupCallback(StoppableCallback):
    """Call the callback in the first process; if it asks to stop, or fails, all processes do."""

    def __init__(self, group: ProcessGroup, callback: EpochCallback | None) -> None:
        super().__init__(callback)
        self.group = group

    def __call__(self, record: EpochRecord) -> None:
        self.is_stopped = self.group.from_first(lambda: self._goes_on(record)) is False
        if self.is_stopped:
            raise StopTraining(record)

    def _goes_on(self, record: EpochRecord) -> bool:
        try:
            super().__call__(record)
        except StopTraining:
            return False
        return True


class ShardedRows(SummedRows):
    """The rows of all processes, of which this one has some shards, contiguous parts of ``rows``."""

    def __init__(
        self,
        group: ProcessGroup,
        rows: Samples,
        cuts: Integers,
        first: int,
        n_shards: int,
        sample: Samples | None = None,
    ) -> None:
        super().__init__(_part(rows, 0, 0), sample)
        self.group, self.rows, self.cuts, self.first, self.n_shards = group, rows, cuts, first, n_shards
        self.samples = [_part(rows, begin, end) for begin, end in pairwise(cuts)]
        self.n_rows = int(self.group.total([float(len(rows))]))

    def __len__(self) -> int:
        return self.n_rows

    def total(self, function: Callable[[Samples], Any], shape: tuple[int, ...]) -> Doubles:
        return self.group.total([function(samples) for samples in self.samples], shape)

    def replace_y(self, function: Callable[[Samples], Tensor]) -> ShardedRows:
        none = self.rows.y[:0]
        rows = replace(self.rows, y=torch.cat([none, *(function(part).to(none) for part in self.samples)]))
        sample = self.sample and replace(self.sample, y=function(self.sample))
        return ShardedRows(self.group, rows, self.cuts, self.first, self.n_shards, sample)

    def grow_in_memory(self, grow: Callable[[Samples], Tree]) -> Tree:
        """Return the tree that the first process grows on the rows of all shards, or on a sample of so many rows."""
        most = max(MAX_GATHERED_VALUES // self.n_features, 1)
        mine = []
        for number, part in enumerate(self.samples, self.first):
            rows = torch.from_numpy(sample_shard(len(part), most, len(self), 0, number)).to(self.device)
            mine.append([values.cpu() for values in (part.batch(rows), part.y[rows], part.weight[rows])])
        gathered = self.group.gather_first(mine)

        def compute() -> Tree:
            assert gathered is not None
            x, y, weight = map(torch.cat, zip(*(part for parts in gathered for part in parts), strict=True))
            return grow(replace(self.rows, rows=ArrayRows(x), y=y, weight=weight))

        tree = self.group.from_first(compute)
        return replace(tree, splits=tree.splits.on(self.device), leaves=tree.leaves.to(self.device))

    def make_engine(self, state: TrainState, plan: Plan, generator: torch.Generator, *, fresh: bool) -> ShardedEngine:
        if isinstance(state, SummedLevel):
            tree, leaves = state.open.tree, state.open.leaves
            own = [group_leaves(tree, samples, leaves) for samples in self.samples]
        else:
            own = [Groups.single(len(samples), samples.device) for samples in self.samples]
        own = [replace(groups, rows=groups.rows + int(cut)) for groups, cut in zip(own, self.cuts, strict=False)]
        groups = ShardedGroups.of(own, state.n_stumps, self.n_shards, self.first, self.group)
        return ShardedEngine(state, groups, self.rows, self.parts, plan, self.group, generator, fresh=fresh)

    @cached_property
    def parts(self) -> Parts:
        """The shards here, and the units of gradients by the largest feature values and weight of all rows."""
        n = self.n_features
        largest = np.zeros(n + 1)
        for rows in self.rows.pieces() if len(self.rows) else ():
            values = self.rows.batch(rows).abs().amax(dim=0).double().cpu().numpy()
            largest[:n] = np.maximum(largest[:n], values)
            largest[n] = max(largest[n], float(self.rows.weight[rows].max()))
        largest = self.group.maximum(largest)
        return Parts(self.cuts, gradient_units(largest[:n], float(largest[n])), self.n_shards)


def _part(samples: Samples, begin: int, end: int) -> Samples:
    """Contiguous rows as a view."""
    some, rows = slice(begin, end), samples.rows
    if isinstance(rows, UnscaledRows):
        part: ArrayRows | UnscaledRows = UnscaledRows(rows.values[some], rows.scaling)
    else:
        assert isinstance(rows, ArrayRows)
        part = ArrayRows(rows.values[some])
    return replace(samples, rows=part, y=samples.y[some], weight=samples.weight[some])


def gradient_units(largest: Doubles, heaviest: float) -> Doubles:
    """Return the unit of the gradient of every weight, and of the bias, for γ from 1 to 2.  (n_features + 1,)

    A row adds at most γ x w to a gradient, where w is its weight relative to the mean of its batch, so that the sum of
    a batch is at most γ max|x| times the largest relative weight. Units leave room for 2¹⁰ times as much.
    """
    bounds = np.append(largest, 1.0) * max(heaviest, 1.0)
    _, exponent = np.frexp(bounds)
    return np.where(bounds > 0, np.ldexp(1.0, np.maximum(exponent - GRADIENT_BITS, -1000)), 1.0)


class ShardedGroups:
    """The rows of every group in the shards of this process, and the ``sizes`` (n_shards, n_groups) in all shards.

    A group may have no rows in a shard. ``own`` are numbers of this process's rows, by shard; ``first`` is the number
    of its first shard.
    """

    def __init__(self, own: list[Groups], sizes: Integers, first: int) -> None:
        self.own, self.sizes, self.first = own, sizes, first
        self.all = Groups(torch.zeros(0, dtype=torch.long), torch.from_numpy(sizes.sum(axis=0)))

    @classmethod
    def of(cls, own: list[Groups], n_groups: int, n_shards: int, first: int, group: ProcessGroup) -> ShardedGroups:
        """Gather the sizes of the groups of all processes."""
        sizes = np.zeros((n_shards, n_groups), dtype=np.int64)
        for number, groups in enumerate(own, start=first):
            sizes[number] = groups.host_sizes
        group.reduce(torch.from_numpy(sizes))
        return cls(own, sizes, first)

    def ranges(self, active: Integers, batch: Integers, n_batches: Integers) -> tuple[Integers, Integers]:
        """Return where a batch of every active group begins and ends among its rows in every shard.  Two (n_shards, a)

        The remainder of a division goes to another batch in every shard, so that batches are of one size.
        """
        sizes, n_shards = self.sizes[:, active], len(self.sizes)
        offset = np.arange(n_shards)[:, None] * n_batches // n_shards
        return (batch * sizes + offset) // n_batches, ((batch + 1) * sizes + offset) // n_batches

    def mean_weight(self, samples: Samples, group: ProcessGroup) -> Doubles:
        """Mean weight of every group's rows in all shards.  (n_groups,)"""
        n_groups = self.sizes.shape[1]
        none = torch.zeros(n_groups, dtype=torch.float64, device=samples.device)
        weights = [none.index_add(0, own.group, samples.weight[own.rows].double()) for own in self.own]
        return group.total(weights, (n_groups,)) / self.sizes.sum(axis=0)

    def steps(self, plan: Plan, mean_weight: Doubles) -> list[PartStep]:
        """Return the steps of every epoch, whose positions are those of ``order``."""
        share, here = 1 / self.all.passes(plan), slice(self.first, self.first + len(self.own))
        n_rows = np.cumsum([0, *(len(own.rows) for own in self.own)])
        starts = [np.cumsum(own.host_sizes) - own.host_sizes + n for own, n in zip(self.own, n_rows, strict=False)]
        begins = np.array(starts, dtype=np.int64).reshape(-1, self.sizes.shape[1])
        steps = []
        for active, batch, n_batches in self.all.iter_steps(plan):
            begin, end = self.ranges(active, batch, n_batches)
            lengths = end - begin
            in_loss = 1 / (mean_weight[active] * np.maximum(lengths.sum(axis=0), 1))
            place, part = np.nonzero(lengths[here].T)
            group, first = active[place], begin[here][part, place]
            start = begins[part, group] + first
            update = Update(group * max(len(self.own), 1) + part, start, start + lengths[here][part, place])
            moves = None if len(active) == self.sizes.shape[1] else torch.from_numpy(active)
            steps.append(PartStep(update, in_loss[place], share[group], moves, int(lengths.max())))
        return steps

    def order(self, plan: Plan, seed: int, device: torch.device) -> Tensor:
        """Return the rows of every shard, group after group, each group's in an order of the seed and the shard."""
        rows = torch.cat([torch.zeros(0, dtype=torch.long, device=device), *(own.rows for own in self.own)])
        if self.all.n_batches(plan).max() == 1 or not len(rows):
            return rows  # one batch holds them all: their order means nothing
        if device.type != "cpu":
            return rows[self.hash_order(seed)]
        n_groups, keys = self.sizes.shape[1], []
        for place, own in enumerate(self.own):
            random = torch.from_numpy(np.random.default_rng([seed, self.first + place]).random(len(own.rows)))
            keys.append(random + own.group + place * n_groups)
        return rows[torch.from_numpy(np.argsort(torch.cat(keys).numpy()))]  # several times faster than torch's sort

    def hash_order(self, seed: int) -> Tensor:
        """Return the same as positions, by random numbers that a device computes for all shards at once.  (n,)"""
        return torch.argsort(self.device_cells + hash_uniform(self.device_counters, seed))

    @cached_property
    def device_cells(self) -> Tensor:
        """Number of the shard and the group of every row, in one.  (n,), float64"""
        n_groups = self.sizes.shape[1]
        return torch.cat([own.group + place * n_groups for place, own in enumerate(self.own)]).double()

    @cached_property
    def device_counters(self) -> Tensor:
        """Number of every row within its shard, and of the shard among those of all processes, in one.  (n,)"""
        own = [torch.arange(len(own.rows), device=own.rows.device) for own in self.own]
        return torch.cat([rows + ((self.first + place) << 40) for place, rows in enumerate(own)])


def hash_uniform(counters: Tensor, seed: int) -> Tensor:
    """Return a random number in [0, 1) for every counter, by the hash function of SplitMix64.  (n,) → (n,)

    Examples
    --------
    >>> hash_uniform(torch.tensor([0, 1]), seed=0).tolist()
    [0.8833108082136426, 0.43152799704850997]
    """
    value = (counters + 1) * -0x61C8864680B583EB + seed  # its factors, as signed integers
    for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15)):
        value = (value ^ _shift_right(value, shift)) * factor
    value = value ^ _shift_right(value, 31)
    return _shift_right(value, 11).double() * 2.0**-53


def _shift_right(value: Tensor, n: int) -> Tensor:
    """Shift 64-bit integers without copying their sign."""
    return (value >> n) & ((1 << (64 - n)) - 1)


class ShardedEngine:
    """Training steps whose gradients are the sum over all shards."""

    def __init__(
        self,
        state: Any,
        groups: ShardedGroups,
        samples: Samples,
        parts: Parts,
        plan: Plan,
        group: ProcessGroup,
        generator: torch.Generator,
        *,
        fresh: bool,
    ) -> None:
        self.state, self.groups, self.plan, self.group, self.generator = state, groups, plan, group, generator
        self.device, self.shape = samples.device, (len(state.leaves), state.n_stumps * samples.target.n_statistics)
        self.steps = groups.steps(plan, groups.mean_weight(samples, group))
        kind = next(kind for kind in PART_SUMS if kind.supports(state, samples, plan))
        self.engine = kind(state, samples, plan, parts, self.steps, fresh=fresh)

    def optimizer_state(self) -> dict[str, Tensor]:
        return self.engine.optimizer_state()

    def epoch(self, settings: EpochSettings, order: Tensor) -> EpochResult:
        """Take all steps; the order of the rows is drawn here."""
        seed, engine = int(torch.randint(2**62, (), generator=self.generator)), self.engine
        engine.begin_parts(settings, self.groups.order(self.plan, seed, self.device))
        engine.run(self._take_steps, is_local=not self.group.communicates)
        if not engine.is_in_bounds():
            raise DivergenceError(
                "gradients must stay within 2^10 times the largest value of their feature (steepness "
                f"{settings.steepness:g}), and be numbers; some did not. Lower learning_rate, steepness_step or the "
                "weights of heavy rows, or train with scale='feature'."
            )
        counts, likelihoods = engine.part_results()
        total = self.group.total(list(counts), self.shape)
        log_likelihood, weight = self.group.total(list(likelihoods), (2,))
        result = torch.from_numpy(total).to(self.state.leaves)
        return EpochResult(result, float(-log_likelihood / weight), all_finite(self.state.splits))

    def _take_steps(self) -> None:
        for number, step in enumerate(self.steps):
            if len(step.update.active):
                self.engine.add(number)
            self.group.reduce_rows(self.engine.sums, None if self.state.is_whole_tree else step.moves)
            self.engine.move()
