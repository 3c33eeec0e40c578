"""Layout of a tree plot: positions of nodes and outlines of arrows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from crisptree.structure import TreeStructure

Doubles = npt.NDArray[np.float64]

END = 0.8
"""Side of the bar chart at an end, in distances of two neighbouring ends."""

FILLED = 0.86
"""Share of the space between two neighbours that a split takes."""

MIN_DROP, MAX_DROP, SLOPE = 0.7, 1.7, 0.18
"""Limits of the vertical distance of levels, and its ratio to the horizontal distance between them."""


@dataclass(frozen=True, eq=False)
class TreeLayout:
    """Positions of the drawn nodes; one unit is the distance of two neighbouring ends.

    Arrays are indexed by node, splits first, then leaves. An end is a node that is drawn without children: a leaf, or a
    split at the maximal depth.
    """

    nodes: list[int]  # all that are drawn
    ends: list[int]  # from left to right
    edges: list[tuple[int, int, bool]]  # parent, child, whether it is the right one
    x: Doubles  # the middle of every node; NaN where nothing is drawn
    y: Doubles
    width: Doubles  # splits of one level are alike, and no level's are larger than those above
    height: Doubles

    def is_end(self, node: int) -> bool:
        return node in self.ends

    def outline(self, node: int) -> tuple[float, float, float, float]:
        """Return the left, right, lower and upper edge of a node."""
        x, y, width, height = (float(part[node]) for part in (self.x, self.y, self.width, self.height))
        return x - width / 2, x + width / 2, y - height / 2, y + height / 2


def compute_layout(
    structure: TreeStructure, max_depth: int | None = None, *, widest: float = 2, aspect: float = 1, lowest: float = 0
) -> TreeLayout:
    """Compute positions: ends side by side from left to right, a split above the middle of its children.

    Splits at ``max_depth`` become ends. A split is ``widest`` wide where there is room, and ``aspect`` times as tall,
    but at least ``lowest``.
    """
    drawn, nodes = structure.cut(structure.depth if max_depth is None else max_depth)
    is_end, ends = np.arange(drawn.n_nodes) >= drawn.n_splits, drawn.n_splits + drawn.leaves_left_to_right
    children = np.stack([drawn.left_nodes, drawn.right_nodes], axis=1)
    x = np.zeros(drawn.n_nodes)
    x[ends] = np.arange(drawn.n_leaves)
    for split in reversed(range(drawn.n_splits)):
        x[split] = x[children[split]].mean()
    width = np.where(is_end, END, _split_widths(x, drawn, is_end, widest)[drawn.node_depths])
    height = np.where(is_end, END, np.maximum(width * aspect, lowest))
    y = _levels(x, height, drawn)[drawn.node_depths]
    places = np.full((4, structure.n_nodes), np.nan)
    places[:, nodes] = x, y, width, height
    edges = [
        (int(nodes[split]), int(nodes[child]), goes_right)
        for split, both in enumerate(children)
        for child, goes_right in zip(both, (False, True), strict=True)
    ]
    return TreeLayout(sorted(nodes.tolist()), nodes[ends].tolist(), edges, *places)


def _split_widths(x: Doubles, drawn: TreeStructure, is_end: npt.NDArray[np.bool_], widest: float) -> Doubles:
    """Compute the width of the splits of every level from the nearest neighbour.  (n_levels,)"""
    widths, width = [], widest
    for level in range(drawn.depth + 1):
        row = np.flatnonzero(drawn.node_depths == level)
        row = row[np.argsort(x[row])]
        gaps, left, right = FILLED * np.diff(x[row]), is_end[row][:-1], is_end[row][1:]
        # An end keeps its own width, whatever stands beside it.
        space = np.where(left != right, 2 * (gaps - END / 2), gaps)[~(left & right)]
        width = float(space.min(initial=width))
        widths.append(max(width, END))
    return np.array(widths)


def _levels(x: Doubles, height: Doubles, drawn: TreeStructure) -> Doubles:
    """Compute the center of every level, downwards from zero at the root.  (n_levels,)"""
    levels = [drawn.node_depths == level for level in range(drawn.depth + 1)]
    middles, sideways = [0.0], np.abs(x - x[drawn.parents])
    for above, level in pairwise(levels):
        drop = float(np.clip(SLOPE * sideways[level].max(), MIN_DROP, MAX_DROP))
        middles.append(middles[-1] - height[above].max() / 2 - drop - height[level].max() / 2)
    return np.array(middles)


def make_arrow(start: npt.ArrayLike, end: npt.ArrayLike, thickness: float) -> Doubles:
    """Compute the outline of an arrow from start to end.  (7, 2)

    Examples
    --------
    >>> make_arrow((0, 0), (2, 0), 0.1)[3].tolist()  # its tip
    [2.0, 0.0]
    """
    tail, tip = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    length = float(np.linalg.norm(tip - tail))
    along = (tip - tail) / max(length, np.finfo(float).tiny)
    across = np.array([-along[1], along[0]]) / 2
    head = min(0.09 + 0.7 * thickness, length)
    broad = thickness + 0.09 + 0.3 * thickness
    neck = tip - head * along
    half, wing = thickness * across, broad * across
    return np.array([tail + half, neck + half, neck + wing, tip, neck - wing, neck - half, tail - half])


def leaf_letters(number: int) -> str:
    """Return A, B, … Z, AA, AB, … for 0, 1, …: labels of leaves from left to right.

    Examples
    --------
    >>> leaf_letters(0), leaf_letters(25), leaf_letters(26), leaf_letters(701)
    ('A', 'Z', 'AA', 'ZZ')
    """
    word = ""
    while number >= 0:
        word = chr(ord("A") + number % 26) + word
        number = number // 26 - 1
    return word
