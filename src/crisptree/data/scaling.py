"""Scaling of features before training, and its folding into the trained weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from crisptree.threads import ROWS_IN_CACHE, over_blocks

Floats = npt.NDArray[np.floating]
Doubles = npt.NDArray[np.float64]

MAX_FLOAT32 = float(np.finfo(np.float32).max)

VALUES_IN_CACHE = 2**16
"""Values that are scaled at a time where rows have few features."""

MIN_SPREAD = 1e-35
"""Columns with a smaller range count as constant: the folded weight would overflow float32."""


def scaled(values: Any, center: Any, factor: Any) -> Any:
    """(x − center) · factor, for arrays and tensors; clipped to the range of float32."""
    return ((values - center) * factor).clip(-MAX_FLOAT32, MAX_FLOAT32)


@dataclass(frozen=True, eq=False)
class Scaling:
    """x ↦ (x − center) · factor, feature by feature; the factor is 0 for columns constant in training.

    ``mean`` and ``spread`` are the weighted mean and standard deviation of the training rows, whatever the scale is.
    """

    center: Annotated[Doubles, "features"]
    factor: Annotated[Doubles, "features"]
    mean: Annotated[Doubles, "features"]
    spread: Annotated[Doubles, "features"]

    @classmethod
    def learn(cls, X: Floats, sample_weight: Floats, kind: str | None, n_jobs: int | None = 1) -> Scaling:
        """Learn from the weighted statistics of the training rows; ``kind`` is a key of ``SCALES``."""
        ranges = list(over_blocks(lambda rows: (X[rows].min(axis=0), X[rows].max(axis=0)), len(X), n_jobs=n_jobs))
        low = np.min([block for block, _ in ranges], axis=0).astype(np.float64)
        high = np.max([block for _, block in ranges], axis=0).astype(np.float64)
        varies = high - low > MIN_SPREAD
        # Centred on the middle of the range first: squares of 1e30 or of large offsets would lose all precision.
        middle, half = low / 2 + high / 2, np.where(varies, high / 2 - low / 2, 1.0)
        total = sample_weight.sum()

        def moments(rows: slice) -> tuple[Doubles, Doubles]:
            unit = (X[rows] - middle) / half
            return sample_weight[rows] @ unit, sample_weight[rows] @ np.square(unit, out=unit)

        first, second = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        for once, twice in over_blocks(moments, len(X), ROWS_IN_CACHE, n_jobs):
            first += once
            second += twice
        mean = first / total
        spread = half * np.sqrt(np.maximum(second / total - mean**2, 0.0))
        varies &= spread > MIN_SPREAD
        center = middle + half * mean
        return cls(*SCALES[kind](center, spread, varies), center, spread)

    @classmethod
    def none(cls, n_features: int) -> Scaling:
        """Return the identity."""
        zeros, ones = np.zeros(n_features), np.ones(n_features)
        return cls(zeros, ones, zeros, ones)

    def apply(self, X: Floats, n_jobs: int | None = 1) -> npt.NDArray[np.float32]:
        """Scale rows in double precision; the result is float32."""
        result = np.empty(X.shape, dtype=np.float32)

        def scale(rows: slice) -> None:
            with np.errstate(under="ignore"):  # what underflows is 0
                result[rows] = scaled(X[rows], self.center, self.factor)

        for _ in over_blocks(scale, len(X), max(ROWS_IN_CACHE, VALUES_IN_CACHE // max(X.shape[1], 1)), n_jobs):
            pass
        return result

    @property
    def is_identity(self) -> bool:
        """Return True if rows do not change."""
        return bool(np.all(self.center == 0) and np.all(self.factor == 1))

    def first(self, n_features: int) -> Scaling:
        """Return the scaling of the first features."""
        return Scaling(*(part[:n_features] for part in (self.center, self.factor, self.mean, self.spread)))

    def fold(self, weight: Doubles, bias: Doubles) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Convert hyperplanes of scaled features to hyperplanes of raw features."""
        raw = weight * self.factor
        return raw.astype(np.float32), (bias - raw @ self.center).astype(np.float32)

    def unfold(self, weight: Floats, bias: Floats) -> tuple[Doubles, Doubles]:
        """Invert ``fold``; columns that were constant in training have weight zero."""
        raw = weight.astype(np.float64)
        return raw * self.unit, bias + raw @ self.center

    def repeated(self, times: int) -> Scaling:
        """Return the scaling of rows that repeat these features, as the pixels of an image do."""
        return Scaling(*(np.tile(part, times) for part in (self.center, self.factor, self.mean, self.spread)))

    def same_for_pixels(self, n_channels: int = 1) -> Scaling:
        """Return one center per channel and one factor for all pixels, as random shifts need it.

        Pixels that are constant in training have a factor too: a neighbour that varies may be shifted there.
        """
        center = np.tile(self.center.reshape(-1, n_channels).mean(axis=0), len(self.center) // n_channels)
        return Scaling(center, np.full_like(self.factor, self.factor.max(initial=0.0)), self.mean, self.spread)

    def is_same_for_pixels(self, n_channels: int = 1) -> bool:
        """Return True if all pixels have the same scaling."""
        parts = (part.reshape(-1, n_channels) for part in (self.center, self.factor))
        return all(bool(np.all(part == part[:1])) for part in parts)

    @property
    def unit(self) -> Doubles:
        """Raw length of one scaled unit, 0 for columns that were constant in training."""
        return np.divide(1.0, self.factor, out=np.zeros_like(self.factor), where=self.factor != 0)


def _by_feature(mean: Doubles, spread: Doubles, varies: npt.NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
    return mean, np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)


def _by_common_spread(mean: Doubles, spread: Doubles, varies: npt.NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
    if not varies.any():
        return mean, np.zeros_like(mean)
    largest = spread.max()
    common = largest * np.sqrt(np.mean((spread[varies] / largest) ** 2))
    return mean, varies / common


def _unscaled(mean: Doubles, spread: Doubles, varies: npt.NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
    return np.zeros_like(mean), varies.astype(np.float64)


SCALES = {"feature": _by_feature, "global": _by_common_spread, None: _unscaled}
