"""One drawing of every kind, of models with known trees, and the pictures that they are compared with.

``python -m tests.plots.drawings`` draws the pictures in ``baseline/`` anew; look at them before they are committed.
"""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.text import Text

from crisptree.plots import (
    plot_regions,
    plot_selection,
    plot_training,
    plot_tree,
    plot_weights,
)
from tests.plots.models import FIGURE_1_CLASSES, FIGURE_1_ROWS, chosen_model, figure_1, random_model, records

BASELINE = Path(__file__).parent / "baseline"
DPI = 50
SQUARE = 12
"""Side of the squares that are compared one by one, in pixels."""

REACH = 2
"""Pixels."""

TOLERANCE = 24.0
"""Grey values. Drawings by matplotlib 3.8, 3.10 and 3.11 differ by at most 18; what the tests take away makes 28."""


def axes(n_rows, n_columns):
    """Axes at fixed places: where a layout engine puts them depends on the font."""
    figure = plt.figure(figsize=(1.6 * n_columns + 1.4, 1.2 * n_rows + 1))
    return figure.subplots(n_rows, n_columns, squeeze=False)


def _with_history():
    model = figure_1()
    model.history_ = records()
    return model


DRAWINGS = {
    "tree-images": lambda: plot_tree(
        random_model(n_features=16, depth=2, image_shape=(4, 4)), sample=np.linspace(-1, 1, 16)
    ),
    "tree-table": lambda: plot_tree(figure_1(), letters=True),
    "weights": lambda: plot_weights(random_model(n_features=9, image_shape=(3, 3)), axes=axes(2, 3), style="both")[
        0, 0
    ],
    "weights-table": lambda: plot_weights(random_model(n_features=9), axes=axes(1, 3))[0, 0],
    "regions": lambda: plot_regions(
        figure_1(), FIGURE_1_ROWS, np.array(["blue", "red"])[FIGURE_1_CLASSES], axes(1, 1)[0, 0], hyperplanes=True
    ),
    "regions-soft": lambda: plot_regions(figure_1(), FIGURE_1_ROWS, ax=axes(1, 1)[0, 0], steepness=20.0, resolution=60),
    "training": lambda: plot_training(_with_history(), axes(3, 1))[0],
    "choices": lambda: plot_selection(chosen_model(), axes(1, 1)[0, 0]),
}


def drawn(name):
    """A drawing on axes, in the settings that all pictures share."""
    with mpl.rc_context({**mpl.rcParamsDefault, "backend": "agg", "font.family": "DejaVu Sans"}):
        return DRAWINGS[name]()


def pixels(ax):
    """The figure as grey and colour values without its text, whose outlines change with every version of a font.

    (height, width, 3), from 0 to 255
    """
    with mpl.rc_context({**mpl.rcParamsDefault, "backend": "agg", "font.family": "DejaVu Sans"}):
        figure = ax.figure
        for text in figure.findobj(Text):
            text.set_alpha(0.0)
            if text.get_bbox_patch() is not None:
                text.get_bbox_patch().set_alpha(0.0)
        sheet = io.BytesIO()
        figure.savefig(sheet, dpi=DPI, format="png")
    sheet.seek(0)
    return 255 * plt.imread(sheet)[:, :, :3].astype(np.float64)


def stored(name):
    return 255 * plt.imread(BASELINE / f"{name}.png")[:, :, :3].astype(np.float64)


def missing(one, other):
    """For every pixel of one picture the squared difference to the likest of the other in ``REACH`` pixels' distance.

    Versions of matplotlib round edges to other pixels; a part that is missing is missing all around.
    """
    height, width = one.shape[:2]
    around, places = np.pad(other, [(REACH, REACH), (REACH, REACH), (0, 0)], mode="edge"), range(2 * REACH + 1)
    shifted = [around[y : y + height, x : x + width] for y in places for x in places]
    return np.min([np.square(one - near).mean(axis=2) for near in shifted], axis=0)


def worst_square(one, other):
    """The root mean square of the differences in the square where it is largest; infinite for other sizes."""
    if np.abs(np.subtract(one.shape, other.shape)).max() > 1:  # a size that is no whole number may be rounded
        return np.inf
    height, width = np.minimum(one.shape, other.shape)[:2]
    one, other = one[:height, :width], other[:height, :width]
    squared = np.maximum(missing(one, other), missing(other, one))
    padded = np.pad(squared, [(0, -side % SQUARE) for side in squared.shape])
    rows, columns = (side // SQUARE for side in padded.shape)
    means = padded.reshape(rows, SQUARE, columns, SQUARE).mean(axis=(1, 3))
    return float(np.sqrt(means.max()))


def main():
    BASELINE.mkdir(exist_ok=True)
    for name in DRAWINGS:
        plt.imsave(BASELINE / f"{name}.png", pixels(drawn(name)) / 255)


if __name__ == "__main__":
    mpl.use("Agg")
    main()
