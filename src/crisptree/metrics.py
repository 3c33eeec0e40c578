"""Metrics that scikit-learn lacks: of class probabilities and of label images.

scikit-learn's ``log_loss`` clips probabilities of 0 instead of returning infinity, its ``brier_score_loss`` takes more
than two classes from 1.7 on only, and it has no calibration error. ``log_loss``, ``brier_score`` and
``calibration_error`` take the true classes (n,) and the probabilities (n, n_classes) of the columns ``classes``,
without which the true classes are column indices.

The others take label or leaf images: arrays of any equal shape, or lists of such arrays. ``flatten_pixels`` makes the
arguments of scikit-learn's metrics of them; ``adapted_rand_error`` is averaged over images.

>>> import numpy as np
>>> from crisptree import metrics
>>> y_true, y_proba = np.array([0, 1]), np.array([[0.8, 0.2], [0.4, 0.6]])
>>> round(metrics.log_loss(y_true, y_proba), 3), round(metrics.brier_score(y_true, y_proba), 3)
(0.367, 0.2)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics.cluster import contingency_matrix

Images = npt.ArrayLike | Sequence[npt.ArrayLike]
Doubles = npt.NDArray[np.float64]

__all__ = [
    "adapted_rand_error",
    "brier_score",
    "calibration_error",
    "flatten_pixels",
    "log_loss",
    "neighbours_in_same_leaf",
]


def log_loss(y_true: npt.ArrayLike, y_proba: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> float:
    """Compute the mean of −log p(y∣x) in nats; infinite where a true class has probability 0.

    Examples
    --------
    >>> log_loss([0, 1], [[0.5, 0.5], [0.5, 0.5]]), log_loss([0], [[0.0, 1.0]])
    (0.6931471805599453, inf)
    """
    numbers, table = _validate(y_true, y_proba, classes)
    with np.errstate(divide="ignore"):
        return float(0 - np.log(table[np.arange(len(numbers)), numbers]).mean())  # 0 and not −0


def brier_score(y_true: npt.ArrayLike, y_proba: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> float:
    """Compute the mean of Σ_k (p(k∣x) − 1(y = k))², from 0 to 2.

    For two classes it is twice scikit-learn's ``brier_score_loss``.

    Examples
    --------
    >>> brier_score(["no", "yes"], [[1.0, 0.0], [0.5, 0.5]], classes=["no", "yes"])
    0.25
    """
    numbers, table = _validate(y_true, y_proba, classes)
    return float(((table - np.eye(table.shape[1])[numbers]) ** 2).sum(axis=1).mean())


def calibration_error(
    y_true: npt.ArrayLike, y_proba: npt.ArrayLike, classes: npt.ArrayLike | None = None, *, bins: int = 15
) -> float:
    """Compute the expected calibration error over at most ``bins`` quantile bins of the confidence.

    The confidence of a row is its largest probability. Rows of equal confidence, of which trees have many, stay in one
    bin, so that their order does not matter.

    Examples
    --------
    Three of four rows are correct at a confidence of 0.9:

    >>> round(calibration_error([0, 0, 0, 1], [[0.9, 0.1]] * 4), 3)
    0.15
    """
    numbers, table = _validate(y_true, y_proba, classes)
    confidence, right = table.max(axis=1), table.argmax(axis=1) == numbers
    edges = np.quantile(confidence, np.arange(1, bins) / bins, method="inverted_cdf")
    bin_of = np.searchsorted(np.unique(edges), confidence)
    return float(np.abs(np.bincount(bin_of, right - confidence)).sum() / len(numbers))


def _validate(y_true: Any, y_proba: Any, classes: Any) -> tuple[npt.NDArray[np.intp], Doubles]:
    """Return the column index of the true class of every row, and the probabilities."""
    labels, table = np.asarray(y_true), np.asarray(y_proba, dtype=np.float64)
    if table.ndim != 2 or labels.shape != table.shape[:1] or not len(labels):
        raise ValueError(
            "there must be a row of probabilities for each of at least one true class; got shapes "
            f"{labels.shape} and {table.shape}."
        )
    if not np.isfinite(table).all() or (table < 0).any() or not np.allclose(table.sum(axis=1), 1, atol=1e-4):
        raise ValueError("probabilities must be finite, at least 0, and add up to 1 in every row; they do not.")
    columns = np.arange(table.shape[1]) if classes is None else np.asarray(classes)
    if len(columns) != table.shape[1]:
        raise ValueError(f"`classes` must name the {table.shape[1]} columns of probabilities; got {len(columns)}.")
    hits = labels[:, None] == columns[None, :]
    if not hits.any(axis=1).all():
        unknown = labels[~hits.any(axis=1)][:3].tolist()
        raise ValueError(f"the true classes must be among {columns.tolist()}; got {unknown} too. Leave those rows out.")
    return hits.argmax(axis=1), table


def flatten_pixels(
    y_true: Images, y_pred: Images, ignore_label: Any = None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Flatten labels and predictions of all images to the arguments of scikit-learn's metrics, without ignored pixels.

    Examples
    --------
    >>> from sklearn.metrics import f1_score
    >>> y_true, y_pred = np.array([[0, 0, 1], [1, 1, 9]]), np.array([[0, 1, 1], [1, 1, 0]])
    >>> round(f1_score(*flatten_pixels(y_true, y_pred, ignore_label=9), pos_label=0), 3)
    0.667
    """
    several = _is_list(y_true) or _is_list(y_pred)
    pair: tuple[Any, Any] = (y_true, y_pred)
    one, other = ([np.asarray(image) for image in (images if several else [images])] for images in pair)
    shapes, others = ([image.shape for image in images] for images in (one, other))
    if shapes != others:
        raise ValueError(f"both must have the same shapes; got {shapes[:4]} and {others[:4]}.")
    true, predicted = (np.concatenate([image.reshape(-1) for image in images]) for images in (one, other))
    if ignore_label is not None:
        is_nan = isinstance(ignore_label, float | np.floating) and np.isnan(ignore_label)  # which differs from itself
        kept = true == true if is_nan else true != ignore_label
        true, predicted = true[kept], predicted[kept]
    if not len(true):
        raise ValueError("there must be at least one labelled pixel to count; got none.")
    return true, predicted


def adapted_rand_error(y_true: Images, y_pred: Images) -> float:
    """Compute 1 − the F-score of pairs of pixels in one segment, as in the ISBI 2012 challenge; mean over images.

    Precision is the share of pairs in one segment of ``y_pred`` that are also in one of ``y_true``, recall the reverse.
    Pixels that are 0 in ``y_true`` are ignored; each pixel that is 0 in ``y_pred`` is a segment of its own. Both are
    images of numbered segments, as ``scipy.ndimage.label`` makes them: one, an array (n, height, width), or a list.

    Examples
    --------
    Two cells merged into one: recall is 1, precision 1/2.

    >>> adapted_rand_error([[1, 1, 2, 2]], [[1, 1, 1, 1]])
    0.33333333333333337
    """
    one, other = _as_images(y_true), _as_images(y_pred)
    if [image.shape for image in one] != [image.shape for image in other]:
        raise ValueError("both must have the same images, of the same shapes; they do not.")
    if not one:
        raise ValueError("there must be at least one image; got none.")
    return float(np.mean([_adapted_rand_error(*pair) for pair in zip(one, other, strict=True)]))


def _adapted_rand_error(true: npt.NDArray[Any], seen: npt.NDArray[Any]) -> float:
    counted = true != 0
    if not counted.any():
        raise ValueError("y_true must have at least one segment in every image; got one of zeros.")
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


def _as_images(images: Any) -> list[npt.NDArray[Any]]:
    arrays = [np.asarray(image) for image in images] if _is_list(images) else [np.asarray(images)]
    several = [image for array in arrays for image in (array if array.ndim == 3 else [array])]
    if any(image.ndim != 2 for image in several):
        raise ValueError("images must be (height, width), (n, height, width), or a list of images.")
    return several
