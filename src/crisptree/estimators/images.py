"""Images as rows: (n, height, width) or (n, height, width, channels) become (n, n_features)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crisptree.tensors import detach

Shape = tuple[int, ...]


def image_shape_of(X: Any, given: Any) -> Shape | None:
    """The image that a row is: that of the images in X, else the parameter ``image_shape``, else none.

    A parameter that contradicts the images is refused; (28, 28) and (28, 28, 1) are the same image.
    """
    declared = None if given is None else tuple(int(side) for side in given)
    found = _shape_of(_stacked(X))
    if found is None:
        return declared
    if declared is not None and _with_channels(declared) != _with_channels(found):
        raise ValueError(
            f"`image_shape` must be the shape of the images in X; got {declared} for images of shape {found}. "
            "Leave it None: images carry their own shape."
        )
    return declared or found


def as_rows(X: Any, image_shape: Shape | None) -> Any:
    """Images flattened, channels last; everything else as it came. Images of another shape are refused."""
    X = _stacked(X)
    shape = _shape_of(X)
    if shape is None or image_shape is None:
        return X
    if _with_channels(shape) != _with_channels(image_shape):
        raise ValueError(
            f"images must have the shape {image_shape} that the tree was trained on; got {shape}. "
            "Crop or resize them first."
        )
    return X.reshape(len(X), math.prod(shape))


def check_image_shape(image_shape: Shape | None, n_features: int) -> None:
    """The pixels of the image must be the features."""
    if image_shape is not None and math.prod(image_shape) != n_features:
        raise ValueError(
            f"`image_shape` must have as many pixels as X has features; got {image_shape} "
            f"({math.prod(image_shape)} pixels) for {n_features} features. "
            "Leave it None to train without spatial regularisation."
        )


def _shape_of(X: Any) -> Shape | None:
    """The shape of one image, or None where X holds no images."""
    shape = getattr(X, "shape", ())
    if len(shape) not in (3, 4) or 0 in shape:
        return None
    return tuple(int(side) for side in shape[1:])


def _stacked(X: Any) -> Any:
    """A list of images of one shape as one array."""
    if not isinstance(X, list | tuple) or not X or getattr(X[0], "ndim", 0) < 2:
        return X
    shapes = {np.shape(image) for image in X}
    if len(shapes) > 1:
        raise ValueError(
            f"the images in X must all have one shape; got {', '.join(map(str, sorted(shapes)[:5]))}. "
            "Crop or resize them first."
        )
    return np.stack([detach(image) for image in X])


def _with_channels(shape: Shape) -> Shape:
    return shape if len(shape) == 3 else (*shape, 1)
