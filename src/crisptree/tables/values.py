"""The values of a column as they come from a file: numbers, booleans or text, with a mask of what is missing."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from crisptree.tables.errors import TableError
from crisptree.tables.number_texts import PLAIN, NumberTexts

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
WHOLE = r"^[+-]?(0|[1-9]\d*)(\.0*)?$"
DATE = r"^\d{4}-\d{1,2}-\d{1,2}([T ].*)?$|^\d{1,2}[./]\d{1,2}[./]\d{2,4}$"
BOOLEANS = ("false", "true")

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Values:
    """A piece of a column.

    Its ``kind`` is "number", "boolean", "text" or "date"; ``array`` has the values that are not missing, ``present``
    marks the rows that have one, and ``where`` has the places of those rows in the batch; ``written`` says how numbers
    are written in text.
    """

    kind: str
    array: pa.Array
    present: Mask
    where: npt.NDArray[np.intp]
    written: NumberTexts = PLAIN

    def only(self, rows: Mask) -> Values:
        """Some of the rows; the others count neither as present nor as missing."""
        kept = rows[self.present]
        array = self.array.filter(pa.array(kept))
        return Values(self.kind, array, self.present[rows], self.where[kept], self.written)

    def numbers(self) -> npt.NDArray[np.float64] | None:
        """The present values as numbers, or None where one of them is none; text such as 'inf' is no number."""
        if self.kind == "date":
            return None
        array = self.written.plain(self.array) if self.kind == "text" else self.array
        try:
            result = _numpy(array.cast(pa.float64(), safe=self.kind == "text"))
        except pa.ArrowInvalid:
            return None
        # Arrow takes "inf" and "nan" for numbers; here they are text, so that whether a value is a number does not
        # depend on what stands beside it.
        return result if self.kind != "text" or np.isfinite(result).all() else None

    def number_mask(self) -> Mask:
        """Which of the present texts are numbers, and not too large for one."""
        plain = self.written.plain(self.array)
        mask = _matching(plain, NUMBER)
        mask[mask] = np.isfinite(_numpy(plain.filter(pa.array(mask))).astype(np.float64))
        return mask

    def matching(self, pattern: str) -> Mask:
        """Which of the present texts match."""
        return _matching(self.array, pattern)

    def booleans(self) -> npt.NDArray[np.float64] | None:
        """The present values as 0 and 1, or None where one of them is not true or false."""
        if self.kind != "text":
            return self.numbers() if self.kind == "boolean" else None
        place = pc.index_in(pc.utf8_lower(self.array), pa.array(BOOLEANS))
        return None if place.null_count else _numpy(place).astype(np.float64)

    def texts(self) -> pa.Array:
        """The present values as text that is the same whatever kind of file they come from: 1.0 is '1', True is 'true'.

        Examples
        --------
        >>> values_of(pa.array([1.0, 2.5, None]), "x", ()).texts().to_pylist()
        ['1', '2.5']
        >>> values_of(pa.array(["1.0", "1.50", "a"]), "x", ()).texts().to_pylist()
        ['1', '1.50', 'a']
        """
        if self.kind == "text":
            return pc.replace_substring_regex(self.array, r"^(-?\d+)\.0+$", r"\1")
        if pa.types.is_floating(self.array.type):
            return pa.array([_number_text(number) for number in self.array.to_pylist()], pa.string())
        return self.array.cast(pa.string())

    def first(self, mask: Mask, start: int) -> tuple[int, Any]:
        """The row in the file, counted from 1, of the first present value that a mask marks, and that value."""
        place = int(np.argmax(mask))
        return start + int(self.where[place]) + 1, self.array[place].as_py()


def values_of(array: pa.Array, name: str, missing: Collection[str], written: NumberTexts = PLAIN) -> Values:
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
        absent = pc.is_in(array, pa.array([*missing, None], pa.string()))
    else:
        if kind == "number" and not pa.types.is_integer(
            array.type
        ):  # whole numbers keep all digits: they may be labels
            array = array.cast(pa.float64())
        absent = pc.is_null(array, nan_is_null=True)
    present = ~_numpy(absent).astype(bool)
    found = array if present.all() else array.filter(pa.array(present))
    return Values(kind, found, present, np.flatnonzero(present), written)


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
    raise TableError(
        f"column {name!r} must hold numbers, booleans or text; it holds values of type {kind}. "
        f"Leave it out with `drop={[name]}`."
    )


def _matching(texts: pa.Array, pattern: str) -> Mask:
    return _numpy(pc.match_substring_regex(texts, pattern)).astype(bool)


def _numpy(array: pa.Array) -> npt.NDArray[Any]:
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _number_text(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 2**63 else repr(number)
