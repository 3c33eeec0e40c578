"""Images laid out one below the other, mirrored beyond their borders, so that a window is a table of offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crisptree.images.filters import Image, smoothed
from crisptree.images.view import WindowView
from crisptree.rows.windows import Windows


@dataclass(frozen=True, eq=False)
class Canvas:
    """All images on one sheet of paper as wide as the widest of them, each with a mirrored margin.

    Parameters
    ----------
    pixels : ndarray of shape (n_lines, pitch, n_planes), float32
        The sheet; the planes of a pixel lie beside each other.
    view : WindowView
        What a window is.
    shapes : tuple of (height, width)
        Of the images.
    tops : tuple of int
        The first line of every image's margin.
    """

    pixels: Image
    view: WindowView
    shapes: tuple[tuple[int, int], ...]
    tops: tuple[int, ...]

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
            planes = np.concatenate([smoothed(image, scale) for scale in view.scales], axis=2)
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
