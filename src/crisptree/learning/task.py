"""What is trained on: raw rows with their y and weights, how they are scaled, and what y is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from crisptree.data.rows import ArrayRows, RawRows, ShiftedImages, scale_rows
from crisptree.data.scaling import Scaling
from crisptree.data.sparse import SparseRows
from crisptree.inference import CrispTree
from crisptree.inference.statistics import SomeTree, SufficientStatistics, record_ranges, sum_statistics
from crisptree.learning.history import EpochCallback, StoppableCallback
from crisptree.learning.samples import Samples
from crisptree.native import training
from crisptree.targets import Classes, Gaussians, Target

Result = TypeVar("Result")

MAX_COLUMNS_OF_SMALL_TABLE, MAX_VALUES_OF_SMALL_TABLE = 256, 2**20
"""Correlations of more columns take longer to factorise than they save; more values train faster in mini-batches."""

SMALLEST_WEIGHT = 1e-30
"""Weights are taken relative to their mean; a lighter row would have none left in single precision."""


class Shifts(NamedTuple):
    """How far training images are shifted, in pixels, and their shape."""

    max_shift: int
    image_shape: tuple[int, ...]

    def check(self, scaling: Scaling) -> None:
        """A pixel must be able to take the place of another."""
        if not scaling.is_same_for_pixels(*self.image_shape[2:]):
            raise ValueError(
                "`max_shift` must be set from the first fit on, because all pixels must then be scaled alike; got "
                f"max_shift={self.max_shift} for a tree that was trained without. Use a new estimator or max_shift=0."
            )


@dataclass(frozen=True, eq=False)
class RowSet:
    """Checked rows: float32 features (an array, or windows), y and positive weights."""

    X: RawRows
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]

    def samples(
        self,
        scaling: Scaling,
        target: Target,
        device: torch.device,
        n_jobs: int | None,
        shifts: Shifts | None = None,
        *,
        as_array: bool = False,
    ) -> Samples:
        """The scaled rows with y and weights on the training device, shifted in every epoch if they are to be."""
        rows = scale_rows(self.X, scaling, device, n_jobs, as_array=as_array or shifts is not None)
        if shifts is not None:
            assert isinstance(rows, ArrayRows)
            rows = ShiftedImages.of(rows.values, shifts.image_shape, shifts.max_shift)
        y, weight = torch.from_numpy(self.y).to(device), relative_weights(self.weight).to(device)
        return Samples(rows, y, weight, target, n_jobs)


def scaled_samples(
    part: RowSet,
    task: TrainingTask,
    mean_weight: float,
    device: torch.device,
    n_jobs: int | None,
    *,
    as_array: bool = False,
) -> Samples:
    """Some of a problem's rows on the training device, their weights relative to the mean of all."""
    rows = scale_rows(part.X, task.scaling, device, n_jobs, as_array=as_array)
    relative = np.maximum(part.weight / mean_weight, SMALLEST_WEIGHT)
    y, weight = torch.from_numpy(part.y).to(device), torch.from_numpy(relative).float().to(device)
    return Samples(rows, y, weight, task.target, n_jobs)


def relative_weights(weight: npt.NDArray[np.float64]) -> torch.Tensor:
    """Weights in units of their mean, in single precision.  (n,)"""
    return torch.from_numpy(np.maximum(weight / weight.mean(), SMALLEST_WEIGHT)).to(torch.float32)


@dataclass(frozen=True, eq=False)
class TrainingTask:
    """Training rows, how they are scaled, what their y is, and validation rows."""

    training: RowSet
    scaling: Scaling
    target: Target
    validation: RowSet | None = None
    _ready: dict[Any, tuple[Samples, Samples | None]] = field(default_factory=dict, repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows that train, wherever they are."""
        return len(self.training.y)

    @property
    def mean_weight(self) -> float:
        """Mean weight of the rows that train."""
        return float(self.training.weight.mean())

    def listener(self, on_epoch: EpochCallback | None) -> StoppableCallback:
        """Pass records of epochs on to a callback, which may ask to stop."""
        return StoppableCallback(on_epoch)

    is_first: ClassVar[bool] = True
    """Whether this process shows progress and calls callbacks."""

    def compute_once(self, function: Callable[[], Result]) -> Result:
        """What a function gives, computed by one process for all of them."""
        return function()

    def with_ranges(self, tree: SomeTree) -> SomeTree:
        """The tree with the ranges of the features of all rows."""
        return record_ranges(tree, self.training.X)

    def counted(self, tree: CrispTree, n_jobs: int | None) -> SufficientStatistics:
        """What all rows that train leave behind in a deterministic tree."""
        rows = self.training
        return sum_statistics(tree, rows.X, rows.y, rows.weight, n_jobs, self.target)

    @property
    def is_sparse(self) -> bool:
        """Whether only values that are not zero are kept; such rows train on the CPU."""
        return isinstance(self.training.X, SparseRows)

    @property
    def is_small_table(self) -> bool:
        """True for dense rows that full-batch optimisation takes: few values, and few columns that may correlate."""
        X = self.training.X
        if not isinstance(X, np.ndarray) or type(self.target) not in (Classes, Gaussians) or training is None:
            return False
        return X.shape[1] <= MAX_COLUMNS_OF_SMALL_TABLE and X.size <= MAX_VALUES_OF_SMALL_TABLE

    @cached_property
    def input_norm(self) -> float:
        """How far a step of one on all weights moves a score: the features of a row, the mean Σ|x| of sparse ones."""
        X = self.training.X
        if not isinstance(X, SparseRows):
            return X.shape[1]
        sizes = np.abs(X.scaled(self.scaling).data, dtype=np.float64)
        return float(sizes.sum() / len(X))

    def on(
        self, device: torch.device, n_jobs: int | None, shifts: Shifts | None = None, *, as_array: bool = False
    ) -> tuple[Samples, Samples | None]:
        """Training and validation samples on the device, made once. Validation rows are never shifted.

        ``as_array`` has the scaled training rows in memory, however large they are.
        """
        key = device, shifts, as_array
        if key not in self._ready:
            if shifts is not None:
                shifts.check(self.scaling)
            common = self.scaling, self.target, device, n_jobs
            training = self.training.samples(*common, shifts, as_array=as_array)
            validation = self.validation
            self._ready[key] = training, None if validation is None else validation.samples(*common)
        return self._ready[key]
