"""Decision regions in the plane of two features. The cell of a node is a convex polygon, clipped by its splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.lines import Line2D

from crisptree.inference import FlatTree
from crisptree.inspection import ModelView, Names, view_model
from crisptree.inspection.validation import check_boolean, check_integer
from crisptree.plots.style import DARK, MUTED, class_colors, leaf_letters, new_axes, text_width, truncate_text, write
from crisptree.structure import TreeStructure
from crisptree.targets.base import detach

Doubles = npt.NDArray[np.float64]
Bounds = tuple[float, float, float, float]
Polygons = list[Doubles]
Flags = npt.NDArray[np.bool_]

EMPTY: Doubles = np.zeros((0, 2))

PALE = 0.45
"""Share of the class color in a region; the rest is white, so that points stand out."""

SIZE = (5.0, 4.2)
"""Inches of a new figure, without a legend beside it."""

LEGEND_SIZE, MAX_NAME_INCHES, MAX_NAMES_INSIDE = 7, 2.5, 6
"""Font size of the legend, the width of a name, and the number of classes above which the legend stands outside."""

MIN_CELL_SHARE = 0.004
"""A letter is drawn in a cell that covers at least this share of the plot."""


def plot_regions(
    model: Any,
    X: npt.ArrayLike,
    y: npt.ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    steepness: float | None = None,
    hyperplanes: bool = False,
    legend: bool = True,
    bounds: Bounds | None = None,
    resolution: int = 200,
    class_names: Names = None,
    feature_names: Names = None,
    features: tuple[Any, Any] | None = None,
) -> Axes:
    """Plot the decision regions of a tree in the plane of two features.

    Every point has the class colors mixed by p(y∣x), of its leaf or, with ``steepness``, of the probabilistic tree.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one.
    X : array-like of shape (n_samples, n_features)
        Rows to draw as points. They go through the earlier steps of a Pipeline, whose output is drawn.
    y : array-like of shape (n_samples,), default=None
        Their classes; None draws them gray.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure.
    steepness : float, default=None
        γ of the probabilistic tree to draw; None draws the deterministic one.
    hyperplanes : bool, default=False
        Draw the line of every split inside its own cell, with its index, and label the leaves A, B, … left to right.
    legend : bool, default=True
        Draw a legend of the classes; beside a new figure of many classes.
    bounds : (left, right, lower, upper), default=None
        Limits of the plot; None takes the range of X and a margin.
    resolution : int, default=200
        Grid points along each axis where the plot is not made of cells.
    class_names, feature_names : list of str, default=None
        Names in place of ``classes_`` and ``feature_names_in_``.
    features : (feature, feature), default=None
        The two features of the plane, by name or index, where the model has more. All others are held at their median
        in X, categories at their most frequent level; rows with other values are drawn too.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier
    >>> from crisptree.plots import plot_regions
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> plot_regions(model, X, y, features=("petal length (cm)", "petal width (cm)")).get_title()
    '2 other features at their median'
    """
    view = view_model(model, "plot_regions", class_names=class_names, feature_names=feature_names)
    view.check_is_classification("plot_regions", "Use plot_tree.")
    hyperplanes, legend = check_boolean("hyperplanes", hyperplanes), check_boolean("legend", legend)
    rows = _check_points(view, X)
    plane = Plane.of(view, rows, features)
    points = rows[:, list(plane.features)]
    resolution = check_integer("resolution", resolution, 1)
    window = _window(points, bounds)
    names = [truncate_text(name, MAX_NAME_INCHES, LEGEND_SIZE) for name in view.class_names]
    outside = ax is None and legend and len(names) > MAX_NAMES_INSIDE
    columns = 1 + len(names) // 14
    width = columns * (max(text_width(name, LEGEND_SIZE) for name in names) + 0.4) if outside else 0.0  # with markers
    ax = new_axes(ax, (SIZE[0] + width, SIZE[1]))
    colors = class_colors(len(view.class_names))[:, :3]
    polygons = None
    if isinstance(view.tree, FlatTree):
        weight, bias = plane.hyperplanes(view.tree)
        polygons = compute_cells(view.tree.structure, weight, bias, make_rectangle(window))
    if polygons is not None and steepness is None:
        _fill_cells(ax, view, polygons, colors)
    else:
        _fill_grid(ax, view, plane, window, colors, steepness, resolution)
    if hyperplanes and polygons is not None:
        _draw_splits(ax, polygons, weight, bias)
        _draw_letters(ax, view, polygons, polygon_area(make_rectangle(window)))
    paint: Any = MUTED if y is None else colors[view.encode_labels(y, len(points))]
    size = float(np.clip(4000 / len(points), 6, 26))
    ax.scatter(points[:, 0], points[:, 1], s=size, c=paint, edgecolors="white", linewidths=0.4, zorder=4)
    if legend:
        _draw_legend(ax, names, columns, colors, outside)
    ax.set_xlim(window[:2])
    ax.set_ylim(window[2:])
    across, up = plane.features
    ax.set_xlabel(view.feature_names[across], parse_math=False)
    ax.set_ylabel(view.feature_names[up], parse_math=False)
    others = view.tree.n_features - 2
    if others:
        ax.set_title(
            f"{others} other feature{'s' if others > 1 else ''} at their median", fontsize=LEGEND_SIZE + 1, color=MUTED
        )
    return ax


def _check_points(view: ModelView, X: Any) -> Doubles:
    """Return the rows to draw after the earlier steps of a Pipeline, validated.  (n, n_features)"""
    if hasattr(X, "columns") or view.transformers:
        X = view.prepare_rows(X)
    rows = np.asarray(detach(X), dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != view.tree.n_features:
        raise ValueError(
            f"plot_regions must have rows of the {view.tree.n_features} features of the model; got an array of shape "
            f"{rows.shape}."
        )
    if not len(rows) or not np.isfinite(rows).all():
        raise ValueError("`X` must have rows of finite numbers to draw; it has none, or NaN or infinite ones.")
    return rows


@dataclass(frozen=True, eq=False)
class Plane:
    """Two features, and the values at which all others are held."""

    features: tuple[int, int]
    held: Doubles

    @classmethod
    def of(cls, view: ModelView, rows: Doubles, features: Any) -> Plane:
        """Resolve the features of the plane; a model of two features has one only."""
        n_features = view.tree.n_features
        if features is None:
            if n_features != 2:
                raise ValueError(
                    f"plot_regions must know which two of the {n_features} features to draw. Pass them, e.g. "
                    f"features={tuple(view.feature_names[:2])!r}."
                )
            return cls((0, 1), np.zeros(2))
        if isinstance(features, str) or not hasattr(features, "__len__") or len(features) != 2:
            raise ValueError(f"`features` must be two features, by name or number; got {features!r}.")
        across, up = (_feature(view, one) for one in features)
        if across == up:
            raise ValueError(f"`features` must be two different features; got {features!r}.")
        held = np.median(rows, axis=0)
        for column in view.columns:
            if column.kind == "category":
                own = column.features
                held[own] = np.eye(len(own))[rows[:, own].sum(axis=0).argmax()]
        return cls((across, up), held)

    def hyperplanes(self, tree: FlatTree) -> tuple[Doubles, Doubles]:
        """Intersect the hyperplanes of the tree with the plane.  (n_splits, 2), (n_splits,)"""
        weight, rest = tree.weight.astype(np.float64), self.held.copy()
        rest[list(self.features)] = 0.0
        return weight[:, list(self.features)], tree.bias.astype(np.float64) + weight @ rest

    def rows(self, points: Doubles) -> npt.NDArray[np.float32]:
        """Return points of the plane as rows of all features.  (n, 2) → (n, n_features)"""
        rows = np.repeat(self.held[None], len(points), axis=0)
        rows[:, list(self.features)] = points
        return rows.astype(np.float32)


def _feature(view: ModelView, one: Any) -> int:
    """Return the index of a feature given by name or index."""
    names = view.feature_names
    if isinstance(one, str) and one in names:
        return names.index(one)
    if isinstance(one, int | np.integer) and not isinstance(one, bool) and 0 <= one < len(names):
        return int(one)
    some = ", ".join(repr(name) for name in names[:8]) + (", …" if len(names) > 8 else "")
    behind = bool(view.transformers) and hasattr(view.transformers[0], "steps")
    where = ", which are those behind the earlier steps of the Pipeline," if behind else ","
    category = next((column for column in view.columns if column.name == one and column.kind == "category"), None)
    levels = (
        "" if category is None else f" {one!r} is a category: name one of its levels, {names[category.features[0]]!r}."
    )
    raise ValueError(
        f"`features` must be features of the model{where} {some}, or their numbers from 0; got {one!r}.{levels}"
    )


def _window(points: Doubles, bounds: Any) -> Bounds:
    if bounds is None:
        low, high = points.min(axis=0), points.max(axis=0)
        margin = 0.08 * np.where(high > low, high - low, 1.0)
        sides = np.stack([low - margin, high + margin], axis=1).reshape(-1)
    else:
        sides = np.asarray(bounds)
        are_numbers = sides.shape == (4,) and sides.dtype.kind in "iuf" and np.isfinite(sides).all()
        if not are_numbers or sides[0] >= sides[1] or sides[2] >= sides[3]:
            raise ValueError(f"`bounds` must be (left, right, lower, upper), each pair rising; got {bounds!r}.")
    left, right, lower, upper = map(float, sides)
    return left, right, lower, upper


def _mix_colors(tables: Doubles, colors: Doubles) -> Doubles:
    """Mix the class colors by probability with white.  (n, n_classes) → (n, 3)"""
    return np.clip(PALE * tables @ colors + 1 - PALE, 0.0, 1.0)


def _fill_cells(ax: Axes, view: ModelView, polygons: Polygons, colors: Doubles) -> None:
    cells = polygons[view.tree.structure.n_splits :]
    shown = [leaf for leaf, cell in enumerate(cells) if len(cell)]
    paint = _mix_colors(view.tree.leaf_values(shown), colors)
    # An edge of the same color closes the gaps that antialiasing leaves between cells.
    style: dict[str, Any] = {"facecolors": paint, "edgecolors": paint, "linewidths": 0.4, "zorder": 0, "label": "cells"}
    ax.add_collection(PolyCollection([cells[leaf] for leaf in shown], **style))


def _fill_grid(
    ax: Axes, view: ModelView, plane: Plane, window: Bounds, colors: Doubles, steepness: float | None, resolution: int
) -> None:
    left, right, lower, upper = window
    # Centers of the pixels, the lowest row first.
    steps = (np.arange(resolution) + 0.5) / resolution
    pixels = np.meshgrid(left + steps * (right - left), lower + steps * (upper - lower))
    grid = plane.rows(np.stack(pixels, axis=-1).reshape(-1, 2))
    hard = steepness is None
    tables = view.tree.leaf_values(view.apply(grid), grid) if hard else view.soft_predict_proba(grid, steepness)
    image = _mix_colors(tables, colors).reshape(resolution, resolution, 3)
    ax.imshow(image, origin="lower", extent=window, aspect="auto", interpolation="bilinear", zorder=0)


def _draw_splits(ax: Axes, polygons: Polygons, weight: Doubles, bias: Doubles) -> None:
    lines = []
    for split in range(len(bias)):
        ends = intersect_line(polygons[split], weight[split], float(bias[split]))
        if ends is not None:
            lines.append(ends)
            badge = {"facecolor": DARK, "edgecolor": "none", "boxstyle": "round,pad=0.18"}
            x, y = ends.mean(axis=0)
            write(ax, x, y, str(split), 7, color="white", bbox=badge, clip_on=True)
    ax.add_collection(LineCollection(lines, colors=DARK, linewidths=1.6, zorder=3, label="splits"))


def _draw_letters(ax: Axes, view: ModelView, polygons: Polygons, whole: float) -> None:
    structure = view.tree.structure
    for number, leaf in enumerate(structure.leaves_left_to_right):
        polygon = polygons[structure.n_splits + leaf]
        if len(polygon) and abs(polygon_area(polygon)) >= MIN_CELL_SHARE * whole:
            x, y = polygon_center(polygon)
            write(ax, x, y, leaf_letters(number), 13, fontweight="bold", clip_on=True)


def _draw_legend(ax: Axes, names: list[str], columns: int, colors: Doubles, outside: bool) -> None:
    handles = [Line2D([], [], linestyle="none", marker="o", color=color) for color in colors]
    anchor: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if outside else {"loc": "upper right"}
    # Names are set afterwards: a legend skips labels that begin with an underscore.
    shown = ax.legend(handles, ["class"] * len(names), fontsize=LEGEND_SIZE, ncols=columns, framealpha=0.85, **anchor)
    for text, name in zip(shown.get_texts(), names, strict=True):
        text.set(text=name, parse_math=False)


def make_rectangle(bounds: tuple[float, float, float, float]) -> Doubles:
    """Return the corners of (left, right, lower, upper), counterclockwise.  (4, 2)"""
    left, right, lower, upper = bounds
    return np.array([[left, lower], [right, lower], [right, upper], [left, upper]], dtype=np.float64)


def clip_polygon(polygon: Doubles, normal: npt.ArrayLike, offset: float) -> Doubles:
    """Clip a convex polygon to normal · x + offset ≥ 0; no corners where nothing is left."""
    points, crosses, above = _intersect_edges(polygon, normal, offset)
    corners = np.stack([points, polygon], axis=1)[np.stack([crosses, above], axis=1)]
    return corners if len(corners) > 2 else EMPTY


def intersect_line(polygon: Doubles, normal: npt.ArrayLike, offset: float) -> Doubles | None:
    """Intersect the line normal · x + offset = 0 with the border of a convex polygon; None without one.  (2, 2)"""
    points, crosses, _ = _intersect_edges(polygon, normal, offset)
    return points[crosses] if np.count_nonzero(crosses) == 2 else None


def _intersect_edges(polygon: Doubles, normal: npt.ArrayLike, offset: float) -> tuple[Doubles, Flags, Flags]:
    """Return the intersection of the edge that ends at each corner, whether it has one, and if the corner is above."""
    heights = polygon @ np.asarray(normal, dtype=np.float64) + offset
    above, before, start = heights >= 0, np.roll(heights, 1), np.roll(polygon, 1, axis=0)
    crosses = above != np.roll(above, 1)
    share = np.divide(before, before - heights, out=np.zeros(len(polygon)), where=crosses)
    return start + share[:, None] * (polygon - start), crosses, above


def compute_cells(structure: TreeStructure, weight: Doubles, bias: Doubles, frame: Doubles) -> list[Doubles]:
    """Compute the cell of every node inside a convex frame, which is the cell of the root.

    Points go right where weight · x + bias > 0. A cell outside the frame has no corners.
    """
    cells = [EMPTY] * structure.n_nodes
    cells[0] = frame
    for split in range(structure.n_splits):
        right, left = structure.right_nodes[split], structure.left_nodes[split]
        if not np.any(weight[split]):  # no weights: all rows go one way
            cells[right if bias[split] > 0 else left] = cells[split]
            continue
        cells[right] = clip_polygon(cells[split], weight[split], float(bias[split]))
        cells[left] = clip_polygon(cells[split], -weight[split], -float(bias[split]))
    return cells


def polygon_area(polygon: Doubles) -> float:
    """Compute the area of a polygon with counterclockwise corners."""
    return float(_edge_areas(polygon).sum()) / 2


def polygon_center(polygon: Doubles) -> Doubles:
    """Compute the center of mass of a convex polygon.  (2,)"""
    pieces = _edge_areas(polygon)
    if abs(pieces.sum()) <= 1e-12 * np.abs(pieces).sum():
        return polygon.mean(axis=0)
    return pieces @ (polygon + np.roll(polygon, -1, axis=0)) / (3 * pieces.sum())


def _edge_areas(polygon: Doubles) -> Doubles:
    """Compute twice the signed area between the origin and each edge."""
    (x, y), (next_x, next_y) = polygon.T, np.roll(polygon, -1, axis=0).T
    return x * next_y - next_x * y
