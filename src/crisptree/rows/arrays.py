"""Rows that are an array."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.blocks import row_blocks
from crisptree.scaling import Scaling, scaled


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """Scaled features of every row, (n, n_features), on the training device."""

    values: Tensor

    @classmethod
    def scaled(
        cls, X: npt.NDArray[np.float32], scaling: Scaling, device: torch.device, n_jobs: int | None = 1
    ) -> ArrayRows:
        """The scaled rows on the device. They are scaled there: a core would take longer."""
        if device.type == "cpu":
            return cls(torch.from_numpy(X if scaling.is_identity else scaling.apply(X, n_jobs)))
        rows = torch.tensor(X, device=device)
        center, factor = (torch.from_numpy(part).to(device) for part in (scaling.center, scaling.factor))
        for block in row_blocks(len(X)):
            rows[block] = scaled(rows[block], center, factor)
        return cls(rows)

    @property
    def shape(self) -> tuple[int, int]:
        n, n_features = self.values.shape
        return n, n_features

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        return self.values.device

    @property
    def nbytes(self) -> int:
        return self.values.nbytes

    @property
    def arrays(self) -> tuple[Tensor]:
        return (self.values,)

    def batch(self, rows: Tensor) -> Tensor:
        return self.values.index_select(0, rows)
