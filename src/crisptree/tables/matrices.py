"""Files whose features have no names: NumPy's .npz and LIBSVM text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from crisptree import limits
from crisptree.files import checked_size
from crisptree.libsvm import FEWEST_ROWS_AT_ONCE, VALUES_AT_ONCE, Piece, read_pieces
from crisptree.npz import read_arrays
from crisptree.tables.errors import TableError, listed
from crisptree.tables.source import Source, TextSource, check_columns


class Npz(Source):
    """A .npz with a matrix X (or the only array of two or more dimensions) and arrays with a value per row, such as y.

    A .npz is read whole: its arrays lie one after the other, not row by row.
    """

    def __init__(self, path: Path) -> None:
        self.arrays = read_arrays(path)
        X = _matrix(self.arrays, path)
        check_columns(math.prod(X.shape[1:]))
        self.X = X.reshape(len(X), math.prod(X.shape[1:]))
        self.single = {
            name: array
            for name, array in self.arrays.items()
            if array.ndim == 1 and len(array) == len(X) and array.dtype.kind in "biufU"
        }
        self.matrix = self.X.shape[1]
        self.target = "y" if "y" in self.single else None
        self.image_shape = X.shape[1:] if X.ndim > 2 else None
        super().__init__(path, [*(f"x{number}" for number in range(self.matrix)), *self.single])

    def raw_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        places = {name: number for number, name in enumerate(self.names[: self.matrix])}
        step = max(FEWEST_ROWS_AT_ONCE, VALUES_AT_ONCE // max(1, len(columns)))
        for start in range(0, len(self.X), step):
            rows = slice(start, start + step)
            parts = [self.X[rows, places[name]] if name in places else self.single[name][rows] for name in columns]
            yield pa.RecordBatch.from_arrays([pa.array(np.ascontiguousarray(part)) for part in parts], names=columns)

    def column(self, name: str, option: str) -> str:
        if name in self.arrays and name not in self.names:
            array = self.arrays[name]
            raise TableError(
                f"{self.path}: the array {name!r} ({option}) must have one number or text for each of the "
                f"{len(self.X):,} rows; it has the shape {array.shape} and the type {array.dtype}."
            )
        return super().column(name, option)

    def fraction_read(self) -> float | None:
        return self.n_read / max(1, len(self.X))


def _matrix(arrays: dict[str, npt.NDArray[Any]], path: Path) -> npt.NDArray[Any]:
    """The features: X, or the only array that can be meant."""
    wide = [name for name, array in arrays.items() if array.ndim >= 2 and array.dtype.kind in "biuf"]
    if "X" in wide or len(wide) == 1:
        return arrays["X" if "X" in wide else wide[0]]
    raise TableError(
        f"{path} must hold an array X of numbers, a row per sample; it holds {listed(arrays) or 'nothing'}. "
        "Write it with numpy.savez(path, X=X, y=y)."
    )


class Libsvm(TextSource):
    """Lines of a label and ``index:value`` pairs, indices from 1, zeros left out; plain or compressed."""

    def __init__(self, path: Path, n_features: int | None) -> None:
        self.path, self.size = path, checked_size(path)
        if n_features is None:
            n_features = self._widest()
            if n_features == 0:
                raise TableError(f"{path} must hold lines such as '1 3:0.5 7:1'; it has no features.")
        self.matrix, self.target = n_features, "y"
        super().__init__(path, [*(f"x{number}" for number in range(n_features)), "y"])

    def _widest(self) -> int:
        """The largest index, as long as rows of so many columns are no more than the file may become."""
        n_rows = n_features = 0
        for piece in self._pieces():
            n_rows, n_features = n_rows + len(piece.labels), max(n_features, piece.n_features)
            check_columns(n_features)
            claims = f"stands for {n_rows:,} rows × {n_features:,} columns"
            limits.current().check_unpacked(4 * n_rows * n_features, self.size, claims)
        return n_features

    def raw_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        for piece in self._pieces():
            if piece.n_features > self.matrix:
                wide = f"it has a feature {piece.n_features}"
                raise TableError(f"{self.path} must have {self.matrix} features at most, as in training; {wide}.")
            for part in piece.parts(self.matrix):
                rows = np.asfortranarray(part.dense(self.matrix))
                arrays = [pa.array(part.labels if name == "y" else rows[:, int(name[1:])]) for name in columns]
                yield pa.RecordBatch.from_arrays(arrays, names=columns)

    def _pieces(self) -> Iterator[Piece]:
        try:
            with self.opened() as file:
                yield from read_pieces(file)
        except (TableError, limits.LimitError):
            raise
        except ValueError as error:
            raise TableError(f"{self.path} {error}") from error
