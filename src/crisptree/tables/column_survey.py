"""What one column of a training table holds, looked at piece by piece, and what it will be used as."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crisptree.tables.errors import TableError, listed
from crisptree.tables.number_texts import AS_PEOPLE_WRITE, remedy, unit_of
from crisptree.tables.preprocessing import Column
from crisptree.tables.table import AnyTable
from crisptree.tables.values import DATE, PADDED, Doubles, Values

MAX_CATEGORIES = 100
FEWEST_FOR_AN_ID = 20
"""A text column of so many rows, hardly any with the same value, names the rows and describes nothing."""

LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Choices:
    """What the user says about the columns."""

    drop: Collection[str] = ()
    categorical: Collection[str] = ()
    numeric: Collection[str] = ()
    missing: Collection[str] = ()
    max_categories: int = MAX_CATEGORIES
    keep_constant: bool = False
    id: str | None = None


@dataclass
class ColumnSurvey:
    """All that was seen of one column so far."""

    name: str
    source: AnyTable
    choices: Choices
    n_values: int = 0
    n_missing: int = 0
    n_numbers: int = 0
    weight: float = 0.0
    total: float = 0.0
    low: float = np.inf
    high: float = -np.inf
    kinds: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    n_otherwise: int = 0
    otherwise: tuple[int, Any] | None = None
    bad: tuple[int, Any] | None = None
    padded: str | None = None
    has_fractions: bool = False
    refusal: TableError | None = None
    hardly_any_twice: bool = True
    all_boolean: bool = True
    all_dates: bool = True
    is_row_number: bool = True

    def __post_init__(self) -> None:
        self.shown = f"{self.source.path}: column {self.name!r}"
        self.as_category, self.most = self.name in self.choices.categorical, self.choices.max_categories
        self.drop, self.categorical = f"`drop={[self.name]}`", f"`categorical={[self.name]}`"

    def add(self, values: Values, start: int, weights: Doubles | None = None) -> None:
        """One more piece; ``weights`` are those of its rows, None for rows that all weigh as much."""
        self.n_missing += len(values.present) - len(values)
        self.as_category = self.as_category or values.is_category
        if not len(values):
            return
        self.kinds.add(values.kind)
        self.n_values += len(values)
        found = values.numbers()
        each = None if weights is None else weights[values.where]
        self.weight += len(values) if each is None else float(each.sum())
        if values.kind == "text" or self.as_category:
            self._count_texts(values)
        if found is not None:
            if values.kind == "text":
                self._look_for_padding(values)
            self.all_boolean = self.all_boolean and values.kind == "boolean"
            self.all_dates = False
            self._add_numbers(found, values, start, each)
            return
        self.is_row_number = False
        if values.kind == "text":
            self._look_for_padding(values)
            self._add_texts(values, start, each)

    def _look_for_padding(self, values: Values) -> None:
        """Digits that begin with a zero make names of all of them, unless the user says otherwise."""
        if self.padded is None and self.name not in self.choices.numeric:
            padded = values.matching(PADDED)
            self.padded = str(values.first(padded, 0)[1]) if padded.any() else None

    def _count_texts(self, values: Values) -> None:
        """Count the different values, while they are not too many; that is all one needs to know then."""
        if len(self.counts) > self.most:
            return
        n_different, counts = values.counts(self.most + 1)
        self.hardly_any_twice = self.hardly_any_twice and n_different == len(values)
        self.counts.update(counts)

    def _add_texts(self, values: Values, start: int, each: Doubles | None) -> None:
        truths = values.booleans()
        self.all_boolean = self.all_boolean and truths is not None
        if truths is not None:
            self.total += float(truths.sum() if each is None else truths @ each)
        self.all_dates = self.all_dates and bool(values.matching(DATE).all())
        mask = values.number_mask()
        otherwise = ~mask & values.matching(AS_PEOPLE_WRITE)
        self.n_numbers += int(mask.sum())
        self.n_otherwise += int(otherwise.sum())
        if self.otherwise is None and otherwise.any():
            self.otherwise = values.first(otherwise, start)
        if self.bad is None and not (mask | otherwise).all():
            self.bad = values.first(~(mask | otherwise), start)

    def _add_numbers(self, found: Doubles, values: Values, start: int, each: Doubles | None) -> None:
        too_large = np.abs(found) > LARGEST
        if too_large.any() and not self.as_category and self.refusal is None:
            self.refusal = TableError(
                f"{self.shown} must hold finite numbers that single precision can hold; row "
                f"{values.first(too_large, start)[0]} has {found[int(np.argmax(too_large))]}. Correct it"
                + ("." if self.source.matrix else f", or leave the column out with {self.drop}.")
            )
            return
        self.is_row_number = self.is_row_number and bool((np.diff(found) == 1).all())
        if self.n_numbers and self.high + 1 != found[0]:
            self.is_row_number = False
        self.n_numbers += len(found)
        self.has_fractions = self.has_fractions or bool(((found < 0) | (found != np.floor(found))).any())
        self.total += float(found.sum() if each is None else found @ each)
        self.low, self.high = min(self.low, float(found.min())), max(self.high, float(found.max()))

    def column(self) -> Column | str:
        """The column as it will be used, or why it is left out."""
        if self.refusal is not None:
            raise self.refusal
        keep = self.choices.keep_constant
        if not self.n_values:
            return Column(self.name, "number", mean=0.0, missing=True) if keep else "no values"
        column = self._column()
        by_number = self.n_numbers == self.n_values and column.kind != "category"
        constant = self.low == self.high if by_number else len(self.counts) == 1
        return "constant" if constant and not self.n_missing and not keep else column

    def _column(self) -> Column:
        missing, is_text = self.n_missing > 0, self.kinds == {"text"}
        if "date" in self.kinds or (is_text and self.all_dates and not self.as_category):
            raise TableError(
                f"{self.shown} holds dates, which are neither numbers nor categories. Make numbers "
                f"of them first (a year, a weekday, days since an event), or leave it out with {self.drop}."
            )
        if self.as_category or self.has_padded_numbers:
            return self._category()
        if self.kinds == {"boolean"} or (is_text and self.all_boolean):
            return Column(self.name, "boolean", self.total / self.weight, missing)
        if self.n_numbers == self.n_values:
            return Column(self.name, "number", self.total / self.weight, missing)
        self._refuse_what_are_nearly_numbers()
        return self._category()

    @property
    def has_padded_numbers(self) -> bool:
        """Whether these are mostly digits, some begin with a zero, and nothing says that they count something."""
        mostly = 2 * self.n_numbers > self.n_values
        return self.padded is not None and mostly and not self.has_fractions and not self.as_category

    def notes(self, column: Column) -> Iterator[str]:
        """What the owner should know of the column."""
        if self.is_row_number and column.kind == "number" and self.n_values >= FEWEST_FOR_AN_ID:
            how = "" if self.source.matrix else f" with {self.drop}"
            yield f"column {self.name!r} counts the rows; if it only numbers them, leave it out{how}."
        if self.has_padded_numbers:
            yield (
                f"column {self.name!r} has digits that begin with a zero, such as {self.padded!r}, so it is taken for "
                f"a category; if these are numbers, say `numeric={[self.name]}`."
            )
        elif self.source.kind == "table" and column.kind == "number" and "text" in self.kinds:
            yield (
                f"column {self.name!r} holds numbers as text, and is taken for numbers; if these are names of "
                f"categories, say {self.categorical}."
            )

    def _refuse_what_are_nearly_numbers(self) -> None:
        if 2 * (self.n_numbers + self.n_otherwise) <= self.n_values:
            return
        if_names = f"if the column holds names of categories, say {self.categorical}."
        bad = f"row {self.bad[0]} has {self.bad[1]!r}" if self.bad else ""
        if_missing = f"means a missing value, say `missing={[self.bad[1]]}`; " if self.bad else ""
        if self.otherwise is not None:
            row, value = self.otherwise
            in_memory = self.source.kind == "table"
            how = "Write them so" if in_memory else remedy([value, *self.counts], self.source.written)
            said = f"must hold numbers such as 1234{self.source.written.decimal}5; row {row} has {value!r}"
            more = f". {how}. Besides, {bad}. If that {if_missing}" if bad else f". {how}; "
            raise TableError(f"{self.shown} {said}{more}{if_names}")
        if bad:
            raise TableError(
                f"{self.shown} must hold numbers; {self.n_numbers:,} of {self.n_values:,} values are, but {bad}. "
                f"If that {if_missing}{if_names}"
            )

    def _category(self) -> Column:
        many = len(self.counts) > self.most
        different = self.hardly_any_twice if many else len(self.counts) == self.n_values
        rare = different and self.n_values >= FEWEST_FOR_AN_ID and not self.as_category
        if many or rare:
            padded = self.has_padded_numbers
            what = "hardly any value twice" if rare else f"more than {self.most} different values"
            more = "" if rare else f", or allow so many features with `max_categories={10 * self.most}`"
            unit = None if self.source.kind == "table" else unit_of(self.counts)
            flag = f"`numeric={[self.name]}`" if padded else f"`unit={[unit]}`" if unit else ""
            numbers = f"If these are numbers, say {flag}. " if flag and not self.as_category else ""
            because = f" (digits that begin with a zero, such as {self.padded!r}, are names)" if padded else ""
            raise TableError(
                f"{self.shown} is a category{because} with {what}, such as {listed(list(self.counts)[:3])}. {numbers}"
                f"Leave it out with {self.drop}{more}."
            )
        return Column(self.name, "category", missing=self.n_missing > 0, categories=tuple(sorted(self.counts)))
