"""How good class probabilities are, beside how often the largest of them is right.

All functions take the true classes (n,) and the probabilities (n, n_classes) of the columns ``classes``, without which
the true classes are numbers of columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]

BINS = 15
"""Groups of rows whose confidence is compared with how often they are right."""


def log_loss(truth: npt.ArrayLike, probabilities: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> float:
    """The mean of −log p(y∣x) in nats; infinite where a true class was given no chance at all.

    Examples
    --------
    >>> log_loss([0, 1], [[0.5, 0.5], [0.5, 0.5]]), log_loss([0], [[0.0, 1.0]])
    (0.6931471805599453, inf)
    """
    numbers, table = _checked(truth, probabilities, classes)
    with np.errstate(divide="ignore"):
        return float(0 - np.log(table[np.arange(len(numbers)), numbers]).mean())  # a certain 0, and not −0


def brier_score(truth: npt.ArrayLike, probabilities: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> float:
    """The mean of Σ_k (p(k∣x) − 1(y = k))²: 0 is certain and right, 2 certain and wrong.

    For two classes it is twice what scikit-learn's ``brier_score_loss`` says of one of them.

    Examples
    --------
    >>> brier_score(["no", "yes"], [[1.0, 0.0], [0.5, 0.5]], classes=["no", "yes"])
    0.25
    """
    numbers, table = _checked(truth, probabilities, classes)
    return float(((table - np.eye(table.shape[1])[numbers]) ** 2).sum(axis=1).mean())


def calibration_error(
    truth: npt.ArrayLike, probabilities: npt.ArrayLike, classes: npt.ArrayLike | None = None, *, bins: int = BINS
) -> float:
    """How far confidence is from being right: the expected calibration error over bins of equally many rows.

    A row's confidence is its largest probability. Rows of the same confidence, of which trees have many, stay in one
    bin, so that their order does not matter; there may be fewer bins then.

    Parameters
    ----------
    truth : array-like of shape (n,)
        The true classes.
    probabilities : array-like of shape (n, n_classes)
        What was said of them.
    classes : array-like of shape (n_classes,), default=None
        The labels of the columns; None where ``truth`` has their numbers.
    bins : int, default=15
        How many bins, at most.

    Examples
    --------
    Three rows of four right at a confidence of 0.9:

    >>> round(calibration_error([0, 0, 0, 1], [[0.9, 0.1]] * 4), 3)
    0.15
    """
    numbers, table = _checked(truth, probabilities, classes)
    confidence, right = table.max(axis=1), table.argmax(axis=1) == numbers
    edges = np.quantile(confidence, np.arange(1, bins) / bins, method="inverted_cdf")
    bin_of = np.searchsorted(np.unique(edges), confidence)
    return float(np.abs(np.bincount(bin_of, right - confidence)).sum() / len(numbers))


def _checked(truth: Any, probabilities: Any, classes: Any) -> tuple[npt.NDArray[np.intp], Doubles]:
    """The column of every row's true class, and the probabilities."""
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
