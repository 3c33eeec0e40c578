"""Scores of class probabilities, where scikit-learn's differ.

scikit-learn's ``log_loss`` clips probabilities of 0 instead of returning infinity, its ``brier_score_loss`` takes more
than two classes from 1.7 on only, and it has no calibration error. All functions take the true classes (n,) and the
probabilities (n, n_classes) of the columns ``classes``, without which the true classes are column indices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


def log_loss(truth: npt.ArrayLike, probabilities: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> float:
    """Compute the mean of −log p(y∣x) in nats; infinite where a true class has probability 0.

    Examples
    --------
    >>> log_loss([0, 1], [[0.5, 0.5], [0.5, 0.5]]), log_loss([0], [[0.0, 1.0]])
    (0.6931471805599453, inf)
    """
    numbers, table = _validate(truth, probabilities, classes)
    with np.errstate(divide="ignore"):
        return float(0 - np.log(table[np.arange(len(numbers)), numbers]).mean())  # 0 and not −0


def brier_score(truth: npt.ArrayLike, probabilities: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> float:
    """Compute the mean of Σ_k (p(k∣x) − 1(y = k))², from 0 to 2.

    For two classes it is twice scikit-learn's ``brier_score_loss``.

    Examples
    --------
    >>> brier_score(["no", "yes"], [[1.0, 0.0], [0.5, 0.5]], classes=["no", "yes"])
    0.25
    """
    numbers, table = _validate(truth, probabilities, classes)
    return float(((table - np.eye(table.shape[1])[numbers]) ** 2).sum(axis=1).mean())


def calibration_error(
    truth: npt.ArrayLike, probabilities: npt.ArrayLike, classes: npt.ArrayLike | None = None, *, bins: int = 15
) -> float:
    """Compute the expected calibration error over quantile bins of the confidence.

    The confidence of a row is its largest probability. Rows of equal confidence, of which trees have many, stay in one
    bin, so that their order does not matter; there may be fewer bins then.

    Parameters
    ----------
    truth : array-like of shape (n,)
        The true classes.
    probabilities : array-like of shape (n, n_classes)
        Predicted class probabilities.
    classes : array-like of shape (n_classes,), default=None
        The labels of the columns; None where ``truth`` has column indices.
    bins : int, default=15
        Maximal number of bins.

    Examples
    --------
    Three of four rows are correct at a confidence of 0.9:

    >>> round(calibration_error([0, 0, 0, 1], [[0.9, 0.1]] * 4), 3)
    0.15
    """
    numbers, table = _validate(truth, probabilities, classes)
    confidence, right = table.max(axis=1), table.argmax(axis=1) == numbers
    edges = np.quantile(confidence, np.arange(1, bins) / bins, method="inverted_cdf")
    bin_of = np.searchsorted(np.unique(edges), confidence)
    return float(np.abs(np.bincount(bin_of, right - confidence)).sum() / len(numbers))


def _validate(truth: Any, probabilities: Any, classes: Any) -> tuple[npt.NDArray[np.intp], Doubles]:
    """Return the column index of the true class of every row, and the probabilities."""
    labels, table = np.asarray(truth), np.asarray(probabilities, dtype=np.float64)
    if table.ndim != 2 or labels.shape != table.shape[:1] or not len(labels):
        raise ValueError(
            "there must be a row of probabilities for each of at least one true class; got shapes "
            f"{labels.shape} and {table.shape}."
        )
    if not np.isfinite(table).all() or (table < 0).any() or not np.allclose(table.sum(axis=1), 1, atol=1e-4):
        raise ValueError("probabilities must be finite, at least 0, and add up to 1 in every row; they do not.")
    known = np.arange(table.shape[1]) if classes is None else np.asarray(classes)
    if len(known) != table.shape[1]:
        raise ValueError(f"`classes` must name the {table.shape[1]} columns of probabilities; got {len(known)}.")
    hits = labels[:, None] == known[None, :]
    if not hits.any(axis=1).all():
        unknown = labels[~hits.any(axis=1)][:3].tolist()
        raise ValueError(f"the true classes must be among {known.tolist()}; got {unknown} too. Leave those rows out.")
    return hits.argmax(axis=1), table
