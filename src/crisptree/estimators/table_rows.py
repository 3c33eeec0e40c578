"""Which X is a table that numbers must be made of first, the encoder that does it, and what is wrong with a column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from crisptree.encoding.column_values import extract_values
from crisptree.encoding.containers import as_table, convert_records, is_arrow, is_pandas, is_polars
from crisptree.encoding.errors import RefusedColumns, TableError
from crisptree.encoding.table_encoder import TableEncoder
from crisptree.targets.weights import rescale_weights

LARGEST = float(np.finfo(np.float32).max)


def learned_encoder(categorical: Any, X: Any, sample_weight: Any = None) -> TableEncoder | None:
    """The encoder that X needs, learned from the rows whose weight is not zero; None where X is rows of numbers."""
    if not needs_encoder(categorical, X):
        return None
    encoder = _encoder(categorical)
    try:
        encoder._learn(X, _usable(sample_weight, as_table(X).num_rows))
    except RefusedColumns as error:
        names = list(error.reasons)
        raise TableError(
            f"{error}\n`drop`, `numeric`, `missing` and `max_categories` are parameters of a TableEncoder, for example "
            f"CrispTreeClassifier(categorical=TableEncoder(drop={names}))."
        ) from None
    return encoder


def _usable(sample_weight: Any, n_rows: int) -> npt.NDArray[np.float64] | None:
    """The weights as numbers; None where there are none, or others than weights can be, which is refused later."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (ValueError, TypeError):
        return None
    fits = weights.shape == (n_rows,) and bool(np.isfinite(weights).all() and (weights >= 0).all() and weights.any())
    return rescale_weights(weights) if fits else None


def _encoder(categorical: Any) -> TableEncoder:
    if hasattr(categorical, "encoded"):
        found: TableEncoder = clone(categorical)
        return found
    return TableEncoder(categorical=() if isinstance(categorical, str) else categorical)


def needs_encoder(categorical: Any, X: Any) -> bool:
    """Whether X holds anything but numbers, or holes, or is to be encoded because the caller says so."""
    X = convert_records(X)
    if categorical is None or hasattr(X, "toarray") or len(getattr(X, "shape", (0, 0))) != 2:
        return False
    if not isinstance(categorical, str) and (hasattr(categorical, "encoded") or len(categorical)):
        return True
    if isinstance(X, Mapping) or is_arrow(X):
        return True
    if is_pandas(X):
        columns = [X.iloc[:, number] for number in range(X.shape[1])]
        return any(column.dtype.kind not in "biuf" or bool(column.isna().any()) for column in columns)
    if is_polars(X):
        return any(_is_odd_polars(column) for column in X.get_columns())
    if not isinstance(X, np.ndarray | list | tuple):
        return False
    return _is_odd_array(X)


def _is_odd_polars(column: Any) -> bool:
    dtype = column.dtype
    if column.null_count() or not (dtype.is_numeric() or str(dtype) == "Boolean"):
        return True
    return bool(dtype.is_float() and column.is_nan().any())


def _is_odd_array(X: Any) -> bool:
    try:
        array = np.asarray(X)
        if array.dtype.kind in "OUST":
            array = array.astype(np.float64)
    except (ValueError, TypeError):
        return bool(np.ndim(np.asarray(X, dtype=object)) == 2)  # otherwise its rows are not of one length
    if array.ndim != 2:
        return False
    # The least number is NaN where one is: a pass over the rows, and no copy of them.
    return array.dtype.kind in "mM" or (array.dtype.kind == "f" and array.size > 0 and bool(np.isnan(array.min())))


def check_no_dates(X: Any, fitting: bool) -> None:
    """Refuse dates, which NumPy would take for numbers of nanoseconds where there is nothing else in X."""
    dtypes = getattr(X, "dtypes", None) if hasattr(X, "columns") else None
    kinds = [X.dtype] if isinstance(X, np.ndarray) else [] if dtypes is None or callable(dtypes) else list(dtypes)
    if any(getattr(kind, "kind", "") in ("m", "M") or str(kind).startswith(("Date", "Duration")) for kind in kinds):
        raise ValueError(refusal(X, None, fitting) or "X must hold finite numbers; it holds dates.")


def check_columns(X: Any) -> None:
    """Refuse a row or a column in the place of a table, a table without columns, and names that stand there twice."""
    if _are_texts(X):
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
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        raise ValueError(f"X has two columns named {twice!r}. Give every column a name of its own.")


def _are_texts(X: Any) -> bool:
    """Whether X is a list or an array of texts, and of nothing else."""
    if isinstance(X, np.ndarray):
        return X.ndim == 1 and (X.dtype.kind == "U" or (X.dtype.kind == "O" and all(isinstance(x, str) for x in X)))
    return isinstance(X, list | tuple) and len(X) > 0 and all(isinstance(x, str) for x in X)


def refusal(X: Any, names: Any, fitting: bool) -> str | None:
    """What keeps rows from being finite numbers: the column, the row and what to do; None where that is not found."""
    try:
        table = as_table(X)
    except (TableError, TypeError, ValueError):
        return None
    if table.matrix and names is not None and len(names) == len(table.names):
        table = table.rename([str(name) for name in names])
    refused = {}
    for name in table.names:
        try:
            wrong = _wrong(extract_values(table.column(name), name, ()), fitting)
        except TableError as error:
            refused[name] = f"X: {error}"
            continue
        if wrong:
            refused[name] = f"X: column {name!r} must hold finite numbers; {wrong}"
    return str(RefusedColumns("X", refused)) if refused else None


def _wrong(values: Any, fitting: bool) -> str | None:
    """What is wrong with a column of numbers."""
    if values.kind == "date":
        return "it holds dates. Make numbers of them first (a year, a weekday, days since an event), or leave it out."
    found = values.to_numbers()
    if found is None:
        row, value = values.find_first(~values.is_number(), 0)
        remedy = "Leave `categorical` at 'auto', which encodes text" if fitting else "The model was trained on numbers"
        return f"row {row} has {value!r}. {remedy}."
    if not values.present.all():
        row = int(values.present.argmin())
        remedy = (
            "Leave `categorical` at 'auto', which takes missing values, or fill it"
            if fitting
            else "None was missing there in training: fill it, or train with rows in which it is missing"
        )
        return f"row {row} has none (NaN). {remedy}."
    too_large = ~(np.abs(found) <= LARGEST)
    if too_large.any():
        row, value = values.find_first(too_large, 0)
        return f"row {row} has {value}, infinity or a number beyond single precision. Correct it or leave the row out."
    return None
