"""Weights and rows as images, and how they are painted: numbers only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.view import ModelView

Doubles = npt.NDArray[np.float64]

GRAY: dict[str, Any] = {"cmap": "gray", "vmin": 0, "vmax": 1}
"""For ``imshow``: from black to white."""


def weight_image(view: ModelView, split: int) -> Doubles:
    """The weights of a split in the scaled space of training, from black to white."""
    assert view.image_shape is not None  # tabular data is drawn otherwise
    return as_image(view.scaled_weights(split), view.image_shape, view.tree.statistics.scaling.factor != 0)


def signed_image(values: Doubles, image_shape: tuple[int, ...] | None) -> tuple[Doubles, dict[str, Any]]:
    """Signed values as an image, and how to paint it: in the colours of right and left, white at zero."""
    assert image_shape is not None
    reach = np.abs(values).max() or 1.0
    return side_by_side(values, image_shape), {"cmap": "RdBu", "vmin": -reach, "vmax": reach}


def full_range(values: npt.NDArray[np.floating], counts: npt.NDArray[np.bool_] | None = None) -> Doubles:
    """Values linearly brought to 0 … 1, from black to white; equal ones to the middle.

    With ``counts`` only those values span the range, and others are cut off at its ends: pixels that are constant in
    training have weight zero, which may lie far from the rest.

    Examples
    --------
    >>> full_range(np.array([-1.0, 0.0, 3.0])).tolist()
    [0.0, 0.25, 1.0]
    """
    wide = values.astype(np.float64)
    spanning = wide if counts is None or not counts.any() else wide[counts]
    low, high = spanning.min(), spanning.max()
    if not high > low:
        return np.full(wide.shape, 0.5)
    return np.clip((wide - low) / (high - low), 0.0, 1.0)


def as_image(
    values: npt.NDArray[np.floating], image_shape: tuple[int, ...], counts: npt.NDArray[np.bool_] | None = None
) -> Doubles:
    """A row of values as an image from black to white: three channels as colours, other numbers of them side by side.

    (height, width) or (height, width, 3), from 0 to 1
    """
    shades = full_range(values, counts)
    return shades.reshape(image_shape) if image_shape[2:] == (3,) else side_by_side(shades, image_shape)


def side_by_side(values: npt.NDArray[np.floating], image_shape: tuple[int, ...]) -> Doubles:
    """The channels of an image as one image, in rows of about equal number, NaN between them.

    Examples
    --------
    >>> side_by_side(np.arange(4.0), (1, 2, 2)).tolist()
    [[0.0, 2.0, nan, 1.0, 3.0]]
    """
    height, width, channels = (*image_shape, 1)[:3]
    image = np.asarray(values, dtype=np.float64).reshape(height, width, channels)
    columns = math.ceil(math.sqrt(channels))
    rows = math.ceil(channels / columns)
    sheet = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1), np.nan)
    for channel in range(channels):
        top, left = channel // columns * (height + 1), channel % columns * (width + 1)
        sheet[top : top + height, left : left + width] = image[:, :, channel]
    return sheet
