"""The notation of numbers in text: 1234.5, or 1.234,5, or 1 234,50 €."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from crisptree.encoding.errors import TableError

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


def hint_format(text: str, current: NumberFormat) -> str:
    """Return a sentence for a text that is a number in another format, or ""."""
    return f"{suggest_format([text], current)}." if re.search(LOCALIZED_NUMBER, text) else ""


def suggest_format(texts: Iterable[str], current: NumberFormat) -> str:
    """Suggest parameters with which texts in another than the current format are read as numbers.

    Examples
    --------
    >>> suggest_format(["1.234,5 €"], DEFAULT_FORMAT)
    "Say `decimal=','` `thousands='.'` `unit=['€']`"
    >>> suggest_format(["1,234"], DEFAULT_FORMAT)
    "Say `thousands=','` if the mark parts thousands, `decimal=','` if a fraction follows it"
    """
    decimals, marks, unclear, units = set[str](), set[str](), set[str](), dict[str, None]()
    for text in texts:
        parts = re.fullmatch(rf"[+-]?(\D*?)[+-]?(\d[\d.,'’_{SPACES}]*?)(\D*)", text.strip())
        if not parts:
            continue
        units |= dict.fromkeys(unit for part in (parts[1], parts[3]) if (unit := part.strip()))
        separators = re.sub(r"\d", "", parts[2])
        last = separators[-1:]
        for mark in set(separators[:-1]) | (set(separators) - set(".,")):
            marks |= {name for name, letters in THOUSANDS.items() if mark in letters}
        if last in (".", ","):
            before, after = parts[2].rsplit(last, 1)
            if last in marks and last in separators[:-1]:
                continue
            could_be_thousands = len(separators) == 1 and len(after) == 3 and re.fullmatch(r"[1-9]\d{0,2}", before)
            (unclear if could_be_thousands else decimals).add(last)
    unclear -= decimals | marks
    if decimals and unclear:
        marks, unclear = marks | unclear, set()
    unclear.discard(current.decimal)
    options = [f"`decimal={mark!r}`" for mark in sorted(decimals - {current.decimal})]
    options += [f"`thousands={mark!r}`" for mark in sorted(marks - {current.thousands or ""})]
    options += [f"`unit={[unit]}`" for unit in units if unit not in current.units]
    if len(decimals) > 1 or decimals & marks or len(marks) > 1:
        return "Write all numbers of the table in one way"
    if unclear:
        mark = unclear.pop()
        also = f"; besides, {' '.join(options)}" if options else ""
        either = f"`thousands={mark!r}` if the mark parts thousands, `decimal={mark!r}` if a fraction follows it"
        return f"Say {either}{also}"
    return f"Say {' '.join(options)}" if options else "Write all numbers of the table in one way"


def find_unit(texts: Iterable[str]) -> str | None:
    """Return the unit that follows the number in every text, or None.

    Examples
    --------
    >>> find_unit(["5 kg", "12.5 kg"]), find_unit(["5 kg", "5 m"]), find_unit(["red"])
    ('kg', None, None)
    """
    parts = [re.fullmatch(r"[+-]?\d[\d.,]*\s*([^\d\s][^\d]*)", text) for text in texts]
    units = {part[1] if part else None for part in parts}
    return units.pop() if len(units) == 1 else None
