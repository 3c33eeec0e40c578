"""The fit of a tree on rows that are read in batches. Imports torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from crisptree.data.batches import Batches, StreamError
from crisptree.data.raw_rows import MIN_SPREAD, SCALES, Scaling
from crisptree.data.validation import InputSchema
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.learning.sources.batches import BatchedTask, Totals
from crisptree.pipeline.monitoring import Checkpoints
from crisptree.pipeline.trees import TrainedRows, TrainingDataset, describe_device, fit_rows
from crisptree.pipeline.validation import (
    RowModel,
    check_capabilities,
    check_parameters,
    check_validation,
    draw_seed,
)
from crisptree.selection.parameters import resolve_scale
from crisptree.selection.search import SAMPLE_ROWS
from crisptree.targets import Target
from crisptree.targets.base import TargetEncoding, TargetStatistics

Doubles = npt.NDArray[np.float64]

MAX_CHUNK_VALUES = 2**24
"""Values of a chunk and of the shuffle buffer, 64 MB of float32 each."""


@dataclass(frozen=True, eq=False)
class BatchStatistics:
    """Statistics of the first pass, and later passes in chunks."""

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

    def learn_scaling(self, kind: str | None) -> Scaling:
        """Return the scaling, as ``Scaling.learn`` computes it."""
        mean = self.totals.mean
        return Scaling(*SCALES[kind](mean, self.spread, self.varies), mean, self.spread)

    @classmethod
    def of(cls, batches: Batches, y_statistics: TargetStatistics, seed: int) -> BatchStatistics:
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


@dataclass(frozen=True, eq=False)
class BatchDataset(TrainingDataset):
    """Training rows that are read in batches, in several passes."""

    statistics: BatchStatistics

    @property
    def target(self) -> Target:  # type: ignore[override]
        return self.statistics.target

    @property
    def encoding(self) -> TargetEncoding:  # type: ignore[override]
        return self.statistics.encoding

    def learn_scaling(self, kind: str | None, n_jobs: int | None) -> Scaling:
        return self.statistics.learn_scaling(kind)

    def make_task(self, scaling: Scaling, held_out: Any) -> BatchedTask:
        first = self.statistics
        return BatchedTask(first.sample, scaling, first.target, held_out, totals=first.totals, chunks=first.chunks)

    def make_selection_task(self, task: TrainingTask, held_out: Any, seed: int) -> TrainingTask:
        return TrainingTask(self.statistics.sample, task.scaling, self.target, held_out)

    def split_off(self, fraction: float, seed: int) -> tuple[Self, Any]:
        raise ValueError("`eval_set` must be given for a fit on batches with ccp_alpha or shrinkage 'auto'.")


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
    first = BatchStatistics.of(batches, estimator.ENCODING.statistics(parameters), seed)
    names = None if batches.columns is None else np.array(batches.columns, dtype=object)
    encoded_by = estimator.input_schema.encoded_by
    estimator.set_input_schema(InputSchema(first.n_features, names, encoded_by=encoded_by))
    data, held_out = BatchDataset(first), None
    if eval_set is not None:
        held_out = check_validation(estimator, eval_set, first.encoding, may_be_soft=True)
        held_out = replace(held_out, y=first.target.conform(held_out.y))
    inputs: dict[str, Any] = {
        "rows": first.totals,
        "classes": first.encoding.classes,
        "sample of the rows": first.sample,
        "validation": held_out,
    }
    inputs["device"] = describe_device(
        parameters, data.make_task(first.learn_scaling(resolve_scale(parameters, None)), None)
    )
    with checkpoints.keep(parameters, inputs, seed) as seed:
        return fit_rows(parameters, data, held_out, seed)
