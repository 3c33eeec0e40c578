"""Sparse rows in CSR format."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.data.scaling import MIN_SPREAD, SCALES, Doubles, Scaling, scaled

MAX_FEATURES = 2**31 - 1


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Row r has ``data[k]`` at feature ``index[k]`` for k from ``start[r]`` to ``start[r + 1]``, and 0 elsewhere.

    That is scipy's canonical CSR format. Indexing selects rows; ``dense`` converts a few at a time.

    Parameters
    ----------
    data : ndarray of shape (n_values,)
        Values that are not zero.
    index : ndarray of shape (n_values,), int32
        Features of the values.
    start : ndarray of shape (n + 1,), int64
        Index of the first value of every row, and the number of values.
    n_features : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> index, start = np.array([2, 0, 1], dtype=np.int32), np.array([0, 1, 3])
    >>> rows = SparseRows(np.array([5, 6, 7], dtype=np.float32), index, start, 3)
    >>> rows.dense()
    array([[0., 0., 5.],
           [6., 7., 0.]], dtype=float32)
    >>> rows[[1]].dense()
    array([[6., 7., 0.]], dtype=float32)
    """

    data: npt.NDArray[Any]
    index: npt.NDArray[np.int32]
    start: npt.NDArray[np.int64]
    n_features: int

    @classmethod
    def of(cls, matrix: Any) -> SparseRows:
        """Convert a scipy CSR matrix, which is not changed; explicit zeros are left out."""
        if not (matrix.has_canonical_format and np.all(matrix.data)):
            matrix = matrix.copy()
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
        index, start = matrix.indices.astype(np.int32, copy=False), matrix.indptr.astype(np.int64, copy=False)
        return cls(np.ascontiguousarray(matrix.data), np.ascontiguousarray(index), start, int(matrix.shape[1]))

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.n_features

    @property
    def size(self) -> int:
        """Number of stored values."""
        return len(self.data)

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def nbytes(self) -> int:
        return self.data.nbytes + self.index.nbytes + self.start.nbytes

    @property
    def row(self) -> npt.NDArray[np.int64]:
        """Row of every value.  (n_values,)"""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def __getitem__(self, rows: Any) -> SparseRows:
        numbers = np.arange(len(self))[rows]
        lengths = (self.start[1:] - self.start[:-1])[numbers]
        start = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(start[-1]) + np.repeat(self.start[numbers] - start[:-1], lengths)
        return replace(self, data=self.data[places], index=self.index[places], start=start)

    def dense(self) -> npt.NDArray[Any]:
        """Return the dense array.  (n, n_features)"""
        values = np.zeros(self.shape, dtype=self.dtype)
        values[self.row, self.index] = self.data
        return values

    def learn_scaling(self, sample_weight: Doubles, kind: str | None) -> Scaling:
        """Learn from weighted statistics. Features are divided by their spread and not centred: zeros stay zeros."""
        total, weight = sample_weight.sum(), sample_weight[self.row]
        mean = self._sums(weight * self.data) / total
        # Sums of squares around the mean, so that large offsets lose no precision; zeros are added below.
        squares = self._sums(weight * np.square(self.data - mean[self.index], dtype=np.float64))
        zeros = np.maximum(total - self._sums(weight), 0.0)
        spread = np.sqrt((squares + zeros * mean**2) / total)
        center, factor = SCALES[kind](mean, spread, self._varies() & (spread > MIN_SPREAD))
        return Scaling(np.zeros_like(center), factor, mean, spread)

    def _sums(self, values: npt.NDArray[Any]) -> Doubles:
        """Sum by feature.  (n_values,) → (n_features,)"""
        return np.asarray(np.bincount(self.index, values, self.n_features), dtype=np.float64)

    def _varies(self) -> npt.NDArray[np.bool_]:
        """Return which features are not constant."""
        low, high = np.zeros(self.n_features), np.zeros(self.n_features)
        is_full = np.bincount(self.index, minlength=self.n_features) == len(self)
        low[is_full], high[is_full] = np.inf, -np.inf
        np.minimum.at(low, self.index, self.data)
        np.maximum.at(high, self.index, self.data)
        return high - low > MIN_SPREAD

    def scaled(self, scaling: Scaling) -> SparseRows:
        """Scale the rows; the scaling must keep zeros."""
        if np.any(scaling.center):
            raise ValueError(
                "sparse rows must be scaled without being centred, and this tree was trained on dense rows, which are. "
                "Give dense rows again, or use a new estimator."
            )
        return replace(self, data=scaled(self.data, 0.0, scaling.factor[self.index]).astype(np.float32))
