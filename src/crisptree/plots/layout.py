"""Where the nodes of a tree stand in a drawing: numbers only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crisptree.structure import TreeStructure


@dataclass(frozen=True, eq=False)
class Layout:
    """Places of the drawn nodes.

    Parameters
    ----------
    nodes : ndarray of shape (n_drawn,)
        Node numbers, splits first, then leaves; what lies below ``max_depth`` is missing.
    x, y : ndarray of shape (n_nodes,)
        One unit between neighbouring ends of the drawing, one unit down per level; NaN where nothing is drawn.
    edges : list of (parent, child, goes_right)
        In node numbers.
    cut : frozenset of int
        Splits that are drawn as ends because their children are not drawn.
    """

    nodes: npt.NDArray[np.int64]
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]
    edges: list[tuple[int, int, bool]]
    cut: frozenset[int]

    @property
    def width(self) -> float:
        return float(np.nanmax(self.x)) + 1

    @property
    def height(self) -> float:
        return float(np.nanmax(-self.y)) + 1


def tree_layout(structure: TreeStructure, max_depth: int | None = None) -> Layout:
    """Ends stand side by side from left to right, a split stands above the middle of its children."""
    depths = structure.node_depths
    drawn = depths <= (structure.depth if max_depth is None else max_depth)
    cut = {split for split in range(structure.n_splits) if drawn[split] and not drawn[structure.left_nodes[split]]}
    x = np.full(structure.n_nodes, np.nan)
    ends = [node for node in range(structure.n_nodes) if drawn[node] and (node >= structure.n_splits or node in cut)]
    for place, node in enumerate(sorted(ends, key=lambda node: structure.leaf_spans[node, 0])):
        x[node] = place
    for split in range(structure.n_splits - 1, -1, -1):
        if drawn[split] and split not in cut:
            x[split] = (x[structure.left_nodes[split]] + x[structure.right_nodes[split]]) / 2
    edges = [
        (split, int(child), turn)
        for split in range(structure.n_splits)
        if drawn[split] and split not in cut
        for child, turn in ((structure.left_nodes[split], False), (structure.right_nodes[split], True))
    ]
    y = np.where(drawn, -depths.astype(np.float64), np.nan)
    return Layout(np.flatnonzero(drawn), x, y, edges, frozenset(cut))
