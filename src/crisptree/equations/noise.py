"""Noise on the inputs, integrated out.

With x + ε in place of x and ε normal of width σ in every scaled feature, a score f(x) = β·x + b gets a normal noise of
width σ‖β‖. The mean of σ(γ f) over it has no closed form, but the sigmoid is close to the normal distribution function
Φ(√(π/8) ·), whose mean has one: Φ with a steepness that falls with the norm.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

SLOPE = math.pi / 8
"""σ(z) ≈ Φ(√(π/8) z), with equal slopes at zero; the two differ by 0.018 at most."""


def damped_steepness(steepness: float | Tensor, width: float, squared_norms: Tensor) -> Tensor:
    """γ / √(1 + (π/8) γ² σ² ‖β‖²): the steepness of E σ(γ f(x + ε)).  (n,) → (n,)"""
    return steepness / torch.sqrt(1 + SLOPE * (steepness * width) ** 2 * squared_norms)
