"""Which rows are whose: shards are contiguous parts of all rows, and a process has whole ones."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.problem import Part


@dataclass(frozen=True, eq=False)
class Shards:
    """The shards of one process.

    Parameters
    ----------
    parts : list of Part
        Their rows, some without any.
    first : int
        The number of the first of them among all.
    n_shards : int
        How many there are in all processes.
    """

    parts: list[Part]
    first: int
    n_shards: int

    @property
    def numbers(self) -> range:
        """The numbers of the shards."""
        return range(self.first, self.first + len(self.parts))

    @classmethod
    def of(cls, part: Part, group: ProcessGroup, n_shards: int) -> Shards:
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

    def drawn(self, most: int, n_rows: int, seed: int) -> Part:
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
        kept, held = [], []
        for number, part in zip(self.numbers, self.parts, strict=True):
            out = np.random.default_rng([seed, number]).random(len(part.y)) < share
            kept.append(_rows(part, ~out))
            held.append(_rows(part, out))
        return Shards(kept, self.first, self.n_shards), Shards(held, self.first, self.n_shards)


def moved(part: Part, group: ProcessGroup, starts: npt.NDArray[np.int64], lows: npt.NDArray[np.int64]) -> Part:
    """The rows lows[r] to lows[r + 1] of all, for process r, which had starts[r] to starts[r + 1]."""
    if np.array_equal(starts, lows):
        return part

    def common(mine: npt.NDArray[np.int64], theirs: npt.NDArray[np.int64]) -> list[int]:
        low, high = mine[group.rank], mine[group.rank + 1]
        return [int(max(0, min(high, theirs[r + 1]) - max(low, theirs[r]))) for r in range(group.size)]

    to, come = common(starts, lows), common(lows, starts)
    arrays: tuple[Any, ...] = (part.X, part.y, part.weight)
    return Part(*(group.exchange(values, to, come) for values in arrays))


def joined(parts: list[Part]) -> Part:
    """Rows after each other."""
    return Part(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "weight")))


def _rows(part: Part, rows: Any) -> Part:
    return Part(part.X[rows], part.y[rows], part.weight[rows])
