"""Which class is taken for which."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from crisptree.inspection import Names, view_model
from crisptree.inspection.names import check_names
from crisptree.plots.style import DARK, new_axes, write

Doubles = npt.NDArray[np.float64]
MOST_NUMBERED = 40
"""Beyond so many classes the counts would be too small to read."""


def plot_confusion(
    model_or_matrix: Any, X: Any = None, y: Any = None, ax: Axes | None = None, *, class_names: Names = None
) -> Axes:
    """Draw how many rows of each class (a line) are predicted as each class (a column).

    Numbers are rows; a square is as dark as the share of its line, so that rare classes show as well as frequent ones.

    Parameters
    ----------
    model_or_matrix : CrispTreeClassifier, Pipeline, or array-like of shape (n_classes, n_classes)
        A fitted estimator, a fitted Pipeline that ends in one, or counts, a line for each true class.
    X, y : array-like, default=None
        Rows and their true classes; for a model only.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure.
    class_names : list of str, default=None
        Words in place of ``classes_``, or of numbers.

    Returns
    -------
    matplotlib axes
        The axes drawn on.

    Examples
    --------
    >>> from crisptree.plots import plot_confusion
    >>> plot_confusion([[8, 2], [1, 9]], class_names=["cat", "dog"]).get_title()
    '85.0 % of 20 rows right'
    """
    counts, names = _counted(model_or_matrix, X, y, class_names)
    n_classes, total = len(counts), counts.sum()
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    side = float(np.clip(0.42 * n_classes, 2.6, 12.0))
    ax = new_axes(ax, (side + 1.0, side + 0.9))
    image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, interpolation="none")
    if n_classes <= MOST_NUMBERED:
        _draw_numbers(ax, counts, image.to_rgba(shares))
    turn = 90 if max(map(len, names)) > 3 else 0
    ax.set_xticks(range(n_classes), names, fontsize=7, parse_math=False, rotation=turn)
    ax.set_yticks(range(n_classes), names, fontsize=7, parse_math=False)
    ax.tick_params(length=0)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    right = 100 * np.trace(counts) / total if total else 0.0
    ax.set_title(f"{right:.1f} % of {total:,.6g} rows right", fontsize=9, parse_math=False)
    return ax


def _counted(model_or_matrix: Any, X: Any, y: Any, class_names: Names) -> tuple[Doubles, list[str]]:
    """The matrix and the names of its lines."""
    if hasattr(model_or_matrix, "predict"):
        view = view_model(model_or_matrix, "plot_confusion", class_names=class_names)
        view.check_is_classification("plot_confusion", "plot_residuals shows how far off they are.")
        if X is None or y is None:
            raise ValueError("plot_confusion must have X and y beside a model; one of them is missing.")
        view.check_takes_rows("plot_confusion")
        rows = view.prepare_rows(X)
        leaf = view.apply(rows)
        counts = view.confusion_matrix(view.encode_labels(y, len(leaf)), view.tree.predictions(leaf, rows))
        return counts.astype(np.float64), view.class_names
    matrix = np.asarray(model_or_matrix, dtype=np.float64)
    is_square = matrix.ndim == 2 and matrix.shape == (len(matrix), len(matrix)) != (0, 0)
    if not is_square or not np.all((matrix >= 0) & (matrix < np.inf)):
        raise ValueError(
            "plot_confusion must have a fitted model with X and y, or a square matrix of counts; got an array of "
            f"shape {matrix.shape}."
        )
    names = range(len(matrix)) if class_names is None else class_names
    return matrix, check_names(names, len(matrix), "class_names", "classes")


def _draw_numbers(ax: Axes, counts: Doubles, paint: Doubles) -> None:
    """The counts that are not zero, in black or white."""
    digits = len(f"{counts.max():.0f}")
    box = ax.get_window_extent()
    square = min(box.width, box.height) / len(counts) / ax.figure.dpi * 72
    size = float(np.clip(0.8 * square / max(0.62 * digits, 1.6), 2.0, 9.0))
    for line, column in zip(*np.nonzero(counts), strict=True):
        is_light = paint[line, column, :3] @ (0.299, 0.587, 0.114) > 0.55
        write(ax, column, line, f"{counts[line, column]:.6g}", size, color=DARK if is_light else "white")
