"""The search for the nearest row that reaches a wanted leaf: best first, over nodes, then over whole values."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.explain.allowed import Allowed
from crisptree.explain.projection import nearest_in_box
from crisptree.inference import FlatTree, route_rows

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
Successors = Iterator[tuple[float, "Cell | Landing"]]

OVERSHOOTS = tuple(4.0**power for power in range(-6, 2))
"""How far beyond a boundary to land, in units of the largest rounding error that a score there can have."""

WHOLE = 1e-6
"""Values so near to one that is allowed are taken for it."""

MOST_SOLVED = 4000
"""Quadratic programmes until the search stops proving and takes the next row that it can find."""


class Landing(NamedTuple):
    """A row that the kernel sends to a wanted leaf."""

    x: Singles
    leaf: int
    distance: float


class Cell(NamedTuple):
    """A part of a node's region: the turns that lead to it, how far beyond each to stay, the limits of single features,
    and the step δ to its nearest point; None while it is not known.
    """

    node: int
    splits: tuple[int, ...]
    signs: tuple[float, ...]
    beyond: tuple[float, ...]
    limits: tuple[tuple[int, float, float], ...]
    step: Doubles | None


class Search:
    """Nodes, nearest first: each with a bound of its distance, then with the distance itself, then landed in.

    Where only whole numbers or whole categories are allowed, a leaf whose nearest point has none is parted at it.
    """

    def __init__(
        self, tree: FlatTree, row: Singles, wanted: Flags, allowed: Allowed | None = None, patience: int = MOST_SOLVED
    ) -> None:
        self.tree, self.row, self.wanted, self.patience = tree, row, wanted, patience
        self.allowed = Allowed.anything(tree) if allowed is None else allowed
        weight = tree.weight.astype(np.float64)
        scaled = weight * self.allowed.unit
        self.length = np.linalg.norm(scaled, axis=1)
        # A split without weights has no boundary: all rows turn as this one does.
        self.normals = np.divide(scaled, self.length[:, None], out=scaled, where=self.length[:, None] > 0)
        self.scores = weight @ row + tree.bias
        self.holds = tree.structure.sums_below(wanted.astype(np.float64)) > 0
        self.solved = 0
        """How many quadratic programmes were needed."""

    @property
    def proves(self) -> bool:
        """Whether what is found is the nearest; a search that takes too long goes on with the deepest cell instead."""
        return self.solved <= self.patience

    def landings(self) -> Iterator[Landing]:
        """Wanted leaves from near to far, with the point to land on."""
        ticket = count()  # equal distances: first come, first served
        start = Cell(0, (), (), (), (), np.zeros(len(self.row)))
        queue: list[tuple[int, float, int, Cell | Landing]] = [(0, 0.0, next(ticket), start)]
        proving = True
        while queue:
            if proving and not self.proves:
                proving = False
                queue = [(_depth(item), distance, number, item) for _, distance, number, item in queue]
                heapq.heapify(queue)
            _, distance, _, item = heapq.heappop(queue)
            if isinstance(item, Landing):
                yield item
                continue
            if self.solved > 2 * self.patience:
                return
            for bound, successor in self._successors(item, distance):
                depth = 0 if proving else _depth(successor)
                heapq.heappush(queue, (depth, max(distance, bound), next(ticket), successor))

    def _successors(self, cell: Cell, distance: float) -> Successors:
        """What takes the place of a cell: itself with its step, a landing, or parts of it that hold a wanted leaf.

        If P is the nearest point of a convex cell, any other point is at least √(|P|² + |from P|²) away.
        """
        if cell.step is None:
            step = self._nearest(cell)
            if step is not None:
                yield float(np.linalg.norm(step)), cell._replace(step=step)
            return
        if cell.node >= self.tree.structure.n_splits:
            yield from self._in_leaf(cell, cell.step, distance)
            return
        split, structure = cell.node, self.tree.structure
        sides = ((structure.left_nodes[split], -1.0), (structure.right_nodes[split], 1.0))
        for node, sign in ((int(node), sign) for node, sign in sides if self.holds[node]):
            if self.length[split] == 0:
                if (self.scores[split] > 0) == (sign > 0):
                    yield distance, cell._replace(node=node)
                continue
            here = self.normals[split] @ cell.step + self.scores[split] / self.length[split]
            turns = ((*cell.splits, split), (*cell.signs, sign), (*cell.beyond, 0.0))
            child, missing = Cell(node, *turns, cell.limits, cell.step), -sign * here
            yield (distance, child) if missing <= 0 else (float(np.hypot(distance, missing)), child._replace(step=None))

    def _nearest(self, cell: Cell) -> Doubles | None:
        """The step to the cell's nearest point."""
        splits, signs = list(cell.splits), np.array(cell.signs)
        self.solved += 1
        reach = np.array(cell.beyond) - signs * self.scores[splits] / self.length[splits]
        low, high = self.allowed.low.copy(), self.allowed.high.copy()
        for feature, least, most in cell.limits:
            low[feature], high[feature] = max(low[feature], least), min(high[feature], most)
        moves = self.allowed.unit > 0
        with np.errstate(invalid="ignore"):  # an infinite limit of what does not move
            low = np.where(moves, (low - self.row) * self.allowed.factor, 0.0)
            high = np.where(moves, (high - self.row) * self.allowed.factor, 0.0)
        return nearest_in_box(signs[:, None] * self.normals[splits], reach, low, high)

    def _in_leaf(self, cell: Cell, step: Doubles, distance: float) -> Successors:
        """The cell's nearest point, if it is allowed and the kernel agrees; else the parts of the cell around it."""
        x = self.row + step * self.allowed.unit
        parts = self._parts(cell, step, x)
        if parts is not None:
            yield from parts
            return
        with np.errstate(over="ignore", under="ignore"):
            landed = x.astype(np.float32)
        if not np.isfinite(landed).all():
            return
        leaf = int(route_rows(self.tree, landed[None], 1)[0])
        if self.wanted[leaf]:
            moved = (landed.astype(np.float64) - self.row) * self.allowed.factor
            yield float(np.linalg.norm(moved)), Landing(landed, leaf, float(np.linalg.norm(moved)))
            return
        farther = self._farther(cell, landed)
        if farther is not None:
            yield distance, cell._replace(beyond=farther, step=None)

    def _farther(self, cell: Cell, landed: Singles) -> tuple[float, ...] | None:
        """How far to stay beyond each boundary, now that rounding has turned a row at some; None if that is no help."""
        splits = list(cell.splits)
        size = np.abs(self.row) + np.abs(landed.astype(np.float64) - self.row)
        terms = np.abs(self.tree.weight[splits]) @ size + np.abs(self.tree.bias[splits])
        rounding = (len(self.row) + 2) * 2.0**-24 * terms / self.length[splits]
        beyond = list(cell.beyond)
        for place, (split, sign) in enumerate(zip(cell.splits, cell.signs, strict=True)):
            if (self.tree.scores(landed[None], split)[0] > 0) == (sign > 0):
                continue
            larger = [share * rounding[place] for share in OVERSHOOTS if share * rounding[place] > beyond[place]]
            if not larger:
                return None
            beyond[place] = float(larger[0])
        return tuple(beyond) if tuple(beyond) != cell.beyond else None

    def _parts(self, cell: Cell, step: Doubles, x: Doubles) -> list[tuple[float, Cell]] | None:
        """Parts of a cell that leave out its nearest point x, where that is not allowed; None where it is.

        Values that are as good as allowed ones become these, in place.
        """
        allowed = self.allowed
        for features, states in allowed.groups:
            here = np.abs(states - x[features]).max(axis=1, initial=0.0)
            if here.min(initial=np.inf) <= WHOLE:
                x[features] = states[here.argmin()]
                continue
            parts = []
            for state in states:
                limits = tuple((int(j), float(v), float(v)) for j, v in zip(features, state, strict=True))
                cost = np.linalg.norm((state - self.row[features]) * allowed.factor[features])
                parts.append((float(cost), cell._replace(limits=cell.limits + limits, step=None)))
            return parts
        counted = np.flatnonzero(allowed.whole & (allowed.unit > 0))
        off = np.abs(x[counted] - np.rint(x[counted]))
        if off.max(initial=0.0) <= WHOLE:
            x[counted] = np.rint(x[counted])
            return None
        feature = int(counted[off.argmax()])
        below, above = float(np.floor(x[feature])), float(np.ceil(x[feature]))
        sides = ((below, (feature, -np.inf, below)), (above, (feature, above, np.inf)))
        base = float(np.linalg.norm(step))
        return [
            (
                float(np.hypot(base, (value - x[feature]) * allowed.factor[feature])),
                cell._replace(limits=(*cell.limits, limit), step=None),
            )
            for value, limit in sides
        ]


def _depth(item: Cell | Landing) -> int:
    """How much of a row is decided, as a rank: the most first."""
    return -(2**30) if isinstance(item, Landing) else -len(item.limits) - len(item.splits)
