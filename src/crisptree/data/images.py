"""Windows of images as rows: every pixel is a row, whose features are the window around it. NumPy only.

``WindowView`` defines a window; a ``Canvas`` lays images out one below the other, with mirrored margins, so that rows
are offsets into it (``Windows``), not copies. Filters sum in double precision and a fixed order, for the same bits
everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.data.scaling import Scaling

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
    def nbytes(self) -> int:
        return int(sum(part.nbytes for part in self.arrays))

    @property
    def arrays(self) -> tuple[Any, Any, Any]:
        return self.data, self.base, self.offset

    def __getitem__(self, rows: Any) -> Any:
        return self.data[self.base[rows][:, None] + self.offset]

    def batch(self, rows: Any) -> Any:
        """Return rows: the definition for the kernels.  (b,) → (b, n_features)"""
        return self[rows]

    def scaled(self, scaling: Scaling, n_jobs: int | None = 1) -> Windows:
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
