"""Training rows: scaled features on the training device, read a batch at a time or in place by the kernels.

``Rows`` is the contract; rows are an array, some rows of one, an array that is scaled when it is read, shifted images,
windows of images or sparse.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.blocks import row_blocks
from crisptree.data.scaling import Doubles, Scaling, scaled
from crisptree.data.sparse import SparseRows
from crisptree.data.windows import Windows


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


@dataclass(frozen=True, eq=False)
class PickedRows(Windows):
    """Rows by their numbers in an array; a row may be picked several times.

    For the kernels each is a window of one run, which they read in place.

    Parameters
    ----------
    values : Tensor of shape (n, n_features)
        The array.
    index : Tensor of shape (m,), int64
        The rows that are picked.

    Examples
    --------
    >>> rows = PickedRows.of(ArrayRows(torch.tensor([[1.0, 2.0], [3.0, 4.0]])), torch.tensor([1, 1, 0]))
    >>> rows.batch(torch.tensor([0, 2])).tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """

    values: Tensor = field(kw_only=True)
    index: Tensor = field(kw_only=True)

    @classmethod
    def of(cls, rows: ArrayRows | PickedRows, index: Tensor) -> PickedRows:
        """Some of the rows, or some of those that were picked before."""
        if isinstance(rows, PickedRows):
            index = rows.index[index]
        values = rows.values
        width = values.shape[1]
        offset = torch.arange(width, device=values.device)
        return cls(values.reshape(-1), index * width, offset, values=values, index=index)

    def batch(self, rows: Tensor) -> Tensor:
        return self.values.index_select(0, self.index[rows])


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


@dataclass(frozen=True, eq=False)
class ShiftedImages(Windows):
    """Images with a margin that repeats their border; a row is the window in the middle, or a few pixels beside it.

    Whoever reads ``base`` where it lies sees the rows shifted while they are ``shifted``, and as they are otherwise.

    Parameters
    ----------
    home : Tensor of shape (n,), int64
        ``base`` of the images as they are.
    reach : int
        The most pixels that an image is shifted, up or down and left or right.
    pitch : int
        Values of a line, its margin included.

    Examples
    --------
    >>> rows = ShiftedImages.of(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), (2, 2), reach=1)
    >>> rows.batch(torch.tensor([0])).tolist()
    [[1.0, 2.0, 3.0, 4.0]]
    >>> with rows.shifted(torch.Generator().manual_seed(1)):
    ...     rows.batch(torch.tensor([0])).tolist()
    [[3.0, 4.0, 3.0, 4.0]]
    """

    home: Tensor | None = None
    reach: int = 0
    pitch: int = 0

    @classmethod
    def of(cls, values: Tensor, image_shape: tuple[int, ...], reach: int) -> ShiftedImages:
        """Scaled rows as images of that shape; all pixels must be scaled alike.  (n, n_features)"""
        height, width, channels = *image_shape, *[1] * (3 - len(image_shape))
        images = values.reshape(-1, height, width, channels)
        lines, columns = (
            torch.arange(-reach, side + reach, device=values.device).clamp(0, side - 1) for side in (height, width)
        )
        data = images[:, lines][:, :, columns]
        pitch = data.shape[2] * channels
        home = torch.arange(len(data), device=values.device) * data[:1].numel() + reach * (pitch + channels)
        within = torch.arange(height, device=values.device)[:, None] * pitch
        offset = (within + torch.arange(width * channels, device=values.device)).reshape(-1)
        return cls(data.reshape(-1), home.clone(), offset, channels, home, reach, pitch)

    @contextmanager
    def shifted(self, generator: torch.Generator) -> Iterator[None]:
        """Inside, every image is shifted by its own random number of pixels, all numbers up to ``reach`` alike."""
        across, down = torch.randint(-self.reach, self.reach + 1, (2, len(self)), generator=generator).to(self.device)
        assert self.home is not None
        self.base.copy_(self.home + down * self.pitch + across * self.n_planes)
        try:
            yield
        finally:
            self.base.copy_(self.home)


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


def learn_scaling(X: RawRows, sample_weight: Doubles, kind: str | None, n_jobs: int | None = 1) -> Scaling:
    """How rows are to be scaled: by the weighted statistics of all of them; ``kind`` is a key of ``scaling.SCALES``."""
    if isinstance(X, SparseRows):
        return X.learn_scaling(sample_weight, kind)
    assert isinstance(X, np.ndarray)
    return Scaling.learn(X, sample_weight, kind, n_jobs)


def scale_rows(
    X: RawRows, scaling: Scaling, device: torch.device, n_jobs: int | None = 1, *, as_array: bool = False
) -> Rows:
    """Training rows from raw ones: scaled once, on the device that trains.

    A large array on the CPU is scaled when its rows are read, unless it is to be there ``as_array``.
    """
    if isinstance(X, SparseRows):
        return SparseTrainingRows(X.scaled(scaling))
    if not isinstance(X, Windows):
        in_place = scaling.is_identity and X.flags.writeable
        if device.type == "cpu" and not as_array and not in_place and X.nbytes > LARGEST_COPY:
            return UnscaledRows(X, scaling)
        return ArrayRows.scaled(X, scaling, device, n_jobs)
    windows = X.scaled(scaling, n_jobs)
    data, base, offset = (torch.from_numpy(part).to(device) for part in windows.arrays)
    return Windows(data, base, offset, X.n_planes)
