"""Colors, text, axes and the canvas that all plots share."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.textpath import text_to_path

Grid = npt.NDArray[Any]

DARK, MUTED, FAINT = "#222222", "#777777", "#d9dde2"
ARROW = "#9aa7b5"
ACCENT = "#d55e00"
"""The decision path of a sample."""

RIGHT, LEFT = "#3b6fb6", "#c8504b"
"""Contributions to the right and to the left."""


HINTING = 1.06
"""Small text on a grid of pixels is wider than its outlines by up to this factor."""

Outline = tuple[float, float, float, float]
"""Left, right, lower and upper edge."""

LARGEST, LARGE, SMALL, TINY = 11.0, 9.5, 7.2, 5.8
"""Font sizes on a canvas, in points at its natural size."""

MAX_FIGURE_INCHES = 120.0
"""A larger canvas is scaled down, because a bitmap of it could not be saved."""

MIN_TEXT_SCALE = 0.75
"""Text that does not fit is scaled down to this before it is truncated."""


def class_colors(n_classes: int) -> npt.NDArray[np.float64]:
    """Return a color for every class: those of tab10, or evenly spaced hues.  (n_classes, 4)

    Examples
    --------
    >>> from crisptree.plots import class_colors
    >>> class_colors(3).shape
    (3, 4)
    """
    if n_classes <= 10:
        return np.array([mpl.colormaps["tab10"](number) for number in range(n_classes)])
    return np.asarray(mpl.colormaps["turbo"](np.linspace(0.05, 0.95, n_classes)))


def check_axes(ax: Any, name: str = "ax") -> None:
    """Refuse what is no matplotlib axes."""
    if not isinstance(ax, Axes):
        raise TypeError(
            f"`{name}` must be matplotlib axes, such as those of plt.subplots(), or None for a new figure; got "
            f"{type(ax).__name__}."
        )


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes, or those of a new figure of the size in inches."""
    if ax is None:
        return plt.subplots(figsize=size, layout="constrained")[1]
    check_axes(ax)
    return ax


def new_grid(axes: Any, n_rows: int, n_columns: int, panel: tuple[float, float], edge: tuple[float, float]) -> Grid:
    """Return a grid of axes, new ones of the size of a panel plus a margin around all."""
    if axes is None:
        size = (panel[0] * n_columns + edge[0], panel[1] * n_rows + edge[1])
        axes = plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False)[1]
    grid = np.asarray(axes, dtype=object)
    if grid.size != n_rows * n_columns:
        raise ValueError(
            f"`axes` must be {n_rows} × {n_columns} axes; got {grid.size}. Give one for each panel, or leave it None "
            "to make them."
        )
    for ax in grid.flat:
        check_axes(ax, "axes")
    return grid.reshape(n_rows, n_columns)


def save_figure(ax: Axes, path: Path, dpi: int) -> None:
    """Save the figure of some axes; the same figure gives the same bytes at any time. An SVG zooms in a browser."""
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with mpl.rc_context({"svg.hashsalt": "crisptree"}):
        ax.get_figure(root=True).savefig(path, dpi=dpi, metadata=dates.get(path.suffix.lower()))  # type: ignore[union-attr]
    if path.suffix.lower() == ".svg":
        path.write_text(make_zoomable(path.read_text(encoding="utf-8")), encoding="utf-8")


def make_zoomable(svg: str) -> str:
    """Make an SVG fill the window of a browser, zoom with the wheel, move with the pointer and fit by a double click.

    Where scripts do not run, as in ``<img>`` and in drawing programs, it is the same picture.
    """
    script = (Path(__file__).parent / "zoom.js").read_text(encoding="utf-8")
    return svg.replace("</svg>", f"<script><![CDATA[\n{script}]]></script>\n</svg>")


def write(ax: Axes, x: float, y: float, text: str, size: float, **style: Any) -> Text:
    """Write text verbatim: names may hold dollar signs, which matplotlib would parse as formulas."""
    default: dict[str, Any] = {"ha": "center", "va": "center", "color": DARK, "zorder": 6}
    return ax.text(x, y, text, fontsize=size, parse_math=False, **default | style)


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Return the width of a text in inches."""
    return HINTING * size / 72 * _width_at_one_point(text, weight)


@lru_cache(maxsize=4096)
def _width_at_one_point(text: str, weight: str) -> float:
    if not text:
        return 0.0
    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=100, weight=weight), False)
    return float(width) / 100


def truncate_text(text: str, inches: float, size: float, weight: str = "normal") -> str:
    """Truncate a text to a width, with … after it; at least one letter stays."""
    if text_width(text, size, weight) <= inches:
        return text
    lengths = range(1, len(text))
    fits = bisect_left(lengths, True, key=lambda length: text_width(text[:length] + "…", size, weight) > inches)
    return text[: max(fits, 1)].rstrip() + "…"


def line_height(size: float, inch: float) -> float:
    """Return the height of a line of text, in units of so many inches."""
    return 1.25 * size / 72 / inch


def leaf_letters(number: int) -> str:
    """Return A, B, … Z, AA, AB, … for 0, 1, …: labels of leaves from left to right."""
    word = ""
    while number >= 0:
        word = chr(ord("A") + number % 26) + word
        number = number // 26 - 1
    return word


@dataclass(frozen=True, eq=False)
class PlotCanvas:
    """Axes in units of the plot. Text is measured at the natural size and scales with the axes."""

    ax: Axes
    inch: float  # inches of one unit at the natural size
    factor: float  # the size of the axes by the natural size

    @classmethod
    def of(cls, ax: Axes | None, limits: Outline, inch: float) -> PlotCanvas:
        """Set up the axes, or those of a new figure, to show exactly the limits."""
        left, right, lower, upper = limits
        width, height = (right - left) * inch, (upper - lower) * inch
        if ax is None:
            smaller = min(1.0, MAX_FIGURE_INCHES / max(width, height))
            ax = plt.figure(figsize=(width * smaller, height * smaller)).add_axes((0.0, 0.0, 1.0, 1.0))
        check_axes(ax)
        box, dpi = ax.get_window_extent(), ax.figure.dpi
        factor = min(box.width / dpi / width, box.height / dpi / height)
        ax.set_aspect("equal")
        ax.set_axis_off()
        ax.set_autoscale_on(False)
        ax.set_xlim(left, right)
        ax.set_ylim(lower, upper)
        return cls(ax, inch, factor)

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
        """Write text; wider than ``max_width`` units it is scaled down, then truncated.

        ``tail`` follows the text and is never truncated: a number after a long name.
        """
        if max_width is not None:
            weight = style.get("fontweight", "normal")
            fitting = size * max_width * self.inch / max(text_width(text + tail, size, weight), 1e-9)
            size = float(np.clip(fitting, MIN_TEXT_SCALE * size, size))
            text = truncate_text(text, max_width * self.inch - text_width(tail, size, weight), size, weight)
        write(self.ax, x, y, text + tail, size * self.factor, **style)

    def draw_frame(self, outline: Outline, **style: Any) -> None:
        left, right, lower, upper = outline
        default: dict[str, Any] = {"facecolor": "white", "edgecolor": DARK, "linewidth": 0.6 * self.factor, "zorder": 2}
        self.ax.add_patch(Rectangle((left, lower), right - left, upper - lower, **default | style))

    def draw_bar(self, x: float, y: float, length: float, height: float, color: Any, **style: Any) -> None:
        """Draw a bar from x, to the left where its length is negative."""
        self.ax.add_patch(Rectangle((x, y - height / 2), length, height, facecolor=color, linewidth=0, **style))

    def draw_push(self, x: float, y: float, length: float, height: float) -> None:
        """Draw a pale bar in the color of its direction, as the background of a name."""
        self.draw_bar(x, y, length, height, RIGHT if length > 0 else LEFT, alpha=0.45, zorder=3)
