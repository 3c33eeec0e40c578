"""What is known of the pixels of images, labels or numbers: validation, and the pixels that train."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets

from crisptree.estimators.image_validation import (
    Images,
    KnownPixels,
    allowed,
    check_labels,
    check_mask,
    few,
    is_list,
    one_for_each,
)
from crisptree.targets.classification import ClassEncoding
from crisptree.targets.encoding import TargetEncoding
from crisptree.targets.labels import label_type
from crisptree.targets.regression import RegressionEncoding, check_numbers
from crisptree.targets.weights import weigh_classes

Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


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
