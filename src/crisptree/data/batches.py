"""Rows in batches: data sets larger than memory, read again in every epoch.

``fit`` of a single tree takes ``Batches`` in place of X and y, or what they are made of: a function that begins a new
pass and returns an iterator of (X, y) or (X, y, weight), or a dataset or loader of torch. See docs/guide/large-data.md.

>>> import numpy as np
>>> from crisptree import Batches
>>> rows = Batches.from_arrays(np.eye(5), np.arange(5) > 2, at_once=2)
>>> [len(y) for X, y, weight in rows.one_pass()]
[2, 2, 1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.encoding.containers import is_of_torch
from crisptree.targets.base import detach

__all__ = ["Batch", "Batches", "StreamError"]

ROWS_AT_ONCE = 65_536


class StreamError(ValueError):
    """Batches that are no rows, that differ from each other, or that cannot be read; the message says which.

    Examples
    --------
    >>> from crisptree import Batches, StreamError
    >>> issubclass(StreamError, Exception)
    True
    """


class Batch(NamedTuple):
    """A batch of rows: float32 features, labels, weights."""

    X: npt.NDArray[np.float32]
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]


class Batches:
    """Rows in batches that can be iterated over any number of times.

    Parameters
    ----------
    factory : callable
        Begins a pass: returns an iterator of (X, y) or (X, y, weight). Every pass must give the same rows, in any
        order.
    columns : sequence of str, optional
        The names of the features.
    name : str, default="the rows"
        Name of the rows in error messages.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import Batches, CrispTreeClassifier
    >>> def read():
    ...     for seed in range(4):
    ...         X = np.random.default_rng(seed).normal(size=(200, 3))
    ...         yield X, X[:, 0] > X[:, 1]
    >>> model = CrispTreeClassifier(max_depth=1, random_state=0).fit(Batches(read, columns=["a", "b", "c"]))
    >>> model.feature_names_in_.tolist()
    ['a', 'b', 'c']
    """

    def __init__(
        self, factory: Callable[[], Iterable[Any]], columns: Sequence[str] | None = None, name: str = "the rows"
    ) -> None:
        if not callable(factory):
            raise TypeError(
                f"Batches must be given a function that begins a pass over the rows; got {type(factory).__name__}, "
                "which can be gone through once at most. Give the function that makes it."
            )
        self.factory, self.columns, self.name = factory, columns, name
        self.width: int | None = None if columns is None else len(columns)
        self._last: Any = None  # the iterator that ended the pass before

    @classmethod
    def from_arrays(cls, X: Any, y: Any, weight: Any = None, *, at_once: int = ROWS_AT_ONCE) -> Batches:
        """Read slices of arrays, which may be memory-mapped.

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import Batches
        >>> batches = Batches.from_arrays(np.eye(5), np.arange(5), at_once=3)
        >>> [len(batch.y) for batch in batches.one_pass()]
        [3, 2]
        """
        if len(X) != len(y) or (weight is not None and len(weight) != len(X)):
            raise StreamError(f"X, y and weight must have the same length; X has {len(X):,} rows and y {len(y):,}.")

        def one_pass() -> Iterator[tuple[Any, ...]]:
            for start in range(0, len(X), at_once):
                rows = slice(start, start + at_once)
                yield (X[rows], y[rows]) if weight is None else (X[rows], y[rows], weight[rows])

        return cls(one_pass)

    @classmethod
    def from_parquet(
        cls,
        path: str | PathLike[str] | Sequence[str | PathLike[str]],
        target: str,
        *,
        weights: str | None = None,
        at_once: int = ROWS_AT_ONCE,
    ) -> Batches:
        """Read numeric columns of one or several Parquet files, or of all in a folder.

        Needs pyarrow (the extra ``tables``). Files that change between two passes are refused.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import pandas as pd
        >>> from crisptree import Batches
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "rows.parquet"
        ...     pd.DataFrame({"a": [1.0, 2.0], "y": [0, 1]}).to_parquet(path)
        ...     next(Batches.from_parquet(path, target="y").one_pass()).X.tolist()
        [[1.0], [2.0]]
        """
        files = _find_files(path)
        schema = _open_parquet(files[0]).schema_arrow
        for name in (target, *([] if weights is None else [weights])):
            if name not in schema.names:
                raise StreamError(f"{files[0]} has no column {name!r}; it has {', '.join(schema.names)}.")
        columns = [name for name in schema.names if name not in (target, weights)]
        states = [_get_state(file) for file in files]

        def one_pass() -> Iterator[tuple[Any, ...]]:
            for file, state in zip(files, states, strict=True):
                _check_unchanged(file, state)
                yield from _read_parquet(file, columns, target, weights, at_once)
                _check_unchanged(file, state)

        return cls(one_pass, columns, str(path))

    @classmethod
    def from_dataset(
        cls, data: Any, target: str, *, weights: str | None = None, at_once: int = ROWS_AT_ONCE
    ) -> Batches:
        """Read numeric columns of a distributed or partitioned table, a part of it at a time.

        Parameters
        ----------
        data : pyarrow Dataset, dask DataFrame, Spark DataFrame or Ray Dataset
            The table. Its rows must be the same in every pass: sample or shuffle with a seed, or cache it.
        target, weights : str
            Columns of the target and of sample weights.
        at_once : int, default=65536
            Rows of a batch; batches of a dask DataFrame are its partitions.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import pyarrow.dataset
        >>> from crisptree import Batches
        >>> table = pa.table({"a": [1.0, 2.0, 3.0], "b": [0, 1, 0], "label": ["no", "yes", "no"]})
        >>> rows = Batches.from_dataset(pa.dataset.dataset(table), target="label", at_once=2)
        >>> rows.columns, [batch.y.tolist() for batch in rows.one_pass()]
        (['a', 'b'], [['no', 'yes'], ['no']])
        """
        read = next((READERS[name] for name in READERS if hasattr(data, name)), None)
        if read is None or hasattr(data, "combine_chunks"):  # a table of pyarrow is in memory
            raise TypeError(
                "`data` must be a Dataset of pyarrow or Ray, or a DataFrame of dask or Spark; got "
                f"{type(data).__name__}. Of rows in memory give fit X and y, or `Batches.from_arrays(X, y)`."
            )
        names = _list_columns(data)
        for name in (target, *([] if weights is None else [weights])):
            if name not in names:
                raise StreamError(f"the table has no column {name!r}; it has {', '.join(names)}.")
        columns = [name for name in names if name not in (target, weights)]

        def one_pass() -> Iterator[tuple[Any, ...]]:
            for part in read(data, names, at_once):
                X = np.stack([_check_numbers(part[name], name) for name in columns], axis=1)
                weight = [] if weights is None else [_check_numbers(part[weights], weights)]
                yield (X, np.asarray(part[target]), *weight)

        return cls(one_pass, columns, f"the {type(data).__name__}")

    @classmethod
    def from_torch(cls, data: Any, *, at_once: int = ROWS_AT_ONCE) -> Batches:
        """Read a DataLoader, whose batches are (X, y) or (X, y, weight), or a Dataset of such rows.

        Examples
        --------
        >>> import torch
        >>> from torch.utils.data import DataLoader, TensorDataset
        >>> from crisptree import Batches
        >>> loader = DataLoader(TensorDataset(torch.eye(5), torch.arange(5)), batch_size=2)
        >>> [len(batch.y) for batch in Batches.from_torch(loader).one_pass()]
        [2, 2, 1]
        """
        if hasattr(data, "batch_size"):
            return cls(lambda: iter(data))
        if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
            return cls(lambda: _stack_rows((data[number] for number in range(len(data))), at_once))
        return cls(lambda: _stack_rows(iter(data), at_once))

    def one_pass(self) -> Iterator[Batch]:
        """Iterate over all batches once; each is checked, and empty ones are skipped.

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import Batches
        >>> for X, y, weight in Batches.from_arrays(np.eye(2), [0, 1]).one_pass():
        ...     print(X.shape, y.tolist(), weight.tolist())
        (2, 2) [0, 1] [1.0, 1.0]
        """
        number = -1
        batches = self._begin()
        while True:
            number += 1
            try:
                item = next(batches, None)
            except StreamError:
                raise
            except Exception as error:
                raise StreamError(f"batch {number} of {self.name} cannot be read: {error}.") from error
            if item is None:
                self._last = batches
                return
            batch = self._check(item, number)
            if len(batch.y):
                yield batch

    def _begin(self) -> Iterator[Any]:
        try:
            iterator = iter(self.factory())
        except StreamError:
            raise
        except Exception as error:
            raise StreamError(f"a pass over {self.name} cannot begin: {error}.") from error
        if iterator is self._last:
            raise StreamError(
                f"every pass over {self.name} must begin anew; the function has returned the iterator of the pass "
                "before, which is used up. Make a new one in every call."
            )
        return iterator

    def _check(self, item: Any, number: int) -> Batch:
        if not isinstance(item, tuple | list) or len(item) not in (2, 3):
            raise StreamError(
                f"batch {number} of {self.name} must be (X, y) or (X, y, weight); got {type(item).__name__}."
            )
        parts = [detach(part) for part in item]
        try:
            with np.errstate(over="ignore", under="ignore"):
                X = np.ascontiguousarray(parts[0], dtype=np.float32)
            y = np.asarray(parts[1])
            weight = np.ones(len(y)) if len(parts) == 2 else np.asarray(parts[2], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise StreamError(
                f"batch {number} of {self.name} must hold numbers and labels; it does not: {error}."
            ) from error
        if X.ndim != 2 or y.ndim not in (1, 2) or weight.shape != y.shape[:1] or len(X) != len(y):
            shapes = f"{X.shape}, {y.shape} and {weight.shape}"
            raise StreamError(
                f"batch {number} of {self.name} must have X of (n, n_features), y of (n,) or (n, n_outputs), and "
                f"weight of (n,); got {shapes}."
            )
        if self.width is None:
            self.width = X.shape[1]
        if X.shape[1] != self.width or not self.width:
            raise StreamError(
                f"batch {number} of {self.name} must have {self.width} features as those before; it has {X.shape[1]}."
            )
        if not np.isfinite(X).all():
            row, column = np.argwhere(~np.isfinite(X))[0]
            name = column if self.columns is None else repr(self.columns[column])
            raise StreamError(
                f"batch {number} of {self.name} must hold finite numbers that fit into float32; row {row} has "
                f"{X[row, column]} in column {name}. Fill missing values and encode text before."
            )
        if not (np.isfinite(weight).all() and (weight >= 0).all()):
            raise StreamError(f"batch {number} of {self.name} must have finite weights of at least 0; it has others.")
        kept = weight > 0
        return Batch(X, y, weight) if kept.all() else Batch(X[kept], y[kept], weight[kept])


def as_batches(data: Any, y: Any = None) -> Batches:
    """Convert rows in batches, in any form, to ``Batches``; ``y`` must be None."""
    if y is not None:
        raise ValueError("`y` must be None for rows in batches, whose second part it is; got both.")
    if isinstance(data, Batches):
        return data
    return Batches.from_torch(data) if is_of_torch(data) else Batches(data)


def _stack_rows(rows: Iterator[Any], at_once: int) -> Iterator[tuple[Any, ...]]:
    """Stack single rows to batches."""
    while some := list(islice(rows, at_once)):
        yield tuple(np.stack([np.asarray(value) for value in part]) for part in zip(*some, strict=True))


def _find_files(path: Any) -> list[Path]:
    paths = [Path(path)] if isinstance(path, str | PathLike) else [Path(one) for one in path]
    from crisptree.encoding.table_files import find_parquet_files

    files: list[Path] = []
    for one in paths:
        if not one.exists():
            raise StreamError(f"{one} must be a Parquet file or a folder of them; there is no such file.")
        files += find_parquet_files(one) if one.is_dir() else [one]
    if not files:
        raise StreamError(f"{path} must be Parquet files or a folder of them (*.parquet); there are none.")
    return files


def _get_state(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError as error:
        raise StreamError(f"{file} cannot be read: {error}.") from error
    return status.st_size, status.st_mtime_ns


def _check_unchanged(file: Path, state: tuple[int, int]) -> None:
    if _get_state(file) != state:
        raise StreamError(f"{file} has changed since the first pass over the rows. Begin the fit again.")


def _open_parquet(file: Path) -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "Parquet files need pyarrow, which is not installed. Install it with: pip install 'crisptree[tables]'"
        ) from error

    try:
        return pyarrow.parquet.ParquetFile(file, memory_map=False)
    except Exception as error:
        raise StreamError(f"{file} is damaged or no Parquet file ({error}).") from error


def _read_parquet(
    file: Path, columns: Sequence[str], target: str, weights: str | None, at_once: int
) -> Iterator[tuple[Any, ...]]:
    parquet = _open_parquet(file)
    names = [*columns, target, *([] if weights is None else [weights])]
    missing = [name for name in names if name not in parquet.schema_arrow.names]
    if missing or len(parquet.schema_arrow.names) != len(names):
        has = ", ".join(parquet.schema_arrow.names)
        raise StreamError(f"{file} must have the columns of the first file ({', '.join(names)}); it has {has}.")
    batches = parquet.iter_batches(batch_size=at_once, columns=names)
    while True:
        try:
            table = next(batches, None)
            if table is None:
                return
            X = np.stack([_to_float32(table.column(name), name, file) for name in columns], axis=1)
            y = np.asarray(table.column(target).to_numpy(zero_copy_only=False))
            weight = [] if weights is None else [_to_float32(table.column(weights), weights, file)]
        except StreamError:
            raise
        except Exception as error:
            raise StreamError(f"{file} is damaged or cut short ({error}).") from error
        yield (X, y, *weight)


def _list_columns(data: Any) -> list[str]:
    """Return the names of the columns of a table that ``from_dataset`` reads."""
    if hasattr(data, "columns"):
        return list(data.columns() if callable(data.columns) else data.columns)
    return list(data.schema.names)


def _read_arrow(data: Any, names: list[str], at_once: int) -> Iterator[Any]:
    for batch in data.to_batches(columns=names, batch_size=at_once):
        yield {name: batch.column(name).to_numpy(zero_copy_only=False) for name in names}


def _read_dask(data: Any, names: list[str], at_once: int) -> Iterator[Any]:
    for number in range(data.npartitions):
        yield data.get_partition(number)[names].compute()


def _read_spark(data: Any, names: list[str], at_once: int) -> Iterator[Any]:
    rows = data.select(*names).toLocalIterator(prefetchPartitions=True)
    while some := list(islice(rows, at_once)):
        yield {name: np.asarray(column) for name, column in zip(names, zip(*some, strict=True), strict=True)}


def _read_ray(data: Any, names: list[str], at_once: int) -> Iterator[Any]:
    yield from data.iter_batches(batch_size=at_once, batch_format="numpy")


Reader = Callable[[Any, list[str], int], Iterator[Any]]

READERS: dict[str, Reader] = {
    "to_batches": _read_arrow,
    "get_partition": _read_dask,
    "toLocalIterator": _read_spark,
    "iter_batches": _read_ray,
}
"""Readers of tables, by a method that tables of this library have: they yield mappings of names to columns."""


def _check_numbers(column: Any, name: str) -> npt.NDArray[np.float32]:
    """Convert a column of numbers; missing ones are found later."""
    values = np.asarray(column)
    if values.dtype.kind not in "biuf":
        raise StreamError(
            f"the column {name!r} must have numbers to be read in batches; it has values of type {values.dtype}. "
            "Encode it before."
        )
    return np.asarray(values, dtype=np.float32)


def _to_float32(column: Any, name: str, file: Path) -> npt.NDArray[np.float32]:
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "biuf" or column.null_count:
        what = "missing values" if column.null_count else f"values of type {column.type}"
        raise StreamError(
            f"{file} must have numbers in the column {name!r} to be read in batches; it has {what}. Encode it before."
        )
    return np.asarray(values, dtype=np.float32)
