"""Checks and encodings that all targets share: class labels, missing values, sample weights, class weights."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.tensors import detach

Doubles = npt.NDArray[np.float64]

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
"""What class labels may be, by the name that a file gives the type; a type is never built from a file's word for it."""

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
    """True for None, NaN, NaT and pandas' NA, whose comparison with itself is no bool."""
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


def class_factors(class_weight: Any, classes: npt.NDArray[Any], totals: Doubles) -> Doubles:
    """Compute the factor of every class from the total weight of its rows.  (n_classes,)

    "balanced" counts rows by their weight, so that a repeated row equals a weight of two; a class without weight gets
    0.
    """
    if class_weight is None:
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
