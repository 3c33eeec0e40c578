"""The values of a column as they come from a file: numbers, booleans or text, with a mask of what is missing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from crisptree.remedies import Remedy
from crisptree.tables.errors import TableError

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
WHOLE = r"^[+-]?(0|[1-9]\d*)(\.0*)?$"
COMMAS = r"^[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+$|^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$"
"""Numbers as people write them, 1.234,5 and 1,234.5, but not tables."""

DATE = r"^\d{4}-\d{1,2}-\d{1,2}([T ].*)?$|^\d{1,2}[./]\d{1,2}[./]\d{2,4}$"
BOOLEANS = ("false", "true")

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Values:
    """A piece of a column.

    Parameters
    ----------
    kind : {"number", "boolean", "text", "date"}
        What the file holds.
    array : pyarrow array
        The values that are not missing.
    present : ndarray of bool
        Which rows have one.
    where : ndarray of int
        The places of those rows in the batch.
    """

    kind: str
    array: pa.Array
    present: Mask
    where: npt.NDArray[np.intp]

    def only(self, rows: Mask) -> Values:
        """Some of the rows; the others count neither as present nor as missing."""
        kept = rows[self.present]
        return Values(self.kind, self.array.filter(pa.array(kept)), self.present[rows], self.where[kept])


def values_of(array: pa.Array, name: str, missing: Collection[str]) -> Values:
    """The values of one column of a batch. Text is trimmed; NaN counts as missing.

    Examples
    --------
    >>> values = values_of(pa.array(["12", " 7 ", "", None, "?"]), "age", missing=("", "?"))
    >>> values.array.to_pylist(), values.present.tolist()
    (['12', '7'], [True, True, False, False, False])
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = _kind(array.type, name)
    if kind == "text":
        array = pc.utf8_trim_whitespace(array.cast(pa.string()))
        absent = pc.or_(pc.is_null(array), pc.fill_null(pc.is_in(array, pa.array(list(missing), pa.string())), True))
    elif kind == "number":
        if not pa.types.is_integer(array.type):  # whole numbers keep all their digits, for they may be labels
            array = array.cast(pa.float64())
        absent = pc.is_null(array, nan_is_null=True)
    else:
        absent = pc.is_null(array)
    present = ~np.asarray(absent.to_numpy(zero_copy_only=False), dtype=bool)
    where = np.flatnonzero(present)
    return Values(kind, array if len(where) == len(array) else array.filter(pa.array(present)), present, where)


def _kind(kind: pa.DataType, name: str) -> str:
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or types.is_null(kind):
        return "text"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    drop = Remedy("drop", [name])
    raise TableError(
        f"column {name!r} must hold numbers, booleans or text; it holds values of type {kind}. "
        f"Leave it out with {drop}.",
        drop,
    )


def numbers(values: Values) -> npt.NDArray[np.float64] | None:
    """The present values as numbers, or None where one of them is none; text such as 'inf' is no number."""
    if values.kind in ("number", "boolean"):
        return np.asarray(values.array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    if values.kind == "date":
        return None
    try:
        result = np.asarray(values.array.cast(pa.float64()).to_numpy(zero_copy_only=False))
    except pa.ArrowInvalid:
        return None
    # Arrow takes "inf" and "nan" for numbers; here they are text, so that whether a value is a number does not depend
    # on what stands beside it.
    return result if np.isfinite(result).all() else None


def number_mask(values: Values) -> Mask:
    """Which of the present texts are numbers, and not too large for one."""
    mask = matching(values, NUMBER)
    mask[mask] = np.isfinite(values.array.filter(pa.array(mask)).to_numpy(zero_copy_only=False).astype(np.float64))
    return mask


def matching(values: Values, pattern: str) -> Mask:
    """Which of the present texts match."""
    return np.asarray(pc.match_substring_regex(values.array, pattern).to_numpy(zero_copy_only=False), dtype=bool)


def matches(values: Values, pattern: str) -> bool:
    """Whether all present texts match."""
    return bool(matching(values, pattern).all())


def booleans(values: Values) -> npt.NDArray[np.float64] | None:
    """The present values as 0 and 1, or None where one of them is not true or false."""
    if values.kind != "text":
        return numbers(values) if values.kind == "boolean" else None
    place = pc.index_in(pc.utf8_lower(values.array), pa.array(BOOLEANS))
    return None if place.null_count else np.asarray(place.to_numpy(zero_copy_only=False), dtype=np.float64)


def texts(values: Values) -> pa.Array:
    """The present values as text that is the same whatever kind of file they come from: 1.0 is '1', True is 'true'.

    Examples
    --------
    >>> texts(values_of(pa.array([1.0, 2.5, None]), "x", ())).to_pylist()
    ['1', '2.5']
    >>> texts(values_of(pa.array(["1.0", "1.50", "a"]), "x", ())).to_pylist()
    ['1', '1.50', 'a']
    """
    if values.kind == "text":
        return pc.replace_substring_regex(values.array, r"^(-?\d+)\.0+$", r"\1")
    if pa.types.is_floating(values.array.type):
        whole = values.array.to_numpy(zero_copy_only=False)
        return pa.array([_number_text(number) for number in whole.tolist()], pa.string())
    return values.array.cast(pa.string())


def _number_text(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 2**63 else repr(number)


def first_row(mask: npt.NDArray[Any], values: Values, start: int) -> int:
    """The row in the file, counted from 1, of the first present value that a mask marks."""
    return start + int(values.where[int(np.argmax(mask))]) + 1
