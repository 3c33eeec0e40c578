"""Containers of rows in memory: DataFrames of pandas and polars, Arrow tables, dictionaries of columns, arrays.

No library is imported: what a container is, is recognised by what it offers. Arrow streams are read; containers that
are not in memory are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from crisptree.encoding.column_values import DEFAULT_FORMAT, NumberFormat, TableError, check_unique_names, listed

if TYPE_CHECKING:
    from crisptree.encoding.preprocessing import Preprocessing

VALUES_PER_BATCH = 2**22
MAX_ROWS_PER_BATCH, MIN_ROWS_PER_BATCH = 2**16, 2**8

LOADERS = ("toPandas", "collect", "compute", "to_table", "to_arrow_table", "to_pandas")
"""Methods by which lazy containers are read into memory."""


class TableLike(Protocol):
    """Interface of a table, in memory or in a file, for profiling and encoding; see ``table_files.TableFile``."""

    matrix: int
    n_read: int
    number_format: NumberFormat

    @property
    def path(self) -> Any: ...
    @property
    def kind(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    def batches(self, columns: Collection[str]) -> Iterator[Any]: ...
    def features(self, without: Collection[str]) -> list[str]: ...


def _empty_column(number: int, rows: slice) -> Any:
    """Return a column of a table without rows."""
    return np.zeros(0)


class Table:
    """A table in memory, created by ``as_table``.

    ``names`` is None where columns have none and are found by position; ``column(index, slice)`` returns rows of one.
    """

    kind, path, number_format = "table", "X", DEFAULT_FORMAT

    def __init__(
        self,
        names: Sequence[str] | None,
        n_columns: int,
        n_rows: int = 0,
        column: Callable[[int, slice], Any] = _empty_column,
    ) -> None:
        self.num_rows, self._column, self.n_read = n_rows, column, 0
        self.matrix = n_columns if names is None else 0
        self.names = tuple(f"x{number}" for number in range(n_columns)) if names is None else tuple(names)
        check_unique_names(self.names, self.path)
        self._places = {name: number for number, name in enumerate(self.names)}
        self._rows = slice(None)

    def header(self) -> Table:
        """Return the table without its rows."""
        return Table(None if self.matrix else self.names, len(self.names))

    def rename(self, names: Sequence[str]) -> Table:
        """Return the table with other column names."""
        return Table(names, len(self.names), self.num_rows, self._column)

    def column(self, name: str) -> Any:
        """Return a column, as its library holds it."""
        return self._column(self._places[name], self._rows)

    def batches(self, columns: Collection[str]) -> Iterator[Table]:
        """Iterate over batches as large as those of a file with as many columns: sums agree to the last bit."""
        step = compute_batch_rows(len(columns))
        for start in range(0, self.num_rows, step):
            self.n_read = start
            batch = copy(self)
            batch._rows, batch.num_rows = slice(start, start + step), min(step, self.num_rows - start)
            yield batch

    def features(self, without: Collection[str]) -> list[str]:
        """Return the names of all columns but some."""
        return [name for name in self.names if name not in set(without)]


def compute_batch_rows(n_columns: int) -> int:
    """Return the number of rows per batch, which depends on the number of columns alone."""
    return max(MIN_ROWS_PER_BATCH, min(MAX_ROWS_PER_BATCH, VALUES_PER_BATCH // max(1, n_columns)))


def materialize(X: Any, name: str = "X") -> Any:
    """Return X as a container in memory that NumPy, scikit-learn or ``as_table`` can take.

    Arrays, lists, sparse matrices, frames of pandas and polars and tables of pyarrow are returned as they are. Other
    tables that offer ``__arrow_c_stream__`` become tables of pyarrow.

    Raises
    ------
    TableError
        If X is lazy (LazyFrame of polars, dask) or a dataset that must be read first (pyarrow, Hugging Face).
    """
    if isinstance(X, np.ndarray | list | tuple):
        return X
    if hasattr(X, "__dask_graph__") and hasattr(X, "columns"):  # looks like a DataFrame of pandas until values are read
        raise _not_in_memory(X, name, "compute")
    if is_pandas(X) or is_polars(X) or is_arrow(X):
        return X
    is_array = hasattr(X, "__array__")
    if hasattr(X, "__arrow_c_stream__") and (not is_array or hasattr(X, "columns")):  # others are Series
        try:
            import pyarrow
        except ImportError as error:
            raise ImportError(
                f"{name} must be an array, or a frame of pandas or polars, where pyarrow is not installed; got "
                f"{_describe_type(X)}. Install it with: pip install 'crisptree[tables]'"
            ) from error
        return pyarrow.table(X)
    if is_array or hasattr(X, "toarray"):
        return X
    loader = next((method for method in LOADERS if hasattr(type(X), method)), None)
    if loader is not None:
        raise _not_in_memory(X, name, loader)
    if X is not None and not np.isscalar(X) and not hasattr(type(X), "__len__"):
        raise TypeError(
            f"{name} must be an array, a list, a sparse matrix or a table; got {_describe_type(X)}, which is neither."
        )
    return X


@dataclass(frozen=True, eq=False)
class EncodedInput:
    """X of a fit, an array or batches, with the preprocessing that has encoded its rows."""

    X: Any
    preprocessing: Preprocessing


def split_encoded(X: Any) -> tuple[Any, Preprocessing | None]:
    """Return X of a fit, and the preprocessing that has encoded it, if any."""
    return (X.X, X.preprocessing) if isinstance(X, EncodedInput) else (X, None)


def are_batches(X: Any) -> bool:
    """Return True for rows in batches: ``Batches``, or what they are made of (functions, iterators, data of torch)."""
    return callable(X) or isinstance(X, Iterator) or hasattr(type(X), "one_pass") or is_of_torch(X)


def is_of_torch(X: Any) -> bool:
    """Return True for a Dataset or DataLoader of torch."""
    return any(kind.__module__.startswith("torch.utils.data") for kind in type(X).__mro__)


def refuse_batches(X: Any, taker: str) -> None:
    """Raise for rows in batches, which only the fit of a single tree takes."""
    if are_batches(X):
        raise TypeError(
            f"{taker} must be given rows that are in memory, or in a file mapped by np.load(…, mmap_mode='r'); got "
            f"{type(X).__name__}. On batches only fit of CrispTreeClassifier and CrispTreeRegressor trains; for "
            "anything else go through `Batches(…).one_pass()` and take one batch at a time."
        )


def is_pandas(X: Any) -> bool:
    """Return True for a DataFrame of pandas, or of a library with the same interface."""
    return hasattr(X, "iloc") and hasattr(X, "columns")


def is_polars(X: Any) -> bool:
    """Return True for a DataFrame of polars that is in memory."""
    return hasattr(X, "get_columns") and hasattr(X, "with_columns")


def is_arrow(X: Any) -> bool:
    """Return True for a table of pyarrow; a RecordBatch has no ``combine_chunks``."""
    return hasattr(X, "column_names") and hasattr(X, "combine_chunks")


def _not_in_memory(X: Any, name: str, loader: str) -> TableError:
    return TableError(f"{name} must be a table in memory; got {_describe_type(X)}. Call its {loader}() first.")


def _describe_type(X: Any) -> str:
    """Name the type and its package, since many have a DataFrame or a Dataset."""
    return f"a {type(X).__name__} of {type(X).__module__.split('.')[0]}"


def as_table(X: Any) -> Table:
    """Wrap any container of columns as a table.

    Examples
    --------
    >>> table = as_table({"age": [41, 12], "color": ["red", "blue"]})
    >>> table.names, table.num_rows, table.column("color")
    (('age', 'color'), 2, ['red', 'blue'])
    """
    refuse_batches(X, "a table")
    X = convert_records(materialize(X))
    if hasattr(X, "toarray"):
        raise TypeError(
            "X must be dense: sparse input is not supported where columns are encoded one by one. Give X.toarray()."
        )
    if isinstance(X, Mapping):
        return _from_columns(X)
    if is_pandas(X):
        return Table(_get_names(list(X.columns)), X.shape[1], len(X), lambda number, rows: X.iloc[rows, number])
    if is_polars(X):
        return Table(
            list(X.columns), X.shape[1], len(X), lambda number, rows: _convert_polars(X.get_columns()[number][rows])
        )
    if is_arrow(X):
        return Table(
            list(X.column_names), len(X.column_names), X.num_rows, lambda number, rows: _slice(X.column(number), rows)
        )
    return _from_array(X)


def convert_records(X: Any) -> Any:
    """Convert a list of dictionaries, one per row, to a dictionary of columns; return anything else as it is.

    Examples
    --------
    >>> convert_records([{"age": 41, "color": "red"}, {"age": 12}])
    {'age': [41, 12], 'color': ['red', None]}
    """
    if not isinstance(X, list | tuple) or not X or not all(isinstance(row, Mapping) for row in X):
        return X
    names = dict.fromkeys(name for row in X for name in row)
    return {name: [row.get(name) for row in X] for name in names}


def _from_columns(columns: Mapping[Any, Any]) -> Table:
    values = list(columns.values())
    if any(isinstance(column, str) or not hasattr(column, "__len__") for column in values):
        raise TableError("X as a dictionary must hold a column of values under every name; it holds single values.")
    lengths = {str(name): len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name!r} has {length}" for name, length in list(lengths.items())[:5])
        raise TableError(f"X must have columns of one length; {shown}.")
    n_rows = next(iter(lengths.values()), 0)
    return Table([str(name) for name in columns], len(values), n_rows, lambda index, rows: _slice(values[index], rows))


def _from_array(X: Any) -> Table:
    array = np.asarray(X)
    if array.dtype.kind in "US" and isinstance(X, list | tuple):
        array = np.asarray(X, dtype=object)  # so that numbers beside text stay numbers
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X must hold real numbers; got {array.dtype}.")
    if array.ndim != 2:
        raise ValueError(
            f"X must be a table of rows and columns: Expected 2D array, got {array.ndim}D array instead. Reshape your "
            "data, e.g. X.reshape(1, -1) for one row or X.reshape(-1, 1) for one column."
        )
    return Table(None, array.shape[1], array.shape[0], lambda number, rows: array[rows, number])


def _slice(column: Any, rows: slice) -> Any:
    if rows == slice(None):
        return column
    start, stop = rows.start, min(rows.stop, len(column))
    if hasattr(column, "iloc"):
        return column.iloc[start:stop]
    return column.slice(start, stop - start) if hasattr(column, "combine_chunks") else column[start:stop]


def _convert_polars(series: Any) -> Any:
    """Convert a Series of polars to Arrow where pyarrow is installed, and to a list otherwise."""
    try:
        return series.to_arrow()
    except ModuleNotFoundError:
        return series.to_list()


def get_column_labels(X: Any) -> list[Any] | None:
    """Return the column labels of a DataFrame where they are not text: numbers, or tuples of a MultiIndex."""
    columns = getattr(X, "columns", None) if hasattr(X, "iloc") else None
    if columns is None:
        return None
    labels = list(columns)
    return None if any(isinstance(label, str) for label in labels) else labels


def reorder_columns(X: Any, labels: list[Any] | None) -> Any:
    """Reorder the columns of a DataFrame whose labels are not text as in training; return other tables as they are.

    Without this such columns would be taken by position, whatever they hold.
    """
    current = None if labels is None else get_column_labels(X)
    if labels is None or current is None or current == labels:
        return X
    if len(set(current)) < len(current) or not set(labels) <= set(current):
        lacking = [label for label in labels if label not in current]
        shown = f"it has no {listed(map(str, lacking), 5)}" if lacking else "some of its labels occur twice"
        raise TableError(
            f"X must have the columns that the model was trained on, {listed(map(str, labels), 5)}; {shown}."
        )
    return X.iloc[:, [current.index(label) for label in labels]]


def _get_names(columns: list[Any]) -> list[str] | None:
    """Return the column names of a DataFrame; None where they are mere numbers, as in scikit-learn."""
    if all(isinstance(name, str) for name in columns):
        return columns
    if not any(isinstance(name, str) for name in columns):
        return None
    raise TypeError(
        f"the column names of X must all be text, or none of them; got {listed(columns, 5)}. Make text of them, with "
        "X.columns = X.columns.astype(str). Feature names are only supported if all input features have string names."
    )
