"""The segmenter's images, label images and masks are checked here once, with errors that help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets

from crisptree import limits
from crisptree.estimators.validation import class_factors
from crisptree.images import WindowView, normalised
from crisptree.labels import label_type
from crisptree.streams import refuse_batches

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
        return replace(self, images=[normalised(image) for image in self.images])

    def like_given(self, results: Sequence[npt.NDArray[Any]]) -> Any:
        """One result per image, in the form in which the images came."""
        if self.form == "list":
            return list(results)
        return results[0] if self.form == "single" else np.stack(results)


@dataclass(frozen=True, eq=False)
class Labelled:
    """The pixels that are trained on, image by image: which they are, their class numbers and their weights."""

    used: list[npt.NDArray[np.bool_]]
    y: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]
    classes: npt.NDArray[Any]

    def only(self, keep: npt.NDArray[np.bool_]) -> Labelled:
        """Some of the pixels, one flag for each of them."""
        used = [use.copy() for use in self.used]
        ends = np.cumsum([np.count_nonzero(use) for use in used])
        for use, kept in zip(used, np.split(keep, ends[:-1]), strict=True):
            use[use] = kept
        return replace(self, used=used, y=self.y[keep], weight=self.weight[keep])


def check_new_images(images: Any, labels: Any) -> Images:
    """The images of a fit. What the axes of (a, b, c) mean is told by the labels: (a, b) or (a, b, c)."""
    refuse_batches(images, "CrispSegmenter")
    if labels is None:
        raise ValueError("`labels` must hold the class of every pixel; got None.")
    if _is_list(images):
        return _checked(list(images), "list")
    array = _numbers(images)
    n_axes = 3 if _is_list(labels) else np.ndim(labels)
    if array.ndim not in (2, 3, 4):
        raise ValueError(f"images must be an image {FORMS}; got an array of shape {array.shape}.")
    if array.ndim == 2 or (array.ndim == 3 and n_axes == 2):
        return _checked([array], "single")
    return _checked(list(array), "stack")


def check_images(images: Any, channels: int | None) -> Images:
    """Images to predict, with the channels of training."""
    refuse_batches(images, "a fitted CrispSegmenter")
    if _is_list(images):
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
    if given.form == "single":
        arrays = [np.asarray(labels)]
    elif _is_list(labels) or np.ndim(labels) > 0:
        arrays = [np.asarray(image) for image in labels]
    else:
        arrays = []
    expected = [image.shape[:2] for image in given.images]
    found = [image.shape for image in arrays]
    if found != expected:
        raise ValueError(
            f"{what} must have one value for every pixel, as images of shape {_few(expected)}; got {_few(found)}."
            f"{_hint(given, found)}"
        )
    return arrays


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


def check_labelled(given: Images, labels: Any, mask: Any, ignore_label: Any, class_weight: Any) -> Labelled:
    """The labelled pixels of a fit."""
    images = check_labels(given, labels)
    used = _used(images, check_mask(given, mask), ignore_label)
    values = np.concatenate([image[use] for image, use in zip(images, used, strict=True)])
    if not len(values):
        raise ValueError(
            f"there must be at least one labelled pixel; got none after ignore_label={ignore_label!r} and the mask."
        )
    classes = _classes(values)
    if len(classes) < 2:
        raise ValueError(
            f"the labelled pixels must be of at least two classes; all of them are {classes.tolist()[0]!r}. "
            "Label some of another class, or look at ignore_label."
        )
    weight = np.ones(len(values)) * class_factors(class_weight, values, np.ones(len(values)))
    everything = Labelled(used, np.searchsorted(classes, values), weight, classes)
    return everything if weight.all() else _without_classes(everything)


def _without_classes(labelled: Labelled) -> Labelled:
    """Pixels whose class has weight zero are left out before anything is learned, and so is the class."""
    rest = labelled.only(labelled.weight > 0)
    numbers, y = np.unique(rest.y, return_inverse=True)
    if len(numbers) < 2:
        raise ValueError("`class_weight` must leave at least two classes with a positive weight; got fewer.")
    return replace(rest, y=y.astype(np.int64), classes=labelled.classes[numbers])


def check_held(given: Images, labels: Any, ignore_label: Any, classes: npt.NDArray[Any]) -> Labelled:
    """Labelled pixels to be scored on, all of known classes."""
    images = check_labels(given, labels)
    used = _used(images, None, ignore_label)
    values = np.concatenate([image[use] for image, use in zip(images, used, strict=True)])
    if not len(values):
        raise ValueError("there must be at least one labelled pixel to score on; got none.")
    found = _classes(values)
    unknown = [label for label in found.tolist() if label not in set(classes.tolist())]
    if unknown:
        raise ValueError(
            f"validation labels must be among the training classes {classes.tolist()}; got {unknown} too. "
            "Leave those pixels out, with ignore_label."
        )
    return Labelled(used, np.searchsorted(classes, values), np.ones(len(values)), classes)


def labelled_pixels(
    given: Images, labels: Any, ignore_label: Any
) -> tuple[list[npt.NDArray[Any]], list[npt.NDArray[np.bool_]]]:
    """Label images and which of their pixels count, for a score."""
    images = check_labels(given, labels)
    return images, _used(images, None, ignore_label)


def _used(
    images: list[npt.NDArray[Any]], mask: list[npt.NDArray[np.bool_]] | None, ignore_label: Any
) -> list[npt.NDArray[np.bool_]]:
    used = [_is_labelled(image, ignore_label) for image in images]
    return used if mask is None else [use & allowed for use, allowed in zip(used, mask, strict=True)]


def _is_labelled(image: npt.NDArray[Any], ignore_label: Any) -> npt.NDArray[np.bool_]:
    if ignore_label is None:
        return np.ones(image.shape, dtype=bool)
    if isinstance(ignore_label, float | np.floating) and np.isnan(ignore_label):  # which differs from itself
        return ~np.isnan(image) if image.dtype.kind == "f" else np.ones(image.shape, dtype=bool)
    return np.asarray(image != ignore_label)


def _classes(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError(
            "labels must be finite; some are not. If that marks pixels without a label, set ignore_label=float('nan')."
        )
    classes = np.unique(values)
    label_type(classes)
    check_classification_targets(np.tile(classes, 4))  # each once would look like numbers to be predicted
    return classes


def _is_list(value: Any) -> bool:
    """Images one by one; nested lists of plain numbers are an array."""
    if isinstance(value, np.ndarray):
        return value.dtype == object and value.ndim == 1
    return isinstance(value, list | tuple) and (not value or any(hasattr(item, "shape") for item in value))


def _numbers(values: Any) -> npt.NDArray[Any]:
    try:
        array = np.asarray(values)
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
            f"be empty; got {_few([array.shape for array in arrays])}."
        )
    with np.errstate(over="ignore"):  # what does not fit is infinite then, and named as such
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


def _few(shapes: Sequence[tuple[int, ...]]) -> str:
    different = list(dict.fromkeys(shapes))
    return ", ".join(map(str, different[:4])) + (" …" if len(different) > 4 else "") + f" ({len(shapes)} in all)"
