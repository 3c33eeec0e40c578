"""Prediction errors: the confusion matrix of a classifier, and predicted against true values of a regressor."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from crisptree.inspection import Names, view_model
from crisptree.inspection.names import check_names
from crisptree.plots.style import ACCENT, DARK, MUTED, new_axes, write

Doubles = npt.NDArray[np.float64]
MAX_ANNOTATED_CLASSES = 40
"""With more classes the counts would be too small to read."""

RESIDUAL_KINDS = ("predicted", "residuals")


def plot_confusion(
    model_or_matrix: Any, X: Any = None, y: Any = None, ax: Axes | None = None, *, class_names: Names = None
) -> Axes:
    """Plot a confusion matrix, with a row for each true class and a column for each predicted class.

    Counts are annotated; colors are normalized by the true class, so that rare classes are as visible as frequent ones.

    Parameters
    ----------
    model_or_matrix : CrispTreeClassifier, Pipeline, or array-like of shape (n_classes, n_classes)
        A fitted estimator, a fitted Pipeline that ends in one, or counts with a row for each true class.
    X, y : array-like, default=None
        Rows and their true classes; for a model only.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure.
    class_names : list of str, default=None
        Names in place of ``classes_``, or of indices.

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
    counts, names = _count_confusions(model_or_matrix, X, y, class_names)
    n_classes, total = len(counts), counts.sum()
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    side = float(np.clip(0.42 * n_classes, 2.6, 12.0))
    ax = new_axes(ax, (side + 1.0, side + 0.9))
    image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, interpolation="none")
    if n_classes <= MAX_ANNOTATED_CLASSES:
        _annotate_counts(ax, counts, image.to_rgba(shares))
    turn = 90 if max(map(len, names)) > 3 else 0
    ax.set_xticks(range(n_classes), names, fontsize=7, parse_math=False, rotation=turn)
    ax.set_yticks(range(n_classes), names, fontsize=7, parse_math=False)
    ax.tick_params(length=0)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class")
    right = 100 * np.trace(counts) / total if total else 0.0
    ax.set_title(f"{right:.1f} % of {total:,.6g} rows right", fontsize=9, parse_math=False)
    return ax


def _count_confusions(model_or_matrix: Any, X: Any, y: Any, class_names: Names) -> tuple[Doubles, list[str]]:
    """Return the matrix and the names of its rows."""
    if hasattr(model_or_matrix, "predict"):
        view = view_model(model_or_matrix, "plot_confusion", class_names=class_names)
        view.check_is_classification("plot_confusion", "Use plot_residuals.")
        if X is None or y is None:
            raise ValueError("plot_confusion needs X and y with a model; one of them is missing.")
        view.check_takes_rows("plot_confusion")
        rows = view.prepare_rows(X)
        leaf = view.apply(rows)
        counts = view.confusion_matrix(view.encode_labels(y, len(leaf)), view.tree.predictions(leaf, rows))
        return counts.astype(np.float64), view.class_names
    matrix = np.asarray(model_or_matrix, dtype=np.float64)
    is_square = matrix.ndim == 2 and matrix.shape == (len(matrix), len(matrix)) != (0, 0)
    if not is_square or not np.all((matrix >= 0) & (matrix < np.inf)):
        raise ValueError(
            "plot_confusion needs a fitted model with X and y, or a square matrix of counts; got an array of "
            f"shape {matrix.shape}."
        )
    names = range(len(matrix)) if class_names is None else class_names
    return matrix, check_names(names, len(matrix), "class_names", "classes")


def _annotate_counts(ax: Axes, counts: Doubles, colors: Doubles) -> None:
    """Write the nonzero counts in black or white."""
    digits = len(f"{counts.max():.0f}")
    box = ax.get_window_extent()
    square = min(box.width, box.height) / len(counts) / ax.figure.dpi * 72
    size = float(np.clip(0.8 * square / max(0.62 * digits, 1.6), 2.0, 9.0))
    for line, column in zip(*np.nonzero(counts), strict=True):
        is_light = colors[line, column, :3] @ (0.299, 0.587, 0.114) > 0.55
        write(ax, column, line, f"{counts[line, column]:.6g}", size, color=DARK if is_light else "white")


def plot_residuals(
    model: Any, X: Any, y: Any, ax: Axes | None = None, *, kind: str = "predicted", output: int = 0
) -> Axes:
    """Plot true values or residuals against the predictions of a regressor.

    Parameters
    ----------
    model : CrispTreeRegressor or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one.
    X : array-like of shape (n_samples, n_features)
        Rows, best those of a test set.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Their true values.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure.
    kind : {"predicted", "residuals"}, default="predicted"
        True against predicted values, with the diagonal; or residuals against predicted values, with the standard
        deviations of the leaves as a band.
    output : int, default=0
        Index of the output.

    Returns
    -------
    matplotlib axes
        The axes drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from crisptree import CrispTreeRegressor
    >>> from crisptree.plots import plot_residuals
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = CrispTreeRegressor(max_depth=2, epochs=2, finetune_epochs=2, random_state=0).fit(X, y)
    >>> plot_residuals(model, X, y).get_xlabel()
    'predicted y'
    """
    if kind not in RESIDUAL_KINDS:
        raise ValueError(f"`kind` must be one of {', '.join(map(repr, RESIDUAL_KINDS))}; got {kind!r}.")
    view = view_model(model, "plot_residuals")
    if not view.is_regression:
        raise TypeError("plot_residuals needs a regression model. Use plot_confusion for classification.")
    rows, names = view.prepare_rows(X), view.class_names
    leaf = view.apply(rows)
    truth = view.encode_target(y, len(leaf))
    if not 0 <= output < len(names):
        raise ValueError(f"`output` must be the index of one of {len(names)} outputs; got {output}.")
    tables = view.tree.leaf_values()[:, [output, len(names) + output]]
    mean, true = view.tree.predictions(leaf, rows)[:, output], truth[:, output]
    spread = np.sqrt(tables[:, 1])
    ax = new_axes(ax, (4.6, 4.2))
    dots: dict[str, Any] = {"s": 8, "alpha": 0.5, "linewidths": 0, "color": ACCENT}
    if kind == "predicted":
        ends = [min(mean.min(), true.min()), max(mean.max(), true.max())]
        ax.plot(ends, ends, color=DARK, linewidth=0.8)
        ax.scatter(mean, true, **dots)
        ax.set_ylabel(f"true {names[output]}", fontsize=8)
    else:
        order = np.argsort(tables[:, 0])
        ax.fill_between(
            tables[order, 0], -spread[order], spread[order], step="mid", color=MUTED, alpha=0.25, linewidth=0
        )
        ax.axhline(0.0, color=DARK, linewidth=0.8)
        ax.scatter(mean, true - mean, **dots)
        ax.set_ylabel(f"true − predicted {names[output]}", fontsize=8)
    ax.set_xlabel(f"predicted {names[output]}", fontsize=8)
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
