"""What changes over the epochs of a training: steepness γ, learning rate, and the steepness under input noise."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


def linear_steepness(start: float, step: float, epoch: int) -> float:
    """γ = γ_0 + step · epoch: the paper's schedule with γ_0 = 1 and step = 0.1."""
    return start + step * epoch


def geometric_steepness(start: float, step: float, epoch: int) -> float:
    """γ = γ_0 · (1 + step)^epoch."""
    return start * (1 + step) ** epoch


SCHEDULES: dict[str, Callable[[float, float, int], float]] = {
    "linear": linear_steepness,
    "geometric": geometric_steepness,
}


def constant_rate(epoch: int, epochs: int) -> float:
    """1: a constant rate, as in the paper."""
    return 1.0


def linear_rate(epoch: int, epochs: int) -> float:
    """1 − epoch / epochs."""
    return 1 - epoch / epochs


def cosine_rate(epoch: int, epochs: int) -> float:
    """(1 + cos(π epoch / epochs)) / 2."""
    return (1 + math.cos(math.pi * epoch / epochs)) / 2


DECAYS: dict[str, Callable[[int, int], float]] = {"none": constant_rate, "linear": linear_rate, "cosine": cosine_rate}


SLOPE = math.pi / 8
"""σ(z) ≈ Φ(√(π/8) z), with equal slopes at zero; the two differ by 0.018 at most."""


def damped_steepness(steepness: float | Tensor, width: float, squared_norms: Tensor) -> Tensor:
    """γ / √(1 + (π/8) γ² σ² ‖β‖²): the steepness of E σ(γ f(x + ε)).  (n,) → (n,)"""
    return steepness / torch.sqrt(1 + SLOPE * (steepness * width) ** 2 * squared_norms)
