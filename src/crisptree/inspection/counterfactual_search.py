"""Best-first search for the nearest row of a wanted leaf, with a small quadratic program for each region."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.inference import FlatTree, route_rows
from crisptree.inference.rounding import round_within
from crisptree.inspection.model_view import InputColumn

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]

Group = tuple[npt.NDArray[np.intp], Doubles]
"""The features of one category, and the values that they may take together.  (g,), (n, g)"""


Successors = Iterator[tuple[float, "Region | FeasibleRow"]]

OVERSHOOT_FACTORS = tuple(4.0**power for power in range(-6, 2))
"""Distances beyond a boundary to aim at, in units of the largest rounding error that a score there can have."""

OVERSHOOT_FROM_ZERO = 2.0**-16
"""The same unit in the scaled space for a boundary through values of zero, which have no rounding error."""

INTEGER_TOLERANCE = 1e-6
"""Values this close to a feasible one are rounded to it."""

ROUND_CHANGE, ROUND_SPREAD = 0.1, 0.05
"""A rounded change goes further by these shares of the change, or of the spread of its column."""

MAX_PROGRAMS = 4000
"""Quadratic programs after which the search gives up optimality and goes depth-first."""

CONSTRAINT_TOLERANCE = 1e-11
"""Largest violation of a constraint, relative to the largest distance."""

EMPTY_RESIDUAL = 1e-9
"""Residual of the least squares below which a region is empty."""

MIN_NORMAL_LENGTH = 1e-12
"""A unit normal whose part in the free features is shorter does not constrain them."""

MIN_SCORE = 2.0**-40
"""Scores of a linear leaf below this share of the sum of their terms may be ties."""


@dataclass(frozen=True, eq=False)
class FeasibleSet:
    """Constraints and costs of the search: the rows that it may return."""

    unit: Doubles  # change of a feature at a cost of 1; 0 where it is fixed  (n_features,)
    factor: Doubles  # cost of changing a feature by 1  (n_features,)
    lower: Doubles  # bounds; infinite where there is none  (n_features,)
    upper: Doubles
    integer: Flags  # features that take integers only  (n_features,)
    groups: tuple[Group, ...] = ()  # one-hot encoded categories, whose features change together

    @classmethod
    def unconstrained(cls, tree: FlatTree) -> FeasibleSet:
        """Let every feature that varied in training take any value."""
        scaling, infinite = tree.statistics.scaling, np.full(tree.n_features, np.inf)
        return cls(scaling.unit, scaling.factor, -infinite, infinite, np.zeros(tree.n_features, dtype=bool))

    @classmethod
    def of(
        cls,
        tree: FlatTree,
        row: npt.NDArray[np.float32],
        columns: tuple[InputColumn, ...],
        *,
        free: Flags,
        costs: Doubles,
        as_in_training: bool,
    ) -> FeasibleSet:
        """Constrain the columns: ``free`` flags those that may change, ``costs`` are their relative costs."""
        scaling, statistics, x = tree.statistics.scaling, tree.statistics, row.astype(np.float64)
        cost, moves = np.ones(tree.n_features), np.zeros(tree.n_features, dtype=bool)
        for column, is_free, price in zip(columns, free, costs, strict=True):
            features = column.all_features
            cost[features], moves[features] = price, is_free
            if as_in_training and column.missing:
                # Missing values stay missing and others do not become missing.
                moves[features if column.is_missing(row) else column.all_features[-1:]] = False
        factor = scaling.factor * cost
        unit = np.where(moves, np.divide(1.0, factor, out=np.zeros_like(factor), where=factor > 0), 0.0)
        unbounded = cls.unconstrained(tree)
        if not as_in_training:
            return cls(unit, factor, unbounded.lower, unbounded.upper, unbounded.integer)
        # A value outside the training range may stay, and one that is no integer need not become one.
        low = unbounded.lower if statistics.lowest is None else np.minimum(statistics.lowest, x)
        high = unbounded.upper if statistics.highest is None else np.maximum(statistics.highest, x)
        whole = unbounded.integer if statistics.whole is None else (statistics.whole > 0) & (x == np.rint(x))
        low, high, whole = low.copy(), high.copy(), whole.copy()
        groups: list[Group] = []
        for column in columns:
            own = np.array(column.features, dtype=np.intp)
            if column.kind != "number":
                low[own], high[own] = np.minimum(0.0, x[own]), np.maximum(1.0, x[own])
                whole[own] = column.kind == "boolean" and bool((x[own] == np.rint(x[own])).all())
            if column.kind == "category" and moves[own].any():
                states, stays = np.unique(np.vstack([x[own], np.eye(len(own))]), axis=0), unit[own] == 0
                groups.append((own, states[(states[:, stays] == x[own][stays]).all(axis=1)]))
        return cls(unit, factor, low, high, whole, tuple(groups))


class FeasibleRow(NamedTuple):
    """A row that prediction sends to a wanted leaf, whose model predicts what is wanted."""

    x: Singles
    leaf: int
    distance: float


class HalfSpaces(NamedTuple):
    """Half-spaces weight · x + bias ≥ 0 in which the model of a leaf predicts what is wanted."""

    weight: Doubles  # (m, n_features)
    bias: Doubles  # (m,)
    normals: Doubles  # unit normals in the scaled space
    length: Doubles
    distances: Doubles  # from the row, below 0 inside

    @classmethod
    def of(cls, weight: Doubles, bias: Doubles, row: Singles, unit: Doubles) -> HalfSpaces | None:
        """Leave out those that no change of the row affects; None if the row is outside one of these."""
        scores, length = weight @ row + bias, np.linalg.norm(weight * unit, axis=1)
        bounds = length > 0
        if (scores[~bounds] < 0).any():
            return None
        weight, length = weight[bounds], length[bounds]
        return cls(weight, bias[bounds], weight * unit / length[:, None], length, -scores[bounds] / length)


class LeafGoals(NamedTuple):
    """What linear leaves shall predict.

    ``is_met`` tells whether a leaf predicts it for a row. ``parts`` returns, for a leaf, the weights and offsets of the
    half-spaces of every convex part in which it does.
    """

    is_met: Callable[[int, Singles], bool]
    parts: Callable[[int], Iterator[tuple[Doubles, Doubles]]]


class Region(NamedTuple):
    """A part of the region of a node: the splits and signs of its half-spaces, the distance to keep from each boundary,
    bounds of single features, the step δ to its nearest point, None until it is computed, and in a linear leaf the
    half-spaces of its model, whose offsets follow those of the splits.
    """

    node: int
    splits: tuple[int, ...]
    signs: tuple[float, ...]
    offsets: tuple[float, ...]
    limits: tuple[tuple[int, float, float], ...]
    step: Doubles | None
    goal: HalfSpaces | None = None


class CounterfactualSearch:
    """Best-first search over nodes, by a lower bound of their distance and then by the distance itself.

    Integers and categories are found by branch and bound: a leaf whose nearest point is infeasible is split there.
    """

    def __init__(
        self,
        tree: FlatTree,
        row: Singles,
        wanted: Flags,
        feasible: FeasibleSet | None = None,
        max_programs: int = MAX_PROGRAMS,
        goals: LeafGoals | None = None,
    ) -> None:
        self.tree, self.row, self.wanted, self.max_programs = tree, row, wanted, max_programs
        self.goals = goals
        self.feasible = FeasibleSet.unconstrained(tree) if feasible is None else feasible
        weight = tree.weight.astype(np.float64)
        scaled = weight * self.feasible.unit
        self.length = np.linalg.norm(scaled, axis=1)
        # A split without weights has no boundary: all rows go the same way.
        self.normals = np.divide(scaled, self.length[:, None], out=scaled, where=self.length[:, None] > 0)
        self.scores = weight @ row + tree.bias
        self.has_wanted_leaf = tree.structure.sums_below(wanted.astype(np.float64)) > 0
        self.n_programs = 0
        """Number of quadratic programs solved."""

    @property
    def is_exact(self) -> bool:
        """True while the first row found is the nearest; beyond the limit the search goes depth-first."""
        return self.n_programs <= self.max_programs

    def accepts(self, leaf: int, x: Singles) -> bool:
        """Return True if a leaf is wanted, and its model predicts what is wanted for a row."""
        return bool(self.wanted[leaf]) and (self.goals is None or self.goals.is_met(leaf, x))

    def iterate_rows(self) -> Iterator[FeasibleRow]:
        """Yield feasible rows of wanted leaves, nearest first."""
        ticket = count()  # breaks ties
        start = Region(0, (), (), (), (), np.zeros(len(self.row)))
        queue: list[tuple[int, float, int, Region | FeasibleRow]] = [(0, 0.0, next(ticket), start)]
        best_first = True
        while queue:
            if best_first and not self.is_exact:
                best_first = False
                queue = [(_depth(item), distance, number, item) for _, distance, number, item in queue]
                heapq.heapify(queue)
            _, distance, _, item = heapq.heappop(queue)
            if isinstance(item, FeasibleRow):
                yield item
                continue
            if self.n_programs > 2 * self.max_programs:
                return
            for bound, successor in self._successors(item, distance):
                depth = 0 if best_first else _depth(successor)
                heapq.heappush(queue, (depth, max(distance, bound), next(ticket), successor))

    def _successors(self, region: Region, distance: float) -> Successors:
        """Expand a region: itself with its step, a feasible row, or the parts of it that hold a wanted leaf.

        If P is the nearest point of a convex region, any other point is at least √(|P|² + |from P|²) away.
        """
        if region.step is None:
            step = self._solve(region)
            if step is not None:
                yield float(np.linalg.norm(step)), region._replace(step=step)
            return
        if region.node >= self.tree.structure.n_splits:
            if self.goals is not None and region.goal is None:
                yield from self._divide_leaf(region, region.step, distance, self.goals)
                return
            yield from self._visit_leaf(region, region.step, distance)
            return
        split, structure = region.node, self.tree.structure
        sides = ((structure.left_nodes[split], -1.0), (structure.right_nodes[split], 1.0))
        for node, sign in ((int(node), sign) for node, sign in sides if self.has_wanted_leaf[node]):
            if self.length[split] == 0:
                if (self.scores[split] > 0) == (sign > 0):
                    yield distance, region._replace(node=node)
                continue
            position = self.normals[split] @ region.step + self.scores[split] / self.length[split]
            turns = ((*region.splits, split), (*region.signs, sign), (*region.offsets, 0.0))
            child, missing = Region(node, *turns, region.limits, region.step), -sign * position
            yield (distance, child) if missing <= 0 else (float(np.hypot(distance, missing)), child._replace(step=None))

    def _divide_leaf(self, region: Region, step: Doubles, distance: float, goals: LeafGoals) -> Successors:
        """Divide the region of a linear leaf into the parts in which its model predicts what is wanted."""
        for weight, bias in goals.parts(region.node - self.tree.structure.n_splits):
            goal = HalfSpaces.of(weight, bias, self.row, self.feasible.unit)
            if goal is None:
                continue
            part = region._replace(offsets=(*region.offsets, *[0.0] * len(goal.length)), goal=goal)
            missing = float((goal.distances - goal.normals @ step).max(initial=0.0))
            yield (distance, part) if missing <= 0 else (float(np.hypot(distance, missing)), part._replace(step=None))

    def _solve(self, region: Region) -> Doubles | None:
        """Compute the step to the nearest point of a region."""
        splits, signs = list(region.splits), np.array(region.signs)
        self.n_programs += 1
        normals, distances = signs[:, None] * self.normals[splits], -signs * self.scores[splits] / self.length[splits]
        if region.goal is not None:
            normals = np.concatenate([normals, region.goal.normals])
            distances = np.concatenate([distances, region.goal.distances])
        low, high = self.feasible.lower.copy(), self.feasible.upper.copy()
        for feature, least, largest in region.limits:
            low[feature], high[feature] = max(low[feature], least), min(high[feature], largest)
        moves = self.feasible.unit > 0
        with np.errstate(invalid="ignore"):  # an infinite bound of a fixed feature
            low = np.where(moves, (low - self.row) * self.feasible.factor, 0.0)
            high = np.where(moves, (high - self.row) * self.feasible.factor, 0.0)
        return project_onto_polytope(normals, np.array(region.offsets) + distances, low, high)

    def _visit_leaf(self, region: Region, step: Doubles, distance: float) -> Successors:
        """Yield the nearest point of a leaf if it is feasible and routed there; else the parts around it."""
        x = self.row + step * self.feasible.unit
        parts = self._branch(region, step, x)
        if parts is not None:
            yield from parts
            return
        with np.errstate(over="ignore", under="ignore"):
            rounded = x.astype(np.float32)
        if not np.isfinite(rounded).all():
            return
        leaf = int(route_rows(self.tree, rounded[None], 1)[0])
        if self.accepts(leaf, rounded):
            moved = (rounded.astype(np.float64) - self.row) * self.feasible.factor
            yield float(np.linalg.norm(moved)), FeasibleRow(rounded, leaf, float(np.linalg.norm(moved)))
            return
        farther = self._increase_offsets(region, rounded)
        if farther is not None:
            yield distance, region._replace(offsets=farther, step=None)

    def _increase_offsets(self, region: Region, rounded: Singles) -> tuple[float, ...] | None:
        """Increase the offsets from boundaries that float32 rounding has crossed; None if that does not help."""
        splits = list(region.splits)
        size = np.abs(self.row) + np.abs(rounded.astype(np.float64) - self.row)
        terms = np.abs(self.tree.weight[splits]) @ size + np.abs(self.tree.bias[splits])
        length, turns = self.length[splits], zip(region.splits, region.signs, strict=True)
        is_inside = [(self.tree.scores(rounded[None], split)[0] > 0) == (sign > 0) for split, sign in turns]
        if region.goal is not None:
            goal = region.goal
            goal_terms = np.abs(goal.weight) @ size + np.abs(goal.bias)
            is_inside += (goal.weight @ rounded + goal.bias > MIN_SCORE * goal_terms).tolist()
            terms, length = np.concatenate([terms, goal_terms]), np.concatenate([length, goal.length])
        rounding = np.where(terms > 0, (len(self.row) + 2) * 2.0**-24 * terms / length, OVERSHOOT_FROM_ZERO)
        offsets = list(region.offsets)
        for index in np.flatnonzero(~np.array(is_inside, dtype=bool)):
            larger = [f * rounding[index] for f in OVERSHOOT_FACTORS if f * rounding[index] > offsets[index]]
            if not larger:
                return None
            offsets[index] = float(larger[0])
        return tuple(offsets) if tuple(offsets) != region.offsets else None

    def _branch(self, region: Region, step: Doubles, x: Doubles) -> list[tuple[float, Region]] | None:
        """Split a region so that its infeasible nearest point x is excluded; None where x is feasible.

        Values within the tolerance of feasible ones are rounded to them, in place.
        """
        feasible = self.feasible
        for features, states in feasible.groups:
            distances = np.abs(states - x[features]).max(axis=1, initial=0.0)
            if distances.min(initial=np.inf) <= INTEGER_TOLERANCE:
                x[features] = states[distances.argmin()]
                continue
            parts = []
            for state in states:
                limits = tuple((int(j), float(v), float(v)) for j, v in zip(features, state, strict=True))
                cost = np.linalg.norm((state - self.row[features]) * feasible.factor[features])
                parts.append((float(cost), region._replace(limits=region.limits + limits, step=None)))
            return parts
        integers = np.flatnonzero(feasible.integer & (feasible.unit > 0))
        off = np.abs(x[integers] - np.rint(x[integers]))
        if off.max(initial=0.0) <= INTEGER_TOLERANCE:
            x[integers] = np.rint(x[integers])
            return None
        feature = int(integers[off.argmax()])
        below, above = float(np.floor(x[feature])), float(np.ceil(x[feature]))
        sides = ((below, (feature, -np.inf, below)), (above, (feature, above, np.inf)))
        base = float(np.linalg.norm(step))
        return [
            (
                float(np.hypot(base, (value - x[feature]) * feasible.factor[feature])),
                region._replace(limits=(*region.limits, limit), step=None),
            )
            for value, limit in sides
        ]


def round_changes(search: CounterfactualSearch, nearest: FeasibleRow, numbers: Sequence[int]) -> FeasibleRow:
    """Round changed numbers, the largest change first, as long as the row stays feasible and accepted.

    A number moves on in the direction of its change first, by ``ROUND_CHANGE`` of the change or ``ROUND_SPREAD`` of its
    spread, or else to either side.
    """
    feasible, row = search.feasible, search.row.astype(np.float64)
    x, spread = nearest.x.copy(), search.tree.statistics.scaling.spread
    sizes = np.abs(x - row) * feasible.factor
    for feature in sorted((j for j in numbers if x[j] != row[j]), key=lambda j: -sizes[j]):
        value, change = float(x[feature]), float(x[feature]) - row[feature]
        room = max(ROUND_CHANGE * abs(change), ROUND_SPREAD * float(spread[feature]))
        beyond = (value, value + room) if change > 0 else (value - room, value)
        either = (
            (max(value - room, row[feature]), value + room)
            if change > 0
            else (value - room, min(value + room, row[feature]))
        )
        for low, high in (beyond, either):
            low, high = max(low, float(feasible.lower[feature])), min(high, float(feasible.upper[feature]))
            if feasible.integer[feature]:
                low, high = np.ceil(low), np.floor(high)
            if low > high:
                continue
            tried = x.copy()
            tried[feature] = round_within(float(low), float(high), near=value)
            leaf = int(route_rows(search.tree, tried[None], 1)[0])
            if search.accepts(leaf, tried) and feasible.lower[feature] <= tried[feature] <= feasible.upper[feature]:
                x, nearest = tried, nearest._replace(leaf=leaf)
                break
    distance = float(np.linalg.norm((x.astype(np.float64) - row) * feasible.factor))
    return FeasibleRow(x, nearest.leaf, distance)


def _depth(item: Region | FeasibleRow) -> int:
    """Return the rank for depth-first search: the more constraints, the earlier."""
    return -(2**30) if isinstance(item, FeasibleRow) else -len(item.limits) - len(item.offsets)


def project_onto_halfspaces(normals: Doubles, distances: Doubles) -> Doubles | None:
    """Return the smallest δ with normals · δ ≥ distances, or None where there is none.  (m, p), (m,) → (p,)

    The normals are unit vectors; distances may be negative.

    This is least distance programming by non-negative least squares, after Lawson and Hanson: with residuals r of
    min |E u − e|, u ≥ 0, for E = [normalsᵀ; distancesᵀ] and the last unit vector e, δ = −r / r_last, and the region is
    empty where r = 0.
    """
    from scipy.optimize import nnls

    size = float(distances.max(initial=0.0))
    if size <= 0:
        return np.zeros(normals.shape[1])
    corners = np.linalg.qr(normals.T, mode="r")  # as many rows as half-spaces, however many features
    rows = np.vstack([corners, distances / size])
    target = np.zeros(len(rows))
    target[-1] = 1.0
    multipliers, rest = nnls(rows, target)
    if rest < EMPTY_RESIDUAL:
        return None
    active = np.flatnonzero(multipliers)
    # Positive multipliers mark the active half-spaces; on their boundaries the solution is exact.
    return np.asarray(np.linalg.lstsq(normals[active], distances[active], rcond=None)[0], dtype=np.float64)


def project_onto_polytope(normals: Doubles, distances: Doubles, low: Doubles, high: Doubles) -> Doubles | None:
    """Return the smallest δ that also satisfies low ≤ δ ≤ high.  (m, p), (m,), (p,), (p,) → (p,)

    Bounds are added to the quadratic program when a solution violates them: most of many features never reach theirs.
    """
    if np.isinf(low).all() and np.isinf(high).all():
        return project_onto_halfspaces(normals, distances)
    if (low > high).any():
        return None
    moves = low < high
    step = np.where(moves, 0.0, low)
    rest, inside = distances - normals @ step, normals[:, moves]
    low, high = low[moves], high[moves]
    length = np.linalg.norm(inside, axis=1)
    constrains = length > MIN_NORMAL_LENGTH
    if (rest[~constrains] > CONSTRAINT_TOLERANCE * max(1.0, float(np.abs(distances).max(initial=0.0)))).any():
        return None
    inside, rest = inside[constrains] / length[constrains, None], rest[constrains] / length[constrains]
    under = over = np.zeros(len(low), dtype=bool)
    while True:
        bounds, offsets = np.zeros((under.sum() + over.sum(), len(low))), np.concatenate([low[under], -high[over]])
        bounds[np.arange(len(bounds)), np.concatenate([np.flatnonzero(under), np.flatnonzero(over)])] = 1.0
        bounds[under.sum() :] *= -1.0
        solution = project_onto_halfspaces(np.vstack([inside, bounds]), np.concatenate([rest, offsets]))
        if solution is None:
            return None
        more_under, more_over = (solution < low) & ~under, (solution > high) & ~over
        if not (more_under.any() or more_over.any()):
            step[moves] = np.clip(solution, low, high)
            return step
        under, over = under | more_under, over | more_over
