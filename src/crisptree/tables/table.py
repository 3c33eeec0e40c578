"""Tables in memory: DataFrames of pandas and polars, Arrow's tables, dictionaries of columns, arrays.

Nobody's library is imported: what a table is, is told by what it offers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from crisptree.streams import refuse_batches
from crisptree.tables.containers import is_arrow, is_pandas, is_polars, materialize
from crisptree.tables.errors import TableError, listed
from crisptree.tables.number_texts import PLAIN, NumberTexts

VALUES_AT_ONCE = 2**22
MOST_ROWS, FEWEST_ROWS = 2**16, 2**8


class AnyTable(Protocol):
    """What survey and encoding need of a table, be it a file or in memory; see ``source.Source``."""

    matrix: int
    n_read: int
    first_row: int
    written: NumberTexts

    @property
    def path(self) -> Any: ...
    @property
    def kind(self) -> str: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    def batches(self, columns: Collection[str]) -> Iterator[Any]: ...
    def features(self, without: Collection[str]) -> list[str]: ...


def _nothing(number: int, rows: slice) -> Any:
    """A column of a table without rows."""
    return np.zeros(0)


class Table:
    """A table in memory; ``table_of`` makes it.

    Parameters
    ----------
    names : sequence of str or None
        What its columns are called; None where they have no names and are found by their place.
    n_columns, n_rows : int
        Its size.
    column : callable
        The column with a number, some of its rows or all of them: ``column(number, slice)``.
    """

    kind, first_row, path, written = "table", 0, "X", PLAIN

    def __init__(
        self,
        names: Sequence[str] | None,
        n_columns: int,
        n_rows: int = 0,
        column: Callable[[int, slice], Any] = _nothing,
    ) -> None:
        self.num_rows, self._column, self.n_read = n_rows, column, 0
        self.matrix = n_columns if names is None else 0
        self.names = tuple(f"x{number}" for number in range(n_columns)) if names is None else tuple(names)
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise TableError(f"X has two columns named {twice[0]!r}. Give every column a name of its own.")
        self._places = {name: number for number, name in enumerate(self.names)}
        self._rows = slice(None)

    def heading(self) -> Table:
        """The table without its rows."""
        return Table(None if self.matrix else self.names, len(self.names))

    def renamed(self, names: Sequence[str]) -> Table:
        """The table with other names for its columns."""
        return Table(names, len(self.names), self.num_rows, self._column)

    def column(self, name: str) -> Any:
        """A column, as its library holds it."""
        return self._column(self._places[name], self._rows)

    def batches(self, columns: Collection[str]) -> Iterator[Table]:
        """Pieces as large as those of a file with as many columns, so that their sums are the same to the last bit."""
        step = piece_rows(len(columns))
        for start in range(0, self.num_rows, step):
            self.n_read = start
            piece = object.__new__(Table)
            piece.__dict__ = {**self.__dict__, "_rows": slice(start, start + step)}
            piece.num_rows = min(step, self.num_rows - start)
            yield piece

    def features(self, without: Collection[str]) -> list[str]:
        """All columns but some."""
        return [name for name in self.names if name not in set(without)]


def piece_rows(n_columns: int) -> int:
    """How many rows of so many columns are looked at together."""
    return max(FEWEST_ROWS, min(MOST_ROWS, VALUES_AT_ONCE // max(1, n_columns)))


def table_of(X: Any) -> Table:
    """A table from whatever holds its columns.

    Examples
    --------
    >>> table = table_of({"age": [41, 12], "color": ["red", "blue"]})
    >>> table.names, table.num_rows, table.column("color")
    (('age', 'color'), 2, ['red', 'blue'])
    """
    refuse_batches(X, "a table")
    X = columns_of_records(materialize(X))
    if hasattr(X, "toarray"):
        raise TypeError(
            "X must be dense: sparse input is not supported where columns are looked at one by one. Give X.toarray()."
        )
    if isinstance(X, Mapping):
        return _of_columns(X)
    if is_pandas(X):
        return Table(_names(list(X.columns)), X.shape[1], len(X), lambda number, rows: X.iloc[rows, number])
    if is_polars(X):
        return Table(
            list(X.columns), X.shape[1], len(X), lambda number, rows: _of_polars(X.get_columns()[number][rows])
        )
    if is_arrow(X):
        return Table(
            list(X.column_names), len(X.column_names), X.num_rows, lambda number, rows: _sliced(X.column(number), rows)
        )
    return _of_array(X)


def columns_of_records(X: Any) -> Any:
    """A list of dictionaries, one for every row, as a dictionary of columns; anything else as it is.

    Examples
    --------
    >>> columns_of_records([{"age": 41, "color": "red"}, {"age": 12}])
    {'age': [41, 12], 'color': ['red', None]}
    """
    if not isinstance(X, list | tuple) or not X or not all(isinstance(row, Mapping) for row in X):
        return X
    names = dict.fromkeys(name for row in X for name in row)
    return {name: [row.get(name) for row in X] for name in names}


def _of_columns(columns: Mapping[Any, Any]) -> Table:
    found = list(columns.values())
    plain = [name for name, column in columns.items() if np.ndim(column) != 1 and not hasattr(column, "__len__")]
    if plain or any(isinstance(column, str) for column in found):
        raise TableError("X as a dictionary must hold a column of values under every name; it holds single values.")
    lengths = {str(name): len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name!r} has {length}" for name, length in list(lengths.items())[:5])
        raise TableError(f"X must have columns of one length; {told}.")
    n_rows = next(iter(lengths.values()), 0)
    return Table([str(name) for name in columns], len(found), n_rows, lambda number, rows: _sliced(found[number], rows))


def _of_array(X: Any) -> Table:
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


def _sliced(column: Any, rows: slice) -> Any:
    if rows == slice(None):
        return column
    start, stop = rows.start, min(rows.stop, len(column))
    if hasattr(column, "iloc"):
        return column.iloc[start:stop]
    return column.slice(start, stop - start) if hasattr(column, "combine_chunks") else column[start:stop]


def _of_polars(series: Any) -> Any:
    """A column of polars', as Arrow's where there is Arrow, and otherwise as Python's values."""
    try:
        return series.to_arrow()
    except ModuleNotFoundError:
        return series.to_list()


def column_labels(X: Any) -> list[Any] | None:
    """The labels of a DataFrame's columns where they are no text: numbers, or the tuples of several levels."""
    columns = getattr(X, "columns", None) if hasattr(X, "iloc") else None
    if columns is None:
        return None
    labels = list(columns)
    return None if any(isinstance(label, str) for label in labels) else labels


def by_label(X: Any, labels: list[Any] | None) -> Any:
    """A DataFrame whose columns have no text for a name, in the order of training; other tables as they are.

    Without this such columns would be taken by their place, whatever stands there.
    """
    given = None if labels is None else column_labels(X)
    if labels is None or given is None or given == labels:
        return X
    if len(set(given)) < len(given) or not set(labels) <= set(given):
        lacking = [label for label in labels if label not in given]
        shown = f"it has no {listed(map(str, lacking), 5)}" if lacking else "some of its labels stand there twice"
        raise TableError(
            f"X must have the columns that the model was trained on, {listed(map(str, labels), 5)}; {shown}."
        )
    return X.iloc[:, [given.index(label) for label in labels]]


def _names(columns: list[Any]) -> list[str] | None:
    """The names of a DataFrame's columns; none where they are mere numbers, as scikit-learn has it."""
    if all(isinstance(name, str) for name in columns):
        return columns
    if not any(isinstance(name, str) for name in columns):
        return None
    raise TypeError(
        f"the column names of X must all be text, or none of them; got {listed(columns, 5)}. Make text of them, with "
        "X.columns = X.columns.astype(str). Feature names are only supported if all input features have string names."
    )
