"""What is known of the features of all rows before a training on shards: how they are scaled."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from crisptree.blocks import row_blocks
from crisptree.data.scaling import SCALES, SMALLEST_SPREAD, Scaling
from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.distributed.rows import Shards
from crisptree.learning.problem import Part


class Survey(NamedTuple):
    """What is known of the features of all rows."""

    n_rows: int
    mean_weight: float
    mean: npt.NDArray[np.float64]
    spread: npt.NDArray[np.float64]
    varies: npt.NDArray[np.bool_]

    @property
    def n_features(self) -> int:
        return len(self.mean)

    def scaling(self, kind: str | None) -> Scaling:
        """How rows are scaled, as ``Scaling.learn`` has it."""
        return Scaling(*SCALES[kind](self.mean, self.spread, self.varies), self.mean, self.spread)

    @classmethod
    def of(cls, group: ProcessGroup, shards: Shards) -> Survey:
        """One look at the ranges of the features, and one at their mean and spread."""
        parts = [part for part in shards.parts if len(part.y)]
        n_rows, weight = group.total([(len(part.y), part.weight.sum()) for part in parts], (2,))
        n = shards.parts[0].X.shape[1] if shards.parts else 0
        n = int(group.maximum(np.array([float(n)]))[0])
        ends = np.full((2, n), -np.inf)
        for part in parts:
            X: Any = part.X
            ends = np.maximum(ends, np.stack([-X.min(axis=0), X.max(axis=0)]).astype(np.float64))
        low, high = group.maximum(ends)
        low = -low
        varies = high - low > SMALLEST_SPREAD
        middle, half = low / 2 + high / 2, np.where(varies, high / 2 - low / 2, 1.0)
        first, second = group.total([_moments(part, middle, half) for part in parts], (2, n)) / weight
        spread = half * np.sqrt(np.maximum(second - first**2, 0.0))
        varies &= spread > SMALLEST_SPREAD
        return cls(int(n_rows), float(weight / n_rows), middle + half * first, spread, varies)


def _moments(part: Part, middle: npt.NDArray[np.float64], half: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Σ w u and Σ w u² of the scaled features; without products of matrices, whose threads would change bits."""
    sums, X = np.zeros((2, len(middle))), cast(Any, part.X)
    for rows in row_blocks(len(part.y), 1024):
        unit = (X[rows] - middle) / half
        weighted = unit * part.weight[rows][:, None]
        sums += weighted.sum(axis=0), (weighted * unit).sum(axis=0)
    return sums
