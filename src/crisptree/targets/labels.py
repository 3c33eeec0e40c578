"""Values of y: types of labels, their numbers, and checks for missing values. NumPy only."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

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


def label_type(classes: npt.NDArray[Any]) -> str:
    """The name of the labels' type, one of ``LABEL_TYPES``; raises for labels that a model file could not keep.

    Examples
    --------
    >>> label_type(np.array(["no", "yes"])), label_type(np.array([0, 1]))
    ('str', 'int64')
    """
    kind = {"U": "str", "T": "str", "S": "bytes"}.get(classes.dtype.kind, str(classes.dtype.name))
    known = kind in LABEL_TYPES
    if kind == "object":
        known = all(isinstance(label, str | int | float | bool | np.bool_ | np.number) for label in classes.tolist())
    if not known:
        found = type(classes.tolist()[0]).__name__ if kind == "object" else classes.dtype
        raise ValueError(
            "the class labels in y must be numbers, booleans, strings or an array of NumPy's dates (datetime64); got "
            f"values of type {found}. Make text of them first, for example with y.astype(str)."
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
    """The place of every label among the classes, −1 for a label that is none of them.  (n,)

    Labels are compared as Python compares values, not as NumPy converts them: 1 is 1.0 and True, but not "1", and a
    large whole number is not the next one that a double can hold. NaN is no class, not even where it is one.

    Parameters
    ----------
    labels : array-like
        Labels of any type; read as one row of them, whatever their shape.
    classes : array-like
        The classes, each once, in any order.

    Examples
    --------
    >>> class_numbers([2, 7, 1], [1.0, 2.0]).tolist()
    [1, -1, 0]
    >>> class_numbers(["no", "yes", 1], ["no", "yes"]).tolist()
    [0, 1, -1]
    """
    given, known = np.asarray(labels).reshape(-1), np.asarray(classes).reshape(-1)
    if given.dtype.kind in "mM" and given.dtype.kind == known.dtype.kind:  # of any two units
        given, known = (part.astype(np.result_type(given, known)).view(np.int64) for part in (given, known))
    places = {label: number for number, label in enumerate(known.tolist())}
    if given.dtype.kind == "O":  # its values may have no order
        return np.array([places.get(label, -1) for label in given.tolist()], dtype=np.int64)
    different, which = np.unique(given, return_inverse=True)
    return np.array([places.get(label, -1) for label in different.tolist()], dtype=np.int64)[which.reshape(-1)]


def as_array(y: Any) -> npt.NDArray[Any] | None:
    """y as an array, or None where NumPy cannot hold it; what is wrong with such y is scikit-learn's to say."""
    try:
        return None if y is None or hasattr(y, "toarray") else np.asarray(y)
    except (ValueError, TypeError):
        return None


def check_present(y: Any, name: str, what: str) -> None:
    """Refuse y of which some are missing or infinite, by the row; ``what`` is what every row must have."""
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
    """Whether a value is None, NaN, NaT or pandas' NA, which is not equal to itself either but will not say so."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating | np.datetime64 | np.timedelta64) and bool(value != value)
