"""Images, masks and the labels or numbers of pixels: validation, and the pixels that train."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets

from crisptree import limits
from crisptree.data.images import Canvas, WindowView, normalise_image
from crisptree.inference import CrispTree, route_rows
from crisptree.targets import Target
from crisptree.targets.base import TargetEncoding
from crisptree.targets.classification import ClassEncoding
from crisptree.targets.labels import label_type, weigh_classes
from crisptree.targets.regression import RegressionEncoding, check_numbers
from crisptree.tensors import detach

Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
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


@dataclass(frozen=True, eq=False)
class PixelTargets(ABC):
    """How the values of pixels are read.

    Parameters
    ----------
    ignore : object
        The value of pixels of which nothing is known, beside those that are always left out.
    class_weight : dict, "balanced" or None
        Factors on the weights of classes.
    """

    ignore: Any
    class_weight: Any = None

    NOUN: ClassVar[str]
    """What ``fit`` calls the values."""
    KNOWN: ClassVar[str]
    """What errors call a pixel that has a value."""

    @abstractmethod
    def n_axes(self, images: Any, values: Any) -> int:
        """How many axes values have, without that of outputs: 2 where there is one image alone."""

    @abstractmethod
    def read_images(self, given: Images, values: Any, what: str) -> list[npt.NDArray[Any]]:
        """Check one image of values per image, of its height and width."""

    @abstractmethod
    def is_known(self, image: npt.NDArray[Any]) -> Flags:
        """Which pixels have a value.  → (height, width)"""

    @abstractmethod
    def learn(self, values: npt.NDArray[Any]) -> tuple[TargetEncoding, npt.NDArray[Any], Doubles]:
        """Learn the encoding of values, encode them and weigh them."""

    def check_values(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Check the values of known pixels, one after the other."""
        return values

    def read(self, given: Images, values: Any, what: str | None = None) -> tuple[list[Flags], npt.NDArray[Any]]:
        """Which pixels are known, and their values one after the other, for a score."""
        images = self.read_images(given, values, what or self.NOUN)
        used = [self.is_known(image) for image in images]
        known = self.check_values(_concatenate(images, used))
        if not len(known):
            raise ValueError(f"there must be at least one {self.KNOWN} to score on; got none.")
        return used, known

    def read_training(self, given: Images, values: Any, mask: Any) -> KnownPixels:
        """The pixels of a fit. Those of weight zero are left out before anything is learned."""
        images = self.read_images(given, values, self.NOUN)
        used = allowed([self.is_known(image) for image in images], check_mask(given, mask))
        known = self.check_values(_concatenate(images, used))
        if not len(known):
            raise ValueError(
                f"there must be at least one {self.KNOWN}; got none after leaving out {self.ignore!r} and the mask."
            )
        encoding, y, weight = self.learn(known)
        pixels = KnownPixels(used, y, weight, encoding)
        return pixels if weight.all() else pixels.only(weight > 0)

    def read_validation(self, given: Images, values: Any, encoding: TargetEncoding) -> KnownPixels:
        """Pixels of validation images, their values encoded as those of training."""
        used, known = self.read(given, values, f"validation {self.NOUN}")
        y = encoding.encode_validation(known, f"validation {self.NOUN}")
        return KnownPixels(used, y, np.ones(len(y)), encoding)


class PixelLabels(PixelTargets):
    """A class for every pixel."""

    NOUN, KNOWN = "labels", "labelled pixel"

    def n_axes(self, images: Any, values: Any) -> int:
        if values is None:
            raise ValueError("`labels` must hold the class of every pixel; got None.")
        return 3 if is_list(values) else np.ndim(values)

    def read_images(self, given: Images, values: Any, what: str) -> list[npt.NDArray[Any]]:
        return check_labels(given, values, what)

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


class PixelNumbers(PixelTargets):
    """A number for every pixel, or several; NaN where there is none."""

    NOUN, KNOWN = "targets", "pixel with a number"

    def n_axes(self, images: Any, values: Any) -> int:
        """Where images are (a, b, c), targets (a, b) or (a, b, k) belong to one image of c channels, and targets
        (a, b, c) or (a, b, c, k) to several images without channels.
        """
        if values is None:
            raise ValueError("`targets` must hold a number for every pixel; got None.")
        if is_list(images) or is_list(values):
            return 3
        shape, found = _shape(images), _shape(values)
        is_alone = len(found) == 3 and len(shape) == 3 and found[:2] == shape[:2] and found != shape
        return 2 if len(found) == 2 or is_alone else 3

    def read_images(self, given: Images, values: Any, what: str) -> list[npt.NDArray[Any]]:
        arrays = one_for_each(given, values)
        expected, found = [image.shape[:2] for image in given.images], [array.shape for array in arrays]
        outputs = {shape[2:] for shape in found}
        fits = [shape[:2] for shape in found] == expected and len(outputs) == 1
        if not fits or len(found[0]) > 3 or 0 in found[0]:
            raise ValueError(
                f"{what} must have a number for every pixel, or as many for each, as images of shape {few(expected)} "
                f"or (height, width, outputs); got {few(found)}. One image with channels and its {what} of as many "
                "outputs must come as lists, [image] and [target]."
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
        return check_numbers(values, "targets") if len(values) else values


def _shape(values: Any) -> tuple[int, ...]:
    try:
        return np.shape(values)
    except ValueError:  # lists of unequal lengths, which are refused where they are read
        return ()


def _concatenate(images: Sequence[npt.NDArray[Any]], used: Sequence[Flags]) -> npt.NDArray[Any]:
    """The values of some pixels, image after image."""
    return np.concatenate([image[use] for image, use in zip(images, used, strict=True)])


def leaf_greys(tree: CrispTree) -> npt.NDArray[np.float64]:
    """A grey in [0, 1] for every leaf: from left to right they are equally far apart.  (n_leaves,)"""
    order = tree.structure.leaves_left_to_right
    return np.argsort(order) / max(len(order) - 1, 1)


def leaf_numbers(
    tree: CrispTree, image: Image, window: int, scales: tuple[int, ...], n_jobs: int | None
) -> npt.NDArray[np.int64]:
    """The leaf that every pixel reaches.  (height, width, channels) → (height, width)"""
    windows = Canvas.of([image], WindowView(window, scales, image.shape[2])).windows()
    return route_rows(tree, windows, n_jobs).reshape(image.shape[:2])


def opinion(tree: CrispTree, leaves: npt.NDArray[np.int64]) -> Image:
    """What the tree says of every pixel as channels: probabilities of all classes but the first, or scaled numbers."""
    return tree.target.independent_outputs(tree.leaves).astype(np.float32)[leaves]


def n_told(trees: Sequence[CrispTree]) -> int:
    """How many channels an opinion of the trees has; none where there is no tree."""
    return trees[-1].target.independent_outputs(trees[-1].leaves).shape[1] if trees else 0


def beside(image: Image, said: Image) -> Image:
    """The image with what the stage before says of it as further channels."""
    return np.concatenate([image, said], axis=2)


def seen_by_last(
    trees: Sequence[CrispTree], image: Image, window: int, scales: tuple[int, ...], n_jobs: int | None
) -> Image:
    """What the last of the trees looks at: the image, and beside it the opinion of the tree before."""
    seen = image
    for tree in trees[:-1]:
        seen = beside(image, opinion(tree, leaf_numbers(tree, seen, window, scales, n_jobs)))
    return seen
