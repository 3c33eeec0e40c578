"""Where the nodes of a tree and its arrows stand in a drawing: numbers only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crisptree.structure import TreeStructure

Doubles = npt.NDArray[np.float64]

END = 0.8
"""Side of the bar chart at an end, in distances of two neighbouring ends."""

FILLED = 0.86
"""How much of the space between two neighbours a split takes."""

LEAST_DROP, MOST_DROP, SLOPE = 0.7, 1.7, 0.18
"""Arrows go down by at least and at most so much, in between by this part of the way they go sideways."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Places of the drawn nodes; one unit is the distance of two neighbouring ends.

    Parameters
    ----------
    nodes : ndarray of shape (n_drawn,)
        Node numbers, splits first, then leaves; what lies below ``max_depth`` is missing.
    x, y : ndarray of shape (n_nodes,)
        Middle of every node, the root's row at the top; NaN where nothing is drawn.
    width, height : ndarray of shape (n_nodes,)
        Size of every node; splits of one level are alike, and no level's are larger than those above.
    edges : list of (parent, child, goes_right)
        In node numbers.
    cut : frozenset of int
        Splits that are drawn as ends because their children are not drawn.
    """

    nodes: npt.NDArray[np.int64]
    x: Doubles
    y: Doubles
    width: Doubles
    height: Doubles
    edges: list[tuple[int, int, bool]]
    cut: frozenset[int]

    @property
    def n_ends(self) -> int:
        """How many ends stand side by side."""
        return (len(self.nodes) + 1) // 2

    def is_end(self, node: int) -> bool:
        """Whether the node is drawn with class bars: a leaf, or a split at the cut."""
        return node in self.cut or 2 * node >= len(self.x) - 1

    @property
    def bottom(self) -> float:
        """The lower edge of the lowest node."""
        return float(np.nanmin(self.y - self.height / 2))

    def outline(self, node: int) -> tuple[float, float, float, float]:
        """Left, right, lower and upper edge of a node."""
        x, y, width, height = (float(part[node]) for part in (self.x, self.y, self.width, self.height))
        return x - width / 2, x + width / 2, y - height / 2, y + height / 2


def tree_layout(
    structure: TreeStructure,
    max_depth: int | None = None,
    *,
    widest: float = 2.0,
    aspect: float = 1.0,
    lowest: float = 0.0,
) -> Layout:
    """Ends stand side by side from left to right, a split stands above the middle of its children.

    Parameters
    ----------
    structure : TreeStructure
        The tree.
    max_depth : int, default=None
        Splits at this depth become ends.
    widest : float, default=2.0
        The width of a split where there is space.
    aspect, lowest : float, default=1.0, 0.0
        The height of a split for a width of one, and its least height.
    """
    depths = structure.node_depths
    drawn = depths <= (structure.depth if max_depth is None else max_depth)
    cut = {split for split in range(structure.n_splits) if drawn[split] and not drawn[structure.left_nodes[split]]}
    edges = [
        (split, int(child), turn)
        for split in range(structure.n_splits)
        if drawn[split] and split not in cut
        for child, turn in ((structure.left_nodes[split], False), (structure.right_nodes[split], True))
    ]
    x = _across(structure, drawn, cut)
    is_end = np.array([node >= structure.n_splits or node in cut for node in range(structure.n_nodes)])
    width = np.where(is_end, END, _split_widths(x, depths, drawn, is_end, widest)[depths])
    heights = np.where(is_end, END, np.maximum(width * aspect, lowest))
    y = _rows(x, heights, depths, drawn, edges)[depths]
    for part in (y, width, heights):
        part[~drawn] = np.nan
    return Layout(np.flatnonzero(drawn), x, y, width, heights, edges, frozenset(cut))


def _across(structure: TreeStructure, drawn: npt.NDArray[np.bool_], cut: set[int]) -> Doubles:
    x = np.full(structure.n_nodes, np.nan)
    ends = [node for node in range(structure.n_nodes) if drawn[node] and (node >= structure.n_splits or node in cut)]
    for place, node in enumerate(sorted(ends, key=lambda node: structure.leaf_spans[node, 0])):
        x[node] = place
    for split in range(structure.n_splits - 1, -1, -1):
        if drawn[split] and split not in cut:
            x[split] = (x[structure.left_nodes[split]] + x[structure.right_nodes[split]]) / 2
    return x


def _split_widths(
    x: Doubles,
    depths: npt.NDArray[np.int64],
    drawn: npt.NDArray[np.bool_],
    is_end: npt.NDArray[np.bool_],
    widest: float,
) -> Doubles:
    """The width of the splits of every level: as much as the nearest neighbour leaves.  (n_levels,)"""
    widths, width = [], widest
    for level in range(int(depths.max()) + 1):
        row = np.flatnonzero(drawn & (depths == level))
        row = row[np.argsort(x[row])]
        gaps, ends = np.diff(x[row]), is_end[row]
        for gap, left, right in zip(gaps, ends[:-1], ends[1:], strict=True):
            if left != right:  # an end keeps its own width, whatever stands beside it
                width = min(width, 2 * (FILLED * gap - END / 2))
            elif not left:
                width = min(width, FILLED * gap)
        widths.append(max(width, END))
    return np.array(widths)


def _rows(
    x: Doubles,
    height: Doubles,
    depths: npt.NDArray[np.int64],
    drawn: npt.NDArray[np.bool_],
    edges: list[tuple[int, int, bool]],
) -> Doubles:
    """The middle of every level, from the root's at zero downwards.  (n_levels,)"""
    middles = [0.0]
    tall = [height[drawn & (depths == level)].max(initial=0.0) for level in range(int(depths.max()) + 1)]
    for level in range(1, len(tall)):
        sideways = max((abs(x[child] - x[parent]) for parent, child, _ in edges if depths[child] == level), default=0)
        drop = float(np.clip(SLOPE * sideways, LEAST_DROP, MOST_DROP))
        middles.append(middles[-1] - tall[level - 1] / 2 - drop - tall[level] / 2)
    return np.array(middles)


def arrow(start: npt.ArrayLike, end: npt.ArrayLike, thickness: float) -> Doubles:
    """The outline of an arrow from start to end with a head at its end.  (7, 2)

    Examples
    --------
    >>> arrow((0, 0), (2, 0), 0.1)[3].tolist()  # its tip
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


def letters(number: int) -> str:
    """A, B, … Z, AA, AB, … for 0, 1, …: how leaves are called in drawings, from left to right.

    Examples
    --------
    >>> letters(0), letters(25), letters(26), letters(701)
    ('A', 'Z', 'AA', 'ZZ')
    """
    word = ""
    while number >= 0:
        word = chr(ord("A") + number % 26) + word
        number = number // 26 - 1
    return word
