"""One node of a drawn tree: a weight image, the largest weights, a threshold, a module's box, or class bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from crisptree.inference import FlatTree
from crisptree.plots.layout import Layout
from crisptree.plots.style import ACCENT, DARK, FAINT, LEFT, MUTED, RIGHT, shortened, text_width, write
from crisptree.plots.weight_images import as_image
from crisptree.view import ModelView
from crisptree.view.influence import effects, most_influential

Doubles = npt.NDArray[np.float64]
Outline = tuple[float, float, float, float]

TERMS = 3
"""Weights named at a split of tabular data."""

LARGEST, LARGE, SMALL, TINY = 11.0, 9.5, 7.2, 5.8
"""Sizes of text, in points of a drawing at its natural size."""

LARGEST_FIGURE = 120.0
"""Inches; a larger drawing is made smaller, text and all, because a bitmap of it could not be saved."""

SMALLEST = 0.75
"""Text that does not fit is shrunk to this part of its size before it is shortened."""

NAMED_SHARE, MOST_NAMED = 0.05, 2
"""A leaf names so many classes beside its first, if they have at least this share."""


GRAY: dict[str, Any] = {"cmap": "gray", "vmin": 0, "vmax": 1}


@dataclass(frozen=True, eq=False)
class Sheet:
    """Axes in units of the layout. Text is measured at the natural size; ``factor`` shrinks it with the axes.

    Parameters
    ----------
    ax : matplotlib axes
        Where to draw.
    inch : float
        Inches of one unit at the natural size.
    factor : float
        The size of the axes by the natural size.
    """

    ax: Axes
    inch: float
    factor: float

    def write(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        *,
        max_width: float | None = None,
        tail: str = "",
        **style: Any,
    ) -> None:
        """Text at a place; wider than ``max_width`` units it becomes smaller, and shorter if that is not enough.

        ``tail`` stands behind the text and is never cut off: a number after a long name.
        """
        if max_width is not None:
            weight = style.get("fontweight", "normal")
            wish = size * max_width * self.inch / max(text_width(text + tail, size, weight), 1e-9)
            size = float(np.clip(wish, SMALLEST * size, size))
            text = shortened(text, max_width * self.inch - text_width(tail, size, weight), size, weight)
        write(self.ax, x, y, text + tail, size * self.factor, **style)

    def line(self, size: float) -> float:
        """The height of a line of text in units."""
        return line_height(size, self.inch)

    def frame(self, outline: Outline, **style: Any) -> None:
        left, right, lower, upper = outline
        usual: dict[str, Any] = {"facecolor": "white", "edgecolor": DARK, "linewidth": 0.6 * self.factor, "zorder": 2}
        self.ax.add_patch(Rectangle((left, lower), right - left, upper - lower, **usual | style))


def line_height(size: float, inch: float) -> float:
    return 1.25 * size / 72 / inch


def sheet_of(ax: Axes | None, limits: tuple[float, float, float, float], inch: float) -> Sheet:
    """Axes that show exactly the limits, and how large they are."""
    left, right, lower, upper = limits
    natural = ((right - left) * inch, (upper - lower) * inch)
    if ax is None:
        smaller = min(1.0, LARGEST_FIGURE / max(natural))
        size = (natural[0] * smaller, natural[1] * smaller)
        ax = plt.figure(figsize=size).add_axes((0.0, 0.0, 1.0, 1.0))
    box, dpi = ax.get_window_extent(), ax.figure.dpi
    factor = min(box.width / dpi / natural[0], box.height / dpi / natural[1])
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_autoscale_on(False)
    ax.set_xlim(left, right)
    ax.set_ylim(lower, upper)
    return Sheet(ax, inch, factor)


def draw_split(sheet: Sheet, view: ModelView, layout: Layout, split: int) -> None:
    """What the split asks, in the node's outline."""
    outline, tree = layout.outline(split), view.tree
    if not isinstance(tree, FlatTree):
        draw_lines(sheet, outline, [view.split_name, f"split {split}"])
        return
    if view.image_shape is not None:
        draw_image(sheet, outline, as_image(view.scaled_weights(split), view.image_shape, view.varies))
    elif np.count_nonzero(tree.weight[split]) == 1:
        _draw_threshold(sheet, outline, tree, split, view.feature_names)
    else:
        _draw_terms(sheet, outline, effects(tree, split), view.feature_names)


def draw_image(sheet: Sheet, outline: Outline, image: Doubles, paint: dict[str, Any] = GRAY, **frame: Any) -> None:
    """An image as large as the outline allows, its pixels square."""
    left, right, lower, upper = outline
    height, width = image.shape[:2]
    pixel = min((right - left) / width, (upper - lower) / height)
    x, y, half, tall = (left + right) / 2, (lower + upper) / 2, pixel * width / 2, pixel * height / 2
    extent = (x - half, x + half, y - tall, y + tall)
    # interpolation="none" keeps the pixels themselves in vector files, instead of one large bitmap.
    sheet.ax.imshow(image, extent=extent, interpolation="none", zorder=2, **paint)
    sheet.frame(extent, **{"facecolor": "none", "zorder": 3} | frame)


def draw_lines(sheet: Sheet, outline: Outline, lines: list[str], **frame: Any) -> None:
    """A box with lines of text, as large as they may be."""
    left, right, lower, upper = outline
    sheet.frame(outline, **frame)
    step = min(sheet.line(LARGEST), 0.8 * (upper - lower) / max(len(lines), 1))
    size = LARGEST * step / sheet.line(LARGEST)
    for number, text in enumerate(lines):
        y = (lower + upper) / 2 + ((len(lines) - 1) / 2 - number) * step
        sheet.write((left + right) / 2, y, text, size, max_width=0.94 * (right - left))


def _draw_threshold(sheet: Sheet, outline: Outline, tree: FlatTree, split: int, names: list[str]) -> None:
    """A split on one feature, as a question in the feature's own unit; true goes right."""
    feature = int(np.flatnonzero(tree.weight[split])[0])
    weight, bias = float(tree.weight[split, feature]), float(tree.bias[split])
    draw_lines(sheet, outline, [names[feature], f"{'>' if weight > 0 else '<'} {-bias / weight:.4g}"])


def _draw_terms(sheet: Sheet, outline: Outline, effect: Doubles, names: list[str]) -> None:
    """The largest effects as signed bars behind their names: to the right what sends a row right."""
    left, right, lower, upper = outline
    sheet.frame(outline)
    largest = most_influential(effect, TERMS)
    others = np.count_nonzero(effect) - len(largest)
    step = (upper - lower) / (TERMS + 0.8)
    top = upper - (0.8 if not others and len(largest) else 0.0) * step / 2 - (TERMS - len(largest)) * step / 2
    reach = np.abs(effect[largest]).max(initial=np.finfo(float).tiny)
    x, size = (left + right) / 2, min(0.6 * step * sheet.inch * 72, LARGEST)
    for row, feature in enumerate(largest):
        y = top - (row + 0.5) * step
        length = 0.47 * (right - left) * effect[feature] / reach
        color = RIGHT if length > 0 else LEFT
        bar = Rectangle((x, y - 0.4 * step), length, 0.8 * step, facecolor=color, alpha=0.45, linewidth=0, zorder=3)
        sheet.ax.add_patch(bar)
        sheet.write(x, y, names[feature], size, max_width=0.94 * (right - left))
    if others or not len(largest):
        more = f"and {others} smaller" if others else "no weights: all go one way"
        sheet.write(
            x, top - (len(largest) + 0.4) * step, more, 0.8 * size, max_width=0.94 * (right - left), color=MUTED
        )
    sheet.ax.plot([x, x], [top - step * len(largest), top], color=FAINT, linewidth=0.5 * sheet.factor, zorder=2.5)


def end_lines(view: ModelView, node: int, letter: str | None = None) -> list[tuple[str, float, dict[str, Any]]]:
    """What is written under an end: its class, the next ones, the number of training samples. (text, size, style)"""
    (name, share), *others = view.ranked(node)
    first = name if letter is None else f"{letter}: {name}"
    below = " …" if node < view.tree.structure.n_splits else ""  # there is more that is not drawn
    lines: list[tuple[str, float, dict[str, Any]]] = [(first, LARGE, {"fontweight": "bold"})]
    lines.append((percent(share), SMALL, {}))
    for other, part in others[:MOST_NAMED]:
        if part >= NAMED_SHARE:
            lines.append((other, TINY, {"color": MUTED, "tail": f": {percent(part)}"}))
    lines.append((f"n = {view.node_rows[node]:,.6g}{below}", TINY, {"color": MUTED}))
    return lines


def percent(share: float) -> str:
    """A share in whole percent; what is not all is not called 100 %.

    Examples
    --------
    >>> percent(1.0), percent(0.9999), percent(0.42)
    ('100 %', '>99 %', '42 %')
    """
    return ">99 %" if 0.995 <= share < 1 else f"{100 * share:.0f} %"


def class_ticks_fit(classes: list[str], width: float, inch: float) -> bool:
    """Whether every class name fits under its own bar."""
    return max(text_width(name, TINY) for name in classes) <= 0.85 * width / len(classes) * inch


def draw_end(
    sheet: Sheet,
    view: ModelView,
    layout: Layout,
    node: int,
    colors: Doubles,
    *,
    letter: str | None,
    ticks: bool,
    marked: bool,
) -> None:
    """Class bars with names under them."""
    left, right, lower, upper = layout.outline(node)
    draw_bars(sheet.ax, (left, right, lower, upper), view.tables[node], colors, sheet.factor)
    x, y = (left + right) / 2, lower - 0.25 * sheet.line(TINY)
    if ticks:
        step = (right - left) / len(view.class_names)
        for number, name in enumerate(view.class_names):
            place = left + (number + 0.5) * step
            sheet.write(place, y - sheet.line(TINY) / 2, name, TINY, color=MUTED)
        y -= sheet.line(TINY)
    for text, size, style in end_lines(view, node, letter):
        sheet.write(x, y - sheet.line(size) / 2, text, size, max_width=0.92, **style)
        y -= sheet.line(size)
    if marked:
        sheet.frame((x - 0.49, x + 0.49, y - 0.03, upper + 0.03), facecolor="none", edgecolor=ACCENT, linewidth=1.6)


def draw_bars(ax: Axes, outline: Outline, table: Doubles, colors: Doubles, factor: float = 1.0) -> None:
    """One bar per class on a line, as tall as the outline for probability one."""
    left, right, lower, upper = outline
    width = (right - left) / len(table)
    bars = [
        Rectangle((left + (number + 0.06) * width, lower), 0.88 * width, (upper - lower) * share)
        for number, share in enumerate(table)
    ]
    ax.add_collection(PatchCollection(bars, facecolors=colors, linewidths=0, zorder=2, label="bars"))
    ax.plot([left, right], [lower, lower], color=DARK, linewidth=0.6 * factor, zorder=3, solid_capstyle="butt")
