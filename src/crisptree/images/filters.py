"""An image made coarse, to be looked at a few pixels apart, and images of different brightness made alike.

Sums go in double precision and one fixed order: the same image gives the same bits everywhere.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.float32]

REACH = 3
"""The kernel ends so many standard deviations from its middle."""


def smoothed(image: Image, scale: int) -> Image:
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


def normalised(image: Image) -> Image:
    """The image with mean 0 and standard deviation 1 in every channel; a channel of one value becomes 0.

    Parameters
    ----------
    image : ndarray of shape (height, width, channels)
        Finite numbers.

    Examples
    --------
    >>> normalised(np.array([[1.0], [3.0]], dtype=np.float32)[None]).ravel()
    array([-1.,  1.], dtype=float32)
    """
    values = image.reshape(-1, image.shape[2]).astype(np.float64)
    centered = values - np.cumsum(values, axis=0)[-1] / len(values)
    spread = np.sqrt(np.cumsum(centered**2, axis=0)[-1] / len(values))
    factor = np.divide(1.0, spread, out=np.zeros_like(spread), where=values.max(axis=0) > values.min(axis=0))
    return (centered * factor).astype(np.float32).reshape(image.shape)
