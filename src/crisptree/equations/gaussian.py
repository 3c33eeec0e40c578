"""Leaves that are normal distributions: densities, means, variances and squared errors.

Every output is scaled to mean 0 and variance 1 on the training rows; outputs are independent in a leaf. The functions
take arrays and tensors.
"""

from __future__ import annotations

import math
from typing import Any

SMALLEST_VARIANCE = 1e-3
"""Lower bound of the variance of a leaf, relative to that of all rows; with variance 0 no other row could reach it."""

DEEPEST_DOUBT = 300.0
"""Densities are at least e⁻³⁰⁰ times the largest of a row, so that products with path probabilities do not underflow
and responsibilities stay defined for a row that is far from every leaf."""

LOG_TWO_PI = math.log(2 * math.pi)


def log_densities(y: Any, mean: Any, variance: Any) -> Any:
    """log N(y; m, v) = −½ Σ_k [(y_k − m_k)² / v_k + log 2π v_k].  Three (…, n_outputs) → (…)"""
    return -0.5 * ((y - mean) ** 2 / variance + (variance.log() + LOG_TWO_PI)).sum(-1)


def mean_and_variance(weight: Any, sums: Any, squares: Any, prior: float) -> tuple[Any, Any]:
    """m = Σ w y / N and v = Σ w y² / N − m², with ``prior`` rows of mean 0 and variance 1 more.

    (…, 1), (…, n_outputs), (…, n_outputs) → two (…, n_outputs). The variance may be below the smallest one, and where
    there is nothing at all both are 0 / 0.
    """
    total = weight + prior
    mean = sums / total
    return mean, (squares + prior) / total - mean * mean


OWN_SHARE = 0.5
"""Weight of a leaf's own variance in training, against the pooled one."""


def pooled_variance(variance: Any, weight: Any) -> Any:
    """½ v_ℓ + ½ Σ_ℓ N_ℓ v_ℓ / Σ_ℓ N_ℓ: a compromise between separate and pooled variances.

    With separate variances, a leaf of low variance repels all other rows; with a pooled one, leaves cannot differ.
    (n_leaves, …, n_outputs), (n_leaves, …, 1) → the first
    """
    pooled = (weight * variance).sum(0) / weight.sum(0).clamp_min(1e-30)
    return OWN_SHARE * variance + (1 - OWN_SHARE) * pooled


def squared_error(weight: Any, sums: Any, squares: Any, mean: Any) -> Any:
    """Σ w Σ_k (y_k − m_k)² from sums over the rows.  (…, 1), three (…, n_outputs) → (…)"""
    return (squares - 2 * mean * sums + weight * mean * mean).sum(-1)
