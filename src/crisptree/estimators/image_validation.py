"""Images and masks are checked here once; what y is, is known to ``image_labels`` and ``image_numbers``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree import limits
from crisptree.data.images import WindowView, normalise_image
from crisptree.targets import Target
from crisptree.targets.encoding import TargetEncoding
from crisptree.tensors import detach

Image = npt.NDArray[np.float32]

FORMS = "(height, width[, channels]), an array (n, height, width[, channels]), or a list of images"


@dataclass(frozen=True, eq=False)
class Images:
    """Checked images, each (height, width, channels), and how they came: as a "list", a "stack" or a "single" image.

    ``channels`` is None where the images had no axis for them.
    """

    images: list[Image]
    form: str
    channels: int | None

    def normalised(self) -> Images:
        """Every image by its own mean and spread."""
        return replace(self, images=[normalise_image(image) for image in self.images])

    def like_given(self, results: Sequence[npt.NDArray[Any]]) -> Any:
        """One result per image, in the form in which the images came."""
        if self.form == "list":
            return list(results)
        return results[0] if self.form == "single" else np.stack(results)


@dataclass(frozen=True, eq=False)
class KnownPixels:
    """The pixels that are trained on, image by image: which they are, encoded y, and weights."""

    used: list[npt.NDArray[np.bool_]]
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]
    encoding: TargetEncoding

    @property
    def target(self) -> Target:
        """What y is."""
        return self.encoding.target_of(self.y)

    def only(self, keep: npt.NDArray[np.bool_]) -> KnownPixels:
        """Some of the pixels, one flag for each of them."""
        used = [use.copy() for use in self.used]
        ends = np.cumsum([np.count_nonzero(use) for use in used])
        for use, kept in zip(used, np.split(keep, ends[:-1]), strict=True):
            use[use] = kept
        return replace(self, used=used, y=self.y[keep], weight=self.weight[keep])


def check_new_images(images: Any, n_axes: int) -> Images:
    """The images of a fit. What the axes of (a, b, c) mean is told by ``n_axes``, those of the labels beside them."""
    if is_list(images):
        return _checked(list(images), "list")
    array = _numbers(images)
    if array.ndim not in (2, 3, 4):
        raise ValueError(f"images must be an image {FORMS}; got an array of shape {array.shape}.")
    if array.ndim == 2 or (array.ndim == 3 and n_axes == 2):
        return _checked([array], "single")
    return _checked(list(array), "stack")


def check_images(images: Any, channels: int | None) -> Images:
    """Images to predict, with the channels of training."""
    if is_list(images):
        given = _checked(list(images), "list")
    else:
        array = _numbers(images)
        axes = 2 if channels is None else 3
        if array.ndim not in (axes, axes + 1):
            raise _other_channels(channels, f"an array of shape {array.shape}")
        given = _checked([array], "single") if array.ndim == axes else _checked(list(array), "stack")
    if given.channels != channels:
        raise _other_channels(channels, "no axis for channels" if given.channels is None else given.channels)
    return given


def check_window_reach(window: int, scales: Sequence[int]) -> None:
    """Coarse images are smoothed over as many pixels as a scale says, whatever the size of the image."""
    reach = int(window) * int(max(scales))
    limits.current().check("reach", reach, f"window × scale is {reach:,} pixels")


def check_reach(given: Images, view: WindowView) -> None:
    """A window may reach beyond the border no further than the image goes on inside."""
    check_window_reach(view.window, view.scales)
    for image in given.images:
        if min(image.shape[:2]) <= view.margin:
            raise ValueError(
                f"images must have more than {view.margin} pixels on each side for window={view.window} with scales="
                f"{view.scales}, because they are mirrored at their borders; got an image of {image.shape[0]} × "
                f"{image.shape[1]}. Take a smaller window."
            )


def check_labels(given: Images, labels: Any, what: str = "labels") -> list[npt.NDArray[Any]]:
    """One label image per image, of its height and width."""
    arrays = one_for_each(given, labels)
    expected = [image.shape[:2] for image in given.images]
    found = [image.shape for image in arrays]
    if found != expected:
        raise ValueError(
            f"{what} must have one value for every pixel, as images of shape {few(expected)}; got {few(found)}."
            f"{_hint(given, found)}"
        )
    return arrays


def one_for_each(given: Images, values: Any) -> list[npt.NDArray[Any]]:
    """What was given beside the images, in their form; as many as that are."""
    if given.form == "single":
        return [np.asarray(detach(values))]
    return [np.asarray(detach(image)) for image in values] if is_list(values) or np.ndim(values) > 0 else []


def _hint(given: Images, found: list[tuple[int, ...]]) -> str:
    """What may have been meant by labels that do not fit."""
    if any(len(shape) > 2 for shape in found):
        return " Leave the channels out: a pixel has one label."
    if given.form == "single" and given.images[0].shape[1:] in found:
        return (
            " Channels come last, (height, width, channels); several images (n, height, width) have labels of that "
            "same shape."
        )
    return ""


def check_mask(given: Images, mask: Any) -> list[npt.NDArray[np.bool_]] | None:
    """Which pixels may be used; None for all of them."""
    if mask is None:
        return None
    images = check_labels(given, mask, "mask")
    for image in images:
        if image.dtype != bool and not np.isin(image, (0, 1)).all():
            raise ValueError(f"mask must be True where a pixel is to be used, or 0 and 1; got {image.dtype} values.")
    return [image.astype(bool) for image in images]


def allowed(used: list[npt.NDArray[np.bool_]], mask: list[npt.NDArray[np.bool_]] | None) -> list[npt.NDArray[np.bool_]]:
    """Pixels that can be used and that the mask lets through."""
    return used if mask is None else [use & allow for use, allow in zip(used, mask, strict=True)]


def is_list(value: Any) -> bool:
    """Images one by one; nested lists of plain numbers are an array."""
    if isinstance(value, np.ndarray):
        return value.dtype == object and value.ndim == 1
    return isinstance(value, list | tuple) and (not value or any(hasattr(item, "shape") for item in value))


def _numbers(values: Any) -> npt.NDArray[Any]:
    try:
        array = np.asarray(detach(values))
    except ValueError as error:  # lists of unequal lengths
        raise ValueError(
            f"images must be an image {FORMS}; got nested lists that are no array. Make an array of every image."
        ) from error
    if array.dtype.kind not in "buif":
        raise ValueError(f"images must hold numbers; got values of type {array.dtype}.")
    return array


def _checked(images: list[Any], form: str) -> Images:
    if not images:
        raise ValueError("there must be at least one image; got none.")
    arrays = [_numbers(image) for image in images]
    axes = {array.ndim for array in arrays}
    channels = {array.shape[2] for array in arrays if array.ndim == 3}
    if not axes <= {2, 3} or len(axes) != 1 or len(channels) > 1 or min(min(array.shape) for array in arrays) == 0:
        raise ValueError(
            "images must all be (height, width), or all be (height, width, channels) with as many channels, and not "
            f"be empty; got {few([array.shape for array in arrays])}."
        )
    with np.errstate(over="ignore", under="ignore"):  # what does not fit is infinite then, and named as such
        floats = [np.ascontiguousarray(array, dtype=np.float32).reshape(*array.shape[:2], -1) for array in arrays]
    if not all(np.isfinite(image).all() for image in floats):
        raise ValueError(
            "images must hold finite numbers that float32 can hold; some are infinite or not a number. Replace them "
            "first."
        )
    return Images(floats, form, channels.pop() if channels else None)


def _other_channels(channels: int | None, found: Any) -> ValueError:
    wanted = "no axis for channels" if channels is None else f"{channels} channels, as (height, width, {channels})"
    return ValueError(f"images must have {wanted}, as in training; got {found}. Give the channels that fit was given.")


def few(shapes: Sequence[tuple[int, ...]]) -> str:
    """Some shapes in words."""
    different = list(dict.fromkeys(shapes))
    return ", ".join(map(str, different[:4])) + (" …" if len(different) > 4 else "") + f" ({len(shapes)} in all)"
