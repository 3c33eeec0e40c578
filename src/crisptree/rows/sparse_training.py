"""Sparse rows to train on: on the CPU, a few of them written down at a time for torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from crisptree.rows.sparse import SparseRows


@dataclass(frozen=True, eq=False)
class SparseTrainingRows:
    """Scaled sparse rows."""

    values: SparseRows

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape

    @property
    def dtype(self) -> torch.dtype:
        return torch.from_numpy(self.values.data[:0]).dtype

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def nbytes(self) -> int:
        return self.values.nbytes

    @property
    def arrays(self) -> tuple[Tensor, Tensor, Tensor]:
        rows = self.values
        return torch.from_numpy(rows.data), torch.from_numpy(rows.index), torch.from_numpy(rows.start)

    def batch(self, rows: Tensor) -> Tensor:
        """Some rows with their zeros: the definition, to which the kernels are held.  (b,) → (b, n_features)"""
        return torch.from_numpy(self.values[rows.numpy()].dense())

    def group_sums(self, rows: Tensor, group: Tensor, weight: Tensor, n_groups: int) -> Tensor:
        """Σ weight · x over the rows of every group, in double precision.  (b,), (b,), (b,) → (n_groups, n_features)"""
        taken = self.values[rows.numpy()]
        place = group.numpy()[taken.row] * taken.n_features + taken.index
        sums = np.bincount(place, weight.numpy()[taken.row] * taken.data, n_groups * taken.n_features)
        return torch.from_numpy(sums.reshape(n_groups, taken.n_features))
