"""Leaves that are normal distributions: what a number says of a leaf, and what the numbers say together.

Numbers come scaled, so that the mean of all training rows is 0 and their variance 1, output by output; outputs are
independent of each other in a leaf. The functions take arrays and tensors alike.
"""

from __future__ import annotations

import math
from typing import Any

SMALLEST_VARIANCE = 1e-3
"""The least variance of a leaf, as a share of the variance of all rows. A leaf of one row would have none, and no other
row could ever come back to it."""

DEEPEST_DOUBT = 300.0
"""No leaf is believed less than e⁻³⁰⁰ times the likeliest one for a row's y: doubles then hold the product with any
path that is likely at all, and who is responsible stays defined for a row that is far from every leaf."""

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
"""How much a leaf's variance is its own while a tree trains."""


def pooled_variance(variance: Any, weight: Any) -> Any:
    """½ v_ℓ + ½ Σ_ℓ N_ℓ v_ℓ / Σ_ℓ N_ℓ: between leaves with variances of their own and a squared error for all.

    With its own variance alone, a leaf of quiet rows pushes all others away; with one for all, none can be quiet.
    (n_leaves, …, n_outputs), (n_leaves, …, 1) → the first
    """
    together = (weight * variance).sum(0) / weight.sum(0).clamp_min(1e-30)
    return OWN_SHARE * variance + (1 - OWN_SHARE) * together


def squared_error(weight: Any, sums: Any, squares: Any, mean: Any) -> Any:
    """Σ w Σ_k (y_k − m_k)² from sums over the rows.  (…, 1), three (…, n_outputs) → (…)"""
    return (squares - 2 * mean * sums + weight * mean * mean).sum(-1)
