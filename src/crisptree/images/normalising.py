"""Images of different brightness and contrast made alike."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def normalised(image: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
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
    centered = values - _mean(values)
    spread = np.sqrt(_mean(centered**2))
    varies = values.max(axis=0) > values.min(axis=0)
    factor = np.where(varies, 1 / np.where(varies, spread, 1.0), 0.0)
    return (centered * factor).astype(np.float32).reshape(image.shape)


def _mean(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    # Summed one after the other: the same image gives the same bits everywhere.
    return np.asarray(np.cumsum(values, axis=0)[-1] / len(values))
