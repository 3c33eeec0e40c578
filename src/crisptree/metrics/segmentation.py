"""Metrics of label, probability and leaf images; scikit-learn's on the pixels of all images where it has them.

All functions take arrays of any equal shape, or lists of such arrays; pixels of all images are pooled, except in
``adapted_rand_error``, which is averaged over images.

>>> import numpy as np
>>> truth = np.array([[0, 0, 1], [1, 1, 1]])
>>> found = np.array([[0, 1, 1], [1, 1, 0]])
>>> round(pixel_accuracy(truth, found), 3), round(f1(truth, found, positive=0), 3)
(0.667, 0.5)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, jaccard_score, recall_score, roc_auc_score
from sklearn.metrics.cluster import contingency_matrix

Images = npt.ArrayLike | Sequence[npt.ArrayLike]
Doubles = npt.NDArray[np.float64]

__all__ = [
    "adapted_rand_error",
    "confusion",
    "f1",
    "intersection_over_union",
    "neighbours_in_same_leaf",
    "pixel_accuracy",
    "recall",
    "roc_auc",
    "segments",
]


def confusion(truth: Images, found: Images, ignore_label: Any = None) -> tuple[npt.NDArray[Any], Doubles]:
    """Return the classes that occur, and the confusion matrix of the pixels."""
    classes, true, seen = _numbered(truth, found, ignore_label)
    n = len(classes)
    table = confusion_matrix(true, seen, labels=np.arange(max(2, n)))[:n, :n]  # scikit-learn warns for a single class
    return classes, table.astype(np.float64)


def pixel_accuracy(truth: Images, found: Images, ignore_label: Any = None) -> float:
    """Compute the share of correctly classified pixels."""
    _, true, seen = _numbered(truth, found, ignore_label)
    return float(accuracy_score(true, seen))


def recall(truth: Images, found: Images, positive: Any = 1, ignore_label: Any = None) -> float:
    """Compute the recall of a class."""
    true, seen = _labelled(truth, found, ignore_label)
    if not (true == positive).any():
        raise ValueError(f"`truth` must have pixels of class {positive!r} to compute its recall; it has none.")
    return float(recall_score(true == positive, seen == positive))


def f1(truth: Images, found: Images, positive: Any = 1, ignore_label: Any = None) -> float:
    """Compute the F1 score of a class; 1 where neither image has it."""
    true, seen = _labelled(truth, found, ignore_label)
    return float(f1_score(true == positive, seen == positive, zero_division=1.0))


def intersection_over_union(truth: Images, found: Images, ignore_label: Any = None) -> dict[Any, float]:
    """Compute the intersection over union (Jaccard score) of every class.

    Examples
    --------
    >>> intersection_over_union([0, 0, 1, 1], [0, 1, 1, 1])
    {0: 0.5, 1: 0.6666666666666666}
    """
    classes, true, seen = _numbered(truth, found, ignore_label)
    return dict(zip(classes.tolist(), jaccard_score(true, seen, average=None).tolist(), strict=True))


def roc_auc(truth: Images, score: Images, positive: Any = 1, ignore_label: Any = None) -> float:
    """Compute the area under the ROC curve of a class against all others.

    Parameters
    ----------
    truth : array-like or list
        Label images.
    score : array-like or list
        Score of the class.
    positive : scalar, default=1
        The class.
    ignore_label : scalar, default=None
        Pixels of this label are ignored.
    """
    true, scores = _labelled(truth, score, ignore_label)
    if not np.isfinite(scores).all():
        raise ValueError("scores must be finite; some are not.")
    if len(np.unique(true == positive)) < 2:
        raise ValueError(f"there must be pixels of class {positive!r} and of others; got only one of the two.")
    return float(roc_auc_score(true == positive, scores))


def segments(inside: npt.ArrayLike) -> npt.NDArray[np.int32]:
    """Label the connected components of a mask (4-neighbourhood) from 1; 0 is the background.

    Examples
    --------
    >>> segments(np.array([[1, 0, 1], [1, 0, 0]], dtype=bool))
    array([[1, 0, 2],
           [1, 0, 0]], dtype=int32)
    """
    return np.asarray(ndimage.label(np.asarray(inside, dtype=bool))[0], dtype=np.int32)


def adapted_rand_error(truth: Images, found: Images) -> float:
    """Compute 1 − the F-score of pairs of pixels in one segment, as in the ISBI 2012 challenge; mean over images.

    Precision is the share of pairs in one segment of ``found`` that are also in one of ``truth``, recall the reverse.
    Pixels that are 0 in ``truth`` are ignored; each pixel that is 0 in ``found`` is a segment of its own.

    Parameters
    ----------
    truth, found : array of shape (height, width), or several: an array (n, height, width) or a list
        Numbered segments, see ``segments``.

    Examples
    --------
    Two cells merged into one: recall is 1, precision 1/2.

    >>> adapted_rand_error([[1, 1, 2, 2]], [[1, 1, 1, 1]])
    0.33333333333333337
    """
    one, other = _as_images(truth), _as_images(found)
    if [image.shape for image in one] != [image.shape for image in other]:
        raise ValueError("both must have the same images, of the same shapes; they do not.")
    if not one:
        raise ValueError("there must be at least one image; got none.")
    return float(np.mean([_adapted_rand_error(*pair) for pair in zip(one, other, strict=True)]))


def _adapted_rand_error(true: npt.NDArray[Any], seen: npt.NDArray[Any]) -> float:
    counted = true != 0
    if not counted.any():
        raise ValueError("truth must have at least one segment in every image; got one of zeros.")
    counts = contingency_matrix(true[counted], seen[counted], sparse=True, dtype=np.float64)
    background = np.unique(seen[counted]) == 0  # its pixels are segments of one pixel each
    singles, segments_only = counts[:, background].sum(), counts[:, ~background]
    in_both = segments_only.power(2).sum() + singles
    in_found = np.square(segments_only.sum(axis=0)).sum() + singles
    in_truth = np.square(counts.sum(axis=1)).sum()
    return float(1 - 2 * in_both / (in_found + in_truth))


def neighbours_in_same_leaf(leaves: Images) -> float:
    """Compute the share of pairs of neighbouring pixels (4-neighbourhood) that reach the same leaf.

    Examples
    --------
    >>> neighbours_in_same_leaf(np.array([[1, 1], [1, 2]]))
    0.5
    """
    same = pairs = 0
    for image in _as_images(leaves):
        for axis in (0, 1):
            equal = np.diff(image, axis=axis) == 0
            same, pairs = same + int(np.count_nonzero(equal)), pairs + equal.size
    if not pairs:
        raise ValueError("images must have at least two pixels; none has.")
    return same / pairs


def _is_list(images: Any) -> bool:
    return isinstance(images, list | tuple) and any(hasattr(image, "shape") for image in images)


def _labelled(truth: Any, found: Any, ignore_label: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the pixels of all images as flat arrays, without ignored ones."""
    several = _is_list(truth) or _is_list(found)
    one, other = ([np.asarray(image) for image in (images if several else [images])] for images in (truth, found))
    shapes, others = ([image.shape for image in images] for images in (one, other))
    if shapes != others:
        raise ValueError(f"both must have the same shapes; got {shapes[:4]} and {others[:4]}.")
    true, seen = (np.concatenate([image.reshape(-1) for image in images]) for images in (one, other))
    if ignore_label is not None:
        if isinstance(ignore_label, float | np.floating) and np.isnan(ignore_label):  # which differs from itself
            counts = ~np.isnan(true) if true.dtype.kind == "f" else np.ones(len(true), dtype=bool)
        else:
            counts = true != ignore_label
        true, seen = true[counts], seen[counts]
    if not len(true):
        raise ValueError("there must be at least one labelled pixel to count; got none.")
    return true, seen


def _numbered(
    truth: Any, found: Any, ignore_label: Any
) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the classes that occur, and the class indices of the pixels."""
    true, seen = _labelled(truth, found, ignore_label)
    classes, numbers = np.unique(np.concatenate([true, seen]), return_inverse=True)
    return classes, numbers[: len(true)], numbers[len(true) :]


def _as_images(images: Any) -> list[npt.NDArray[Any]]:
    arrays = [np.asarray(image) for image in images] if _is_list(images) else [np.asarray(images)]
    several = [image for array in arrays for image in (array if array.ndim == 3 else [array])]
    if any(image.ndim != 2 for image in several):
        raise ValueError("images must be (height, width), (n, height, width), or a list of images.")
    return several
