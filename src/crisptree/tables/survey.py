"""What the columns of a training table hold, found in one pass; the result is a ``Preprocessing``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.remedies import Note, Remedy
from crisptree.tables.errors import TableError, listed
from crisptree.tables.preprocessing import MISSING, Column, Preprocessing
from crisptree.tables.source import Source
from crisptree.tables.values import (
    COMMAS,
    DATE,
    Values,
    booleans,
    first_row,
    matches,
    matching,
    number_mask,
    numbers,
    texts,
    values_of,
)

MAX_CATEGORIES = 100
FEWEST_FOR_AN_ID = 20
"""A text column of so many rows, hardly any with the same value, names the rows and describes nothing."""

NO_VALUES = "no values"
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Choices:
    """What the user says about the columns."""

    drop: Collection[str] = ()
    categorical: Collection[str] = ()
    missing: Collection[str] = ()
    max_categories: int = MAX_CATEGORIES
    keep_constant: bool = False


@dataclass
class _ColumnSurvey:
    """All that was seen of one column so far."""

    name: str
    shown: str
    most: int
    as_category: bool
    may_drop: bool = True
    n_values: int = 0
    n_missing: int = 0
    n_numbers: int = 0
    total: float = 0.0
    low: float = np.inf
    high: float = -np.inf
    kinds: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    bad: tuple[int, str] | None = None
    hardly_any_twice: bool = True
    all_boolean: bool = True
    all_dates: bool = True
    all_with_commas: bool = True
    is_row_number: bool = True

    @property
    def drop(self) -> Remedy:
        return Remedy("drop", [self.name])

    @property
    def categorical(self) -> Remedy:
        return Remedy("categorical", [self.name])

    def add(self, values: Values, start: int) -> None:
        self.n_missing += len(values.present) - len(values.array)
        if not len(values.array):
            return
        self.kinds.add(values.kind)
        self.n_values += len(values.array)
        found = numbers(values)
        if values.kind == "text" or self.as_category:
            self._count_texts(values)
        if found is not None:
            self.all_boolean = self.all_boolean and values.kind == "boolean"
            self.all_dates = False
            self._add_numbers(found, values, start)
            return
        self.is_row_number = False
        if values.kind == "text":
            self._add_texts(values, start)

    def _count_texts(self, values: Values) -> None:
        """Count the different values, while they are not too many; that is all one needs to know then."""
        if len(self.counts) > self.most:
            return
        counts = texts(values).value_counts()
        self.hardly_any_twice = self.hardly_any_twice and len(counts) == len(values.array)
        for entry in counts[: self.most + 1].to_pylist():
            self.counts[entry["values"]] += entry["counts"]

    def _add_texts(self, values: Values, start: int) -> None:
        self.all_boolean = self.all_boolean and booleans(values) is not None
        self.all_dates = self.all_dates and matches(values, DATE)
        mask = number_mask(values)
        self.all_with_commas = self.all_with_commas and bool((mask | matching(values, COMMAS)).all())
        self.n_numbers += int(mask.sum())
        if self.bad is None and not mask.all():
            self.bad = (first_row(~mask, values, start), values.array[int(np.argmin(mask))].as_py())

    def _add_numbers(self, found: npt.NDArray[np.float64], values: Values, start: int) -> None:
        too_large = np.abs(found) > LARGEST
        if too_large.any() and not self.as_category:
            row = first_row(too_large, values, start)
            raise TableError(
                f"{self.shown} must hold finite numbers that single precision can hold; row {row} "
                f"has {found[int(np.argmax(too_large))]}. Correct it"
                + (f", or leave the column out with {self.drop}." if self.may_drop else "."),
                self.drop,
            )
        self.is_row_number = self.is_row_number and bool((np.diff(found) == 1).all())
        if self.n_numbers and self.high + 1 != found[0]:
            self.is_row_number = False
        self.n_numbers += len(found)
        self.total += float(found.sum())
        self.low, self.high = min(self.low, float(found.min())), max(self.high, float(found.max()))

    def column(self) -> Column | str:
        """The column as it will be used, or why it is left out."""
        if not self.n_values:
            return NO_VALUES
        if "date" in self.kinds or (self.kinds == {"text"} and self.all_dates and not self.as_category):
            raise TableError(
                f"{self.shown} holds dates, which are neither numbers nor categories. Make numbers "
                f"of them first (a year, a weekday, days since an event), or leave it out with {self.drop}.",
                self.drop,
            )
        if self.as_category:
            return self._category()
        if self.kinds == {"boolean"} or (self.kinds == {"text"} and self.all_boolean):
            return Column(self.name, "boolean", self._boolean_mean(), self.n_missing > 0)
        if self.n_numbers == self.n_values:
            return Column(self.name, "number", self.total / self.n_values, self.n_missing > 0)
        if self.all_with_commas and self.bad is not None:
            row, value = self.bad
            raise TableError(
                f"{self.shown} must hold numbers with a point and no marks of thousands, such as 1234.5; row {row} has "
                f"{value!r}. Write them so; or, if they are names of categories, say {self.categorical}.",
                self.categorical,
            )
        if 2 * self.n_numbers > self.n_values and self.bad is not None:
            row, value = self.bad
            missing = Remedy("missing", [value])
            raise TableError(
                f"{self.shown} must hold numbers; {self.n_numbers:,} of {self.n_values:,} values are, but row {row} "
                f"has {value!r}. If that means a missing value, say {missing}; if the column holds names of "
                f"categories, say {self.categorical}.",
                missing,
                self.categorical,
            )
        return self._category()

    def _category(self) -> Column:
        many = len(self.counts) > self.most
        different = self.hardly_any_twice if many else len(self.counts) == self.n_values
        rare = different and self.n_values >= FEWEST_FOR_AN_ID and not self.as_category
        if many or rare:
            what = "hardly any value twice" if rare else f"more than {self.most} different values"
            more_features = Remedy("max_categories", 10 * self.most)
            more = "" if rare else f", or allow so many features with {more_features}"
            raise TableError(
                f"{self.shown} is a category with {what}, such as {listed(list(self.counts)[:3])}. Leave it out with "
                f"{self.drop}{more}.",
                self.drop,
                more_features,
            )
        return Column(self.name, "category", missing=self.n_missing > 0, categories=tuple(sorted(self.counts)))

    def _boolean_mean(self) -> float:
        if "text" not in self.kinds:
            return self.total / self.n_values
        return sum(count for text, count in self.counts.items() if text.lower() == "true") / self.n_values

    @property
    def constant(self) -> bool:
        if self.n_missing:
            return False
        return self.low == self.high if self.n_numbers == self.n_values else len(self.counts) == 1


def survey(
    source: Source,
    features: list[str],
    choices: Choices,
    *,
    target: str | None = None,
    rows: npt.NDArray[np.bool_] | None = None,
    on_batch: Callable[[], Any] = lambda: None,
) -> tuple[Preprocessing, list[str]]:
    """The preprocessing that a training table needs, and what its owner should know.

    Parameters
    ----------
    source : Source
        The table.
    features : list of str
        Its columns that may be features.
    choices : Choices
        What the user says about them.
    target : str, default=None
        The column to learn, kept for later.
    rows : ndarray of bool, default=None
        The rows to learn from; None for all.
    on_batch : callable
        Called after every piece.
    """
    missing = tuple(dict.fromkeys([*MISSING, *choices.missing]))
    seen = {
        name: _ColumnSurvey(
            name,
            f"{source.path}: column {name!r}",
            choices.max_categories,
            name in choices.categorical,
            may_drop=not source.matrix,
        )
        for name in features
    }
    start = 0
    for batch in source.batches(features):
        kept = None if rows is None else rows[start : start + batch.num_rows]
        for name in features:
            values = values_of(batch.column(name), name, missing)
            seen[name].add(values if kept is None else values.only(kept), start)
        start += batch.num_rows
        on_batch()
    columns, left_out, notes = [], dict.fromkeys(choices.drop, "dropped"), []
    for name, what in seen.items():
        column = what.column()
        if column == NO_VALUES and choices.keep_constant:
            column = Column(name, "number", mean=0.0, missing=True)  # it keeps its place
        if isinstance(column, str):
            left_out[name] = column
        elif what.constant and not choices.keep_constant:
            left_out[name] = "constant"
        else:
            columns.append(column)
            if what.is_row_number and column.kind == "number" and what.n_values >= FEWEST_FOR_AN_ID:
                how = "" if source.matrix else f" with {what.drop}"
                notes.append(
                    Note(f"column {name!r} counts the rows; if it only numbers them, leave it out{how}.", what.drop)
                )
    if not columns:
        raise TableError(f"{source.path} must have at least one column to learn from; {_nothing_left(left_out)}.")
    preprocessing = Preprocessing(tuple(columns), not source.matrix, missing, target, left_out)
    twice = [name for name, count in Counter(preprocessing.feature_names).items() if count > 1]
    if twice:
        raise TableError(f"{source.path} has columns whose features would share the name {twice[0]!r}. Rename one.")
    return preprocessing, notes + _notes(left_out, columns)


def _nothing_left(left_out: dict[str, str]) -> str:
    reasons = [f"{name!r} {'has' if why == NO_VALUES else 'is'} {why}" for name, why in left_out.items()]
    return ", ".join(reasons) or "it has none"


def _notes(left_out: dict[str, str], columns: list[Column]) -> list[str]:
    notes = []
    for why in ("constant", NO_VALUES):
        names = [name for name, reason in left_out.items() if reason == why]
        if names:
            notes.append(f"left out, {'constant' if why == 'constant' else 'without any value'}: {listed(names)}.")
    incomplete = [column.name for column in columns if column.missing]
    if incomplete:
        notes.append(f"missing values in {listed(incomplete)}: each gets one more feature that tells where.")
    return notes
