"""Rows that are windows of images, without a copy of every window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Windows:
    """Feature j of row r is ``data[base[r] + offset[j]]``; an array of rows is the case base = r · p, offset = j.

    It has a length and a shape, and indexing it gives rows as an array: the slow definition, for a few rows at a time.

    Parameters
    ----------
    data : ndarray of shape (n_values,), float32
        Images after each other.
    base : ndarray of shape (n,), int64
        Where every row's pixel is.
    offset : ndarray of shape (n_features,), int64
        How far from it every feature is.

    Examples
    --------
    >>> Windows(np.arange(9, dtype=np.float32), np.array([3, 4]), np.array([-3, 0, 3]))[:]
    array([[0., 3., 6.],
           [1., 4., 7.]], dtype=float32)
    """

    data: npt.NDArray[np.float32]
    base: npt.NDArray[np.int64]
    offset: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.base)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.base), len(self.offset)

    @property
    def size(self) -> int:
        """How many values the rows would have as an array."""
        return len(self.base) * len(self.offset)

    def __getitem__(self, rows: slice | npt.NDArray[np.integer]) -> npt.NDArray[np.float32]:
        return self.data[self.base[rows][:, None] + self.offset]
