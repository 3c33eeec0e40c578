"""The fit of a classifier on rows that are read in batches. Imported only when something trains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.estimators.answers import check_classes, check_labels_present
from crisptree.estimators.base import Checkpoints
from crisptree.estimators.choices import choose, closed, is_open, scale_of
from crisptree.estimators.constraints import are_constrained
from crisptree.estimators.finishing import finished, is_judged
from crisptree.estimators.fitting import TrainedRows, spec_of
from crisptree.estimators.progress import hearing_trials, recording
from crisptree.labels import class_numbers, label_type
from crisptree.learning.fitting import Fitted
from crisptree.learning.problem import Part, Problem
from crisptree.learning.streaming import Totals, fit_stream
from crisptree.scaling import SCALES, SMALLEST_SPREAD, Scaling
from crisptree.streams import Batches, StreamError
from crisptree.targets import Classes

VALUES_AT_ONCE = 2**24
"""Values of a chunk, and of the buffer in which rows are shuffled: 64 MB of each."""

ROWS_TO_CHOOSE_BY = 20_000

ONLY = {
    "grow": ("greedy",),
    "algorithm": ("likelihood", "em"),
    "max_leaf_nodes": (None,),
    "early_stopping": (False,),
    "leaves": ("constant",),
    "reanneal": (0,),
    "shifts": (0,),
    "image_shape": (None,),
    "warm_start": (False,),
}
"""What a fit on batches can do."""


class Streamed(NamedTuple):
    """What a fit on batches leaves behind."""

    trained: TrainedRows
    classes: npt.NDArray[Any]
    n_features: int


def fit_batches(parameters: Mapping[str, Any], batches: Batches, seed: int, checkpoints: Checkpoints) -> Streamed:
    """Train a tree on batches: one pass to learn classes and scale, then one for every epoch, and one to count."""
    _check(parameters)
    survey = Survey.of(batches, parameters["class_weight"], seed)
    parameters = {**parameters, "split": "oblique"}
    target = Classes(len(survey.classes))
    scaling = survey.scaling(scale_of(parameters, None))
    sample = Problem(survey.sample, scaling, target)
    chosen: dict[str, Any] = {}
    path: list[Any] = []
    known = {"rows": survey.totals, "classes": survey.classes, "sample of the rows": survey.sample}
    with checkpoints.kept(parameters, known, seed) as seed:
        if is_open(parameters):
            with hearing_trials(parameters["verbose"]) as on_trial:
                chosen, path = choose(parameters, sample, None, seed, None, on_trial)
        values = closed(parameters, chosen, None)
        if is_judged(values):
            raise ValueError("`prune` must be a number or None for a fit on batches; got 'auto'.")
        sample = Problem(survey.sample, survey.scaling(values["scale"]), target)
        spec = spec_of(values, sample, None, seed)
        with recording(parameters["verbose"], parameters["callbacks"]) as recorder:
            greedy, tree = fit_stream(spec, sample, survey.totals, survey.chunks, recorder.record)
    fitted = Fitted(greedy, finished(tree, values), None, None)  # type: ignore[arg-type]
    return Streamed(TrainedRows(fitted, recorder.history, chosen, path), survey.classes, survey.n_features)


def is_for_batches(parameters: Mapping[str, Any]) -> bool:
    """Whether a fit with these parameters can be one on batches."""
    try:
        _check(parameters)
    except ValueError:
        return False
    return bool(parameters["prune"] != "auto")


def _check(parameters: Mapping[str, Any]) -> None:
    if parameters["split"] not in ("auto", "oblique"):
        raise ValueError(f"`split` must be 'auto' or 'oblique' for a fit on batches; got {parameters['split']!r}.")
    for name, allowed in ONLY.items():
        if parameters[name] not in allowed:
            words = " or ".join(map(repr, allowed))
            raise ValueError(f"`{name}` must be {words} for a fit on batches; got {parameters[name]!r}.")
    if are_constrained(parameters):
        raise ValueError("`signs`, `max_features_per_split` and `apart` must be None for a fit on batches.")


@dataclass(frozen=True, eq=False)
class Survey:
    """What the first pass has found, and the passes after it."""

    batches: Batches
    classes: npt.NDArray[Any]
    counts: npt.NDArray[np.int64]
    factors: npt.NDArray[np.float64]
    totals: Totals
    spread: npt.NDArray[np.float64]
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
    def of(cls, batches: Batches, class_weight: Any, seed: int) -> Survey:
        """The first pass: classes, how many rows, mean and spread, and some rows to choose by."""
        found: dict[Any, list[float]] = {}
        moments: _Moments | None = None
        drawn = _Reservoir(ROWS_TO_CHOOSE_BY, np.random.default_rng(seed))
        for number, (X, y, weight) in enumerate(batches.one_pass()):
            _check_labels(y, f"batch {number} of {batches.name}")
            labels, which = np.unique(y, return_inverse=True)
            rows, heavy = np.bincount(which), np.bincount(which, weights=weight)
            for label, n, w in zip(labels.tolist(), rows.tolist(), heavy.tolist(), strict=True):
                entry = found.setdefault(label, [0, 0.0])
                entry[0], entry[1] = entry[0] + n, entry[1] + w
            moments = moments or _Moments(X)
            moments.add(X, weight)
            drawn.add(X, y, weight)
        if moments is None:
            raise StreamError("the batches must hold at least one row; they hold none.")
        if len({isinstance(label, str) for label in found}) > 1:
            raise StreamError(f"{batches.name} must have labels of one type; some batches have text, some numbers.")
        classes = np.unique(np.array(list(found)))
        label_type(classes)
        counts = np.array([found[label][0] for label in classes.tolist()], dtype=np.int64)
        weights = np.array([found[label][1] for label in classes.tolist()], dtype=np.float64)
        factors = class_weights(class_weight, classes, weights)
        if moments.total * factors.max(initial=0) == 0:
            raise StreamError("the weights must leave at least one row with a positive weight; got only zeros.")
        statistics, n_rows = weights * factors, int(counts.sum())
        totals = Totals(
            n_rows, float(statistics.sum() / n_rows), statistics / (statistics.sum() / n_rows), moments.mean
        )
        X, y, weight = drawn.rows()
        numbers = class_numbers(y, classes)
        sample = Part(X, numbers, weight * factors[numbers])
        return cls(batches, classes, counts, factors, totals, moments.spread, moments.varies, sample)

    def chunks(self, seed: int | None) -> Iterator[Part]:
        """A pass: chunks of some size, with a seed shuffled in a buffer of the same size. What comes is counted."""
        size = max(256, VALUES_AT_ONCE // self.n_features)
        rng = None if seed is None else np.random.default_rng(seed)
        waiting: list[Part] = []
        n_waiting, seen = 0, np.zeros(len(self.classes), dtype=np.int64)
        for X, y, weight in self.batches.one_pass():
            numbers = class_numbers(y, self.classes)
            if numbers.min() < 0:
                raise StreamError(f"the rows have changed: the first pass had no class {y[numbers < 0].tolist()[0]!r}.")
            seen += np.bincount(numbers, minlength=len(seen))
            waiting.append(Part(X, numbers, weight * self.factors[numbers]))
            n_waiting += len(y)
            while n_waiting >= size:
                whole = _joined(waiting, rng)
                # Half of a shuffled buffer stays and is mixed with what comes.
                cut = size if rng is None else max(size // 2, n_waiting - size // 2)
                yield from _pieces(whole, cut, size)
                waiting = [_rows(whole, slice(cut, None))]
                n_waiting -= cut
        if n_waiting:
            yield from _pieces(_joined(waiting, rng), n_waiting, size)
        if not np.array_equal(seen, self.counts):
            raise StreamError(
                f"every pass must give the same rows; the first had {self.counts.sum():,}, by class "
                f"{self.counts.tolist()}, and this one {seen.sum():,}, {seen.tolist()}."
            )


def _check_labels(y: npt.NDArray[Any], name: str) -> None:
    try:
        check_labels_present(y)
        check_classes(y)
    except ValueError as error:
        raise StreamError(f"{name} must have a class for every row: {error}") from error


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
        piece = _rows(part, slice(start, min(start + size, end)))
        heavy = piece.weight > 0
        if heavy.all():
            yield piece
        elif heavy.any():
            yield Part(piece.X[heavy], piece.y[heavy], piece.weight[heavy])


def class_weights(class_weight: Any, classes: npt.NDArray[Any], weights: npt.NDArray[np.float64]) -> Any:
    """What the weights of the rows of each class are multiplied by."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
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
