"""What is trained on: raw rows with their y and weights, how they are scaled, and what y is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from crisptree.learning.samples import Samples
from crisptree.rows.base import RawRows, scaled_rows
from crisptree.scaling import Scaling
from crisptree.targets import Target

SMALLEST_WEIGHT = 1e-30
"""Weights are taken relative to their mean; a lighter row would have none left in single precision."""


@dataclass(frozen=True, eq=False)
class Part:
    """Checked rows: float32 features (an array, or windows), y and positive weights."""

    X: RawRows
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]

    def samples(self, scaling: Scaling, target: Target, device: torch.device, n_jobs: int | None) -> Samples:
        """The scaled rows with y and weights on the training device."""
        rows = scaled_rows(self.X, scaling, device, n_jobs)
        relative = torch.from_numpy(np.maximum(self.weight / self.weight.mean(), SMALLEST_WEIGHT))
        return Samples(rows, torch.from_numpy(self.y).to(device), relative.to(torch.float32).to(device), target, n_jobs)


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows to train on, rows to judge by, and what both mean.

    Parameters
    ----------
    training : Part
        Rows to train on.
    scaling : Scaling
        How they are scaled before.
    target : Target
        What y is.
    validation : Part or None
        Rows that judge.
    """

    training: Part
    scaling: Scaling
    target: Target
    validation: Part | None = None
    _ready: dict[Any, tuple[Samples, Samples | None]] = field(default_factory=dict, repr=False)

    def on(self, device: torch.device, n_jobs: int | None) -> tuple[Samples, Samples | None]:
        """Training and validation samples on the device, made once."""
        if device not in self._ready:
            parts = (self.training, self.validation)
            training, validation = (
                None if part is None else part.samples(self.scaling, self.target, device, n_jobs) for part in parts
            )
            assert training is not None
            self._ready[device] = training, validation
        return self._ready[device]
