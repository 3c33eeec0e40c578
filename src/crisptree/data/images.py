"""Images as training rows: every pixel is a row, whose features are the window around it. NumPy only.

``WindowView`` says what a window is; a ``Canvas`` lays images out one below the other, mirrored beyond their borders,
so that a window is a table of offsets (``Windows``). Filters sum in double precision and one fixed order: the same
image gives the same bits everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crisptree.data.windows import Windows

Image = npt.NDArray[np.float32]

REACH = 3
"""The kernel ends so many standard deviations from its middle."""


def smooth_image(image: Image, scale: int) -> Image:
    """The image under a Gaussian of standard deviation scale / 2; beyond its border it is mirrored.

    Samples ``scale`` pixels apart then miss little of what lies between them. A scale of 1 leaves the image as it is.
    (height, width, channels) → the same, channel by channel
    """
    if scale == 1:
        return image
    reach = int(np.ceil(REACH * scale / 2))
    kernel = np.exp(-2 * (np.arange(-reach, reach + 1) / scale) ** 2)
    kernel /= kernel.sum()
    for _ in range(2):  # along the columns, then, turned, along the lines
        lines = np.pad(image, [(reach, reach), (0, 0), (0, 0)], mode="reflect")
        total = np.zeros(image.shape)
        for tap, share in enumerate(kernel):
            total += share * lines[tap : tap + len(image)]
        image = total.astype(np.float32).swapaxes(0, 1)
    return image


def normalise_image(image: Image) -> Image:
    """The image with mean 0 and standard deviation 1 in every channel; a channel of one value becomes 0.

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

    At scale 1 they are the pixels themselves; at scale s they lie s pixels apart on the smooth_image image, so that the
    window reaches s times as far. Features are ordered by line, column, scale and channel: each scale of each channel
    is a plane of one image of shape (window, window, planes), and what is known of images holds for it.
    """

    window: int  # samples along a side, odd
    scales: tuple[int, ...]  # how far apart the samples are
    channels: int  # of the images

    @property
    def margin(self) -> int:
        """How many pixels beyond the border of an image a window may see."""
        return self.window // 2 * max(self.scales)

    @property
    def n_planes(self) -> int:
        return self.channels * len(self.scales)

    @property
    def n_features(self) -> int:
        return self.window**2 * self.n_planes

    @property
    def image_shape(self) -> tuple[int, ...]:
        """The row as an image; a single plane has no axis of its own."""
        return (self.window, self.window) if self.n_planes == 1 else (self.window, self.window, self.n_planes)

    def offsets(self, pitch: int) -> npt.NDArray[np.int64]:
        """How far every feature's value lies from the pixel's first one, where lines have ``pitch`` pixels.

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
class Canvas:
    """All images on one sheet of paper as wide as the widest of them, each with a mirrored margin."""

    pixels: Image  # the sheet, of shape (n_lines, pitch, n_planes)
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
        """An image's planes without the margin, as a part of the sheet.  (height, width, n_planes)"""
        margin, (height, width) = self.view.margin, self.shapes[number]
        top = self.tops[number] + margin
        return self.pixels[top : top + height, margin : margin + width]

    def places(self, number: int) -> npt.NDArray[np.int64]:
        """Where every pixel of an image begins, counted in values.  (height, width)"""
        margin, (height, width) = self.view.margin, self.shapes[number]
        lines, columns = self.tops[number] + margin + np.arange(height), margin + np.arange(width)
        return (lines[:, None] * self.pixels.shape[1] + columns) * self.view.n_planes

    def windows(self, base: npt.NDArray[np.int64] | None = None) -> Windows:
        """The windows around some pixels, given by their places; around all of them, image by image, without any."""
        if base is None:
            base = np.concatenate([self.places(number).reshape(-1) for number in range(len(self.shapes))])
        return Windows(self.pixels.reshape(-1), base, self.view.offsets(self.pixels.shape[1]), self.view.n_planes)
