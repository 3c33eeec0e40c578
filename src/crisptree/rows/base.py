"""The contract of training rows, and how raw rows become them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.rows.arrays import ArrayRows
from crisptree.rows.windows import Windows
from crisptree.scaling import Scaling

RawRows = npt.NDArray[np.float32] | Windows
"""Rows as a user gives them, checked."""


class Rows(Protocol):
    """Scaled rows on the training device."""

    @property
    def shape(self) -> tuple[int, int]:
        """(length, features)"""

    @property
    def dtype(self) -> Any: ...

    @property
    def device(self) -> torch.device: ...

    @property
    def nbytes(self) -> int:
        """The memory that the rows take."""

    @property
    def arrays(self) -> tuple[Tensor, ...]:
        """What the fused kernels read where it lies."""

    def batch(self, rows: Tensor) -> Tensor:
        """The features of some rows.  (b,) → (b, n_features)"""


def scaled_rows(X: RawRows, scaling: Scaling, device: torch.device, n_jobs: int | None = 1) -> Rows:
    """Training rows from raw ones: scaled once, on the device that trains."""
    if not isinstance(X, Windows):
        return ArrayRows.scaled(X, scaling, device, n_jobs)
    windows = X.scaled(scaling, n_jobs)
    data, base, offset = (torch.from_numpy(part).to(device) for part in windows.arrays)
    return Windows(data, base, offset, X.n_planes)
