"""Sample weights and class weights: the checks and factors that every row source shares."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _check_sample_weight

from crisptree.tensors import detach

Doubles = npt.NDArray[np.float64]

MIN_TOTAL_WEIGHT, MAX_TOTAL_WEIGHT = 1e-100, 1e100
"""Bounds of the sum of all weights: products of weighted sums and squares neither overflow nor underflow. A prior of
leaves, which counts rows, is at most 1e30 and makes no difference beyond either of them."""


def check_sample_weight(sample_weight: Any, X: Any) -> Doubles:
    """Finite weights of at least 0, one for every row, rescaled into bounds; ones where there are none.  (n,)"""
    return rescale_weights(_check_sample_weight(detach(sample_weight), X, dtype=np.float64, ensure_non_negative=True))


def weigh_classes(class_weight: Any, y: npt.NDArray[Any], weight: Doubles) -> Doubles:
    """Multiply weights by those of the classes, rescaled into bounds.  (n,)"""
    if class_weight is None:
        return rescale_weights(weight)
    classes, numbers = np.unique(y, return_inverse=True)
    with np.errstate(over="ignore", under="ignore"):
        factors = class_factors(class_weight, classes, np.bincount(numbers, weights=weight).astype(np.float64))
        weighed = np.asarray(weight * factors[numbers])
    if not np.isfinite(weighed).all():
        check_total_weight(np.inf)
    return rescale_weights(weighed)


def rescale_weights(weight: Doubles) -> Doubles:
    """Weights times the power of two that brings their sum into bounds; as they are, where it is within them.

    Examples
    --------
    >>> heavy = rescale_weights(np.array([1.5e308, 0.5e308]))
    >>> float(heavy[0] / heavy[1]), bool(heavy.sum() <= 1e100)
    (3.0, True)
    """
    total = sum_weights(weight)
    if total == 0 or MIN_TOTAL_WEIGHT <= total <= MAX_TOTAL_WEIGHT:
        return weight
    small = np.ldexp(weight, -int(np.frexp(weight.max())[1]))  # at most 1, exactly in the same ratios
    if total > MAX_TOTAL_WEIGHT:
        return np.ldexp(small, int(np.floor(np.log2(MAX_TOTAL_WEIGHT / small.sum()))))
    return np.ldexp(small, int(np.ceil(np.log2(MIN_TOTAL_WEIGHT / small.sum()))))


def check_total_weight(total: float) -> None:
    """Refuse weights whose sum is out of bounds, where they cannot be rescaled; 0 is for others to refuse."""
    if total != 0 and not MIN_TOTAL_WEIGHT <= total <= MAX_TOTAL_WEIGHT:
        raise ValueError(
            f"the weights of all rows, sample_weight times class_weight, must add up to {MIN_TOTAL_WEIGHT:g} to "
            f"{MAX_TOTAL_WEIGHT:g}, so that weighted sums neither overflow nor underflow; got {total:g}. Divide "
            "the weights by the largest."
        )


def sum_weights(weight: Doubles) -> float:
    """The sum of weights, infinite where it overflows."""
    with np.errstate(over="ignore", under="ignore"):
        return float(weight.sum())


def class_factors(class_weight: Any, classes: npt.NDArray[Any], totals: Doubles) -> Doubles:
    """Compute the factor of every class from the total weight of its rows.  (n_classes,)

    "balanced" counts rows by their weight, so that a repeated row equals a weight of two; one without
    weight gets 0.
    """
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str) and class_weight == "balanced":
        mean = totals.sum() / (totals > 0).sum()
        return np.divide(mean, totals, out=np.zeros_like(totals), where=totals > 0)
    if not isinstance(class_weight, dict):
        raise ValueError(f"`class_weight` must be None, 'balanced' or a dict by class; got {class_weight!r}.")
    factors = np.array([float(class_weight.get(label, 1.0)) for label in classes])
    known, is_named = set(classes.tolist()) | set(classes), [label in class_weight for label in classes]
    unknown = [label for label in class_weight if label not in known]
    if unknown and not all(is_named):  # of rows that come in parts, one may lack a class
        raise ValueError(f"`class_weight` must name classes of y, {classes.tolist()}; got {unknown[0]!r}.")
    if not (np.isfinite(factors).all() and (factors >= 0).all()):
        raise ValueError(f"`class_weight` must hold finite numbers of at least 0; got {class_weight!r}.")
    return factors


def check_some_weight(weight: Doubles) -> npt.NDArray[np.bool_]:
    """Which rows have any weight; some must."""
    kept = weight > 0
    if not kept.any():
        raise ValueError(
            "the weights must leave at least one row with a positive weight; got only zeros. "
            "Leave sample_weight and class_weight None to weigh all rows alike."
        )
    return kept
