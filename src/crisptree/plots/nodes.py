"""Nodes of a tree plot: a weight image, the largest weights, a threshold, a box for a module, or class bars."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from crisptree.inference import FlatTree
from crisptree.inspection import ModelView, rules
from crisptree.inspection.importances import compute_effects
from crisptree.plots.style import (
    ACCENT,
    DARK,
    FAINT,
    LARGE,
    LARGEST,
    MUTED,
    SMALL,
    TINY,
    Outline,
    PlotCanvas,
    class_colors,
    line_height,
    text_width,
)
from crisptree.plots.weights import GRAY, weight_image

Doubles = npt.NDArray[np.float64]

MAX_TERMS = 3
"""Weights listed at a split of tabular data."""

MIN_NAMED_SHARE, MAX_NAMED = 0.05, 2
"""A leaf names so many classes beside its first, if they have at least this share."""


def draw_split(canvas: PlotCanvas, view: ModelView, outline: Outline, split: int) -> None:
    """Draw the rule of a split into its outline."""
    tree, names = view.tree, view.feature_names
    if not isinstance(tree, FlatTree):
        draw_lines(canvas, outline, [view.split_name, f"split {split}"])
    elif view.image_shape is not None:
        draw_image(canvas, outline, weight_image(view, split))
    elif np.count_nonzero(tree.weight[split]) == 1:  # a threshold in the unit of the feature
        feature = int(np.flatnonzero(tree.weight[split])[0])
        weight, bias = float(tree.weight[split, feature]), float(tree.bias[split])
        draw_lines(canvas, outline, [names[feature], f"{'>' if weight > 0 else '<'} {-bias / weight:.4g}"])
    else:
        _draw_terms(canvas, outline, tree, split, names)


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


def _draw_terms(canvas: PlotCanvas, outline: Outline, tree: FlatTree, split: int, names: list[str]) -> None:
    """Draw a rule in raw units: its largest terms on bars of their effects, and the threshold below."""
    left, right, lower, upper = outline
    canvas.draw_frame(outline)
    effect, rule = compute_effects(tree, split), rules.make_split_rule(tree, split, MAX_TERMS)
    step = (upper - lower) / (MAX_TERMS + 1.2)
    top = upper - 0.1 * step - (MAX_TERMS - len(rule.terms)) * step / 2
    reach = max((abs(effect[feature]) for _, feature in rule.terms), default=1.0)
    x, size, wide = (left + right) / 2, min(0.6 * step * canvas.inch * 72, LARGEST), 0.94 * (right - left)
    for row, (said, (_, feature)) in enumerate(zip(rule.format_terms(names, 3), rule.terms, strict=True)):
        y = top - (row + 0.5) * step
        canvas.draw_push(x, y, wide / 2 * effect[feature] / reach, 0.8 * step)
        canvas.write(x, y, said, size, max_width=wide)
    more = f"+ {rule.left_out} more " if rule.left_out else ""
    says = (
        f"{more}> {rules.format_number(rule.threshold)}"
        if rule.terms or rule.left_out
        else "no weights: all go one way"
    )
    canvas.write(x, top - (len(rule.terms) + 0.5) * step, says, size, fontweight="bold", max_width=wide)
    ends = [top - step * len(rule.terms), top]
    canvas.ax.plot([x, x], ends, color=FAINT, linewidth=0.5 * canvas.factor, zorder=2.5)


def end_lines(view: ModelView, node: int, letter: str | None = None) -> list[tuple[str, float, dict[str, Any]]]:
    """Return the text lines below an end: its class, the next ones, the training samples. (text, size, style)"""
    below = " …" if node < view.tree.structure.n_splits else ""  # a subtree that is not drawn
    if view.is_regression:
        return _regression_lines(view, node, letter, below)
    (name, share), *others = view.rank_classes(node)
    first = name if letter is None else f"{letter}: {name}"
    lines: list[tuple[str, float, dict[str, Any]]] = [(first, LARGE, {"fontweight": "bold"})]
    lines.append((format_percent(share), SMALL, {}))
    for other, part in others[:MAX_NAMED]:
        if part >= MIN_NAMED_SHARE:
            lines.append((other, TINY, {"color": MUTED, "tail": f": {format_percent(part)}"}))
    lines.append((f"n = {view.node_weights[node]:,.6g}{_model_note(view)}{below}", TINY, {"color": MUTED}))
    return lines


def _model_note(view: ModelView) -> str:
    return ", linear" if view.tree.is_linear else ""


def _regression_lines(
    view: ModelView, node: int, letter: str | None, below: str
) -> list[tuple[str, float, dict[str, Any]]]:
    """Return the means of an end with the standard deviations of its rows."""
    lines: list[tuple[str, float, dict[str, Any]]] = []
    found = view.node_moments(node)
    for name, mean, spread in found[: MAX_NAMED + 1]:
        said = f"{mean:.4g}" if len(found) == 1 else f"{name}: {mean:.4g}"
        said = said if lines or letter is None else f"{letter}: {said}"
        lines += [(said, LARGE, {"fontweight": "bold"}), (f"± {spread:.2g}", SMALL, {})]
    lines.append((f"n = {view.node_weights[node]:,.6g}{_model_note(view)}{below}", TINY, {"color": MUTED}))
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
    for text, size, style in end_lines(view, node, letter):
        height = line_height(size, canvas.inch)
        canvas.write(x, y - height / 2, text, size, max_width=0.92, **style)
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
