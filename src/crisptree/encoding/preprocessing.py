"""The preprocessing of a table's columns, found in one pass over the training rows and stored with the model.

A number stays a number; a missing one becomes the mean of training, and if any was missing in training a feature of
its own says so. A category becomes one feature per value seen in training. Nothing else happens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.encoding.containers import ColumnValues, TableLike, extract_values
from crisptree.encoding.text_formats import (
    DATE,
    DATE_PARTS,
    DEFAULT_FORMAT,
    FORMAT_REMEDY,
    LOCALIZED_NUMBER,
    ZERO_PADDED,
    Doubles,
    NumberFormat,
    extract_date_parts,
)
from crisptree.exceptions import RefusedColumns, TableError, format_names
from crisptree.files import reading
from crisptree.targets.base import check_utf8

Rows = npt.NDArray[np.float32]

SECTION_VERSION = 1
"""Version of the section of a preprocessing in model files."""

KINDS = ("number", "boolean", "category")
MISSING = ("", "nan", "NaN")
"""Texts that mean a missing value, beside those the user names."""


@dataclass(frozen=True)
class Column:
    """One column of the table and the features it becomes."""

    name: str
    kind: str  # "number", "boolean" (the number 0 or 1, true or false as text) or "category"
    mean: float = math.nan  # replaces a missing number; NaN for categories, and where missing values are refused
    missing: bool = False  # values were missing in training; one more feature indicates them
    categories: tuple[str, ...] = ()  # the values seen in training, sorted
    grouped: bool = False  # rare values of training are not among the categories; all features are 0 for them
    part: str = ""  # of the dates in the column ``date``, which part this number is: "year", say
    date: str = ""
    day_first: bool = True  # whether dates such as 1/2/2024 begin with the day

    def __eq__(self, other: object) -> bool:
        """Compare as tuples, where NaN is itself; from Python 3.13 on a dataclass compares fields, where it is not."""
        return isinstance(other, Column) and astuple(self) == astuple(other)

    @classmethod
    def of_date(cls, date: str, part: str, **more: Any) -> Column:
        """Return the column of one part of the dates in another column.

        Examples
        --------
        >>> Column.of_date("joined", "month", mean=6.5).name
        'joined month'
        """
        return cls(f"{date} {part}", "number", part=part, date=date, **more)

    def rename(self, name: str) -> Column:
        """Return the column under another name of the table's column."""
        return replace(self, name=f"{name} {self.part}", date=name) if self.part else replace(self, name=name)

    @property
    def input_name(self) -> str:
        """Return the column of the table that it is made of."""
        return self.date or self.name

    @property
    def is_consistent(self) -> bool:
        """Return True for a column that a training can have made."""
        is_part = self.kind == "number" and self.part in DATE_PARTS and bool(self.date)
        if self.kind not in KINDS or math.isinf(self.mean) or not (is_part or not self.part):
            return False
        return len(set(self.categories)) == len(self.categories) and (self.kind == "category" or not self.categories)

    @property
    def features(self) -> tuple[str, ...]:
        """Return the names of its features.

        Examples
        --------
        >>> Column("color", "category", categories=("blue", "red"), missing=True).features
        ('color=blue', 'color=red', 'color is missing')
        """
        own = tuple(f"{self.name}={value}" for value in self.categories) if self.kind == "category" else (self.name,)
        return (*own, f"{self.name} is missing") if self.missing else own


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """The columns that a model uses, in the order of its features.

    Examples
    --------
    >>> columns = (Column("age", "number", mean=40.0, missing=True), Column("sex", "category", categories=("f", "m")))
    >>> Preprocessing(columns).feature_names
    ('age', 'age is missing', 'sex=f', 'sex=m')
    >>> Preprocessing(columns).origin.tolist()
    [0, 0, 1, 1]
    """

    columns: tuple[Column, ...]  # in the order of the training table
    named: bool = True  # columns are matched by name; those of .npz and LIBSVM files by position
    missing: tuple[str, ...] = MISSING  # texts that mean a missing value
    target: str | None = None  # the column that was learned
    left_out: dict[str, str] = field(default_factory=dict)  # columns that are not used, and why
    inputs: tuple[str, ...] = ()  # all columns of the training table, in its order; empty in older files
    number_format: NumberFormat = DEFAULT_FORMAT
    id: str | None = None  # the column that names the rows, which is no feature
    notes: tuple[str, ...] = ()  # notes on the training table for the user
    fill: bool = True  # values missing where none was in training are filled; otherwise they are refused

    def __post_init__(self) -> None:
        try:
            check_utf8((*self.input_names, *self.feature_names), "names of columns and categories")
            check_utf8([self.target], "the name of y")
        except ValueError as error:
            raise TableError(str(error)) from None

    @classmethod
    def plain(cls, n_features: int, names: Any = None, means: Any = None) -> Preprocessing:
        """Return the preprocessing of a model without one: numbers, and their means where one is missing."""
        columns = [f"x{index}" for index in range(n_features)] if names is None else [str(name) for name in names]
        fill = [math.nan] * n_features if means is None else [float(mean) for mean in means]
        kept = tuple(Column(name, "number", mean=mean) for name, mean in zip(columns, fill, strict=True))
        return cls(kept, named=names is not None)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Return the names of all features."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def n_features(self) -> int:
        """Return the number of features."""
        return len(self.feature_names)

    @cached_property
    def origin(self) -> npt.NDArray[np.int64]:
        """Return the index of the column that every feature comes from.  (n_features,)"""
        return np.repeat(np.arange(len(self.columns)), [len(column.features) for column in self.columns])

    @property
    def groups(self) -> tuple[tuple[int, int], ...]:
        """Return the first feature and the one after the last of every column that became several.

        Examples
        --------
        >>> columns = (Column("age", "number"), Column("sex", "category", categories=("f", "m"), missing=True))
        >>> Preprocessing(columns).groups
        ((1, 4),)
        """
        bounds = np.searchsorted(self.origin, np.arange(len(self.columns) + 1)).tolist()
        return tuple((begin, end) for begin, end in pairwise(bounds) if end - begin > 1)

    @property
    def missing_indicators(self) -> dict[int, int]:
        """Map features whose values may be missing to their missing-value indicators, except categories."""
        firsts = np.flatnonzero(np.diff(self.origin, prepend=-1))
        return {
            int(first): int(first) + 1
            for first, column in zip(firsts, self.columns, strict=True)
            if column.missing and column.kind != "category"
        }

    @property
    def input_names(self) -> tuple[str, ...]:
        """Return the columns of the table, those that are left out too where they are known."""
        return self.inputs or tuple(dict.fromkeys(column.input_name for column in self.columns))

    @property
    def keeps_numbers(self) -> bool:
        """Return True if every column stays the number that it is, so that rows of numbers need no encoding."""
        plain = all(column.kind != "category" and not column.missing and not column.part for column in self.columns)
        return plain and len(self.input_names) == len(self.columns)

    def by_input(self, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Sum values of features by column of the table, 0 for one that is left out.  (n_inputs,)

        Examples
        --------
        >>> columns = (Column("sex", "category", categories=("f", "m")), Column("age", "number"))
        >>> Preprocessing(columns, inputs=("id", "sex", "age")).by_input(np.array([0.25, 0.25, 0.5])).tolist()
        [0.0, 0.5, 0.5]
        """
        indices = {name: index for index, name in enumerate(self.input_names)}
        inputs = np.array([indices[column.input_name] for column in self.columns], dtype=np.int64)
        return np.bincount(inputs[self.origin], weights=shares, minlength=len(indices)).astype(np.float64)

    def features_of(self, name: str) -> tuple[int, ...]:
        """Return the indices of the features of a column, all parts of a date; none for one that is left out.

        Examples
        --------
        >>> columns = (Column("age", "number", missing=True), Column("sex", "category", categories=("f", "m")))
        >>> Preprocessing(columns).features_of("sex")
        (2, 3)
        """
        own = [number for number, column in enumerate(self.columns) if column.input_name == name]
        return tuple(np.flatnonzero(np.isin(self.origin, own)).tolist())

    def describe(self, feature: int, value: float) -> str:
        """Describe the value of a feature in terms of the table.

        Examples
        --------
        >>> columns = (Column("age", "number", mean=40, missing=True), Column("sex", "category", categories=("f", "m")))
        >>> [Preprocessing(columns).describe(feature, value) for feature, value in enumerate([40, 1, 0, 1])]
        ['age = 40', 'age is missing', 'sex is not f', 'sex is m']
        """
        origin = int(self.origin[feature])
        column = self.columns[origin]
        position = feature - int(np.searchsorted(self.origin, origin))
        if column.kind == "category" and position < len(column.categories):
            return f"{column.name} is {'' if value else 'not '}{column.categories[position]}"
        if position > 0 or column.kind == "category":
            return f"{column.name} is {'' if value else 'not '}missing"
        if column.kind == "boolean" and value in (0, 1):
            return f"{column.name} is {'true' if value else 'false'}"
        return f"{column.name} = {value:.6g}"


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
        if values.kind == "text":
            self._find_padding(values)
        if numbers is not None:
            self.all_boolean = self.all_boolean and values.kind == "boolean"
            self.all_dates = False
            self._add_numbers(numbers, values, start, each)
        else:
            self.is_row_number = False
            if values.kind == "text":
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
        if self.refusal is not None:
            raise self.refusal
        keep = self.options.keep_constant
        if not self.n_values:
            return [Column(self.name, "number", mean=0.0, missing=True)] if keep else "no values"
        column = self._column()
        if column.kind == "category" and not column.categories:
            return "only rare values"
        by_number = self.n_numbers == self.n_values and column.kind != "category"
        constant = self.low == self.high if by_number else len(self.counts) == 1
        return "constant" if constant and not self.n_missing and not keep else [column]

    def _column(self) -> Column:
        missing = self.n_missing > 0
        if self.holds_dates:
            raise TableError(
                f"{self.shown} holds dates or times, which are neither numbers nor categories. Make numbers of them "
                f"first (a year, a weekday, an hour, days since an event), by `dates={[self.name]}` for example, or "
                f"leave it out with {self.drop}."
            )
        if self.as_category or self.has_padded_numbers:
            return self._category()
        if self.kinds == {"boolean"} or (self.kinds == {"text"} and self.all_boolean):
            return Column(self.name, "boolean", self.total / self.weight, missing)
        if self.n_numbers == self.n_values:
            return Column(self.name, "number", self.total / self.weight, missing)
        self._refuse_mixed_numbers()
        return self._category()

    @property
    def holds_dates(self) -> bool:
        """Return True for dates, times of day and time differences, by type or all written so."""
        return "date" in self.kinds or (self.kinds == {"text"} and self.all_dates and not self.as_category)

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
        """Iterate over other notes on the column for the user."""
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


class TableProfile:
    """Statistics of a table, updated batch by batch; ``features`` are the columns that may be used."""

    def __init__(self, source: TableLike, features: list[str], options: ColumnOptions) -> None:
        self.source, self.options = source, options
        self.missing = tuple(dict.fromkeys([*MISSING, *options.missing]))
        self.id_notes: list[str] = []
        self.columns: dict[str, ColumnProfile | DateProfile] = {
            name: (DateProfile if name in options.dates else ColumnProfile)(name, source, options) for name in features
        }

    def add(
        self,
        table: TableLike,
        rows: npt.NDArray[np.bool_] | None = None,
        weights: Doubles | None = None,
        *,
        first_row: int = 0,
        on_batch: Callable[[], Any] = lambda: None,
    ) -> None:
        """Add a table whose first row is row ``first_row``; ``rows`` marks those to learn from, None for all.

        ``weights`` are sample weights for the means that replace missing numbers; ``on_batch`` is called after every
        batch.
        """
        for batch in table.batches(list(self.columns)):
            start, part = table.n_read, slice(table.n_read, table.n_read + batch.num_rows)
            kept = None if rows is None else rows[part]
            self._add_batch(batch, first_row + start, kept, None if weights is None else weights[part])
            on_batch()

    def _add_batch(self, batch: Any, start: int, rows: npt.NDArray[np.bool_] | None, weights: Doubles | None) -> None:
        for name, profile in self.columns.items():
            try:
                values = extract_values(batch.column(name), name, self.missing, self.source.number_format)
            except TableError as error:
                profile.refusal = profile.refusal or TableError(f"{self.source.path}: {error}")
                continue
            profile.add(values if rows is None else values.select(rows), start, weights)

    def preprocessing(self, target: str | None = None) -> Preprocessing:
        """Return the preprocessing that the table needs, with notes, or raise for all unusable columns."""
        source, left_out = self.source, dict.fromkeys(self.options.drop, "dropped")
        if self.options.id is not None:
            left_out[self.options.id] = "the id"
        columns: list[Column] = []
        notes: list[str] = []
        refused: dict[str, str] = {}
        self.id_notes = []
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
            if isinstance(profile, ColumnProfile):
                self.id_notes += (ids := [*profile.id_notes(found[0])])
                notes += [*ids, *profile.notes(found[0])]
        if refused:
            in_file, profiles = not (source.matrix or source.kind == "table"), self.columns
            dates = [name for name in refused if isinstance(one := profiles[name], ColumnProfile) and one.holds_dates]
            raise RefusedColumns(source.path, refused, can_be_dropped=in_file, dates=dates)
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
        return replace(preprocessing, notes=tuple(notes))


def profile_table(
    source: TableLike, features: list[str], options: ColumnOptions, *, target: str | None = None, **how: Any
) -> Preprocessing:
    """Return the preprocessing that a training table needs.

    ``features`` are the columns that may be used, ``target`` is stored, ``how`` are arguments of ``TableProfile.add``.
    """
    profile = TableProfile(source, features, options)
    with reading(source.path, TableError, source.kind):
        profile.add(source, **how)
    return profile.preprocessing(target)
