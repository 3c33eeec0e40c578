"""Validation of X: arrays, sparse matrices, images and tables become finite float32 rows, or errors that help."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_array, check_X_y, validate_data

from crisptree.data.raw_rows import MAX_FEATURES, MAX_FLOAT32, SparseRows
from crisptree.encoding.containers import (
    ColumnValues,
    as_table,
    check_unique_names,
    convert_records,
    extract_values,
    get_column_labels,
    is_arrow,
    is_pandas,
    is_polars,
    materialize,
    refuse_batches,
    reorder_columns,
)
from crisptree.encoding.preprocessing import MIN_ROWS_FOR_ID, Preprocessing
from crisptree.encoding.table_encoder import TableEncoder, describe_filled
from crisptree.exceptions import CrispTreeWarning, RefusedColumns, TableError, format_names, suggest_name
from crisptree.targets.base import check_utf8, detach, rescale_weights

Shape = tuple[int, ...]
Singles = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class InputSchema:
    """Columns of the training rows, which later rows must have.

    ``feature_names`` are texts, ``column_labels`` labels of a DataFrame that are no texts; ``encoder`` encodes tables.
    ``encoded_by`` is the preprocessing of rows that were encoded before they came here. ``means`` of the features
    replace missing numbers; None where these are refused.
    """

    n_features: int
    feature_names: npt.NDArray[Any] | None = None
    column_labels: list[Any] | None = None
    image_shape: Shape | None = None
    encoder: TableEncoder | None = None
    encoded_by: Preprocessing | None = None
    target_name: str | None = None
    means: Callable[[], npt.NDArray[np.float64]] | None = None

    @property
    def preprocessing(self) -> Preprocessing | None:
        """Preprocessing that the training rows went through, if any."""
        return self.encoded_by if self.encoder is None else self.encoder.preprocessing_

    def fill_missing(self, rows: Singles) -> Singles:
        """Replace missing numbers by the means of training, in a copy; one warning names the columns."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.means is None or np.isfinite(rows.sum()):  # one fast pass in the usual case
                return rows
        missing = np.isnan(rows)
        counts = missing.sum(axis=0)
        if not counts.any():
            return rows
        means = self.means()
        columns = Preprocessing.plain(len(means), self.feature_names, means).columns
        filled = [columns[column] for column in np.flatnonzero(counts)]
        warnings.warn(f"X: {describe_filled(filled, int(counts.sum()))}", CrispTreeWarning, stacklevel=4)
        return np.where(missing, means.astype(np.float32), rows)


@dataclass(frozen=True, eq=False)
class RawInput:
    """X of a fit, in memory and not yet checked, and its format."""

    X: Any
    image_shape: Shape | None
    is_sparse: bool

    @classmethod
    def read(cls, X: Any, image_shape: Any) -> RawInput:
        """Read X; ``image_shape`` is the parameter of that name."""
        X = materialize(X)
        return cls(X, find_image_shape(X, image_shape), is_sparse(X))


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """Checked X and y of a fit; ``missing_indicators`` maps features to those that indicate their missing values."""

    X: Any
    y: npt.NDArray[Any]
    schema: InputSchema
    missing_indicators: Mapping[int, int] = field(default_factory=dict)


def check_rows(X: Any, schema: InputSchema, estimator: BaseEstimator) -> Singles | SparseRows:
    """Check rows for a fitted estimator: finite float32 numbers, with the columns of the training.

    The means of training take the place of missing numbers, with a warning, where the schema has them.
    """
    refuse_batches(X, f"a fitted {type(estimator).__name__}")
    X = reorder_columns(materialize(detach(X)), schema.column_labels)
    check_columns(X)
    if schema.encoder is not None:
        return schema.encoder.encode_rows(X)
    X = convert_records(X)
    if isinstance(X, Mapping) and not is_sparse(X):  # a dok_matrix of SciPy is a dictionary too
        return _stack_columns(X, schema)
    check_no_dates(X, fitting=False)
    X, has_sparse_rows = flatten_images(X, schema.image_shape), is_sparse(X)
    finite: Any = "allow-nan" if schema.means is not None and not has_sparse_rows else True
    with _name_invalid_columns(X, schema.feature_names):
        rows = validate_data(
            estimator, X, dtype=np.float32, order="C", reset=False, accept_sparse="csr", ensure_all_finite=finite
        )
    return convert_sparse(rows) if has_sparse_rows else schema.fill_missing(rows)


def _warn_of_row_numbers(X: npt.NDArray[np.float32], names: Sequence[str]) -> None:
    """Warn of columns that count the rows, as the encoder of tables with text does."""
    if len(X) < MIN_ROWS_FOR_ID:
        return
    for column in np.flatnonzero(X[1] - X[0] == 1).tolist():
        if (np.diff(X[:, column]) == 1).all():
            text = f"X: column {str(names[column])!r} counts the rows; if it only numbers them, leave it out."
            warnings.warn(text, CrispTreeWarning, stacklevel=2)


def check_fit_rows(
    estimator: BaseEstimator,
    raw: RawInput,
    y: Any,
    sample_weight: Any,
    *,
    categorical: Any,
    schema: InputSchema | None = None,
    encoded_by: Preprocessing | None = None,
    multi_output: bool = False,
) -> CheckedRows:
    """Check X and y of a fit: finite float32 rows, encoded if X is a table that needs it, and as many y.

    Rows must have the columns of ``schema``; without one, it is learned. Like any fit of scikit-learn, this sets
    ``n_features_in_`` and ``feature_names_in_``.
    """
    check_columns(raw.X)
    X = flatten_images(raw.X, raw.image_shape)
    is_new = schema is None
    if schema is None:
        check_utf8([_get_name(y)], "the name of y")
        name = type(estimator).__name__
        encoder = None if raw.image_shape is not None else fit_encoder(categorical, X, sample_weight, name)
        if encoder is not None:
            encoder.set_target_name(_get_name(y))
        schema = InputSchema(0, column_labels=get_column_labels(X), encoder=encoder, target_name=_get_name(y))
    X = reorder_columns(X, schema.column_labels)
    checks = {"dtype": np.float32, "order": "C", "accept_sparse": "csr", "multi_output": multi_output}
    if schema.encoder is not None:
        # Rows of weight zero, which the encoder has not seen, may have missing values where no other row has.
        X = schema.encoder.encode_rows(X, fill=is_new)
        _check_lengths(X, y)
        with _name_invalid_columns(X, None, fitting=is_new):
            X, y = check_X_y(X, y, estimator=estimator, **checks)
        n_features, names = schema.encoder.n_features_in_, getattr(schema.encoder, "feature_names_in_", None)
    else:
        check_no_dates(X, fitting=is_new)
        _check_lengths(X, y)
        with _name_invalid_columns(X, schema.feature_names, fitting=is_new):
            X, y = validate_data(estimator, X, y, reset=is_new, **checks)
        n_features, names = X.shape[1], getattr(estimator, "feature_names_in_", None)
        if is_new and names is not None and not raw.is_sparse:
            _warn_of_row_numbers(X, names)
    check_utf8(() if names is None else names, "names of columns")
    if raw.is_sparse:
        X = convert_sparse(X)
    check_image_shape(raw.image_shape, X.shape[1])
    schema = replace(schema, n_features=n_features, feature_names=names, image_shape=raw.image_shape)
    schema = replace(schema, encoded_by=encoded_by)
    table = schema.preprocessing
    missing_indicators = {} if table is None or table.n_features != X.shape[1] else table.missing_indicators
    return CheckedRows(X, y, schema, missing_indicators)


def is_sparse(X: Any) -> bool:
    """Return True for a sparse matrix or array of scipy, whose indices and values must be valid."""
    matrix: Any = X if sparse.issparse(X) else None
    if hasattr(matrix, "check_format"):
        try:
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(
                f"X must be a sparse matrix whose indices fit its shape {matrix.shape}; {error}."
            ) from error
    return matrix is not None


def convert_sparse(X: Any) -> SparseRows:
    """Convert a checked CSR matrix."""
    if X.shape[1] > MAX_FEATURES:
        raise ValueError(f"sparse rows must have at most {MAX_FEATURES} features; got {X.shape[1]}.")
    return SparseRows.of(X)


MAX_CHANNELS = 4
"""Images with at most so many lines, but more columns and channels, seem to have their channels first."""


def find_image_shape(X: Any, image_shape: Any) -> Shape | None:
    """Return the shape of the images in X, else the parameter ``image_shape``.

    A parameter that contradicts the images is refused; (28, 28) and (28, 28, 1) are the same shape.
    """
    declared = None if image_shape is None else tuple(int(side) for side in image_shape)
    shape = _shape_of(_stack_images(X))
    if shape is None:
        return declared
    if declared is None and len(shape) == 3 and shape[0] <= MAX_CHANNELS < min(shape[1:]):
        raise ValueError(
            "images must have their channels last, (n_samples, height, width, channels); X has the shape "
            f"{(len(X), *shape)}, of images with channels first as torch has them. Use X.permute(0, 2, 3, 1), in NumPy "
            f"X.transpose(0, 2, 3, 1); or set image_shape={shape} if that is right."
        )
    if declared is not None and _with_channels(declared) != _with_channels(shape):
        raise ValueError(
            f"`image_shape` must be the shape of the images in X; got {declared} for images of shape {shape}. "
            "Leave it None: images carry their own shape."
        )
    return declared or shape


def flatten_images(X: Any, image_shape: Shape | None) -> Any:
    """Flatten images to rows, channels last, and refuse those of another shape; return anything else as it is."""
    X = _stack_images(X)
    shape = _shape_of(X)
    if shape is None or image_shape is None:
        return X
    if _with_channels(shape) != _with_channels(image_shape):
        raise ValueError(
            f"images must have the shape {image_shape} that the tree was trained on; got {shape}. "
            "Crop or resize them first."
        )
    return X.reshape(len(X), math.prod(shape))


def check_image_shape(image_shape: Shape | None, n_features: int) -> None:
    """Check that the image has as many pixels as there are features."""
    if image_shape is not None and math.prod(image_shape) != n_features:
        raise ValueError(
            f"`image_shape` must have as many pixels as X has features; got {image_shape} "
            f"({math.prod(image_shape)} pixels) for {n_features} features. "
            "Leave it None to train without spatial regularisation."
        )


def _shape_of(X: Any) -> Shape | None:
    """Return the shape of one image, or None where X holds no images."""
    shape = getattr(X, "shape", ())
    if len(shape) not in (3, 4) or 0 in shape:
        return None
    return tuple(int(side) for side in shape[1:])


def _stack_images(X: Any) -> Any:
    """Stack a list of images of one shape to one array."""
    if not isinstance(X, list | tuple) or not X or getattr(X[0], "ndim", 0) < 2:
        return X
    shapes = {np.shape(image) for image in X}
    if len(shapes) > 1:
        raise ValueError(
            f"the images in X must all have one shape; got {', '.join(map(str, sorted(shapes)[:5]))}. "
            "Crop or resize them first."
        )
    return np.stack([detach(image) for image in X])


def _with_channels(shape: Shape) -> Shape:
    return shape if len(shape) == 3 else (*shape, 1)


def _stack_columns(columns: Mapping[Any, Any], schema: InputSchema) -> Singles:
    """Stack the columns of a dictionary for a model of numbers, in the order of training."""
    names = schema.feature_names
    if names is None:
        raise ValueError(
            "X must be an array of rows, (n_samples, n_features), as in training, where columns had no names; got "
            "dictionaries. Give the values in the order of the columns, or fit on a table with names."
        )
    lacking = [name for name in names if name not in columns]
    if lacking:
        raise ValueError(
            f"X must have the columns that the model was trained on; it has no {format_names(lacking, 5)}."
        )
    columns = {name: columns[name] for name in names}
    table = as_table(columns)
    with _name_invalid_columns(columns, names):
        rows = np.column_stack([np.asarray(table.column(name)) for name in table.names])
        finite: Any = "allow-nan" if schema.means is not None else True
        rows = np.asarray(check_array(rows, dtype=np.float32, order="C", ensure_all_finite=finite))
    return schema.fill_missing(rows)


@contextmanager
def _name_invalid_columns(X: Any, names: npt.NDArray[Any] | None, *, fitting: bool = False) -> Iterator[None]:
    """Name the column and the row where scikit-learn, which does not, finds no finite numbers."""
    try:
        with np.errstate(over="ignore", under="ignore"):  # too large is infinite, and named as such
            yield
    except ValueError as error:
        reason = None
        if re.search(r"NaN|infinity|could not convert|datetime|Timestamp", str(error)):
            reason = describe_invalid_columns(X, names, fitting)
        if reason is None:
            raise
        raise ValueError(reason) from error


def _check_lengths(X: Any, y: Any) -> None:
    shape: Shape = getattr(X, "shape", ())
    if len(shape) > 1 and hasattr(y, "__len__") and len(y) != shape[0]:
        raise ValueError(
            f"X and y must be of one length; got {shape[0]} rows of X and {len(y)} of y (Found "
            f"input variables with inconsistent numbers of samples: {[shape[0], len(y)]})."
        )


def _get_name(y: Any) -> str | None:
    """Return the name of a Series of labels."""
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else None


def fit_encoder(
    categorical: Any, X: Any, sample_weight: Any = None, class_name: str = "CrispTreeClassifier"
) -> TableEncoder | None:
    """Fit the encoder that X needs to the rows of positive weight; return None where X is rows of numbers.

    Errors show how to give an estimator of the class its encoder.
    """
    if not needs_encoder(categorical, X):
        return None
    encoder = _create_encoder(categorical)
    try:
        encoder._learn(X, _read_weights(sample_weight, as_table(X).num_rows))
    except RefusedColumns as error:
        example = ", ".join(f"{parameter}={names}" for parameter, names in error.remedies.items())
        raise TableError(
            f"{error}\n`drop`, `dates`, `numeric`, `missing` and `max_categories` are parameters of a TableEncoder, "
            f"for example {class_name}(categorical_features=TableEncoder({example}))."
        ) from None
    encoder.warn_of_ids()
    return encoder


def _read_weights(sample_weight: Any, n_rows: int) -> npt.NDArray[np.float64] | None:
    """Return valid weights; None where there are none, or invalid ones, which are refused later."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (ValueError, TypeError):
        return None
    fits = weights.shape == (n_rows,) and bool(np.isfinite(weights).all() and (weights >= 0).all() and weights.any())
    return rescale_weights(weights) if fits else None


def _create_encoder(categorical: Any) -> TableEncoder:
    if hasattr(categorical, "encode_rows"):
        encoder: TableEncoder = clone(categorical)
        return encoder
    return TableEncoder(categorical=() if isinstance(categorical, str) else categorical)


def needs_encoder(categorical: Any, X: Any) -> bool:
    """Return True if X holds anything but numbers, or missing values, or ``categorical`` asks for it."""
    X = convert_records(X)
    if categorical is None or hasattr(X, "toarray") or len(getattr(X, "shape", (0, 0))) != 2:
        return False
    if not isinstance(categorical, str) and (hasattr(categorical, "encode_rows") or len(categorical)):
        return True
    if isinstance(X, Mapping) or is_arrow(X):
        return True
    if is_pandas(X):
        columns = [X.iloc[:, number] for number in range(X.shape[1])]
        return any(column.dtype.kind not in "biuf" or bool(column.isna().any()) for column in columns)
    if is_polars(X):
        return any(_has_odd_values(column) for column in X.get_columns())
    if not isinstance(X, np.ndarray | list | tuple):
        return False
    return _has_odd_entries(X)


def _has_odd_values(column: Any) -> bool:
    dtype = column.dtype
    if column.null_count() or not (dtype.is_numeric() or str(dtype) == "Boolean"):
        return True
    return bool(dtype.is_float() and column.is_nan().any())


def _has_odd_entries(X: Any) -> bool:
    try:
        array = np.asarray(X)
        if array.dtype.kind in "OUST":
            array = array.astype(np.float64)
    except (ValueError, TypeError):
        return bool(np.ndim(np.asarray(X, dtype=object)) == 2)  # otherwise its rows are not of one length
    if array.ndim != 2:
        return False
    # The minimum is NaN if any value is: one pass over the rows, and no copy of them.
    return array.dtype.kind in "mM" or (array.dtype.kind == "f" and array.size > 0 and bool(np.isnan(array.min())))


def check_no_dates(X: Any, fitting: bool) -> None:
    """Refuse dates, which NumPy would convert to nanoseconds where X holds nothing else."""
    dtypes = getattr(X, "dtypes", None) if hasattr(X, "columns") else None
    kinds = [X.dtype] if isinstance(X, np.ndarray) else [] if dtypes is None or callable(dtypes) else list(dtypes)
    if any(getattr(kind, "kind", "") in ("m", "M") or str(kind).startswith(("Date", "Duration")) for kind in kinds):
        raise ValueError(describe_invalid_columns(X, None, fitting) or "X must hold finite numbers; it holds dates.")


def check_columns(X: Any) -> None:
    """Refuse a single row or column, a table without columns, and duplicate names."""
    if _is_list_of_texts(X):
        raise ValueError(
            "X must be a table of rows and columns; got a list of texts (Expected 2D array, got 1D array instead). "
            "Texts become columns in a step before, as in make_pipeline(TfidfVectorizer(), CrispTreeClassifier()); for "
            "one column of categories give a table with one column, such as {'name': X}."
        )
    if hasattr(X, "to_frame") and not hasattr(X, "columns"):
        raise ValueError(
            "X must be a table; got a Series, one row or column of it (Expected 2D array, got 1D array instead). "
            "For one row give frame.iloc[[0]], for one column frame[['name']]; texts become columns in a step before, "
            "as in make_pipeline(TfidfVectorizer(), CrispTreeClassifier())."
        )
    columns = getattr(X, "columns", None) if hasattr(X, "dtypes") else None
    if columns is None:
        return
    names = list(columns)
    if not names:
        raise ValueError(f"X must have at least one column (0 feature(s)); got a table of shape {X.shape} without any.")
    check_unique_names(names, "X")


def _is_list_of_texts(X: Any) -> bool:
    """Return True for a list or an array of nothing but texts."""
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and (X.dtype.kind == "U" or (X.dtype.kind == "O" and all(isinstance(x, str) for x in X)))
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(x, str) for x in X)


def describe_invalid_columns(X: Any, names: Any, fitting: bool) -> str | None:
    """Name columns and rows that are no finite numbers, and what to do; return None where none is found."""
    try:
        table = as_table(X)
    except (TableError, TypeError, ValueError):
        return None
    if table.matrix and names is not None and len(names) == len(table.names):
        table = table.rename([str(name) for name in names])
    refused = {}
    for name in table.names:
        try:
            reason = _describe_invalid_values(extract_values(table.column(name), name, ()), fitting)
        except TableError as error:
            refused[name] = f"X: {error}"
            continue
        if reason:
            refused[name] = f"X: column {name!r} must hold finite numbers; {reason}"
    return str(RefusedColumns("X", refused)) if refused else None


def _describe_invalid_values(values: ColumnValues, fitting: bool) -> str | None:
    """Say why a column does not hold finite numbers; return None if it does."""
    if values.kind == "date":
        how = "a year, a weekday, days since an event"
        return f"it holds dates or times. Make numbers of them first ({how}), or leave it out."
    numbers = values.to_numbers()
    if numbers is None:
        row, value = values.find_first(~values.is_number(), 0)
        remedy = (
            "Leave `categorical_features` at 'auto', which encodes text"
            if fitting
            else "The model was trained on numbers"
        )
        return f"row {row} has {value!r}. {remedy}."
    if not values.present.all():
        row = int(values.present.argmin())
        remedy = (
            "Leave `categorical_features` at 'auto', which takes missing values, or fill it"
            if fitting
            else "None was missing there in training: fill it, or train with rows in which it is missing"
        )
        return f"row {row} has none (NaN). {remedy}."
    too_large = ~(np.abs(numbers) <= MAX_FLOAT32)
    if too_large.any():
        row, value = values.find_first(too_large, 0)
        return f"row {row} has {value}, infinity or a number beyond single precision. Correct it or leave the row out."
    return None


def resolve_columns(parameters: Mapping[str, Any], schema: InputSchema) -> dict[str, Any]:
    """Replace column names in the parameters by indices of features.

    Where a table was encoded, ``feature_groups`` has the features of each of its columns, which l1 keeps or drops as a
    group.
    """
    names = schema.column_labels or [
        str(name) for name in ([] if schema.feature_names is None else schema.feature_names)
    ]
    values = dict(parameters)
    if parameters["monotonic_cst"]:
        directions = _directions(parameters["monotonic_cst"], schema.n_features)
        indices = _indices("monotonic_cst", list(directions), names, schema.n_features)
        signs = dict(zip(indices, map(int, directions.values()), strict=True))
        values["monotonic_cst"] = {index: sign for index, sign in signs.items() if sign} or None
    if parameters["interaction_cst"]:
        columns = [column for group in parameters["interaction_cst"] for column in group]
        indices = _indices("interaction_cst", columns, names, schema.n_features)
        ends = np.cumsum([len(group) for group in parameters["interaction_cst"]])
        values["interaction_cst"] = [
            indices[end - len(group) : end] for end, group in zip(ends, parameters["interaction_cst"], strict=True)
        ]
    if schema.encoder is not None:
        values = _resolve_features(values, schema.encoder.preprocessing_)
    table = schema.preprocessing
    return values if table is None else values | {"feature_groups": table.groups}


def _directions(monotonic_cst: Mapping[Any, int] | Sequence[int], n_columns: int) -> Mapping[Any, int]:
    """Return the directions of columns as a mapping."""
    if isinstance(monotonic_cst, Mapping):
        return monotonic_cst
    if len(monotonic_cst) != n_columns:
        raise ValueError(
            f"`monotonic_cst` must have a number for each of the {n_columns} columns of X; got {len(monotonic_cst)}. A "
            "dict names some of them."
        )
    return dict(enumerate(monotonic_cst))


def _resolve_features(values: dict[str, Any], table: Preprocessing) -> dict[str, Any]:
    """Replace columns of a table by the features that encode them; a sign is that of the number, not its indicator."""
    names, kinds = table.input_names, {column.input_name: column.kind for column in table.columns}
    dates = {column.input_name for column in table.columns if column.part}
    for name in (names[index] for index in values["monotonic_cst"] or ()):
        if name in dates:
            raise ValueError(
                f"`monotonic_cst` must name columns of numbers; {name!r} has dates, which become several features. "
                "Make a number of it first, such as days since an event."
            )
        if name not in kinds:
            raise ValueError(f"`monotonic_cst` must name columns that are used; {name!r} is left out.")
        if kinds[name] == "category":
            raise ValueError(
                f"`monotonic_cst` must name columns of numbers; {name!r} is a category, which has no order."
            )
    if values["monotonic_cst"]:
        signs = values["monotonic_cst"].items()
        values["monotonic_cst"] = {table.features_of(names[index])[0]: sign for index, sign in signs}
    if values["interaction_cst"]:
        groups = [
            [feature for index in group for feature in table.features_of(names[index])]
            for group in values["interaction_cst"]
        ]
        values["interaction_cst"] = [group for group in groups if group]
    return values


def _indices(parameter: str, columns: Sequence[Any], names: list[Any], n_features: int) -> list[int]:
    indices = [_index(parameter, column, names, n_features) for column in columns]
    repeated = [column for place, column in enumerate(columns) if indices[place] in indices[:place]]
    if repeated:
        raise ValueError(
            f"`{parameter}` must name every column once; got {repeated[0]!r} again, by its name or number."
        )
    return indices


def _index(parameter: str, column: Any, names: list[Any], n_features: int) -> int:
    """Find a column by its label, or by its index where columns have no labels or those are text."""
    if column in names:
        return names.index(column)
    are_texts = all(isinstance(name, str) for name in names)
    if not isinstance(column, str) and are_texts:
        if column >= n_features:
            raise ValueError(
                f"`{parameter}` must name columns of X, numbered from 0 to {n_features - 1}; got {column}."
            )
        return int(column)
    if not names:
        raise ValueError(
            f"`{parameter}` must give the numbers of columns where X has no names; got {column!r}. Fit a DataFrame, or "
            f"write 0 to {n_features - 1}. In a Pipeline, names come through with set_output(transform='pandas')."
        )
    hint = (suggest_name(column, names) if are_texts else "") or (
        f" They are {', '.join(map(repr, names[:8]))}{', …' if len(names) > 8 else '.'}"
    )
    raise ValueError(f"`{parameter}` must name columns of X; got {column!r}.{hint}")
