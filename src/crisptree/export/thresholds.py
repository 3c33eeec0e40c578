"""Splits on one feature as thresholds that give the very bits of the sum: no rounding is left to chance.

The score of such a split, w · x + b with each step rounded to single precision, never falls (or never rises) as x
grows. So there is one largest x on one side, and a comparison with it decides as the sum does, for every number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

LARGEST = np.float32(np.finfo(np.float32).max)
_BITS = 0x7F7FFFFF
"""The bits of the largest number; numbers of one sign are ordered as their bits are."""


class Threshold(NamedTuple):
    """A row whose feature, as float32, is at most ``value`` goes one way, and all others go the other."""

    feature: int
    value: float
    """Exact in single precision; −∞ where every row goes the way of the larger ones."""
    larger_go_right: bool


def threshold(feature: int, weight: np.float32, bias: np.float32) -> Threshold:
    """What a split with this one weight asks.

    Examples
    --------
    >>> threshold(3, np.float32(2), np.float32(-1))
    Threshold(feature=3, value=0.5, larger_go_right=True)
    >>> threshold(3, np.float32(-1), np.float32(0)).larger_go_right
    False
    """
    rises = bool(weight >= 0)  # without a weight the bias sends all rows one way, and either word is true

    def is_below(x: np.float32) -> bool:
        """Whether x is on the side of the small values."""
        with np.errstate(over="ignore", under="ignore"):
            goes_right = np.float32(weight * x) + bias > 0
        return bool(goes_right) != rises

    if not is_below(-LARGEST):
        return Threshold(feature, -np.inf, rises)
    low, high = -_BITS, _BITS + 1  # the number of ``low`` is below, that of ``high`` is not, or there is none
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_below(_number(middle)) else (low, middle)
    return Threshold(feature, float(_number(low)), rises)


def split_threshold(weight: npt.NDArray[np.float32], bias: np.float32) -> Threshold:
    """The same for a row of weights of which at most one is not zero."""
    used = np.flatnonzero(weight)
    feature = int(used[0]) if len(used) else 0
    return threshold(feature, weight[feature], bias)


def double_threshold(value: float) -> tuple[float, bool]:
    """(limit, inclusive): a double rounds to a float32 of at most ``value`` exactly if it is below the limit, or at it.

    For readers that compare doubles and never round them to single precision first.

    Examples
    --------
    >>> double_threshold(1.0)
    (1.0000000596046448, True)
    """
    if value == -np.inf:
        return -np.inf, False
    single = np.float32(value)
    above = np.nextafter(single, np.float32(np.inf))
    if not np.isfinite(above):  # beyond it nothing is finite in single precision
        return float(LARGEST), True
    middle = (float(single) + float(above)) / 2  # exact: doubles have 29 bits more
    return middle, bool(np.float32(middle) == single)


def _number(place: int) -> np.float32:
    """The float32 with a place in the order of all finite ones; zero has place 0."""
    size = np.uint32(abs(place)).view(np.float32)
    return -size if place < 0 else size
