"""The values of a column of NumPy's or pandas', or of a list; Arrow is not needed.

Text is kept as its different values and a number of one of them for every row: patterns and spellings are looked at
once for every value, not once for every row.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.tables.errors import TableError
from crisptree.tables.number_texts import PLAIN, NumberTexts
from crisptree.tables.values import BOOLEANS, NUMBER, Doubles, Integers, Mask, Values, number_text, plain_text
from crisptree.targets.labels import is_missing


@dataclass(frozen=True, eq=False)
class ArrayValues(Values):
    """A piece of a column.

    ``array`` has the values that are not missing; of text the number of each among ``different``.
    """

    array: npt.NDArray[Any]
    different: tuple[str, ...] = ()
    written: NumberTexts = PLAIN

    def value(self, place: int) -> Any:
        found = self.array[place]
        return self.different[found] if self.kind == "text" else found.item() if hasattr(found, "item") else found

    def only(self, rows: Mask) -> ArrayValues:
        kept = rows[self.present]
        array, different = self.array[kept], self.different
        if self.kind == "text":
            used, array = np.unique(array, return_inverse=True)
            different = tuple(different[number] for number in used.tolist())
        present = self.present[rows]
        return ArrayValues(self.kind, present, self.where[kept], self.is_category, array, different, self.written)

    def numbers(self) -> Doubles | None:
        if self.kind == "date":
            return None
        if self.kind != "text":
            return self.array.astype(np.float64, copy=False)
        plain = list(map(self.written.plain_text, self.different))
        return np.array(list(map(float, plain)))[self.array] if all(map(_is_number, plain)) else None

    def number_mask(self) -> Mask:
        return self._asked(lambda text: _is_number(self.written.plain_text(text)))

    def matching(self, pattern: str) -> Mask:
        return self._asked(lambda text: re.search(pattern, text) is not None)

    def booleans(self) -> Doubles | None:
        if self.kind != "text":
            return self.numbers() if self.kind == "boolean" else None
        lower = [text.lower() for text in self.different]
        if not set(lower) <= set(BOOLEANS):
            return None
        return np.array([float(BOOLEANS.index(text)) for text in lower])[self.array]

    def counts(self, most: int) -> tuple[int, dict[str, int]]:
        texts, numbers = self._texts()
        found = dict(zip(texts, np.bincount(numbers, minlength=len(texts)).tolist(), strict=True))
        return len(found), dict(list(found.items())[:most])

    def places(self, categories: Sequence[str]) -> tuple[Integers, dict[str, int]]:
        texts, numbers = self._texts()
        known = {category: place for place, category in enumerate(categories)}
        place_of = np.array([known.get(text, -1) for text in texts] or [-1], dtype=np.int64)
        unknown: dict[str, int] = {}
        if (place_of < 0).any():
            counts = np.bincount(numbers, minlength=len(texts)).tolist()
            unknown = {text: count for text, count in zip(texts, counts, strict=True) if text not in known}
        return place_of[numbers], unknown

    def _asked(self, question: Callable[[str], bool]) -> Mask:
        return np.array([question(text) for text in self.different], dtype=bool)[self.array]

    def _texts(self) -> tuple[list[str], Integers]:
        """The different values as text, and the number of one of them for every present value."""
        if self.kind == "text":
            given, numbers = [plain_text(text) for text in self.different], self.array
        else:
            found, numbers = np.unique(self.array, return_inverse=True)
            given = [str(value).lower() if self.kind == "boolean" else number_text(value) for value in found.tolist()]
        return _merged(given, numbers)


def values_of(column: Any, name: str, missing: Collection[str], written: NumberTexts = PLAIN) -> ArrayValues:
    """The values of a Series, an array or a list. Text is trimmed; NaN, None and NaT count as missing.

    Examples
    --------
    >>> values = values_of(np.array(["12", " 7 ", "", None, "?"], dtype=object), "age", missing=("", "?"))
    >>> values.numbers().tolist(), values.present.tolist()
    ([12.0, 7.0], [True, True, False, False, False])
    """
    values = _values_of(column, name, missing)
    return values if written == PLAIN else replace(values, written=written)


def _values_of(column: Any, name: str, missing: Collection[str]) -> ArrayValues:
    dtype = getattr(column, "dtype", None)
    if hasattr(column, "factorize"):
        return _of_series(column, dtype, name, missing)
    array = np.asarray(column) if dtype is not None else np.array(column, dtype=object)
    if array.ndim != 1:
        raise TableError(f"column {name!r} must have one value in every row; it has the shape {array.shape}.")
    return _of_array(array, name, missing)


def _of_series(series: Any, dtype: Any, name: str, missing: Collection[str]) -> ArrayValues:
    """The values of pandas' types, which are told apart by their names: pandas itself is not imported."""
    kind, said = getattr(dtype, "kind", "O"), str(dtype)
    if said == "category":
        categories, numbers = series.cat.categories.tolist(), series.cat.codes.to_numpy().astype(np.int64)
        if all(map(_is_date, categories)) and categories:
            return _present("date", numbers >= 0, numbers)
        return _of_texts([_as_text(value, name) for value in categories], numbers, missing, is_category=True)
    if kind in "mM" or said.startswith(("period", "date", "time")):
        return _present("date", series.notna().to_numpy(dtype=bool), series.to_numpy())
    if kind in "iufb":
        plain = isinstance(dtype, np.dtype)
        return _of_array(series.to_numpy() if plain else _masked(series, kind), name, missing, is_boolean=kind == "b")
    try:
        numbers, different = series.factorize()
    except TypeError as error:
        raise _of_other_type(name, _odd_type(series.tolist())) from error
    return _of_different(list(different), numbers.astype(np.int64), name, missing)


def _masked(series: Any, kind: str) -> npt.NDArray[Any]:
    """Numbers or booleans that may be missing, as floats with NaN."""
    if not series.isna().any():
        return np.asarray(series.to_numpy(dtype={"b": bool, "f": np.float64}.get(kind, np.int64)))
    return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))


def _of_array(array: npt.NDArray[Any], name: str, missing: Collection[str], *, is_boolean: bool = False) -> ArrayValues:
    kind = array.dtype.kind
    if kind == "f":
        return _present("boolean" if is_boolean else "number", ~np.isnan(array), array)
    if kind in "iub":
        return _present("boolean" if kind == "b" else "number", np.ones(len(array), dtype=bool), array)
    if kind in "mM":
        return _present("date", ~np.isnat(array), array)
    if kind not in "OUT":
        raise _of_other_type(name, array.dtype)
    numbers: dict[Any, int] = {}
    try:
        # True and 1 are equal, and are not the same value.
        found = [numbers.setdefault((type(value) is bool, value), len(numbers)) for value in array.tolist()]
    except TypeError as error:
        raise _of_other_type(name, _odd_type(array.tolist())) from error
    return _of_different([value for _, value in numbers], np.array(found, dtype=np.int64), name, missing)


def _of_different(different: list[Any], numbers: Integers, name: str, missing: Collection[str]) -> ArrayValues:
    """What a column of Python's objects holds, by the types of its different values; −1 stands for none."""
    known = [not is_missing(value) for value in different]
    if not all(known):
        numbers = np.array([number if fits else -1 for number, fits in enumerate(known)] + [-1])[numbers]
    values = [value for value, fits in zip(different, known, strict=True) if fits]
    present = numbers >= 0
    if values and all(map(_is_date, values)):
        return _present("date", present, numbers)
    for kind, fits in (("boolean", _is_bool), ("number", _is_real)):
        if values and all(map(fits, values)):
            each = np.array([float(value) if fits(value) else 0.0 for value in different])
            return _present(kind, present, each[numbers])
    texts = [_as_text(value, name) if fits else "" for value, fits in zip(different, known, strict=True)]
    return _of_texts(texts, numbers, missing)


def _of_texts(
    texts: list[str], numbers: Integers, missing: Collection[str], *, is_category: bool = False
) -> ArrayValues:
    """Text by its different values, of which some may mean that there is none; −1 stands for none too."""
    trimmed = [text.strip() for text in texts]
    if len(set(trimmed)) < len(trimmed) or not set(trimmed).isdisjoint(missing):
        absent = set(missing)
        places: dict[str, int] = {}
        for text in trimmed:
            if text not in absent:
                places.setdefault(text, len(places))
        numbers = np.array([places.get(text, -1) for text in trimmed] + [-1], dtype=np.int64)[numbers]
        trimmed = list(places)
    used = np.bincount(numbers[numbers >= 0], minlength=len(trimmed)) > 0
    if not used.all():  # a piece of a larger column, or categories that no row has
        numbers = np.append(np.cumsum(used) - 1, -1)[numbers]
        trimmed = [text for text, is_used in zip(trimmed, used.tolist(), strict=True) if is_used]
    return _present("text", numbers >= 0, numbers, is_category=is_category, different=tuple(trimmed))


def _present(
    kind: str, present: Mask, array: npt.NDArray[Any], *, is_category: bool = False, different: tuple[str, ...] = ()
) -> ArrayValues:
    found = array if present.all() else array[present]
    return ArrayValues(kind, present, np.flatnonzero(present), is_category, found, different)


def _merged(texts: list[str], numbers: Integers) -> tuple[list[str], Integers]:
    """The same with every text once."""
    if len(set(texts)) == len(texts):
        return texts, numbers
    places: dict[str, int] = {}
    place_of = np.array([places.setdefault(text, len(places)) for text in texts], dtype=np.int64)
    return list(places), place_of[numbers]


def _is_number(text: str) -> bool:
    return re.search(NUMBER, text) is not None and bool(np.isfinite(float(text)))


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _is_real(value: Any) -> bool:
    return (isinstance(value, Real | np.number) or type(value).__name__ == "Decimal") and not _is_bool(value)


def _is_date(value: Any) -> bool:
    return isinstance(value, datetime.date | datetime.time | datetime.timedelta | np.datetime64 | np.timedelta64) or (
        type(value).__name__ == "Period"
    )


def _as_text(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    if _is_bool(value):
        return str(value).lower()
    if _is_real(value):
        return number_text(value)
    if _is_date(value) or type(value).__name__ == "Interval":
        return str(value)
    raise _of_other_type(name, type(value).__name__)


def _odd_type(values: Iterable[Any]) -> str:
    return next((type(value).__name__ for value in values if type(value).__hash__ is None), "object")


def _of_other_type(name: str, kind: Any) -> TableError:
    return TableError(
        f"column {name!r} must hold numbers, booleans or text; it holds values of type {kind}. "
        f"Leave it out with `drop={[name]}`."
    )
