"""OC1: oblique splits by coordinate descent (Murthy, Kasif & Salzberg 1994).

One coefficient moves at a time, to the value with the highest information gain of all. With s_j the score of row j
and r_j the value that the coefficient multiplies, the row goes right iff s_j + α r_j > 0: it changes sides at
α = −s_j / r_j, so sorting these crossings gives the best α exactly. A step along a random direction, found by the
same search, leaves local optima. The descent starts from the axis-aligned split and from random directions, all of
them for many leaves side by side; the best end wins, and the axis-aligned split itself competes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch

from crisptree.learning.cart import GAIN_DIGITS, LeafLimits, best_crossings
from crisptree.learning.engines.base import Groups
from crisptree.native import training
from crisptree.splits import ObliqueSplits
from experiments.searches.thresholds import HyperplaneArrays, NodeRows, SearchContext, axis_aligned_hyperplanes

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

N_STARTS = 5
"""The axis-aligned split and four random directions."""

MAX_TRIES = 2000
"""Coefficients tried at most between two random steps, in a new random order every time; the descent ends once all of
them in a row have brought no improvement."""

MAX_JUMPS = 5
"""Random steps that a start may take; one that does not help ends it."""

MAX_ROWS = 8000
"""The descent of a larger leaf uses a random subsample of so many rows; its thresholds are set on all of them."""

MIN_IMPROVEMENT = 10.0**-GAIN_DIGITS
"""A smaller gain is rounding."""

VALUES_PER_CHUNK = 2**19
"""Leaves of similar size descend as one batch, in chunks of about so many rows times starts."""


def oc1_splits(
    context: SearchContext,
    groups: Groups,
    n_starts: int = N_STARTS,
    n_tries: int = MAX_TRIES,
    n_jumps: int = MAX_JUMPS,
    max_rows: int = MAX_ROWS,
) -> ObliqueSplits:
    """Find one split for every group of rows; the numbers are explained at the top of this file."""
    n_nodes, n_features = len(groups.sizes), context.samples.n_features
    axis = axis_aligned_hyperplanes(context, groups)
    random = np.random.default_rng(context.seed())
    # Drawn before any row is seen, so that a repeated row changes nothing.
    directions = _unit(random.normal(size=(n_starts - 1, n_features)))
    jumps = _unit(random.normal(size=(n_jumps, n_starts, n_features + 1)))
    coordinates = _orders(n_jumps + 1, n_tries, n_features + 1, random)
    nodes = list(context.nodes(groups))
    hyperplanes = HyperplaneArrays.idle(n_nodes, n_features)
    for chunk in _chunks([min(len(node.y), max_rows) for node in nodes], n_starts):
        part = [_subsample(nodes[number], max_rows, random) for number in chunk]
        subsampled = any(len(nodes[number].y) > max_rows for number in chunk)
        lines = _Descents(part, context.n_classes, LeafLimits() if subsampled else context.leaf_limits)
        lines.start(axis.weight[chunk], directions)
        lines.descend(coordinates, jumps)
        for number, weights in zip(chunk, lines.directions(), strict=True):
            candidates = np.concatenate([axis.weight[number][None], weights])
            hyperplanes.set_best(number, nodes[number], candidates, context)
    return context.splits(hyperplanes)


def _chunks(sizes: list[int], n_starts: int) -> Iterator[list[int]]:
    """Node indices in chunks of similar size, so that little is padded."""
    chunk: list[int] = []
    for number in np.argsort(sizes, kind="stable").tolist():
        full = (len(chunk) + 1) * sizes[number] * n_starts > VALUES_PER_CHUNK
        if chunk and (full or sizes[number] > 1.5 * sizes[chunk[0]]):
            yield chunk
            chunk = []
        chunk.append(number)
    if chunk:
        yield chunk


def _orders(n_rounds: int, n_tries: int, n: int, random: np.random.Generator) -> Ints:
    """Draw random permutations of n numbers for every round.  (n_rounds, n_tries)"""
    orders = [np.concatenate([random.permutation(n) for _ in range(n_tries // n + 1)]) for _ in range(n_rounds)]
    return np.stack(orders)[:, :n_tries]


def _subsample(node: NodeRows, max_rows: int, random: np.random.Generator) -> NodeRows:
    if len(node.y) <= max_rows:
        return node
    rows = np.sort(random.choice(len(node.y), max_rows, replace=False))
    return NodeRows(node.x[rows], node.y[rows], node.weight[rows])


def _unit(vectors: Doubles) -> Doubles:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


class _Descents:
    """HyperplaneArrays of many nodes in descent, several for each: line l belongs to node l // n_starts.

    Rows stand one node after the other in ``x``; ``place`` (n_nodes, n) says which belong to a node, filled up with
    rows of weight zero.
    """

    def __init__(self, nodes: list[NodeRows], n_classes: int, leaf_limits: LeafLimits) -> None:
        self.n_classes, self.leaf_limits = n_classes, leaf_limits
        self.x = np.concatenate([node.x for node in nodes])
        sizes = np.array([len(node.y) for node in nodes])
        self.ends = np.cumsum(sizes)
        column = np.arange(sizes.max())
        is_present = column < sizes[:, None]
        self.place = np.where(is_present, (self.ends - sizes)[:, None] + column, 0)
        self.rows_y = np.concatenate([node.y for node in nodes])
        self.rows_weight = np.concatenate([node.weight for node in nodes])
        self.y = self.rows_y[self.place]
        self.weight = np.where(is_present, self.rows_weight[self.place], 0.0)

    def start(self, axis: npt.NDArray[np.floating], directions: Doubles) -> None:
        """Start from the axis and from random directions, each at its best threshold."""
        n_nodes, n_features = axis.shape
        self.n_starts = 1 + len(directions)
        self.beta = np.zeros((n_nodes, self.n_starts, n_features + 1))
        self.beta[:, 0, :-1] = axis
        self.beta[:, 1:, :-1] = directions
        self.beta = self.beta.reshape(-1, n_features + 1)
        feature = np.abs(axis).argmax(axis=1)
        of_axis = self.x[self.place, feature[:, None]] * (axis.max(axis=1) > 0)[:, None]
        random = (self.x @ directions.T.astype(np.float32))[self.place].transpose(0, 2, 1)
        scores = np.concatenate([of_axis[:, None], random], axis=1).astype(np.float64)
        self.scores = scores.reshape(len(self.beta), -1)
        node = np.arange(len(self.beta)) // self.n_starts
        y, weight = self.y[node], self.weight[node]
        points = np.where(weight == 0, np.inf, self.scores)
        best = best_crossings(points, points < np.inf, y, weight, self.n_classes, self.leaf_limits)
        self.beta[:, -1] = -best.threshold
        self.scores -= best.threshold[:, None]
        self.gain = best.gain

    def descend(self, coordinates: Ints, jumps: Doubles) -> None:
        """Rounds of single coefficients, with a random step between; a line whose step fails stops.

        ``coordinates`` (n_rounds, n_tries), ``jumps`` (n_rounds − 1, n_starts, n_features + 1)
        """
        if training is None:
            self.descend_reference(coordinates, jumps)
            return
        rows = (np.ascontiguousarray(self.x.T), self.rows_y, self.rows_weight, self.ends)
        now = (self.beta, self.scores, self.gain)
        training.descend(
            *rows, *now, self.n_classes, coordinates, jumps, tuple(self.leaf_limits), torch.get_num_threads()
        )

    def descend_reference(self, coordinates: Ints, jumps: Doubles) -> None:
        """Define ``descend`` in NumPy, for all lines in parallel."""
        active = np.flatnonzero(self.gain >= 0)
        for number, order in enumerate(coordinates):
            if number and len(active):
                jump = jumps[number - 1]
                slopes = self.x.astype(np.float64) @ jump[:, :-1].T + jump[:, -1]
                start = active % self.n_starts
                slope = slopes[self.place[active // self.n_starts], start[:, None]]
                moved, step = self._improve(active, slope)
                self.beta[moved] += step[:, None] * jump[moved % self.n_starts]
                active = moved
            self._round(active, order)

    def _round(self, active: Ints, order: Ints) -> None:
        in_vain = np.zeros(len(self.beta), dtype=np.int64)
        for coordinate in order:
            going = active[in_vain[active] < self.beta.shape[1]]
            if not len(going):
                return
            moved, step = self._improve(going, self._values(going, int(coordinate)))
            self.beta[moved, coordinate] += step
            in_vain[going] += 1
            in_vain[moved] = 0

    def _values(self, lines: Ints, coordinate: int) -> Doubles:
        """Return the feature values of a coefficient; the last coefficient is the bias.  (l, n)"""
        place = self.place[lines // self.n_starts]
        if coordinate == self.x.shape[1]:
            return np.ones(place.shape)
        return self.x[place, coordinate].astype(np.float64)

    def _improve(self, lines: Ints, slope: Doubles) -> tuple[Ints, Doubles]:
        """Move the scores of each line along their slopes to the highest gain, if that is higher.

        Return the lines that have moved, and how far: the caller updates their coefficients.
        """
        node, scores = lines // self.n_starts, self.scores[lines]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            points = -scores / slope
        moves = np.isfinite(points) & (self.weight[node] > 0)  # a row that is not there crosses nothing
        right = np.where(moves, slope < 0, scores > 0)
        points[~moves] = np.inf
        best = best_crossings(points, right, self.y[node], self.weight[node], self.n_classes, self.leaf_limits)
        better = best.gain > self.gain[lines] + MIN_IMPROVEMENT
        moved, step = lines[better], best.threshold[better]
        self.scores[moved] += step[:, None] * slope[better]
        self.gain[moved] = best.gain[better]
        return moved, step

    def directions(self) -> npt.NDArray[np.float32]:
        """Return the unit directions of the lines.  (n_nodes, n_starts, n_features)"""
        unit = _unit(self.beta[:, :-1]).astype(np.float32)
        return unit.reshape(len(self.ends), self.n_starts, -1)
