"""The tree: weight images or the largest weights at the splits, class bars at the leaves, a legend below."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection, PolyCollection
from matplotlib.patches import Circle

from crisptree.inference import FlatTree
from crisptree.inspection import ModelView, Names, view_model
from crisptree.inspection.importances import compute_effects, rank_features
from crisptree.inspection.validation import check_boolean, check_optional_integer
from crisptree.plots import layout as layouts
from crisptree.plots.layout import TreeLayout, make_arrow
from crisptree.plots.nodes import draw_end, draw_image, draw_lines, draw_split, end_lines, has_room_for_class_names
from crisptree.plots.style import (
    ACCENT,
    ARROW,
    DARK,
    LEFT,
    MUTED,
    RIGHT,
    SMALL,
    TINY,
    Outline,
    PlotCanvas,
    class_colors,
    line_height,
    text_width,
)
from crisptree.plots.weights import as_image

KINDS: dict[str, tuple[float, dict[str, float]]] = {
    "image": (0.85, {"widest": 1.9}),
    "terms": (1.0, {"widest": 2.4, "aspect": 0.4, "lowest": 0.68}),
    "module": (0.9, {"widest": 1.3, "aspect": 0.4, "lowest": 0.5}),
}
"""Inches between two neighbouring ends at the natural size, and the shape of splits; see ``compute_layout``."""

MIN_THICKNESS, MAX_THICKNESS = 0.012, 0.17
"""Of arrows, in units."""

MIN_WIDTH = 4.2
"""Inches; a smaller tree is centered."""

MARGIN = 0.15

LINE, SIGN, SPACE = 0.17, 0.17, 0.22
"""Of the legend, in inches: the height of a line, the width of a symbol, the space between two entries."""

DIRECTIONS = {
    "image": ("left: resembles the negative of the image", "right: resembles the image"),
    "threshold": ("left: no", "right: yes"),
    "terms": ("left: no", "right: yes"),
}


class LegendEntry(NamedTuple):
    """A text and its symbol: a sign in a circle, or a bar of a color."""

    text: str
    sign: str = ""
    color: Any = None


def plot_tree(
    model: Any,
    ax: Axes | None = None,
    *,
    max_depth: int | None = None,
    class_names: Names = None,
    feature_names: Names = None,
    sample: Any = None,
    letters: bool = False,
    key: bool = True,
) -> Axes:
    """Plot a fitted tree.

    A row goes right where it resembles the weight image of the split, left where it resembles its negative. For tabular
    data it goes right where the rule of the split holds, drawn by its largest terms in raw units and its threshold. The
    thickness of arrows shows the number of training samples. Bars in a leaf are its class probabilities, or the means
    of a regressor scaled to the range of all nodes.

    Parameters
    ----------
    model : CrispTreeClassifier, CrispTreeRegressor or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure of the size that the tree needs. Text scales with smaller axes.
    max_depth : int, default=None
        Number of levels of splits to draw; subtrees below are drawn as leaves.
    class_names, feature_names : list of str, default=None
        Names in place of ``classes_`` and ``feature_names_in_``.
    sample : array-like of n_features numbers, default=None
        A row or an image whose path is highlighted.
    letters : bool, default=False
        Label the leaves A, B, … from left to right and number the splits, as ``plot_regions`` does.
    key : bool, default=True
        Draw a legend below the tree.

    Returns
    -------
    matplotlib axes
        The axes drawn on.

    Examples
    --------
    >>> from crisptree import CrispTreeClassifier
    >>> from crisptree.datasets import load_digits
    >>> from crisptree.plots import plot_tree
    >>> digits = load_digits()
    >>> model = CrispTreeClassifier(max_depth=2, epochs=2, finetune_epochs=2, image_shape=(8, 8), random_state=0)
    >>> ax = plot_tree(model.fit(digits.X_train, digits.y_train), sample=digits.X_test[0])
    >>> len(ax.images)  # three splits and the sample
    4
    """
    view = view_model(model, "plot_tree", class_names=class_names, feature_names=feature_names)
    letters, key = check_boolean("letters", letters), check_boolean("key", key)
    kind = "image" if view.has_weight_images else "terms" if isinstance(view.tree, FlatTree) else "module"
    (inch, shape), structure = KINDS[kind], view.tree.structure
    if view.image_shape is not None and kind == "image":
        height, width = as_image(np.zeros(view.tree.n_features), view.image_shape).shape[:2]
        shape = shape | {"aspect": float(np.clip(height / width, 0.25, 2.5))}
    layout = layouts.compute_layout(structure, check_optional_integer("max_depth", max_depth, 0), **shape)
    row = None if sample is None else view.prepare_row(sample, "sample")
    path = set() if row is None else set(structure.nodes_to(int(view.apply(row)[0])))
    names = {node: layouts.leaf_letters(number) for number, node in enumerate(layout.ends)} if letters else {}
    ticks = has_room_for_class_names(view.class_names, float(layout.width[layout.ends[0]]), inch)
    sizes = [[size for _, size, _ in end_lines(view, node, names.get(node))] for node in layout.ends]
    text = max(line_height(sum(lines), inch) for lines in sizes) + (1.25 if ticks else 0.25) * line_height(TINY, inch)
    left, right, lower, upper = _limits(layout, inch, text, row is not None)
    notes = _arrange_entries(_legend_entries(view, row is not None, ticks) if key else [], (right - left) * inch)
    bottom = lower - ((notes[-1][1] + 1) * LINE + 0.1) / inch if notes else lower
    canvas = PlotCanvas.of(ax, (left, right, bottom, upper), inch)
    _draw_arrows(canvas, view, layout, path)
    for node in layout.nodes:
        outline, marked = layout.outline(node), node in path
        if layout.is_end(node):
            draw_end(canvas, view, outline, node, names.get(node), ticks, marked)
            continue
        draw_split(canvas, view, outline, node)
        if letters:
            badge = {"facecolor": DARK, "edgecolor": "none", "boxstyle": "round,pad=0.2"}
            canvas.write(outline[0], outline[3], str(node), SMALL, color="white", fontweight="bold", bbox=badge)
        if marked:
            canvas.draw_frame(outline, facecolor="none", edgecolor=ACCENT, linewidth=1.8, zorder=4)
    if row is not None:
        _draw_sample(canvas, view, layout, row)
    _draw_legend(canvas, notes, left + 0.1, lower)
    return canvas.ax


def _limits(layout: TreeLayout, inch: float, text: float, with_sample: bool) -> Outline:
    """Left, right, lower and upper edge of all nodes, their text and the sample, without the key."""
    left = min(-0.5, float(np.nanmin(layout.x - layout.width / 2))) - MARGIN
    right = max(len(layout.ends) - 0.5, float(np.nanmax(layout.x + layout.width / 2))) + MARGIN
    if with_sample:
        left = min(left, _sample_outline(layout)[0] - MARGIN)
    missing = MIN_WIDTH / inch - (right - left)
    if missing > 0:
        left, right = left - missing / 2, right + missing / 2
    lower = float(np.nanmin(layout.y - layout.height / 2)) - text - 0.1
    return left, right, lower, layout.outline(0)[3] + 0.2 + (0.25 if with_sample else 0)


def _sample_outline(layout: TreeLayout) -> Outline:
    """Return the outline of the sample: left of the root, about as large."""
    left, right, lower, upper = layout.outline(0)
    side = max(right - left, 1.2)  # room for the values beside a single leaf
    return left - 0.55 - side, left - 0.55, lower, upper


def _draw_arrows(canvas: PlotCanvas, view: ModelView, layout: TreeLayout, path: set[int]) -> None:
    """Draw arrows from every split to its children, with their signs."""
    share = view.node_weights / max(view.node_weights[0], np.finfo(float).tiny)
    outlines, colors, circles = [], [], []
    for parent, child, goes_right in layout.edges:
        left, right, lower, _ = layout.outline(parent)
        start = np.array([layout.x[parent] + (0.25 if goes_right else -0.25) * (right - left), lower])
        end = np.array([layout.x[child], layout.outline(child)[3] + (0.06 if layout.is_end(child) else 0.02)])
        outlines.append(make_arrow(start, end, MIN_THICKNESS + (MAX_THICKNESS - MIN_THICKNESS) * share[child]))
        colors.append(ACCENT if child in path else ARROW)
        x, y = start + 0.3 * (end - start)
        circles.append(Circle((x, y), 0.085))
        canvas.write(x, y, "+" if goes_right else "−", SMALL, va="center_baseline", fontweight="bold")
    canvas.ax.add_collection(PolyCollection(outlines, facecolors=colors, linewidths=0, zorder=1, label="arrows"))
    style: dict[str, Any] = {"facecolors": "white", "edgecolors": DARK, "linewidths": 0.5 * canvas.factor}
    canvas.ax.add_collection(PatchCollection(circles, zorder=1.5, label="signs", **style))


def _draw_sample(canvas: PlotCanvas, view: ModelView, layout: TreeLayout, row: npt.NDArray[np.float32]) -> None:
    outline = _sample_outline(layout)
    frame: dict[str, Any] = {"edgecolor": ACCENT, "linewidth": 1.8}
    if view.image_shape is not None:
        draw_image(canvas, outline, as_image(row[0], view.image_shape), **frame)
    else:
        shown = np.arange(min(3, row.shape[1]))
        if isinstance(view.tree, FlatTree) and view.tree.structure.n_splits:
            shown = rank_features(compute_effects(view.tree, 0), 3)
        values = [view.describe_value(int(number), float(row[0, number])) for number in shown]
        draw_lines(canvas, outline, values, **frame)
    _, right, lower, upper = outline
    root, middle = float(layout.x[0]) - max(layout.width[0] / 2, 0.5), (lower + upper) / 2
    tip = make_arrow((right + 0.06, middle), (root - 0.03, middle), 0.05)
    canvas.ax.add_collection(PolyCollection([tip], facecolors=[ACCENT], linewidths=0, zorder=1, label="sample"))
    canvas.write((outline[0] + right) / 2, upper + 0.03, "the sample", SMALL, va="bottom", color=ACCENT)


def _legend_entries(view: ModelView, with_sample: bool, ticks: bool) -> list[LegendEntry]:
    """Return the entries of the legend."""
    notes = []
    if view.tree.structure.n_splits:
        kind = "image" if view.has_weight_images else "threshold" if view.has_axis_splits else "terms"
        left, right = DIRECTIONS[kind]
        notes += [LegendEntry(left, "−"), LegendEntry(right, "+")]
        if kind == "terms" and isinstance(view.tree, FlatTree):
            notes += [
                LegendEntry("weight that pushes right", color=RIGHT),
                LegendEntry("weight that pushes left", color=LEFT),
            ]
        notes.append(LegendEntry("thickness: training samples", color=ARROW))
    if with_sample:
        notes.append(LegendEntry("path of the sample", color=ACCENT))
    if view.is_regression:
        notes.append(LegendEntry("height: the mean, from the lowest to the highest", color=class_colors(1)[0]))
    if not ticks:
        colors = class_colors(len(view.class_names))
        notes += [LegendEntry(name, color=color) for name, color in zip(view.class_names, colors, strict=True)]
    return notes


def _arrange_entries(notes: list[LegendEntry], inches: float) -> list[tuple[float, int, LegendEntry]]:
    """Arrange entries in as many lines as the width needs. (x in inches, line, entry)"""
    places, x, line = [], 0.0, 0
    for note in notes:
        width = SIGN + text_width(note.text, SMALL)
        if x > 0 and x + width > inches - 0.2:
            x, line = 0.0, line + 1
        places.append((x, line, note))
        x += width + SPACE
    return places


def _draw_legend(canvas: PlotCanvas, notes: list[tuple[float, int, LegendEntry]], left: float, upper: float) -> None:
    for inches, line, note in notes:
        x, y = left + inches / canvas.inch, upper - (line + 0.5) * LINE / canvas.inch
        if note.sign:
            middle, thin = x + 0.045 / canvas.inch, 0.5 * canvas.factor
            circle = Circle((middle, y), 0.06 / canvas.inch, facecolor="white", edgecolor=DARK, linewidth=thin)
            canvas.ax.add_patch(circle)
            canvas.write(middle, y, note.sign, SMALL, va="center_baseline", fontweight="bold")
        else:
            canvas.draw_bar(x, y, 0.09 / canvas.inch, 0.09 / canvas.inch, note.color)
        canvas.write(x + SIGN / canvas.inch, y, note.text, SMALL, ha="left", va="center_baseline", color=MUTED)
