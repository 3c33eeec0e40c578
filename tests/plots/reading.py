"""What can be read on axes."""

from __future__ import annotations

import numpy as np


def texts(ax):
    return [text.get_text() for text in ax.texts]


def overlaps(ax):
    """Pairs of texts whose boxes meet, as drawn."""
    ax.figure.canvas.draw()
    written = [text for text in ax.texts if text.get_text()]
    boxes = np.array([text.get_window_extent().extents for text in written]).reshape(-1, 4)
    # A box is as tall as the tallest letters of the font, and glyphs are rounded to pixels.
    slack = np.maximum(0.75, 0.1 * (boxes[:, 3] - boxes[:, 1]))[:, None]
    low, high = boxes[:, :2] + slack, boxes[:, 2:] - slack
    meet = np.all((low[:, None] < high[None]) & (low[None] < high[:, None]), axis=2)
    return [(texts(ax)[i], texts(ax)[j]) for i, j in np.argwhere(np.triu(meet, k=1))]
