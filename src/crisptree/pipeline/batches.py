"""The fit of a tree on rows that are read in batches, in several passes. Imports torch.

The first pass learns statistics. In training a chunk of a pass is a small ``Samples``, on which the fastest engine
takes its steps as anywhere else; the state of the optimiser goes from one chunk to the next. Only sums over rows are
kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.data.batches import Batches, StreamError
from crisptree.data.raw_rows import MIN_SPREAD, SCALES, Scaling
from crisptree.data.validation import InputSchema
from crisptree.learning.engines.base import EpochResult, Orders, TrainState, all_finite, group_rows
from crisptree.learning.growth import Stumps, SummedLevel
from crisptree.learning.loop import WholeTree, select_engine
from crisptree.learning.options import EpochSettings, Plan
from crisptree.learning.samples import (
    Doubles,
    LeafState,
    RowSet,
    Samples,
    SummedRows,
    SummedTask,
    TrainingTask,
)
from crisptree.pipeline.monitoring import Checkpoints
from crisptree.pipeline.trees import TrainedRows, TrainingDataset, describe_device, fit_rows
from crisptree.pipeline.validation import (
    RowModel,
    check_capabilities,
    check_features_of_leaves,
    check_parameters,
    check_validation,
    draw_seed,
)
from crisptree.selection.candidates import resolve_scale
from crisptree.selection.search import SAMPLE_ROWS
from crisptree.targets import Target
from crisptree.targets.base import TargetEncoding, TargetStatistics

Chunks = Callable[[int | None], Iterator[RowSet]]
"""A pass over all rows; with a seed they are shuffled."""

MAX_CHUNK_VALUES = 2**24
"""Values of a chunk and of the shuffle buffer, 64 MB of float32 each."""

OPTIMIZER_STATE = ("mean.", "square.", "steps")
"""Prefixes of the state that chunks pass on; everything else is computed from the weights."""


class Totals(NamedTuple):
    """Result of the first pass: rows, their mean weight, the statistics of all, and the mean of raw features."""

    n_rows: int
    mean_weight: float
    statistics: Doubles
    mean: Doubles


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise errors about y as errors of batches."""
    try:
        yield
    except ValueError as error:
        raise StreamError(str(error)) from error


def _join(parts: list[RowSet], rng: np.random.Generator | None) -> RowSet:
    joined = RowSet.concatenate(parts)
    return joined if rng is None else joined.select(rng.permutation(len(joined.y)))


def _split(part: RowSet, end: int, size: int) -> Iterator[RowSet]:
    for start in range(0, end, size):
        yield part.select(slice(start, min(start + size, end)))


def _with_weight(part: RowSet) -> RowSet:
    """Drop rows of weight zero."""
    kept = part.weight > 0
    return part if kept.all() else part.select(kept)


class _Moments:
    """Weighted mean and spread of every feature, about the mean of the first batch to avoid cancellation."""

    def __init__(self, X: npt.NDArray[np.float32]) -> None:
        self.center = X.mean(axis=0, dtype=np.float64)
        self.total = 0.0
        self.first, self.second = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        self.low, self.high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)

    def add(self, X: npt.NDArray[np.float32], weight: npt.NDArray[np.float64]) -> None:
        for start in range(0, len(X), 4096):
            deviation, w = X[start : start + 4096] - self.center, weight[start : start + 4096]
            with np.errstate(over="ignore", invalid="ignore"):  # weights that overflow are refused after the pass
                self.total += w.sum()
                self.first += w @ deviation
                self.second += w @ np.square(deviation, out=deviation)
        self.low, self.high = np.minimum(self.low, X.min(axis=0)), np.maximum(self.high, X.max(axis=0))

    @property
    def mean(self) -> npt.NDArray[np.float64]:
        return np.asarray(self.center + self.first / self.total)

    @property
    def spread(self) -> npt.NDArray[np.float64]:
        return np.sqrt(np.maximum(self.second / self.total - (self.first / self.total) ** 2, 0.0))

    @property
    def varies(self) -> npt.NDArray[np.bool_]:
        return np.asarray((self.high - self.low > MIN_SPREAD) & (self.spread > MIN_SPREAD))


class _Reservoir:
    """Reservoir-sample rows uniformly."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self.size, self.rng = size, rng
        self.keys = np.zeros(0)
        self.rows: tuple[Any, ...] = ()

    def add(self, *parts: npt.NDArray[Any]) -> None:
        keys = np.concatenate([self.keys, self.rng.random(len(parts[1]))])
        kept = np.sort(np.argsort(keys, kind="stable")[: self.size])
        n = len(self.keys)
        old, new = kept[kept < n], kept[kept >= n] - n
        self.keys = keys[kept]
        added = tuple(part[new] for part in parts)
        if self.rows:
            added = tuple(np.concatenate([one[old], other]) for one, other in zip(self.rows, added, strict=True))
        self.rows = added


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchedTask(SummedTask):
    """A training on batches. ``training`` are some of the rows, ``chunks`` begins a pass over all of them.

    Weights of statistics are relative to the mean weight of all rows.
    """

    totals: Totals
    chunks: Chunks

    @property
    def n_rows(self) -> int:
        return self.totals.n_rows

    @property
    def mean_weight(self) -> float:
        return self.totals.mean_weight

    def on(self, device: torch.device, n_jobs: int | None, shifts: Any = None, **options: Any) -> tuple[Any, Any]:
        sample, validation = super().on(device, n_jobs)
        return BatchedRows(self, sample), validation

    def total(self, function: Callable[[RowSet], Doubles], shape: tuple[int, ...]) -> Doubles:
        return np.asarray(sum(map(function, self.chunks(None)), np.zeros(shape)))

    def maximum(self, function: Callable[[RowSet], Doubles], shape: tuple[int, ...]) -> Doubles:
        return np.max([function(part) for part in self.chunks(None)], axis=0)


class BatchedRows(SummedRows):
    """All rows of the batches, a chunk at a time."""

    retries_later = True

    def __init__(self, task: BatchedTask, sample: Samples, make_y: Callable[[Samples], Tensor] | None = None) -> None:
        none = task.training.select(slice(0))
        super().__init__(task.scale(none, sample.device, sample.n_jobs, 1.0), sample)
        self.task, self.n_jobs, self.make_y = task, sample.n_jobs, make_y

    def __len__(self) -> int:
        return self.task.totals.n_rows

    def one_pass(self, seed: int | None = None) -> Iterator[Samples]:
        """Yield all rows once, a chunk at a time; weights are relative to the mean of all."""
        task = self.task
        for part in task.chunks(seed):
            samples = task.scale(part, self.device, self.n_jobs, task.totals.mean_weight, as_array=True)
            yield samples if self.make_y is None else replace(samples, y=self.make_y(samples))

    def replace_y(self, function: Callable[[Samples], Tensor]) -> BatchedRows:
        assert self.sample is not None
        return BatchedRows(self.task, replace(self.sample, y=function(self.sample)), function)

    @property
    def root(self) -> LeafState:
        """All rows as one leaf, known from the first pass unless their y is another."""
        if self.make_y is not None:
            return super().root
        totals, scaling = self.task.totals, self.task.scaling
        center = torch.from_numpy((totals.mean - scaling.center) * scaling.factor).to(self.weight)
        return LeafState(totals.n_rows, totals.statistics, center)

    def total(self, function: Callable[[Samples], Any], shape: tuple[int, ...]) -> Doubles:
        return np.asarray(sum(map(function, self.one_pass()), np.zeros(shape)))

    def make_engine(self, state: TrainState, plan: Plan, generator: torch.Generator, *, fresh: bool) -> BatchedEngine:
        assert fresh  # responsibilities of the parameters before an epoch would have to be kept for every row
        return BatchedEngine(state, self, plan, generator)


class BatchedEngine:
    """The steps of an epoch, chunk after chunk, by the quickest backend for each."""

    def __init__(self, state: Any, rows: BatchedRows, plan: Plan, generator: torch.Generator) -> None:
        self.state, self.rows, self.generator = state, rows, generator
        self.plan = replace(plan, rows_per_epoch=None)
        self.shares = state.penalty_shares if state.is_whole_tree and plan.has_penalties else None
        parameters = state.splits.parameters
        self.adam_state = {"steps": next(iter(parameters.values())).new_zeros(state.splits.n_splits)}
        for kind in ("mean", "square"):
            self.adam_state |= {
                f"{kind}.{name}": torch.zeros_like(value).detach() for name, value in parameters.items()
            }

    def optimizer_state(self) -> dict[str, Tensor]:
        return self.adam_state

    def epoch(self, settings: EpochSettings, order: Tensor) -> EpochResult:
        """Train on all chunks of one pass, in an order that is drawn here."""
        state, target = self.state, self.rows.target
        n_columns = state.leaves.shape[1] // target.n_values * target.n_statistics
        counts = state.leaves.new_zeros(len(state.leaves), n_columns, dtype=torch.float64)
        loss = total = 0.0
        for samples in self.rows.one_pass(int(torch.randint(2**62, (), generator=self.generator))):
            chunk, index = self._chunk(samples)
            if not len(index):
                continue
            plan = replace(self.plan, min_updates=math.ceil(len(samples) / len(self.rows) * self.plan.min_updates))
            found = self._chunk_epoch(chunk, index, samples, plan, settings)
            wide = counts.reshape(len(counts), -1, target.n_statistics)
            some = found.counts.reshape(len(counts), -1, target.n_statistics).to(counts)
            wide[:, index if not state.is_whole_tree else slice(None)] += some
            weight = float(samples.weight[chunk.groups.rows].double().sum())
            loss, total = loss + weight * found.loss, total + weight
        return EpochResult(counts.to(state.leaves), loss / max(total, 1e-300), all_finite(state.splits))

    def _chunk(self, samples: Samples) -> tuple[Any, Tensor]:
        """Return the state that a chunk trains and the indices of its splits: the whole tree, or the stumps reached."""
        state = self.state
        if state.is_whole_tree:
            whole = WholeTree(state.tree(), samples, state.zeros, state.signs)
            if self.shares is not None:
                whole.__dict__["penalty_shares"] = self.shares
            return whole, torch.arange(state.structure.n_splits, device=samples.device)
        assert isinstance(state, SummedLevel)
        leaf = samples.all_leaves(state.open.tree)
        there = torch.bincount(leaf, minlength=state.open.tree.structure.n_leaves)[state.open.leaves] > 0
        index = torch.nonzero(there)[:, 0]
        if not len(index):
            return None, index
        groups = group_rows(leaf, [state.open.leaves[number] for number in index.tolist()])
        tables = state.leaves.reshape(2, state.n_stumps, -1)[:, index].reshape(2, -1)
        zeros = None if state.zeros is None else state.zeros[index]
        return Stumps(state.splits.select(index), tables, groups, zeros=zeros, signs=state.signs), index

    def _chunk_epoch(
        self, chunk: Any, index: Tensor, samples: Samples, plan: Plan, settings: EpochSettings
    ) -> EpochResult:
        """Train one epoch of a chunk, with the optimiser state of the previous chunk."""
        engine = select_engine(chunk, samples, plan)(chunk, samples, plan, fresh=True)
        moments = {name: place for name, place in engine.optimizer_state().items() if name.startswith(OPTIMIZER_STATE)}
        for name, place in moments.items():
            place.copy_(self.adam_state[name][index])
        found = engine.epoch(settings, Orders(chunk.groups, plan, self.generator).next())
        for name, place in moments.items():
            self.adam_state[name][index] = place.to(self.adam_state[name])
        for name, value in self.state.splits.parameters.items():
            value.data[index] = chunk.splits.parameters[name].detach()
        return EpochResult(found.counts, found.loss, found.finite)


@dataclass(frozen=True, eq=False)
class BatchDataset(TrainingDataset):
    """Training rows that are read in batches: statistics of the first pass, and later passes in chunks."""

    batches: Batches
    encoding: TargetEncoding
    statistics: TargetStatistics
    target: Target
    totals: Totals
    spread: Doubles
    varies: npt.NDArray[np.bool_]
    sample: RowSet

    @property
    def n_features(self) -> int:
        return len(self.spread)

    def learn_scaling(self, kind: str | None, n_jobs: int | None) -> Scaling:
        mean = self.totals.mean
        return Scaling(*SCALES[kind](mean, self.spread, self.varies), mean, self.spread)

    def make_task(self, scaling: Scaling, held_out: Any) -> BatchedTask:
        return BatchedTask(self.sample, scaling, self.target, held_out, totals=self.totals, chunks=self.chunks)

    def make_selection_task(self, task: TrainingTask, held_out: Any, seed: int) -> TrainingTask:
        return TrainingTask(self.sample, task.scaling, self.target, held_out)

    def split_off(self, fraction: float, seed: int) -> tuple[TrainingDataset, Any]:
        raise ValueError("`eval_set` must be given for a fit on batches with ccp_alpha or shrinkage 'auto'.")

    @classmethod
    def of(cls, batches: Batches, y_statistics: TargetStatistics, seed: int) -> BatchDataset:
        """Make the first pass: encoding of y, number of rows, mean and spread, and a sample for model selection."""
        moments: _Moments | None = None
        reservoir = _Reservoir(SAMPLE_ROWS, np.random.default_rng(seed))
        for number, (X, y, weight) in enumerate(batches.one_pass()):
            with _translate_errors():
                weighted = y_statistics.add(y, weight, f"batch {number} of {batches.name}")
            moments = moments or _Moments(X)
            moments.add(X, weighted)
            reservoir.add(X, y, weight)
        if moments is None:
            raise StreamError("the batches must hold at least one row; they hold none.")
        encoding, statistics = y_statistics.learn(batches.name)
        X, y, weight = reservoir.rows
        y, weight = encoding.encode(encoding.to_numeric(y), weight)
        target, n_rows = encoding.target_of(y), y_statistics.n_rows
        total = float(target.weight(statistics))
        if not total > 0:
            raise StreamError("the weights must leave at least one row with a positive weight; got only zeros.")
        mean_weight = total / n_rows
        totals = Totals(n_rows, mean_weight, statistics / mean_weight, moments.mean)
        sample = _with_weight(RowSet(X, y, weight))
        return cls(batches, encoding, y_statistics, target, totals, moments.spread, moments.varies, sample)

    def chunks(self, seed: int | None) -> Iterator[RowSet]:
        """Make a pass in chunks, shuffled in a buffer of the size of a chunk if there is a seed; compare checksums."""
        size = max(256, MAX_CHUNK_VALUES // self.n_features)
        rng = None if seed is None else np.random.default_rng(seed)
        waiting: list[RowSet] = []
        n_waiting, seen, encoding = 0, np.zeros_like(self.statistics.checksum), self.encoding
        for X, y, weight in self.batches.one_pass():
            with _translate_errors():
                seen += self.statistics.rows_checksum(y)
                part = _with_weight(RowSet(X, *encoding.encode(encoding.to_numeric(y), weight)))
            waiting.append(part)
            n_waiting += len(part.y)
            while n_waiting >= size:
                whole = _join(waiting, rng)
                # Half of a shuffled buffer stays and is mixed with the next rows.
                cut = size if rng is None else max(size // 2, n_waiting - size // 2)
                yield from _split(whole, cut, size)
                waiting = [whole.select(slice(cut, None))]
                n_waiting -= cut
        if n_waiting:
            yield from _split(_join(waiting, rng), n_waiting, size)
        if not np.array_equal(seen, self.statistics.checksum):
            first, now = map(self.statistics.describe_checksum, (self.statistics.checksum, seen))
            raise StreamError(f"every pass must give the same rows; the first had {first}, and this one {now}.")


def fit_batches(
    estimator: RowModel, batches: Batches, sample_weight: Any, eval_set: Any, checkpoints: Checkpoints
) -> TrainedRows:
    """Train a tree on batches, in a pass for statistics, one for every epoch and one for leaf statistics.

    Sets the input schema of the estimator.
    """
    if sample_weight is not None:
        raise ValueError(
            "`sample_weight` must be None for rows in batches; weights are the third part of a batch, (X, y, weight)."
        )
    parameters = estimator.training_parameters()
    check_parameters(estimator.declared_parameters(), parameters)
    check_capabilities(parameters, rows="batches", has_validation=eval_set is not None)
    seed = draw_seed(parameters["random_state"])
    data = BatchDataset.of(batches, estimator.ENCODING.statistics(parameters), seed)
    check_features_of_leaves(parameters, data.n_features)
    names = None if batches.columns is None else np.array(batches.columns, dtype=object)
    encoded_by = estimator.input_schema.encoded_by
    estimator.set_input_schema(InputSchema(data.n_features, names, encoded_by=encoded_by))
    held_out = None
    if eval_set is not None:
        held_out = check_validation(estimator, eval_set, data.encoding, may_be_soft=True)
        held_out = replace(held_out, y=data.target.conform(held_out.y))
    inputs: dict[str, Any] = {
        "rows": data.totals,
        "classes": data.encoding.classes,
        "sample of the rows": data.sample,
        "validation": held_out,
    }
    inputs["device"] = describe_device(
        parameters, data.make_task(data.learn_scaling(resolve_scale(parameters, None), parameters["n_jobs"]), None)
    )
    with checkpoints.keep(parameters, inputs, seed) as seed:
        return fit_rows(parameters, data, held_out, seed)
