"""Regression: validation and scaling of y, and leaves that are normal distributions of every output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from crisptree.targets.base import (
    Array,
    EncodedTarget,
    Reduction,
    Rows,
    Target,
    TargetEncoding,
    TargetInput,
    TargetStatistics,
    Values,
    as_array,
    check_present,
    check_some_weight,
    check_total_weight,
    detach,
    quantile_strata,
    sum_weights,
)

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from crisptree.inference.finalization import SomeTree

Doubles = npt.NDArray[np.float64]

MIN_RELATIVE_VARIANCE = 1e-12
"""Rows whose variance is below this share of that of all rows differ by rounding only."""

MAX_MASK_VALUES = 2**26
"""Nodes times rows of a mask of ``sums_by_products``."""

ROUNDING_SHARE = 1e-12
"""A spread below this share of the mean is rounding."""

MAX_VALUE = 1e150
"""Numbers beyond have no square in double precision."""

MAX_SCALED = 1e15
"""Standard deviations from the mean; beyond, sums of squares overflow in single precision."""


@dataclass(frozen=True)
class Gaussians(Target):
    """y_n are outputs (n, n_outputs), scaled to mean 0 and variance 1; a leaf holds independent normal distributions.

    A table is the means and then the variances; statistics are (Σ w, Σ w y, Σ w y²), precise because y is centred.

    Examples
    --------
    >>> import torch
    >>> one = Gaussians(2)
    >>> h, y = torch.tensor([[0.5], [0.5]]), torch.tensor([[-1.0], [1.0]])
    >>> one.statistics(h, y).tolist()
    [[1.0, 0.0, 1.0]]
    """

    name: ClassVar[str] = "gaussians"
    is_regression: ClassVar[bool] = True
    starts_at_node: ClassVar[bool] = True

    @property
    def n_outputs(self) -> int:
        """Number of outputs of a row."""
        return self.n_values // 2

    @property
    def n_statistics(self) -> int:
        return 1 + self.n_values

    @property
    def min_leaves(self) -> int:
        return 2

    def evidence(self, tables: Tensor, y: Tensor, node: Tensor | None = None) -> Tensor:
        """log N(y_n; m_ℓ, v_ℓ), at most ``DEEPEST_DOUBT`` below the highest of a row.  (n, n_leaves)"""
        from crisptree.equations.leaves import DEEPEST_DOUBT, log_densities

        parts = tables.reshape(len(tables), -1, 2, self.n_outputs)
        leaves = parts[:, 0] if node is None else parts[:, node].transpose(0, 1)
        logs = log_densities(y.to(tables)[:, None], leaves[..., 0, :], leaves[..., 1, :])
        return logs.maximum(logs.max(dim=1, keepdim=True).values - DEEPEST_DOUBT)

    def statistics(self, responsibilities: Tensor, y: Tensor, node: Tensor | None = None, n_nodes: int = 1) -> Tensor:
        each = self._each(y.to(responsibilities))
        if node is None:
            return responsibilities.T @ each
        sums = self._sums(each, responsibilities, node, n_nodes)
        return sums.transpose(0, 1).reshape(responsibilities.shape[1], -1)

    def update(self, statistics: Tensor, previous: Tensor, prior: float = 0.0) -> Tensor:
        """m_ℓ = Σ h y / Σ h, v_ℓ = Σ h y² / Σ h − m_ℓ², with a lower bound on the variance."""
        import torch

        from crisptree.equations.leaves import MIN_VARIANCE, mean_and_variance

        mean, variance = mean_and_variance(*self._parts(statistics.double()), prior)
        tables = torch.cat([mean, variance.clamp_min(MIN_VARIANCE)], dim=1)
        return tables.to(previous).where(statistics[:, :1] > 0, previous)

    def pool_variances(self, tables: Tensor, statistics: Tensor) -> Tensor:
        """Average every variance with the pooled one; see ``equations.gaussian``."""
        import torch

        from crisptree.equations.leaves import pooled_variance

        mean, variance = tables[..., : self.n_outputs], tables[..., self.n_outputs :]
        return torch.cat([mean, pooled_variance(variance, statistics[..., :1].to(tables))], dim=-1)

    def random_tables(self, n: int, generator: Generator) -> Tensor:
        """Standard normal means and unit variances."""
        import torch

        mean = torch.randn(n, self.n_outputs, generator=generator)
        return torch.cat([mean, torch.ones_like(mean)], dim=1)

    def stump_tables(self, tables: Tensor, statistics: Tensor) -> Tensor:
        """Place the two means one standard deviation from the mean of the stump's rows, in a random direction."""
        import torch

        from crisptree.equations.leaves import MIN_VARIANCE, mean_and_variance

        mean, variance = mean_and_variance(*self._parts(statistics.double()), 0.0)
        variance = variance.clamp_min(MIN_VARIANCE)
        direction = tables[1, :, : self.n_outputs] - tables[0, :, : self.n_outputs]
        direction = direction / direction.square().mean(dim=1, keepdim=True).sqrt().clamp_min(1e-30)
        deviation = direction.to(variance) * variance.sqrt()
        return torch.stack([torch.cat([mean + side * deviation, variance], dim=1) for side in (-1, 1)]).to(tables)

    def tally(self, y: Any, weight: Any, node: Any, n_nodes: int) -> Any:
        """Sums of 1, y and y²."""
        if isinstance(weight, np.ndarray):
            each = weight[:, None] * self._each(y)
            return np.stack([np.bincount(node, column, n_nodes) for column in each.T], axis=1)
        return self._sums(self._each(y.to(weight)), weight, node, n_nodes)

    def _sums(self, each: Tensor, weight: Tensor, node: Tensor, n_nodes: int) -> Tensor:
        """(b, n_statistics), (b, …), (b,) → (n_nodes, …, n_statistics)"""
        weighted = weight[..., None] * each.reshape(len(each), *[1] * (weight.dim() - 1), self.n_statistics)
        if weight.is_cuda:
            return sums_by_products(weighted, node, n_nodes)
        return weight.new_zeros(n_nodes, *weighted.shape[1:]).index_add_(0, node, weighted)

    def _each(self, y: Any) -> Any:
        """Statistics of single rows: 1, y and y².  (b, n_outputs) → (b, n_statistics)"""
        if isinstance(y, np.ndarray):
            return np.concatenate([np.ones((len(y), 1)), y, y * y], axis=1)
        import torch

        return torch.cat([torch.ones_like(y[:, :1]), y, y * y], dim=1)

    def _parts(self, statistics: Any) -> tuple[Any, Any, Any]:
        k = self.n_outputs
        return statistics[..., :1], statistics[..., 1 : k + 1], statistics[..., k + 1 :]

    def score_predictions(self, predicted: Any, y: Any) -> Any:
        """1 − the squared error, averaged over outputs: as y has variance 1, the mean is about R²."""
        return 1 - ((predicted - y) ** 2).mean(-1)

    def loss(self, tables: Doubles, statistics: Doubles) -> float:
        """Sum the squared error."""
        from crisptree.equations.leaves import squared_error

        return float(squared_error(*self._parts(statistics), tables[:, : self.n_outputs]).sum())

    def strata(self, y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Quantile bins of the first output."""
        return quantile_strata(y[:, 0])

    def weight(self, statistics: Doubles) -> Doubles:
        return statistics[..., 0]

    def impurity(self, statistics: Doubles) -> Doubles:
        """N times the variance, averaged over outputs: the squared error of the best constant."""
        return np.asarray(self._squares_within(statistics).mean(axis=-1))

    def mean_impurity(self, statistics: Doubles, unit: Doubles | None) -> Doubles:
        """Variance, averaged over outputs."""
        variance = self._squares_within(statistics) / np.maximum(statistics[..., :1], np.finfo(float).tiny)
        return np.asarray((variance * (1.0 if unit is None else unit**2)).mean(axis=-1))

    def _squares_within(self, statistics: Doubles) -> Doubles:
        weight, sums, squares = self._parts(statistics)
        return np.maximum(squares - sums * sums / np.maximum(weight, np.finfo(float).tiny), 0.0)

    def is_mixed(self, statistics: Doubles) -> npt.NDArray[np.bool_]:
        return np.asarray(self.impurity(statistics) > MIN_RELATIVE_VARIANCE * self.weight(statistics))

    def tables(self, statistics: Doubles, prior: float = 0.0) -> Doubles:
        """Means and variances of the rows and of ``prior`` more of mean 0 and variance 1."""
        from crisptree.equations.leaves import MIN_VARIANCE, mean_and_variance

        weight, sums, squares = self._parts(statistics)
        mean, variance = mean_and_variance(np.maximum(weight, np.finfo(float).tiny), sums, squares, prior)
        return np.concatenate([mean, np.maximum(variance, MIN_VARIANCE)], axis=1)

    def predict(self, tables: Any) -> Any:
        """Return the means.  (m, n_outputs)"""
        return tables[:, : self.n_outputs]

    def independent_outputs(self, tables: Doubles) -> Doubles:
        """Return the means."""
        return tables[:, : self.n_outputs]

    def restore_units(self, tables: Doubles, center: Doubles, unit: Doubles) -> Doubles:
        """Scale means and variances, and shift the means."""
        mean, variance = tables[:, : self.n_outputs], tables[:, self.n_outputs :]
        with np.errstate(under="ignore"):  # the square of a tiny spread is 0
            return np.concatenate([mean * unit + center, variance * unit**2], axis=1)

    def ordered_values(self, tables: Doubles) -> Doubles:
        """Return the mean of the only output."""
        return tables[:, 0]

    def with_ordered_values(self, tables: Doubles, values: Doubles) -> Doubles:
        """Set means; variances become those about the new means."""
        return np.stack([values, tables[:, 1] + (values - tables[:, 0]) ** 2], axis=1)

    def check(self, tables: Doubles) -> str | None:
        if tables.shape[1] % 2 or (tables[:, self.n_outputs :] < 0).any():
            return "not means and variances"
        return None


@dataclass(frozen=True, eq=False)
class RegressionEncoding(TargetEncoding):
    """Mean and standard deviation of every output over the training rows.

    A constant output trains in the unit 1 and is predicted in the unit 0: its mean exactly, without variance.
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
        """Make the encoding of outputs with these means, standard deviations and ranges."""
        is_constant = spread <= ROUNDING_SHARE * np.abs(center)
        center = np.where(is_constant & (low == high), low, center)  # exactly, not a rounded mean
        return cls(center, np.where(is_constant, 1.0, spread), is_constant)

    @classmethod
    def of_rows(cls, y: Doubles, weight: Doubles) -> Self:
        """Make the encoding of weighted rows."""
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
        """Number of outputs."""
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
        check_numeric(y)
        return TargetInput(y, True)

    @classmethod
    def check(cls, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return check_regression_target(y)

    @classmethod
    def learn(
        cls, source: TargetInput, y: Array, weight: Doubles, parameters: Values, previous: Self | None
    ) -> EncodedTarget:
        y = cls.check(y)
        kept = check_some_weight(weight)
        if not kept.all():
            y, weight = y[kept], weight[kept]
        scale = cls.of_rows(y, weight) if previous is None else previous.extend_to(y)
        return EncodedTarget(scale, scale.scale(y), weight, kept)

    def extend_to(self, y: Doubles) -> Self:
        """Return the encoding of further rows, in which an output may no longer be constant."""
        if y.shape[1] != self.n_outputs:
            raise ValueError(
                f"a warm start or partial_fit must have as many outputs; the tree has {self.n_outputs} and y has "
                f"{y.shape[1]}. Use a new estimator for other data."
            )
        same = (np.abs(y - self.center) <= ROUNDING_SHARE * np.abs(self.center)).all(axis=0)
        return replace(self, is_constant=self.is_constant & same)

    def scale(self, y: Doubles) -> Doubles:
        """Standardize y.  (n, n_outputs) → the same"""
        deviation = y - self.center
        is_rounding = self.is_constant & (np.abs(deviation) <= ROUNDING_SHARE * np.abs(self.center))
        scaled = np.where(is_rounding, 0.0, deviation) / self.unit
        if np.abs(scaled).max(initial=0.0) > MAX_SCALED:
            raise ValueError(
                f"y must lie within {MAX_SCALED:g} standard deviations of the weighted mean of the training rows "
                f"(deviations from it, where all of them were equal); got one {np.abs(scaled).max():g} away. Leave out "
                "such rows, or those of nearly no weight."
            )
        return scaled

    def encode_validation(self, y: Any, name: str | None = None, *, may_be_soft: bool = False) -> npt.NDArray[Any]:
        name = name or "validation numbers"
        y = check_regression_target(y, name)
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
        counts = {n_outputs for n_outputs, n_rows in summaries if n_rows}
        if len(counts) > 1:
            columns = ", ".join(map(str, sorted(counts)))
            raise ValueError(f"y must have as many columns in all processes; got {columns}.")
        (n_outputs,) = counts
        return cls(np.zeros(n_outputs), np.ones(n_outputs), np.zeros(n_outputs, dtype=bool))

    def to_numeric(self, y: npt.NDArray[Any]) -> Doubles:
        return np.asarray(y, dtype=np.float64).reshape(len(y), self.n_outputs)

    def reduce(self, parts: Sequence[Rows], reduction: Reduction, parameters: Mapping[str, Any]) -> Self:
        parts = [part for part in parts if len(part.y)]
        bounds = np.full((2, self.n_outputs), -np.inf)
        for part in parts:
            bounds = np.maximum(bounds, np.stack([-part.y.min(axis=0), part.y.max(axis=0)]))
        low, high = reduction.maximum(bounds) * [[-1.0], [1.0]]
        sums = reduction.total(
            [np.append(part.weight.sum(), _weighted_sum(part, part.y)) for part in parts], (1 + self.n_outputs,)
        )
        check_total_weight(float(sums[0]))
        center = np.where(low == high, low, sums[1:] / sums[0])
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
            squares = [_weighted_sum(part, (part.y - center) ** 2) for part in parts]
            spread = np.sqrt(reduction.total(squares, (self.n_outputs,)) / sums[0])
        return self.of_moments(center, spread, low, high)

    def make_empty(self) -> npt.NDArray[Any]:
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
            numbers = check_regression_target(y)
        except ValueError as error:
            raise ValueError(f"{name} must have a number for every row: {error}") from error
        if not self.n_rows:
            self.middle = numbers.mean(axis=0)
            self.first, self.second = np.zeros_like(self.middle), np.zeros_like(self.middle)
            self.low, self.high = numbers.min(axis=0), numbers.max(axis=0)
        if numbers.shape[1] != len(self.middle):
            raise ValueError(f"{name} must have {len(self.middle)} outputs as those before; it has {numbers.shape[1]}.")
        deviation = numbers - self.middle
        self.total, self.n_rows = self.total + sum_weights(weight), self.n_rows + len(numbers)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused when all is known
            self.first += weight @ deviation
            self.second += weight @ np.square(deviation)
        self.low, self.high = np.minimum(self.low, numbers.min(axis=0)), np.maximum(self.high, numbers.max(axis=0))
        self.checksum += self.rows_checksum(y)
        return weight

    def learn(self, name: str) -> tuple[RegressionEncoding, Doubles]:
        check_total_weight(self.total)
        with np.errstate(over="ignore", invalid="ignore"):
            deviation = self.first / self.total
            spread = np.sqrt(np.maximum(self.second / self.total - deviation**2, 0.0))
        encoding = RegressionEncoding.of_moments(self.middle + deviation, spread, self.low, self.high)
        squares = self.total * np.where(encoding.is_constant, 0.0, 1.0)
        return encoding, np.concatenate([[self.total], 0 * squares, squares])

    def rows_checksum(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        bits = np.ascontiguousarray(check_regression_target(y)).view(np.uint64)
        return np.array([len(y), bits.sum(dtype=np.uint64)], dtype=np.uint64)

    def describe_checksum(self, checksum: npt.NDArray[Any]) -> str:
        return f"{int(checksum[0]):,} rows, the sum of whose numbers' bits is {int(checksum[1])}"


def check_regression_target(y: Any, name: str = "y") -> Doubles:
    """Check finite outputs, one or several for every row.  → (n, n_outputs)"""
    from sklearn.utils.validation import check_array

    y = detach(y)
    check_numeric(y, name)
    outputs = check_array(y, dtype=np.float64, ensure_2d=False, allow_nd=False, input_name=name, ensure_all_finite=True)
    outputs = outputs.reshape(len(outputs), -1)
    if outputs.shape[1] == 0:
        raise ValueError(f"{name} must have at least one column; got shape {np.shape(y)}.")
    if np.abs(outputs).max(initial=0.0) > MAX_VALUE:
        raise ValueError(
            f"{name} must hold numbers of at most {MAX_VALUE:g}, whose squares can be summed; got "
            f"{np.abs(outputs).max():g}. Divide y by a unit."
        )
    return np.asarray(outputs)


def check_numeric(y: Any, name: str = "y") -> None:
    """Refuse dates, text, missing values and infinities."""
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


def squeeze_outputs(values: Doubles) -> Doubles:
    """Drop the axis of outputs where there is one.  (…, n_outputs) → (…) or the same"""
    return values[..., 0] if values.shape[-1] == 1 else values


def _weighted_sum(part: Rows, values: Doubles) -> Doubles:
    """Σ w v; without a product of matrices, whose threads would change bits."""
    return np.asarray((values * part.weight[:, None]).sum(axis=0))


def sums_by_products(values: Tensor, node: Tensor, n_nodes: int) -> Tensor:
    """Sum values by node in a fixed order, which ``index_add_`` lacks on CUDA.  (b, …), (b,) → (n_nodes, …)"""
    import torch

    numbers = torch.arange(n_nodes, device=node.device)[:, None]
    each, at_once = values.flatten(1), max(1, MAX_MASK_VALUES // n_nodes)
    sums = values.new_zeros(n_nodes, each.shape[1])
    for part, nodes in zip(each.split(at_once), node.split(at_once), strict=True):
        sums += (nodes == numbers).to(values) @ part
    return sums.reshape(n_nodes, *values.shape[1:])
