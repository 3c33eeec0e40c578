"""The target, weight and row-name columns of a table in a file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.encoding.containers import ColumnValues, Mask, extract_values
from crisptree.encoding.preprocessing import MISSING
from crisptree.encoding.table_files import TableFile
from crisptree.encoding.text_formats import INTEGER
from crisptree.exceptions import TableError, format_names
from crisptree.files import reading
from crisptree.targets.base import class_numbers

Labels = npt.NDArray[np.object_]


def find_labelled_rows(source: TableFile, name: str, missing: Collection[str] = ()) -> Mask:
    """Return which rows have a value in the target column.  (n,)"""
    blocks = [np.zeros(0, dtype=bool)]
    return np.concatenate([*blocks, *(values.present for values in _read_values(source, name, missing))])


def read_labels(source: TableFile, name: str, missing: Collection[str] = (), *, rows: Mask | None = None) -> Labels:
    """Read the labels of all rows, or of those marked, as text, the same for every file format; none may be missing.

    (n,)
    """
    blocks = [np.zeros(0, dtype=object)]
    for values in _read_values(source, name, missing, rows):
        absent = ~values.present
        if absent.any():
            raise TableError(
                f"{source.path}: the target {name!r} must have a value in every row; row "
                f"{source.n_read + int(absent.argmax())} has none. Remove rows without one, or leave them out with "
                "`drop_missing_target=True`."
            )
        blocks.append(values.to_texts(normalize=values.kind != "text"))
    return np.concatenate(blocks)


def is_regression_target(labels: Labels) -> bool:
    """Return True if labels are a regression target rather than classes: with fractions, or nearly all distinct.

    Examples
    --------
    >>> is_regression_target(np.array(["1.5", "2", "2"], dtype=object))
    True
    >>> is_regression_target(np.array(["1", "2", "2"], dtype=object))
    False
    """
    kinds = np.unique(labels.astype(str)).tolist()
    values = extract_values(kinds, "", ())
    if not kinds or values.to_booleans() is not None or values.to_numbers() is None or values.match(r"^-?0\d").any():
        return False
    return not values.match(INTEGER).all() or _has_many_values(kinds, labels)


def _has_many_values(kinds: Sequence[str], labels: Labels) -> bool:
    """Return True if there are too many distinct values for classes."""
    return len(kinds) >= 20 and 2 * len(kinds) > len(labels)


def read_numbers(
    source: TableFile, name: str, missing: Collection[str] = (), *, rows: Mask | None = None
) -> npt.NDArray[np.float64]:
    """Read a finite number for every row, or for those marked.  (n,)"""
    must = f"the target {name!r} must be a finite number in every row"
    remedy = "Remove such rows, or say --task classification if they name classes."
    return _read_finite(source, name, missing, must, remedy, rows=rows)


def read_weights(
    source: TableFile, name: str, missing: Collection[str] = (), *, rows: Mask | None = None
) -> npt.NDArray[np.float64]:
    """Read a sample weight of at least 0 for every row, or for those marked.  (n,)"""
    must = f"the weights {name!r} must be finite numbers of at least 0 in every row"
    return _read_finite(source, name, missing, must, "Correct it, or remove the row.", low=0.0, rows=rows)


def _read_finite(
    source: TableFile,
    name: str,
    missing: Collection[str],
    must: str,
    remedy: str,
    low: float = -np.inf,
    rows: Mask | None = None,
) -> npt.NDArray[np.float64]:
    blocks: list[Any] = [np.zeros(0)]
    for values in _read_values(source, name, missing, rows):
        problem = _find_bad_number(values, source.n_read, low)
        if problem is not None:
            raise TableError(f"{source.path}: {must}; {problem}. {remedy}")
        blocks.append(values.to_numbers())
    return np.concatenate(blocks)


def _find_bad_number(values: ColumnValues, start: int, low: float) -> str | None:
    """Describe the first row without a finite number of at least ``low``; None if all rows have one."""
    if not values.present.all():
        return f"row {start + int(values.present.argmin())} has none"
    numbers = values.to_numbers()
    if numbers is None and values.kind != "text":
        return "it holds dates"
    bad = ~values.is_number() if numbers is None else ~(np.isfinite(numbers) & (numbers >= low))
    if not bad.any():
        return None
    row, value = values.find_first(bad, start)
    return f"row {row} has {value!r}"


def parse_class_labels(labels: Labels, path: Any, name: str) -> npt.NDArray[Any]:
    """Parse training labels to the type they have in the table: integers, booleans or text.  (n,)

    Examples
    --------
    >>> parse_class_labels(np.array(["1.0", "2"], dtype=object), "rows.csv", "y")
    array([1, 2])
    """
    if not len(labels):
        raise TableError(f"{path} must have rows; it has none.")
    kinds = np.unique(labels.astype(str)).tolist()
    values = extract_values(kinds, name, ())
    boolean, whole = values.to_booleans() is not None, bool(values.match(INTEGER).all())
    if not boolean and not whole and values.to_numbers() is not None and not values.match(r"^-?0\d").any():
        raise TableError(
            f"{path}: the target {name!r} must name classes; it holds numbers with a fraction, such as "
            f"{format_names(kinds, 3)}. Make classes of them first, for example low and high, or say --task regression."
        )
    if not boolean and _has_many_values(kinds, labels):
        raise TableError(
            f"{path}: the target {name!r} must name classes; {len(kinds):,} different values in {len(labels):,} rows "
            "are too many for that."
        )
    y: npt.NDArray[Any] = labels.astype(str)
    if boolean:
        y = np.char.lower(y) == "true"
    elif whole and all(-(2**63) <= _parse_integer(kind) < 2**63 for kind in kinds):
        y = np.array([_parse_integer(label) for label in y.tolist()], dtype=np.int64)
    if (y == y[0]).all():  # texts that differ, such as 1 and 1.0, may mean one class
        raise TableError(
            f"{path}: the target {name!r} must have at least two classes; every row has {str(labels[0])!r}."
        )
    return y


def encode_class_labels(labels: Labels, classes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the class index of every label, −1 for one that training did not know.  (n,)

    Examples
    --------
    >>> encode_class_labels(np.array(["2", "1.0", "7"], dtype=object), np.array([1, 2])).tolist()
    [1, 0, -1]
    """
    kind, known = classes.dtype.kind, [_format_label(label) for label in classes.tolist()]
    same = {label: _normalize(str(label), kind) for label in set(labels.tolist())}
    return class_numbers(np.array([same[label] for label in labels.tolist()], dtype=object), known)


def read_texts(source: TableFile, name: str) -> npt.NDArray[np.object_]:
    """Read a column as row names: one text for each, empty where it is missing.  (n,)"""
    names: list[str] = []
    for values in _read_values(source, name, ()):
        texts = np.full(len(values.present), "", dtype=object)
        texts[values.where] = values.to_texts()
        names += texts.tolist()
    return np.array(names, dtype=object)


def _read_values(
    source: TableFile, name: str, missing: Collection[str], rows: Mask | None = None
) -> Iterator[ColumnValues]:
    """Iterate over the batches of a column, or over its marked rows."""
    with reading(source.path, TableError, source.kind):
        for batch in source.batches([name]):
            values = extract_values(batch.column(0), name, {*MISSING, *missing}, source.number_format)
            part = slice(source.n_read, source.n_read + batch.num_rows)
            yield values if rows is None else values.select(rows[part])


def _normalize(text: str, kind: str) -> str:
    if kind == "b":
        return text.lower()
    return str(_parse_integer(text)) if kind in "iuf" and re.match(INTEGER, text) else text


def _parse_integer(text: str) -> int:
    """Parse a text that matches ``INTEGER``: 1 for '+1' and for '1.00'."""
    return int(text.split(".")[0])


def _format_label(label: Any) -> str:
    if isinstance(label, bool):
        return str(label).lower()
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
