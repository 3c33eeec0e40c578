"""Decay of the learning rate, a factor as a function of the epoch."""

from __future__ import annotations

import math
from collections.abc import Callable


def none(epoch: int, epochs: int) -> float:
    """1: a constant rate, as in the paper."""
    return 1.0


def linear(epoch: int, epochs: int) -> float:
    """1 − epoch / epochs."""
    return 1 - epoch / epochs


def cosine(epoch: int, epochs: int) -> float:
    """(1 + cos(π epoch / epochs)) / 2."""
    return (1 + math.cos(math.pi * epoch / epochs)) / 2


DECAYS: dict[str, Callable[[int, int], float]] = {"none": none, "linear": linear, "cosine": cosine}
