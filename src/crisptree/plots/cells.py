"""The cells of a tree in the plane: convex polygons, each cut in two by the split of its node. Numbers only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crisptree.structure import TreeStructure

Doubles = npt.NDArray[np.float64]

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
    if not len(polygon):
        return EMPTY
    heights = polygon @ np.asarray(normal, dtype=np.float64) + offset
    corners = []
    for number in range(len(polygon)):
        here, before = polygon[number], polygon[number - 1]
        above, was_above = heights[number] >= 0, heights[number - 1] >= 0
        if above != was_above:
            share = heights[number - 1] / (heights[number - 1] - heights[number])
            corners.append(before + share * (here - before))
        if above:
            corners.append(here)
    return np.array(corners) if len(corners) > 2 else EMPTY


def cells(structure: TreeStructure, weight: Doubles, bias: Doubles, frame: Doubles) -> list[Doubles]:
    """The cell of every node inside a convex frame: the root's is the frame, a split's falls to its children.

    Parameters
    ----------
    structure : TreeStructure
        The tree.
    weight, bias : ndarray of shape (n_splits, 2), (n_splits,)
        Its hyperplanes: a point goes right where weight · x + bias > 0.
    frame : ndarray of shape (n_corners, 2)
        What of the plane is looked at.

    Returns
    -------
    list of ndarray of shape (n_corners, 2)
        By node number, splits first, then leaves. A cell outside the frame has no corners.
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


def crossing(polygon: Doubles, normal: Doubles, offset: float) -> Doubles | None:
    """Where the line normal · x + offset = 0 crosses the border of a convex polygon; None where it misses it.  (2, 2)

    Examples
    --------
    >>> crossing(rectangle((0, 1, 0, 1)), np.array([0.0, 1.0]), -0.25).tolist()
    [[0.0, 0.25], [1.0, 0.25]]
    """
    if not len(polygon) or not np.any(normal):
        return None
    heights = polygon @ normal + offset
    points = []
    for number in range(len(polygon)):
        before, here = heights[number - 1], heights[number]
        if (before >= 0) != (here >= 0):
            share = before / (before - here)
            points.append(polygon[number - 1] + share * (polygon[number] - polygon[number - 1]))
    return np.array(points) if len(points) == 2 else None


def area(polygon: Doubles) -> float:
    """The area of a polygon whose corners go against the clock."""
    x, y = polygon.T if len(polygon) else np.zeros((2, 1))
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


def middle(polygon: Doubles) -> Doubles:
    """The centre of mass of a convex polygon, which lies inside it.  (2,)"""
    x, y = polygon.T
    pieces = x * np.roll(y, -1) - np.roll(x, -1) * y
    if abs(pieces.sum()) <= 1e-12 * np.abs(pieces).sum():
        return polygon.mean(axis=0)
    return np.array([(x + np.roll(x, -1)) @ pieces, (y + np.roll(y, -1)) @ pieces]) / (3 * pieces.sum())
