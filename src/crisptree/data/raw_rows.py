"""Rows before training, NumPy only: scaling of features, sparse rows, windows of images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from crisptree.threads import ROWS_IN_CACHE, over_blocks

Floats = npt.NDArray[np.floating]
Doubles = npt.NDArray[np.float64]

MAX_FLOAT32 = float(np.finfo(np.float32).max)

VALUES_IN_CACHE = 2**16
"""Values that are scaled at a time where rows have few features."""

CACHE_LINE = 64

MIN_SPREAD = 1e-35
"""Columns with a smaller range count as constant: the folded weight would overflow float32."""


def scale(values: Any, center: Any, factor: Any) -> Any:
    """(x − center) · factor, for arrays and tensors; clipped to the range of float32."""
    return ((values - center) * factor).clip(-MAX_FLOAT32, MAX_FLOAT32)


def _empty_at_cache_line(shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
    """Allocate an array that begins with a cache line: vectors of the kernels cross none where rows are whole ones."""
    memory = np.empty(math.prod(shape) + CACHE_LINE // 4, dtype=np.float32)
    start = -memory.__array_interface__["data"][0] % CACHE_LINE // 4
    return memory[start : start + math.prod(shape)].reshape(shape)


@dataclass(frozen=True, eq=False)
class Scaling:
    """x ↦ (x − center) · factor, feature by feature; the factor is 0 for columns constant in training.

    ``mean`` and ``spread`` are the weighted mean and standard deviation of the training rows, whatever the scale is.
    """

    center: Annotated[Doubles, "features"]
    factor: Annotated[Doubles, "features"]
    mean: Annotated[Doubles, "features"]
    spread: Annotated[Doubles, "features"]

    @classmethod
    def learn(cls, X: Floats, sample_weight: Floats, kind: str | None, n_jobs: int | None = 1) -> Scaling:
        """Learn from the weighted statistics of the training rows; ``kind`` is a key of ``SCALES``."""
        cached = max(ROWS_IN_CACHE, VALUES_IN_CACHE // max(X.shape[1], 1))
        ranges = list(over_blocks(lambda rows: (X[rows].min(axis=0), X[rows].max(axis=0)), len(X), cached, n_jobs))
        low = np.min([block for block, _ in ranges], axis=0).astype(np.float64)
        high = np.max([block for _, block in ranges], axis=0).astype(np.float64)
        varies = high - low > MIN_SPREAD
        # Centred on the middle of the range first: squares of 1e30 or of large offsets would lose all precision.
        middle, half = low / 2 + high / 2, np.where(varies, high / 2 - low / 2, 1.0)
        total = sample_weight.sum()

        def moments(rows: slice) -> tuple[Doubles, Doubles]:
            unit = np.subtract(X[rows], middle)
            unit /= half
            return sample_weight[rows] @ unit, sample_weight[rows] @ np.square(unit, out=unit)

        first, second = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        for once, twice in over_blocks(moments, len(X), ROWS_IN_CACHE, n_jobs):
            first += once
            second += twice
        mean = first / total
        spread = half * np.sqrt(np.maximum(second / total - mean**2, 0.0))
        varies &= spread > MIN_SPREAD
        center = middle + half * mean
        return cls(*SCALES[kind](center, spread, varies), center, spread)

    @classmethod
    def none(cls, n_features: int) -> Scaling:
        """Return the identity."""
        zeros, ones = np.zeros(n_features), np.ones(n_features)
        return cls(zeros, ones, zeros, ones)

    def apply(self, X: Floats, n_jobs: int | None = 1) -> npt.NDArray[np.float32]:
        """Scale rows in double precision; the result is float32."""
        result = _empty_at_cache_line(X.shape)

        def scale_block(rows: slice) -> None:
            with np.errstate(under="ignore"):  # what underflows is 0
                result[rows] = scale(X[rows], self.center, self.factor)

        for _ in over_blocks(scale_block, len(X), max(ROWS_IN_CACHE, VALUES_IN_CACHE // max(X.shape[1], 1)), n_jobs):
            pass
        return result

    @property
    def is_identity(self) -> bool:
        """Return True if rows do not change."""
        return bool(np.all(self.center == 0) and np.all(self.factor == 1))

    def first(self, n_features: int) -> Scaling:
        """Return the scaling of the first features."""
        return Scaling(*(part[:n_features] for part in (self.center, self.factor, self.mean, self.spread)))

    def fold(self, weight: Doubles, bias: Doubles) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Convert hyperplanes of scaled features to hyperplanes of raw features."""
        raw = weight * self.factor
        return raw.astype(np.float32), (bias - raw @ self.center).astype(np.float32)

    def unfold(self, weight: Floats, bias: Floats) -> tuple[Doubles, Doubles]:
        """Invert ``fold``; columns that were constant in training have weight zero."""
        raw = weight.astype(np.float64)
        return raw * self.unit, bias + raw @ self.center

    def repeat(self, times: int) -> Scaling:
        """Return the scaling of rows that repeat these features, as the pixels of an image do."""
        return Scaling(*(np.tile(part, times) for part in (self.center, self.factor, self.mean, self.spread)))

    def share_between_pixels(self, n_channels: int = 1) -> Scaling:
        """Return one center per channel and one factor for all pixels, as random shifts need it.

        Pixels that are constant in training have a factor too: a neighbour that varies may be shifted there.
        """
        center = np.tile(self.center.reshape(-1, n_channels).mean(axis=0), len(self.center) // n_channels)
        return Scaling(center, np.full_like(self.factor, self.factor.max(initial=0.0)), self.mean, self.spread)

    def is_same_for_pixels(self, n_channels: int = 1) -> bool:
        """Return True if all pixels have the same scaling."""
        parts = (part.reshape(-1, n_channels) for part in (self.center, self.factor))
        return all(bool(np.all(part == part[:1])) for part in parts)

    @property
    def unit(self) -> Doubles:
        """Raw length of one scaled unit, 0 for columns that were constant in training."""
        return np.divide(1.0, self.factor, out=np.zeros_like(self.factor), where=self.factor != 0)


def _by_feature(mean: Doubles, spread: Doubles, varies: npt.NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
    return mean, np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)


def _by_common_spread(mean: Doubles, spread: Doubles, varies: npt.NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
    if not varies.any():
        return mean, np.zeros_like(mean)
    largest = spread.max()
    common = largest * np.sqrt(np.mean((spread[varies] / largest) ** 2))
    return mean, varies / common


def _unscaled(mean: Doubles, spread: Doubles, varies: npt.NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
    return np.zeros_like(mean), varies.astype(np.float64)


SCALES = {"feature": _by_feature, "global": _by_common_spread, None: _unscaled}


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

    def scale(self, scaling: Scaling) -> SparseRows:
        """Scale the rows; the scaling must keep zeros."""
        if np.any(scaling.center):
            raise ValueError(
                "sparse rows must be scaled without being centred, and this tree was trained on dense rows, which are. "
                "Give dense rows again, or use a new estimator."
            )
        return replace(self, data=scale(self.data, 0.0, scaling.factor[self.index]).astype(np.float32))


Image = npt.NDArray[np.float32]

KERNEL_RADIUS = 3
"""Radius of the smoothing kernel in standard deviations."""


def smooth_image(image: Image, scale: int) -> Image:
    """Smooth an image by a Gaussian of standard deviation scale / 2, mirrored at the border.

    Samples that are ``scale`` pixels apart then lose little detail. A scale of 1 returns the image as it is.
    (height, width, channels) → the same, channel by channel
    """
    if scale == 1:
        return image
    radius = int(np.ceil(KERNEL_RADIUS * scale / 2))
    kernel = np.exp(-2 * (np.arange(-radius, radius + 1) / scale) ** 2)
    kernel /= kernel.sum()
    for _ in range(2):  # along the columns, then, transposed, along the rows
        lines = np.pad(image, [(radius, radius), (0, 0), (0, 0)], mode="reflect")
        total = np.zeros(image.shape)
        for tap, factor in enumerate(kernel):
            total += factor * lines[tap : tap + len(image)]
        image = total.astype(np.float32).swapaxes(0, 1)
    return image


def normalise_image(image: Image) -> Image:
    """Standardize every channel to mean 0 and standard deviation 1; a constant channel becomes 0.

    Parameters
    ----------
    image : ndarray of shape (height, width, channels)
        Finite numbers.

    Examples
    --------
    >>> normalise_image(np.array([[1.0], [3.0]], dtype=np.float32)[None]).ravel()
    array([-1.,  1.], dtype=float32)
    """
    values = image.reshape(-1, image.shape[2]).astype(np.float64)
    centered = values - np.cumsum(values, axis=0)[-1] / len(values)
    spread = np.sqrt(np.cumsum(centered**2, axis=0)[-1] / len(values))
    factor = np.divide(1.0, spread, out=np.zeros_like(spread), where=values.max(axis=0) > values.min(axis=0))
    return (centered * factor).astype(np.float32).reshape(image.shape)


@dataclass(frozen=True)
class WindowView:
    """``window`` × ``window`` samples around a pixel, at every scale, of every channel.

    At scale s, samples are s pixels apart on the smoothed image, so that the window covers s times the distance.
    Features are ordered by line, column, scale and channel: a row is an image of shape (window, window, planes), with
    a plane for each scale of each channel.
    """

    window: int  # samples along a side, odd
    scales: tuple[int, ...]  # distances of the samples
    channels: int  # of the images

    @property
    def margin(self) -> int:
        """Pixels beyond the border of an image that a window may cover."""
        return self.window // 2 * max(self.scales)

    @property
    def n_planes(self) -> int:
        return self.channels * len(self.scales)

    @property
    def n_features(self) -> int:
        return self.window**2 * self.n_planes

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Shape of a row as an image; a single plane has no axis of its own."""
        return (self.window, self.window) if self.n_planes == 1 else (self.window, self.window, self.n_planes)

    def offsets(self, pitch: int) -> npt.NDArray[np.int64]:
        """Return the offset of every feature from the pixel's first value, where lines have ``pitch`` pixels.

        Examples
        --------
        >>> WindowView(3, (1,), 1).offsets(pitch=10)
        array([-11, -10,  -9,  -1,   0,   1,   9,  10,  11])
        """
        steps = np.arange(self.window) - self.window // 2
        down, across = steps[:, None, None, None], steps[None, :, None, None]
        scale = np.array(self.scales)[:, None]
        plane = np.arange(self.n_planes).reshape(len(self.scales), self.channels)
        return ((down * pitch + across) * scale * self.n_planes + plane).reshape(-1)


@dataclass(frozen=True, eq=False)
class Windows:
    """Feature j of row r is ``data[base[r] + offset[j]]``; an array of rows is the case base = r · p, offset = j.

    Indexing returns rows as an array: the slow definition, for a few rows at a time. Its parts are arrays where a tree
    predicts and tensors where one trains.

    Parameters
    ----------
    data : ndarray or Tensor of shape (n_values,), float32
        Images after each other.
    base : ndarray or Tensor of shape (n,), int64
        Index of every row's pixel in ``data``.
    offset : ndarray or Tensor of shape (n_features,), int64
        Offset of every feature from it.
    n_planes : int, default=1
        Consecutive values of a pixel, each with a scale of its own.

    Examples
    --------
    >>> import numpy as np
    >>> Windows(np.arange(9, dtype=np.float32), np.array([3, 4]), np.array([-3, 0, 3]))[:]
    array([[0., 3., 6.],
           [1., 4., 7.]], dtype=float32)
    """

    data: Any
    base: Any
    offset: Any
    n_planes: int = 1

    def __len__(self) -> int:
        return len(self.base)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.base), len(self.offset)

    @property
    def size(self) -> int:
        """Number of values of the rows as an array."""
        return len(self.base) * len(self.offset)

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def device(self) -> Any:
        return self.data.device

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        return self.data, self.base, self.offset

    def __getitem__(self, rows: Any) -> Any:
        return self.data[self.base[rows][:, None] + self.offset]

    def batch(self, rows: Any) -> Any:
        """Return rows: the definition for the kernels.  (b,) → (b, n_features)"""
        return self[rows]

    def scale(self, scaling: Scaling, n_jobs: int | None = 1) -> Windows:
        """Return the windows of the scaled images; ``scaling`` is that of a row, which repeats that of the planes."""
        pixels = scaling.first(self.n_planes).apply(self.data.reshape(-1, self.n_planes), n_jobs)
        return Windows(pixels.reshape(-1), self.base, self.offset, self.n_planes)


@dataclass(frozen=True, eq=False)
class Canvas:
    """All images in one array as wide as the widest of them, each with a mirrored margin."""

    pixels: Image  # of shape (n_lines, pitch, n_planes)
    view: WindowView
    shapes: tuple[tuple[int, int], ...]  # (height, width) of the images
    tops: tuple[int, ...]  # the first line of every image's margin

    @classmethod
    def of(cls, images: Sequence[Image], view: WindowView) -> Canvas:
        """Lay out images of shape (height, width, channels)."""
        margin, shapes = view.margin, tuple((len(image), image.shape[1]) for image in images)
        heights = [height + 2 * margin for height, _ in shapes]
        tops = tuple(int(top) for top in np.cumsum([0, *heights[:-1]]))
        pitch = max(width for _, width in shapes) + 2 * margin
        pixels = np.zeros((sum(heights), pitch, view.n_planes), dtype=np.float32)
        margins = ((margin, margin), (margin, margin), (0, 0))
        for image, top, height, (_, width) in zip(images, tops, heights, shapes, strict=True):
            planes = np.concatenate([smooth_image(image, scale) for scale in view.scales], axis=2)
            pixels[top : top + height, : width + 2 * margin] = np.pad(planes, margins, mode="reflect")
        return cls(pixels, view, shapes, tops)

    def image(self, number: int) -> Image:
        """Return a view of an image's planes without the margin.  (height, width, n_planes)"""
        margin, (height, width) = self.view.margin, self.shapes[number]
        top = self.tops[number] + margin
        return self.pixels[top : top + height, margin : margin + width]

    def places(self, number: int) -> npt.NDArray[np.int64]:
        """Return the index of the first value of every pixel of an image.  (height, width)"""
        margin, (height, width) = self.view.margin, self.shapes[number]
        lines, columns = self.tops[number] + margin + np.arange(height), margin + np.arange(width)
        return (lines[:, None] * self.pixels.shape[1] + columns) * self.view.n_planes

    def windows(self, base: npt.NDArray[np.int64] | None = None) -> Windows:
        """Return the windows around pixels, given by their ``places``; by default all pixels, image by image."""
        if base is None:
            base = np.concatenate([self.places(number).reshape(-1) for number in range(len(self.shapes))])
        return Windows(self.pixels.reshape(-1), base, self.view.offsets(self.pixels.shape[1]), self.view.n_planes)
