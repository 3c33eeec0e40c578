"""Rows that are windows of images, without a copy of every window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from crisptree.data.scaling import Scaling


@dataclass(frozen=True, eq=False)
class Windows:
    """Feature j of row r is ``data[base[r] + offset[j]]``; an array of rows is the case base = r · p, offset = j.

    It has a length and a shape, and indexing it gives rows as an array: the slow definition, for a few rows at a time.
    Its parts are arrays where a tree predicts and tensors where one trains; what is written here holds for both.

    Parameters
    ----------
    data : ndarray or Tensor of shape (n_values,), float32
        Images after each other.
    base : ndarray or Tensor of shape (n,), int64
        Where every row's pixel is.
    offset : ndarray or Tensor of shape (n_features,), int64
        How far from it every feature is.
    n_planes : int, default=1
        Values of a pixel that lie beside each other, each of which has a scale of its own.

    Examples
    --------
    >>> import numpy as np
    >>> Windows(np.arange(9, dtype=np.float32), np.array([3, 4]), np.array([-3, 0, 3]))[:]
    array([[0., 3., 6.],
           [1., 4., 7.]], dtype=float32)
    """

    data: Any
    base: Any
    offset: Any
    n_planes: int = 1

    def __len__(self) -> int:
        return len(self.base)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.base), len(self.offset)

    @property
    def size(self) -> int:
        """How many values the rows would have as an array."""
        return len(self.base) * len(self.offset)

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def device(self) -> Any:
        return self.data.device

    @property
    def nbytes(self) -> int:
        return int(sum(part.nbytes for part in self.arrays))

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        return self.data, self.base, self.offset

    def __getitem__(self, rows: Any) -> Any:
        return self.data[self.base[rows][:, None] + self.offset]

    def batch(self, rows: Any) -> Any:
        """Some rows: the definition, to which the kernels are held.  (b,) → (b, n_features)"""
        return self[rows]

    def scaled(self, scaling: Scaling, n_jobs: int | None = 1) -> Windows:
        """The windows of the scaled images; ``scaling`` is that of a row, which repeats the planes' own."""
        pixels = scaling.first(self.n_planes).apply(self.data.reshape(-1, self.n_planes), n_jobs)
        return Windows(pixels.reshape(-1), self.base, self.offset, self.n_planes)
