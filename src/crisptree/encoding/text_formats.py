"""Formats of text: how numbers, dates, times of day and time differences are written, and their values."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from crisptree.exceptions import TableError

if TYPE_CHECKING:
    from crisptree.encoding.containers import ColumnValues

Doubles = npt.NDArray[np.float64]

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

CLOCK_DIGITS = r"\d{1,3}:[0-5]\d(?::[0-5]\d(?:\.\d+)?)?"
DATE = (
    r"^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?$|^\d{1,2}[./]\d{1,2}[./]\d{2,4}([T ].*)?$"
    rf"|^{CLOCK_DIGITS}(?: ?[aApP][mM])?$|^-?\d+ days?(?:,? [+-]?{CLOCK_DIGITS})?$"
)
"""Dates, times of day and time differences, as pandas and spreadsheets write them."""

BOOLEANS = ("false", "true")

DAY = 86_400.0

_CLOCK = r"(?P<hour>\d{1,3}):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d(?:\.\d+)?))?(?: ?(?P<half>[aApP])\.?[mM]\.?)?"
_TIME = rf"(?:[T ]{_CLOCK}(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)?"
YEAR_FIRST = re.compile(rf"(?P<year>\d{{4}})[-/.](?P<month>\d{{1,2}})(?:[-/.](?P<day>\d{{1,2}}))?{_TIME}")
YEAR_LAST = re.compile(rf"(?P<one>\d{{1,2}})(?P<mark>[./-])(?P<two>\d{{1,2}})(?P=mark)(?P<year>\d{{4}}|\d\d){_TIME}")
CLOCK = re.compile(_CLOCK)
DIFFERENCE = re.compile(rf"(?P<days>-?\d+) days?(?:,? (?P<sign>[+-])?{_CLOCK})?")

DATE_PARTS = ("year", "month", "day", "weekday", "hour", "days")

MIN_YEAR_OF_LAST_CENTURY = 69
"""Years of two digits from here on are those of the 20th century, as in POSIX."""

Moment = tuple[str, float]
"""The kind of a value, "date", "time" or "difference", and its seconds, of a date since 1970."""


def extract_date_parts(values: ColumnValues, *, day_first: bool) -> tuple[dict[str, Doubles], npt.NDArray[np.bool_]]:
    """Extract the parts of the present values, and which of them could be read.

    Dates have a year, month, day, weekday (1 is Monday) and hour, times of day an hour, differences a number of days;
    hours have fractions. A time zone is ignored: the parts are those that are written.

    Examples
    --------
    >>> from crisptree.encoding.containers import extract_values
    >>> values = extract_values(["2024-02-29", "1.3.2024 13:30", "soon"], "day", ())
    >>> parts, is_readable = extract_date_parts(values, day_first=True)
    >>> {name: part[:2].tolist() for name, part in parts.items()}
    {'year': [2024.0, 2024.0], 'month': [2.0, 3.0], 'day': [29.0, 1.0], 'weekday': [4.0, 5.0], 'hour': [0.0, 13.5]}
    >>> is_readable.tolist()
    [True, True, False]
    """
    kind, seconds = _to_seconds(values, day_first=day_first)
    readable = np.isfinite(seconds)
    filled = np.where(readable, seconds, 0.0)
    if kind == "difference":
        return {"days": filled / DAY}, readable
    if kind == "time":
        return {"hour": filled / 3600}, readable
    days = np.floor(filled / DAY)
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    parts = {
        "year": dates.astype("datetime64[Y]").astype(np.int64) + 1970,
        "month": months.astype(np.int64) % 12 + 1,
        "day": (dates - months).astype(np.int64) + 1,
        "weekday": (days + 3) % 7 + 1,
        "hour": (filled - days * DAY) / 3600,
    }
    return {name: part.astype(np.float64) for name, part in parts.items()}, readable


def _to_seconds(values: ColumnValues, *, day_first: bool) -> tuple[str, Doubles]:
    """Return the kind of the values and their seconds, NaN for one that is none or of another kind than the first."""
    array = values.array
    if values.texts is None and array.dtype.kind in "mM":
        kind = "difference" if array.dtype.kind == "m" else "date"
        return kind, array.astype(f"{array.dtype.kind}8[us]").astype(np.int64) / 1e6
    texts: Sequence[str] = values.texts if values.texts is not None else [str(value) for value in array.tolist()]
    codes = array if values.texts is not None else np.arange(len(texts))
    moments = [parse_moment(text, day_first=day_first) for text in texts]
    kinds = [moment[0] for moment in moments if moment is not None]
    kind = max(set(kinds), key=kinds.count) if kinds else "date"
    seconds = [moment[1] if moment is not None and moment[0] == kind else math.nan for moment in moments]
    return kind, np.array(seconds, dtype=np.float64)[codes]


def parse_moment(text: str, *, day_first: bool) -> Moment | None:
    """Parse a date, time of day or time difference as pandas and spreadsheets write it; None where it is none.

    ``day_first`` is the order of dates with slashes and hyphens that end with the year; with dots the day is first.

    Examples
    --------
    >>> parse_moment("1/2/1970", day_first=False), parse_moment("1/2/1970", day_first=True)
    (('date', 86400.0), ('date', 2678400.0))
    >>> parse_moment("1:30 pm", day_first=True), parse_moment("2 days 06:00:00", day_first=True)
    (('time', 48600.0), ('difference', 194400.0))
    """
    if found := YEAR_FIRST.fullmatch(text):
        return _make_date(int(found["year"]), int(found["month"]), int(found["day"] or 1), found)
    if found := YEAR_LAST.fullmatch(text):
        one, two, year = int(found["one"]), int(found["two"]), int(found["year"])
        if len(found["year"]) == 2:
            year += 1900 if year >= MIN_YEAR_OF_LAST_CENTURY else 2000
        day, month = (one, two) if day_first or found["mark"] == "." else (two, one)
        return _make_date(year, month, day, found)
    if found := CLOCK.fullmatch(text):
        return "time", _clock_seconds(found)
    if found := DIFFERENCE.fullmatch(text):
        sign = -1.0 if found["sign"] == "-" else 1.0
        return "difference", int(found["days"]) * DAY + sign * _clock_seconds(found)
    return None


def _make_date(year: int, month: int, day: int, found: re.Match[str]) -> Moment | None:
    try:
        days = datetime.date(year, month, day).toordinal() - datetime.date(1970, 1, 1).toordinal()
    except ValueError:
        return None
    return "date", days * DAY + _clock_seconds(found)


def _clock_seconds(found: re.Match[str]) -> float:
    if found["hour"] is None:
        return 0.0
    hour, half = int(found["hour"]), (found["half"] or "").lower()
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return hour * 3600.0 + int(found["minute"]) * 60.0 + float(found["second"] or 0.0)
