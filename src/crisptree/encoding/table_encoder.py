"""``TableEncoder``: the preprocessing of the command line as a transformer of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from crisptree.encoding.column_profile import HANDLE_MISSING, MAX_CATEGORIES, ColumnOptions, TableProfile
from crisptree.encoding.containers import Table, as_table, compute_batch_rows, get_column_labels
from crisptree.encoding.preprocessing import Column, Preprocessing, RowEncoder, Rows
from crisptree.exceptions import CrispTreeWarning, TableError, format_names, suggest_name


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
        for batch in table.batches(table.names):
            start = table.n_read
            part = None if weights is None else weights[start : start + batch.num_rows]
            self._profile.add(batch, self._n_rows + start, None if part is None else part > 0, part)
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
        return self._profile.preprocessing()[0]

    def warn_of_ids(self) -> None:
        """Warn of columns that may only identify the rows, as the command line notes them."""
        preprocessing = self.preprocessing_
        for column in preprocessing.columns:
            for note in self._profile.columns[column.input_name].id_notes(column):
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
