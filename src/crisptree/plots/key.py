"""The lines under a drawn tree that say how to read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matplotlib.patches import Circle, Rectangle

from crisptree.inference import FlatTree
from crisptree.plots.nodes import SMALL, Sheet
from crisptree.plots.style import ACCENT, ARROW, DARK, LEFT, MUTED, RIGHT, class_colors, text_width
from crisptree.view import ModelView

LINE, SIGN, SPACE = 0.17, 0.17, 0.22
"""Inches: the height of a line, the width of a sign, the space between two notes."""

QUESTIONS = {
    "image": ("left: resembles the negative of the image", "right: resembles the image"),
    "threshold": ("left: no", "right: yes"),
    "terms": ("left: f(x) ≤ 0", "right: f(x) > 0"),
}


@dataclass(frozen=True)
class Note:
    """A sign and what it means."""

    text: str
    sign: str = ""
    color: Any = None


@dataclass(frozen=True)
class Key:
    """Notes in lines. (x in inches, line, note)"""

    places: list[tuple[float, int, Note]]
    n_lines: int

    @property
    def height(self) -> float:
        """Inches that the lines take."""
        return self.n_lines * LINE + (0.1 if self.n_lines else 0)

    @classmethod
    def arranged(cls, notes: list[Note], inches: float) -> Key:
        """Notes one after the other, in as many lines as the width needs."""
        places, x, line = [], 0.0, 0
        for note in notes:
            width = SIGN + text_width(note.text, SMALL)
            if x > 0 and x + width > inches - 0.2:
                x, line = 0.0, line + 1
            places.append((x, line, note))
            x += width + SPACE
        return cls(places, line + 1 if notes else 0)


def key_of(view: ModelView, with_sample: bool, ticks: bool) -> list[Note]:
    """What the drawing of a model needs said."""
    notes = []
    if view.tree.structure.n_splits:
        kind = "image" if view.has_weight_images else "threshold" if view.asks_thresholds else "terms"
        left, right = QUESTIONS[kind]
        notes += [Note(left, "−"), Note(right, "+")]
        if kind == "terms" and isinstance(view.tree, FlatTree):
            notes += [Note("weight that pushes right", "bar", RIGHT), Note("weight that pushes left", "bar", LEFT)]
        notes.append(Note("thickness: training samples", "bar", ARROW))
    if with_sample:
        notes.append(Note("path of the sample", "bar", ACCENT))
    if not ticks:
        colors = class_colors(len(view.class_names))
        notes += [Note(name, "bar", color) for name, color in zip(view.class_names, colors, strict=True)]
    return notes


def draw_key(sheet: Sheet, key: Key, left: float, upper: float) -> None:
    """The notes, from the upper left corner on, in units of the sheet."""
    for inches, line, note in key.places:
        x, y = left + inches / sheet.inch, upper - (line + 0.5) * LINE / sheet.inch
        if note.sign == "bar":
            size = 0.09 / sheet.inch
            sheet.ax.add_patch(Rectangle((x, y - size / 2), size, size, facecolor=note.color, linewidth=0))
        else:
            middle = x + 0.045 / sheet.inch
            circle = Circle((middle, y), 0.06 / sheet.inch, facecolor="white", edgecolor=DARK)
            circle.set_linewidth(0.5 * sheet.factor)
            sheet.ax.add_patch(circle)
            sheet.write(middle, y, note.sign, SMALL, va="center_baseline", fontweight="bold")
        sheet.write(x + SIGN / sheet.inch, y, note.text, SMALL, ha="left", va="center_baseline", color=MUTED)
