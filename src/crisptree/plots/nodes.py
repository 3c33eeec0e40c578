"""One node of a drawn tree: a weight image, the largest weights, a threshold, a module's box, or class bars."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from crisptree.inference import FlatTree
from crisptree.inspection import ModelView, rules
from crisptree.inspection.importances import compute_effects
from crisptree.plots.sheet import LARGE, LARGEST, SMALL, TINY, Outline, Sheet, line_height
from crisptree.plots.style import ACCENT, DARK, FAINT, MUTED, class_colors, text_width
from crisptree.plots.weights import GRAY, weight_image

Doubles = npt.NDArray[np.float64]

TERMS = 3
"""Weights named at a split of tabular data."""

NAMED_SHARE, MOST_NAMED = 0.05, 2
"""A leaf names so many classes beside its first, if they have at least this share."""


def draw_split(sheet: Sheet, view: ModelView, outline: Outline, split: int) -> None:
    """What the split asks, in the node's outline."""
    tree, names = view.tree, view.feature_names
    if not isinstance(tree, FlatTree):
        draw_lines(sheet, outline, [view.split_name, f"split {split}"])
    elif view.image_shape is not None:
        draw_image(sheet, outline, weight_image(view, split))
    elif np.count_nonzero(tree.weight[split]) == 1:  # a question in the feature's own unit; true goes right
        feature = int(np.flatnonzero(tree.weight[split])[0])
        weight, bias = float(tree.weight[split, feature]), float(tree.bias[split])
        draw_lines(sheet, outline, [names[feature], f"{'>' if weight > 0 else '<'} {-bias / weight:.4g}"])
    else:
        _draw_terms(sheet, outline, tree, split, names)


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
    line = line_height(LARGEST, sheet.inch)
    step = min(line, 0.8 * (upper - lower) / max(len(lines), 1))
    size = LARGEST * step / line
    for number, text in enumerate(lines):
        y = (lower + upper) / 2 + ((len(lines) - 1) / 2 - number) * step
        sheet.write((left + right) / 2, y, text, size, max_width=0.94 * (right - left))


def _draw_terms(sheet: Sheet, outline: Outline, tree: FlatTree, split: int, names: list[str]) -> None:
    """The rule by which rows go right, in raw units: its largest terms with bars of their effects behind them, to the
    right what sends a row right, and the threshold under them.
    """
    left, right, lower, upper = outline
    sheet.frame(outline)
    effect, rule = compute_effects(tree, split), rules.make_split_rule(tree, split, TERMS)
    step = (upper - lower) / (TERMS + 1.2)
    top = upper - 0.1 * step - (TERMS - len(rule.terms)) * step / 2
    reach = max((abs(effect[feature]) for _, feature in rule.terms), default=1.0)
    x, size, wide = (left + right) / 2, min(0.6 * step * sheet.inch * 72, LARGEST), 0.94 * (right - left)
    for row, (said, (_, feature)) in enumerate(zip(rule.format_terms(names, 3), rule.terms, strict=True)):
        y = top - (row + 0.5) * step
        sheet.push(x, y, wide / 2 * effect[feature] / reach, 0.8 * step)
        sheet.write(x, y, said, size, max_width=wide)
    more = f"+ {rule.left_out} more " if rule.left_out else ""
    says = (
        f"{more}> {rules.format_number(rule.threshold)}"
        if rule.terms or rule.left_out
        else "no weights: all go one way"
    )
    sheet.write(x, top - (len(rule.terms) + 0.5) * step, says, size, fontweight="bold", max_width=wide)
    ends = [top - step * len(rule.terms), top]
    sheet.ax.plot([x, x], ends, color=FAINT, linewidth=0.5 * sheet.factor, zorder=2.5)


def end_lines(view: ModelView, node: int, letter: str | None = None) -> list[tuple[str, float, dict[str, Any]]]:
    """What is written under an end: its class, the next ones, the number of training samples. (text, size, style)"""
    below = " …" if node < view.tree.structure.n_splits else ""  # there is more that is not drawn
    if view.is_regression:
        return _number_lines(view, node, letter, below)
    (name, share), *others = view.rank_classes(node)
    first = name if letter is None else f"{letter}: {name}"
    lines: list[tuple[str, float, dict[str, Any]]] = [(first, LARGE, {"fontweight": "bold"})]
    lines.append((percent(share), SMALL, {}))
    for other, part in others[:MOST_NAMED]:
        if part >= NAMED_SHARE:
            lines.append((other, TINY, {"color": MUTED, "tail": f": {percent(part)}"}))
    lines.append((f"n = {view.node_weights[node]:,.6g}{_model_note(view)}{below}", TINY, {"color": MUTED}))
    return lines


def _model_note(view: ModelView) -> str:
    return ", linear" if view.tree.is_linear else ""


def _number_lines(
    view: ModelView, node: int, letter: str | None, below: str
) -> list[tuple[str, float, dict[str, Any]]]:
    """The means of an end, with the spreads of its rows."""
    lines: list[tuple[str, float, dict[str, Any]]] = []
    found = view.node_moments(node)
    for name, mean, spread in found[: MOST_NAMED + 1]:
        said = f"{mean:.4g}" if len(found) == 1 else f"{name}: {mean:.4g}"
        said = said if lines or letter is None else f"{letter}: {said}"
        lines += [(said, LARGE, {"fontweight": "bold"}), (f"± {spread:.2g}", SMALL, {})]
    lines.append((f"n = {view.node_weights[node]:,.6g}{_model_note(view)}{below}", TINY, {"color": MUTED}))
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
    sheet: Sheet, view: ModelView, outline: Outline, node: int, letter: str | None, ticks: bool, marked: bool
) -> None:
    """Class bars with names under them."""
    left, right, lower, upper = outline
    tiny = line_height(TINY, sheet.inch)
    x, y = (left + right) / 2, lower - (1.25 if ticks else 0.25) * tiny
    draw_bars(sheet, outline, view.bar_heights[node], view.class_names if ticks else [], 0.75 * tiny)
    for text, size, style in end_lines(view, node, letter):
        height = line_height(size, sheet.inch)
        sheet.write(x, y - height / 2, text, size, max_width=0.92, **style)
        y -= height
    if marked:
        sheet.frame((x - 0.49, x + 0.49, y - 0.03, upper + 0.03), facecolor="none", edgecolor=ACCENT, linewidth=1.6)


def draw_bars(sheet: Sheet, outline: Outline, table: Doubles, names: list[str], drop: float) -> None:
    """One bar per class on a line, as tall as the outline for probability one; names stand that far under the line."""
    left, right, lower, upper = outline
    width = (right - left) / len(table)
    bars = [
        Rectangle((left + (number + 0.06) * width, lower), 0.88 * width, (upper - lower) * share)
        for number, share in enumerate(table)
    ]
    colors, thin = class_colors(len(table)), 0.6 * sheet.factor
    sheet.ax.add_collection(PatchCollection(bars, facecolors=colors, linewidths=0, zorder=2, label="bars"))
    sheet.ax.plot([left, right], [lower, lower], color=DARK, linewidth=thin, zorder=3, solid_capstyle="butt")
    for number, name in enumerate(names):
        sheet.write(left + (number + 0.5) * width, lower - drop, name, TINY, color=MUTED)
