"""Classification: labels or probabilities of classes, and leaves that are class distributions, as in the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from crisptree.targets.base import (
    Array,
    EncodedTarget,
    EStep,
    Reduction,
    Rows,
    Target,
    TargetEncoding,
    TargetInput,
    TargetStatistics,
    Values,
    check_present,
    check_some_weight,
    check_total_weight,
    class_factors,
    class_numbers,
    label_type,
    sum_weights,
    weigh_classes,
)

if TYPE_CHECKING:
    from torch import Generator, Tensor

Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MIN_PROBABILITY = 1e-8
"""No entry of a leaf table falls below this: a class of probability zero in every leaf would leave its samples
without any responsible leaf (0/0), and a leaf could never take a class back."""

LOG_LOSS_EPS = 1e-15
"""Lower bound of probabilities in the log loss."""

MAX_FLOAT_CLASS = 2.0**63
"""Floats of at least this are no whole numbers of 64 bits, which classes must be."""

PROBABILITY_TOLERANCE = 1e-3
"""Tolerance of sums and of negative probabilities, as of half-precision softmaxes, before they are normalised."""

REMEDY = "For numbers use CrispTreeRegressor; of classes make text first, for example with y.astype(str)."


@dataclass(frozen=True)
class Classes(Target):
    """y_n is the index of a class, a leaf a distribution π_ℓ over classes; statistics are class counts.

    Examples
    --------
    >>> import torch
    >>> two = Classes(2)
    >>> h, y = torch.tensor([[0.25, 0.75], [1.0, 0.0]]), torch.tensor([1, 0])
    >>> two.statistics(h, y).tolist()
    [[1.0, 0.25], [0.0, 0.75]]
    """

    name: ClassVar[str] = "classes"

    @property
    def n_classes(self) -> int:
        return self.n_values

    def conform(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Replace probabilities by the most probable class."""
        return y if y.ndim == 1 else y.argmax(axis=1)

    def evidence(self, tables: Tensor, y: Tensor, node: Tensor | None = None) -> Tensor:
        """log π_ℓ(y_n).  (n, n_leaves)"""
        return tables.log().T[self._column(y, node)]

    def statistics(self, responsibilities: Tensor, y: Tensor, node: Tensor | None = None, n_nodes: int = 1) -> Tensor:
        """Σ_n 1(y_n = k) h_{n,ℓ}, where h may carry sample weights.  (n_leaves, n_nodes · n_classes)"""
        counts = responsibilities.new_zeros(n_nodes * self.n_values, responsibilities.shape[1])
        return counts.index_add_(0, self._column(y, node), responsibilities).T

    def _column(self, y: Any, node: Any) -> Any:
        return y if node is None else node * self.n_values + y

    def update(self, statistics: Tensor, previous: Tensor, prior: float = 0.0) -> Tensor:
        """π_ℓ(k) = (c_{ℓ,k} + α) / Σ_k' (c_{ℓ,k'} + α) with a Dirichlet prior α; no exact zeros."""
        raised = statistics + prior
        occupied = statistics.sum(dim=1, keepdim=True) > 0
        tables = (raised / raised.sum(dim=1, keepdim=True)).where(occupied, previous).clamp_min(MIN_PROBABILITY)
        return tables / tables.sum(dim=1, keepdim=True)

    def random_tables(self, n: int, generator: Generator) -> Tensor:
        """Uniformly random entries, normalised."""
        import torch

        raw = 1 - torch.rand(n, self.n_values, generator=generator)  # in (0, 1]: no table starts with a zero
        return raw / raw.sum(dim=1, keepdim=True)

    def tally(self, y: Any, weight: Any, node: Any, n_nodes: int) -> Any:
        """Counts of classes."""
        column = self._column(y, node)
        if isinstance(weight, np.ndarray):
            return np.bincount(column, weight, n_nodes * self.n_values).reshape(n_nodes, self.n_values)
        if weight.dim() == 2 and weight.shape[1] > 1:
            counts = weight.new_zeros(n_nodes * self.n_values, weight.shape[1]).index_add_(0, column, weight)
            return counts.reshape(n_nodes, self.n_values, -1).transpose(1, 2)
        # torch adds numbers many times quicker than rows of one number
        counts = weight.new_zeros(n_nodes * self.n_values).index_add_(0, column, weight.reshape(-1))
        return counts.reshape(n_nodes, *[1] * (weight.dim() - 1), self.n_values)

    def score_predictions(self, predicted: Any, y: Any) -> Any:
        """1 where the class is the row's, 0 elsewhere: the mean is the accuracy."""
        return predicted == y

    def loss(self, tables: Doubles, statistics: Doubles) -> float:
        """Sum the log loss."""
        return float(-(statistics * np.log(np.maximum(tables, LOG_LOSS_EPS))).sum())

    def weight(self, statistics: Doubles) -> Doubles:
        return np.asarray(statistics.sum(axis=-1))

    def impurity(self, statistics: Doubles) -> Doubles:
        """N · H: the rows' number times the entropy of their classes, H = −Σ_k p_k log p_k."""
        return self.weight(statistics) * self._entropy(statistics)

    def mean_impurity(self, statistics: Doubles, unit: Doubles | None) -> Doubles:
        """Entropy in bits."""
        return self._entropy(statistics) / np.log(2.0)

    def _entropy(self, counts: Doubles) -> Doubles:
        """−Σ_k p_k log p_k of the class frequencies, zero for no samples at all.  (…, n_classes) → (…)"""
        shares = counts / np.maximum(self.weight(counts), np.finfo(float).tiny)[..., None]
        logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
        return np.asarray(-(shares * logs).sum(axis=-1))

    def is_mixed(self, statistics: Doubles) -> npt.NDArray[np.bool_]:
        return np.asarray((statistics > 0).sum(axis=-1) > 1)

    def tables(self, statistics: Doubles, prior: float = 0.0) -> Doubles:
        """Class frequencies with a Dirichlet prior; all zeros where there is nothing at all."""
        raised = statistics + prior
        return raised / np.maximum(raised.sum(axis=1, keepdims=True), np.finfo(float).tiny)

    def predict(self, tables: Any) -> Any:
        """Return the index of the most frequent class."""
        return tables.argmax(1)

    def independent_outputs(self, tables: Doubles) -> Doubles:
        """Return the probabilities of all classes but the first."""
        return tables[:, 1:]

    def ordered_values(self, tables: Doubles) -> Doubles:
        """Return the probability of the second of two classes."""
        return tables[:, 1]

    def with_ordered_values(self, tables: Doubles, values: Doubles) -> Doubles:
        return np.stack([1 - values, values], axis=1)

    def check(self, tables: Doubles) -> str | None:
        if (tables < 0).any() or not np.allclose(tables.sum(axis=1), 1, atol=1e-4):
            return "not probabilities"
        return None


@dataclass(frozen=True)
class SoftClasses(Classes):
    """y_n are probabilities P_{n,k} of all classes: a row stands for one row of each class, with that weight.

    Tables and statistics are those of ``Classes``, whose name trees and files give their target.

    Examples
    --------
    >>> import torch
    >>> paths, P = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.25, 0.75]])
    >>> tables = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> SoftClasses(2).e_step(paths.log(), tables, P, torch.ones(1)).responsibilities.tolist()
    [[0.25, 0.75]]
    """

    has_axis_splits: ClassVar[bool] = False

    @property
    def hard(self) -> Classes:
        return Classes(self.n_values)

    def conform(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Replace labels by probabilities of 0 and 1."""
        return y if y.ndim == 2 else np.asarray(np.eye(self.n_values)[y])

    def evidence(self, tables: Tensor, y: Tensor, node: Tensor | None = None) -> Tensor:
        """Σ_k P_{n,k} log π_ℓ(k), as if the K rows had to share a leaf; the E-step lets each have its own."""
        leaves = self._leaves(tables, node).log()
        return (y.to(leaves)[:, None] @ leaves.mT)[:, 0]

    def e_step(
        self,
        log_paths: Tensor,
        tables: Tensor,
        y: Tensor,
        weight: Tensor,
        node: Tensor | None = None,
        n_nodes: int = 1,
    ) -> EStep:
        """Compute the E-step summed over the K weighted rows; see ``equations.soft_labels``."""
        from crisptree.equations import soft_labels

        leaves, labels, paths = self._leaves(tables, node), y.to(log_paths), log_paths.exp()
        probabilities = soft_labels.class_probabilities(paths, leaves)
        ratios = soft_labels.label_ratios(labels, probabilities)
        visits = self.statistics(paths * weight[:, None], ratios, node, n_nodes)
        return EStep(
            soft_labels.responsibilities(paths, leaves, ratios),
            soft_labels.leaf_counts(tables, visits),
            soft_labels.log_likelihoods(probabilities, labels),
        )

    def _leaves(self, tables: Tensor, node: Tensor | None) -> Tensor:
        """(n_leaves, n_classes), or those of every row's own node: (n, n_leaves, n_classes)"""
        if node is None:
            return tables
        return tables.reshape(len(tables), -1, self.n_values).transpose(0, 1)[node]

    def statistics(self, responsibilities: Tensor, y: Tensor, node: Tensor | None = None, n_nodes: int = 1) -> Tensor:
        """Σ_n h_{n,ℓ} P_{n,k}, where all classes of a row share its h.  (n_leaves, n_nodes · n_classes)"""
        if node is None:
            return responsibilities.T @ y.to(responsibilities)
        counts = self.tally(y, responsibilities, node, n_nodes)
        return counts.transpose(0, 1).reshape(responsibilities.shape[1], -1)

    def tally(self, y: Any, weight: Any, node: Any, n_nodes: int) -> Any:
        """Sums of the probabilities."""
        if isinstance(weight, np.ndarray):
            return np.stack([np.bincount(node, weight * column, n_nodes) for column in y.T], axis=1)
        each = weight[..., None] * y.to(weight).reshape(len(y), *[1] * (weight.dim() - 1), self.n_values)
        return weight.new_zeros(n_nodes, *each.shape[1:]).index_add_(0, node, each)

    def strata(self, y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the most probable class."""
        return y.argmax(axis=1)

    def score(self, tables: Tensor, leaf: Tensor, y: Tensor) -> Tensor:
        """Return the row's probability of the leaf's prediction: the mean is the expected accuracy."""
        return y.gather(1, tables.argmax(dim=1)[leaf][:, None])[:, 0]


@dataclass(frozen=True, eq=False)
class Probabilities:
    """A matrix of probabilities with the class of every column, for callers without a table.

    ``source`` is the row that each row is a copy of: a row and its copies never validate a tree that one of them
    trained.
    """

    values: Doubles
    columns: npt.NDArray[Any]
    source: npt.NDArray[np.intp] | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape


@dataclass(frozen=True, eq=False)
class ClassEncoding(TargetEncoding):
    """The classes of a fit: sorted labels of the training rows.

    ``labels`` (n_labels,) are all labels of rows, and ``factors`` those on their weights; a label of factor 0 is no
    class. Further rows have all classes, or with ``is_superset`` some of them.
    """

    classes: npt.NDArray[Any]
    labels: npt.NDArray[Any] | None = None
    factors: Doubles | None = None
    is_superset: bool = False

    @classmethod
    def named(cls, classes: Any) -> Self:
        """Return the encoding of all classes that rows may have."""
        labels = np.unique(np.asarray(classes))
        label_type(labels)
        return cls(labels, is_superset=True)

    @property
    def attributes(self) -> dict[str, Any]:
        return {"classes_": self.classes}

    def target_of(self, y: npt.NDArray[Any]) -> Target:
        return (Classes if y.ndim == 1 else SoftClasses)(len(self.classes))

    @classmethod
    def of_fitted(cls, attributes: Mapping[str, Any], tree: Any) -> Self:
        return cls(attributes["classes_"])

    @classmethod
    def read(cls, y: Any) -> TargetInput:
        if is_probabilities(y):
            return TargetInput(y, True, column_classes(y), y.source if isinstance(y, Probabilities) else None)
        check_present(y, "y", "a label")
        return TargetInput(y)

    @classmethod
    def check(cls, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        check_classes(y)
        label_type(np.asarray(y))
        return y

    @classmethod
    def learn(
        cls, source: TargetInput, y: Array, weight: Doubles, parameters: Values, previous: Self | None
    ) -> EncodedTarget:
        if source.classes is None:
            check_classes(y)
            classes = None
        else:
            classes, y = sort_probabilities(y, source.classes)
            if y.ndim == 2:
                check_soft_parameters(parameters)
        weight = weigh_classes(parameters["class_weight"], y, weight)
        kept = check_some_weight(weight)
        if not kept.all():
            y, weight = y[kept], weight[kept]
        if classes is None:
            label_type(np.asarray(y))
            classes, numbers = np.unique(y, return_inverse=True)
            numbers = numbers.astype(np.int64)
        else:
            label_type(classes)
            numbers = y if y.ndim == 2 else class_numbers(y, classes)
        if previous is not None and previous.is_superset:
            return EncodedTarget(previous, previous._renumber(numbers, classes), weight, kept)
        if previous is not None and not np.array_equal(previous.classes, classes):
            raise ValueError(
                f"`warm_start` must continue with the same classes; the tree has {previous.classes.tolist()} and y has "
                f"{classes.tolist()}. Use a new estimator for other data."
            )
        return EncodedTarget(cls(classes), numbers, weight, kept)

    def _renumber(self, numbers: Integers, classes: npt.NDArray[Any]) -> Integers:
        """Return class numbers by this encoding in place of those by some of its classes."""
        if numbers.ndim != 1:
            raise ValueError("y must be class labels here, (n_samples,); got probabilities. Use fit.")
        indices = class_numbers(classes, self.classes)
        if (indices < 0).any():
            raise ValueError(
                f"y must be among the training classes {self.classes.tolist()}; got {classes[indices < 0].tolist()} "
                "too. Name all classes in the first call of partial_fit, or leave those rows out."
            )
        return indices[numbers]

    def encode_validation(self, y: Any, name: str | None = None, *, may_be_soft: bool = False) -> npt.NDArray[Any]:
        name = name or "validation labels"
        if may_be_soft and is_probabilities(y):
            return self._ordered_probabilities(y, name)
        from sklearn.utils.validation import column_or_1d

        y = column_or_1d(y)
        numbers = class_numbers(y, self.classes)
        unknown = list(dict.fromkeys(y[numbers < 0].tolist()))
        if unknown:
            raise ValueError(
                f"{name} must be among the training classes {self.classes.tolist()}; got {unknown} too. Leave those "
                "rows out."
            )
        return numbers

    def _ordered_probabilities(self, y: Any, name: str) -> Doubles:
        """Check probabilities with a column for each class: a table's by name, a plain matrix's in order."""
        classes = self.classes
        columns = column_classes(y) if hasattr(y, "columns") else classes
        values = np.asarray(y)
        positions = {label: node for node, label in enumerate(columns.tolist())}
        if values.shape[1] != len(classes) or positions.keys() != set(classes.tolist()):
            came = columns.tolist() if hasattr(y, "columns") else f"{values.shape[1]} columns"
            raise ValueError(
                f"{name} as a matrix must have a column for each of the training classes {classes.tolist()}; got "
                f"{came}."
            )
        return check_probabilities(values[:, [positions[label] for label in classes.tolist()]], name)

    @classmethod
    def statistics(cls, parameters: Mapping[str, Any]) -> ClassCounts:
        return ClassCounts(parameters["class_weight"])

    @classmethod
    def summarize(cls, y: npt.NDArray[Any]) -> Any:
        return np.unique(y)

    @classmethod
    def merge(cls, summaries: Sequence[Any]) -> Self:
        labels = [one for one in summaries if len(one)]
        if len({one.dtype.kind in "biuf" for one in labels}) > 1:
            raise ValueError("labels must be numbers in all processes, or text in all; got both.")
        merged = np.unique(np.concatenate(labels))
        label_type(merged)
        return cls(merged, merged, np.ones(len(merged)))

    def to_numeric(self, y: npt.NDArray[Any]) -> Integers:
        assert self.labels is not None
        return class_numbers(y, self.labels) if len(y) else np.zeros(0, dtype=np.int64)

    def weighted(self, totals: Doubles, class_weight: Any) -> Self:
        """Return the encoding with the factors of ``class_weight``, from the total weight of each label."""
        assert self.labels is not None
        with np.errstate(over="ignore", invalid="ignore"):
            factors = class_factors(class_weight, self.labels, totals)
            check_total_weight(sum_weights(totals * factors))
        return type(self)(self.labels[factors > 0], self.labels, factors)

    def reduce(self, parts: Sequence[Rows], reduction: Reduction, parameters: Mapping[str, Any]) -> Self:
        n_labels = len(self.classes)
        totals = reduction.total([np.bincount(part.y, part.weight, n_labels) for part in parts], (n_labels,))
        return self.weighted(totals, parameters["class_weight"])

    def make_empty(self) -> npt.NDArray[Any]:
        return np.zeros(0, dtype=np.int64)

    def encode(self, numbers: Integers, weight: Doubles) -> tuple[Integers, Doubles]:
        assert self.factors is not None
        return (np.cumsum(self.factors > 0) - 1)[numbers].astype(np.int64), weight * self.factors[numbers]


class ClassCounts(TargetStatistics):
    """Number and weight of the rows of every label."""

    def __init__(self, class_weight: Any) -> None:
        self.class_weight = class_weight
        self.counts: dict[Any, list[float]] = {}

    def add(self, y: npt.NDArray[Any], weight: Doubles, name: str) -> Doubles:
        if y.ndim != 1:
            raise ValueError(f"{name} must have one class for every row, (n,); got shape {y.shape}.")
        try:
            check_present(y, "y", "a label")
            check_classes(y)
        except ValueError as error:
            raise ValueError(f"{name} must have a class for every row: {error}") from error
        labels, which = np.unique(y, return_inverse=True)
        rows, totals = np.bincount(which), np.bincount(which, weights=weight)
        for label, n, w in zip(labels.tolist(), rows.tolist(), totals.tolist(), strict=True):
            entry = self.counts.setdefault(label, [0, 0.0])
            entry[0], entry[1] = entry[0] + n, entry[1] + w
        if len({isinstance(label, str) for label in self.counts}) > 1:
            raise ValueError(f"{name} must have labels of one type; some batches have text, some numbers.")
        if not isinstance(self.class_weight, dict):
            return weight
        factors = np.array([float(self.class_weight.get(label, 1.0)) for label in labels.tolist()])
        with np.errstate(over="ignore", under="ignore"):
            return weight * factors[which]

    def learn(self, name: str) -> tuple[ClassEncoding, Doubles]:
        labels = np.unique(np.array(list(self.counts)))
        label_type(labels)
        self.checksum = np.array([self.counts[label][0] for label in labels.tolist()], dtype=np.int64)
        totals = np.array([self.counts[label][1] for label in labels.tolist()], dtype=np.float64)
        self.encoding = ClassEncoding(labels, labels).weighted(totals, self.class_weight)
        assert self.encoding.factors is not None
        is_class = self.encoding.factors > 0
        self.n_rows = int(self.checksum[is_class].sum())
        return self.encoding, (totals * self.encoding.factors)[is_class]

    def rows_checksum(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        numbers = self.encoding.to_numeric(y)
        if numbers.min(initial=0) < 0:
            raise ValueError(f"the rows have changed: the first pass had no class {y[numbers < 0].tolist()[0]!r}.")
        return np.bincount(numbers, minlength=len(self.checksum))

    def describe_checksum(self, checksum: npt.NDArray[Any]) -> str:
        return f"{checksum.sum():,} rows, by class {checksum.tolist()}"


def check_classes(y: npt.NDArray[Any]) -> None:
    """Refuse floats with fractions or beyond 64 bits, and values of mixed types."""
    from sklearn.utils.multiclass import check_classification_targets

    if y.ndim == 1 and y.dtype.kind == "f" and (np.abs(y) >= MAX_FLOAT_CLASS).any():
        row = int((np.abs(y) >= MAX_FLOAT_CLASS).argmax())
        raise ValueError(
            f"y must hold classes; it holds numbers beyond the whole numbers of 64 bits, such as {y[row]!s} in row "
            f"{row}. {REMEDY}"
        )
    if y.ndim == 1 and y.dtype.kind == "S":  # scikit-learn's trees take them too, but not its check
        return
    try:
        check_classification_targets(y)
    except (ValueError, TypeError) as error:
        if y.ndim == 1 and y.dtype.kind == "f":
            row = int((y != np.rint(y)).argmax())
            raise ValueError(
                f"y must hold classes; it holds numbers with fractions, such as {y[row]!s} in row {row}. {REMEDY} "
                f"({error})"
            ) from None
        kinds = sorted({type(value).__name__ for value in y.ravel().tolist()})
        raise ValueError(
            "y must hold classes: one label in every row, of text, whole numbers, booleans or NumPy's dates; it has "
            f"the shape {y.shape} and holds {', '.join(kinds[:4])}. Make text of them first, for example with "
            f"y.astype(str), or of dates an array of the type 'datetime64[D]'. ({error})"
        ) from None


def is_probabilities(y: Any) -> bool:
    """Return True for a matrix of floats with several columns; whole numbers and booleans are no probabilities."""
    if isinstance(y, list | tuple):
        # Only rows of numbers may be made an array: other lists are labels, whatever they hold.
        if not (len(y) and isinstance(y[0], list | tuple | np.ndarray)):
            return False
        try:
            y = np.asarray(y)
        except ValueError:
            return False
    shape: Any = getattr(y, "shape", ())
    return len(shape) == 2 and bool(shape[1] > 1) and np.asarray(y).dtype.kind == "f"


def column_classes(y: Any) -> npt.NDArray[Any]:
    """Return the classes of the columns: their names in a table, 0, 1, … in a plain matrix."""
    columns = getattr(y, "columns", None)
    return np.arange(np.shape(y)[1]) if columns is None else np.asarray(columns)


def check_soft_parameters(parameters: Mapping[str, Any]) -> None:
    """Refuse parameters that need one label per row."""
    if parameters["class_weight"] is not None:
        raise ValueError(
            f"`class_weight` must be None where y are probabilities; got {parameters['class_weight']!r}. Weigh rows by "
            "sample_weight, or give one label per row, such as y.argmax(axis=1)."
        )
    if parameters["grow"] == "cart":
        raise ValueError(
            "y must be one label per row for grow='cart', which counts rows by class; got probabilities. Give "
            "y.argmax(axis=1), or take grow='greedy'."
        )


def check_probabilities(y: npt.NDArray[Any], name: str = "y") -> Doubles:
    """Check rows that are not negative and sum to 1 up to rounding, and normalise them."""
    y = np.asarray(y, dtype=np.float64)
    sums = y.sum(axis=1)
    # Comparisons with NaN are false, so the test is for valid rows, not for invalid ones.
    is_good = (y >= -PROBABILITY_TOLERANCE).all(axis=1) & (np.abs(sums - 1) <= PROBABILITY_TOLERANCE)
    if not is_good.all():
        row = int(is_good.argmin())
        shown = ", ".join(f"{value:.3g}" for value in y[row, :6]) + ", …" * (y.shape[1] > 6)
        raise ValueError(
            f"{name} as a matrix must hold probabilities of {y.shape[1]} classes, rows of numbers of at least 0 that "
            f"sum to 1; row {row} is [{shown}] with the sum {sums[row]:.4g}. Divide scores by their sum, or give one "
            "label per row."
        )
    y = np.maximum(y, 0.0)
    return y / y.sum(axis=1, keepdims=True)


def sort_probabilities(y: npt.NDArray[Any], columns: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Sort the classes of the columns and check probabilities in their order; return labels if every row is certain.

    Everything else trains on labels too, and faster.
    """
    try:
        classes, order = np.unique(columns, return_index=True)
    except TypeError as error:
        raise ValueError(
            f"the column names of y, which are its classes, must be of one type that can be sorted; got "
            f"{columns.tolist()}. Make text of them, for example with y.columns = y.columns.astype(str)."
        ) from error
    y = check_probabilities(y)[:, order]
    return classes, classes[y.argmax(axis=1)] if ((y == 0) | (y == 1)).all() else y


def one_hot(numbers: Integers, n_classes: int) -> Doubles:
    """Encode class indices as probabilities.  (n,) → (n, n_classes)"""
    return np.asarray(np.eye(n_classes)[numbers])
