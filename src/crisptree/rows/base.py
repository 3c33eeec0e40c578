"""The contract of training rows, and how raw rows become them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.rows import unscaled
from crisptree.rows.arrays import ArrayRows
from crisptree.rows.sparse import SparseRows
from crisptree.rows.sparse_training import SparseTrainingRows
from crisptree.rows.unscaled import UnscaledRows
from crisptree.rows.windows import Windows
from crisptree.scaling import Doubles, Scaling

RawRows = npt.NDArray[np.float32] | Windows | SparseRows
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


def learned_scaling(X: RawRows, sample_weight: Doubles, kind: str | None, n_jobs: int | None = 1) -> Scaling:
    """How rows are to be scaled: by the weighted statistics of all of them; ``kind`` is a key of ``scaling.SCALES``."""
    if isinstance(X, SparseRows):
        return X.learned_scaling(sample_weight, kind)
    assert isinstance(X, np.ndarray)
    return Scaling.learn(X, sample_weight, kind, n_jobs)


def scaled_rows(
    X: RawRows, scaling: Scaling, device: torch.device, n_jobs: int | None = 1, *, as_array: bool = False
) -> Rows:
    """Training rows from raw ones: scaled once, on the device that trains.

    A large array on the CPU is scaled when its rows are read, unless it is to be there ``as_array``.
    """
    if isinstance(X, SparseRows):
        return SparseTrainingRows(X.scaled(scaling))
    if not isinstance(X, Windows):
        in_place = scaling.is_identity and X.flags.writeable
        if device.type == "cpu" and not as_array and not in_place and X.nbytes > unscaled.LARGEST_COPY:
            return UnscaledRows(X, scaling)
        return ArrayRows.scaled(X, scaling, device, n_jobs)
    windows = X.scaled(scaling, n_jobs)
    data, base, offset = (torch.from_numpy(part).to(device) for part in windows.arrays)
    return Windows(data, base, offset, X.n_planes)
