"""The fit of a tree on rows that are read in batches. Imported only when something trains."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from crisptree.data.batches import Batches, StreamError
from crisptree.data.scaling import MIN_SPREAD, SCALES, Scaling
from crisptree.learning.sources.batches import BatchedTask, Totals
from crisptree.learning.task import RowSet, TrainingTask
from crisptree.pipeline.checkpoints import Checkpoints
from crisptree.pipeline.trees import Dataset, TrainedRows, device_text, fit_rows
from crisptree.selection.folds import SAMPLE_ROWS
from crisptree.selection.parameters import resolve_scale
from crisptree.targets import Target
from crisptree.targets.base import TargetEncoding, TargetStatistics

Doubles = npt.NDArray[np.float64]

VALUES_AT_ONCE = 2**24
"""Values of a chunk, and of the buffer in which rows are shuffled: 64 MB of each."""


@dataclass(frozen=True, eq=False)
class Survey:
    """What the first pass has found, and the passes after it."""

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

    def scaling(self, kind: str | None) -> Scaling:
        """How rows are scaled, as ``Scaling.learn`` has it."""
        mean = self.totals.mean
        return Scaling(*SCALES[kind](mean, self.spread, self.varies), mean, self.spread)

    @classmethod
    def of(cls, batches: Batches, y_statistics: TargetStatistics, seed: int) -> Survey:
        """The first pass: what y is, how many rows, mean and spread, and some rows to choose by."""
        moments: _Moments | None = None
        drawn = _Reservoir(SAMPLE_ROWS, np.random.default_rng(seed))
        for number, (X, y, weight) in enumerate(batches.one_pass()):
            with _refusing_batches():
                counted = y_statistics.add(y, weight, f"batch {number} of {batches.name}")
            moments = moments or _Moments(X)
            moments.add(X, counted)
            drawn.add(X, y, weight)
        if moments is None:
            raise StreamError("the batches must hold at least one row; they hold none.")
        encoding, statistics = y_statistics.learn(batches.name)
        X, y, weight = drawn.rows()
        y, weight = encoding.encode(encoding.as_numbers(y), weight)
        target, n_rows = encoding.target_of(y), y_statistics.n_rows
        total = float(target.weight(statistics))
        if not total > 0:
            raise StreamError("the weights must leave at least one row with a positive weight; got only zeros.")
        mean_weight = total / n_rows
        totals = Totals(n_rows, mean_weight, statistics / mean_weight, moments.mean)
        sample = _with_weight(RowSet(X, y, weight))
        return cls(batches, encoding, y_statistics, target, totals, moments.spread, moments.varies, sample)

    def chunks(self, seed: int | None) -> Iterator[RowSet]:
        """A pass: chunks of some size, with a seed shuffled in a buffer of the same size. What comes is counted."""
        size = max(256, VALUES_AT_ONCE // self.n_features)
        rng = None if seed is None else np.random.default_rng(seed)
        waiting: list[RowSet] = []
        n_waiting, seen, encoding = 0, np.zeros_like(self.statistics.checksum), self.encoding
        for X, y, weight in self.batches.one_pass():
            with _refusing_batches():
                seen += self.statistics.rows_checksum(y)
                part = _with_weight(RowSet(X, *encoding.encode(encoding.as_numbers(y), weight)))
            waiting.append(part)
            n_waiting += len(part.y)
            while n_waiting >= size:
                whole = _joined(waiting, rng)
                # Half of a shuffled buffer stays and is mixed with what comes.
                cut = size if rng is None else max(size // 2, n_waiting - size // 2)
                yield from _pieces(whole, cut, size)
                waiting = [_rows(whole, slice(cut, None))]
                n_waiting -= cut
        if n_waiting:
            yield from _pieces(_joined(waiting, rng), n_waiting, size)
        if not np.array_equal(seen, self.statistics.checksum):
            first, now = map(self.statistics.describe_checksum, (self.statistics.checksum, seen))
            raise StreamError(f"every pass must give the same rows; the first had {first}, and this one {now}.")


@contextmanager
def _refusing_batches() -> Iterator[None]:
    """Raise what is wrong with y as an error of batches."""
    try:
        yield
    except ValueError as error:
        raise StreamError(str(error)) from error


def _joined(parts: list[RowSet], rng: np.random.Generator | None) -> RowSet:
    arrays = [np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "weight")]
    if rng is None:
        return RowSet(*arrays)
    order = rng.permutation(len(arrays[1]))
    return RowSet(*(array[order] for array in arrays))


def _rows(part: RowSet, rows: slice) -> RowSet:
    return RowSet(part.X[rows], part.y[rows], part.weight[rows])


def _pieces(part: RowSet, end: int, size: int) -> Iterator[RowSet]:
    for start in range(0, end, size):
        yield _rows(part, slice(start, min(start + size, end)))


def _with_weight(part: RowSet) -> RowSet:
    """The rows that weigh anything."""
    heavy = part.weight > 0
    return part if heavy.all() else RowSet(part.X[heavy], part.y[heavy], part.weight[heavy])


class _Moments:
    """Weighted mean and spread of every feature, about the mean of the first batch, where squares are small."""

    def __init__(self, X: npt.NDArray[np.float32]) -> None:
        self.middle = X.mean(axis=0, dtype=np.float64)
        self.total = 0.0
        self.first, self.second = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        self.low, self.high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)

    def add(self, X: npt.NDArray[np.float32], weight: npt.NDArray[np.float64]) -> None:
        for start in range(0, len(X), 4096):
            away, w = X[start : start + 4096] - self.middle, weight[start : start + 4096]
            with np.errstate(over="ignore", invalid="ignore"):  # weights that overflow are refused after the pass
                self.total += w.sum()
                self.first += w @ away
                self.second += w @ np.square(away, out=away)
        self.low, self.high = np.minimum(self.low, X.min(axis=0)), np.maximum(self.high, X.max(axis=0))

    @property
    def mean(self) -> npt.NDArray[np.float64]:
        return np.asarray(self.middle + self.first / self.total)

    @property
    def spread(self) -> npt.NDArray[np.float64]:
        return np.sqrt(np.maximum(self.second / self.total - (self.first / self.total) ** 2, 0.0))

    @property
    def varies(self) -> npt.NDArray[np.bool_]:
        return np.asarray((self.high - self.low > MIN_SPREAD) & (self.spread > MIN_SPREAD))


class _Reservoir:
    """Some of all rows, each as likely as any other."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self.size, self.rng = size, rng
        self.keys = np.zeros(0)
        self.parts: tuple[Any, ...] = ()

    def add(self, *parts: npt.NDArray[Any]) -> None:
        keys = np.concatenate([self.keys, self.rng.random(len(parts[1]))])
        kept = np.sort(np.argsort(keys, kind="stable")[: self.size])
        n = len(self.keys)
        old, new = kept[kept < n], kept[kept >= n] - n
        self.keys = keys[kept]
        fresh = tuple(part[new] for part in parts)
        self.parts = (
            tuple(np.concatenate([one[old], other]) for one, other in zip(self.parts, fresh, strict=True))
            if self.parts
            else fresh
        )

    def rows(self) -> tuple[Any, ...]:
        return self.parts


@dataclass(frozen=True, eq=False)
class BatchDataset(Dataset):
    """Rows that are read in batches, pass after pass."""

    survey: Survey

    @property
    def target(self) -> Target:  # type: ignore[override]
        return self.survey.target

    @property
    def encoding(self) -> TargetEncoding:  # type: ignore[override]
        return self.survey.encoding

    def scaling(self, kind: str | None, n_jobs: int | None) -> Scaling:
        return self.survey.scaling(kind)

    def problem(self, scaling: Scaling, held: Any) -> BatchedTask:
        survey = self.survey
        return BatchedTask(survey.sample, scaling, survey.target, held, totals=survey.totals, chunks=survey.chunks)

    def selection_problem(self, problem: TrainingTask, held: Any, seed: int) -> TrainingTask:
        return TrainingTask(self.survey.sample, problem.scaling, self.target, held)

    def split_off(self, fraction: float, seed: int) -> tuple[Self, Any]:
        raise ValueError("`validation` rows must be given for a fit on batches with prune or shrinkage 'auto'.")


class Streamed(NamedTuple):
    """What a fit on batches has learned."""

    trained: TrainedRows
    encoding: TargetEncoding
    n_features: int


def fit_batches(
    parameters: Mapping[str, Any],
    batches: Batches,
    seed: int,
    checkpoints: Checkpoints,
    encoding: type[TargetEncoding],
    check_validation: Callable[[TargetEncoding, int], RowSet] | None = None,
) -> Streamed:
    """Train a tree on batches: one pass to learn what y is and the scale, one for every epoch, and one to count.

    ``check_validation`` gives the validation rows, once the first pass has found what y is and how many features there
    are; None where there are none.
    """
    survey = Survey.of(batches, encoding.statistics(parameters), seed)
    data = BatchDataset(survey)
    held = None if check_validation is None else check_validation(survey.encoding, survey.n_features)
    held = held and replace(held, y=survey.target.conform(held.y))
    known: dict[str, Any] = {
        "rows": survey.totals,
        "classes": survey.encoding.classes,
        "sample of the rows": survey.sample,
        "validation": held,
    }
    known["device"] = device_text(parameters, data.problem(survey.scaling(resolve_scale(parameters, None)), None))
    with checkpoints.kept(parameters, known, seed) as seed:
        trained = fit_rows(parameters, data, held, None, {}, seed)
    return Streamed(trained, survey.encoding, survey.n_features)
