"""The preprocessing of a table's columns, explicit, frozen and stored with the model, and its application to rows.

A number stays a number; a missing one becomes the mean of training, and if any was missing in training a feature of
its own says so. A category becomes one feature per value seen in training. Nothing else happens.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from types import UnionType
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.encoding.containers import ColumnValues, TableLike, extract_values
from crisptree.encoding.text_formats import (
    DATE_PARTS,
    DEFAULT_FORMAT,
    FORMAT_REMEDY,
    LOCALIZED_NUMBER,
    NumberFormat,
    extract_date_parts,
)
from crisptree.exceptions import RefusedColumns, TableError, format_count, format_names, suggest_name
from crisptree.files import reading
from crisptree.targets.base import check_utf8

Rows = npt.NDArray[np.float32]

VERSION = 1
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

    def section(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """Return what a model file stores: a JSON object and arrays."""
        columns = [
            {"name": column.name, "kind": column.kind}
            | ({"categories": list(column.categories)} if column.categories else {})
            | ({"grouped": True} if column.grouped else {})
            | ({"part": column.part, "date": column.date, "day_first": column.day_first} if column.part else {})
            for column in self.columns
        ]
        content = {"version": VERSION, "named": self.named, "missing": list(self.missing), "target": self.target}
        mean = np.array([column.mean for column in self.columns], dtype=np.float64)
        missing = np.array([column.missing for column in self.columns], dtype=np.uint8)
        further = {"left_out": dict(self.left_out), "inputs": list(self.inputs), "columns": columns}
        if self.number_format != DEFAULT_FORMAT:
            further["written"] = asdict(self.number_format)
        if self.id is not None:
            further["id"] = self.id
        if not self.fill:
            further["handle_missing"] = "error"
        if self.notes:
            further["notes"] = list(self.notes)
        return {**content, **further}, {"mean": mean, "missing": missing}

    @classmethod
    def from_section(cls, content: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Preprocessing:
        """Restore what ``section`` returned; types and lengths are checked."""
        if content.get("version") != VERSION:
            raise TableError(
                f"the preprocessing in the model file has version {content.get('version')!r}; this version of "
                f"crisptree reads version {VERSION}. Update it."
            )
        try:
            mean, missing = _check_array(arrays["mean"], "f"), _check_array(arrays["missing"], "u")
            entries = _of_type(content["columns"], list)
            if not len(entries) == len(mean) == len(missing):
                raise TypeError("columns and arrays must be of one length")
            columns = tuple(_column(*entry) for entry in zip(entries, mean, missing, strict=True))
            if len({column.name for column in columns}) < len(columns):
                raise TypeError("columns must have different names")
            return cls(
                columns,
                named=_of_type(content["named"], bool),
                missing=tuple(_of_type(text, str) for text in content["missing"]),
                target=_of_type(content["target"], str | None),
                left_out={_of_type(name, str): _of_type(why, str) for name, why in content["left_out"].items()},
                inputs=_inputs(content.get("inputs", []), columns),
                number_format=_number_format(content.get("written", {})),
                id=_of_type(content.get("id"), str | None),
                notes=tuple(_of_type(note, str) for note in _of_type(content.get("notes", []), list)),
                fill=content.get("handle_missing") != "error",
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise TableError(
                f"the preprocessing in the model file is damaged ({error}). Write the file again."
            ) from error


@dataclass(frozen=True, eq=False)
class EncodedInput:
    """X of a fit, an array or batches, with the preprocessing that has encoded its rows."""

    X: Any
    preprocessing: Preprocessing


def _column(entry: Any, mean: Any, missing: Any) -> Column:
    categories = tuple(_of_type(value, str) for value in entry.get("categories", ()))
    if entry["kind"] not in KINDS or (categories and entry["kind"] != "category"):
        raise TypeError(f"a column of kind {entry['kind']!r}")
    if math.isinf(mean) or len(set(categories)) < len(categories):
        raise TypeError(f"the column {entry['name']!r}")
    part = _of_type(entry.get("part", ""), str)
    if part and (part not in DATE_PARTS or entry["kind"] != "number"):
        raise TypeError(f"the part {part!r} of a date")
    return Column(
        _of_type(entry["name"], str),
        entry["kind"],
        float(mean),
        bool(missing),
        categories,
        entry.get("grouped") is True,
        part,
        _of_type(entry["date"], str) if part else "",
        entry.get("day_first") is not False,
    )


def _inputs(names: Any, columns: tuple[Column, ...]) -> tuple[str, ...]:
    """Parse the names of all columns of the training table, which include those that are used; none in older files."""
    inputs = tuple(_of_type(name, str) for name in _of_type(names, list))
    if inputs and (len(set(inputs)) < len(inputs) or not {column.input_name for column in columns} <= set(inputs)):
        raise TypeError("the table's columns must be different, and those that are used among them")
    return inputs


def _number_format(content: Any) -> NumberFormat:
    """Parse the number format; the default where the file has none."""
    decimal, thousands = content.get("decimal", "."), content.get("thousands")
    units = tuple(_of_type(unit, str) for unit in _of_type(content.get("units", []), list))
    return NumberFormat(_of_type(decimal, str), _of_type(thousands, str | None), units)


def _check_array(array: npt.NDArray[Any], kind: str) -> npt.NDArray[Any]:
    if array.ndim != 1 or array.dtype.kind != kind:
        raise TypeError(f"an array of {array.dtype} with shape {array.shape}")
    return array


def _of_type(value: Any, kind: type | UnionType) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} must be of type {getattr(kind, '__name__', kind)}")
    return value


class RowEncoder:
    """Apply a preprocessing to one table, and count what training did not know.

    ``without`` are columns that are no features, where columns are found by position; ``missing`` are more texts that
    mean a missing value. With ``fill``, by default that of the preprocessing, the mean replaces a value that is
    missing where none was in training; otherwise that is an error. With ``is_training``, rows are those of the
    training table, held-out ones included: errors name the remedies of a fit.
    """

    def __init__(
        self,
        preprocessing: Preprocessing,
        source: TableLike,
        *,
        without: Collection[str] = (),
        missing: Collection[str] = (),
        fill: bool | None = None,
        is_training: bool = False,
    ) -> None:
        self.preprocessing, self.source, self.is_training = preprocessing, source, is_training
        self.fill = preprocessing.fill if fill is None else fill
        self.missing = {*preprocessing.missing, *missing}
        self.names = _match_columns(preprocessing, source, without)
        self.unknown: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.filled: Counter[str] = Counter()

    def encode(self, batch: Any, start: int) -> Rows:
        """Encode the rows of a batch whose first one is row ``start`` of the table, counted from 0.  (n, n_features)"""
        X = np.zeros((batch.num_rows, self.preprocessing.n_features), dtype=np.float32)
        place, refused = 0, {}
        for name, column in zip(self.names, self.preprocessing.columns, strict=True):
            width = len(column.features)
            try:
                self._encode_column(column, batch.column(name), X[:, place : place + width], start)
            except TableError as error:
                refused[column.input_name] = str(error)
            place += width
        if refused:
            raise RefusedColumns(self.source.path, refused)
        return X

    def _encode_column(self, column: Column, given: Any, part: Rows, start: int) -> None:
        values = self._extract(column, given, start)
        if not (self.fill or column.missing or values.present.all()):
            self._refuse_missing(column, values, start)
        if column.kind == "category":
            self._encode_category(column, values, part)
        else:
            self._encode_number(column, values, part, start)
        if column.missing:
            part[~values.present, -1] = 1
        elif not values.present.all():
            self.filled[column.name] += int((~values.present).sum())

    def _extract(self, column: Column, given: Any, start: int) -> ColumnValues:
        """Extract the values of a column, of a date those of its part."""
        values = extract_values(given, column.input_name, self.missing, self.source.number_format)
        if not column.part or not len(values):
            return values
        parts, is_readable = extract_date_parts(values, day_first=column.day_first)
        if column.part not in parts or not is_readable.all():
            wrong = ~is_readable if column.part in parts else np.ones(len(values), dtype=bool)
            row, value = values.find_first(wrong, start)
            raise TableError(
                f"{self.source.path}: column {column.input_name!r} must hold dates or times, as in training; row "
                f"{row} has {str(value)!r}. Correct it, or leave the row out."
            )
        return replace(values, kind="number", array=parts[column.part], texts=None)

    def encode_all(
        self, on_batch: Callable[[], Any] = lambda: None, wanted: npt.NDArray[np.bool_] | None = None
    ) -> Rows:
        """Encode all rows of the file, or those that are wanted: no others are kept in memory.  (n, n_features)"""
        blocks, start = [np.zeros((0, self.preprocessing.n_features), dtype=np.float32)], 0
        for block in self.encode_batches(on_batch):
            if wanted is not None:
                start, block = start + len(block), block[wanted[start : start + len(block)]]
            blocks.append(block)
        return np.concatenate(blocks)

    def encode_batches(self, on_batch: Callable[[], Any] = lambda: None) -> Iterator[Rows]:
        """Iterate over all rows of the file, a batch at a time."""
        with reading(self.source.path, TableError, self.source.kind):
            for batch in self.source.batches(list(dict.fromkeys(self.names))):
                yield self.encode(batch, self.source.n_read)
                on_batch()

    def notes(self) -> Iterator[str]:
        """Iterate over notes for the user on the rows so far."""
        no_feature = "all its features are 0 there."
        for name, counts in self.unknown.items():
            unknown = format_count(sum(counts.values()), "value")
            yield f"column {name!r}: {unknown} that training did not know ({format_names(counts, 5)}); {no_feature}"
        if filled := [column for column in self.preprocessing.columns if self.filled[column.name]]:
            yield describe_filled(filled, sum(self.filled.values()))

    def extract_columns(self, batch: Any) -> dict[str, list[Any]]:
        """Return the columns of training as numbers, booleans and text, None where a value is missing.

        Examples
        --------
        >>> columns = (Column("age", "number"), Column("plan", "category", categories=("1", "gold")))
        >>> from crisptree.encoding.containers import as_table
        >>> table = as_table({"age": ["41", ""], "plan": ["1.0", " gold "]})
        >>> RowEncoder(Preprocessing(columns), table).extract_columns(table)
        {'age': [41.0, None], 'plan': ['1', 'gold']}
        """
        decoded = {}
        for name, column in zip(self.names, self.preprocessing.columns, strict=True):
            values = self._extract(column, batch.column(name), 0)
            present: Sequence[Any]
            if column.kind == "category":
                codes, _ = values.encode(column.categories)
                known = enumerate(codes.tolist())
                present = [column.categories[code] if code >= 0 else str(values.get_value(at)) for at, code in known]
            else:
                numbers = _to_numbers(column, values)
                present = [] if numbers is None else numbers.tolist()
                if column.kind == "boolean":
                    present = [bool(value) if value in (0, 1) else value for value in present]
            cells: list[Any] = [None] * len(values.present)
            for row, value in zip(values.where.tolist(), present, strict=True):
                cells[row] = value
            decoded[column.name] = cells
        return decoded

    def _encode_number(self, column: Column, values: ColumnValues, part: Rows, start: int) -> None:
        shown = f"{self.source.path}: column {column.name!r}"
        numbers = _to_numbers(column, values)
        if numbers is None and values.kind != "text":
            raise TableError(
                f"{shown} must hold numbers, as in training; it holds dates. Make the same numbers of them."
            )
        if numbers is None:
            row, value = values.find_first(~values.is_number(), start)
            what = "true or false" if column.kind == "boolean" else "numbers"
            how = self._suggest(column, value)
            raise TableError(f"{shown} must hold {what}, as in training; row {row} has {value!r}. {how}")
        missing = ~values.present
        if missing.any() and np.isnan(column.mean):
            raise TableError(
                f"{shown} must have a number in every row, because the model keeps nothing to fill a missing one with; "
                f"row {start + int(missing.argmax())} has none."
            )
        with np.errstate(over="ignore", under="ignore"):
            if missing.any():
                part[missing, 0], part[values.present, 0] = column.mean, numbers
            else:
                part[:, 0] = numbers
        not_finite = ~np.isfinite(part[:, 0])
        if not_finite.any():
            raise TableError(
                f"{shown} must hold finite numbers that single precision can hold; "
                f"row {start + int(not_finite.argmax())} does not. Correct it, or leave the row out."
            )

    def _suggest(self, column: Column, value: str) -> str:
        """Say what to do about a text that is no number; ``predict`` has no parameter for missing values."""
        if self.source.kind != "table":
            names = f"; if the column holds names of categories, say `categorical={[column.name]}`."
            if re.search(LOCALIZED_NUMBER, value):
                return FORMAT_REMEDY + (names if self.is_training else ".")
            return f"If that means a missing value, say `missing={[value]}`" + (names if self.is_training else ".")
        can_be_missing = column.missing or self.fill
        missing = ", or put None in its place if it means a missing value" if can_be_missing else ""
        return f"Correct it{missing}, or leave the row out."

    def _encode_category(self, column: Column, values: ColumnValues, part: Rows) -> None:
        codes, unknown = values.encode(column.categories)
        known = codes >= 0
        part[values.where[known], codes[known]] = 1
        if column.grouped:
            return
        for text, count in unknown.items():
            counts = self.unknown[column.name]
            # A column of ids would otherwise be kept whole.
            counts[text if text in counts or len(counts) < 1000 else "…"] += count

    def _refuse_missing(self, column: Column, values: ColumnValues, start: int) -> None:
        raise TableError(
            f"{self.source.path}: column {column.name!r} must have a value in every row, because none was missing in "
            f"training; row {start + int(values.present.argmin())} has none. Fill it or leave the row out, or train "
            "with rows in which it is missing."
        )


def describe_filled(columns: Sequence[Column], n_values: int) -> str:
    """Describe values that were filled in columns in which none was missing in training.

    Examples
    --------
    >>> describe_filled([Column("age", "number", mean=40.0)], 2)
    "column 'age': 2 missing values, none in training; the mean 40 stands in."
    >>> describe_filled([Column("age", "number", mean=40.0), Column("plan", "category")], 3)
    "columns 'age', 'plan': 3 missing values, none in training; means stand in, and all features of a category are 0."
    """
    count, has_categories = (
        format_count(n_values, "missing value"),
        any(column.kind == "category" for column in columns),
    )
    if len(columns) == 1:
        mean = f"the mean {columns[0].mean:.6g} stands in."
        instead = "all its features are 0 there." if has_categories else mean
        return f"column {columns[0].name!r}: {count}, none in training; {instead}"
    instead = "means stand in" + (", and all features of a category are 0" if has_categories else "")
    return f"columns {format_names(column.name for column in columns)}: {count}, none in training; {instead}."


def find_unknown_columns(preprocessing: Preprocessing, source: TableLike) -> list[str]:
    """Return the columns of the table that training did not know."""
    if not preprocessing.named or source.matrix:
        return []
    trained = (
        {column.input_name for column in preprocessing.columns} | set(preprocessing.left_out) | {preprocessing.target}
    )
    return [name for name in source.names if name not in trained]


def _match_columns(preprocessing: Preprocessing, source: TableLike, without: Collection[str]) -> list[str]:
    """Return the table's column for every column of the preprocessing."""
    trained = [column.input_name for column in preprocessing.columns]
    if preprocessing.named and not source.matrix:
        names = set(source.names)
        lacking = [name for name in trained if name not in names]
        if lacking:
            raise TableError(
                f"{source.path} must have all columns that the model was trained on; it has no {format_names(lacking)}."
                f"{suggest_name(lacking[0], find_unknown_columns(preprocessing, source))}"
            )
        return trained
    features = source.features({*without, *([preprocessing.target] if preprocessing.target else [])})
    if len(features) == len(dict.fromkeys(trained)) < len(trained):
        place = dict(zip(dict.fromkeys(trained), features, strict=True))
        features = [place[name] for name in trained]
    if len(features) != len(trained):
        by_place = "features by their place; leave out what is none with `drop=['NAME']`"
        takes = "columns by name" if preprocessing.named else by_place
        raise TableError(
            f"{source.path} must have {len(trained)} features; it has {len(features)}. The model takes {takes}."
        )
    return features


def _to_numbers(column: Column, values: ColumnValues) -> npt.NDArray[np.float64] | None:
    numbers = values.to_booleans() if column.kind == "boolean" else None
    return values.to_numbers() if numbers is None else numbers
