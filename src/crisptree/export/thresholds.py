"""Splits on one feature as thresholds that decide exactly as the rounded sum does.

The score of such a split, w · x + b with each step rounded to single precision, never falls (or never rises) as x
grows. So there is one largest x on one side, and a comparison with it decides as the sum does, for every number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

LARGEST = np.float32(np.finfo(np.float32).max)
_BITS = 0x7F7FFFFF
"""Bits of the largest number; numbers of one sign are ordered as their bits are."""


class Threshold(NamedTuple):
    """A row whose feature, as float32, is at most ``value`` goes one way, and all others go the other."""

    feature: int
    value: float
    """Exact in single precision; −∞ where every row goes the way of the larger ones."""
    larger_go_right: bool


def find_threshold(feature: int, weight: np.float32, bias: np.float32) -> Threshold:
    """Find the threshold of a split with one weight.

    Examples
    --------
    >>> find_threshold(3, np.float32(2), np.float32(-1))
    Threshold(feature=3, value=0.5, larger_go_right=True)
    >>> find_threshold(3, np.float32(-1), np.float32(0)).larger_go_right
    False
    """
    rises = bool(weight >= 0)  # without a weight the bias sends all rows one way, and either word is true

    def is_below(x: np.float32) -> bool:
        """True if x is on the side of the small values."""
        with np.errstate(over="ignore", under="ignore"):
            goes_right = np.float32(weight * x) + bias > 0
        return bool(goes_right) != rises

    if not is_below(-LARGEST):
        return Threshold(feature, -np.inf, rises)
    low, high = -_BITS, _BITS + 1  # the number of ``low`` is below, that of ``high`` is not, or there is none
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_below(_float_at(middle)) else (low, middle)
    return Threshold(feature, float(_float_at(low)), rises)


def find_split_threshold(weight: npt.NDArray[np.float32], bias: np.float32) -> Threshold:
    """Find the threshold of a split with at most one nonzero weight."""
    used = np.flatnonzero(weight)
    feature = int(used[0]) if len(used) else 0
    return find_threshold(feature, weight[feature], bias)


def convert_to_double(value: float) -> tuple[float, bool]:
    """Convert a float32 threshold to (limit, inclusive) for readers that compare doubles without rounding them.

    A double rounds to a float32 of at most ``value`` exactly if it is below the limit, or at it if inclusive.

    Examples
    --------
    >>> convert_to_double(1.0)
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


def _float_at(rank: int) -> np.float32:
    """The float32 with a rank among all finite ones; zero has rank 0."""
    size = np.uint32(abs(rank)).view(np.float32)
    return -size if rank < 0 else size
