"""The values of one column: numbers, booleans, text or dates, with a mask of what is missing.

Profiling and encoding work on ``ColumnValues`` alone, so that a file and a DataFrame are understood alike. Text is kept
as distinct values and one code per row: patterns and spellings are looked at once for every distinct value. Columns of
NumPy and pandas and lists need no pyarrow; the text of Arrow columns stays in Arrow, whose functions are vectorised.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.encoding.errors import TableError
from crisptree.encoding.number_format import DEFAULT_FORMAT, NumberFormat
from crisptree.targets.labels import is_missing

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
INTEGER = r"^[+-]?(0|[1-9]\d*)(\.0*)?$"
ZERO_PADDED = r"^0\d+$"
"""Digits after a zero, such as those of postal codes: a number is not written so, and as one it would lose the zero."""

DATE = r"^\d{4}-\d{1,2}-\d{1,2}([T ].*)?$|^\d{1,2}[./]\d{1,2}[./]\d{2,4}$"
BOOLEANS = ("false", "true")

Mask = npt.NDArray[np.bool_]
Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class PythonTexts:
    """Distinct texts as Python strings."""

    def __init__(self, values: list[str]) -> None:
        self.values = values

    def to_list(self) -> list[str]:
        """Return the texts as Python strings."""
        return self.values

    def take(self, indices: Integers) -> PythonTexts:
        """Select texts by index."""
        return PythonTexts([self.values[index] for index in indices.tolist()])

    def match(self, pattern: str) -> Mask:
        """Return which texts match a regular expression."""
        return np.array([re.search(pattern, text) is not None for text in self.values], dtype=bool)

    def parse(self, number_format: NumberFormat) -> Doubles:
        """Parse the texts as numbers; NaN where one is no finite number, 'inf' and 'nan' included."""
        plain = map(number_format.normalize_text, self.values)
        numbers = np.array([float(text) if re.search(NUMBER, text) else np.nan for text in plain], dtype=np.float64)
        return np.where(np.isfinite(numbers), numbers, np.nan)


class ArrowTexts:
    """Distinct texts as a string array of pyarrow, with the methods of ``PythonTexts``."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def to_list(self) -> list[str]:
        return list(self.values.to_pylist())

    def take(self, indices: Integers) -> ArrowTexts:
        return ArrowTexts(self.values.take(indices))

    def match(self, pattern: str) -> Mask:
        import pyarrow.compute as pc

        return _to_numpy(pc.match_substring_regex(self.values, pattern)).astype(bool)

    def parse(self, number_format: NumberFormat) -> Doubles:
        import pyarrow as pa

        plain = ArrowTexts(number_format.normalize(self.values))
        try:
            numbers = _to_numpy(plain.values.cast(pa.float64())).astype(np.float64)
        except pa.ArrowInvalid:
            is_number = plain.match(NUMBER)
            numbers = np.full(len(is_number), np.nan)
            numbers[is_number] = _to_numpy(plain.values.filter(pa.array(is_number)).cast(pa.float64()))
        return np.where(np.isfinite(numbers), numbers, np.nan)


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """The values of a column, or of a batch of its rows.

    Parameters
    ----------
    kind : {"number", "boolean", "text", "date"}
        What the values are.
    present : ndarray of bool
        Which rows have a value.
    where : ndarray of int
        The positions of the rows that have one.
    array : ndarray
        The values that are present; codes of the distinct texts where ``texts`` is given.
    texts : PythonTexts, ArrowTexts or None
        The distinct texts, each of which occurs.
    is_category : bool
        Whether the table itself declares the column a category.
    number_format : NumberFormat
        How text writes numbers.
    """

    kind: str
    present: Mask
    where: npt.NDArray[np.intp]
    array: npt.NDArray[Any]
    texts: PythonTexts | ArrowTexts | None = None
    is_category: bool = False
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
            texts = texts.take(used)
        where, present = self.where[kept], self.present[rows]
        return ColumnValues(self.kind, present, where, array, texts, self.is_category, self.number_format)

    def find_first(self, mask: Mask, start: int) -> tuple[int, Any]:
        """Return the row and value of the first present value that a mask marks, counting rows from ``start``."""
        position = int(np.argmax(mask))
        return start + int(self.where[position]), self.get_value(position)

    def get_value(self, position: int) -> Any:
        """Return one of the present values."""
        found = self.array[position : position + 1]
        return found.tolist()[0] if self.texts is None else self.texts.take(found).to_list()[0]

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
        if not self.texts.match("^[Ff][Aa][Ll][Ss][Ee]$|^[Tt][Rr][Uu][Ee]$").all():
            return None
        return np.array([float(BOOLEANS.index(text.lower())) for text in self.texts.to_list()])[self.array]

    def to_texts(self, *, normalize: bool = True) -> npt.NDArray[np.object_]:
        """Return the present values as text; unless ``normalize`` is False, text that is an integer has no fraction.

        Examples
        --------
        >>> extract_values(["1.0", "1.50", "a"], "x", ()).to_texts().tolist()
        ['1', '1.50', 'a']
        """
        if self.texts is not None and not normalize:
            return np.array(self.texts.to_list(), dtype=object)[self.array]
        texts, codes = self._distinct_texts()
        return np.array(texts, dtype=object)[codes]

    def is_number(self) -> Mask:
        """Return which of the present texts are finite numbers."""
        return ~np.isnan(self._parsed)[self.array]

    def match(self, pattern: str) -> Mask:
        """Return which of the present texts match a regular expression."""
        return self._given_texts.match(pattern)[self.array]

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

    @property
    def _given_texts(self) -> PythonTexts | ArrowTexts:
        assert self.texts is not None, "only text can be matched"
        return self.texts

    @cached_property
    def _parsed(self) -> Doubles:
        return self._given_texts.parse(self.number_format)

    def _distinct_texts(self) -> tuple[list[str], Integers]:
        """Return the distinct values as normalized text, and the code of one of them for every present value."""
        if self.texts is not None:
            texts, codes = [re.sub(r"^(-?\d+)\.0+$", r"\1", text) for text in self.texts.to_list()], self.array
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
    if type(column).__module__.partition(".")[0] == "pyarrow":
        return _from_arrow(column, name, missing, number_format)
    dtype = getattr(column, "dtype", None)
    if hasattr(column, "factorize"):
        return _from_series(column, dtype, name, missing, number_format)
    array = np.asarray(column) if dtype is not None else np.array(column, dtype=object)
    if array.ndim != 1:
        raise TableError(f"column {name!r} must have one value in every row; it has the shape {array.shape}.")
    return _from_array(array, name, missing, number_format)


def _from_arrow(array: Any, name: str, missing: Collection[str], number_format: NumberFormat) -> ColumnValues:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = _arrow_kind(array.type, name)
    if kind == "text":
        array = pc.utf8_trim_whitespace(array.cast(pa.string()))
        absent = pc.is_in(array, pa.array([*missing, None], pa.string()))
    else:
        if kind == "number" and not pa.types.is_integer(array.type):  # integers keep all digits: they may be labels
            array = array.cast(pa.float64())
        absent = pc.is_null(array, nan_is_null=True)
    present = ~_to_numpy(absent).astype(bool)
    found = array if present.all() else array.filter(pa.array(present))
    if kind not in ("text", "date"):
        return ColumnValues(kind, present, np.flatnonzero(present), _to_numpy(found))
    encoded = _cast_to_text(found).dictionary_encode()
    codes, texts = _to_numpy(encoded.indices), ArrowTexts(encoded.dictionary)
    return ColumnValues(kind, present, np.flatnonzero(present), codes, texts, number_format=number_format)


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
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _from_series(
    series: Any, dtype: Any, name: str, missing: Collection[str], number_format: NumberFormat
) -> ColumnValues:
    """Extract values of the types of pandas, which are told apart by their names: pandas itself is not imported."""
    kind, type_name = getattr(dtype, "kind", "O"), str(dtype)
    if type_name == "category":
        categories, codes = series.cat.categories.tolist(), series.cat.codes.to_numpy().astype(np.int64)
        is_date = bool(categories) and all(map(_is_date, categories))
        texts = [_format_object(value, name) for value in categories]
        if is_date:
            return _from_texts("date", texts, codes, (), number_format)
        return _from_texts("text", texts, codes, missing, number_format, is_category=True)
    if kind in "mM" or type_name.startswith(("period", "date", "time")):
        return _from_mask("date", series.notna().to_numpy(dtype=bool), series.to_numpy())
    if kind in "iufb":
        array = series.to_numpy() if isinstance(dtype, np.dtype) else _from_nullable(series, kind)
        return _from_array(array, name, missing, number_format, is_boolean=kind == "b")
    try:
        codes, distinct = series.factorize()
    except TypeError as error:
        raise _unsupported_type(name, _find_unhashable(series.tolist())) from error
    return _from_objects(list(distinct), codes.astype(np.int64), name, missing, number_format)


def _from_nullable(series: Any, kind: str) -> npt.NDArray[Any]:
    """Convert numbers or booleans that may be missing to floats with NaN where any is."""
    if not series.isna().any():
        return np.asarray(series.to_numpy(dtype={"b": bool, "f": np.float64}.get(kind, np.int64)))
    return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))


def _from_array(
    array: npt.NDArray[Any],
    name: str,
    missing: Collection[str],
    number_format: NumberFormat,
    *,
    is_boolean: bool = False,
) -> ColumnValues:
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
    return _from_objects(distinct, np.array(codes, dtype=np.int64), name, missing, number_format)


def _from_objects(
    distinct: list[Any], codes: Integers, name: str, missing: Collection[str], number_format: NumberFormat
) -> ColumnValues:
    """Classify a column of Python objects by the types of its distinct values; code −1 stands for a missing one."""
    known = [not is_missing(value) for value in distinct]
    if not all(known):
        codes = np.array([code if is_known else -1 for code, is_known in enumerate(known)] + [-1])[codes]
    values = [value for value, is_known in zip(distinct, known, strict=True) if is_known]
    for kind, has_kind in (("boolean", _is_bool), ("number", _is_real)):
        if values and all(map(has_kind, values)):
            numbers = np.array([float(value) if has_kind(value) else 0.0 for value in distinct])
            return _from_mask(kind, codes >= 0, numbers[codes])
    texts = [_format_object(value, name) if is_known else "" for value, is_known in zip(distinct, known, strict=True)]
    if values and all(map(_is_date, values)):
        return _from_texts("date", texts, codes, (), number_format)
    return _from_texts("text", texts, codes, missing, number_format)


def _from_texts(
    kind: str,
    texts: list[str],
    codes: Integers,
    missing: Collection[str],
    number_format: NumberFormat,
    *,
    is_category: bool = False,
) -> ColumnValues:
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
    return ColumnValues(kind, present, where, codes[where], PythonTexts(trimmed), is_category, number_format)


def _from_mask(kind: str, present: Mask, array: npt.NDArray[Any]) -> ColumnValues:
    return ColumnValues(kind, present, np.flatnonzero(present), array if present.all() else array[present])


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
