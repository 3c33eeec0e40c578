"""Coarse versions of an image, to be looked at a few pixels apart."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

REACH = 3
"""The kernel ends so many standard deviations from its middle."""


def smoothed(image: npt.NDArray[np.float32], scale: int) -> npt.NDArray[np.float32]:
    """The image under a Gaussian of standard deviation scale / 2; beyond its border it is mirrored.

    Samples ``scale`` pixels apart then miss little of what lies between them. A scale of 1 leaves the image as it is.

    Parameters
    ----------
    image : ndarray of shape (height, width, channels)
        Channels are smoothed one by one.
    scale : int
        How far apart the samples will be.
    """
    if scale == 1:
        return image
    reach = int(np.ceil(REACH * scale / 2))
    kernel = np.exp(-2 * (np.arange(-reach, reach + 1) / scale) ** 2)
    kernel /= kernel.sum()
    for axis in (0, 1):
        image = _along(image, kernel, reach, axis)
    return image


def _along(
    image: npt.NDArray[np.float32], kernel: npt.NDArray[np.float64], reach: int, axis: int
) -> npt.NDArray[np.float32]:
    margins = [(reach, reach) if side == axis else (0, 0) for side in range(3)]
    lines = np.moveaxis(np.pad(image, margins, mode="reflect"), axis, 0)
    n = image.shape[axis]
    # In double precision and one fixed order: the same image gives the same bits everywhere.
    total = np.zeros((n, *lines.shape[1:]))
    for tap, share in enumerate(kernel):
        total += share * lines[tap : tap + n]
    return np.moveaxis(total, 0, axis).astype(np.float32)
