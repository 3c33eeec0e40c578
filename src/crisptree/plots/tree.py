"""The whole tree: weight images or the largest weights at the splits, class bars at the leaves, a key under them."""

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
from crisptree.plots.layout import Layout, arrow
from crisptree.plots.nodes import class_ticks_fit, draw_end, draw_image, draw_lines, draw_split, end_lines
from crisptree.plots.sheet import SMALL, TINY, Outline, Sheet, line_height
from crisptree.plots.style import ACCENT, ARROW, DARK, LEFT, MUTED, RIGHT, class_colors, text_width
from crisptree.plots.weights import as_image

KINDS: dict[str, tuple[float, dict[str, float]]] = {
    "image": (0.85, {"widest": 1.9}),
    "terms": (1.0, {"widest": 2.4, "aspect": 0.4, "lowest": 0.68}),
    "module": (0.9, {"widest": 1.3, "aspect": 0.4, "lowest": 0.5}),
}
"""The inches of two neighbouring ends at the natural size, and the shape of splits; see ``tree_layout``."""

THINNEST, THICKEST = 0.012, 0.17
"""Arrows, in units."""

NARROWEST = 4.2
"""Inches; a smaller tree stands in the middle of that much."""

MARGIN = 0.15

LINE, SIGN, SPACE = 0.17, 0.17, 0.22
"""Of the key, in inches: the height of a line, the width of a sign, the space between two notes."""

QUESTIONS = {
    "image": ("left: resembles the negative of the image", "right: resembles the image"),
    "threshold": ("left: no", "right: yes"),
    "terms": ("left: no", "right: yes"),
}


class Note(NamedTuple):
    """A line of the key: what a sign, or else a bar of that colour, means."""

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
    """Draw a fitted tree.

    A row goes right where it resembles the weight image of the split, left where it resembles its negative; of a table,
    where the rule of the split holds: its largest terms in raw units, with their weights, and its threshold. Arrows
    are as thick as the training samples that follow them. Bars in a leaf are its class probabilities; where numbers are
    predicted, how high its means lie between the lowest and the highest of all.

    Parameters
    ----------
    model : CrispTreeClassifier, CrispTreeRegressor or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure of the size that the tree needs. Text shrinks with smaller axes.
    max_depth : int, default=None
        Draw only so many levels of splits; what is below them is drawn as class bars of its rows.
    class_names, feature_names : list of str, default=None
        Words in place of ``classes_`` and ``feature_names_in_``.
    sample : array-like of n_features numbers, default=None
        A row or an image whose path is drawn in colour.
    letters : bool, default=False
        Call the leaves A, B, … from left to right and number the splits, as ``plot_regions`` does.
    key : bool, default=True
        Say under the tree how to read it.

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
    layout = layouts.tree_layout(structure, check_optional_integer("max_depth", max_depth, 0), **shape)
    row = None if sample is None else view.prepare_row(sample, "sample")
    path = set() if row is None else set(structure.nodes_to(int(view.apply(row)[0])))
    names = {node: layouts.letters(number) for number, node in enumerate(layout.ends)} if letters else {}
    ticks = class_ticks_fit(view.class_names, float(layout.width[layout.ends[0]]), inch)
    sizes = [[size for _, size, _ in end_lines(view, node, names.get(node))] for node in layout.ends]
    text = max(line_height(sum(lines), inch) for lines in sizes) + (1.25 if ticks else 0.25) * line_height(TINY, inch)
    left, right, lower, upper = _limits(layout, inch, text, row is not None)
    notes = _arranged(_notes(view, row is not None, ticks) if key else [], (right - left) * inch)
    bottom = lower - ((notes[-1][1] + 1) * LINE + 0.1) / inch if notes else lower
    sheet = Sheet.of(ax, (left, right, bottom, upper), inch)
    _draw_arrows(sheet, view, layout, path)
    for node in layout.nodes:
        outline, marked = layout.outline(node), node in path
        if layout.is_end(node):
            draw_end(sheet, view, outline, node, names.get(node), ticks, marked)
            continue
        draw_split(sheet, view, outline, node)
        if letters:
            badge = {"facecolor": DARK, "edgecolor": "none", "boxstyle": "round,pad=0.2"}
            sheet.write(outline[0], outline[3], str(node), SMALL, color="white", fontweight="bold", bbox=badge)
        if marked:
            sheet.frame(outline, facecolor="none", edgecolor=ACCENT, linewidth=1.8, zorder=4)
    if row is not None:
        _draw_sample(sheet, view, layout, row)
    _draw_key(sheet, notes, left + 0.1, lower)
    return sheet.ax


def _limits(layout: Layout, inch: float, text: float, with_sample: bool) -> Outline:
    """Left, right, lower and upper edge of all nodes, their text and the sample, without the key."""
    left = min(-0.5, float(np.nanmin(layout.x - layout.width / 2))) - MARGIN
    right = max(len(layout.ends) - 0.5, float(np.nanmax(layout.x + layout.width / 2))) + MARGIN
    if with_sample:
        left = min(left, _sample_outline(layout)[0] - MARGIN)
    missing = NARROWEST / inch - (right - left)
    if missing > 0:
        left, right = left - missing / 2, right + missing / 2
    lower = float(np.nanmin(layout.y - layout.height / 2)) - text - 0.1
    return left, right, lower, layout.outline(0)[3] + 0.2 + (0.25 if with_sample else 0)


def _sample_outline(layout: Layout) -> Outline:
    """Where the sample stands: left of the root, about as large."""
    left, right, lower, upper = layout.outline(0)
    side = max(right - left, 1.2)  # values are written in full beside a single leaf
    return left - 0.55 - side, left - 0.55, lower, upper


def _draw_arrows(sheet: Sheet, view: ModelView, layout: Layout, path: set[int]) -> None:
    """From every split to its children, a sign beside the tail."""
    share = view.node_weights / max(view.node_weights[0], np.finfo(float).tiny)
    outlines, colors, circles = [], [], []
    for parent, child, goes_right in layout.edges:
        left, right, lower, _ = layout.outline(parent)
        start = np.array([layout.x[parent] + (0.25 if goes_right else -0.25) * (right - left), lower])
        end = np.array([layout.x[child], layout.outline(child)[3] + (0.06 if layout.is_end(child) else 0.02)])
        outlines.append(arrow(start, end, THINNEST + (THICKEST - THINNEST) * share[child]))
        colors.append(ACCENT if child in path else ARROW)
        x, y = start + 0.3 * (end - start)
        circles.append(Circle((x, y), 0.085))
        sheet.write(x, y, "+" if goes_right else "−", SMALL, va="center_baseline", fontweight="bold")
    sheet.ax.add_collection(PolyCollection(outlines, facecolors=colors, linewidths=0, zorder=1, label="arrows"))
    style: dict[str, Any] = {"facecolors": "white", "edgecolors": DARK, "linewidths": 0.5 * sheet.factor}
    sheet.ax.add_collection(PatchCollection(circles, zorder=1.5, label="signs", **style))


def _draw_sample(sheet: Sheet, view: ModelView, layout: Layout, row: npt.NDArray[np.float32]) -> None:
    outline = _sample_outline(layout)
    frame: dict[str, Any] = {"edgecolor": ACCENT, "linewidth": 1.8}
    if view.image_shape is not None:
        draw_image(sheet, outline, as_image(row[0], view.image_shape), **frame)
    else:
        shown = np.arange(min(3, row.shape[1]))
        if isinstance(view.tree, FlatTree) and view.tree.structure.n_splits:
            shown = rank_features(compute_effects(view.tree, 0), 3)
        values = [view.describe_value(int(number), float(row[0, number])) for number in shown]
        draw_lines(sheet, outline, values, **frame)
    _, right, lower, upper = outline
    root, middle = float(layout.x[0]) - max(layout.width[0] / 2, 0.5), (lower + upper) / 2
    tip = arrow((right + 0.06, middle), (root - 0.03, middle), 0.05)
    sheet.ax.add_collection(PolyCollection([tip], facecolors=[ACCENT], linewidths=0, zorder=1, label="sample"))
    sheet.write((outline[0] + right) / 2, upper + 0.03, "the sample", SMALL, va="bottom", color=ACCENT)


def _notes(view: ModelView, with_sample: bool, ticks: bool) -> list[Note]:
    """What the drawing of a model needs said under it."""
    notes = []
    if view.tree.structure.n_splits:
        kind = "image" if view.has_weight_images else "threshold" if view.has_axis_splits else "terms"
        left, right = QUESTIONS[kind]
        notes += [Note(left, "−"), Note(right, "+")]
        if kind == "terms" and isinstance(view.tree, FlatTree):
            notes += [Note("weight that pushes right", color=RIGHT), Note("weight that pushes left", color=LEFT)]
        notes.append(Note("thickness: training samples", color=ARROW))
    if with_sample:
        notes.append(Note("path of the sample", color=ACCENT))
    if view.is_regression:
        notes.append(Note("height: the mean, from the lowest to the highest", color=class_colors(1)[0]))
    if not ticks:
        colors = class_colors(len(view.class_names))
        notes += [Note(name, color=color) for name, color in zip(view.class_names, colors, strict=True)]
    return notes


def _arranged(notes: list[Note], inches: float) -> list[tuple[float, int, Note]]:
    """Notes one after the other, in as many lines as the width needs. (x in inches, line, note)"""
    places, x, line = [], 0.0, 0
    for note in notes:
        width = SIGN + text_width(note.text, SMALL)
        if x > 0 and x + width > inches - 0.2:
            x, line = 0.0, line + 1
        places.append((x, line, note))
        x += width + SPACE
    return places


def _draw_key(sheet: Sheet, notes: list[tuple[float, int, Note]], left: float, upper: float) -> None:
    for inches, line, note in notes:
        x, y = left + inches / sheet.inch, upper - (line + 0.5) * LINE / sheet.inch
        if note.sign:
            middle, thin = x + 0.045 / sheet.inch, 0.5 * sheet.factor
            circle = Circle((middle, y), 0.06 / sheet.inch, facecolor="white", edgecolor=DARK, linewidth=thin)
            sheet.ax.add_patch(circle)
            sheet.write(middle, y, note.sign, SMALL, va="center_baseline", fontweight="bold")
        else:
            sheet.bar(x, y, 0.09 / sheet.inch, 0.09 / sheet.inch, note.color)
        sheet.write(x + SIGN / sheet.inch, y, note.text, SMALL, ha="left", va="center_baseline", color=MUTED)
