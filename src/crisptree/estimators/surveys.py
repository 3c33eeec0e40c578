"""What one pass over batches tells of their rows, and the passes after it. Imported only when something trains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.data.scaling import SCALES, SMALLEST_SPREAD, Scaling
from crisptree.estimators.answers import check_classes, check_labels_present
from crisptree.estimators.numbers import SAME, NumberScale, check_numbers
from crisptree.estimators.weights import check_total_weight, sum_weights
from crisptree.labels import class_numbers, label_type
from crisptree.learning.sources.batches import Totals
from crisptree.learning.task import Part
from crisptree.selection.folds import SAMPLE_ROWS
from crisptree.streams import Batches, StreamError
from crisptree.targets import Classes, Gaussians, Target

Doubles = npt.NDArray[np.float64]

VALUES_AT_ONCE = 2**24
"""Values of a chunk, and of the buffer in which rows are shuffled: 64 MB of each."""


class Answers(ABC):
    """What y is: the first pass adds all of it, and then it is known what y and weights of any rows are to training."""

    labels: Any
    """What an estimator keeps of it, once the first pass is over: the classes, or how many numbers a row has."""

    tallied: npt.NDArray[Any]
    """``tally`` of all rows of the first pass, once that is over."""

    @abstractmethod
    def add(self, y: npt.NDArray[Any], weight: Doubles, name: str) -> Doubles:
        """Some of the first pass; ``name`` is what errors call it. The weights, as far as they are known by then."""

    @abstractmethod
    def learned(self, name: str) -> tuple[Target, Doubles, int]:
        """The target, the statistics of all rows by their weights, and how many of them have any."""

    @abstractmethod
    def known(self, y: npt.NDArray[Any], weight: Doubles) -> tuple[npt.NDArray[Any], Doubles]:
        """y and weights as training has them; rows that do not train weigh nothing."""

    @abstractmethod
    def tally(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Numbers that add up over rows in any order, and that tell whether a pass had the rows of the first."""

    @abstractmethod
    def told(self, tally: npt.NDArray[Any]) -> str:
        """Such numbers in words."""


class ClassAnswers(Answers):
    """Classes, with the weights that ``class_weight`` gives them; one without any weight is none, as on arrays."""

    def __init__(self, class_weight: Any) -> None:
        self.class_weight = class_weight
        self.found: dict[Any, list[float]] = {}

    def add(self, y: npt.NDArray[Any], weight: Doubles, name: str) -> Doubles:
        if y.ndim != 1:
            raise StreamError(f"{name} must have one class for every row, (n,); got shape {y.shape}.")
        try:
            check_labels_present(y)
            check_classes(y)
        except ValueError as error:
            raise StreamError(f"{name} must have a class for every row: {error}") from error
        labels, which = np.unique(y, return_inverse=True)
        rows, heavy = np.bincount(which), np.bincount(which, weights=weight)
        for label, n, w in zip(labels.tolist(), rows.tolist(), heavy.tolist(), strict=True):
            entry = self.found.setdefault(label, [0, 0.0])
            entry[0], entry[1] = entry[0] + n, entry[1] + w
        if not isinstance(self.class_weight, dict):
            return weight
        factors = np.array([float(self.class_weight.get(label, 1.0)) for label in labels.tolist()])
        with np.errstate(over="ignore", under="ignore"):
            return weight * factors[which]

    def learned(self, name: str) -> tuple[Target, Doubles, int]:
        if len({isinstance(label, str) for label in self.found}) > 1:
            raise StreamError(f"{name} must have labels of one type; some batches have text, some numbers.")
        self.seen = np.unique(np.array(list(self.found)))
        label_type(self.seen)
        self.tallied = np.array([self.found[label][0] for label in self.seen.tolist()], dtype=np.int64)
        weights = np.array([self.found[label][1] for label in self.seen.tolist()], dtype=np.float64)
        self.factors = class_weights(self.class_weight, self.seen, weights)
        with np.errstate(over="ignore", under="ignore"):
            check_total_weight(sum_weights(weights * self.factors))
        counted = self.factors > 0
        self.labels = self.seen[counted]
        self.number = np.cumsum(counted) - 1
        return Classes(len(self.labels)), (weights * self.factors)[counted], int(self.tallied[counted].sum())

    def known(self, y: npt.NDArray[Any], weight: Doubles) -> tuple[npt.NDArray[Any], Doubles]:
        place = class_numbers(y, self.seen)
        if place.min(initial=0) < 0:
            raise StreamError(f"the rows have changed: the first pass had no class {y[place < 0].tolist()[0]!r}.")
        return self.number[place].astype(np.int64), weight * self.factors[place]

    def tally(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        place = class_numbers(y, self.seen)
        return np.bincount(place[place >= 0], minlength=len(self.seen))

    def told(self, tally: npt.NDArray[Any]) -> str:
        return f"{tally.sum():,} rows, by class {tally.tolist()}"


class NumberAnswers(Answers):
    """Numbers, scaled to mean 0 and variance 1 as those of arrays are."""

    def __init__(self) -> None:
        self.total, self.n_rows = 0.0, 0
        self.tallied = np.zeros(2, dtype=np.uint64)

    def add(self, y: npt.NDArray[Any], weight: Doubles, name: str) -> Doubles:
        try:
            numbers = check_numbers(y)
        except ValueError as error:
            raise StreamError(f"{name} must have a number for every row: {error}") from error
        if not self.n_rows:
            self.middle = numbers.mean(axis=0)
            self.first, self.second = np.zeros_like(self.middle), np.zeros_like(self.middle)
            self.low, self.high = numbers.min(axis=0), numbers.max(axis=0)
        if numbers.shape[1] != len(self.middle):
            raise StreamError(
                f"{name} must have {len(self.middle)} outputs as those before; it has {numbers.shape[1]}."
            )
        away = numbers - self.middle
        self.total, self.n_rows = self.total + sum_weights(weight), self.n_rows + len(numbers)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused when all is known
            self.first += weight @ away
            self.second += weight @ np.square(away)
        self.low, self.high = np.minimum(self.low, numbers.min(axis=0)), np.maximum(self.high, numbers.max(axis=0))
        self.tallied += self.tally(y)
        return weight

    def learned(self, name: str) -> tuple[Target, Doubles, int]:
        check_total_weight(self.total)
        with np.errstate(over="ignore", invalid="ignore"):
            away = self.first / self.total
            center = self.middle + away
            spread = np.sqrt(np.maximum(self.second / self.total - away**2, 0.0))
        is_constant = spread <= SAME * np.abs(center)
        center = np.where(self.low == self.high, self.low, center)
        self.scale = NumberScale(center, np.where(is_constant, 1.0, spread), is_constant)
        self.labels = len(center)
        squares = self.total * np.where(is_constant, 0.0, 1.0)
        return Gaussians(2 * len(center)), np.concatenate([[self.total], 0 * squares, squares]), self.n_rows

    def known(self, y: npt.NDArray[Any], weight: Doubles) -> tuple[npt.NDArray[Any], Doubles]:
        return self.scale.scaled(check_numbers(y)), weight

    def tally(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        bits = np.ascontiguousarray(check_numbers(y)).view(np.uint64)
        return np.array([len(y), bits.sum(dtype=np.uint64)], dtype=np.uint64)

    def told(self, tally: npt.NDArray[Any]) -> str:
        return f"{int(tally[0]):,} rows, the sum of whose numbers' bits is {int(tally[1])}"


@dataclass(frozen=True, eq=False)
class Survey:
    """What the first pass has found, and the passes after it."""

    batches: Batches
    answers: Answers
    target: Target
    totals: Totals
    spread: Doubles
    varies: npt.NDArray[np.bool_]
    sample: Part

    @property
    def n_features(self) -> int:
        return len(self.spread)

    def scaling(self, kind: str | None) -> Scaling:
        """How rows are scaled, as ``Scaling.learn`` has it."""
        mean = self.totals.mean
        return Scaling(*SCALES[kind](mean, self.spread, self.varies), mean, self.spread)

    @classmethod
    def of(cls, batches: Batches, answers: Answers, seed: int) -> Survey:
        """The first pass: what y is, how many rows, mean and spread, and some rows to choose by."""
        moments: _Moments | None = None
        drawn = _Reservoir(SAMPLE_ROWS, np.random.default_rng(seed))
        for number, (X, y, weight) in enumerate(batches.one_pass()):
            counted = answers.add(y, weight, f"batch {number} of {batches.name}")
            moments = moments or _Moments(X)
            moments.add(X, counted)
            drawn.add(X, y, weight)
        if moments is None:
            raise StreamError("the batches must hold at least one row; they hold none.")
        target, statistics, n_rows = answers.learned(batches.name)
        total = float(target.weight(statistics))
        if not total > 0:
            raise StreamError("the weights must leave at least one row with a positive weight; got only zeros.")
        mean_weight = total / n_rows
        totals = Totals(n_rows, mean_weight, statistics / mean_weight, moments.mean)
        X, y, weight = drawn.rows()
        sample = _with_weight(Part(X, *answers.known(y, weight)))
        return cls(batches, answers, target, totals, moments.spread, moments.varies, sample)

    def chunks(self, seed: int | None) -> Iterator[Part]:
        """A pass: chunks of some size, with a seed shuffled in a buffer of the same size. What comes is counted."""
        size = max(256, VALUES_AT_ONCE // self.n_features)
        rng = None if seed is None else np.random.default_rng(seed)
        waiting: list[Part] = []
        n_waiting, seen = 0, np.zeros_like(self.answers.tallied)
        for X, y, weight in self.batches.one_pass():
            seen += self.answers.tally(y)
            part = _with_weight(Part(X, *self.answers.known(y, weight)))
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
        if not np.array_equal(seen, self.answers.tallied):
            first, now = (self.answers.told(tally) for tally in (self.answers.tallied, seen))
            raise StreamError(f"every pass must give the same rows; the first had {first}, and this one {now}.")


def _joined(parts: list[Part], rng: np.random.Generator | None) -> Part:
    arrays = [np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "weight")]
    if rng is None:
        return Part(*arrays)
    order = rng.permutation(len(arrays[1]))
    return Part(*(array[order] for array in arrays))


def _rows(part: Part, rows: slice) -> Part:
    return Part(part.X[rows], part.y[rows], part.weight[rows])


def _pieces(part: Part, end: int, size: int) -> Iterator[Part]:
    for start in range(0, end, size):
        yield _rows(part, slice(start, min(start + size, end)))


def _with_weight(part: Part) -> Part:
    """The rows that weigh anything."""
    heavy = part.weight > 0
    return part if heavy.all() else Part(part.X[heavy], part.y[heavy], part.weight[heavy])


def class_weights(class_weight: Any, classes: npt.NDArray[Any], weights: npt.NDArray[np.float64]) -> Any:
    """What the weights of the rows of each class are multiplied by."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        with np.errstate(over="ignore", invalid="ignore"):
            return weights.sum() / (len(classes) * weights)
    if isinstance(class_weight, dict):
        known = classes.tolist()
        unknown = [label for label in class_weight if label not in known]
        if unknown:
            raise ValueError(f"`class_weight` must name classes of y, {known}; got {unknown[0]!r}.")
        factors = np.array([float(class_weight.get(label, 1.0)) for label in known])
        if not (np.isfinite(factors).all() and (factors >= 0).all()):
            raise ValueError(f"`class_weight` must hold finite numbers of at least 0; got {class_weight!r}.")
        return factors
    raise ValueError(f"`class_weight` must be None, 'balanced' or a dict by class; got {class_weight!r}.")


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
        return np.asarray((self.high - self.low > SMALLEST_SPREAD) & (self.spread > SMALLEST_SPREAD))


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
