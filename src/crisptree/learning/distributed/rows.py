"""Which rows belong to which process: shards are contiguous and never divided; statistics of all rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from crisptree.data.scaling import MIN_SPREAD, SCALES, Scaling
from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.task import RowSet
from crisptree.threads import row_blocks


@dataclass(frozen=True, eq=False)
class Shards:
    """The shards of one process, numbered from ``first`` among the ``n_shards`` of all processes; some have no rows."""

    parts: list[RowSet]
    first: int
    n_shards: int

    @property
    def numbers(self) -> range:
        """The numbers of the shards."""
        return range(self.first, self.first + len(self.parts))

    @classmethod
    def of(cls, part: RowSet, group: ProcessGroup, n_shards: int) -> Shards:
        """Rows as shards: all rows are those of process 0, then those of process 1, and so on.

        Shard s has the rows N·s // S to N·(s + 1) // S, and process r the shards S·r // R to S·(r + 1) // R. Where
        processes have about as many rows each, few have to move.
        """
        counts = np.array(group.gather(len(part.y)))
        starts, n = np.concatenate([[0], np.cumsum(counts)]), int(counts.sum())
        lows = [n * (n_shards * rank // group.size) // n_shards for rank in range(group.size + 1)]
        part = moved(part, group, starts, np.array(lows))
        first, last = (n_shards * rank // group.size for rank in (group.rank, group.rank + 1))
        low = lows[group.rank]
        cuts = [n * shard // n_shards - low for shard in range(first, last + 1)]
        parts = [_rows(part, slice(*pair)) for pair in pairwise(cuts)]
        return cls(parts, first, n_shards)

    def drawn(self, most: int, n_rows: int, seed: int) -> RowSet:
        """Some rows of every shard here, of all shards about ``most`` together out of ``n_rows``; all where fewer."""
        found = []
        for number, part in zip(self.numbers, self.parts, strict=True):
            n = len(part.y)
            some = n if n_rows <= most else -(-most * n // n_rows)
            chosen = np.random.default_rng([seed, number, 1]).permutation(n)[:some]
            found.append(_rows(part, np.sort(chosen)))
        return joined(found)

    def divided(self, share: float, seed: int) -> tuple[Shards, Shards]:
        """Rows that stay, and a share that is held out, drawn in every shard by itself."""
        to_arrays, held = [], []
        for number, part in zip(self.numbers, self.parts, strict=True):
            out = np.random.default_rng([seed, number]).random(len(part.y)) < share
            to_arrays.append(_rows(part, ~out))
            held.append(_rows(part, out))
        return Shards(to_arrays, self.first, self.n_shards), Shards(held, self.first, self.n_shards)


def moved(part: RowSet, group: ProcessGroup, starts: npt.NDArray[np.int64], lows: npt.NDArray[np.int64]) -> RowSet:
    """The rows lows[r] to lows[r + 1] of all, for process r, which had starts[r] to starts[r + 1]."""
    if np.array_equal(starts, lows):
        return part

    def common(mine: npt.NDArray[np.int64], theirs: npt.NDArray[np.int64]) -> list[int]:
        low, high = mine[group.rank], mine[group.rank + 1]
        return [int(max(0, min(high, theirs[r + 1]) - max(low, theirs[r]))) for r in range(group.size)]

    to, come = common(starts, lows), common(lows, starts)
    arrays: tuple[Any, ...] = (part.X, part.y, part.weight)
    return RowSet(*(group.exchange(values, to, come) for values in arrays))


def joined(parts: list[RowSet]) -> RowSet:
    """Rows after each other."""
    return RowSet(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "weight")))


def _rows(part: RowSet, rows: Any) -> RowSet:
    return RowSet(part.X[rows], part.y[rows], part.weight[rows])


class FeatureStatistics(NamedTuple):
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
    def of(cls, group: ProcessGroup, shards: Shards) -> FeatureStatistics:
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
        varies = high - low > MIN_SPREAD
        middle, half = low / 2 + high / 2, np.where(varies, high / 2 - low / 2, 1.0)
        first, second = group.total([_moments(part, middle, half) for part in parts], (2, n)) / weight
        spread = half * np.sqrt(np.maximum(second - first**2, 0.0))
        varies &= spread > MIN_SPREAD
        return cls(int(n_rows), float(weight / n_rows), middle + half * first, spread, varies)


def _moments(part: RowSet, middle: npt.NDArray[np.float64], half: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Σ w u and Σ w u² of the scaled features; without products of matrices, whose threads would change bits."""
    sums, X = np.zeros((2, len(middle))), cast(Any, part.X)
    for rows in row_blocks(len(part.y), 1024):
        unit = (X[rows] - middle) / half
        weighted = unit * part.weight[rows][:, None]
        sums += weighted.sum(axis=0), (weighted * unit).sum(axis=0)
    return sums
