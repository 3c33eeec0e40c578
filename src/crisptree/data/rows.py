"""Training rows: scaled features on the training device, read a batch at a time or in place by the kernels.

``ScaledRows`` is the protocol; its implementations are an array, selected rows of one, an array that is scaled when it
is read, randomly shifted images, windows of images, and sparse rows.
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

from crisptree.data.raw_rows import Doubles, Scaling, SparseRows, Windows, scale
from crisptree.threads import row_blocks


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """Scaled features of every row, (n, n_features), on the training device."""

    values: Tensor

    @classmethod
    def scale(
        cls, X: npt.NDArray[np.float32], scaling: Scaling, device: torch.device, n_jobs: int | None = 1
    ) -> ArrayRows:
        """Scale the rows, on the device that trains."""
        if device.type == "cpu":
            return cls(torch.from_numpy(X if scaling.is_identity else scaling.apply(X, n_jobs)))
        rows = torch.tensor(X, device=device)
        center, factor = (torch.from_numpy(part).to(device) for part in (scaling.center, scaling.factor))
        for block in row_blocks(len(X)):
            rows[block] = scale(rows[block], center, factor)
        return cls(rows)

    @property
    def shape(self) -> tuple[int, int]:
        n, n_features = self.values.shape
        return n, n_features

    @property
    def dtype(self) -> torch.dtype:
        return self.values.dtype

    @property
    def arrays(self) -> tuple[Tensor]:
        return (self.values,)

    def batch(self, rows: Tensor) -> Tensor:
        return self.values.index_select(0, rows)


@dataclass(frozen=True, eq=False)
class SelectedRows(Windows):
    """Rows ``index`` (m,) of an array ``values`` (n, n_features), possibly repeated; kernels read them as windows.

    Examples
    --------
    >>> rows = SelectedRows.of(ArrayRows(torch.tensor([[1.0, 2.0], [3.0, 4.0]])), torch.tensor([1, 1, 0]))
    >>> rows.batch(torch.tensor([0, 2])).tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """

    values: Tensor = field(kw_only=True)
    index: Tensor = field(kw_only=True)

    @classmethod
    def of(cls, rows: ArrayRows | SelectedRows, index: Tensor) -> SelectedRows:
        """Select rows of an array, or of a selection."""
        if isinstance(rows, SelectedRows):
            index = rows.index[index]
        values = rows.values
        width = values.shape[1]
        offset = torch.arange(width, device=values.device)
        return cls(values.reshape(-1), index * width, offset, values=values, index=index)

    def batch(self, rows: Tensor) -> Tensor:
        return self.values.index_select(0, self.index[rows])


MAX_COPY_BYTES = 2**28
"""Larger arrays are not copied to be scaled: a fit would need twice the memory of its data."""


@dataclass(frozen=True, eq=False)
class UnscaledRows:
    """Raw rows, in memory or memory-mapped, that are scaled when they are read: bit-identical to ``ArrayRows.scale``.

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
    def arrays(self) -> tuple[Tensor, ...]:
        return tuple(_tensor(part) for part in (self.values, self.scaling.center, self.scaling.factor))

    def batch(self, rows: Tensor) -> Tensor:
        return torch.from_numpy(self.scaling.apply(self.values[rows.numpy()]))


def _tensor(array: npt.NDArray[Any]) -> Tensor:
    """Share the array's memory, without torch's warning about read-only memory maps, which are not written to."""
    with warnings.catch_warnings(action="ignore"):
        return torch.from_numpy(array)


@dataclass(frozen=True, eq=False)
class ShiftedImages(Windows):
    """Images with a margin that repeats their border; a row is the window in the middle, or randomly shifted.

    Inside ``shifted``, ``base`` itself is changed, so that kernels that read it in place see the shifted rows.

    Parameters
    ----------
    unshifted : Tensor of shape (n,), int64
        ``base`` without shifts.
    max_shift : int
        Largest shift in pixels, vertically and horizontally.
    pitch : int
        Values of a line, its margin included.

    Examples
    --------
    >>> rows = ShiftedImages.of(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), (2, 2), max_shift=1)
    >>> rows.batch(torch.tensor([0])).tolist()
    [[1.0, 2.0, 3.0, 4.0]]
    >>> with rows.shift(torch.Generator().manual_seed(1)):
    ...     rows.batch(torch.tensor([0])).tolist()
    [[3.0, 4.0, 3.0, 4.0]]
    """

    unshifted: Tensor | None = None
    max_shift: int = 0
    pitch: int = 0

    @classmethod
    def of(cls, values: Tensor, image_shape: tuple[int, ...], max_shift: int) -> ShiftedImages:
        """Pad scaled rows as images of that shape; all pixels must have one scale.  (n, n_features)"""
        height, width, channels = *image_shape, *[1] * (3 - len(image_shape))
        images = values.reshape(-1, height, width, channels)
        lines, columns = (
            torch.arange(-max_shift, side + max_shift, device=values.device).clamp(0, side - 1)
            for side in (height, width)
        )
        data = images[:, lines][:, :, columns]
        pitch = data.shape[2] * channels
        base = torch.arange(len(data), device=values.device) * data[:1].numel() + max_shift * (pitch + channels)
        within = torch.arange(height, device=values.device)[:, None] * pitch
        offset = (within + torch.arange(width * channels, device=values.device)).reshape(-1)
        return cls(data.reshape(-1), base.clone(), offset, channels, base, max_shift, pitch)

    @contextmanager
    def shift(self, generator: torch.Generator) -> Iterator[None]:
        """Shift every image by random numbers of pixels, uniform up to ``max_shift``, inside the context."""
        across, down = torch.randint(-self.max_shift, self.max_shift + 1, (2, len(self)), generator=generator).to(
            self.device
        )
        assert self.unshifted is not None
        self.base.copy_(self.unshifted + down * self.pitch + across * self.n_planes)
        try:
            yield
        finally:
            self.base.copy_(self.unshifted)


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
    def arrays(self) -> tuple[Tensor, Tensor, Tensor]:
        rows = self.values
        return torch.from_numpy(rows.data), torch.from_numpy(rows.index), torch.from_numpy(rows.start)

    def batch(self, rows: Tensor) -> Tensor:
        """Return dense rows: the definition for the kernels.  (b,) → (b, n_features)"""
        return torch.from_numpy(self.values[rows.numpy()].dense())

    def group_sums(self, rows: Tensor, group: Tensor, weight: Tensor, n_groups: int) -> Tensor:
        """Sum weight · x by group, in double precision.  (b,), (b,), (b,) → (n_groups, n_features)"""
        taken = self.values[rows.numpy()]
        place = group.numpy()[taken.row] * taken.n_features + taken.index
        sums = np.bincount(place, weight.numpy()[taken.row] * taken.data, n_groups * taken.n_features)
        return torch.from_numpy(sums.reshape(n_groups, taken.n_features))


RawRows = npt.NDArray[np.float32] | Windows | SparseRows
"""Checked rows that are not scaled yet."""


class ScaledRows(Protocol):
    """Scaled rows on the training device."""

    @property
    def shape(self) -> tuple[int, int]:
        """(length, features)"""

    @property
    def dtype(self) -> Any: ...

    @property
    def arrays(self) -> tuple[Tensor, ...]:
        """Arrays that the fused kernels read in place."""

    def batch(self, rows: Tensor) -> Tensor:
        """Return rows by index.  (b,) → (b, n_features)"""


def learn_scaling(X: RawRows, sample_weight: Doubles, kind: str | None, n_jobs: int | None = 1) -> Scaling:
    """Learn the scaling from the weighted statistics of all rows; ``kind`` is a key of ``scaling.SCALES``."""
    if isinstance(X, SparseRows):
        return X.learn_scaling(sample_weight, kind)
    assert isinstance(X, np.ndarray)
    return Scaling.learn(X, sample_weight, kind, n_jobs)


def scale_rows(
    X: RawRows, scaling: Scaling, device: torch.device, n_jobs: int | None = 1, *, as_array: bool = False
) -> ScaledRows:
    """Scale rows on the device that trains; a large array on the CPU when it is read, unless ``as_array``."""
    if isinstance(X, SparseRows):
        return SparseTrainingRows(X.scale(scaling))
    if not isinstance(X, Windows):
        in_place = scaling.is_identity and X.flags.writeable
        if device.type == "cpu" and not as_array and not in_place and X.nbytes > MAX_COPY_BYTES:
            return UnscaledRows(X, scaling)
        return ArrayRows.scale(X, scaling, device, n_jobs)
    windows = X.scale(scaling, n_jobs)
    data, base, offset = (torch.from_numpy(part).to(device) for part in windows.arrays)
    return Windows(data, base, offset, X.n_planes)
