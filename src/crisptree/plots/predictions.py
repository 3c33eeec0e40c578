"""Predictions and true values: confusion matrices, residuals, segmentations and pixel regressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from crisptree.inspection import Names, view_model
from crisptree.inspection.display import check_names
from crisptree.inspection.validation import check_boolean
from crisptree.plots.style import ACCENT, DARK, MUTED, new_axes, new_grid, write

Doubles = npt.NDArray[np.float64]
Panel = tuple[str, npt.NDArray[Any], dict[str, float]]
"""A title, the values of all pixels, and the limits of the gray scale."""

MAX_ANNOTATED_CLASSES = 40
"""With more classes the counts would be too small to read."""

RESIDUAL_KINDS = ("predicted", "residuals")

PANEL_INCHES = 3.0
UNIT_RANGE = {"vmin": 0.0, "vmax": 1.0}


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

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from crisptree import CrispTreeRegressor
    >>> from crisptree.plots import plot_residuals
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = CrispTreeRegressor(max_depth=1, random_state=0).fit(X, y)
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


def plot_segmentation(
    image: npt.ArrayLike,
    truth: npt.ArrayLike | None,
    leaves: npt.ArrayLike,
    probability: npt.ArrayLike,
    axes: Sequence[Axes] | npt.NDArray[Any] | None = None,
    *,
    class_name: str = "",
    titles: bool = True,
) -> npt.NDArray[Any]:
    """Plot an image, its labels, the probability of a class and the leaf of every pixel, in one panel each.

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, channels)
        The image; of two, or more than three channels the first is drawn.
    truth : array of shape (height, width), or None
        Its labels; None leaves the panel out.
    leaves : array of shape (height, width)
        ``CrispSegmenter.leaf_image``: leaves from left to right as gray values from 0 to 1.
    probability : array of shape (height, width)
        One class of ``CrispSegmenter.predict_proba``; darker is more probable, as in the paper.
    axes : sequence of matplotlib axes, default=None
        As many as there are panels; None makes a figure.
    class_name : str, default=""
        The class whose probability it is.
    titles : bool, default=True
        Draw the titles of the panels.

    Examples
    --------
    >>> from crisptree.plots import plot_segmentation
    >>> image = np.linspace(0, 1, 64).reshape(8, 8)
    >>> panels = plot_segmentation(image, image > 0.3, leaves=image > 0.5, probability=image**2)
    >>> [panel.get_title() for panel in panels]
    ['image', 'ground truth', 'probability', 'leaf affiliation']
    """
    labels = [] if truth is None else [np.unique(truth, return_inverse=True)[1].reshape(np.shape(truth))]
    shown: list[Panel] = [("ground truth", values, {}) for values in labels]
    shown += [(f"p({class_name})" if class_name else "probability", 1 - np.asarray(probability), UNIT_RANGE)]
    shown += [("leaf affiliation", np.asarray(leaves), UNIT_RANGE)]
    hint = "Of probabilities draw one class, e.g. predict_proba(image)[:, :, 1]."
    return _draw_panels(image, shown, axes, titles, hint)


def plot_pixel_regression(
    image: npt.ArrayLike,
    truth: npt.ArrayLike | None,
    leaves: npt.ArrayLike,
    numbers: npt.ArrayLike,
    axes: Sequence[Axes] | npt.NDArray[Any] | None = None,
    *,
    name: str = "predicted",
    titles: bool = True,
) -> npt.NDArray[Any]:
    """Plot an image, the true values of its pixels, the leaf of every pixel and the predictions, in one panel each.

    True and predicted values share one gray scale, that of the true ones where these are given.

    Parameters
    ----------
    image, leaves, axes, titles
        As in ``plot_segmentation``.
    truth : array of shape (height, width), or None
        The true values, NaN where there are none; None leaves the panel out.
    numbers : array of shape (height, width)
        One output of ``CrispPixelRegressor.predict`` or ``predict_std``.
    name : str, default="predicted"
        Title of the predictions.

    Examples
    --------
    >>> from crisptree.plots import plot_pixel_regression
    >>> image = np.linspace(0, 1, 64).reshape(8, 8)
    >>> panels = plot_pixel_regression(image, 2 * image, leaves=image > 0.5, numbers=2 * image.round(1))
    >>> [panel.get_title() for panel in panels]
    ['image', 'ground truth', 'leaf affiliation', 'predicted']
    """
    scale = np.asarray(numbers if truth is None else truth, dtype=np.float64)
    finite = scale[np.isfinite(scale)]
    limits = {"vmin": float(finite.min()), "vmax": float(finite.max())} if len(finite) else {}
    shown: list[Panel] = [] if truth is None else [("ground truth", scale, limits)]
    shown += [("leaf affiliation", np.asarray(leaves), UNIT_RANGE), (name, np.asarray(numbers), limits)]
    return _draw_panels(image, shown, axes, titles, "Of several outputs draw one, e.g. predict(image)[:, :, 0].")


def _draw_panels(image: npt.ArrayLike, shown: list[Panel], axes: Any, titles: bool, hint: str) -> npt.NDArray[Any]:
    """Draw an image and panels with one value for each of its pixels side by side."""
    titles, shape = check_boolean("titles", titles), np.shape(image)[:2]
    if np.ndim(image) not in (2, 3):
        raise ValueError(f"`image` must be (height, width[, channels]); got an array of shape {np.shape(image)}.")
    for title, values, _ in shown:
        if np.shape(values) != shape:
            raise ValueError(
                f"all panels must have one value for each of the image's {shape} pixels; got {np.shape(values)} for "
                f"{title}. {hint}"
            )
    shown = [("image", _to_displayable(np.asarray(image)), {}), *shown]
    panel = (PANEL_INCHES, PANEL_INCHES * shape[0] / shape[1])
    drawn = new_grid(axes, 1, len(shown), panel, (0.0, 0.3 if titles else 0.0))[0]
    for ax, (title, values, limits) in zip(drawn, shown, strict=True):
        ax.imshow(values, cmap="gray", interpolation="nearest", **limits)
        ax.set_xticks([])
        ax.set_yticks([])
        if titles:
            ax.set_title(title, fontsize=10, parse_math=False)
    return drawn


def _to_displayable(image: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a gray image, or three channels rescaled together to 0 … 1."""
    if image.shape[2:] != (3,):
        return image if image.ndim == 2 else image[:, :, 0]
    low, high = float(image.min()), float(image.max())
    return (image.astype(np.float64) - low) / ((high - low) or 1.0)
