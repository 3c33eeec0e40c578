"""Label images are checked here once, with errors that help: a class for every pixel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets

from crisptree.estimators.image_validation import (
    Images,
    KnownPixels,
    allowed,
    check_labels,
    check_mask,
    is_list,
)
from crisptree.estimators.weights import weigh_classes
from crisptree.labels import label_type


def label_axes(labels: Any) -> int:
    """How many axes label images have: 2 where there is one alone."""
    if labels is None:
        raise ValueError("`labels` must hold the class of every pixel; got None.")
    return 3 if is_list(labels) else np.ndim(labels)


def check_labelled(given: Images, labels: Any, mask: Any, ignore_label: Any, class_weight: Any) -> KnownPixels:
    """The labelled pixels of a fit."""
    images = check_labels(given, labels)
    used = allowed([is_labelled(image, ignore_label) for image in images], check_mask(given, mask))
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
    weight = weigh_classes(class_weight, values, np.ones(len(values)))
    everything = KnownPixels(used, np.searchsorted(classes, values), weight, classes)
    return everything if weight.all() else _without_classes(everything, classes)


def _without_classes(labelled: KnownPixels, classes: npt.NDArray[Any]) -> KnownPixels:
    """Pixels whose class has weight zero are left out before anything is learned, and so is the class."""
    rest = labelled.only(labelled.weight > 0)
    numbers, y = np.unique(rest.y, return_inverse=True)
    if len(numbers) < 2:
        raise ValueError("`class_weight` must leave at least two classes with a positive weight; got fewer.")
    return replace(rest, y=y.astype(np.int64), classes=classes[numbers])


def check_held(given: Images, labels: Any, ignore_label: Any, classes: npt.NDArray[Any]) -> KnownPixels:
    """KnownPixels pixels to be scored on, all of known classes."""
    images = check_labels(given, labels)
    used = [is_labelled(image, ignore_label) for image in images]
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
    return KnownPixels(used, np.searchsorted(classes, values), np.ones(len(values)), classes)


def labelled_pixels(
    given: Images, labels: Any, ignore_label: Any
) -> tuple[list[npt.NDArray[Any]], list[npt.NDArray[np.bool_]]]:
    """Label images and which of their pixels count, for a score."""
    images = check_labels(given, labels)
    return images, [is_labelled(image, ignore_label) for image in images]


def is_labelled(image: npt.NDArray[Any], ignore_label: Any) -> npt.NDArray[np.bool_]:
    """Which pixels have a label."""
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
    try:
        check_classification_targets(np.tile(classes, 4))  # each once would look like numbers to be predicted
    except ValueError as error:
        raise ValueError(f"labels must be classes; for numbers use CrispPixelRegressor. ({error})") from None
    return classes
