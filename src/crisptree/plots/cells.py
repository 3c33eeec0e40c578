"""The cells of a tree in the plane: convex polygons, each cut in two by the split of its node. Numbers only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crisptree.structure import TreeStructure

Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

EMPTY: Doubles = np.zeros((0, 2))


def rectangle(bounds: tuple[float, float, float, float]) -> Doubles:
    """The corners of (left, right, lower, upper), against the clock.  (4, 2)"""
    left, right, lower, upper = bounds
    return np.array([[left, lower], [right, lower], [right, upper], [left, upper]], dtype=np.float64)


def clip(polygon: Doubles, normal: npt.ArrayLike, offset: float) -> Doubles:
    """The part of a convex polygon where normal · x + offset ≥ 0; no corners where nothing is left.

    Examples
    --------
    >>> clip(rectangle((0, 1, 0, 1)), (1, 0), -0.5).tolist()
    [[0.5, 0.0], [1.0, 0.0], [1.0, 1.0], [0.5, 1.0]]
    """
    points, crosses, above = _edges(polygon, normal, offset)
    corners = np.stack([points, polygon], axis=1)[np.stack([crosses, above], axis=1)]
    return corners if len(corners) > 2 else EMPTY


def crossing(polygon: Doubles, normal: npt.ArrayLike, offset: float) -> Doubles | None:
    """Where the line normal · x + offset = 0 crosses the border of a convex polygon; None where it misses it.  (2, 2)

    Examples
    --------
    >>> crossing(rectangle((0, 1, 0, 1)), np.array([0.0, 1.0]), -0.25).tolist()
    [[0.0, 0.25], [1.0, 0.25]]
    """
    points, crosses, _ = _edges(polygon, normal, offset)
    return points[crosses] if np.count_nonzero(crosses) == 2 else None


def _edges(polygon: Doubles, normal: npt.ArrayLike, offset: float) -> tuple[Doubles, Flags, Flags]:
    """Of the edge that ends at each corner: where it meets the line, whether it does, whether the corner is above."""
    heights = polygon @ np.asarray(normal, dtype=np.float64) + offset
    above, before, start = heights >= 0, np.roll(heights, 1), np.roll(polygon, 1, axis=0)
    crosses = above != np.roll(above, 1)
    share = np.divide(before, before - heights, out=np.zeros(len(polygon)), where=crosses)
    return start + share[:, None] * (polygon - start), crosses, above


def cells(structure: TreeStructure, weight: Doubles, bias: Doubles, frame: Doubles) -> list[Doubles]:
    """The cell of every node inside a convex frame: the root's is the frame, a split's falls to its children.

    Points go right where weight · x + bias > 0. A cell outside the frame has no corners.
    """
    found = [EMPTY] * structure.n_nodes
    found[0] = frame
    for split in range(structure.n_splits):
        right, left = structure.right_nodes[split], structure.left_nodes[split]
        if not np.any(weight[split]):  # asks nothing: all go one way
            found[right if bias[split] > 0 else left] = found[split]
            continue
        found[right] = clip(found[split], weight[split], float(bias[split]))
        found[left] = clip(found[split], -weight[split], -float(bias[split]))
    return found


def area(polygon: Doubles) -> float:
    """The area of a polygon whose corners go against the clock."""
    return float(_pieces(polygon).sum()) / 2


def middle(polygon: Doubles) -> Doubles:
    """The centre of mass of a convex polygon, which lies inside it.  (2,)"""
    pieces = _pieces(polygon)
    if abs(pieces.sum()) <= 1e-12 * np.abs(pieces).sum():
        return polygon.mean(axis=0)
    return pieces @ (polygon + np.roll(polygon, -1, axis=0)) / (3 * pieces.sum())


def _pieces(polygon: Doubles) -> Doubles:
    """Twice the area between the origin and each edge."""
    (x, y), (next_x, next_y) = polygon.T, np.roll(polygon, -1, axis=0).T
    return x * next_y - next_x * y
