"""The decision path of one sample, split by split."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from crisptree.inference import FlatTree
from crisptree.inspection import ModelView, Names, view_model
from crisptree.inspection.decision_path import Path, Step, compute_contributions, trace_path
from crisptree.inspection.display import check_names
from crisptree.inspection.validation import check_integer
from crisptree.plots.style import ACCENT, DARK, FAINT, LARGE, LEFT, MUTED, RIGHT, SMALL, TINY, PlotCanvas, class_colors
from crisptree.plots.tree import draw_bars, draw_image, format_percent, has_room_for_class_names
from crisptree.plots.weights import GRAY, as_image, signed_image, weight_image

Rows = tuple[float, float]
"""Lower and upper edge of the part of the plot that one split has."""

MARGIN_AT, PUSHES_AT, CLASSES_AT, WORDS_AT = (0.1, 2.0), (2.2, 5.3), (5.5, 7.3), (7.4, 8.9)
"""Columns of the plot, in inches."""

MAX_MARGIN = 3.0
"""Larger margins are drawn as long as this, so that a single one does not hide the others."""

HEADER, STEP, BAR, SHOWN = 0.35, 1.15, 0.21, 5
"""Inches of the header, of a split and of a bar; classes shown at the leaf."""

THIRDS = [(PUSHES_AT[0] + 1.1 * number, PUSHES_AT[0] + 1.1 * number + 0.9) for number in range(3)]
"""Three columns in place of the contributions where these are images."""


def plot_path(
    model: Any,
    x: Any = None,
    ax: Axes | None = None,
    *,
    top: int = 4,
    class_names: Names = None,
    feature_names: Names = None,
) -> Axes:
    """Plot the decision path of one sample: margin, largest contributions and class frequencies at each split.

    Parameters
    ----------
    model : CrispTreeClassifier, Pipeline or crisptree.explain.Path
        A fitted estimator, a fitted Pipeline that ends in one, or the path itself.
    x : array-like of n_features numbers
        The sample, a row or an image; not with a path.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure. Text shrinks with smaller axes.
    top : int, default=4
        Features listed at a split, those with the largest contributions. Images show all of them as an image.
    class_names, feature_names : list of str, default=None
        Names in place of ``classes_`` and ``feature_names_in_``.

    Notes
    -----
    The contribution of a feature is its weight times the difference between its value and its mean in training. Margins
    are scores in standard deviations of the training scores at that split.
    """
    view, row = None, None
    top = check_integer("top", top, 0)
    if isinstance(model, Path):
        path, labels = model, model.classes if class_names is None else class_names
        names = check_names(labels, len(path.classes), "class_names", "classes")
    else:
        view = view_model(model, "plot_path", class_names=class_names, feature_names=feature_names)
        view.check_is_classification("plot_path", "Use explain.path or plot_tree(sample=x).")
        row, names = view.prepare_row(x), view.class_names
        path = trace_path(view, row, top)
    with_images = view is not None and view.has_weight_images
    step = STEP if with_images else max(0.9, BAR * top + 0.25)
    bottom = -step * len(path.steps)
    end = max(BAR * min(SHOWN, int(np.count_nonzero(path.probabilities))) + 0.2, 0.55)
    canvas = PlotCanvas.of(ax, (0.0, WORDS_AT[1] + 0.1, bottom - end, HEADER), 1.0)
    if path.steps:
        _draw_header(canvas, with_images)
    highest = max([float(max(one.before.max(), one.after.max())) for one in path.steps], default=1.0)
    limit = min(max([abs(one.margin) for one in path.steps], default=1.0), MAX_MARGIN)
    for number, one in enumerate(path.steps):
        rows = (-(number + 1) * step, -number * step)
        canvas.ax.plot([0.1, WORDS_AT[1]], [rows[1]] * 2, color=FAINT, linewidth=0.8 * canvas.factor)
        _draw_margin(canvas, one, rows, limit)
        if with_images and view is not None and row is not None:
            _draw_images(canvas, view, row, one.split, rows)
        else:
            _draw_pushes(canvas, one, rows)
        _draw_classes(canvas, one, rows, names, highest)
    _draw_leaf(canvas, path, bottom, names)
    return canvas.ax


def _draw_header(canvas: PlotCanvas, with_images: bool) -> None:
    titles = {MARGIN_AT: "turn and margin", CLASSES_AT: "classes before (outline) and after"}
    if with_images:
        titles |= dict(zip(THIRDS, ("sample", "weights", "pushes: red left, blue right"), strict=True))
    else:
        titles[PUSHES_AT] = "largest pushes: ← left, right →"
    for (left, right), title in titles.items():
        canvas.write((left + right) / 2, 0.16, title, SMALL, color=MUTED, max_width=right - left + 0.2)


def _draw_margin(canvas: PlotCanvas, step: Step, rows: Rows, limit: float) -> None:
    """Draw direction and margin, on a scale that all splits share."""
    left, right = MARGIN_AT
    middle, y = (left + right) / 2, rows[0] + 0.42 * (rows[1] - rows[0])
    turn, color = ("right", RIGHT) if step.goes_right else ("left", LEFT)
    canvas.write(left, rows[1] - 0.17, f"split {step.split}: {turn}", LARGE, ha="left", fontweight="bold")
    length = (right - left) / 2 * float(np.clip(step.margin / (limit or 1.0), -1, 1))
    canvas.draw_bar(middle, y, length, 0.12, color, zorder=3)
    canvas.ax.plot([left, right], [y, y], color=FAINT, linewidth=1.2 * canvas.factor, zorder=1)
    canvas.ax.plot([middle, middle], [y - 0.11, y + 0.11], color=DARK, linewidth=1.0 * canvas.factor, zorder=4)
    text = f"score {step.score:.3g}, {abs(step.margin):.2g} spreads from 0"
    canvas.write(left, y - 0.22, text, TINY, ha="left", color=MUTED, max_width=right - left)


def _draw_pushes(canvas: PlotCanvas, step: Step, rows: Rows) -> None:
    left, right = PUSHES_AT
    x, middle = (left + right) / 2, (rows[0] + rows[1]) / 2
    if not step.pushes:
        canvas.write(x, middle, "no single feature pushed", SMALL, color=MUTED)
        return
    limit = max(abs(push.amount) for push in step.pushes) or 1.0
    bar = min(BAR, (rows[1] - rows[0] - 0.2) / len(step.pushes))
    start = middle + bar * len(step.pushes) / 2
    for number, push in enumerate(step.pushes):
        y = start - (number + 0.5) * bar
        canvas.draw_push(x, y, (right - left) / 2 * push.amount / limit, 0.84 * bar)
        canvas.write(x, y, push.name, min(SMALL, 48 * bar), max_width=right - left, tail=f" = {push.value:.4g}")
    canvas.ax.plot(
        [x, x], [start, start - bar * len(step.pushes)], color=FAINT, linewidth=0.8 * canvas.factor, zorder=2
    )


def _draw_images(canvas: PlotCanvas, view: ModelView, row: npt.NDArray[np.float32], split: int, rows: Rows) -> None:
    """Draw the sample, the weight image, and their product."""
    tree, shape = view.tree, view.image_shape
    assert isinstance(tree, FlatTree)  # only linear splits on images have weight images
    assert shape is not None
    pushes = signed_image(compute_contributions(tree, row[0], split)[0], shape)
    images = (as_image(row[0], shape), GRAY), (weight_image(view, split), GRAY), pushes
    for (left, right), (image, paint) in zip(THIRDS, images, strict=True):
        draw_image(canvas, (left, right, rows[0] + 0.08, rows[1] - 0.08), image, paint)
    for sign, (_, right) in zip("×=", THIRDS, strict=False):
        canvas.write(right + 0.1, (rows[0] + rows[1]) / 2, sign, LARGE, color=MUTED)


def _draw_classes(canvas: PlotCanvas, step: Step, rows: Rows, names: list[str], highest: float) -> None:
    """Draw bars by class, all splits on one scale."""
    left, right = CLASSES_AT
    ticks = has_room_for_class_names(names, right - left, 1.0)
    lower, upper = rows[0] + (0.22 if ticks else 0.12), rows[1] - 0.12
    draw_bars(canvas, (left, right, lower, upper), step.after / highest, names if ticks else [], 0.07)
    edges = np.repeat(np.linspace(left, right, len(names) + 1), 2)[1:-1]
    heights = lower + (upper - lower) * np.repeat(step.before / highest, 2)
    canvas.ax.plot(edges, heights, color=DARK, linewidth=0.8 * canvas.factor, zorder=4)
    likeliest = np.argsort(-step.after, kind="stable")[:3]
    for line, number in enumerate(number for number in likeliest if step.after[number] >= 0.01):
        tail, width = (
            f": {format_percent(step.before[number])} → {format_percent(step.after[number])}",
            WORDS_AT[1] - WORDS_AT[0],
        )
        y = upper - 0.05 - 0.16 * line
        canvas.write(WORDS_AT[0], y, names[number], SMALL, ha="left", max_width=width, tail=tail)


def _draw_leaf(canvas: PlotCanvas, path: Path, upper: float, names: list[str]) -> None:
    """Draw the predicted class, and the most probable ones as bars."""
    canvas.ax.plot([0.1, WORDS_AT[1]], [upper] * 2, color=ACCENT, linewidth=1.6 * canvas.factor)
    order = np.argsort(-path.probabilities, kind="stable")[:SHOWN]
    order = order[path.probabilities[order] > 0]
    bold: dict[str, Any] = {"ha": "left", "fontweight": "bold", "max_width": MARGIN_AT[1] - MARGIN_AT[0]}
    canvas.write(MARGIN_AT[0], upper - 0.18, f"leaf {path.leaf}", LARGE, **bold)
    canvas.write(MARGIN_AT[0], upper - 0.36, f"predicts {names[order[0]]}", LARGE, color=ACCENT, **bold)
    colors, (left, right) = class_colors(len(names)), (PUSHES_AT[0] + 1.2, CLASSES_AT[1])
    for line, number in enumerate(order):
        y, share = upper - 0.18 - line * BAR, float(path.probabilities[number])
        length = (right - left) * share
        canvas.draw_bar(left, y, length, 0.76 * BAR, colors[number])
        canvas.write(left - 0.08, y, names[number], SMALL, ha="right", max_width=1.15)
        canvas.write(left + length + 0.06, y, format_percent(share), SMALL, ha="left")
