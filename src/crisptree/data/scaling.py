"""How features are brought to one scale before training, and how the scale is folded out of the weights again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from crisptree.blocks import ROWS_IN_CACHE, over_blocks

Floats = npt.NDArray[np.floating]
Doubles = npt.NDArray[np.float64]

LARGEST = float(np.finfo(np.float32).max)

VALUES_IN_CACHE = 2**16
"""Rows of few features are scaled more of them at a time."""

SMALLEST_SPREAD = 1e-35
"""A column that varies less than this counts as constant: its folded weight would leave float32's range."""


def scaled(values: Any, center: Any, factor: Any) -> Any:
    """(x − center) · factor, for arrays and tensors alike; rows far from those of training do not become infinite."""
    return ((values - center) * factor).clip(-LARGEST, LARGEST)


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
        """Weighted statistics of the training rows; ``kind`` is a key of ``SCALES``."""
        ranges = list(over_blocks(lambda rows: (X[rows].min(axis=0), X[rows].max(axis=0)), len(X), n_jobs=n_jobs))
        low = np.min([block for block, _ in ranges], axis=0).astype(np.float64)
        high = np.max([block for _, block in ranges], axis=0).astype(np.float64)
        varies = high - low > SMALLEST_SPREAD
        # Centre on the middle of the range first: squares of 1e30 or of large offsets would lose everything.
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
        varies &= spread > SMALLEST_SPREAD
        center = middle + half * mean
        return cls(*SCALES[kind](center, spread, varies), center, spread)

    @classmethod
    def none(cls, n_features: int) -> Scaling:
        """Leaves every row as it is."""
        zeros, ones = np.zeros(n_features), np.ones(n_features)
        return cls(zeros, ones, zeros, ones)

    def apply(self, X: Floats, n_jobs: int | None = 1) -> npt.NDArray[np.float32]:
        """The scaled rows, computed in double precision, kept in single."""
        result = np.empty(X.shape, dtype=np.float32)

        def scale(rows: slice) -> None:
            with np.errstate(under="ignore"):  # what is too small for single precision is 0
                result[rows] = scaled(X[rows], self.center, self.factor)

        for _ in over_blocks(scale, len(X), max(ROWS_IN_CACHE, VALUES_IN_CACHE // max(X.shape[1], 1)), n_jobs):
            pass
        return result

    @property
    def is_identity(self) -> bool:
        """Whether rows stay as they are."""
        return bool(np.all(self.center == 0) and np.all(self.factor == 1))

    def first(self, n_features: int) -> Scaling:
        """The scaling of the first features alone."""
        return Scaling(*(part[:n_features] for part in (self.center, self.factor, self.mean, self.spread)))

    def fold(self, weight: Doubles, bias: Doubles) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Hyperplanes of the scaled space as hyperplanes of the raw one."""
        raw = weight * self.factor
        return raw.astype(np.float32), (bias - raw @ self.center).astype(np.float32)

    def unfold(self, weight: Floats, bias: Floats) -> tuple[Doubles, Doubles]:
        """The reverse of ``fold``; columns constant in training have weight zero."""
        raw = weight.astype(np.float64)
        return raw * self.unit, bias + raw @ self.center

    def repeated(self, times: int) -> Scaling:
        """The scaling of rows that are so many pixels, each scaled alike."""
        return Scaling(*(np.tile(part, times) for part in (self.center, self.factor, self.mean, self.spread)))

    def same_for_pixels(self, n_channels: int = 1) -> Scaling:
        """One center for every channel and one factor for all, so that a pixel may take the place of another.

        Pixels that are constant in training have a factor too: a neighbour that varies may be shifted there.
        """
        center = np.tile(self.center.reshape(-1, n_channels).mean(axis=0), len(self.center) // n_channels)
        return Scaling(center, np.full_like(self.factor, self.factor.max(initial=0.0)), self.mean, self.spread)

    def is_same_for_pixels(self, n_channels: int = 1) -> bool:
        """Whether a pixel may take the place of another."""
        parts = (part.reshape(-1, n_channels) for part in (self.center, self.factor))
        return all(bool(np.all(part == part[:1])) for part in parts)

    @property
    def unit(self) -> Doubles:
        """The raw length of one scaled unit, 0 for columns constant in training."""
        return np.divide(1.0, self.factor, out=np.zeros_like(self.factor), where=self.factor != 0)


def _by_feature(mean: Doubles, spread: Doubles, varies: npt.NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
    return mean, np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)


def _by_one_number(mean: Doubles, spread: Doubles, varies: npt.NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
    if not varies.any():
        return mean, np.zeros_like(mean)
    largest = spread.max()
    common = largest * np.sqrt(np.mean((spread[varies] / largest) ** 2))
    return mean, varies / common


def _not_at_all(mean: Doubles, spread: Doubles, varies: npt.NDArray[np.bool_]) -> tuple[Doubles, Doubles]:
    return np.zeros_like(mean), varies.astype(np.float64)


SCALES = {"feature": _by_feature, "global": _by_one_number, None: _not_at_all}
