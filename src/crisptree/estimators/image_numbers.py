"""Images of numbers to be predicted are checked here once: one number for every pixel, or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.estimators.image_validation import (
    Images,
    KnownPixels,
    allowed,
    check_mask,
    few,
    is_list,
    one_for_each,
)
from crisptree.estimators.numbers import NumberScale, check_numbers

Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def number_axes(images: Any, targets: Any) -> int:
    """How many axes targets have without that of their outputs: 2 where there is one image alone.

    Where images are (a, b, c), targets (a, b) or (a, b, k) belong to one image of c channels, and targets (a, b, c) or
    (a, b, c, k) to several images without channels.
    """
    if targets is None:
        raise ValueError("`targets` must hold a number for every pixel; got None.")
    if is_list(images) or is_list(targets):
        return 3
    shape, found = _shape(images), _shape(targets)
    is_alone = len(found) == 3 and len(shape) == 3 and found[:2] == shape[:2] and found != shape
    return 2 if len(found) == 2 or is_alone else 3


def _shape(values: Any) -> tuple[int, ...]:
    try:
        return np.shape(values)
    except ValueError:  # lists of unequal lengths, which are refused where they are read
        return ()


def check_number_images(given: Images, targets: Any, what: str = "targets") -> list[Doubles]:
    """One image of numbers per image, of its height and width.  → (height, width, n_outputs) each"""
    arrays = one_for_each(given, targets)
    expected, found = [image.shape[:2] for image in given.images], [array.shape for array in arrays]
    outputs = {shape[2:] for shape in found}
    fits = [shape[:2] for shape in found] == expected and len(outputs) == 1
    if not fits or len(found[0]) > 3 or 0 in found[0]:
        raise ValueError(
            f"{what} must have a number for every pixel, or as many for each, as images of shape {few(expected)} or "
            f"(height, width, outputs); got {few(found)}. One image with channels and its {what} of as many outputs "
            "must come as lists, [image] and [target]."
        )
    for array in arrays:
        if array.dtype.kind not in "buif":
            raise ValueError(
                f"{what} must hold numbers; got values of type {array.dtype}. For classes use CrispSegmenter."
            )
    return [np.asarray(array, dtype=np.float64).reshape(*array.shape[:2], -1) for array in arrays]


def pixels_with_numbers(images: Sequence[Doubles], ignore_value: float | None) -> list[Flags]:
    """Which pixels have all their numbers: none that is NaN, or the value to ignore."""
    missing = [np.isnan(image) for image in images]
    if ignore_value is not None:
        missing = [gaps | (image == ignore_value) for gaps, image in zip(missing, images, strict=True)]
    return [np.asarray(~gaps.any(axis=2)) for gaps in missing]


def check_known(given: Images, targets: Any, mask: Any, ignore_value: float | None) -> KnownPixels:
    """The pixels of a fit that have numbers, these scaled to mean 0 and variance 1."""
    images = check_number_images(given, targets)
    used = allowed(pixels_with_numbers(images, ignore_value), check_mask(given, mask))
    y = _numbers_of(images, used)
    if not len(y):
        raise ValueError(
            "there must be at least one pixel with a number; got none after NaN, "
            f"ignore_value={ignore_value!r} and the mask."
        )
    weight = np.ones(len(y))
    scale = NumberScale.learn(y, weight)
    return KnownPixels(used, scale.scaled(y), weight, None, scale)


def check_held(given: Images, targets: Any, ignore_value: float | None, scale: NumberScale) -> KnownPixels:
    """Pixels to be scored on, their numbers scaled as those of training."""
    images = check_number_images(given, targets, "validation targets")
    used = pixels_with_numbers(images, ignore_value)
    y = _numbers_of(images, used)
    _check_outputs(y, len(scale.center), "validation targets")
    return KnownPixels(used, scale.scaled(y), np.ones(len(y)), None, scale)


def numbers_to_score(
    given: Images, targets: Any, ignore_value: float | None, n_outputs: int
) -> tuple[list[Flags], Doubles]:
    """Which pixels count for a score, and their numbers one after the other."""
    images = check_number_images(given, targets)
    used = pixels_with_numbers(images, ignore_value)
    y = _numbers_of(images, used)
    _check_outputs(y, n_outputs, "targets")
    return used, y


def _check_outputs(y: Doubles, n_outputs: int, what: str) -> None:
    if y.shape[1] != n_outputs:
        raise ValueError(f"{what} must have {n_outputs} outputs, as in training; got {y.shape[1]}.")
    if not len(y):
        raise ValueError("there must be at least one pixel with a number to score on; got none.")


def _numbers_of(images: Sequence[Doubles], used: Sequence[Flags]) -> Doubles:
    """The numbers of some pixels one after the other.  (n, n_outputs)"""
    values = np.concatenate([image[use] for image, use in zip(images, used, strict=True)])
    if not np.isfinite(values).all():
        raise ValueError(
            "targets must be finite, or NaN where a pixel has no number; some are infinite. Replace them first."
        )
    return check_numbers(values, "targets") if len(values) else values
