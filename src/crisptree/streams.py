"""Rows that are read in batches, again and again, because they are more than the memory holds.

``fit`` of a single tree takes ``Batches`` in place of X and y, or what they are made of: a function that begins a new
pass and returns an iterator of (X, y) or (X, y, weight), or a dataset or loader of torch. See docs/streams.md.

>>> import numpy as np
>>> from crisptree.streams import Batches
>>> rows = Batches.from_arrays(np.eye(5), np.arange(5) > 2, at_once=2)
>>> [len(y) for X, y, weight in rows.one_pass()]
[2, 2, 1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.tensors import detach

__all__ = ["Batch", "Batches", "StreamError"]

ROWS_AT_ONCE = 65_536


class StreamError(ValueError):
    """Batches that are no rows, that differ from each other, or that cannot be read; the message says which."""


class Batch(NamedTuple):
    """Some rows: float32 features, labels, weights."""

    X: npt.NDArray[np.float32]
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]


class Batches:
    """Rows in batches that can be gone through any number of times.

    Parameters
    ----------
    factory : callable
        Begins a pass: returns an iterator of (X, y) or (X, y, weight). Every pass must give the same rows, in any
        order.
    columns : sequence of str, optional
        The names of the features.
    name : str, default="the rows"
        What errors call them.
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
        """Slices of arrays, which may be files that are mapped into memory."""
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
        """The columns of numbers of one or several Parquet files, or of all in a folder, a few rows at a time.

        Needs pyarrow (the extra ``tables``). Files that change between two passes are refused.
        """
        files = _files(path)
        schema = _opened(files[0]).schema_arrow
        for name in (target, *([] if weights is None else [weights])):
            if name not in schema.names:
                raise StreamError(f"{files[0]} has no column {name!r}; it has {', '.join(schema.names)}.")
        columns = [name for name in schema.names if name not in (target, weights)]
        before = [_state(file) for file in files]

        def one_pass() -> Iterator[tuple[Any, ...]]:
            for file, known in zip(files, before, strict=True):
                _check_same(file, known)
                yield from _read(file, columns, target, weights, at_once)
                _check_same(file, known)

        return cls(one_pass, columns, str(path))

    @classmethod
    def from_torch(cls, data: Any, *, at_once: int = ROWS_AT_ONCE) -> Batches:
        """A DataLoader, whose batches are (X, y) or (X, y, weight), or a dataset of such rows."""
        if hasattr(data, "batch_size"):
            return cls(lambda: iter(data))
        if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
            return cls(lambda: _together((data[number] for number in range(len(data))), at_once))
        return cls(lambda: _together(iter(data), at_once))

    def one_pass(self) -> Iterator[Batch]:
        """All batches once, each checked; those without rows are left out."""
        number = -1
        batches = self._begun()
        while True:
            number += 1
            try:
                given = next(batches, None)
            except StreamError:
                raise
            except Exception as error:
                raise StreamError(f"batch {number} of {self.name} cannot be read: {error}.") from error
            if given is None:
                self._last = batches
                return
            batch = self._checked(given, number)
            if len(batch.y):
                yield batch

    def _begun(self) -> Iterator[Any]:
        try:
            begun = iter(self.factory())
        except StreamError:
            raise
        except Exception as error:
            raise StreamError(f"a pass over {self.name} cannot begin: {error}.") from error
        if begun is self._last:
            raise StreamError(
                f"every pass over {self.name} must begin anew; the function has returned the iterator of the pass "
                "before, which is used up. Make a new one in every call."
            )
        return begun

    def _checked(self, given: Any, number: int) -> Batch:
        if not isinstance(given, tuple | list) or len(given) not in (2, 3):
            raise StreamError(
                f"batch {number} of {self.name} must be (X, y) or (X, y, weight); got {type(given).__name__}."
            )
        given = [detach(part) for part in given]
        try:
            with np.errstate(over="ignore", under="ignore"):
                X = np.ascontiguousarray(given[0], dtype=np.float32)
            y = np.asarray(given[1])
            weight = np.ones(len(y)) if len(given) == 2 else np.asarray(given[2], dtype=np.float64)
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
                f"{X[row, column]} in column {name}. Fill holes and encode text before."
            )
        if not (np.isfinite(weight).all() and (weight >= 0).all()):
            raise StreamError(f"batch {number} of {self.name} must have finite weights of at least 0; it has others.")
        kept = weight > 0
        return Batch(X, y, weight) if kept.all() else Batch(X[kept], y[kept], weight[kept])


def as_batches(data: Any, y: Any = None) -> Batches | None:
    """Batches, or what they are made of, as ``Batches``; None for anything else. ``y`` came beside them."""
    batches = _as_batches(data)
    if batches is not None and y is not None:
        raise ValueError("`y` must be None for rows in batches, whose second part it is; got both.")
    return batches


def _as_batches(data: Any) -> Batches | None:
    if isinstance(data, Batches):
        return data
    if _is_of_torch(data):
        return Batches.from_torch(data)
    return Batches(data) if callable(data) or _is_used_up(data) else None


def refuse_batches(data: Any, taker: str) -> None:
    """Say that rows in batches, in whatever form, are not taken here."""
    if isinstance(data, np.ndarray):
        return
    if isinstance(data, Batches) or _is_of_torch(data) or callable(data) or _is_used_up(data):
        raise TypeError(
            f"{taker} must be given rows that are in memory, or in a file mapped by np.load(…, mmap_mode='r'); got "
            f"{type(data).__name__}. On batches only fit of CrispTreeClassifier and CrispTreeRegressor trains; for "
            "anything else go through `Batches(…).one_pass()` and take one batch at a time."
        )


def _is_of_torch(data: Any) -> bool:
    return any(kind.__module__.startswith("torch.utils.data") for kind in type(data).__mro__)


def _is_used_up(data: Any) -> bool:
    """Whether data is an iterator, which ends after one pass."""
    return isinstance(data, Iterator)


def _together(rows: Iterator[Any], at_once: int) -> Iterator[tuple[Any, ...]]:
    """Single rows as batches."""
    some: list[Any] = []
    for row in rows:
        some.append(row)
        if len(some) == at_once:
            yield tuple(np.stack([np.asarray(value) for value in part]) for part in zip(*some, strict=True))
            some = []
    if some:
        yield tuple(np.stack([np.asarray(value) for value in part]) for part in zip(*some, strict=True))


def _files(path: Any) -> list[Path]:
    several = [Path(path)] if isinstance(path, str | PathLike) else [Path(one) for one in path]
    files: list[Path] = []
    for one in several:
        if not one.exists():
            raise StreamError(f"{one} must be a Parquet file or a folder of them; there is no such file.")
        files += sorted(one.rglob("*.parquet")) if one.is_dir() else [one]
    if not files:
        raise StreamError(f"{path} must be Parquet files or a folder of them (*.parquet); there are none.")
    return files


def _state(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except OSError as error:
        raise StreamError(f"{file} cannot be read: {error}.") from error
    return found.st_size, found.st_mtime_ns


def _check_same(file: Path, known: tuple[int, int]) -> None:
    if _state(file) != known:
        raise StreamError(f"{file} has changed since the first pass over the rows. Begin the fit again.")


def _opened(file: Path) -> Any:
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


def _read(
    file: Path, columns: Sequence[str], target: str, weights: str | None, at_once: int
) -> Iterator[tuple[Any, ...]]:
    opened = _opened(file)
    names = [*columns, target, *([] if weights is None else [weights])]
    missing = [name for name in names if name not in opened.schema_arrow.names]
    if missing or len(opened.schema_arrow.names) != len(names):
        has = ", ".join(opened.schema_arrow.names)
        raise StreamError(f"{file} must have the columns of the first file ({', '.join(names)}); it has {has}.")
    batches = opened.iter_batches(batch_size=at_once, columns=names)
    while True:
        try:
            table = next(batches, None)
            if table is None:
                return
            X = np.stack([_numbers(table.column(name), name, file) for name in columns], axis=1)
            y = np.asarray(table.column(target).to_numpy(zero_copy_only=False))
            given = [] if weights is None else [_numbers(table.column(weights), weights, file)]
        except StreamError:
            raise
        except Exception as error:
            raise StreamError(f"{file} is damaged or cut short ({error}).") from error
        yield (X, y, *given)


def _numbers(column: Any, name: str, file: Path) -> npt.NDArray[np.float32]:
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "biuf" or column.null_count:
        what = "missing values" if column.null_count else f"values of type {column.type}"
        raise StreamError(
            f"{file} must have numbers in the column {name!r} to be read in batches; it has {what}. Encode it before."
        )
    return np.asarray(values, dtype=np.float32)
