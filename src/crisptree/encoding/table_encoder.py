"""Encoders of tables as rows of numbers: ``RowEncoder`` for a model's tables, ``TableEncoder`` for scikit-learn."""

from __future__ import annotations

import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from crisptree.encoding.containers import (
    ColumnValues,
    Table,
    TableLike,
    as_table,
    compute_batch_rows,
    extract_values,
    get_column_labels,
)
from crisptree.encoding.preprocessing import (
    HANDLE_MISSING,
    MAX_CATEGORIES,
    Column,
    ColumnOptions,
    Preprocessing,
    Rows,
    TableProfile,
)
from crisptree.encoding.text_formats import FORMAT_REMEDY, LOCALIZED_NUMBER, extract_date_parts
from crisptree.exceptions import CrispTreeWarning, RefusedColumns, TableError, format_count, format_names, suggest_name
from crisptree.files import reading


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


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode tables of numbers, categories and missing values as rows of numbers, as the command line does.

    A number stays a number; a missing one becomes the mean of training, and if any was missing in training one more
    feature says so. True and false become 1 and 0. Text, and pandas' categories, become one feature per value seen
    in training. Dates, unless ``dates`` names them, and text that hardly ever repeats are refused, all such columns at
    once and each with what to do. A DataFrame of pandas or polars, a table of pyarrow or any other with
    ``__arrow_c_stream__``, a dictionary of columns and an array will do.

    ``CrispTreeClassifier`` uses one by itself where a table needs it, and keeps it as ``encoder_``.

    Parameters
    ----------
    categorical : list of columns, default=()
        Columns of numbers that are names of categories. Columns are named by their labels, or counted from 0 where they
        have none.
    drop : list of columns, default=()
        Columns to leave out: ids, what is not known when one predicts.
    dates : list of columns, default=()
        Columns of dates that become numbers: year, month, day, weekday (1 is Monday) and hour, of which those that
        never change are left out. A column of times of day becomes the hour, one of time differences the days.
    numeric : list of columns, default=()
        Columns of digits as text that are numbers although some begin with a zero. Without it such digits (postal
        codes, account numbers) are names of categories.
    missing : list of str, default=()
        Texts that mean a missing value, beside "", "nan" and "NaN".
    max_categories : int, default=100
        The most values that a category may have.
    min_frequency : int or float, default=None
        Values of a category in fewer rows, or in a smaller share of the rows, are grouped: all features of the column
        are 0 for them, as for values that training did not know.
    id : column, default=None
        A column that identifies the rows. It is no feature, and need not be there to predict.
    keep_constant : bool, default=True
        Keep columns that have one value only. The command line leaves them out.
    handle_missing : {"fill", "error"}, default="fill"
        What to do with a value that is missing in a column where none was missing in training: fill it (a number with
        the mean of training, a category with zeros) and warn, or raise an error.

    Attributes
    ----------
    preprocessing_ : Preprocessing
        What is done to every column; model files keep it.
    notes_ : list of str
        What one should know about the table: columns that count the rows, that are left out, that have missing values.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they have some. Columns are then found by name, in any order; others are ignored.

    Examples
    --------
    >>> from crisptree import TableEncoder
    >>> table = {"age": [41, None, 12], "plan": ["basic", "gold", "basic"]}
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age is missing', 'plan=basic', 'plan=gold']
    >>> encoder.transform({"plan": ["gold"], "age": [30]}).tolist()
    [[30.0, 0.0, 0.0, 1.0]]
    >>> encoder.inverse_transform(encoder.transform(table))["plan"].tolist()
    ['basic', 'gold', 'basic']
    """

    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]

    def __init__(
        self,
        *,
        categorical: Collection[str | int] = (),
        drop: Collection[str | int] = (),
        dates: Collection[str | int] = (),
        numeric: Collection[str | int] = (),
        missing: Collection[str] = (),
        max_categories: int = MAX_CATEGORIES,
        min_frequency: float | None = None,
        id: str | int | None = None,
        keep_constant: bool = True,
        handle_missing: str = "fill",
    ) -> None:
        self.categorical = categorical
        self.drop = drop
        self.dates = dates
        self.numeric = numeric
        self.missing = missing
        self.max_categories = max_categories
        self.min_frequency = min_frequency
        self.id = id
        self.keep_constant = keep_constant
        self.handle_missing = handle_missing

    @classmethod
    def of(cls, preprocessing: Preprocessing) -> TableEncoder:
        """Return the fitted encoder of a preprocessing."""
        encoder = cls(missing=preprocessing.missing, handle_missing="fill" if preprocessing.fill else "error")
        encoder.preprocessing_ = preprocessing
        encoder._take_names(preprocessing.input_names if preprocessing.named else None, len(preprocessing.input_names))
        return encoder

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what the columns hold; see ``partial_fit`` for tables that come in batches.

        Examples
        --------
        >>> from crisptree import TableEncoder
        >>> table = {"plan": ["basic", "plus", "basic"], "months": [3, 14, 25]}
        >>> TableEncoder().fit(table).get_feature_names_out().tolist()
        ['plan=basic', 'plan=plus', 'months']
        """
        self._learn(X)
        return self

    def _learn(self, X: Any, weights: npt.NDArray[np.float64] | None = None) -> Table:
        """Reset, learn from the rows of positive weight, and return X as a table."""
        for name in ("_profile", "preprocessing_", "_n_rows", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        table = self._add(X, weights)
        _ = self.preprocessing_  # says at once what cannot be used
        return table

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from one more batch of a table. What cannot be used is reported by ``transform``.

        Examples
        --------
        >>> from crisptree import TableEncoder
        >>> encoder = TableEncoder().partial_fit({"plan": ["basic", "plus"]}).partial_fit({"plan": ["premium"]})
        >>> encoder.get_feature_names_out().tolist()
        ['plan=basic', 'plan=plus', 'plan=premium']
        """
        self._add(X, None)
        return self

    def _add(self, X: Any, weights: npt.NDArray[np.float64] | None) -> Table:
        table = _check_not_empty(as_table(X), self)
        if "_profile" not in self.__dict__:
            options = self._options(table, get_column_labels(X))
            without = [*options.drop, *([] if options.id is None else [options.id])]
            self._profile = TableProfile(table.header(), table.features(without), options)
            self._n_rows = 0
            self._take_names(None if table.matrix else table.names, len(table.names))
        self._check_width(table)
        if table.names != self._profile.source.names:
            raise TableError(
                f"X must have the columns of the batches before, {format_names(self._profile.source.names)}; it has "
                f"{format_names(table.names)}."
            )
        self._profile.add(table, None if weights is None else weights > 0, weights, first_row=self._n_rows)
        self._n_rows += table.num_rows
        self.__dict__.pop("preprocessing_", None)
        return table

    def _options(self, table: Table, labels: list[Any] | None) -> ColumnOptions:
        def names(columns: Collection[str | int], parameter: str) -> list[str]:
            if isinstance(columns, str):
                raise TypeError(
                    f"`{parameter}` must be a list of columns; got the text {columns!r}. Say [{columns!r}]."
                )
            all_labels: Sequence[Any] = range(len(table.names)) if labels is None else labels
            shown = f"from 0 to {len(all_labels) - 1}" if labels is None else format_names(map(str, labels))
            for label in columns:
                if not isinstance(label, str) and label not in all_labels:
                    raise TableError(f"`{parameter}` must name columns of X, {shown}; got {label!r}.")
            result = [name if isinstance(name, str) else table.names[all_labels.index(name)] for name in columns]
            for name in result:
                if name not in table.names:
                    raise TableError(
                        f"`{parameter}` must name columns of X; there is no {name!r} among {format_names(table.names)}."
                        f"{suggest_name(name, table.names)}"
                    )
            return result

        drop, categorical, numeric = (names(getattr(self, name), name) for name in ("drop", "categorical", "numeric"))
        dates = names(self.dates, "dates")
        if both := [name for name in numeric if name in categorical]:
            raise TableError(f"`numeric` and `categorical` must name different columns; both name {both[0]!r}.")
        if not isinstance(self.keep_constant, bool | np.bool_):
            raise ValueError(f"`keep_constant` must be True or False; got {self.keep_constant!r}.")
        if isinstance(self.missing, str):
            raise TypeError(f"`missing` must be a list of texts; got the text {self.missing!r}.")
        ids = [] if self.id is None else names([self.id], "id")
        for name, own, others in (("id", ids, [*dates]), ("dates", dates, [])):
            if both := [column for column in (*drop, *categorical, *numeric, *others) if column in own]:
                raise TableError(
                    f"`{name}` must name other columns than `drop`, `categorical`, `numeric`"
                    f"{' and `dates`' if name == 'id' else ''}; got {both[0]!r}."
                )
        least = self.min_frequency
        if least is not None and (isinstance(least, bool) or not isinstance(least, int | float) or not least > 0):
            raise ValueError(f"`min_frequency` must be None, or rows or a share of them above 0; got {least!r}.")
        if self.handle_missing not in HANDLE_MISSING:
            raise ValueError(f"`handle_missing` must be 'fill' or 'error'; got {self.handle_missing!r}.")
        return ColumnOptions(
            *(drop, categorical, numeric, list(self.missing), self.max_categories, self.keep_constant),
            id=ids[0] if ids else None,
            fill=self.handle_missing == "fill",
            min_frequency=least,
            dates=dates,
        )

    def _take_names(self, names: Collection[str] | None, number: int) -> None:
        self.n_features_in_ = number
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    @cached_property
    def preprocessing_(self) -> Preprocessing:
        """Return what is done to every column, or raise for all columns that cannot be used."""
        check_is_fitted(self)
        return self._profile.preprocessing()

    def warn_of_ids(self) -> None:
        """Warn of columns that may only identify the rows, as the command line notes them."""
        for note in self._profile.id_notes:
            warnings.warn(f"X: {note}", CrispTreeWarning, stacklevel=4)

    @property
    def notes_(self) -> list[str]:
        """Return notes on the table: columns that count the rows, that are left out, that have missing values."""
        return list(self.preprocessing_.notes)

    def set_target_name(self, name: str | None) -> None:
        """Store the name of the labels that belong to the table."""
        if name is not None:
            self.preprocessing_ = replace(self.preprocessing_, target=name)

    def transform(self, X: Any) -> Rows:
        """Encode rows as float32 features.  (n, n_columns) → (n, n_features)

        A value that is missing where none was in training is filled with a warning, or an error, as `handle_missing`
        says; one of a category that training did not know warns, and all features of its column are 0.

        Examples
        --------
        >>> from crisptree import TableEncoder
        >>> encoder = TableEncoder().fit({"plan": ["basic", "plus", "basic"], "months": [3, 14, 25]})
        >>> encoder.transform({"plan": ["plus"], "months": [7]}).tolist()
        [[0.0, 1.0, 7.0]]
        """
        return self.encode_rows(X)

    def encode_rows(self, X: Any, *, fill: bool | None = None) -> Rows:
        """Encode whatever ``set_output`` says; ``fill`` takes the place of ``handle_missing`` where it is given."""
        preprocessing = self.preprocessing_
        table = self._match(_check_not_empty(as_table(X), self), preprocessing)
        table.number_format = preprocessing.number_format
        encoder = RowEncoder(replace(preprocessing, named=True), table, fill=fill)
        step = compute_batch_rows(preprocessing.n_features)
        if table.num_rows <= step:
            rows = encoder.encode(table, 0)
        else:  # so that intermediate arrays stay small
            rows = np.empty((table.num_rows, preprocessing.n_features), dtype=np.float32)
            for batch in table.batches(preprocessing.feature_names):
                rows[table.n_read : table.n_read + batch.num_rows] = encoder.encode(batch, table.n_read)
        for note in encoder.notes():
            warnings.warn(f"X: {note}", CrispTreeWarning, stacklevel=3)
        return rows

    def extract_columns(self, X: Any) -> dict[str, list[Any]]:
        """Return the columns that are used as numbers, booleans and text, None where a value is missing."""
        preprocessing = self.preprocessing_
        table = self._match(as_table(X), preprocessing)
        return RowEncoder(replace(preprocessing, named=True), table).extract_columns(table)

    def _match(self, table: Table, preprocessing: Preprocessing) -> Table:
        """Return the table under the names of training: columns without names are found by position."""
        if preprocessing.named and not table.matrix:
            return table
        self._check_width(table)
        if preprocessing.named:
            warnings.warn(
                f"X does not have valid feature names, but {type(self).__name__} was fitted with feature names",
                UserWarning,
                stacklevel=4,
            )
        return table.rename(preprocessing.input_names)

    def _check_width(self, table: Table) -> None:
        if len(table.names) != self.n_features_in_:
            raise ValueError(
                f"X has {len(table.names)} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input."
            )

    def inverse_transform(self, X: Any) -> Any:
        """Decode rows of features as a table: a dictionary of columns, or an array where those have no names.

        Missing numbers are NaN, missing and unknown categories None; of several features of a category the largest
        counts. Columns that are left out are not there; in an array they are missing.

        Examples
        --------
        >>> from crisptree import TableEncoder
        >>> encoder = TableEncoder().fit({"plan": ["basic", "plus", "basic"], "months": [3, 14, 25]})
        >>> encoder.inverse_transform([[0.0, 1.0, 7.0]])["plan"].tolist()
        ['plus']
        """
        preprocessing = self.preprocessing_
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != preprocessing.n_features:
            raise ValueError(f"X must be rows of {preprocessing.n_features} features; got the shape {rows.shape}.")
        parts = np.split(rows, np.flatnonzero(np.diff(preprocessing.origin)) + 1, axis=1)
        columns = {c.name: _decode(c, part) for c, part in zip(preprocessing.columns, parts, strict=True)}
        if preprocessing.named:
            return columns
        plain = all(column.dtype.kind != "O" for column in columns.values())
        table = np.full((len(rows), self.n_features_in_), np.nan, dtype=np.float64 if plain else object)
        for number, name in enumerate(preprocessing.input_names):
            if name in columns:
                table[:, number] = columns[name]
        return table

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the features: 'age', 'age is missing', 'plan=basic', …

        Where the columns have no names, ``input_features`` names them.

        Examples
        --------
        >>> from crisptree import TableEncoder
        >>> encoder = TableEncoder().fit({"plan": ["basic", "plus", None], "months": [3, 14, 25]})
        >>> encoder.get_feature_names_out().tolist()
        ['plan=basic', 'plan=plus', 'plan is missing', 'months']
        """
        preprocessing = self.preprocessing_
        if input_features is not None:
            names = [str(name) for name in input_features]
            fitted = getattr(self, "feature_names_in_", None)
            if fitted is not None and names != list(fitted):
                raise ValueError("input_features is not equal to feature_names_in_")
            if len(names) != self.n_features_in_:
                raise ValueError(f"input_features should have length equal to {self.n_features_in_}; got {len(names)}.")
            called = dict(zip(preprocessing.input_names, names, strict=True))
            columns = tuple(column.rename(called[column.input_name]) for column in preprocessing.columns)
            preprocessing = Preprocessing(columns)
        return np.array(preprocessing.feature_names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return "_profile" in self.__dict__ or "preprocessing_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _check_not_empty(table: Table, encoder: TableEncoder) -> Table:
    """Return the table, unless it is empty."""
    for number, what, least in ((table.num_rows, "sample", "n_samples"), (len(table.names), "feature", "n_features")):
        if not number:
            shape = (table.num_rows, len(table.names))
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={shape}) while a minimum of 1 is required by "
                f"{type(encoder).__name__}: X must have rows and columns ({least}=0)."
            )
    return table


def _decode(column: Column, part: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the values of a column from its features."""
    missing = part[:, -1] > 0.5 if column.missing else np.zeros(len(part), dtype=bool)
    if column.kind == "category":
        own = part[:, : len(column.categories)]
        values = np.array([*column.categories, None], dtype=object)
        best = own.argmax(axis=1) if own.shape[1] else np.zeros(len(part), dtype=np.intp)
        unknown = missing | ~(own > 0).any(axis=1)
        return values[np.where(unknown, len(column.categories), best)]
    values = part[:, 0].astype(np.float64)
    if column.kind == "boolean" and not missing.any():
        return values > 0.5
    return np.where(missing, np.nan, values)
