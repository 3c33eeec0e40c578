"""Rows of a large array, scaled whenever they are read: no copy of the array is made."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.scaling import Scaling

LARGEST_COPY = 2**28
"""Arrays of more bytes are not copied to be scaled: a fit would need twice the memory of its data."""


@dataclass(frozen=True, eq=False)
class UnscaledRows:
    """Raw rows, in memory or in a file that is mapped there, and how they are scaled.

    What is read is what ``ArrayRows.scaled`` would hold, to the bit. The native steps scale a row when they fetch it;
    torch's get batches.

    Parameters
    ----------
    values : ndarray of shape (n, n_features), float32
        The array.
    scaling : Scaling
        How its rows are scaled.

    Examples
    --------
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32)
    >>> UnscaledRows(X, Scaling.learn(X, np.ones(2), "feature")).batch(torch.tensor([1])).tolist()
    [[1.0, 1.0]]
    """

    values: npt.NDArray[np.float32]
    scaling: Scaling

    @property
    def shape(self) -> tuple[int, int]:
        n, n_features = self.values.shape
        return n, n_features

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def nbytes(self) -> int:
        """None of their own."""
        return 0

    @property
    def arrays(self) -> tuple[Tensor, ...]:
        return tuple(_tensor(part) for part in (self.values, self.scaling.center, self.scaling.factor))

    def batch(self, rows: Tensor) -> Tensor:
        return torch.from_numpy(self.scaling.apply(self.values[rows.numpy()]))


def _tensor(array: npt.NDArray[Any]) -> Tensor:
    """The array's own memory; torch would warn of a file that is mapped for reading alone, which nobody writes to."""
    with warnings.catch_warnings(action="ignore"):
        return torch.from_numpy(array)
