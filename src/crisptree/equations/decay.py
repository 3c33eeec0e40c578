"""The learning rate as a function of the epoch: how much of it is left."""

from __future__ import annotations

import math
from collections.abc import Callable


def none(epoch: int, epochs: int) -> float:
    """The same rate throughout, as in the paper."""
    return 1.0


def linear(epoch: int, epochs: int) -> float:
    """1 − epoch / epochs: the last epoch has a share of 1 / epochs."""
    return 1 - epoch / epochs


def cosine(epoch: int, epochs: int) -> float:
    """(1 + cos(π epoch / epochs)) / 2: long near the full rate, long near none."""
    return (1 + math.cos(math.pi * epoch / epochs)) / 2


DECAYS: dict[str, Callable[[int, int], float]] = {"none": none, "linear": linear, "cosine": cosine}
