"""Validation of images, masks and targets of pixels, and routing of pixels through stages of trees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets

from crisptree.data.raw_rows import Canvas, WindowView, normalise_image
from crisptree.inference import CrispTree, route_rows
from crisptree.targets import Target
from crisptree.targets.base import TargetEncoding, detach, label_type, weigh_classes
from crisptree.targets.classification import ClassEncoding
from crisptree.targets.regression import RegressionEncoding, check_regression_target

Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Image = npt.NDArray[np.float32]

MAX_REACH = 2**14

FORMS = "(height, width[, channels]), an array (n, height, width[, channels]), or a list of images"


@dataclass(frozen=True, eq=False)
class Images:
    """Validated images, each (height, width, channels), and the form of the input: "list", "stack" or "single".

    ``channels`` is None if the input had no axis of channels.
    """

    images: list[Image]
    form: str
    channels: int | None

    def normalised(self) -> Images:
        """Standardise every image by its own mean and standard deviation."""
        return replace(self, images=[normalise_image(image) for image in self.images])

    def restore_form(self, results: Sequence[npt.NDArray[Any]]) -> Any:
        """Return one result per image in the form of the input."""
        if self.form == "list":
            return list(results)
        return results[0] if self.form == "single" else np.stack(results)


@dataclass(frozen=True, eq=False)
class LabelledPixels:
    """Pixels that have a target: a mask for every image, encoded y and weights."""

    used: list[npt.NDArray[np.bool_]]
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]
    encoding: TargetEncoding

    @property
    def target(self) -> Target:
        """The target of y."""
        return self.encoding.target_of(self.y)

    def only(self, keep: npt.NDArray[np.bool_]) -> LabelledPixels:
        """Select pixels by a mask over them."""
        used = [use.copy() for use in self.used]
        ends = np.cumsum([np.count_nonzero(use) for use in used])
        for use, kept in zip(used, np.split(keep, ends[:-1]), strict=True):
            use[use] = kept
        return replace(self, used=used, y=self.y[keep], weight=self.weight[keep])


def check_new_images(images: Any, n_axes: int) -> Images:
    """Validate the images of a fit; ``n_axes`` of the labels decides what the axes (a, b, c) of images mean."""
    if is_list(images):
        return _validate(list(images), "list")
    array = _as_array(images)
    if array.ndim not in (2, 3, 4):
        raise ValueError(f"images must be an image {FORMS}; got an array of shape {array.shape}.")
    if array.ndim == 2 or (array.ndim == 3 and n_axes == 2):
        return _validate([array], "single")
    return _validate(list(array), "stack")


def check_images(images: Any, channels: int | None) -> Images:
    """Validate images for prediction, with the channels of training."""
    if is_list(images):
        checked = _validate(list(images), "list")
    else:
        array = _as_array(images)
        axes = 2 if channels is None else 3
        if array.ndim not in (axes, axes + 1):
            raise _other_channels(channels, f"an array of shape {array.shape}")
        checked = _validate([array], "single") if array.ndim == axes else _validate(list(array), "stack")
    if checked.channels != channels:
        raise _other_channels(channels, "no axis for channels" if checked.channels is None else checked.channels)
    return checked


def check_window_reach(window: int, scales: Sequence[int]) -> None:
    """Limit window × scale, the pixels over which coarse images are smoothed."""
    reach = int(window) * int(max(scales))
    if reach > MAX_REACH:
        raise ValueError(f"window × scale must be at most {MAX_REACH:,} pixels; got {reach:,}.")


def check_reach(images: Images, view: WindowView) -> None:
    """Check that the margin of a window is smaller than every image, which is mirrored at its borders."""
    check_window_reach(view.window, view.scales)
    for image in images.images:
        if min(image.shape[:2]) <= view.margin:
            raise ValueError(
                f"images must have more than {view.margin} pixels on each side for window={view.window} with scales="
                f"{view.scales}, because they are mirrored at their borders; got an image of {image.shape[0]} × "
                f"{image.shape[1]}. Take a smaller window."
            )


def check_labels(images: Images, labels: Any, what: str = "labels") -> list[npt.NDArray[Any]]:
    """Validate one label image per image, of its height and width."""
    arrays = list_targets(images, labels)
    expected = [image.shape[:2] for image in images.images]
    shapes = [image.shape for image in arrays]
    if shapes != expected:
        raise ValueError(
            f"{what} must have one value for every pixel, as images of shape {list_shapes(expected)}; got "
            f"{list_shapes(shapes)}.{_hint(images, shapes)}"
        )
    return arrays


def list_targets(images: Images, values: Any) -> list[npt.NDArray[Any]]:
    """Convert targets in the form of the images to a list of arrays."""
    if images.form == "single":
        return [np.asarray(detach(values))]
    return [np.asarray(detach(image)) for image in values] if is_list(values) or np.ndim(values) > 0 else []


def _hint(images: Images, shapes: list[tuple[int, ...]]) -> str:
    """Suggest a correction for labels of other shapes than the images."""
    if any(len(shape) > 2 for shape in shapes):
        return " Leave the channels out: a pixel has one label."
    if images.form == "single" and images.images[0].shape[1:] in shapes:
        return (
            " Channels come last, (height, width, channels); several images (n, height, width) have labels of that "
            "same shape."
        )
    return ""


def apply_mask(images: Images, used: list[Flags], mask: Any) -> list[Flags]:
    """Combine the pixels that have a target with the user's mask; None uses all of them."""
    if mask is None:
        return used
    arrays = check_labels(images, mask, "mask")
    for array in arrays:
        if array.dtype != bool and not np.isin(array, (0, 1)).all():
            raise ValueError(f"mask must be True where a pixel is to be used, or 0 and 1; got {array.dtype} values.")
    return [use & array.astype(bool) for use, array in zip(used, arrays, strict=True)]


def is_list(value: Any) -> bool:
    """Return True for a list of images; nested lists of numbers are an array."""
    if isinstance(value, np.ndarray):
        return value.dtype == object and value.ndim == 1
    return isinstance(value, list | tuple) and (not value or any(hasattr(item, "shape") for item in value))


def _as_array(values: Any) -> npt.NDArray[Any]:
    try:
        array = np.asarray(detach(values))
    except ValueError as error:  # lists of unequal lengths
        raise ValueError(
            f"images must be an image {FORMS}; got nested lists that are no array. Make an array of every image."
        ) from error
    if array.dtype.kind not in "buif":
        raise ValueError(f"images must hold numbers; got values of type {array.dtype}.")
    return array


def _validate(images: list[Any], form: str) -> Images:
    if not images:
        raise ValueError("there must be at least one image; got none.")
    arrays = [_as_array(image) for image in images]
    axes = {array.ndim for array in arrays}
    channels = {array.shape[2] for array in arrays if array.ndim == 3}
    if not axes <= {2, 3} or len(axes) != 1 or len(channels) > 1 or min(min(array.shape) for array in arrays) == 0:
        raise ValueError(
            "images must all be (height, width), or all be (height, width, channels) with as many channels, and not "
            f"be empty; got {list_shapes([array.shape for array in arrays])}."
        )
    with np.errstate(over="ignore", under="ignore"):  # what does not fit is infinite then, and named as such
        floats = [np.ascontiguousarray(array, dtype=np.float32).reshape(*array.shape[:2], -1) for array in arrays]
    if not all(np.isfinite(image).all() for image in floats):
        raise ValueError(
            "images must hold finite numbers that float32 can hold; some are infinite or not a number. Replace them "
            "first."
        )
    return Images(floats, form, channels.pop() if channels else None)


def _other_channels(channels: int | None, got: Any) -> ValueError:
    expected = "no axis for channels" if channels is None else f"{channels} channels, as (height, width, {channels})"
    return ValueError(f"images must have {expected}, as in training; got {got}. Give the channels that fit was given.")


def list_shapes(shapes: Sequence[tuple[int, ...]]) -> str:
    """List the first distinct shapes for an error message."""
    distinct = list(dict.fromkeys(shapes))
    return ", ".join(map(str, distinct[:4])) + (" …" if len(distinct) > 4 else "") + f" ({len(shapes)} in all)"


@dataclass(frozen=True, eq=False)
class PixelTargets(ABC):
    """Reader of the targets of pixels: pixels of the value ``ignore`` have none; ``class_weight`` weighs classes."""

    ignore: Any
    class_weight: Any = None

    NOUN: ClassVar[str]
    """Name of the argument of ``fit``."""
    KNOWN: ClassVar[str]
    """Name of a pixel that has a target, in errors."""

    @abstractmethod
    def n_axes(self, images: Any, values: Any) -> int:
        """Return the number of axes of the targets without that of outputs: 2 for a single image."""

    @abstractmethod
    def read_images(self, images: Images, values: Any, what: str) -> list[npt.NDArray[Any]]:
        """Validate one array of targets per image, of its height and width."""

    @abstractmethod
    def is_known(self, image: npt.NDArray[Any]) -> Flags:
        """Return the mask of the pixels that have a target.  → (height, width)"""

    @abstractmethod
    def learn(self, values: npt.NDArray[Any]) -> tuple[TargetEncoding, npt.NDArray[Any], Doubles]:
        """Learn the encoding of targets; return it with encoded targets and weights."""

    def check_values(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Validate the targets of all pixels that have one."""
        return values

    def read(
        self, images: Images, values: Any, what: str | None = None, mask: Any = None
    ) -> tuple[list[Flags], npt.NDArray[Any]]:
        """Read the masks of the pixels that have a target, and these targets."""
        arrays = self.read_images(images, values, what or self.NOUN)
        used = apply_mask(images, [self.is_known(array) for array in arrays], mask)
        return used, self.check_values(np.concatenate([array[use] for array, use in zip(arrays, used, strict=True)]))

    def read_training(self, images: Images, values: Any, mask: Any) -> LabelledPixels:
        """Read the pixels of a fit. Those of weight zero are left out before anything is learned."""
        used, targets = self.read(images, values, mask=mask)
        if not len(targets):
            raise ValueError(
                f"there must be at least one {self.KNOWN}; got none after leaving out {self.ignore!r} and the mask."
            )
        encoding, y, weight = self.learn(targets)
        pixels = LabelledPixels(used, y, weight, encoding)
        return pixels if weight.all() else pixels.only(weight > 0)

    def read_scored(self, images: Images, values: Any, what: str | None = None) -> tuple[list[Flags], npt.NDArray[Any]]:
        """Read the pixels of a score, at least one."""
        used, targets = self.read(images, values, what)
        if not len(targets):
            raise ValueError(f"there must be at least one {self.KNOWN} to score on; got none.")
        return used, targets

    def read_validation(self, images: Images, values: Any, encoding: TargetEncoding) -> LabelledPixels:
        """Read the pixels of validation images, encoded as those of training."""
        used, targets = self.read_scored(images, values, f"validation {self.NOUN}")
        y = encoding.encode_validation(targets, f"validation {self.NOUN}")
        return LabelledPixels(used, y, np.ones(len(y)), encoding)


class PixelLabels(PixelTargets):
    """A class for every pixel."""

    NOUN, KNOWN = "labels", "labelled pixel"

    def n_axes(self, images: Any, values: Any) -> int:
        if values is None:
            raise ValueError("`labels` must hold the class of every pixel; got None.")
        return 3 if is_list(values) else np.ndim(values)

    def read_images(self, images: Images, values: Any, what: str) -> list[npt.NDArray[Any]]:
        return check_labels(images, values, what)

    def is_known(self, image: npt.NDArray[Any]) -> Flags:
        if self.ignore is None:
            return np.ones(image.shape, dtype=bool)
        if isinstance(self.ignore, float | np.floating) and np.isnan(self.ignore):  # which differs from itself
            return ~np.isnan(image) if image.dtype.kind == "f" else np.ones(image.shape, dtype=bool)
        return np.asarray(image != self.ignore)

    def learn(self, values: npt.NDArray[Any]) -> tuple[TargetEncoding, npt.NDArray[Any], Doubles]:
        classes, numbers = np.unique(values, return_inverse=True)
        label_type(classes)
        try:
            check_classification_targets(np.tile(classes, 4))  # each once would look like regression targets
        except ValueError as error:
            raise ValueError(f"labels must be classes; for numbers use CrispPixelRegressor. ({error})") from None
        if len(classes) < 2:
            raise ValueError(
                f"the labelled pixels must be of at least two classes; all of them are {classes.tolist()[0]!r}. "
                "Label some of another class, or look at ignore_label."
            )
        weight = weigh_classes(self.class_weight, values, np.ones(len(values)))
        has_weight = np.bincount(numbers, weight) > 0
        if has_weight.sum() < 2:
            raise ValueError("`class_weight` must leave at least two classes with a positive weight; got fewer.")
        return ClassEncoding(classes[has_weight]), (np.cumsum(has_weight) - 1)[numbers], weight

    def check_values(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError(
                "labels must be finite; some are not. If that marks pixels without a label, set "
                "ignore_label=float('nan')."
            )
        return values


class PixelValues(PixelTargets):
    """One or several regression targets for every pixel; NaN where there is none."""

    NOUN, KNOWN = "targets", "pixel with a number"

    def n_axes(self, images: Any, values: Any) -> int:
        """Tell one image of c channels with targets (a, b) or (a, b, k) from images with (a, b, c) or (a, b, c, k)."""
        if values is None:
            raise ValueError("`targets` must hold a number for every pixel; got None.")
        if is_list(images) or is_list(values):
            return 3
        image, target = _shape(images), _shape(values)
        is_single = len(target) == 3 and len(image) == 3 and target[:2] == image[:2] and target != image
        return 2 if len(target) == 2 or is_single else 3

    def read_images(self, images: Images, values: Any, what: str) -> list[npt.NDArray[Any]]:
        arrays = list_targets(images, values)
        expected, shapes = [image.shape[:2] for image in images.images], [array.shape for array in arrays]
        outputs = {shape[2:] for shape in shapes}
        fits = [shape[:2] for shape in shapes] == expected and len(outputs) == 1
        if not fits or len(shapes[0]) > 3 or 0 in shapes[0]:
            raise ValueError(
                f"{what} must have a number for every pixel, or as many for each, as images of shape "
                f"{list_shapes(expected)} or (height, width, outputs); got {list_shapes(shapes)}. One image with "
                f"channels and its {what} of as many outputs must come as lists, [image] and [target]."
            )
        for array in arrays:
            if array.dtype.kind not in "buif":
                raise ValueError(
                    f"{what} must hold numbers; got values of type {array.dtype}. For classes use CrispSegmenter."
                )
        return [np.asarray(array, dtype=np.float64).reshape(*array.shape[:2], -1) for array in arrays]

    def is_known(self, image: npt.NDArray[Any]) -> Flags:
        missing = np.isnan(image)
        if self.ignore is not None:
            missing |= image == self.ignore
        return np.asarray(~missing.any(axis=2))

    def learn(self, values: npt.NDArray[Any]) -> tuple[TargetEncoding, npt.NDArray[Any], Doubles]:
        weight = np.ones(len(values))
        encoding = RegressionEncoding.of_rows(values, weight)
        return encoding, encoding.scale(values), weight

    def check_values(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        if not np.isfinite(values).all():
            raise ValueError(
                "targets must be finite, or NaN where a pixel has no number; some are infinite. Replace them first."
            )
        return check_regression_target(values, "targets") if len(values) else values


def _shape(values: Any) -> tuple[int, ...]:
    try:
        return np.shape(values)
    except ValueError:  # lists of unequal lengths, which are refused where they are read
        return ()


def leaf_greys(tree: CrispTree) -> npt.NDArray[np.float64]:
    """Return equidistant grey values in [0, 1] for the leaves from left to right.  (n_leaves,)"""
    order = tree.structure.leaves_left_to_right
    return np.argsort(order) / max(len(order) - 1, 1)


def route_pixels(
    tree: CrispTree, image: Image, window: int, scales: tuple[int, ...], n_jobs: int | None
) -> npt.NDArray[np.int64]:
    """Return the leaf index of every pixel.  (height, width, channels) → (height, width)"""
    windows = Canvas.of([image], WindowView(window, scales, image.shape[2])).windows()
    return route_rows(tree, windows, n_jobs).reshape(image.shape[:2])


def n_output_channels(trees: Sequence[CrispTree]) -> int:
    """Return the number of channels that the last of the trees adds to the images of the next stage."""
    return trees[-1].target.independent_outputs(trees[-1].leaves).shape[1] if trees else 0


def append_outputs(
    tree: CrispTree, image: Image, seen: Image, window: int, scales: tuple[int, ...], n_jobs: int | None
) -> Image:
    """Append the predictions of a stage, which has ``seen`` its input, as channels to the image.

    They are the probabilities of all classes but the first, or scaled means.
    """
    outputs = tree.target.independent_outputs(tree.leaves).astype(np.float32)
    return np.concatenate([image, outputs[route_pixels(tree, seen, window, scales, n_jobs)]], axis=2)


def last_stage_input(
    trees: Sequence[CrispTree], image: Image, window: int, scales: tuple[int, ...], n_jobs: int | None
) -> Image:
    """Return the input of the last stage: the image and the predictions of the stage before."""
    seen = image
    for tree in trees[:-1]:
        seen = append_outputs(tree, image, seen, window, scales, n_jobs)
    return seen
