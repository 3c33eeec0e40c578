"""Profile of a training table: what its columns hold, found in one pass; the result is a ``Preprocessing``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.encoding.containers import ColumnValues, TableLike, extract_values
from crisptree.encoding.preprocessing import MISSING, Column, Preprocessing
from crisptree.encoding.text_formats import (
    DATE,
    FORMAT_REMEDY,
    LOCALIZED_NUMBER,
    ZERO_PADDED,
    Doubles,
    extract_date_parts,
)
from crisptree.exceptions import RefusedColumns, TableError, format_names
from crisptree.files import reading

MAX_CATEGORIES = 100
HANDLE_MISSING = ("fill", "error")
MIN_ROWS_FOR_ID, ID_SHARE, NEAR_ID_SHARE = 20, 0.9, 0.5
"""A text column of so many rows in which hardly any value repeats names the rows and describes nothing: it is refused
where the share of distinct values is at least the first one, and noted where it is at least the second."""

MAX_COUNTED, MAX_COUNTED_TO_GROUP = 10_000, 2**20
"""Distinct values of a text column that are counted, without and with ``min_frequency``."""

MAX_FLOAT32 = float(np.finfo(np.float32).max)

LEFT_OUT = {
    "constant": "constant",
    "no values": "without any value",
    "only rare values": "whose values are all rarer than `min_frequency`",
}
"""Reasons to leave a column out, and their wording in notes."""


@dataclass(frozen=True)
class ColumnOptions:
    """Options of the user for the columns of a table."""

    drop: Collection[str] = ()
    categorical: Collection[str] = ()
    numeric: Collection[str] = ()
    missing: Collection[str] = ()
    max_categories: int = MAX_CATEGORIES
    keep_constant: bool = False
    id: str | None = None
    fill: bool = True
    min_frequency: float | None = None
    dates: Collection[str] = ()


@dataclass
class ColumnProfile:
    """Statistics of one column, updated batch by batch."""

    name: str
    source: TableLike
    options: ColumnOptions
    n_values: int = 0
    n_missing: int = 0
    n_numbers: int = 0
    weight: float = 0.0
    total: float = 0.0
    low: float = np.inf
    high: float = -np.inf
    kinds: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    n_localized: int = 0
    localized: tuple[int, Any] | None = None
    bad: tuple[int, Any] | None = None
    padded: str | None = None
    has_fractions: bool = False
    refusal: TableError | None = None
    is_unique: bool = True
    is_counted: bool = True
    all_boolean: bool = True
    all_dates: bool = True
    is_row_number: bool = True
    row_offset: float | None = None

    def __post_init__(self) -> None:
        self.shown = f"{self.source.path}: column {self.name!r}"
        self.as_category, self.max_categories = self.name in self.options.categorical, self.options.max_categories
        self.drop, self.categorical = f"`drop={[self.name]}`", f"`categorical={[self.name]}`"

    def add(self, values: ColumnValues, start: int, weights: Doubles | None = None) -> None:
        """Add a batch; ``weights`` are sample weights of its rows, None for equal weights."""
        self.n_missing += len(values.present) - len(values)
        self.as_category = self.as_category or values.is_category
        if not len(values):
            return
        self.kinds.add(values.kind)
        self.n_values += len(values)
        numbers = values.to_numbers()
        each = None if weights is None else weights[values.where]
        self.weight += len(values) if each is None else float(each.sum())
        if values.kind == "text" or self.as_category:
            self._count_texts(values)
        if numbers is not None:
            if values.kind == "text":
                self._find_padding(values)
            self.all_boolean = self.all_boolean and values.kind == "boolean"
            self.all_dates = False
            self._add_numbers(numbers, values, start, each)
            return
        self.is_row_number = False
        if values.kind == "text":
            self._find_padding(values)
            self._add_texts(values, start, each)

    def _find_padding(self, values: ColumnValues) -> None:
        """Find digits that begin with a zero, which make the column a category unless the user says otherwise."""
        if self.padded is None and self.name not in self.options.numeric:
            padded = values.match(ZERO_PADDED)
            self.padded = str(values.find_first(padded, 0)[1]) if padded.any() else None

    def _count_texts(self, values: ColumnValues) -> None:
        """Count the distinct values until they are too many for a category; those of numbers need not be counted."""
        is_number = values.to_numbers() is not None and not self.as_category
        most = MAX_COUNTED if self.options.min_frequency is None else MAX_COUNTED_TO_GROUP
        limit = self.max_categories if is_number else max(self.max_categories, most)
        if len(self.counts) > limit:
            self.is_counted = False
            return
        n_distinct, counts = values.value_counts(limit + 1)
        self.is_unique = self.is_unique and n_distinct == len(values)
        self.is_counted = self.is_counted and n_distinct <= limit
        self.counts.update(counts)

    def _add_texts(self, values: ColumnValues, start: int, each: Doubles | None) -> None:
        truths = values.to_booleans()
        self.all_boolean = self.all_boolean and truths is not None
        if truths is not None:
            self.total += float(truths.sum() if each is None else truths @ each)
        self.all_dates = self.all_dates and bool(values.match(DATE).all())
        mask = values.is_number()
        localized = ~mask & values.match(LOCALIZED_NUMBER)
        self.n_numbers += int(mask.sum())
        self.n_localized += int(localized.sum())
        if self.localized is None and localized.any():
            self.localized = values.find_first(localized, start)
        if self.bad is None and not (mask | localized).all():
            self.bad = values.find_first(~(mask | localized), start)

    def _add_numbers(self, numbers: Doubles, values: ColumnValues, start: int, each: Doubles | None) -> None:
        too_large = np.abs(numbers) > MAX_FLOAT32
        if too_large.any() and not self.as_category and self.refusal is None:
            self.refusal = TableError(
                f"{self.shown} must hold finite numbers that single precision can hold; row "
                f"{values.find_first(too_large, start)[0]} has {numbers[int(np.argmax(too_large))]}. Correct it"
                + ("." if self.source.matrix else f", or leave the column out with {self.drop}.")
            )
            return
        offsets = numbers - (start + values.where)  # held-out rows leave gaps
        self.row_offset = offsets[0] if self.row_offset is None else self.row_offset
        self.is_row_number = self.is_row_number and bool((offsets == self.row_offset).all())
        self.n_numbers += len(numbers)
        self.has_fractions = self.has_fractions or bool(((numbers < 0) | (numbers != np.floor(numbers))).any())
        self.total += float(numbers.sum() if each is None else numbers @ each)
        self.low, self.high = min(self.low, float(numbers.min())), max(self.high, float(numbers.max()))

    def resolve(self) -> list[Column] | str:
        """Return the column as it will be used, or why it is left out."""
        column = self._resolve()
        return column if isinstance(column, str) else [column]

    def _resolve(self) -> Column | str:
        if self.refusal is not None:
            raise self.refusal
        keep = self.options.keep_constant
        if not self.n_values:
            return Column(self.name, "number", mean=0.0, missing=True) if keep else "no values"
        column = self._column()
        if column.kind == "category" and not column.categories:
            return "only rare values"
        by_number = self.n_numbers == self.n_values and column.kind != "category"
        constant = self.low == self.high if by_number else len(self.counts) == 1
        return "constant" if constant and not self.n_missing and not keep else column

    def _column(self) -> Column:
        missing, is_text = self.n_missing > 0, self.kinds == {"text"}
        if "date" in self.kinds or (is_text and self.all_dates and not self.as_category):
            raise TableError(
                f"{self.shown} holds dates or times, which are neither numbers nor categories. Make numbers of them "
                f"first (a year, a weekday, an hour, days since an event), by `dates={[self.name]}` for example, or "
                f"leave it out with {self.drop}."
            )
        if self.as_category or self.has_padded_numbers:
            return self._category()
        if self.kinds == {"boolean"} or (is_text and self.all_boolean):
            return Column(self.name, "boolean", self.total / self.weight, missing)
        if self.n_numbers == self.n_values:
            return Column(self.name, "number", self.total / self.weight, missing)
        self._refuse_mixed_numbers()
        return self._category()

    @property
    def has_padded_numbers(self) -> bool:
        """Return True if these are mostly digits, some begin with a zero, and nothing says that they are quantities."""
        mostly = 2 * self.n_numbers > self.n_values
        return self.padded is not None and mostly and not self.has_fractions and not self.as_category

    def id_notes(self, column: Column) -> Iterator[str]:
        """Iterate over notes on a column that may only identify the rows."""
        if self.n_values < MIN_ROWS_FOR_ID:
            return
        if self.is_row_number and column.kind == "number":
            how = "" if self.source.matrix else f" with {self.drop}"
            yield f"column {self.name!r} counts the rows; if it only numbers them, leave it out{how}."
        elif column.kind == "category" and not column.grouped and self.distinct_share >= NEAR_ID_SHARE:
            yield (
                f"column {self.name!r} has {len(self.counts):,} different values in {self.n_values:,} rows; if it only "
                f"names them, leave it out with {self.drop}."
            )

    def notes(self, column: Column) -> Iterator[str]:
        """Iterate over notes on the column for the user."""
        yield from self.id_notes(column)
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
        if column.grouped:
            yield f"column {self.name!r}: values rarer than `min_frequency` share one encoding."

    def _refuse_mixed_numbers(self) -> None:
        if 2 * (self.n_numbers + self.n_localized) <= self.n_values:
            return
        if_names = f"if the column holds names of categories, say {self.categorical}."
        bad = f"row {self.bad[0]} has {self.bad[1]!r}" if self.bad else ""
        if_missing = f"means a missing value, say `missing={[self.bad[1]]}`; " if self.bad else ""
        if self.localized is not None:
            row, value = self.localized
            in_memory = self.source.kind == "table"
            how = "Write them so" if in_memory else FORMAT_REMEDY
            problem = f"must hold numbers such as 1234{self.source.number_format.decimal}5; row {row} has {value!r}"
            more = f". {how}. Besides, {bad}. If that {if_missing}" if bad else f". {how}; "
            raise TableError(f"{self.shown} {problem}{more}{if_names}")
        if bad:
            raise TableError(
                f"{self.shown} must hold numbers; {self.n_numbers:,} of {self.n_values:,} values are, but {bad}. "
                f"If that {if_missing}{if_names}"
            )

    @property
    def distinct_share(self) -> float:
        """Return the share of the values that are distinct, where it is known; else 1 or 0."""
        return len(self.counts) / max(1, self.n_values) if self.is_counted else float(self.is_unique)

    def _category(self) -> Column:
        names = self.counts if self.min_count is None else [t for t, n in self.counts.items() if n >= self.min_count]
        many = len(names) > self.max_categories
        rare = self.min_count is None and self.n_values >= MIN_ROWS_FOR_ID and not self.as_category
        rare = rare and self.distinct_share >= ID_SHARE
        if many or rare:
            self._refuse_category(rare=rare)
        return Column(
            *(self.name, "category"),
            missing=self.n_missing > 0,
            categories=tuple(sorted(names)),
            grouped=len(names) < len(self.counts) or not self.is_counted,
        )

    @property
    def min_count(self) -> float | None:
        """Return the number of rows below which values are grouped; None if none are."""
        share = self.options.min_frequency
        return share if share is None or share >= 1 else share * (self.n_values + self.n_missing)

    def _refuse_category(self, *, rare: bool) -> None:
        padded = self.has_padded_numbers
        what = "hardly any value twice" if rare else f"more than {self.max_categories} different values"
        more = "" if rare else ", group rare values with `min_frequency=10`"
        if not rare and self.is_counted and len(self.counts) < MAX_COUNTED:
            more += f", or allow so many features with `max_categories={len(self.counts)}`"
        numbers = f"If these are numbers, say `numeric={[self.name]}`. " if padded else ""
        because = f" (digits that begin with a zero, such as {self.padded!r}, are names)" if padded else ""
        raise TableError(
            f"{self.shown} is a category{because} with {what}, such as {format_names(list(self.counts)[:3])}. {numbers}"
            f"Leave it out with {self.drop}{more}."
        )


class DateProfile:
    """Statistics of the parts of a column of dates, updated batch by batch, for both orders of day and month."""

    def __init__(self, name: str, source: TableLike, options: ColumnOptions) -> None:
        self.name, self.source, self.options = name, source, replace(options, keep_constant=False)
        self.parts: dict[bool, dict[str, ColumnProfile]] = {True: {}, False: {}}
        self.n_missing = 0
        self.bad: tuple[int, Any] | None = None
        self.refusal: TableError | None = None

    def add(self, values: ColumnValues, start: int, weights: Doubles | None = None) -> None:
        """Add a batch; an order by which one of its values is no date is given up."""
        self.n_missing += len(values.present) - len(values)
        if not len(values):
            return
        for day_first, profiles in list(self.parts.items()):
            parts, is_readable = extract_date_parts(values, day_first=day_first)
            if not is_readable.all() or (profiles and profiles.keys() != parts.keys()):
                wrong = np.ones(len(values), dtype=bool) if is_readable.all() else ~is_readable
                self.bad = self.bad or values.find_first(wrong, start)
                del self.parts[day_first]
                continue
            for part, numbers in parts.items():
                own = replace(values, kind="number", array=numbers, texts=None)
                name = Column.of_date(self.name, part).name
                profile = profiles.setdefault(part, ColumnProfile(name, self.source, self.options))
                profile.add(own, start, weights)

    def resolve(self) -> list[Column] | str:
        """Return the columns of the parts that change, or why there are none."""
        shown = f"{self.source.path}: column {self.name!r}"
        if self.refusal is not None:
            raise self.refusal
        if not self.parts:
            row, value = self.bad or (0, None)
            raise TableError(
                f"{shown} must hold dates such as 2024-01-31 or 31.1.2024, times of day or time differences; row {row} "
                f"has {str(value)!r}. Correct it, or say `missing={[str(value)]}` if that means a missing value."
            )
        found = [self._columns(day_first) for day_first in self.parts]
        if len(found) == 2 and found[0] != [replace(column, day_first=True) for column in found[1]]:
            raise TableError(
                f"{shown} must hold dates whose day and month can be told apart; it has dates such as 3/4/2024, with "
                "no number above 12. Write the year first: 2024-04-03."
            )
        return found[0] or ("constant" if any(self.parts.values()) else "no values")

    def _columns(self, day_first: bool) -> list[Column]:
        return [
            Column.of_date(
                *(self.name, part), mean=one.total / one.weight, missing=self.n_missing > 0, day_first=day_first
            )
            for part, one in self.parts[day_first].items()
            if one.low < one.high
        ]

    def notes(self, column: Column) -> Iterator[str]:
        """Iterate over notes on a part: none."""
        yield from ()

    id_notes = notes


class TableProfile:
    """Statistics of a table, updated batch by batch; ``features`` are the columns that may be used."""

    def __init__(self, source: TableLike, features: list[str], options: ColumnOptions) -> None:
        self.source, self.options = source, options
        self.missing = tuple(dict.fromkeys([*MISSING, *options.missing]))
        self.columns: dict[str, ColumnProfile | DateProfile] = {
            name: (DateProfile if name in options.dates else ColumnProfile)(name, source, options) for name in features
        }

    def add(
        self, batch: Any, start: int, rows: npt.NDArray[np.bool_] | None = None, weights: Doubles | None = None
    ) -> None:
        """Add a batch whose first row is row ``start``; ``rows`` marks those to learn from, None for all.

        ``weights`` are sample weights for the means that replace missing numbers.
        """
        for name, profile in self.columns.items():
            try:
                values = extract_values(batch.column(name), name, self.missing, self.source.number_format)
            except TableError as error:
                profile.refusal = profile.refusal or TableError(f"{self.source.path}: {error}")
                continue
            profile.add(values if rows is None else values.select(rows), start, weights)

    def preprocessing(self, target: str | None = None) -> tuple[Preprocessing, list[str]]:
        """Return the preprocessing that the table needs and notes for the user, or raise for all unusable columns."""
        source, left_out = self.source, dict.fromkeys(self.options.drop, "dropped")
        if self.options.id is not None:
            left_out[self.options.id] = "the id"
        columns: list[Column] = []
        notes: list[str] = []
        refused: dict[str, str] = {}
        for name, profile in self.columns.items():
            try:
                found = profile.resolve()
            except TableError as error:
                refused[name] = str(error)
                continue
            if isinstance(found, str):
                left_out[name] = found
                continue
            columns.extend(found)
            notes.extend(note for column in found for note in profile.notes(column))
        if refused:
            raise RefusedColumns(source.path, refused, can_be_dropped=not (source.matrix or source.kind == "table"))
        if not columns:
            reasons = [f"{name!r} {'has' if why == 'no values' else 'is'} {why}" for name, why in left_out.items()]
            reason = ", ".join(reasons) or "it has none"
            raise TableError(f"{source.path} must have at least one column to learn from; {reason}.")
        inputs = tuple(name for name in source.names if name in self.columns or name in left_out)
        preprocessing = Preprocessing(
            tuple(columns),
            not source.matrix,
            self.missing,
            target,
            left_out,
            inputs,
            source.number_format,
            self.options.id,
            fill=self.options.fill,
        )
        duplicates = [name for name, count in Counter(preprocessing.feature_names).items() if count > 1]
        if duplicates:
            raise TableError(
                f"{source.path} has columns whose features would share the name {duplicates[0]!r}. Rename one."
            )
        for why, wording in LEFT_OUT.items():
            if names := [name for name, reason in left_out.items() if reason == why]:
                notes.append(f"left out, {wording}: {format_names(names)}.")
        if incomplete := list(dict.fromkeys(column.input_name for column in columns if column.missing)):
            notes.append(f"missing values in {format_names(incomplete)}: each gets an indicator feature.")
        return replace(preprocessing, notes=tuple(notes)), notes


def profile_table(
    source: TableLike,
    features: list[str],
    options: ColumnOptions,
    *,
    target: str | None = None,
    rows: npt.NDArray[np.bool_] | None = None,
    weights: Doubles | None = None,
    on_batch: Callable[[], Any] = lambda: None,
) -> tuple[Preprocessing, list[str]]:
    """Return the preprocessing that a training table needs, and notes for the user.

    ``features`` are the columns that may be used, ``rows`` marks the rows to learn from (None for all), ``weights`` are
    sample weights of all rows, ``target`` is stored, and ``on_batch`` is called after every batch.
    """
    profile = TableProfile(source, features, options)
    with reading(source.path, TableError, source.kind):
        for batch in source.batches(features):
            start = source.n_read
            part = slice(start, start + batch.num_rows)
            kept = None if rows is None else rows[part]
            profile.add(batch, start, kept, None if weights is None else weights[part])
            on_batch()
    return profile.preprocessing(target)
