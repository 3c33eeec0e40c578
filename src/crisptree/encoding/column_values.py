"""Values of table columns: conversion, comparison and errors that name column and row."""

from __future__ import annotations

import datetime
import difflib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.targets.base import is_missing

MAX_COLUMNS_SHOWN = 20


class TableError(ValueError):
    """A table, or a value in it, that cannot be used; the message has the remedy."""


class RefusedColumns(TableError):
    """Columns that cannot be used as they are: ``reasons`` has a sentence for each, which names a remedy."""

    def __init__(self, table: object, reasons: dict[str, str], *, can_be_dropped: bool = False) -> None:
        self.reasons, shown = reasons, [reason.removeprefix(f"{table}: ") for reason in reasons.values()]
        lines = [f"{table} has {len(shown)} columns that cannot be used as they are:"]
        lines += [f"  {reason}" for reason in shown[:MAX_COLUMNS_SHOWN]]
        if len(shown) > MAX_COLUMNS_SHOWN:
            lines.append(f"  and {len(shown) - MAX_COLUMNS_SHOWN} more.")
        if can_be_dropped:
            lines.append(f"All of them are left out with `drop={list(reasons)}`.")
        super().__init__("\n".join(lines) if len(shown) > 1 else next(iter(reasons.values())))


def check_unique_names(names: Sequence[object], table: object) -> None:
    """Raise if two columns have the same name."""
    duplicates = [name for name, count in Counter(names).items() if count > 1]
    if duplicates:
        raise TableError(f"{table} has two columns named {duplicates[0]!r}. Give every column a name of its own.")


def listed(names: Iterable[str], limit: int = 8) -> str:
    """Format the first names in quotation marks, and the number of others.

    Examples
    --------
    >>> listed(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    shown = [repr(str(name)) for name in names]
    more = len(shown) - limit
    return ", ".join(shown[:limit]) + (f" and {more} more" if more > 0 else "")


def counted(count: int, what: str) -> str:
    """Format a number with its noun.

    Examples
    --------
    >>> counted(1, "value"), counted(1200, "value")
    ('1 value', '1,200 values')
    """
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Suggest the known name that is closest to a misspelt one, or return "".

    Examples
    --------
    >>> suggest_name("colour", ["color", "size"])
    " Did you mean 'color'?"
    """
    known = list(known)
    lower = {other.lower(): other for other in known}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    return f" Did you mean {lower[near[0]]!r}?" if near else ""


SPACES = " \u00a0\u202f\u2009"
THOUSANDS = {",": ",", ".": ".", " ": SPACES, "'": "'’", "_": "_"}
"""Thousands separators, and the characters that each of them stands for."""

NOT_A_NUMBER = "?"
"""Replaces a text that is no number."""

_UNIT = r"(?:[$¢£¤¥₠-₿]|%|‰|EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|kr\.?|Fr\.?|zł)"
_BODY = rf"(?:\d{{1,3}}(?:[.,'’_{SPACES}]\d{{3}})+|\d+)(?:[.,]\d+)?"
LOCALIZED_NUMBER = rf"^[+-]?(?:{_UNIT}[{SPACES}]?)?[+-]?{_BODY}(?:[{SPACES}]?{_UNIT})?$"
"""Numbers with thousands separators, decimal commas and currency symbols; valid in RE2 (pyarrow) and in ``re``."""


@dataclass(frozen=True)
class NumberFormat:
    """The notation of numbers in text; text in another notation is no number.

    Examples
    --------
    >>> german = NumberFormat(decimal=",", thousands=".", units=("€",))
    >>> [german.normalize(text) for text in ("1.234,50 €", "-7", "1.5", "rot")]
    ['1234.50', '-7', '?', '?']
    """

    decimal: str = "."  # or ","
    thousands: str | None = None  # a key of ``THOUSANDS``, optional between groups of three digits
    units: tuple[str, ...] = ()  # symbols before or after a number that are removed, such as € or %

    def __post_init__(self) -> None:
        if self.decimal not in (".", ","):
            raise TableError(f"`decimal` must be '.' or ','; got {self.decimal!r}.")
        if self.thousands is not None and (self.thousands not in THOUSANDS or self.thousands == self.decimal):
            marks = ", ".join(repr(mark) for mark in THOUSANDS if mark != self.decimal)
            raise TableError(
                f"`thousands` must be one of {marks} where {self.decimal!r} begins the fraction; got "
                f"{self.thousands!r}."
            )
        for unit in self.units:
            if not unit.strip() or re.search(r"[\d+-]", unit):
                raise TableError(f"`unit` must be a sign or word without digits and signs, such as €; got {unit!r}.")

    @cached_property
    def _pattern(self) -> str:
        dot, space = re.escape(self.decimal), f"[{SPACES}]*"
        groups = rf"|\d{{1,3}}(?:[{THOUSANDS[self.thousands]}]\d{{3}})+" if self.thousands else ""
        number = rf"(?:(?:\d+{groups})(?:{dot}\d*)?|{dot}\d+)(?:[eE][+-]?\d+)?"
        unit = "|".join(re.escape(unit.strip()) for unit in sorted(self.units, key=len, reverse=True))
        if not unit:
            return f"^[+-]?{number}$"
        return f"^(?:(?:{unit}){space})?[+-]?(?:(?:{unit}){space})?{number}(?:{space}(?:{unit}))?$"

    def normalize(self, text: str) -> str:
        """Rewrite a trimmed text in Python's notation; ``NOT_A_NUMBER`` where it is no number."""
        if self == DEFAULT_FORMAT:
            return text
        if not re.search(self._pattern, text, re.ASCII):
            return NOT_A_NUMBER
        for unit in sorted(self.units, key=len, reverse=True):
            text = text.replace(unit.strip(), "")
        return re.sub(f"[{SPACES}{THOUSANDS.get(self.thousands or '', '')}]", "", text).replace(self.decimal, ".")

    def describe(self) -> str:
        """Describe the format as parameters.

        Examples
        --------
        >>> NumberFormat(decimal=",", units=("€",)).describe()
        "`decimal=','` `unit=['€']`"
        """
        thousands = [f"`thousands={self.thousands!r}`"] if self.thousands else []
        units = [f"`unit={list(self.units)}`"] if self.units else []
        return " ".join([f"`decimal={self.decimal!r}`", *thousands, *units])


DEFAULT_FORMAT = NumberFormat()


FORMAT_REMEDY = "Say how numbers are written, for example with `decimal=','` `thousands='.'` `unit=['€']`"


NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
INTEGER = r"^[+-]?(0|[1-9]\d*)(\.0*)?$"
PLAIN_CHARACTERS = re.compile(r"[0-9.eE+\-\n]*")
"""Lines of these characters are numbers wherever ``float`` takes them."""

ZERO_PADDED = r"^0\d+$"
"""Digits after a zero, such as those of postal codes: a number is not written so, and as one it would lose the zero."""

_CLOCK = r"\d{1,3}:[0-5]\d(?::[0-5]\d(?:\.\d+)?)?"
DATE = (
    r"^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?$|^\d{1,2}[./]\d{1,2}[./]\d{2,4}([T ].*)?$"
    rf"|^{_CLOCK}(?: ?[aApP][mM])?$|^-?\d+ days?(?:,? [+-]?{_CLOCK})?$"
)
"""Dates, times of day and time differences, as pandas and spreadsheets write them."""

BOOLEANS = ("false", "true")

Mask = npt.NDArray[np.bool_]
Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def match_texts(texts: Sequence[str], pattern: str) -> Mask:
    """Return which texts match a regular expression that begins with ^ and ends with $."""
    if re.search(pattern, "\n".join(texts), re.ASCII | re.MULTILINE) is None:  # one pass where none does
        return np.zeros(len(texts), dtype=bool)
    compiled = re.compile(pattern, re.ASCII)
    return np.array([compiled.search(text) is not None for text in texts], dtype=bool)


def parse_texts(texts: Sequence[str], number_format: NumberFormat) -> Doubles:
    """Parse texts as numbers; NaN where one is no finite number, 'inf' and 'nan' included."""
    plain = [number_format.normalize(text) for text in texts] if number_format != DEFAULT_FORMAT else texts
    try:
        if not PLAIN_CHARACTERS.fullmatch("\n".join(plain)):
            raise ValueError
        numbers = np.array([float(text) for text in plain], dtype=np.float64)
    except ValueError:
        is_number = match_texts(plain, NUMBER).tolist()
        numbers = np.array([float(text) if ok else np.nan for text, ok in zip(plain, is_number, strict=True)])
    return np.where(np.isfinite(numbers), numbers, np.nan)


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """The values of a column, or of a batch of its rows."""

    kind: str  # "number", "boolean", "text" or "date"
    present: Mask  # rows that have a value
    where: npt.NDArray[np.intp]  # their positions
    array: npt.NDArray[Any]  # the values that are present; codes of ``texts`` if there are any
    texts: list[str] | None = None  # distinct texts, each of which occurs
    is_category: bool = False  # the table itself declares the column a category
    number_format: NumberFormat = DEFAULT_FORMAT

    def __len__(self) -> int:
        """Return the number of values that are present."""
        return len(self.where)

    def select(self, rows: Mask) -> ColumnValues:
        """Select rows; the others count neither as present nor as missing, and ``where`` keeps its positions."""
        kept = rows[self.present]
        array, texts = self.array[kept], self.texts
        if texts is not None:
            used, array = np.unique(array, return_inverse=True)
            texts = [texts[code] for code in used.tolist()]
        where, present = self.where[kept], self.present[rows]
        return ColumnValues(self.kind, present, where, array, texts, self.is_category, self.number_format)

    def find_first(self, mask: Mask, start: int) -> tuple[int, Any]:
        """Return the row and value of the first present value that a mask marks, counting rows from ``start``."""
        position = int(np.argmax(mask))
        return start + int(self.where[position]), self.get_value(position)

    def get_value(self, position: int) -> Any:
        """Return one of the present values."""
        value = self.array[position : position + 1].tolist()[0]
        return value if self.texts is None else self.texts[value]

    def to_numbers(self) -> Doubles | None:
        """Return the present values as numbers, or None where one of them is none; text such as 'inf' is no number."""
        if self.kind == "date":
            return None
        if self.texts is None:
            return self.array.astype(np.float64, copy=False)
        return None if np.isnan(self._parsed).any() else self._parsed[self.array]

    def to_booleans(self) -> Doubles | None:
        """Return the present values as 0 and 1, or None where one of them is not true or false."""
        if self.texts is None or self.kind == "date":
            return self.to_numbers() if self.kind == "boolean" else None
        lower = [text.lower() for text in self.texts]
        if not set(lower) <= set(BOOLEANS):
            return None
        return np.array([float(BOOLEANS.index(text)) for text in lower])[self.array]

    def to_texts(self, *, normalize: bool = True) -> npt.NDArray[np.object_]:
        """Return the present values as text; unless ``normalize`` is False, text that is an integer has no fraction.

        Examples
        --------
        >>> extract_values(["1.0", "1.50", "a"], "x", ()).to_texts().tolist()
        ['1', '1.50', 'a']
        """
        if self.texts is not None and not normalize:
            return np.array(self.texts, dtype=object)[self.array]
        texts, codes = self._distinct_texts()
        return np.array(texts, dtype=object)[codes]

    def is_number(self) -> Mask:
        """Return which of the present texts are finite numbers."""
        return ~np.isnan(self._parsed)[self.array]

    def match(self, pattern: str) -> Mask:
        """Return which of the present texts match a regular expression."""
        assert self.texts is not None, "only text can be matched"
        return match_texts(self.texts, pattern)[self.array]

    def value_counts(self, limit: int) -> tuple[int, dict[str, int]]:
        """Return the number of distinct texts, and how often the first ``limit`` of them occur.

        Texts are the same wherever the values come from: 1.0 is '1', True is 'true'.
        """
        texts, codes = self._distinct_texts()
        counts = np.bincount(codes, minlength=len(texts)).tolist()
        return len(texts), dict(zip(texts[:limit], counts[:limit], strict=True))

    def encode(self, categories: Sequence[str]) -> tuple[Integers, dict[str, int]]:
        """Return the index of every value among the categories, −1 for others, and how often each other occurs."""
        texts, codes = self._distinct_texts()
        indices = {category: index for index, category in enumerate(categories)}
        index_of = np.array([indices.get(text, -1) for text in texts] or [-1], dtype=np.int64)
        unknown: dict[str, int] = {}
        if (index_of < 0).any():
            counts = np.bincount(codes, minlength=len(texts)).tolist()
            unknown = {text: count for text, count in zip(texts, counts, strict=True) if text not in indices}
        return index_of[codes], unknown

    @cached_property
    def _parsed(self) -> Doubles:
        assert self.texts is not None, "only text is parsed"
        return parse_texts(self.texts, self.number_format)

    def _distinct_texts(self) -> tuple[list[str], Integers]:
        """Return the distinct values as normalized text, and the code of one of them for every present value."""
        if self.texts is not None:
            texts, codes = [re.sub(r"^(-?\d+)\.0+$", r"\1", text) for text in self.texts], self.array
        else:
            values, codes = np.unique(self.array, return_inverse=True)
            formatters: dict[str, Callable[[Any], str]] = {"number": format_number, "boolean": lambda x: str(x).lower()}
            texts = [formatters.get(self.kind, str)(value) for value in values.tolist()]
        if len(set(texts)) == len(texts):
            return texts, codes
        indices: dict[str, int] = {}
        index_of = np.array([indices.setdefault(text, len(indices)) for text in texts], dtype=np.int64)
        return list(indices), index_of[codes]


def format_number(value: Any) -> str:
    """Format a number as a text that is the same for 1 and 1.0.

    Examples
    --------
    >>> format_number(1.0), format_number(2.5)
    ('1', '2.5')
    """
    if isinstance(value, int):
        return str(value)
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**63 else repr(float(value))


def extract_values(
    column: Any, name: str, missing: Collection[str], number_format: NumberFormat = DEFAULT_FORMAT
) -> ColumnValues:
    """Extract the values of a Series, an array, a list or a column of pyarrow.

    Text is trimmed; the texts in ``missing``, None, NaN and NaT count as missing.

    Examples
    --------
    >>> values = extract_values(np.array(["12", " 7 ", "", None, "?"], dtype=object), "age", missing=("", "?"))
    >>> values.to_numbers().tolist(), values.present.tolist()
    ([12.0, 7.0], [True, True, False, False, False])
    """
    dtype = getattr(column, "dtype", None)
    if type(column).__module__.partition(".")[0] == "pyarrow":
        values = _from_arrow(column, name, missing)
    elif hasattr(column, "factorize"):
        values = _from_series(column, dtype, name, missing)
    else:
        values = _from_array(np.asarray(column) if dtype is not None else np.array(column, dtype=object), name, missing)
    return values if number_format == DEFAULT_FORMAT else replace(values, number_format=number_format)


def _from_arrow(array: Any, name: str, missing: Collection[str]) -> ColumnValues:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = _arrow_kind(array.type, name)
    if kind in ("text", "date"):
        encoded = _cast_to_text(array).dictionary_encode()
        codes = np.full(len(array), -1, dtype=np.int64)
        codes[_to_numpy(pc.is_valid(encoded.indices))] = _to_numpy(encoded.indices.drop_null())
        return _from_texts(kind, encoded.dictionary.to_pylist(), codes, missing)
    if kind == "number" and not pa.types.is_integer(array.type):  # integers keep all digits: they may be labels
        array = array.cast(pa.float64())
    absent = pc.is_null(array, nan_is_null=True)
    present = ~_to_numpy(absent)
    return _from_mask(kind, present, _to_numpy(array if present.all() else array.filter(pc.invert(absent))))


def _arrow_kind(kind: Any, name: str) -> str:
    from pyarrow import types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or types.is_null(kind):
        return "text"
    if types.is_temporal(kind):
        return "date"
    raise _unsupported_type(name, kind)


def _cast_to_text(array: Any) -> Any:
    import pyarrow as pa

    try:
        return array.cast(pa.string())
    except pa.ArrowNotImplementedError:  # intervals
        return pa.array([str(value) for value in array.to_pylist()], pa.string())


def _to_numpy(array: Any) -> npt.NDArray[Any]:
    """Convert an array without nulls; its own ``to_numpy`` would import pandas, which takes a second."""
    from pyarrow import types, uint8

    if types.is_boolean(array.type):
        return np.from_dlpack(array.cast(uint8())).astype(bool)
    return np.from_dlpack(array)


def _from_series(series: Any, dtype: Any, name: str, missing: Collection[str]) -> ColumnValues:
    """Extract values by the names of the types of pandas, which itself is not imported."""
    kind, type_name = getattr(dtype, "kind", "O"), str(dtype)
    if type_name == "category":
        categories, codes = series.cat.categories.tolist(), series.cat.codes.to_numpy().astype(np.int64)
        is_date = bool(categories) and all(map(_is_date, categories))
        texts = [_format_object(value, name) for value in categories]
        values = _from_texts("date" if is_date else "text", texts, codes, missing)
        return replace(values, is_category=not is_date)
    if kind in "mM" or type_name.startswith(("period", "date", "time")):
        return _from_mask("date", np.asarray(series.notna(), dtype=bool), series.to_numpy())
    if kind in "iufb":
        array = series.to_numpy() if isinstance(dtype, np.dtype) else _from_nullable(series, kind)
        return _from_array(array, name, missing, is_boolean=kind == "b")
    return _from_array(series.to_numpy(dtype=object), name, missing)


def _from_nullable(series: Any, kind: str) -> npt.NDArray[Any]:
    """Convert numbers or booleans that may be missing to floats with NaN where any is."""
    if not series.isna().any():
        return np.asarray(series.to_numpy(dtype={"b": bool, "f": np.float64}.get(kind, np.int64)))
    return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))


def _from_array(
    array: npt.NDArray[Any], name: str, missing: Collection[str], *, is_boolean: bool = False
) -> ColumnValues:
    if array.ndim != 1:
        raise TableError(f"column {name!r} must have one value in every row; it has the shape {array.shape}.")
    kind = array.dtype.kind
    if kind == "f":
        return _from_mask("boolean" if is_boolean else "number", ~np.isnan(array), array)
    if kind in "iub":
        return _from_mask("boolean" if kind == "b" else "number", np.ones(len(array), dtype=bool), array)
    if kind in "mM":
        return _from_mask("date", ~np.isnat(array), array)
    if kind not in "OUT":
        raise _unsupported_type(name, array.dtype)
    indices: dict[Any, int] = {}
    try:
        # True and 1 are equal, and are not the same value.
        codes = [indices.setdefault((type(value) is bool, value), len(indices)) for value in array.tolist()]
    except TypeError as error:
        raise _unsupported_type(name, _find_unhashable(array.tolist())) from error
    distinct = [value for _, value in indices]
    return _from_objects(distinct, np.array(codes, dtype=np.int64), name, missing)


def _from_objects(distinct: list[Any], codes: Integers, name: str, missing: Collection[str]) -> ColumnValues:
    """Classify a column of Python objects by the types of its distinct values; code −1 stands for a missing one."""
    valid = [not is_missing(value) for value in distinct]
    if not all(valid):
        codes = np.array([code if is_valid else -1 for code, is_valid in enumerate(valid)] + [-1])[codes]
    values = [value for value, is_valid in zip(distinct, valid, strict=True) if is_valid]
    for kind, has_kind in (("boolean", _is_bool), ("number", _is_real)):
        if values and all(map(has_kind, values)):
            numbers = np.array([float(value) if has_kind(value) else 0.0 for value in distinct])
            return _from_mask(kind, codes >= 0, numbers[codes])
    texts = [_format_object(value, name) if is_valid else "" for value, is_valid in zip(distinct, valid, strict=True)]
    is_date = bool(values) and all(map(_is_date, values))
    return _from_texts("date" if is_date else "text", texts, codes, missing)


def _from_texts(kind: str, texts: list[str], codes: Integers, missing: Collection[str]) -> ColumnValues:
    """Merge texts that are the same once trimmed, and drop those that mean a missing value or do not occur."""
    trimmed = [text.strip() for text in texts]
    if len(set(trimmed)) < len(trimmed) or not set(trimmed).isdisjoint(missing):
        absent = set(missing)
        indices: dict[str, int] = {}
        for text in trimmed:
            if text not in absent:
                indices.setdefault(text, len(indices))
        codes = np.array([indices.get(text, -1) for text in trimmed] + [-1], dtype=np.int64)[codes]
        trimmed = list(indices)
    used = np.bincount(codes[codes >= 0], minlength=len(trimmed)) > 0
    if not used.all():  # a batch of a larger column, or categories that no row has
        codes = np.append(np.cumsum(used) - 1, -1)[codes]
        trimmed = [text for text, is_used in zip(trimmed, used.tolist(), strict=True) if is_used]
    present = codes >= 0
    where = np.flatnonzero(present)
    return ColumnValues(kind, present, where, codes[where], trimmed)


def _from_mask(kind: str, present: Mask, array: npt.NDArray[Any]) -> ColumnValues:
    where = np.flatnonzero(present)
    return ColumnValues(kind, present, where, array if len(array) == len(where) else array[present])


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _is_real(value: Any) -> bool:
    return (isinstance(value, Real | np.number) or type(value).__name__ == "Decimal") and not _is_bool(value)


def _is_date(value: Any) -> bool:
    return isinstance(value, datetime.date | datetime.time | datetime.timedelta | np.datetime64 | np.timedelta64) or (
        type(value).__name__ == "Period"
    )


def _format_object(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    if _is_bool(value):
        return str(value).lower()
    if _is_real(value):
        return format_number(value)
    if _is_date(value) or type(value).__name__ == "Interval":
        return str(value)
    raise _unsupported_type(name, type(value).__name__)


def _find_unhashable(values: Iterable[Any]) -> str:
    return next((type(value).__name__ for value in values if type(value).__hash__ is None), "object")


def _unsupported_type(name: str, kind: Any) -> TableError:
    return TableError(
        f"column {name!r} must hold numbers, booleans or text; it holds values of type {kind}. "
        f"Leave it out with `drop={[name]}`."
    )
