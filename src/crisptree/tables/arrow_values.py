"""The values of a column of Arrow's: those of files, of pyarrow and of polars."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from crisptree.tables.errors import TableError
from crisptree.tables.number_texts import PLAIN, NumberTexts
from crisptree.tables.values import BOOLEANS, NUMBER, Doubles, Integers, Mask, Values, number_text


@dataclass(frozen=True, eq=False)
class ArrowValues(Values):
    """A piece of a column; ``array`` has the values that are not missing, ``written`` says how text writes numbers."""

    array: pa.Array
    written: NumberTexts = PLAIN

    def value(self, place: int) -> Any:
        return self.array[place].as_py()

    def only(self, rows: Mask) -> ArrowValues:
        kept = rows[self.present]
        array = self.array.filter(pa.array(kept))
        present = self.present[rows]
        return ArrowValues(self.kind, present, self.where[kept], self.is_category, array, self.written)

    def numbers(self) -> Doubles | None:
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
        plain = self.written.plain(self.array)
        mask = _matching(plain, NUMBER)
        mask[mask] = np.isfinite(_numpy(plain.filter(pa.array(mask))).astype(np.float64))
        return mask

    def matching(self, pattern: str) -> Mask:
        return _matching(self.array, pattern)

    def booleans(self) -> Doubles | None:
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
            return pa.array([number_text(number) for number in self.array.to_pylist()], pa.string())
        return self.array.cast(pa.string())

    def counts(self, most: int) -> tuple[int, dict[str, int]]:
        found = self.texts().value_counts()
        return len(found), {entry["values"]: entry["counts"] for entry in found[:most].to_pylist()}

    def places(self, categories: Sequence[str]) -> tuple[Integers, dict[str, int]]:
        found = self.texts()
        places = pc.index_in(found, pa.array(categories, pa.string()))
        unknown: dict[str, int] = {}
        if places.null_count:
            others = found.filter(pc.is_null(places)).value_counts().to_pylist()
            unknown = {entry["values"]: entry["counts"] for entry in others}
        return _numpy(places.fill_null(-1)).astype(np.int64), unknown


def values_of(array: Any, name: str, missing: Collection[str], written: NumberTexts = PLAIN) -> ArrowValues:
    """The values of one column of a batch. Text is trimmed; NaN counts as missing.

    Examples
    --------
    >>> values = values_of(pa.array(["12", " 7 ", "", None, "?"]), "age", missing=("", "?"))
    >>> values.array.to_pylist(), values.present.tolist()
    (['12', '7'], [True, True, False, False, False])
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
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
    return ArrowValues(kind, present, np.flatnonzero(present), False, found, written)


def _kind(kind: pa.DataType, name: str) -> str:
    types = pa.types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or types.is_null(kind):
        return "text"
    if types.is_temporal(kind):
        return "date"
    raise TableError(
        f"column {name!r} must hold numbers, booleans or text; it holds values of type {kind}. "
        f"Leave it out with `drop={[name]}`."
    )


def _matching(texts: pa.Array, pattern: str) -> Mask:
    return _numpy(pc.match_substring_regex(texts, pattern)).astype(bool)


def _numpy(array: pa.Array) -> npt.NDArray[Any]:
    return np.asarray(array.to_numpy(zero_copy_only=False))
