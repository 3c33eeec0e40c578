"""Regression targets: validation, and the scale on which they are trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array

from crisptree.targets.base import Target
from crisptree.targets.encoding import EncodedTarget, Reduction, Rows, TargetEncoding, TargetInput, TargetStatistics
from crisptree.targets.gaussians import Gaussians
from crisptree.targets.labels import as_array, check_present
from crisptree.targets.weights import check_some_weight, check_total_weight, sum_weights
from crisptree.tensors import detach

if TYPE_CHECKING:
    from crisptree.inference.statistics import SomeTree

Doubles = npt.NDArray[np.float64]

ROUNDING_SHARE = 1e-12
"""A spread below this share of the mean is rounding."""

MAX_VALUE = 1e150
"""Numbers beyond have no square in double precision."""

MAX_SCALED = 1e15
"""Standard deviations from the mean; further away, sums of squares overflow in single precision."""


@dataclass(frozen=True, eq=False)
class RegressionEncoding(TargetEncoding):
    """Mean and spread of every output over the training rows.

    A constant output trains in the unit 1 and is predicted in the unit 0: its mean exactly, and no spread, where the
    smallest variance of a leaf would be a share of a variance that is not there.
    """

    center: Doubles
    unit: Doubles
    is_constant: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        if not (np.isfinite(self.center).all() and np.isfinite(self.unit).all()):
            raise ValueError(
                "y and the weights of its rows must have a finite sum of weighted squares; it overflows. Divide y by a "
                "unit, or the weights by the largest."
            )

    @classmethod
    def of_moments(cls, center: Doubles, spread: Doubles, low: Doubles, high: Doubles) -> Self:
        """The encoding of outputs with these means, standard deviations and ranges."""
        is_constant = spread <= ROUNDING_SHARE * np.abs(center)
        center = np.where(is_constant & (low == high), low, center)  # exactly, not a rounded mean
        return cls(center, np.where(is_constant, 1.0, spread), is_constant)

    @classmethod
    def of_rows(cls, y: Doubles, weight: Doubles) -> Self:
        """The encoding of weighted rows.

        Examples
        --------
        >>> scale = RegressionEncoding.of_rows(np.array([[1.0], [3.0]]), np.ones(2))
        >>> scale.center.tolist(), scale.unit.tolist()
        ([2.0], [1.0])
        """
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
            center = np.average(y, axis=0, weights=weight)
            spread = np.sqrt(np.average((y - center) ** 2, axis=0, weights=weight))
        return cls.of_moments(center, spread, y.min(axis=0), y.max(axis=0))

    @classmethod
    def of_fitted(cls, attributes: Mapping[str, Any], tree: Any) -> Self:
        center, unit = tree.statistics.y_center, tree.statistics.y_unit
        is_constant = unit == 0
        return cls(center, np.where(is_constant, 1.0, unit), is_constant)

    @property
    def n_outputs(self) -> int:
        """Numbers of a row."""
        return len(self.center)

    @property
    def attributes(self) -> dict[str, Any]:
        return {"n_outputs_": self.n_outputs}

    def target_of(self, y: npt.NDArray[Any]) -> Target:
        return Gaussians(2 * self.n_outputs)

    @classmethod
    def read(cls, y: Any) -> TargetInput:
        if y is None:
            raise ValueError("y must hold a number for every row; requires y to be passed, but the target y is None.")
        check_holds_numbers(y)
        return TargetInput(y, True)

    @classmethod
    def check(cls, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return check_numbers(y)

    @classmethod
    def learn(
        cls,
        given: TargetInput,
        y: npt.NDArray[Any],
        weight: Doubles,
        parameters: Any,
        earlier: Self | None = None,
        *,
        is_part: bool = False,
    ) -> EncodedTarget:
        y = cls.check(y)
        kept = check_some_weight(weight)
        if not kept.all():
            y, weight = y[kept], weight[kept]
        scale = cls.of_rows(y, weight) if earlier is None else earlier.beside(y)
        return EncodedTarget(scale, scale.scale(y), weight, kept)

    def beside(self, y: Doubles) -> Self:
        """The encoding of further rows, in which an output may no longer be constant."""
        if y.shape[1] != self.n_outputs:
            raise ValueError(
                f"a warm start or partial_fit must go on with as many outputs; the tree has {self.n_outputs} and y has "
                f"{y.shape[1]}. Use a new estimator for other data."
            )
        same = (np.abs(y - self.center) <= ROUNDING_SHARE * np.abs(self.center)).all(axis=0)
        return replace(self, is_constant=self.is_constant & same)

    def scale(self, y: Doubles) -> Doubles:
        """y in standard deviations from the mean.  (n, n_outputs) → the same"""
        away = y - self.center
        is_rounding = self.is_constant & (np.abs(away) <= ROUNDING_SHARE * np.abs(self.center))
        scaled = np.where(is_rounding, 0.0, away) / self.unit
        if np.abs(scaled).max(initial=0.0) > MAX_SCALED:
            raise ValueError(
                f"y must lie within {MAX_SCALED:g} standard deviations of the weighted mean of the training rows "
                f"(deviations from it, where all of them were equal); got one {np.abs(scaled).max():g} away. Leave out "
                "such rows, or those of nearly no weight."
            )
        return scaled

    def encode_validation(self, y: Any, name: str | None = None, *, may_be_soft: bool = False) -> npt.NDArray[Any]:
        name = name or "validation numbers"
        y = check_numbers(y, name)
        if y.shape[1] != self.n_outputs:
            raise ValueError(f"{name} must have {self.n_outputs} outputs, as y in training; got {y.shape[1]}.")
        return self.scale(y)

    @classmethod
    def statistics(cls, parameters: Mapping[str, Any]) -> OutputMoments:
        return OutputMoments()

    @classmethod
    def summarize(cls, y: npt.NDArray[Any]) -> Any:
        return (y.shape[1] if y.ndim == 2 else 1, len(y))

    @classmethod
    def merge(cls, summaries: Sequence[Any]) -> Self:
        found = {n_outputs for n_outputs, n_rows in summaries if n_rows}
        if len(found) > 1:
            raise ValueError(f"y must have as many columns in all processes; got {', '.join(map(str, sorted(found)))}.")
        (n_outputs,) = found
        return cls(np.zeros(n_outputs), np.ones(n_outputs), np.zeros(n_outputs, dtype=bool))

    def as_numbers(self, y: npt.NDArray[Any]) -> Doubles:
        return np.asarray(y, dtype=np.float64).reshape(len(y), self.n_outputs)

    def reduce(self, parts: Sequence[Rows], reduction: Reduction, parameters: Mapping[str, Any]) -> Self:
        parts = [part for part in parts if len(part.y)]
        ends = np.full((2, self.n_outputs), -np.inf)
        for part in parts:
            ends = np.maximum(ends, np.stack([-part.y.min(axis=0), part.y.max(axis=0)]))
        low, high = reduction.maximum(ends) * [[-1.0], [1.0]]
        sums = reduction.total(
            [np.append(part.weight.sum(), _weighted_sum(part, part.y)) for part in parts], (1 + self.n_outputs,)
        )
        check_total_weight(float(sums[0]))
        center = np.where(low == high, low, sums[1:] / sums[0])
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
            squares = [_weighted_sum(part, (part.y - center) ** 2) for part in parts]
            spread = np.sqrt(reduction.total(squares, (self.n_outputs,)) / sums[0])
        return self.of_moments(center, spread, low, high)

    def no_rows(self) -> npt.NDArray[Any]:
        return np.zeros((0, self.n_outputs))

    def encode(self, numbers: Doubles, weight: Doubles) -> tuple[Doubles, Doubles]:
        return self.scale(numbers), weight

    def scale_predictions(self, predictions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return self.scale(predictions)

    def restore_units(self, tree: SomeTree) -> SomeTree:
        unit = np.where(self.is_constant, 0.0, self.unit)
        return replace(tree, statistics=replace(tree.statistics, y_center=self.center, y_unit=unit))


class OutputMoments(TargetStatistics):
    """Weighted moments of every output about the mean of the first batch, where squares are small."""

    def __init__(self) -> None:
        self.total, self.n_rows = 0.0, 0
        self.checksum = np.zeros(2, dtype=np.uint64)

    def add(self, y: npt.NDArray[Any], weight: Doubles, name: str) -> Doubles:
        try:
            numbers = check_numbers(y)
        except ValueError as error:
            raise ValueError(f"{name} must have a number for every row: {error}") from error
        if not self.n_rows:
            self.middle = numbers.mean(axis=0)
            self.first, self.second = np.zeros_like(self.middle), np.zeros_like(self.middle)
            self.low, self.high = numbers.min(axis=0), numbers.max(axis=0)
        if numbers.shape[1] != len(self.middle):
            raise ValueError(f"{name} must have {len(self.middle)} outputs as those before; it has {numbers.shape[1]}.")
        away = numbers - self.middle
        self.total, self.n_rows = self.total + sum_weights(weight), self.n_rows + len(numbers)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused when all is known
            self.first += weight @ away
            self.second += weight @ np.square(away)
        self.low, self.high = np.minimum(self.low, numbers.min(axis=0)), np.maximum(self.high, numbers.max(axis=0))
        self.checksum += self.rows_checksum(y)
        return weight

    def learn(self, name: str) -> tuple[RegressionEncoding, Doubles]:
        check_total_weight(self.total)
        with np.errstate(over="ignore", invalid="ignore"):
            away = self.first / self.total
            spread = np.sqrt(np.maximum(self.second / self.total - away**2, 0.0))
        encoding = RegressionEncoding.of_moments(self.middle + away, spread, self.low, self.high)
        squares = self.total * np.where(encoding.is_constant, 0.0, 1.0)
        return encoding, np.concatenate([[self.total], 0 * squares, squares])

    def rows_checksum(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        bits = np.ascontiguousarray(check_numbers(y)).view(np.uint64)
        return np.array([len(y), bits.sum(dtype=np.uint64)], dtype=np.uint64)

    def describe_checksum(self, checksum: npt.NDArray[Any]) -> str:
        return f"{int(checksum[0]):,} rows, the sum of whose numbers' bits is {int(checksum[1])}"


def check_numbers(y: Any, name: str = "y") -> Doubles:
    """Check finite numbers, one or several for every row.  → (n, n_outputs)"""
    y = detach(y)
    check_holds_numbers(y, name)
    found = check_array(y, dtype=np.float64, ensure_2d=False, allow_nd=False, input_name=name, ensure_all_finite=True)
    found = found.reshape(len(found), -1)
    if found.shape[1] == 0:
        raise ValueError(f"{name} must have at least one column; got shape {np.shape(y)}.")
    if np.abs(found).max(initial=0.0) > MAX_VALUE:
        raise ValueError(
            f"{name} must hold numbers of at most {MAX_VALUE:g}, whose squares can be summed; got "
            f"{np.abs(found).max():g}. Divide y by a unit."
        )
    return np.asarray(found)


def check_holds_numbers(y: Any, name: str = "y") -> None:
    """Refuse dates, text, and numbers of which some are missing or infinite."""
    array = as_array(y)
    if array is None or array.dtype.kind in "biuc" or array.ndim not in (1, 2):
        return
    if array.dtype.kind in "mM":
        raise ValueError(
            f"{name} must hold numbers; it holds dates or durations ({array.dtype}). Make numbers of them first, in a "
            "unit of your choice, such as days since an event: (y - y.min()).dt.days."
        )
    check_present(array, name, "a number")
    if array.dtype.kind == "f":
        return
    for row, value in enumerate(array.reshape(len(array), -1).tolist()):
        for one in value:
            try:
                float(one)
            except (TypeError, ValueError):
                raise ValueError(
                    f"{name} must hold numbers; row {row} has {one!r} ({type(one).__name__}). If these are classes, "
                    "use CrispTreeClassifier; otherwise make numbers of them first."
                ) from None


def _weighted_sum(part: Rows, values: Doubles) -> Doubles:
    """Σ w v; without a product of matrices, whose threads would change bits."""
    return np.asarray((values * part.weight[:, None]).sum(axis=0))
