"""The values of a column, whoever holds them: numbers, booleans, text or dates, with a mask of what is missing.

Survey and encoding ask these questions and no others, so that a file and a DataFrame are understood alike. Arrow's
columns answer them in ``arrow_values``, those of NumPy and pandas in ``array_values``, which needs no Arrow.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.tables.number_texts import PLAIN, NumberTexts

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
WHOLE = r"^[+-]?(0|[1-9]\d*)(\.0*)?$"
PADDED = r"^0\d+$"
"""Digits after a zero, such as those of postal codes: a number is not written so, and as one it would lose the zero."""

DATE = r"^\d{4}-\d{1,2}-\d{1,2}([T ].*)?$|^\d{1,2}[./]\d{1,2}[./]\d{2,4}$"
BOOLEANS = ("false", "true")

Mask = npt.NDArray[np.bool_]
Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Values(ABC):
    """A piece of a column.

    Its ``kind`` is "number", "boolean", "text" or "date"; ``present`` marks the rows that have a value, ``where`` has
    the places of those rows in the piece, and ``is_category`` says that the table itself calls the column a category.
    """

    kind: str
    present: Mask
    where: npt.NDArray[np.intp]
    is_category: bool

    def __len__(self) -> int:
        """How many values are present."""
        return len(self.where)

    def first(self, mask: Mask, start: int) -> tuple[int, Any]:
        """The row of the first present value that a mask marks, and that value; row ``start`` is the piece's first."""
        place = int(np.argmax(mask))
        return start + int(self.where[place]), self.value(place)

    @abstractmethod
    def value(self, place: int) -> Any:
        """One of the present values."""

    @abstractmethod
    def only(self, rows: Mask) -> Values:
        """Some of the rows; the others count neither as present nor as missing."""

    @abstractmethod
    def numbers(self) -> Doubles | None:
        """The present values as numbers, or None where one of them is none; text such as 'inf' is no number."""

    @abstractmethod
    def booleans(self) -> Doubles | None:
        """The present values as 0 and 1, or None where one of them is not true or false."""

    @abstractmethod
    def number_mask(self) -> Mask:
        """Which of the present texts are numbers, and not too large for one."""

    @abstractmethod
    def matching(self, pattern: str) -> Mask:
        """Which of the present texts match."""

    @abstractmethod
    def counts(self, most: int) -> tuple[int, dict[str, int]]:
        """How many different texts there are, and how often the first ``most`` of them occur.

        Texts are the same wherever the values come from: 1.0 is '1', True is 'true'.
        """

    @abstractmethod
    def places(self, categories: Sequence[str]) -> tuple[Integers, dict[str, int]]:
        """The number of every present value among the categories, −1 for others, and how often each other occurs."""


def values_of(column: Any, name: str, missing: Collection[str], written: NumberTexts = PLAIN) -> Values:
    """The values of one column of a batch. Text is trimmed; NaN counts as missing; ``written`` is for text."""
    if type(column).__module__.partition(".")[0] == "pyarrow":
        from crisptree.tables import arrow_values

        return arrow_values.values_of(column, name, missing, written)
    from crisptree.tables import array_values

    return array_values.values_of(column, name, missing, written)


def number_text(number: float) -> str:
    """A number as a text that is the same for 1 and 1.0.

    Examples
    --------
    >>> number_text(1.0), number_text(2.5)
    ('1', '2.5')
    """
    return str(int(number)) if float(number).is_integer() and abs(number) < 2**63 else repr(float(number))


def plain_text(text: str) -> str:
    """The same for a number that came as text: '1.0' is '1', while '1.50' stays as it is."""
    return re.sub(r"^(-?\d+)\.0+$", r"\1", text)
