"""The smallest change that gives a row another class."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.explain.projection import nearest_point
from crisptree.inference import FlatTree, route_rows
from crisptree.view.checks import whole_number
from crisptree.view.model import linear, view_of
from crisptree.view.paths import Push, largest_pushes

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]

OVERSHOOTS = (0.0, *(4.0**power for power in range(-6, 2)))
"""How far beyond a boundary to land, in units of the largest rounding error that a score there can have."""


@dataclass(frozen=True, eq=False)
class Change:
    """A row changed just so much that the tree gives it another class; ``print`` it for a text.

    Parameters
    ----------
    x : ndarray of shape (n_features,), float32
        The changed row, in raw units; of a Pipeline in those of the features that reach the tree.
    predicted : object
        The class label that the tree gives it.
    leaf : int
        The leaf that it reaches.
    distance : float
        The length of the change in the scale of the training: for scale="feature" in spreads of the features.
    changes : tuple of Push
        The largest changes in that scale, largest first: ``value`` is the feature's value before, ``amount`` what is
        added to it, both in raw units.
    """

    x: Singles
    predicted: Any
    leaf: int
    distance: float
    changes: tuple[Push, ...]

    def __str__(self) -> str:
        lines = [f"{self.predicted} (leaf {self.leaf}) at a distance of {self.distance:.4g}"]
        lines += [f"    {p.name}: {p.value:.5g} -> {p.value + p.amount:.5g} ({p.amount:+.3g})" for p in self.changes]
        return "\n".join(lines)


def nearest_other(model: Any, x: Any, *, to: Any = None, top: int = 5) -> Change | None:
    """The nearest point, in the scale of the training, to which a tree of hyperplanes gives another class.

    A leaf is the meeting of at most ``max_depth`` half-spaces, so the nearest point of one is a small quadratic
    programme. The search takes nodes by their distance, so it solves only those that may hold the nearest point. What
    it returns has been through the prediction itself, in single precision; a leaf so thin that no float32 row
    enters it is passed over.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator with linear splits, or a fitted Pipeline that ends in one.
    x : array-like of shape (n_features,), (1, n_features) or the model's image shape
        One row. Features that were constant in training stay as they are. A Pipeline's earlier steps are not undone:
        the change is one of the features that leave them, in their units, and ``Change.x`` is a row of these.
    to : class label, default=None
        The class to reach; None for any but the predicted one. The predicted one itself needs no change.
    top : int, default=5
        How many changes to name.

    Returns
    -------
    Change or None
        None where no leaf of such a class can be entered.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    >>> change = explain.nearest_other(model, [1.0])
    >>> str(change.predicted), bool(1 < change.x[0] < 8), str(model.predict([change.x])[0])
    ('high', True, 'high')
    """
    view = view_of(model, "explain.nearest_other")
    tree, row = linear(view.tree, "explain.nearest_other"), view.row(x)[0]
    most = whole_number("top", top, 0)
    answers, labels = tree.labels(), view.classes.tolist()
    if to is None:
        wanted = answers != answers[view.leaves(row[None])[0]]
    elif np.ndim(to) or to not in labels:
        raise ValueError(f"`to` must be one of the classes {labels}; got {to!r}.")
    else:
        wanted = answers == labels.index(to)
    found = next(Search(tree, row, wanted).landings(), None) if wanted.any() else None
    if found is None:
        return None
    moved = found.x.astype(np.float64) - row
    changes = largest_pushes(view, row, moved, moved * tree.statistics.scaling.factor, most)
    return Change(found.x, view.predicted(found.leaf), found.leaf, found.distance, changes)


class _Landing(NamedTuple):
    """A row that the kernel sends to a wanted leaf."""

    x: Singles
    leaf: int
    distance: float


class _Cell(NamedTuple):
    """A node's region: the turns that lead to it, and the step δ to its nearest point; None while it is not known."""

    node: int
    splits: tuple[int, ...]
    signs: tuple[float, ...]
    step: Doubles | None


class Search:
    """Nodes, nearest first: each with a bound of its distance, then with the distance itself, then landed in."""

    def __init__(self, tree: FlatTree, row: Singles, wanted: Flags) -> None:
        self.tree, self.row, self.wanted = tree, row, wanted
        scaling = tree.statistics.scaling
        self.unit, self.factor = scaling.unit, scaling.factor
        weight = tree.weight.astype(np.float64)
        scaled = weight * self.unit
        self.length = np.linalg.norm(scaled, axis=1)
        # A split without weights has no boundary: all rows turn as this one does.
        self.normals = np.divide(scaled, self.length[:, None], out=scaled, where=self.length[:, None] > 0)
        self.scores = weight @ row + tree.bias
        self.holds = tree.structure.sums_below(wanted.astype(np.float64)) > 0
        self.solved = 0
        """How many quadratic programmes were needed."""

    def landings(self) -> Iterator[_Landing]:
        """Wanted leaves from near to far, with the point to land on."""
        ticket = count()  # equal distances: first come, first served
        start = _Cell(0, (), (), np.zeros(len(self.row)))
        queue: list[tuple[float, int, _Cell | _Landing]] = [(0.0, next(ticket), start)]
        while queue:
            distance, _, item = heapq.heappop(queue)
            if isinstance(item, _Landing):
                yield item
                continue
            for bound, successor in self._successors(item, distance):
                heapq.heappush(queue, (max(distance, bound), next(ticket), successor))

    def _successors(self, cell: _Cell, distance: float) -> Iterator[tuple[float, _Cell | _Landing]]:
        """What takes the place of a cell: itself with its step, a landing, or both sides that hold a wanted leaf.

        If P is the nearest point of a convex cell, any other point is at least √(|P|² + |from P|²) away.
        """
        if cell.step is None:
            step = self._nearest(cell, np.zeros(len(cell.splits)))
            if step is not None:
                yield float(np.linalg.norm(step)), cell._replace(step=step)
            return
        if cell.node >= self.tree.structure.n_splits:
            landing = self._landed(cell)
            if landing is not None:
                yield landing.distance, landing
            return
        split, structure = cell.node, self.tree.structure
        sides = ((structure.left_nodes[split], -1.0), (structure.right_nodes[split], 1.0))
        for node, sign in ((int(node), sign) for node, sign in sides if self.holds[node]):
            if self.length[split] == 0:
                if (self.scores[split] > 0) == (sign > 0):
                    yield distance, cell._replace(node=node)
                continue
            here = self.normals[split] @ cell.step + self.scores[split] / self.length[split]
            child = _Cell(node, (*cell.splits, split), (*cell.signs, sign), cell.step)
            missing = -sign * here
            yield (distance, child) if missing <= 0 else (float(np.hypot(distance, missing)), child._replace(step=None))

    def _nearest(self, cell: _Cell, beyond: Doubles) -> Doubles | None:
        """The step to the cell's nearest point that lies so far beyond each of its boundaries."""
        splits, signs = list(cell.splits), np.array(cell.signs)
        self.solved += 1
        reach = beyond - signs * self.scores[splits] / self.length[splits]
        return nearest_point(signs[:, None] * self.normals[splits], reach)

    def _landed(self, cell: _Cell) -> _Landing | None:
        """A row near the cell's nearest point for which the kernel agrees; None where the cell is too thin for that."""
        assert cell.step is not None
        splits = list(cell.splits)
        size = np.abs(self.row) + np.abs(cell.step) * self.unit
        terms = np.abs(self.tree.weight[splits]) @ size + np.abs(self.tree.bias[splits])
        rounding = (len(self.row) + 2) * 2.0**-24 * terms / self.length[splits]
        for overshoot in OVERSHOOTS:
            step = self._nearest(cell, overshoot * rounding) if overshoot else cell.step
            if step is None:
                return None
            with np.errstate(over="ignore"):
                x = (self.row + step * self.unit).astype(np.float32)
            if not np.isfinite(x).all():
                return None
            leaf = int(route_rows(self.tree, x[None], 1)[0])
            if self.wanted[leaf]:
                return _Landing(x, leaf, float(np.linalg.norm((x.astype(np.float64) - self.row) * self.factor)))
        return None
