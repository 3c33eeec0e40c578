"""Tables in memory and the values of their columns: frames of pandas and polars, Arrow tables, dictionaries, arrays.

No library is imported: what a container is, is recognised by what it offers. Arrow streams are read; containers that
are not in memory are refused. The values of a column, in memory or of a file, are numbers, booleans, texts or dates.
"""

from __future__ import annotations

import datetime
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crisptree.encoding.text_formats import BOOLEANS, DEFAULT_FORMAT, NUMBER, PLAIN_CHARACTERS, Doubles, NumberFormat
from crisptree.exceptions import TableError, format_names
from crisptree.targets.base import is_missing

if TYPE_CHECKING:
    from crisptree.encoding.preprocessing import Preprocessing

VALUES_PER_BATCH = 2**22
MAX_ROWS_PER_BATCH, MIN_ROWS_PER_BATCH = 2**16, 2**8

LOADERS = ("toPandas", "collect", "compute", "to_table", "to_arrow_table", "to_pandas")
"""Methods by which lazy containers are read into memory."""


class TableLike(ABC):
    """A table, in memory or in a file, for profiling and encoding.

    ``path`` and ``kind`` name it in errors. The first ``matrix`` columns are features without names of their own (.npz,
    LIBSVM; else 0), ``number_format`` is how text writes numbers; ``n_read`` rows come before the latest batch.
    """

    path: Any
    kind: str
    names: tuple[str, ...]
    matrix = 0
    n_read = 0
    number_format = DEFAULT_FORMAT

    @abstractmethod
    def batches(self, columns: Collection[str]) -> Iterator[Any]:
        """Iterate over the rows once. The size of the batches depends on the number of columns alone.

        So a sum over batches is the same, bit for bit, for a table in one format or another.
        """

    def features(self, without: Collection[str]) -> list[str]:
        """Return the columns that may be features: all but some, or those of the matrix."""
        names, others = self.names[: self.matrix] if self.matrix else self.names, set(without)
        return [name for name in names if name not in others]


def _empty_column(number: int, rows: slice) -> Any:
    """Return a column of a table without rows."""
    return np.zeros(0)


class Table(TableLike):
    """A table in memory, created by ``as_table``.

    ``names`` is None where columns have none and are found by position; ``column(index, slice)`` returns rows of one.
    """

    kind, path = "table", "X"

    def __init__(
        self,
        names: Sequence[str] | None,
        n_columns: int,
        n_rows: int = 0,
        column: Callable[[int, slice], Any] = _empty_column,
    ) -> None:
        self.num_rows, self._column = n_rows, column
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
        step = compute_batch_rows(len(columns))
        for start in range(0, self.num_rows, step):
            self.n_read = start
            batch = copy(self)
            batch._rows, batch.num_rows = slice(start, start + step), min(step, self.num_rows - start)
            yield batch


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
        return _table_of_columns(X)
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
    return _table_of_array(X)


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


def _table_of_columns(columns: Mapping[Any, Any]) -> Table:
    values = list(columns.values())
    if any(isinstance(column, str) or not hasattr(column, "__len__") for column in values):
        raise TableError(
            "X as a dictionary must hold a column of values under every name; it holds single values. "
            "For one row give a list of it, [row]."
        )
    lengths = {str(name): len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name!r} has {length}" for name, length in list(lengths.items())[:5])
        raise TableError(f"X must have columns of one length; {shown}.")
    n_rows = next(iter(lengths.values()), 0)
    return Table([str(name) for name in columns], len(values), n_rows, lambda index, rows: _slice(values[index], rows))


def _table_of_array(X: Any) -> Table:
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
        shown = f"it has no {format_names(map(str, lacking), 5)}" if lacking else "some of its labels occur twice"
        raise TableError(
            f"X must have the columns that the model was trained on, {format_names(map(str, labels), 5)}; {shown}."
        )
    return X.iloc[:, [current.index(label) for label in labels]]


def _get_names(columns: list[Any]) -> list[str] | None:
    """Return the column names of a DataFrame; None where they are mere numbers, as in scikit-learn."""
    if all(isinstance(name, str) for name in columns):
        return columns
    if not any(isinstance(name, str) for name in columns):
        return None
    raise TypeError(
        f"the column names of X must all be text, or none of them; got {format_names(columns, 5)}. Make text of them, "
        "with X.columns = X.columns.astype(str). Feature names are only supported if all input features have string "
        "names."
    )


def check_unique_names(names: Sequence[object], table: object) -> None:
    """Raise if two columns have the same name."""
    duplicates = [name for name, count in Counter(names).items() if count > 1]
    if duplicates:
        raise TableError(f"{table} has two columns named {duplicates[0]!r}. Give every column a name of its own.")


Mask = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]


def match_texts(texts: Sequence[str], pattern: str) -> Mask:
    """Return which texts match a regular expression that begins with ^ and ends with $."""
    if re.search(pattern, "\n".join(texts), re.ASCII | re.MULTILINE) is None:  # one pass where none does
        return np.zeros(len(texts), dtype=bool)
    compiled = re.compile(pattern, re.ASCII)
    return np.array([compiled.search(text) is not None for text in texts], dtype=bool)


def parse_texts(texts: Sequence[str], number_format: NumberFormat) -> Doubles:
    """Parse texts as numbers; NaN where one is no finite number, 'inf' and 'nan' included."""
    plain = [number_format.normalize(text) for text in texts] if number_format != DEFAULT_FORMAT else texts
    try:
        if not PLAIN_CHARACTERS.fullmatch("\n".join(plain)):
            raise ValueError
        numbers = np.array([float(text) for text in plain], dtype=np.float64)
    except ValueError:
        is_number = match_texts(plain, NUMBER).tolist()
        numbers = np.array([float(text) if ok else np.nan for text, ok in zip(plain, is_number, strict=True)])
    return np.where(np.isfinite(numbers), numbers, np.nan)


@dataclass(frozen=True, eq=False)
class ColumnValues:
    """The values of a column, or of a batch of its rows."""

    kind: str  # "number", "boolean", "text" or "date"
    present: Mask  # rows that have a value
    where: npt.NDArray[np.intp]  # their positions
    array: npt.NDArray[Any]  # the values that are present; codes of ``texts`` if there are any
    texts: list[str] | None = None  # distinct texts, each of which occurs
    is_category: bool = False  # the table itself declares the column a category
    number_format: NumberFormat = DEFAULT_FORMAT

    def __len__(self) -> int:
        """Return the number of values that are present."""
        return len(self.where)

    def select(self, rows: Mask) -> ColumnValues:
        """Select rows; the others count neither as present nor as missing, and ``where`` keeps its positions."""
        kept = rows[self.present]
        array, texts = self.array[kept], self.texts
        if texts is not None:
            used, array = np.unique(array, return_inverse=True)
            texts = [texts[code] for code in used.tolist()]
        where, present = self.where[kept], self.present[rows]
        return ColumnValues(self.kind, present, where, array, texts, self.is_category, self.number_format)

    def find_first(self, mask: Mask, start: int) -> tuple[int, Any]:
        """Return the row and value of the first present value that a mask marks, counting rows from ``start``."""
        position = int(np.argmax(mask))
        return start + int(self.where[position]), self.get_value(position)

    def get_value(self, position: int) -> Any:
        """Return one of the present values."""
        value = self.array[position : position + 1].tolist()[0]
        return value if self.texts is None else self.texts[value]

    def to_numbers(self) -> Doubles | None:
        """Return the present values as numbers, or None where one of them is none; text such as 'inf' is no number."""
        if self.kind == "date":
            return None
        if self.texts is None:
            return self.array.astype(np.float64, copy=False)
        return None if np.isnan(self._parsed).any() else self._parsed[self.array]

    def to_booleans(self) -> Doubles | None:
        """Return the present values as 0 and 1, or None where one of them is not true or false."""
        if self.texts is None or self.kind == "date":
            return self.to_numbers() if self.kind == "boolean" else None
        lower = [text.lower() for text in self.texts]
        if not set(lower) <= set(BOOLEANS):
            return None
        return np.array([float(BOOLEANS.index(text)) for text in lower])[self.array]

    def to_texts(self, *, normalize: bool = True) -> npt.NDArray[np.object_]:
        """Return the present values as text; unless ``normalize`` is False, text that is an integer has no fraction.

        Examples
        --------
        >>> extract_values(["1.0", "1.50", "a"], "x", ()).to_texts().tolist()
        ['1', '1.50', 'a']
        """
        if self.texts is not None and not normalize:
            return np.array(self.texts, dtype=object)[self.array]
        texts, codes = self._distinct_texts()
        return np.array(texts, dtype=object)[codes]

    def is_number(self) -> Mask:
        """Return which of the present texts are finite numbers."""
        return ~np.isnan(self._parsed)[self.array]

    def match(self, pattern: str) -> Mask:
        """Return which of the present texts match a regular expression."""
        assert self.texts is not None, "only text can be matched"
        return match_texts(self.texts, pattern)[self.array]

    def value_counts(self, limit: int) -> tuple[int, dict[str, int]]:
        """Return the number of distinct texts, and how often the first ``limit`` of them occur.

        Texts are the same wherever the values come from: 1.0 is '1', True is 'true'.
        """
        texts, codes = self._distinct_texts()
        counts = np.bincount(codes, minlength=len(texts)).tolist()
        return len(texts), dict(zip(texts[:limit], counts[:limit], strict=True))

    def encode(self, categories: Sequence[str]) -> tuple[Integers, dict[str, int]]:
        """Return the index of every value among the categories, −1 for others, and how often each other occurs."""
        texts, codes = self._distinct_texts()
        indices = {category: index for index, category in enumerate(categories)}
        index_of = np.array([indices.get(text, -1) for text in texts] or [-1], dtype=np.int64)
        unknown: dict[str, int] = {}
        if (index_of < 0).any():
            counts = np.bincount(codes, minlength=len(texts)).tolist()
            unknown = {text: count for text, count in zip(texts, counts, strict=True) if text not in indices}
        return index_of[codes], unknown

    @cached_property
    def _parsed(self) -> Doubles:
        assert self.texts is not None, "only text is parsed"
        return parse_texts(self.texts, self.number_format)

    def _distinct_texts(self) -> tuple[list[str], Integers]:
        """Return the distinct values as normalized text, and the code of one of them for every present value."""
        if self.texts is not None:
            texts, codes = [re.sub(r"^(-?\d+)\.0+$", r"\1", text) for text in self.texts], self.array
        else:
            values, codes = np.unique(self.array, return_inverse=True)
            formatters: dict[str, Callable[[Any], str]] = {"number": format_number, "boolean": lambda x: str(x).lower()}
            texts = [formatters.get(self.kind, str)(value) for value in values.tolist()]
        if len(set(texts)) == len(texts):
            return texts, codes
        indices: dict[str, int] = {}
        index_of = np.array([indices.setdefault(text, len(indices)) for text in texts], dtype=np.int64)
        return list(indices), index_of[codes]


def format_number(value: Any) -> str:
    """Format a number as a text that is the same for 1 and 1.0.

    Examples
    --------
    >>> format_number(1.0), format_number(2.5)
    ('1', '2.5')
    """
    if isinstance(value, int):
        return str(value)
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**63 else repr(float(value))


def extract_values(
    column: Any, name: str, missing: Collection[str], number_format: NumberFormat = DEFAULT_FORMAT
) -> ColumnValues:
    """Extract the values of a Series, an array, a list or a column of pyarrow.

    Text is trimmed; the texts in ``missing``, None, NaN and NaT count as missing.

    Examples
    --------
    >>> values = extract_values(np.array(["12", " 7 ", "", None, "?"], dtype=object), "age", missing=("", "?"))
    >>> values.to_numbers().tolist(), values.present.tolist()
    ([12.0, 7.0], [True, True, False, False, False])
    """
    dtype = getattr(column, "dtype", None)
    if type(column).__module__.partition(".")[0] == "pyarrow":
        values = _from_arrow(column, name, missing)
    elif hasattr(column, "factorize"):
        values = _from_series(column, dtype, name, missing)
    else:
        values = _from_array(np.asarray(column) if dtype is not None else np.array(column, dtype=object), name, missing)
    return values if number_format == DEFAULT_FORMAT else replace(values, number_format=number_format)


def _from_arrow(array: Any, name: str, missing: Collection[str]) -> ColumnValues:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = _arrow_kind(array.type, name)
    if kind in ("text", "date"):
        encoded = _cast_to_text(array).dictionary_encode()
        codes = np.full(len(array), -1, dtype=np.int64)
        codes[_to_numpy(pc.is_valid(encoded.indices))] = _to_numpy(encoded.indices.drop_null())
        return _from_texts(kind, encoded.dictionary.to_pylist(), codes, missing)
    if kind == "number" and not pa.types.is_integer(array.type):  # integers keep all digits: they may be labels
        array = array.cast(pa.float64())
    absent = pc.is_null(array, nan_is_null=True)
    present = ~_to_numpy(absent)
    return _from_mask(kind, present, _to_numpy(array if present.all() else array.filter(pc.invert(absent))))


def _arrow_kind(kind: Any, name: str) -> str:
    from pyarrow import types

    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_boolean(kind):
        return "boolean"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) or types.is_null(kind):
        return "text"
    if types.is_temporal(kind):
        return "date"
    raise _unsupported_type(name, kind)


def _cast_to_text(array: Any) -> Any:
    import pyarrow as pa

    try:
        return array.cast(pa.string())
    except pa.ArrowNotImplementedError:  # intervals
        return pa.array([str(value) for value in array.to_pylist()], pa.string())


def _to_numpy(array: Any) -> npt.NDArray[Any]:
    """Convert an array without nulls; its own ``to_numpy`` would import pandas, which takes a second."""
    from pyarrow import types, uint8

    if types.is_boolean(array.type):
        return np.from_dlpack(array.cast(uint8())).astype(bool)
    return np.from_dlpack(array)


def _from_series(series: Any, dtype: Any, name: str, missing: Collection[str]) -> ColumnValues:
    """Extract values by the names of the types of pandas, which itself is not imported."""
    kind, type_name = getattr(dtype, "kind", "O"), str(dtype)
    if type_name == "category":
        categories, codes = series.cat.categories.tolist(), series.cat.codes.to_numpy().astype(np.int64)
        is_date = bool(categories) and all(map(_is_date, categories))
        texts = [_format_object(value, name) for value in categories]
        values = _from_texts("date" if is_date else "text", texts, codes, missing)
        return replace(values, is_category=not is_date)
    if kind in "mM" or type_name.startswith(("period", "date", "time")):
        return _from_mask("date", np.asarray(series.notna(), dtype=bool), series.to_numpy())
    if kind in "iufb":
        array = series.to_numpy() if isinstance(dtype, np.dtype) else _from_nullable(series, kind)
        return _from_array(array, name, missing, is_boolean=kind == "b")
    return _from_array(series.to_numpy(dtype=object), name, missing)


def _from_nullable(series: Any, kind: str) -> npt.NDArray[Any]:
    """Convert numbers or booleans that may be missing to floats with NaN where any is."""
    if not series.isna().any():
        return np.asarray(series.to_numpy(dtype={"b": bool, "f": np.float64}.get(kind, np.int64)))
    return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))


def _from_array(
    array: npt.NDArray[Any], name: str, missing: Collection[str], *, is_boolean: bool = False
) -> ColumnValues:
    if array.ndim != 1:
        raise TableError(f"column {name!r} must have one value in every row; it has the shape {array.shape}.")
    kind = array.dtype.kind
    if kind == "f":
        return _from_mask("boolean" if is_boolean else "number", ~np.isnan(array), array)
    if kind in "iub":
        return _from_mask("boolean" if kind == "b" else "number", np.ones(len(array), dtype=bool), array)
    if kind in "mM":
        return _from_mask("date", ~np.isnat(array), array)
    if kind not in "OUT":
        raise _unsupported_type(name, array.dtype)
    indices: dict[Any, int] = {}
    try:
        # True and 1 are equal, and are not the same value.
        codes = [indices.setdefault((type(value) is bool, value), len(indices)) for value in array.tolist()]
    except TypeError as error:
        raise _unsupported_type(name, _find_unhashable(array.tolist())) from error
    distinct = [value for _, value in indices]
    return _from_objects(distinct, np.array(codes, dtype=np.int64), name, missing)


def _from_objects(distinct: list[Any], codes: Integers, name: str, missing: Collection[str]) -> ColumnValues:
    """Classify a column of Python objects by the types of its distinct values; code −1 stands for a missing one."""
    valid = [not is_missing(value) for value in distinct]
    if not all(valid):
        codes = np.array([code if is_valid else -1 for code, is_valid in enumerate(valid)] + [-1])[codes]
    values = [value for value, is_valid in zip(distinct, valid, strict=True) if is_valid]
    for kind, has_kind in (("boolean", _is_bool), ("number", _is_real)):
        if values and all(map(has_kind, values)):
            numbers = np.array([float(value) if has_kind(value) else 0.0 for value in distinct])
            return _from_mask(kind, codes >= 0, numbers[codes])
    texts = [_format_object(value, name) if is_valid else "" for value, is_valid in zip(distinct, valid, strict=True)]
    is_date = bool(values) and all(map(_is_date, values))
    return _from_texts("date" if is_date else "text", texts, codes, missing)


def _from_texts(kind: str, texts: list[str], codes: Integers, missing: Collection[str]) -> ColumnValues:
    """Merge texts that are the same once trimmed, and drop those that mean a missing value or do not occur."""
    trimmed = [text.strip() for text in texts]
    if len(set(trimmed)) < len(trimmed) or not set(trimmed).isdisjoint(missing):
        absent = set(missing)
        indices: dict[str, int] = {}
        for text in trimmed:
            if text not in absent:
                indices.setdefault(text, len(indices))
        codes = np.array([indices.get(text, -1) for text in trimmed] + [-1], dtype=np.int64)[codes]
        trimmed = list(indices)
    used = np.bincount(codes[codes >= 0], minlength=len(trimmed)) > 0
    if not used.all():  # a batch of a larger column, or categories that no row has
        codes = np.append(np.cumsum(used) - 1, -1)[codes]
        trimmed = [text for text, is_used in zip(trimmed, used.tolist(), strict=True) if is_used]
    present = codes >= 0
    where = np.flatnonzero(present)
    return ColumnValues(kind, present, where, codes[where], trimmed)


def _from_mask(kind: str, present: Mask, array: npt.NDArray[Any]) -> ColumnValues:
    where = np.flatnonzero(present)
    return ColumnValues(kind, present, where, array if len(array) == len(where) else array[present])


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _is_real(value: Any) -> bool:
    return (isinstance(value, Real | np.number) or type(value).__name__ == "Decimal") and not _is_bool(value)


def _is_date(value: Any) -> bool:
    return isinstance(value, datetime.date | datetime.time | datetime.timedelta | np.datetime64 | np.timedelta64) or (
        type(value).__name__ == "Period"
    )


def _format_object(value: Any, name: str) -> str:
    if isinstance(value, str):
        return value
    if _is_bool(value):
        return str(value).lower()
    if _is_real(value):
        return format_number(value)
    if _is_date(value) or type(value).__name__ == "Interval":
        return str(value)
    raise _unsupported_type(name, type(value).__name__)


def _find_unhashable(values: Iterable[Any]) -> str:
    return next((type(value).__name__ for value in values if type(value).__hash__ is None), "object")


def _unsupported_type(name: str, kind: Any) -> TableError:
    return TableError(
        f"column {name!r} must hold numbers, booleans or text; it holds values of type {kind}. "
        f"Leave it out with `drop={[name]}`."
    )
