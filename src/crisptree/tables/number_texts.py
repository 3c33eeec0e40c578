"""How numbers are written in tables of text: 1234.5, or 1.234,5, or 1 234,50 €."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crisptree.tables.errors import TableError

SPACES = " \u00a0\u202f\u2009"
THOUSANDS = {",": ",", ".": ".", " ": SPACES, "'": "'’", "_": "_"}
"""Marks of thousands, and the letters that each of them stands for."""

NO_NUMBER = "?"
"""What stands in the place of a text that is no number."""

_UNIT = r"(?:[$¢£¤¥₠-₿]|%|‰|EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|kr\.?|Fr\.?|zł)"
_BODY = rf"(?:\d{{1,3}}(?:[.,'’_{SPACES}]\d{{3}})+|\d+)(?:[.,]\d+)?"
AS_PEOPLE_WRITE = rf"^[+-]?(?:{_UNIT}[{SPACES}]?)?[+-]?{_BODY}(?:[{SPACES}]?{_UNIT})?$"
"""Numbers with marks of thousands, commas and signs of currencies, for Arrow's regular expressions and Python's."""


@dataclass(frozen=True)
class NumberTexts:
    """One way to write numbers; a text that is not written so is none.

    Parameters
    ----------
    decimal : {".", ","}
        What stands before the fraction.
    thousands : {",", ".", " ", "'", "_"} or None
        What may stand between groups of three digits.
    units : tuple of str
        Signs before or after a number that are taken away, such as € or %.

    Examples
    --------
    >>> import pyarrow as pa
    >>> german = NumberTexts(decimal=",", thousands=".", units=("€",))
    >>> german.plain(pa.array(["1.234,50 €", "-7", "1.5", "rot"])).to_pylist()
    ['1234.50', '-7', '?', '?']
    """

    decimal: str = "."
    thousands: str | None = None
    units: tuple[str, ...] = ()

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

    def plain(self, texts: Any) -> Any:
        """An array of Arrow's with trimmed texts: numbers as Python writes them, and ``NO_NUMBER`` for all others."""
        if self == PLAIN:
            return texts
        import pyarrow.compute as pc

        result = texts
        for unit in sorted(self.units, key=len, reverse=True):
            result = pc.replace_substring(result, unit.strip(), "")
        result = pc.replace_substring_regex(result, f"[{SPACES}{THOUSANDS.get(self.thousands or '', '')}]", "")
        result = pc.replace_substring(result, self.decimal, ".")
        return pc.if_else(pc.match_substring_regex(texts, self._pattern), result, NO_NUMBER)

    def plain_text(self, text: str) -> str:
        """The same for one trimmed text of Python's.

        Examples
        --------
        >>> NumberTexts(decimal=",", thousands=".", units=("€",)).plain_text("1.234,50 €")
        '1234.50'
        """
        if self == PLAIN:
            return text
        if not re.search(self._pattern, text):
            return NO_NUMBER
        for unit in sorted(self.units, key=len, reverse=True):
            text = text.replace(unit.strip(), "")
        return re.sub(f"[{SPACES}{THOUSANDS.get(self.thousands or '', '')}]", "", text).replace(self.decimal, ".")

    @property
    def said(self) -> str:
        """In the words of parameters.

        Examples
        --------
        >>> NumberTexts(decimal=",", units=("€",)).said
        "`decimal=','` `unit=['€']`"
        """
        thousands = [f"`thousands={self.thousands!r}`"] if self.thousands else []
        units = [f"`unit={list(self.units)}`"] if self.units else []
        return " ".join([f"`decimal={self.decimal!r}`", *thousands, *units])


PLAIN = NumberTexts()


def hint(text: str, now: NumberTexts) -> str:
    """A sentence for a text that is a number written otherwise, or nothing."""
    return f"{remedy([text], now)}." if re.search(AS_PEOPLE_WRITE, text) else ""


def remedy(texts: Iterable[str], now: NumberTexts) -> str:
    """What a user may say so that these texts, which are numbers written otherwise than ``now``, become numbers.

    Examples
    --------
    >>> remedy(["1.234,5 €"], PLAIN)
    "Say `decimal=','` `thousands='.'` `unit=['€']`"
    >>> remedy(["1,234"], PLAIN)
    "Say `thousands=','` if the mark parts thousands, `decimal=','` if a fraction follows it"
    """
    decimals, marks, unclear, units = set[str](), set[str](), set[str](), dict[str, None]()
    for text in texts:
        parts = re.fullmatch(rf"[+-]?(\D*?)[+-]?(\d[\d.,'’_{SPACES}]*?)(\D*)", text.strip())
        if not parts:
            continue
        units |= dict.fromkeys(unit for part in (parts[1], parts[3]) if (unit := part.strip()))
        found = re.sub(r"\d", "", parts[2])
        last = found[-1:]
        for mark in set(found[:-1]) | (set(found) - set(".,")):
            marks |= {name for name, letters in THOUSANDS.items() if mark in letters}
        if last in (".", ","):
            before, after = parts[2].rsplit(last, 1)
            if last in marks and last in found[:-1]:
                continue
            could_be_thousands = len(found) == 1 and len(after) == 3 and re.fullmatch(r"[1-9]\d{0,2}", before)
            (unclear if could_be_thousands else decimals).add(last)
    unclear -= decimals | marks
    if decimals and unclear:
        marks, unclear = marks | unclear, set()
    unclear.discard(now.decimal)
    said = [f"`decimal={mark!r}`" for mark in sorted(decimals - {now.decimal})]
    said += [f"`thousands={mark!r}`" for mark in sorted(marks - {now.thousands or ""})]
    said += [f"`unit={[unit]}`" for unit in units if unit not in now.units]
    if len(decimals) > 1 or decimals & marks or len(marks) > 1:
        return "Write all numbers of the table in one way"
    if unclear:
        mark = unclear.pop()
        also = f"; besides, {' '.join(said)}" if said else ""
        either = f"`thousands={mark!r}` if the mark parts thousands, `decimal={mark!r}` if a fraction follows it"
        return f"Say {either}{also}"
    return f"Say {' '.join(said)}" if said else "Write all numbers of the table in one way"


def unit_of(texts: Iterable[str]) -> str | None:
    """The word that stands after the number in every one of the texts, if there is one.

    Examples
    --------
    >>> unit_of(["5 kg", "12.5 kg"]), unit_of(["5 kg", "5 m"]), unit_of(["red"])
    ('kg', None, None)
    """
    parts = [re.fullmatch(r"[+-]?\d[\d.,]*\s*([^\d\s][^\d]*)", text) for text in texts]
    units = {part[1] if part else None for part in parts}
    return units.pop() if len(units) == 1 else None
