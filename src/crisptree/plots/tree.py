"""The tree: weight images or the largest weights at the splits, class bars at the leaves, a legend below."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection, PolyCollection
from matplotlib.patches import Circle, Rectangle

from crisptree.inference import FlatTree
from crisptree.inspection import ModelView, Names, view_model
from crisptree.inspection.display import format_number
from crisptree.inspection.linear_splits import compute_effects, rank_features
from crisptree.inspection.sentences import split_lines
from crisptree.inspection.validation import check_boolean, check_optional_integer
from crisptree.plots.style import (
    ACCENT,
    ARROW,
    DARK,
    FAINT,
    LARGE,
    LARGEST,
    LEFT,
    MIN_TEXT_SCALE,
    MUTED,
    RIGHT,
    SMALL,
    TINY,
    Outline,
    PlotCanvas,
    class_colors,
    leaf_letters,
    line_height,
    text_width,
    truncate_text,
)
from crisptree.plots.weights import GRAY, as_image, weight_image
from crisptree.structure import TreeStructure

Doubles = npt.NDArray[np.float64]
EndLine = tuple[str, float, dict[str, Any]]
"""Text, font size and style."""

KINDS: dict[str, tuple[float, dict[str, float]]] = {
    "image": (0.85, {"widest": 1.9}),
    "terms": (1.0, {"widest": 2.4, "aspect": 0.4, "lowest": 0.68}),
    "module": (0.9, {"widest": 1.3, "aspect": 0.4, "lowest": 0.5}),
}
"""Inches between two neighbouring ends at the natural size, and the shape of splits; see ``compute_layout``."""

MAX_TEXT_UNITS = 0.92
"""Of the width of an end, for the text below it."""

MAX_END_INCHES = 1.9
"""Between two neighbouring ends, where the formulas of leaves need more than the natural size."""

MIN_THICKNESS, MAX_THICKNESS = 0.012, 0.17
"""Of arrows, in units."""

MAX_WIDTH = 16.0
"""Inches; of a wider tree the subtrees with the fewest training rows are collapsed."""

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

MAX_TERMS = 3
"""Weights listed at a split of tabular data."""

MIN_NAMED_SHARE, MAX_NAMED = 0.05, 2
"""A leaf names so many classes beside its first, if they have at least this share."""

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


def select_collapsed(structure: TreeStructure, weights: Doubles, max_ends: float) -> list[int]:
    """Select the splits to draw as ends, so that there are at most ``max_ends``, and two; those of most rows stay open.

    Examples
    --------
    >>> chain = TreeStructure([-1, -2, -3], [1, 2, -4])
    >>> select_collapsed(chain, np.array([9.0, 5.0, 3.0, 4.0, 2.0, 2.0, 1.0]), max_ends=3)
    [2]
    """
    waiting, n_ends = [(-float(weights[0]), 0)] if structure.n_splits else [], 1
    while waiting and n_ends + 1 <= max(max_ends, 2):
        _, split = heapq.heappop(waiting)
        n_ends += 1
        for child in (int(structure.left_nodes[split]), int(structure.right_nodes[split])):
            if child < structure.n_splits:
                heapq.heappush(waiting, (-float(weights[child]), child))
    return sorted(split for _, split in waiting)


def compute_layout(
    structure: TreeStructure,
    collapsed: Sequence[int] = (),
    *,
    widest: float = 2,
    aspect: float = 1,
    lowest: float = 0,
) -> TreeLayout:
    """Compute positions: ends side by side from left to right, a split above the middle of its children.

    Collapsed splits become ends. A split is ``widest`` wide where there is room, and ``aspect`` times as tall, but at
    least ``lowest``.
    """
    drawn, nodes = structure.prune(collapsed)
    is_end, ends = np.arange(drawn.n_nodes) >= drawn.n_splits, drawn.n_splits + drawn.leaves_left_to_right
    children = np.stack([drawn.left_nodes, drawn.right_nodes], axis=1)
    x = np.zeros(drawn.n_nodes)
    x[ends] = np.arange(drawn.n_leaves)
    for split in reversed(range(drawn.n_splits)):
        x[split] = x[children[split]].mean()
    width = np.where(is_end, END, _split_widths(x, drawn, is_end, widest)[drawn.node_depths])
    height = np.where(is_end, END, np.maximum(width * aspect, lowest))
    y = _levels(x, height, drawn)[drawn.node_depths]
    positions = np.full((4, structure.n_nodes), np.nan)
    positions[:, nodes] = x, y, width, height
    edges = [
        (int(nodes[split]), int(nodes[child]), goes_right)
        for split, both in enumerate(children)
        for child, goes_right in zip(both, (False, True), strict=True)
    ]
    return TreeLayout(sorted(nodes.tolist()), nodes[ends].tolist(), edges, *positions)


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
    """Compute the outline of an arrow from start to end.  (7, 2)"""
    tail, tip = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    length = float(np.linalg.norm(tip - tail))
    along = (tip - tail) / max(length, np.finfo(float).tiny)
    across = np.array([-along[1], along[0]]) / 2
    head = min(0.09 + 0.7 * thickness, length)
    broad = thickness + 0.09 + 0.3 * thickness
    neck = tip - head * along
    half, wing = thickness * across, broad * across
    return np.array([tail + half, neck + half, neck + wing, tip, neck - wing, neck - half, tail - half])


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
    max_width: float | None = MAX_WIDTH,
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
        Number of levels of splits to draw, whatever their width; subtrees below are collapsed: drawn as one end with
        their number of leaves.
    max_width : float, default=16
        Inches at the natural size, such as 7.5 for a page. Where the tree is wider and ``max_depth`` is None, the
        subtrees with the fewest training rows are collapsed. None draws every leaf.
    class_names, feature_names : list of str, default=None
        Names in place of ``classes_`` and ``feature_names_in_``.
    sample : array-like of n_features numbers or explain.Pixel, default=None
        A row or an image whose path is highlighted.
    letters : bool, default=False
        Label the leaves A, B, … from left to right and number the splits, as ``plot_regions`` does.
    key : bool, default=True
        Draw a legend below the tree.

    Examples
    --------
    >>> from crisptree import CrispTreeClassifier
    >>> from crisptree.datasets import load_digits
    >>> from crisptree.plots import plot_tree
    >>> digits = load_digits()
    >>> model = CrispTreeClassifier(max_depth=2, input_noise=0.0, l1=0.0, image_shape=(8, 8), random_state=0)
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
    collapsed = _collapsed(view, check_optional_integer("max_depth", max_depth, 0), max_width, inch)
    layout = compute_layout(structure, collapsed, **shape)
    if ax is None and max_width is not None:
        natural, inch = inch, _widen_for_formulas(view, layout, inch, max_width, sample is not None)
        smaller = {key: value * natural / inch for key, value in shape.items() if key != "aspect"}
        layout = compute_layout(structure, collapsed, **shape | smaller)
    row = None if sample is None else view.prepare_row(sample, "sample")
    path = set() if row is None else set(structure.nodes_to(int(view.apply(row)[0])))
    names = {node: leaf_letters(number) for number, node in enumerate(layout.ends)} if letters else {}
    has_one = len(view.class_names) == 1  # and its mean stands below the bar
    ticks = not has_one and has_room_for_class_names(view.class_names, float(layout.width[layout.ends[0]]), inch)
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


def _collapsed(view: ModelView, max_depth: int | None, max_width: float | None, inch: float) -> Sequence[int]:
    """Return the splits that are drawn as ends."""
    structure = view.tree.structure
    if max_depth is not None:
        return np.flatnonzero(structure.node_depths[: structure.n_splits] == max_depth).tolist()
    if max_width is None:
        return []
    if isinstance(max_width, bool) or not isinstance(max_width, int | float | np.number) or not max_width > 0:
        raise ValueError(f"`max_width` must be a positive number of inches, or None for all leaves; got {max_width!r}.")
    return select_collapsed(structure, view.node_weights, max_width / inch - 2 * MARGIN)


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
    if not ticks and len(view.class_names) > 1:
        colors = class_colors(len(view.class_names))
        notes += [LegendEntry(name, color=color) for name, color in zip(view.class_names, colors, strict=True)]
    return notes


def _arrange_entries(notes: list[LegendEntry], inches: float) -> list[tuple[float, int, LegendEntry]]:
    """Arrange entries in as many lines as the width needs. (x in inches, line, entry)"""
    positions, x, line = [], 0.0, 0
    for note in notes:
        width = SIGN + text_width(note.text, SMALL)
        if x > 0 and x + width > inches - 0.2:
            x, line = 0.0, line + 1
        positions.append((x, line, note))
        x += width + SPACE
    return positions


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


def draw_split(canvas: PlotCanvas, view: ModelView, outline: Outline, split: int) -> None:
    """Draw the rule of a split into its outline."""
    if not isinstance(view.tree, FlatTree):
        draw_lines(canvas, outline, [view.split_name, f"split {split}"])
    elif view.image_shape is not None:
        draw_image(canvas, outline, weight_image(view, split))
    else:
        terms, comparison = split_lines(view, split, MAX_TERMS)
        if any(effect for _, effect in terms):
            _draw_terms(canvas, outline, terms, comparison)
        else:
            draw_lines(canvas, outline, [*(text for text, _ in terms), comparison])


def draw_image(
    canvas: PlotCanvas, outline: Outline, image: Doubles, paint: dict[str, Any] = GRAY, **frame: Any
) -> None:
    """Draw an image as large as the outline allows, with square pixels."""
    left, right, lower, upper = outline
    height, width = image.shape[:2]
    pixel = min((right - left) / width, (upper - lower) / height)
    x, y, half, tall = (left + right) / 2, (lower + upper) / 2, pixel * width / 2, pixel * height / 2
    extent = (x - half, x + half, y - tall, y + tall)
    # interpolation="none" keeps the pixels themselves in vector files, instead of one large bitmap.
    canvas.ax.imshow(image, extent=extent, interpolation="none", zorder=2, **paint)
    canvas.draw_frame(extent, **{"facecolor": "none", "zorder": 3} | frame)


def draw_lines(canvas: PlotCanvas, outline: Outline, lines: list[str], **frame: Any) -> None:
    """Draw a box with lines of text, as large as possible."""
    left, right, lower, upper = outline
    canvas.draw_frame(outline, **frame)
    line = line_height(LARGEST, canvas.inch)
    step = min(line, 0.8 * (upper - lower) / max(len(lines), 1))
    size = LARGEST * step / line
    for number, text in enumerate(lines):
        y = (lower + upper) / 2 + ((len(lines) - 1) / 2 - number) * step
        canvas.write((left + right) / 2, y, text, size, max_width=0.94 * (right - left))


def _draw_terms(canvas: PlotCanvas, outline: Outline, terms: list[tuple[str, float]], comparison: str) -> None:
    """Draw a rule in raw units: its largest terms on bars of their effects, and the comparison below."""
    left, right, lower, upper = outline
    canvas.draw_frame(outline)
    step = (upper - lower) / (MAX_TERMS + 1.2)
    top = upper - 0.1 * step - (MAX_TERMS - len(terms)) * step / 2
    limit = max(abs(effect) for _, effect in terms)
    x, size, wide = (left + right) / 2, min(0.6 * step * canvas.inch * 72, LARGEST), 0.94 * (right - left)
    for row, (term, effect) in enumerate(terms):
        y = top - (row + 0.5) * step
        canvas.draw_push(x, y, wide / 2 * effect / limit, 0.8 * step)
        canvas.write(x, y, term, size, max_width=wide)
    canvas.write(x, top - (len(terms) + 0.5) * step, comparison, size, fontweight="bold", max_width=wide)
    ends = [top - step * len(terms), top]
    canvas.ax.plot([x, x], ends, color=FAINT, linewidth=0.5 * canvas.factor, zorder=2.5)


def _widen_for_formulas(view: ModelView, layout: TreeLayout, inch: float, max_width: float, with_sample: bool) -> float:
    """Return the inches between two ends at which the formulas of leaves fit, within the width of the figure."""
    formulas = [text for node in layout.ends for text in _formula_lines(view, node)]
    if not formulas:
        return inch
    needed = max(text_width(text, TINY) for text in formulas) / MAX_TEXT_UNITS
    left, right, _, _ = _limits(layout, np.inf, 0.0, with_sample)
    return max(inch, min(needed, MAX_END_INCHES, max_width / (right - left)))


def _formula_lines(view: ModelView, node: int) -> list[str]:
    """Return the largest terms of a linear leaf, one on each line; none for other ends."""
    if node < view.tree.structure.n_splits:
        return []
    models = view.linear_leaf_terms(node, MAX_TERMS)[:1]
    return [text for name, parts in models for text in (f"{name} = {parts[0]}", *parts[1:])]


def end_lines(view: ModelView, node: int, letter: str | None = None) -> list[EndLine]:
    """Return the text lines below an end: its class and the next ones, or its means; then the training samples."""
    lines: list[EndLine] = []
    is_leaf = node >= view.tree.structure.n_splits
    if view.is_regression:
        moments = view.node_moments(node)
        for name, mean, spread in moments[: MAX_NAMED + 1]:
            value = format_number(mean) if len(moments) == 1 else f"{name}: {format_number(mean)}"
            lines += [(value, LARGE, {"fontweight": "bold"}), (f"± {format_number(spread, 2)}", SMALL, {})]
    else:
        (name, share), *others = view.rank_classes(node)
        lines += [(name, LARGE, {"fontweight": "bold"}), (format_percent(share), SMALL, {})]
        for other, part in others[:MAX_NAMED]:
            if part >= MIN_NAMED_SHARE:
                lines.append((other, TINY, {"color": MUTED, "tail": f": {format_percent(part)}"}))
    if letter is not None:
        lines[0] = (f"{letter}: {lines[0][0]}", *lines[0][1:])
    lines += [(text, TINY, {}) for text in _formula_lines(view, node)]
    lines.append((f"n = {view.node_weights[node]:,.6g}", TINY, {"color": MUTED}))
    if not is_leaf:  # a subtree that is not drawn
        lines.append((f"… {np.ptp(view.tree.structure.leaf_spans[node])} leaves", TINY, {"color": MUTED}))
    return lines


def format_percent(share: float) -> str:
    """Format a share in whole percent; only 1 is formatted as 100 %.

    Examples
    --------
    >>> format_percent(1.0), format_percent(0.9999), format_percent(0.42)
    ('100 %', '>99 %', '42 %')
    """
    return ">99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"


def has_room_for_class_names(classes: list[str], width: float, inch: float) -> bool:
    """Return True if every class name fits below its own bar."""
    return max(text_width(name, TINY) for name in classes) <= 0.85 * width / len(classes) * inch


def draw_end(
    canvas: PlotCanvas, view: ModelView, outline: Outline, node: int, letter: str | None, ticks: bool, marked: bool
) -> None:
    """Draw the class bars of an end and the text below."""
    left, right, lower, upper = outline
    tiny = line_height(TINY, canvas.inch)
    x, y = (left + right) / 2, lower - (1.25 if ticks else 0.25) * tiny
    draw_bars(canvas, outline, view.bar_heights[node], view.class_names if ticks else [], 0.75 * tiny)
    formula = set(_formula_lines(view, node))  # all of it in one size
    widest = max((text_width(text, TINY) for text in formula), default=0.0) / (MAX_TEXT_UNITS * canvas.inch)
    scale = float(np.clip(1 / max(widest, 1e-9), MIN_TEXT_SCALE, 1.0))
    for text, size, style in end_lines(view, node, letter):
        height = line_height(size, canvas.inch)
        if text in formula:
            shown = truncate_text(text, MAX_TEXT_UNITS * canvas.inch, size * scale)
            canvas.write(x, y - height / 2, shown, size * scale, **style)
        else:
            canvas.write(x, y - height / 2, text, size, max_width=MAX_TEXT_UNITS, **style)
        y -= height
    if marked:
        canvas.draw_frame(
            (x - 0.49, x + 0.49, y - 0.03, upper + 0.03), facecolor="none", edgecolor=ACCENT, linewidth=1.6
        )


def draw_bars(canvas: PlotCanvas, outline: Outline, table: Doubles, names: list[str], drop: float) -> None:
    """Draw one bar per class, as tall as the outline for probability one; names are ``drop`` below the baseline."""
    left, right, lower, upper = outline
    width = (right - left) / len(table)
    bars = [
        Rectangle((left + (number + 0.06) * width, lower), 0.88 * width, (upper - lower) * share)
        for number, share in enumerate(table)
    ]
    colors, thin = class_colors(len(table)), 0.6 * canvas.factor
    canvas.ax.add_collection(PatchCollection(bars, facecolors=colors, linewidths=0, zorder=2, label="bars"))
    canvas.ax.plot([left, right], [lower, lower], color=DARK, linewidth=thin, zorder=3, solid_capstyle="butt")
    for number, name in enumerate(names):
        canvas.write(left + (number + 0.5) * width, lower - drop, name, TINY, color=MUTED)
