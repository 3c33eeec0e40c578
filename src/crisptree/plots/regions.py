"""A tree of two features in the plane: regions of classes, hyperplanes inside their own cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.lines import Line2D

from crisptree.inference import FlatTree
from crisptree.plots.cells import area, cells, crossing, middle, rectangle
from crisptree.plots.layout import letters
from crisptree.plots.style import DARK, MUTED, class_colors, new_axes, shortened, text_width, write
from crisptree.view import ModelView, Names, view_of
from crisptree.view.checks import whole_number

Doubles = npt.NDArray[np.float64]
Bounds = tuple[float, float, float, float]
Polygons = list[Doubles]

PALE = 0.45
"""How much of a class colour its region has; the rest is white, so that points stand out."""

SIZE = (5.0, 4.2)
"""Inches of a new figure, without a legend beside it."""

LEGEND, LONGEST_NAME, LARGEST_LEGEND = 7, 2.5, 0.1
"""The size of its text, the inches of a name, and the part of the picture that it may cover."""

SMALLEST_CELL = 0.004
"""A letter stands in a cell that takes at least this part of the picture."""


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
) -> Axes:
    """Draw what a tree of two features predicts in the plane.

    Every point has the mixture of the class colours by p(y∣x): of its leaf's table, or, with ``steepness``, of all
    leaves.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator of two features, or a fitted Pipeline that ends in one.
    X : array-like of shape (n_samples, 2)
        Rows to draw as points. They go through the earlier steps of a Pipeline, and the plane is that behind them.
    y : array-like of shape (n_samples,), default=None
        Their classes; None draws them grey.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure.
    steepness : float, default=None
        γ of a probabilistic tree, whose surface is drawn; None draws the deterministic one.
    hyperplanes : bool, default=False
        Draw every split's line inside its own cell, with its number, and call the leaves A, B, … from left to right.
    legend : bool, default=True
        Say which colour is which class; where that would cover much of a new figure, beside the picture.
    bounds : (left, right, lower, upper), default=None
        What to draw of the plane; None takes the range of X and a little more.
    resolution : int, default=200
        Points on each side of the grid where the picture is not made of cells.
    class_names, feature_names : list of str, default=None
        Words in place of ``classes_`` and ``feature_names_in_``.

    Returns
    -------
    matplotlib axes
        The axes drawn on.
    """
    view = view_of(model, "plot_regions", class_names=class_names, feature_names=feature_names)
    if hasattr(X, "columns") or view.earlier:
        X = view.rows(X)
    points = np.asarray(X, dtype=np.float64)
    if view.tree.n_features != 2 or points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(
            f"plot_regions must have a model and rows of 2 features; got {view.tree.n_features} in the model and an "
            f"array of shape {points.shape}. Fit the model on two columns of X."
        )
    if not len(points) or not np.isfinite(points).all():
        raise ValueError("`X` must have rows of finite numbers to draw; it has none, or NaN or infinite ones.")
    resolution = whole_number("resolution", resolution, 1)
    window = _window(points, bounds)
    names = [shortened(name, LONGEST_NAME, LEGEND) for name in view.class_names]
    columns = 1 + len(names) // 14
    # Inches of the legend: the longest name and its point in every column, the lines below each other.
    broad = columns * (max(text_width(name, LEGEND) for name in names) + 0.4)
    tall = 1.5 * LEGEND / 72 * -(-len(names) // columns)
    outside = ax is None and legend and broad * tall > LARGEST_LEGEND * SIZE[0] * SIZE[1]
    ax = new_axes(ax, (SIZE[0] + (broad if outside else 0.0), SIZE[1]))
    colors = class_colors(len(view.class_names))[:, :3]
    polygons = None
    if isinstance(view.tree, FlatTree):
        weight, bias = view.tree.weight.astype(np.float64), view.tree.bias.astype(np.float64)
        polygons = cells(view.tree.structure, weight, bias, rectangle(window))
    if polygons is not None and steepness is None:
        _fill_cells(ax, view, polygons, colors)
    else:
        _fill_grid(ax, view, window, colors, steepness, resolution)
    if hyperplanes and polygons is not None:
        _draw_splits(ax, view, polygons)
        _draw_letters(ax, view, polygons, area(rectangle(window)))
    paint: Any = MUTED if y is None else colors[view.class_numbers(y, len(points))]
    size = float(np.clip(4000 / len(points), 6, 26))
    ax.scatter(points[:, 0], points[:, 1], s=size, c=paint, edgecolors="white", linewidths=0.4, zorder=4)
    if legend:
        _draw_legend(ax, names, columns, colors, outside)
    ax.set_xlim(window[:2])
    ax.set_ylim(window[2:])
    ax.set_xlabel(view.feature_names[0], parse_math=False)
    ax.set_ylabel(view.feature_names[1], parse_math=False)
    return ax


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


def _mixed(tables: Doubles, colors: Doubles) -> Doubles:
    """Class colours, mixed by probability and made pale.  (n, n_classes) → (n, 3)"""
    return np.clip(PALE * tables @ colors + 1 - PALE, 0.0, 1.0)


def _fill_cells(ax: Axes, view: ModelView, polygons: Polygons, colors: Doubles) -> None:
    cells = polygons[view.tree.structure.n_splits :]
    shown = [leaf for leaf, cell in enumerate(cells) if len(cell)]
    paint = _mixed(view.tree.leaf_values(shown), colors)
    # An edge of its own colour closes the hair lines that smoothing leaves between cells.
    style: dict[str, Any] = {"facecolors": paint, "edgecolors": paint, "linewidths": 0.4, "zorder": 0, "label": "cells"}
    ax.add_collection(PolyCollection([cells[leaf] for leaf in shown], **style))


def _fill_grid(
    ax: Axes, view: ModelView, window: Bounds, colors: Doubles, steepness: float | None, resolution: int
) -> None:
    left, right, lower, upper = window
    # The middle of every pixel, the lowest row first.
    steps = (np.arange(resolution) + 0.5) / resolution
    pixels = np.meshgrid(left + steps * (right - left), lower + steps * (upper - lower))
    grid = np.stack(pixels, axis=-1).reshape(-1, 2).astype(np.float32)
    hard = steepness is None
    tables = view.tree.leaf_values(view.leaves(grid), grid) if hard else view.soft_tables(grid, steepness)
    image = _mixed(tables, colors).reshape(resolution, resolution, 3)
    ax.imshow(image, origin="lower", extent=window, aspect="auto", interpolation="bilinear", zorder=0)


def _draw_splits(ax: Axes, view: ModelView, polygons: Polygons) -> None:
    tree = view.tree
    assert isinstance(tree, FlatTree)  # only hyperplanes have cells
    lines = []
    for split in range(tree.structure.n_splits):
        ends = crossing(polygons[split], tree.weight[split], float(tree.bias[split]))
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
        if len(polygon) and abs(area(polygon)) >= SMALLEST_CELL * whole:
            x, y = middle(polygon)
            write(ax, x, y, letters(number), 13, fontweight="bold", clip_on=True)


def _draw_legend(ax: Axes, names: list[str], columns: int, colors: Doubles, outside: bool) -> None:
    handles = [Line2D([], [], linestyle="none", marker="o", color=color) for color in colors]
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)} if outside else {"loc": "upper right"}
    # Names are written afterwards: a legend leaves out labels that begin with an underscore.
    shown = ax.legend(handles, ["class"] * len(names), fontsize=LEGEND, ncols=columns, framealpha=0.85, **place)
    for text, name in zip(shown.get_texts(), names, strict=True):
        text.set(text=name, parse_math=False)
