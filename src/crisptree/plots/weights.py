"""Weights of splits: as images, or the largest of them as bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from crisptree.inspection import Names
from crisptree.inspection.linear_splits import compute_effects, rank_features
from crisptree.inspection.model_view import ModelView, require_linear_splits, view_model
from crisptree.plots.style import DARK, LEFT, MUTED, RIGHT, new_grid, truncate_text, write

Doubles = npt.NDArray[np.float64]

STYLES = {"gray": ("gray",), "diverging": ("diverging",), "both": ("gray", "diverging")}

MAX_SPLITS = 8
"""Splits drawn by default."""

MAX_BARS = 8
"""Weights drawn of a split of tabular data."""

GRAY: dict[str, Any] = {"cmap": "gray", "vmin": 0, "vmax": 1}
"""Arguments of ``imshow``."""


def plot_weights(
    model: Any,
    nodes: Sequence[int] | None = None,
    axes: Any = None,
    *,
    compare: Any = None,
    style: str = "gray",
    labels: Sequence[str] | None = None,
    feature_names: Names = None,
) -> npt.NDArray[Any]:
    """Plot the weights of splits side by side.

    Images show them in the scaled space of training, as in the paper: linearly scaled to the gray range, or by a
    diverging colormap with white at zero. For tabular data bars show the largest weights of features that are scaled to
    unit variance; for ``scale="feature"`` this is the same space.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator with linear splits, or a fitted Pipeline that ends in one.
    nodes : sequence of int, default=None
        Indices of splits; None takes the eight with the most training samples.
    axes : array of matplotlib axes, default=None
        One for each split and row; None makes a figure.
    compare : CrispTreeClassifier or Pipeline, default=None
        Another model on the same features, drawn below; e.g. one trained without ``spatial_penalty``.
    style : {"gray", "diverging", "both"}, default="gray"
        Colors of images; "both" draws two rows for each model.
    labels : sequence of str, default=None
        Labels of the rows of a comparison; None shows the spatial penalty of the two.
    feature_names : list of str, default=None
        Names in place of ``feature_names_in_``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> fixed = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 1.0, "random_state": 0}
    >>> model = CrispTreeClassifier(**fixed, max_depth=2).fit(X, y)
    >>> from crisptree.plots import plot_weights
    >>> axes = plot_weights(model, nodes=[0])
    """
    if style not in STYLES:
        raise ValueError(f"`style` must be one of {', '.join(STYLES)}; got {style!r}.")
    models = [model] if compare is None else [model, compare]
    views = [view_model(one, "plot_weights", feature_names=feature_names) for one in models]
    if len({(view.tree.n_features, view.image_shape) for view in views}) > 1:
        raise ValueError("`compare` must be a model of the same features and image shape; this one has others.")
    for view in views:
        require_linear_splits(view.tree, "plot_weights")
    splits = _select_splits(nodes, views)
    rows = [
        (view, kind, name)
        for view, name in zip(views, _row_names(views, labels), strict=True)
        for kind in (STYLES[style] if view.has_weight_images else ("bars",))
    ]
    panel = (1.25, 1.35) if views[0].has_weight_images else (2.6, 1.9)
    grid = new_grid(axes, len(rows), max(len(splits), 1), panel, (0.3, 0.2))
    if not splits:
        for ax in grid.flat:
            ax.set_axis_off()
            write(ax, 0.5, 0.5, "one leaf, no splits", 9, color=MUTED, transform=ax.transAxes)
        return grid
    for ax, split in zip(grid[0], splits, strict=True):
        ax.set_title(f"split {split}", fontsize=8, color=DARK)
    for line, (view, kind, name) in zip(grid, rows, strict=True):
        for ax, split in zip(line, splits, strict=True):
            DRAWINGS[kind](ax, view, split)
        if name:
            line[0].set_ylabel(name, fontsize=8, color=DARK, parse_math=False)
    return grid


def _select_splits(nodes: Sequence[int] | None, views: list[ModelView]) -> list[int]:
    """Return indices of splits that every tree has."""
    n_splits = min(view.tree.structure.n_splits for view in views)
    if nodes is None:
        return sorted(np.argsort(-views[0].node_weights[:n_splits], kind="stable")[:MAX_SPLITS].tolist())
    indices = np.asarray(nodes)
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or not len(indices):
        raise ValueError(f"`nodes` must be a list of numbers of splits, or None; got {nodes!r}.")
    splits: list[int] = indices.tolist()
    wrong = [split for split in splits if not 0 <= split < n_splits]
    if wrong:
        raise ValueError(f"`nodes` must be numbers of splits, 0 … {n_splits - 1}; got {wrong}. Leaves have no weights.")
    return splits


def _row_names(views: list[ModelView], labels: Sequence[str] | None) -> list[str]:
    if labels is not None:
        if len(labels) != len(views):
            raise ValueError(f"`labels` must name the {len(views)} models; got {len(labels)} names.")
        return [str(label) for label in labels]
    if len(views) == 1:
        return [""]
    strengths = [getattr(view.estimator, "spatial_penalty", 0.0) for view in views]
    if strengths[0] == strengths[1]:
        return ["model", "compared with"]
    return [f"spatial penalty {strength:g}" if strength else "no spatial penalty" for strength in strengths]


def weight_image(view: ModelView, split: int) -> Doubles:
    """Return the weights of a split in the scaled space of training, from black to white."""
    assert view.image_shape is not None  # tabular data has no weight images
    return as_image(view.scaled_weights(split), view.image_shape, view.tree.statistics.scaling.factor != 0)


def signed_image(values: Doubles, image_shape: tuple[int, ...] | None) -> tuple[Doubles, dict[str, Any]]:
    """Return signed values as an image, and the arguments of ``imshow`` for a diverging colormap."""
    assert image_shape is not None
    limit = np.abs(values).max() or 1.0
    return side_by_side(values, image_shape), {"cmap": "RdBu", "vmin": -limit, "vmax": limit}


def rescale_to_unit(values: npt.NDArray[np.floating], counts: npt.NDArray[np.bool_] | None = None) -> Doubles:
    """Rescale values linearly to 0 … 1; equal ones to 0.5.

    With ``counts`` only these values define the range, and others are clipped to it: pixels that are constant in
    training have weight zero, which may be far from the rest.
    """
    wide = values.astype(np.float64)
    spanning = wide if counts is None or not counts.any() else wide[counts]
    low, high = spanning.min(), spanning.max()
    if not high > low:
        return np.full(wide.shape, 0.5)
    return np.clip((wide - low) / (high - low), 0.0, 1.0)


def as_image(
    values: npt.NDArray[np.floating], image_shape: tuple[int, ...], counts: npt.NDArray[np.bool_] | None = None
) -> Doubles:
    """Return a row of values as an image from 0 to 1: three channels as RGB, other numbers of channels side by side.

    (height, width) or (height, width, 3), from 0 to 1
    """
    shades = rescale_to_unit(values, counts)
    return shades.reshape(image_shape) if image_shape[2:] == (3,) else side_by_side(shades, image_shape)


def side_by_side(values: npt.NDArray[np.floating], image_shape: tuple[int, ...]) -> Doubles:
    """Arrange the channels of an image in a grid, with NaN between them."""
    height, width, channels = (*image_shape, 1)[:3]
    image = np.asarray(values, dtype=np.float64).reshape(height, width, channels)
    columns = math.ceil(math.sqrt(channels))
    rows = math.ceil(channels / columns)
    sheet = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1), np.nan)
    for channel in range(channels):
        top, left = channel // columns * (height + 1), channel % columns * (width + 1)
        sheet[top : top + height, left : left + width] = image[:, :, channel]
    return sheet


def _draw_gray(ax: Axes, view: ModelView, split: int) -> None:
    _draw_image(ax, weight_image(view, split), GRAY)


def _draw_diverging(ax: Axes, view: ModelView, split: int) -> None:
    _draw_image(ax, *signed_image(view.scaled_weights(split), view.image_shape))


def _draw_image(ax: Axes, image: Doubles, paint: dict[str, Any]) -> None:
    ax.imshow(image, interpolation="none", **paint)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_linewidth(0.6)


def _draw_bars(ax: Axes, view: ModelView, split: int) -> None:
    effect = compute_effects(require_linear_splits(view.tree, "plot_weights"), split)
    largest = rank_features(effect, MAX_BARS)
    values = effect[largest]
    ax.barh(np.arange(len(largest)), values, color=np.where(values > 0, RIGHT, LEFT), height=0.75)
    names = [truncate_text(view.feature_names[feature], 1.1, 7) for feature in largest]
    ax.set_yticks(np.arange(len(largest)), names, fontsize=7, parse_math=False)
    ax.tick_params(axis="x", labelsize=6)
    ax.locator_params(axis="x", nbins=4)
    ax.set_ylim(min(MAX_BARS, len(effect)) - 0.5, -0.5)
    ax.axvline(0, color=DARK, linewidth=0.6)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("← left    weight    right →", fontsize=7, color=MUTED)


DRAWINGS = {"gray": _draw_gray, "diverging": _draw_diverging, "bars": _draw_bars}
