"""Axes on which a drawing has units of its own and text that shrinks with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from crisptree.plots.style import DARK, LEFT, RIGHT, check_axes, shortened, text_width, write

Outline = tuple[float, float, float, float]
"""Left, right, lower and upper edge."""

LARGEST, LARGE, SMALL, TINY = 11.0, 9.5, 7.2, 5.8
"""Sizes of text on a sheet, in points at its natural size."""

LARGEST_FIGURE = 120.0
"""Inches; a larger sheet is made smaller, text and all, because a bitmap of it could not be saved."""

SMALLEST = 0.75
"""Text that does not fit is shrunk to this part of its size before it is shortened."""


def line_height(size: float, inch: float) -> float:
    """The height of a line of text, in units of so many inches."""
    return 1.25 * size / 72 / inch


@dataclass(frozen=True, eq=False)
class Sheet:
    """Axes in units of what is drawn. Text is measured at the natural size and shrinks with the axes."""

    ax: Axes
    inch: float  # inches of one unit at the natural size
    factor: float  # the size of the axes by the natural size

    @classmethod
    def of(cls, ax: Axes | None, limits: Outline, inch: float) -> Sheet:
        """The given axes, or those of a new figure, made to show exactly the limits."""
        left, right, lower, upper = limits
        width, height = (right - left) * inch, (upper - lower) * inch
        if ax is None:
            smaller = min(1.0, LARGEST_FIGURE / max(width, height))
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
        """Text at a place; wider than ``max_width`` units it becomes smaller, and shorter if that is not enough.

        ``tail`` stands behind the text and is never cut off: a number after a long name.
        """
        if max_width is not None:
            weight = style.get("fontweight", "normal")
            wish = size * max_width * self.inch / max(text_width(text + tail, size, weight), 1e-9)
            size = float(np.clip(wish, SMALLEST * size, size))
            text = shortened(text, max_width * self.inch - text_width(tail, size, weight), size, weight)
        write(self.ax, x, y, text + tail, size * self.factor, **style)

    def frame(self, outline: Outline, **style: Any) -> None:
        left, right, lower, upper = outline
        usual: dict[str, Any] = {"facecolor": "white", "edgecolor": DARK, "linewidth": 0.6 * self.factor, "zorder": 2}
        self.ax.add_patch(Rectangle((left, lower), right - left, upper - lower, **usual | style))

    def bar(self, x: float, y: float, length: float, height: float, color: Any, **style: Any) -> None:
        """A bar from x on, to the left where its length is negative."""
        self.ax.add_patch(Rectangle((x, y - height / 2), length, height, facecolor=color, linewidth=0, **style))

    def push(self, x: float, y: float, length: float, height: float) -> None:
        """A pale bar in the colour of the side it goes to, for a name to stand on."""
        self.bar(x, y, length, height, RIGHT if length > 0 else LEFT, alpha=0.45, zorder=3)
