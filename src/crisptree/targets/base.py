"""Interface of targets; validation of y and of sample weights; held-out rows."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from crisptree.inference.finalization import SomeTree


def detach(values: Any) -> Any:
    """Detach a tensor from its graph and move it to the CPU, where NumPy can read it; return anything else as it is.

    Examples
    --------
    >>> import numpy as np, torch
    >>> np.asarray(detach(torch.ones(2, requires_grad=True))).tolist()
    [1.0, 1.0]
    """
    values = values.detach() if getattr(values, "requires_grad", False) is True else values
    return values.cpu() if getattr(values, "is_cuda", False) is True else values


Array = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]
Values = Mapping[str, Any]

_SURROGATE = re.compile("[\ud800-\udfff]")

LABEL_TYPES: dict[str, Any] = {
    "bool": bool,
    "object": object,
    "str": str,
    **{name: np.dtype(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{name: np.dtype(name) for name in ("float16", "float32", "float64")},
    "bytes": bytes,
    **{
        f"{name}[{unit}]": np.dtype(f"{name}[{unit}]")
        for name in ("datetime64", "timedelta64")
        for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns")
    },
}
"""Types of class labels, by their names in files; a type is never built from a file's word for it."""

MIN_TOTAL_WEIGHT, MAX_TOTAL_WEIGHT = 1e-100, 1e100
"""Bounds of the sum of all weights: products of weighted sums and squares neither overflow nor underflow. A prior of
leaves, which counts rows, is at most 1e30 and makes no difference beyond either of them."""


def label_type(classes: npt.NDArray[Any]) -> str:
    """Return the name of the labels' type in ``LABEL_TYPES``; refuse labels that a model file cannot hold.

    Examples
    --------
    >>> label_type(np.array(["no", "yes"])), label_type(np.array([0, 1]))
    ('str', 'int64')
    """
    kind = {"U": "str", "T": "str", "S": "bytes"}.get(classes.dtype.kind, str(classes.dtype.name))
    is_valid = kind in LABEL_TYPES
    if kind == "object":
        is_valid = all(isinstance(label, str | int | float | bool | np.bool_ | np.number) for label in classes.tolist())
    if not is_valid:
        name = type(classes.tolist()[0]).__name__ if kind == "object" else classes.dtype
        raise ValueError(
            "the class labels in y must be numbers, booleans, strings or an array of NumPy's dates (datetime64); got "
            f"values of type {name}. Make text of them first, for example with y.astype(str)."
        )
    if kind in ("str", "object"):
        check_utf8(set(classes.tolist()), "the class labels in y")
    return kind


def check_utf8(texts: Iterable[Any], what: str) -> None:
    r"""Refuse texts with a lone surrogate, which no file and no terminal can hold.

    Examples
    --------
    >>> check_utf8(["yes", "n\ud800"], "labels")
    Traceback (most recent call last):
      ...
    ValueError: labels must be text that UTF-8 can encode; 'n\ud800' has a lone surrogate, half a character. Replace it.
    """
    for text in texts:
        if isinstance(text, str) and _SURROGATE.search(text):
            raise ValueError(
                f"{what} must be text that UTF-8 can encode; {text!r} has a lone surrogate, half a character. "
                "Replace it."
            )


def class_numbers(labels: npt.ArrayLike, classes: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the index of every label, of any type and shape, among the classes; −1 if it is none of them.  (n,)

    Labels are compared as Python compares values, not as NumPy converts them: 1 is 1.0 and True, but not "1", and a
    large whole number is not the next one that a double can hold. NaN is never a class.

    Examples
    --------
    >>> class_numbers([2, 7, 1], [1.0, 2.0]).tolist()
    [1, -1, 0]
    >>> class_numbers(["no", "yes", 1], ["no", "yes"]).tolist()
    [0, 1, -1]
    """
    values, classes = np.asarray(labels).reshape(-1), np.asarray(classes).reshape(-1)
    if values.dtype.kind in "mM" and values.dtype.kind == classes.dtype.kind:  # of any two units
        dtype = np.result_type(values, classes)
        values, classes = (part.astype(dtype).view(np.int64) for part in (values, classes))
    index_of = {label: number for number, label in enumerate(classes.tolist())}
    if values.dtype.kind == "O":  # its values may have no order
        return np.array([index_of.get(label, -1) for label in values.tolist()], dtype=np.int64)
    distinct, which = np.unique(values, return_inverse=True)
    return np.array([index_of.get(label, -1) for label in distinct.tolist()], dtype=np.int64)[which.reshape(-1)]


def as_array(y: Any) -> npt.NDArray[Any] | None:
    """Convert y to an array; None if NumPy cannot, so that scikit-learn raises the error."""
    try:
        return None if y is None or hasattr(y, "toarray") else np.asarray(y)
    except (ValueError, TypeError):
        return None


def check_present(y: Any, name: str, what: str) -> None:
    """Refuse missing and infinite values, naming the first row; ``what`` is what every row must have."""
    array = as_array(y)
    if array is None or array.ndim not in (1, 2):
        return
    rows = array.reshape(len(array), -1) if len(array) else array.reshape(0, 1)
    if array.dtype.kind == "O":
        absent = np.array([any(map(is_missing, row)) for row in rows.tolist()], dtype=bool)
    elif array.dtype.kind == "f":
        absent = np.isnan(rows).any(axis=1)
    elif array.dtype.kind in "mM":
        absent = np.isnat(rows).any(axis=1)
    else:
        return
    if absent.any():
        raise ValueError(
            f"{name} must have {what} in every row; row {int(absent.argmax())} has none (Input y contains NaN). Leave "
            "such rows out of X and y."
        )
    endless = np.isinf(rows).any(axis=1) if array.dtype.kind == "f" else np.zeros(len(rows), dtype=bool)
    if endless.any():
        raise ValueError(
            f"{name} must be finite; row {int(endless.argmax())} is not (Input y contains infinity or a value too "
            f"large for {array.dtype!r}). Correct it, or leave the row out of X and y."
        )


def is_missing(value: Any) -> bool:
    """Return True for None, NaN, NaT and pandas' NA, whose comparison with itself is no bool."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating | np.datetime64 | np.timedelta64) and bool(value != value)


def check_sample_weight(sample_weight: Any, X: Any) -> Doubles:
    """Check finite weights of at least 0, one per row, and rescale them into bounds; ones for None.  (n,)"""
    from sklearn.utils.validation import _check_sample_weight

    return rescale_weights(_check_sample_weight(detach(sample_weight), X, dtype=np.float64, ensure_non_negative=True))


def weigh_classes(class_weight: Any, y: npt.NDArray[Any], weight: Doubles) -> Doubles:
    """Multiply weights by those of the classes, rescaled into bounds.  (n,)"""
    if class_weight is None:
        return rescale_weights(weight)
    classes, numbers = np.unique(y, return_inverse=True)
    with np.errstate(over="ignore", under="ignore"):
        factors = class_factors(class_weight, classes, np.bincount(numbers, weights=weight).astype(np.float64))
        weighed = np.asarray(weight * factors[numbers])
    if not np.isfinite(weighed).all():
        check_total_weight(np.inf)
    return rescale_weights(weighed)


def rescale_weights(weight: Doubles) -> Doubles:
    """Multiply weights by the power of two that brings their sum into bounds, if it is outside.

    Examples
    --------
    >>> heavy = rescale_weights(np.array([1.5e308, 0.5e308]))
    >>> float(heavy[0] / heavy[1]), bool(heavy.sum() <= 1e100)
    (3.0, True)
    """
    total = sum_weights(weight)
    if total == 0 or MIN_TOTAL_WEIGHT <= total <= MAX_TOTAL_WEIGHT:
        return weight
    small = np.ldexp(weight, -int(np.frexp(weight.max())[1]))  # at most 1, exactly in the same ratios
    if total > MAX_TOTAL_WEIGHT:
        return np.ldexp(small, int(np.floor(np.log2(MAX_TOTAL_WEIGHT / small.sum()))))
    return np.ldexp(small, int(np.ceil(np.log2(MIN_TOTAL_WEIGHT / small.sum()))))


def check_total_weight(total: float) -> None:
    """Refuse weights whose sum is out of bounds and that cannot be rescaled; a sum of 0 is accepted."""
    if total != 0 and not MIN_TOTAL_WEIGHT <= total <= MAX_TOTAL_WEIGHT:
        raise ValueError(
            f"the weights of all rows, sample_weight times class_weight, must add up to {MIN_TOTAL_WEIGHT:g} to "
            f"{MAX_TOTAL_WEIGHT:g}, so that weighted sums neither overflow nor underflow; got {total:g}. Divide "
            "the weights by the largest."
        )


def sum_weights(weight: Doubles) -> float:
    """Sum weights; infinite on overflow."""
    with np.errstate(over="ignore", under="ignore"):
        return float(weight.sum())


BALANCED_SUBSAMPLE = "balanced_subsample"
"""Class weight by which a forest weighs the rows of each tree, and no row of the fit."""


def class_factors(class_weight: Any, classes: npt.NDArray[Any], totals: Doubles) -> Doubles:
    """Compute the factor of every class from the total weight of its rows.  (n_classes,)

    "balanced" counts rows by their weight, so that a repeated row equals a weight of two; a class without weight gets
    0.
    """
    if class_weight is None or (isinstance(class_weight, str) and class_weight == BALANCED_SUBSAMPLE):
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        mean = totals.sum() / (totals > 0).sum()
        return np.divide(mean, totals, out=np.zeros_like(totals), where=totals > 0)
    if not isinstance(class_weight, dict):
        raise ValueError(f"`class_weight` must be None, 'balanced' or a dict by class; got {class_weight!r}.")
    factors = np.array([float(class_weight.get(label, 1.0)) for label in classes])
    names, is_named = set(classes.tolist()) | set(classes), [label in class_weight for label in classes]
    unknown = [label for label in class_weight if label not in names]
    if unknown and not all(is_named):  # of rows that come in parts, one may lack a class
        raise ValueError(f"`class_weight` must name classes of y, {classes.tolist()}; got {unknown[0]!r}.")
    if not (np.isfinite(factors).all() and (factors >= 0).all()):
        raise ValueError(f"`class_weight` must hold finite numbers of at least 0; got {class_weight!r}.")
    return factors


def check_some_weight(weight: Doubles) -> npt.NDArray[np.bool_]:
    """Return the mask of rows with a positive weight; refuse an empty one."""
    kept = weight > 0
    if not kept.any():
        raise ValueError(
            "the weights must leave at least one row with a positive weight; got only zeros. "
            "Leave sample_weight and class_weight None to weigh all rows alike."
        )
    return kept


RowNumbers = npt.NDArray[np.intp]

N_STRATA = 10
"""Quantile bins of a regression target; every bin gives its share of the held-out rows."""


def hold_out(
    y: npt.NDArray[Any], share: float, seed: int, *, keep_classes: bool = False, source: RowNumbers | None = None
) -> tuple[RowNumbers, RowNumbers]:
    """Split rows into those that stay and those that are held out, stratified by class where possible.

    It is possible if every class has two rows and both parts have room for all classes. ``share`` is a share of the
    rows, rounded to at least one and not all of them, or their number. With ``keep_classes``, held-out rows of classes
    that would have no other row stay. ``source`` is the row that each row is a copy of: copies stay or leave with it,
    and are never held out themselves. Returns row indices in the order in which they were drawn.

    Examples
    --------
    >>> y = np.array(["no", "no", "no", "no", "yes", "yes"])
    >>> kept, held_out = hold_out(y, 0.5, seed=0)
    >>> sorted(y[held_out].tolist())
    ['no', 'no', 'yes']
    """
    if source is not None:
        originals = find_originals(len(y), source)
        kept, held_out = hold_out(y[originals], share, seed, keep_classes=keep_classes)
        return add_copies(originals[kept], source), originals[held_out]
    n_rows = len(y)
    if n_rows < 2:
        raise ValueError(f"there must be at least 2 rows to hold one of them out; got {n_rows}. Give more rows.")
    _, counts = np.unique(y, return_counts=True)
    n_held_out = share if isinstance(share, int | np.integer) else min(max(1, round(share * n_rows)), n_rows - 1)
    is_stratified = counts.min() >= 2 and len(counts) <= min(n_held_out, n_rows - n_held_out)
    kept, held_out = _draw_split(y if is_stratified else np.zeros(n_rows), int(n_held_out), seed, is_stratified)
    if keep_classes:
        stays = ~np.isin(y[held_out], y[kept])
        kept, held_out = np.concatenate([kept, held_out[stays]]), held_out[~stays]
    return kept, held_out


def _draw_split(y: npt.NDArray[Any], n_held_out: int, seed: int, is_stratified: bool) -> tuple[RowNumbers, RowNumbers]:
    """Draw the rows that ``train_test_split`` of scikit-learn draws, which takes a second to import."""
    rng, n_kept = np.random.RandomState(seed), len(y) - n_held_out
    if not is_stratified:
        drawn = rng.permutation(len(y))
        return drawn[n_held_out:], drawn[:n_held_out]
    _, strata, counts = np.unique(y, return_inverse=True, return_counts=True)
    rows = np.split(np.argsort(strata, kind="stable"), np.cumsum(counts)[:-1])
    kept_counts = _allocate(counts, n_kept, rng)
    held_out_counts = _allocate(counts - kept_counts, n_held_out, rng)
    parts: tuple[list[RowNumbers], list[RowNumbers]] = ([], [])
    for own, n_first, n_second in zip(rows, kept_counts, held_out_counts, strict=True):
        own = own[rng.permutation(len(own))]
        parts[0].append(own[:n_first])
        parts[1].append(own[n_first : n_first + n_second])
    return rng.permutation(np.concatenate(parts[0])), rng.permutation(np.concatenate(parts[1]))


def _allocate(counts: npt.NDArray[np.int64], n_draws: int, rng: np.random.RandomState) -> npt.NDArray[np.int64]:
    """Divide draws in proportion to counts; the largest remainders are rounded up, equal ones in random order."""
    shares = counts / counts.sum() * n_draws
    whole = np.floor(shares)
    remainder, missing = shares - whole, int(n_draws - whole.sum())
    for value in np.unique(remainder)[::-1]:
        if missing <= 0:
            break
        equal = np.flatnonzero(remainder == value)
        whole[rng.choice(equal, size=min(len(equal), missing), replace=False)] += 1
        missing -= len(equal)
    return whole.astype(np.int64)


def find_originals(n_rows: int, source: RowNumbers | None) -> RowNumbers:
    """Return the rows that are no copies: the first of each source."""
    return np.arange(n_rows) if source is None else np.sort(np.unique(source, return_index=True)[1])


def add_copies(rows: RowNumbers, source: RowNumbers | None) -> RowNumbers:
    """Return the rows and all copies of them.

    Examples
    --------
    >>> add_copies(np.array([1]), source=np.array([0, 1, 0, 1])).tolist()
    [1, 3]
    """
    return rows if source is None else np.flatnonzero(np.isin(source, source[rows]))


def quantile_strata(y: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Assign values to quantile bins of about as many rows each.  (n,)"""
    edges = np.unique(np.quantile(y, np.arange(1, N_STRATA) / N_STRATA))
    return np.unique(np.searchsorted(edges, y, side="left"), return_inverse=True)[1].astype(np.int64)


class EStep(NamedTuple):
    """Result of an E-step: responsibilities (n, n_leaves), weighted statistics of all rows (n_leaves, n_nodes ·
    n_statistics), and log-likelihoods log p(y_n∣x_n) (n,).
    """

    responsibilities: Tensor
    statistics: Tensor
    log_likelihoods: Tensor


@dataclass(frozen=True)
class Target(ABC):
    """The distribution of y in a leaf: a table of ``n_values`` parameters.

    Rows reach a leaf with *evidence* log p(y ∣ leaf), and leave *statistics* behind: ``n_statistics`` numbers that add
    up over rows, from which the next table follows. Where many stumps train at once, ``node`` is the stump of every
    row, and tables and statistics of all stumps stand side by side: (n_leaves, n_nodes · n_values).
    """

    name: ClassVar[str]
    is_regression: ClassVar[bool] = False
    starts_at_node: ClassVar[bool] = False
    """Whether the first tables of a stump depend on the rows that it is to part; see ``stump_tables``."""

    has_axis_splits: ClassVar[bool] = True
    """True if thresholds on single features can be found for the target."""

    n_values: int

    @property
    def hard(self) -> Target:
        """The target of hard labels, for model selection and deterministic trees."""
        return self

    def conform(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Convert the y of validation rows to the form that this target trains on."""
        return y

    @property
    def n_statistics(self) -> int:
        """Length of a leaf's sufficient statistics."""
        return self.n_values

    @property
    def n_classes(self) -> int | None:
        """Number of classes; None unless a table has one entry for each."""
        return None

    @property
    def min_leaves(self) -> int:
        """The fewest leaves with which a tree can predict every class."""
        return self.n_values

    @abstractmethod
    def evidence(self, tables: Tensor, y: Tensor, node: Tensor | None = None) -> Tensor:
        """log p(y_n ∣ leaf).  (n_leaves, n_nodes · n_values), (n,), (n,) → (n, n_leaves)"""

    @abstractmethod
    def statistics(self, responsibilities: Tensor, y: Tensor, node: Tensor | None = None, n_nodes: int = 1) -> Tensor:
        """Σ_n h_{n,ℓ} s(y_n), node by node.  (n, n_leaves) → (n_leaves, n_nodes · n_statistics)"""

    def e_step(
        self,
        log_paths: Tensor,
        tables: Tensor,
        y: Tensor,
        weight: Tensor,
        node: Tensor | None = None,
        n_nodes: int = 1,
    ) -> EStep:
        """Compute responsibilities, statistics and log-likelihoods of weighted rows from log μ  (n, n_leaves)."""
        from crisptree.equations.em import responsibilities
        from crisptree.equations.routing import log_likelihoods

        evidence = self.evidence(tables, y, node)
        h = responsibilities(log_paths, evidence)
        statistics = self.statistics(h * weight[:, None], y, node, n_nodes)
        return EStep(h, statistics, log_likelihoods(log_paths, evidence))

    @abstractmethod
    def update(self, statistics: Tensor, previous: Tensor, prior: float) -> Tensor:
        """Compute the M-step of leaves: maximum-likelihood tables; an empty leaf keeps its own.  (m, n_statistics)"""

    def pool_variances(self, tables: Tensor, statistics: Tensor) -> Tensor:
        """Pool the variances of the leaves of one node where that helps training.

        (n_leaves, n_nodes, n_values), (n_leaves, n_nodes, n_statistics) → the first
        """
        return tables

    @abstractmethod
    def random_tables(self, n: int, generator: Generator) -> Tensor:
        """Draw initial tables.  (n, n_values)"""

    def stump_tables(self, tables: Tensor, statistics: Tensor) -> Tensor:
        """Centre the random tables of the two leaves of m stumps on the rows of each.

        (2, m, n_values), (m, n_statistics) → (2, m, n_values)
        """
        return tables

    @abstractmethod
    def tally(self, y: Any, weight: Any, node: Any, n_nodes: int) -> Any:
        """Sum Σ w_n s(y_n) over the rows at every node, in the type of the weights: arrays or tensors.

        (b,), (b,), (b,) → (n_nodes, n_statistics); with weights (b, c) → (n_nodes, c, n_statistics)
        """

    def score(self, tables: Any, leaf: Any, y: Any) -> Any:
        """Score the prediction of every row's leaf; higher is better.  (n_leaves, n_values) → (n,)"""
        return self.score_predictions(self.predict(tables)[leaf], y)

    @abstractmethod
    def score_predictions(self, predicted: Any, y: Any) -> Any:
        """Score every row's prediction, arrays or tensors; higher is better.  (n,)"""

    @abstractmethod
    def loss(self, tables: Doubles, statistics: Doubles) -> float:
        """Sum the loss of leaf tables on validation rows, from the statistics of those that reach every leaf."""

    def strata(self, y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Strata for hold-out and cross-validation.  (n,)"""
        return y

    @abstractmethod
    def weight(self, statistics: Doubles) -> Doubles:
        """Total weight of the rows behind the statistics.  (…, n_statistics) → (…)"""

    @abstractmethod
    def impurity(self, statistics: Doubles) -> Doubles:
        """Compute the minimum of −Σ_n log p(y_n) of one leaf for the rows behind the statistics.  (…)"""

    @abstractmethod
    def mean_impurity(self, statistics: Doubles, unit: Doubles | None) -> Doubles:
        """Compute scikit-learn's impurity of nodes, with y in multiples of ``unit``.  (m, n_statistics) → (m,)"""

    @abstractmethod
    def is_mixed(self, statistics: Doubles) -> npt.NDArray[np.bool_]:
        """Return True where the rows behind the statistics differ in y, so that a split could separate them.  (…)"""

    @abstractmethod
    def tables(self, statistics: Doubles, prior: float = 0.0) -> Doubles:
        """Compute leaf tables of the deterministic tree.  (m, n_statistics) → (m, n_values)"""

    @abstractmethod
    def predict(self, tables: Any) -> Any:
        """Predict from tables, arrays or tensors: class indices, or means.  (m, n_values) → (m,) or (m, n_outputs)"""

    def restore_units(self, tables: Doubles, center: Doubles, unit: Doubles) -> Doubles:
        """Convert tables of a scaled y to its units.  (m, n_values)"""
        return tables

    def independent_outputs(self, tables: Doubles) -> Doubles:
        """Return the outputs that do not follow from each other, features of a later stage.  (m, n_values) → (m, k)"""
        return tables

    def ordered_values(self, tables: Doubles) -> Doubles:
        """Return what monotonic constraints order, of two classes or of one output.  (n, n_values) → (n,)"""
        raise NotImplementedError(f"leaf tables of {self.name!r} have no order for monotonic constraints.")

    def with_ordered_values(self, tables: Doubles, values: Doubles) -> Doubles:
        """Return the tables with other ``ordered_values``.  (n, n_values), (n,) → (n, n_values)"""
        raise NotImplementedError(f"leaf tables of {self.name!r} have no order for monotonic constraints.")

    @abstractmethod
    def check(self, tables: Doubles) -> str | None:
        """Say what is wrong with the tables of a file ("not probabilities"), or return None."""


def gain(target: Target, left: Doubles, right: Doubles) -> Doubles:
    """(I_parent − I_left − I_right) / N, never below zero, with I = N · H: the information gain of a split.  (…)"""
    both = left + right
    decrease = target.impurity(both) - (target.impurity(left) + target.impurity(right))
    return np.maximum(decrease / np.maximum(target.weight(both), np.finfo(float).tiny), 0.0)


class TargetInput(NamedTuple):
    """y as passed by the user.

    ``classes`` are those of the columns where y are probabilities; ``source`` is the row that each row is a copy of.
    """

    y: Any
    is_multi_output: bool = False
    classes: npt.NDArray[Any] | None = None
    source: npt.NDArray[np.intp] | None = None


class EncodedTarget(NamedTuple):
    """Encoded y and weights of the training rows, the mask that selects these rows, and the encoding."""

    encoding: TargetEncoding
    y: npt.NDArray[Any]
    weight: Doubles
    kept: npt.NDArray[np.bool_]


class Reduction(Protocol):
    """Sums and maxima over the shards of all processes."""

    def total(self, parts: Sequence[Any], shape: tuple[int, ...] = ()) -> Doubles: ...

    def maximum(self, values: Doubles) -> Doubles: ...


class Rows(Protocol):
    """Rows with y and weights."""

    @property
    def y(self) -> npt.NDArray[Any]: ...

    @property
    def weight(self) -> Doubles: ...


class TargetStatistics(ABC):
    """Statistics of y that are updated batch by batch, in the first of several passes over the same rows."""

    n_rows: int
    """Training rows, known after all batches have been added."""

    checksum: npt.NDArray[Any]
    """``rows_checksum`` of all rows of the first pass, known once all batches have been added."""

    @abstractmethod
    def add(self, y: npt.NDArray[Any], weight: Doubles, name: str) -> Doubles:
        """Add a batch, which errors call ``name``; return its weights as far as they are known."""

    @abstractmethod
    def learn(self, name: str) -> tuple[TargetEncoding, Doubles]:
        """Learn the encoding, and the target's statistics of all rows."""

    @abstractmethod
    def rows_checksum(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Compute an order-independent checksum by which later passes are compared with the first."""

    @abstractmethod
    def describe_checksum(self, checksum: npt.NDArray[Any]) -> str:
        """Describe a checksum in an error message."""


class TargetEncoding(ABC):
    """Encoding of y for training, learned from an array, from batches or by a process group."""

    classes: npt.NDArray[Any] | None = None

    @property
    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator that describe y."""

    @abstractmethod
    def target_of(self, y: npt.NDArray[Any]) -> Target:
        """Return the target of encoded y."""

    @classmethod
    @abstractmethod
    def of_fitted(cls, attributes: Mapping[str, Any], tree: Any) -> Self:
        """Restore the encoding of a fitted estimator from its attributes and one of its trees."""

    @classmethod
    @abstractmethod
    def read(cls, y: Any) -> TargetInput:
        """Check y as a user passes it, before it is made an array beside X."""

    @classmethod
    @abstractmethod
    def check(cls, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Check an array of y that is encoded later."""

    @classmethod
    @abstractmethod
    def learn(
        cls, source: TargetInput, y: Array, weight: Doubles, parameters: Values, previous: Self | None
    ) -> EncodedTarget:
        """Encode the y of a fit. Rows of weight zero are left out before anything is learned.

        ``previous`` is the encoding of a fitted tree that is to be trained further.
        """

    @abstractmethod
    def encode_validation(self, y: Any, name: str | None = None, *, may_be_soft: bool = False) -> npt.NDArray[Any]:
        """Encode the y of validation rows, which errors call ``name``."""

    @classmethod
    @abstractmethod
    def statistics(cls, parameters: Mapping[str, Any]) -> TargetStatistics:
        """Begin to learn from batches."""

    @classmethod
    @abstractmethod
    def summarize(cls, y: npt.NDArray[Any]) -> Any:
        """Summarize the y of one process for ``merge``."""

    @classmethod
    @abstractmethod
    def merge(cls, summaries: Sequence[Any]) -> Self:
        """Merge the summaries of all processes into an encoding that knows neither weights nor scale yet."""

    @abstractmethod
    def to_numeric(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Convert y to numbers that can be sent to another process, for ``encode``."""

    @abstractmethod
    def reduce(self, parts: Sequence[Rows], reduction: Reduction, parameters: Mapping[str, Any]) -> Self:
        """Learn weights or scale from the rows of all processes; ``parts`` are the shards of this one, as numbers."""

    @abstractmethod
    def make_empty(self) -> npt.NDArray[Any]:
        """Return the encoded y of no rows."""

    @abstractmethod
    def encode(self, numbers: npt.NDArray[Any], weight: Doubles) -> tuple[npt.NDArray[Any], Doubles]:
        """Encode ``to_numeric`` of rows that the encoding was learned from; rows that do not train get weight 0."""

    def scale_predictions(self, predictions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Convert predictions in units of y to those of encoded y."""
        return predictions

    def restore_units(self, tree: SomeTree) -> SomeTree:
        """Return the tree that predicts in the units of y."""
        return tree
