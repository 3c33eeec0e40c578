"""Steepness γ as a function of the epoch."""

from __future__ import annotations

from collections.abc import Callable


def linear(start: float, step: float, epoch: int) -> float:
    """γ = γ_0 + step · epoch: the paper's schedule with γ_0 = 1 and step = 0.1."""
    return start + step * epoch


def geometric(start: float, step: float, epoch: int) -> float:
    """γ = γ_0 · (1 + step)^epoch."""
    return start * (1 + step) ** epoch


SCHEDULES: dict[str, Callable[[float, float, int], float]] = {"linear": linear, "geometric": geometric}
