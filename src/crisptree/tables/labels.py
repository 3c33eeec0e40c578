"""The column to learn, and the column of weights."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from crisptree.files import reading
from crisptree.tables.arrow_values import ArrowValues, values_of
from crisptree.tables.errors import TableError, listed
from crisptree.tables.preprocessing import MISSING
from crisptree.tables.source import Source
from crisptree.tables.values import WHOLE
from crisptree.targets.labels import class_numbers

Labels = npt.NDArray[np.object_]


def read_labels(source: Source, name: str, missing: Collection[str] = ()) -> Labels:
    """The labels of all rows as text, the same for every kind of file; none may be missing.  (n,)"""
    blocks = [np.zeros(0, dtype=object)]
    for values in _values(source, name, missing):
        absent = ~values.present
        if absent.any():
            raise TableError(
                f"{source.path}: the target {name!r} must have a value in every row; row "
                f"{source.n_read + int(absent.argmax()) + 1} has none. Remove rows without one."
            )
        found = values.array if values.kind == "text" else values.texts()
        blocks.append(found.to_numpy(zero_copy_only=False).astype(object))
    return np.concatenate(blocks)


def are_numbers(labels: Labels) -> bool:
    """Whether labels are numbers to predict rather than names of classes: with fractions, or nearly all different.

    Examples
    --------
    >>> are_numbers(np.array(["1.5", "2", "2"], dtype=object)), are_numbers(np.array(["1", "2", "2"], dtype=object))
    (True, False)
    """
    kinds = np.unique(labels.astype(str)).tolist()
    values = values_of(pa.array(kinds), "", ())
    if not kinds or values.booleans() is not None or values.numbers() is None or values.matching(r"^-?0\d").any():
        return False
    return not values.matching(WHOLE).all() or _are_many(kinds, labels)


def _are_many(kinds: Sequence[str], labels: Labels) -> bool:
    """Whether there are too many different values for classes."""
    return len(kinds) >= 20 and 2 * len(kinds) > len(labels)


def read_numbers(source: Source, name: str, missing: Collection[str] = ()) -> npt.NDArray[np.float64]:
    """A finite number for every row.  (n,)"""
    blocks: list[Any] = [np.zeros(0)]
    for values in _values(source, name, missing):
        wrong = _wrong_number(values, source.n_read + source.first_row)
        if wrong is not None:
            raise TableError(
                f"{source.path}: the target {name!r} must be a finite number in every row; {wrong}. Remove such rows, "
                "or say --task classification if they name classes."
            )
        blocks.append(values.numbers())
    return np.concatenate(blocks)


def _wrong_number(values: Any, start: int, least: float = -np.inf) -> str | None:
    """Which row of a column of numbers has none, or one that is not finite or below the least; None if all are good."""
    if not values.present.all():
        return f"row {start + int(values.present.argmin())} has none"
    found = values.numbers()
    if found is None and values.kind != "text":
        return "it holds dates"
    bad = ~values.number_mask() if found is None else ~(np.isfinite(found) & (found >= least))
    if not bad.any():
        return None
    row, value = values.first(bad, start)
    return f"row {row} has {value!r}"


def classes_of(labels: Labels, path: Any, name: str) -> npt.NDArray[Any]:
    """Training labels in the type they have in the table: whole numbers, booleans or text.  (n,)

    Examples
    --------
    >>> classes_of(np.array(["1.0", "2"], dtype=object), "rows.csv", "y")
    array([1, 2])
    """
    if not len(labels):
        raise TableError(f"{path} must have rows; it has none.")
    kinds = np.unique(labels.astype(str)).tolist()
    values = values_of(pa.array(kinds), name, ())
    boolean, whole = values.booleans() is not None, bool(values.matching(WHOLE).all())
    if not boolean and not whole and values.numbers() is not None and not values.matching(r"^-?0\d").any():
        raise TableError(
            f"{path}: the target {name!r} must name classes; it holds numbers with a fraction, such as "
            f"{listed(kinds, 3)}. Make classes of them first, for example low and high, or say --task regression."
        )
    if not boolean and _are_many(kinds, labels):
        raise TableError(
            f"{path}: the target {name!r} must name classes; {len(kinds):,} different values in {len(labels):,} rows "
            "are too many for that."
        )
    y: npt.NDArray[Any] = labels.astype(str)
    if boolean:
        y = np.char.lower(y) == "true"
    elif whole and all(-(2**63) <= _whole_number(kind) < 2**63 for kind in kinds):
        y = np.array([_whole_number(label) for label in y.tolist()], dtype=np.int64)
    if (y == y[0]).all():  # texts that differ, such as 1 and 1.0, may mean one class
        raise TableError(
            f"{path}: the target {name!r} must have at least two classes; every row has {str(labels[0])!r}."
        )
    return y


def numbers_of(labels: Labels, classes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The class number of every label, −1 for one that training did not know.  (n,)

    Examples
    --------
    >>> numbers_of(np.array(["2", "1.0", "7"], dtype=object), np.array([1, 2])).tolist()
    [1, 0, -1]
    """
    kind, known = classes.dtype.kind, [_text(label) for label in classes.tolist()]
    same = {label: _normalised(str(label), kind) for label in set(labels.tolist())}
    return class_numbers(np.array([same[label] for label in labels.tolist()], dtype=object), known)


def read_weights(source: Source, name: str, missing: Collection[str] = ()) -> npt.NDArray[np.float64]:
    """A weight of at least 0 for every row.  (n,)"""
    blocks: list[Any] = [np.zeros(0)]
    for values in _values(source, name, missing):
        wrong = _wrong_number(values, source.n_read + source.first_row, least=0.0)
        if wrong is not None:
            raise TableError(
                f"{source.path}: the weights {name!r} must be finite numbers of at least 0 in every row; {wrong}. "
                "Correct it, or remove the row."
            )
        blocks.append(values.numbers())
    return np.concatenate(blocks)


def read_texts(source: Source, name: str) -> npt.NDArray[np.object_]:
    """A column as it names rows: one text for each, empty where it is missing.  (n,)"""
    found: list[str] = []
    for values in _values(source, name, ()):
        texts = np.full(len(values.present), "", dtype=object)
        texts[values.where] = values.texts().to_pylist()
        found += texts.tolist()
    return np.array(found, dtype=object)


def _values(source: Source, name: str, missing: Collection[str]) -> Iterator[ArrowValues]:
    """A column, piece by piece."""
    with reading(source.path, TableError, source.kind):
        for batch in source.batches([name]):
            yield values_of(batch.column(0), name, {*MISSING, *missing}, source.written)


def _normalised(text: str, kind: str) -> str:
    if kind == "b":
        return text.lower()
    return str(_whole_number(text)) if kind in "iuf" and re.match(WHOLE, text) else text


def _whole_number(text: str) -> int:
    """What a text that matches ``WHOLE`` means: 1 for '+1' and for '1.00'."""
    return int(text.split(".")[0])


def _text(label: Any) -> str:
    if isinstance(label, bool):
        return str(label).lower()
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
