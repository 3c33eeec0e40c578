"""Colours, text and new axes: what all drawings share."""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.textpath import text_to_path

Grid = npt.NDArray[Any]

DARK, MUTED, FAINT = "#222222", "#777777", "#d9dde2"
ARROW = "#9aa7b5"
ACCENT = "#d55e00"
"""The path of one sample."""

RIGHT, LEFT = "#3b6fb6", "#c8504b"
"""What sends a row right, and what sends it left."""


HINTING = 1.06
"""Small text on a grid of pixels is wider than its outlines by up to this factor."""


def class_colors(n_classes: int) -> npt.NDArray[np.float64]:
    """A color for every class: ten well-known ones, or evenly spaced hues.  (n_classes, 4)"""
    if n_classes <= 10:
        return np.array([mpl.colormaps["tab10"](number) for number in range(n_classes)])
    return np.asarray(mpl.colormaps["turbo"](np.linspace(0.05, 0.95, n_classes)))


def check_axes(ax: Any, name: str = "ax") -> None:
    """Refuse what cannot be drawn on."""
    if not isinstance(ax, Axes):
        raise TypeError(
            f"`{name}` must be matplotlib axes, such as those of plt.subplots(), or None for a new figure; got "
            f"{type(ax).__name__}."
        )


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The given axes, or those of a new figure of the size in inches."""
    if ax is None:
        return plt.subplots(figsize=size, layout="constrained")[1]
    check_axes(ax)
    return ax


def new_grid(axes: Any, n_rows: int, n_columns: int, panel: tuple[float, float], edge: tuple[float, float]) -> Grid:
    """The same for a grid of panels, with the sizes of one and of what stands beside them all."""
    if axes is None:
        size = (panel[0] * n_columns + edge[0], panel[1] * n_rows + edge[1])
        axes = plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False)[1]
    given = np.asarray(axes, dtype=object)
    if given.size != n_rows * n_columns:
        raise ValueError(
            f"`axes` must be {n_rows} × {n_columns} axes; got {given.size}. Give one for each panel, or leave it None "
            "to make them."
        )
    for ax in given.flat:
        check_axes(ax, "axes")
    return given.reshape(n_rows, n_columns)


def save_figure(ax: Axes, path: Path, dpi: int) -> None:
    """The figure around some axes as a file; the same drawing gives the same bytes whenever it is made."""
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with mpl.rc_context({"svg.hashsalt": "crisptree"}):
        ax.get_figure(root=True).savefig(path, dpi=dpi, metadata=dates.get(path.suffix.lower()))  # type: ignore[union-attr]


def write(ax: Axes, x: float, y: float, text: str, size: float, **style: Any) -> Text:
    """Text as it is: names may hold dollar signs, which matplotlib would take for formulas."""
    usual: dict[str, Any] = {"ha": "center", "va": "center", "color": DARK, "zorder": 6}
    return ax.text(x, y, text, fontsize=size, parse_math=False, **usual | style)


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """The width of a text in inches."""
    return HINTING * size / 72 * _width_at_one_point(text, weight)


@lru_cache(maxsize=4096)
def _width_at_one_point(text: str, weight: str) -> float:
    if not text:
        return 0.0
    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=100, weight=weight), False)
    return float(width) / 100


def shortened(text: str, inches: float, size: float, weight: str = "normal") -> str:
    """The text, or as much of its beginning as fits, with … after it; at least one letter."""
    if text_width(text, size, weight) <= inches:
        return text
    lengths = range(1, len(text))
    fits = bisect_left(lengths, True, key=lambda length: text_width(text[:length] + "…", size, weight) > inches)
    return text[: max(fits, 1)].rstrip() + "…"
