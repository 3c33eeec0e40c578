"""Noise on the inputs, integrated out.

With x + ε in place of x and ε normal of width σ in every scaled feature, a score f(x) = β·x + b gets a normal noise of
width σ‖β‖; of width σ√(βᵀSβ) where the noise of neighbouring pixels is correlated, by S. The mean of σ(γ f) over it has
no closed form, but the sigmoid is close to the normal distribution function Φ(√(π/8) ·), whose mean has one: Φ with a
steepness that falls with the norm.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

SLOPE = math.pi / 8
"""σ(z) ≈ Φ(√(π/8) z), with equal slopes at zero; the two differ by 0.018 at most."""

SMALLEST_TAP = 1e-6
"""Pixels that are correlated by less are not, so that S stays a few bands wide; single precision loses as much."""


def damped_steepness(steepness: float | Tensor, width: float, squared_norms: Tensor) -> Tensor:
    """γ / √(1 + (π/8) γ² σ² ‖β‖²): the steepness of E σ(γ f(x + ε)).  (n,) → (n,)

    Under correlated noise βᵀSβ stands for ‖β‖².
    """
    return steepness / torch.sqrt(1 + SLOPE * (steepness * width) ** 2 * squared_norms)


def taps(correlation: float) -> list[float]:
    """The correlation of pixels 0, 1, 2, … apart along a line or a column: 1, ρ, ρ⁴, ρ⁹, …; if ρ < 0 1, ρ and no more.

    Examples
    --------
    >>> taps(0.0), taps(-0.25), [round(tap, 2) for tap in taps(0.5)][:4]
    ([1.0], [1.0, -0.25], [1.0, 0.5, 0.06, 0.0])
    """
    if correlation <= 0:
        return [1.0, correlation] if correlation else [1.0]
    reach = math.floor(math.sqrt(math.log(SMALLEST_TAP) / math.log(correlation)))
    return [correlation ** (distance**2) for distance in range(reach + 1)]


def line_correlation(length: int, correlation: float) -> Tensor:
    """S of the pixels of one line, a band of ``taps``.  (length, length), float64"""
    along = torch.zeros(length, dtype=torch.float64)
    few = taps(correlation)[:length]
    along[: len(few)] = torch.tensor(few, dtype=torch.float64)
    place = torch.arange(length)
    return along[(place[:, None] - place).abs()]


def correlated(weights: Tensor, down: Tensor, across: Tensor) -> Tensor:
    """S β of every split, S = ``down`` ⊗ ``across``: pixels are correlated by line and by column, channels are not.

    (n_splits, h·w[·channels]), (h, h), (w, w) → the shape of ``weights``
    """
    images = weights.reshape(len(weights), len(down), len(across), -1)
    return torch.einsum("ab,nbcd,ce->naed", down, images, across).reshape_as(weights)
