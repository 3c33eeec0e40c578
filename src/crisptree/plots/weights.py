"""What the splits look for: their weights as images, or the largest of them as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from crisptree.plots.ink import INK, LEFT, MUTED, RIGHT, SIGNED, as_they_are, shortened, write
from crisptree.plots.pictures import largest_weights, picture, side_by_side
from crisptree.plots.subject import Subject

STYLES = {"gray": ("gray",), "diverging": ("diverging",), "both": ("gray", "diverging")}

MOST = 8
"""Splits drawn where none are named."""

BARS = 8
"""Weights drawn of a split of tabular data."""


def plot_weights(
    model: Any,
    nodes: Sequence[int] | None = None,
    axes: Any = None,
    *,
    compare: Any = None,
    style: str = "gray",
    labels: Sequence[str] | None = None,
    feature_names: Sequence[Any] | None = None,
) -> npt.NDArray[Any]:
    """Draw the weights of some splits side by side, in the scaled space of training.

    Images show them as in the paper, linearly brought to the full grey range, or by a map of two colours with white at
    zero. For tabular data bars show the largest ones.

    Parameters
    ----------
    model : CrispTreeClassifier
        A fitted estimator with linear splits.
    nodes : sequence of int, default=None
        Numbers of splits; None takes the eight that most training samples visit.
    axes : array of matplotlib axes, default=None
        One for each split and row; None makes a figure.
    compare : CrispTreeClassifier, default=None
        Another estimator on the same features, drawn below; e.g. one trained without ``roughness``.
    style : {"gray", "diverging", "both"}, default="gray"
        How images are coloured; "both" draws two rows for each model.
    labels : sequence of str, default=None
        What the rows of a comparison are called; None names the roughness of the two.
    feature_names : list of str, default=None
        Words in place of ``feature_names_in_``.

    Returns
    -------
    ndarray of matplotlib axes, of shape (n_rows, n_nodes)
        A row for each model and style.
    """
    if style not in STYLES:
        raise ValueError(f"`style` must be one of {', '.join(STYLES)}; got {style!r}.")
    models = [model] if compare is None else [model, compare]
    subjects = [Subject.of(one, "plot_weights", feature_names=feature_names) for one in models]
    if len({(subject.tree.n_features, subject.image_shape) for subject in subjects}) > 1:
        raise ValueError("`compare` must be a model of the same features and image shape; this one has others.")
    weights = [subject.hyperplanes("plot_weights")[0] for subject in subjects]
    splits = _chosen(nodes, subjects)
    names = _row_names(models, labels)
    rows = [
        (subject, weight, kind, name)
        for subject, weight, name in zip(subjects, weights, names, strict=True)
        for kind in (STYLES[style] if subject.as_images else ("bars",))
    ]
    grid = _grid(axes, len(rows), max(len(splits), 1), subjects[0].as_images)
    if not splits:
        for ax in grid.flat:
            ax.set_axis_off()
            write(ax, 0.5, 0.5, "one leaf, no splits", 9, color=MUTED, transform=ax.transAxes)
        return grid
    for ax, split in zip(grid[0], splits, strict=True):
        ax.set_title(f"split {split}", fontsize=8, color=INK)
    for line, (subject, weight, kind, name) in zip(grid, rows, strict=True):
        for ax, split in zip(line, splits, strict=True):
            DRAWINGS[kind](ax, subject, weight[split])
        if name:
            line[0].set_ylabel(name, fontsize=8, color=INK)
            as_they_are([line[0].yaxis.label])
    return grid


def _chosen(nodes: Sequence[int] | None, subjects: list[Subject]) -> list[int]:
    """Split numbers that every tree has."""
    n_splits = min(subject.tree.structure.n_splits for subject in subjects)
    if nodes is None:
        visits = subjects[0].tree.statistics.node_counts[:n_splits].sum(axis=1)
        return sorted(np.argsort(-visits, kind="stable")[:MOST].tolist())
    given = np.asarray(nodes)
    if given.ndim != 1 or given.dtype.kind not in "iu" or not len(given):
        raise ValueError(f"`nodes` must be a list of numbers of splits, or None; got {nodes!r}.")
    splits: list[int] = given.tolist()
    wrong = [split for split in splits if not 0 <= split < n_splits]
    if wrong:
        raise ValueError(f"`nodes` must be numbers of splits, 0 … {n_splits - 1}; got {wrong}. Leaves have no weights.")
    return splits


def _row_names(models: list[Any], labels: Sequence[str] | None) -> list[str]:
    if labels is not None:
        if len(labels) != len(models):
            raise ValueError(f"`labels` must name the {len(models)} models; got {len(labels)} names.")
        return [str(label) for label in labels]
    if len(models) == 1:
        return [""]
    strengths = [getattr(model, "roughness", 0.0) for model in models]
    if strengths[0] == strengths[1]:
        return ["model", "compared with"]
    return [f"roughness {strength:g}" if strength else "no roughness" for strength in strengths]


def _grid(axes: Any, n_rows: int, n_columns: int, as_images: bool) -> npt.NDArray[Any]:
    if axes is None:
        width, height = (1.25, 1.35) if as_images else (2.6, 1.9)
        size = (width * n_columns + 0.3, height * n_rows + 0.2)
        _, axes = plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", squeeze=False)
    given = np.asarray(axes, dtype=object)
    if given.size != n_rows * n_columns:
        raise ValueError(f"`axes` must be {n_rows} × {n_columns} axes; got {given.size}. Leave it None to make them.")
    return given.reshape(n_rows, n_columns)


def _draw_gray(ax: Axes, subject: Subject, weights: npt.NDArray[np.float64]) -> None:
    assert subject.image_shape is not None  # tabular data is drawn as bars
    ax.imshow(picture(weights, subject.image_shape, subject.varies), cmap="gray", vmin=0, vmax=1, interpolation="none")
    _bare(ax)


def _draw_diverging(ax: Axes, subject: Subject, weights: npt.NDArray[np.float64]) -> None:
    assert subject.image_shape is not None
    reach = np.abs(weights).max() or 1.0
    image = side_by_side(weights, subject.image_shape)
    ax.imshow(image, cmap=mpl.colormaps[SIGNED], vmin=-reach, vmax=reach, interpolation="none")
    _bare(ax)


def _bare(ax: Axes) -> None:
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_linewidth(0.6)


def _draw_bars(ax: Axes, subject: Subject, weights: npt.NDArray[np.float64]) -> None:
    largest = largest_weights(weights, BARS)
    values = weights[largest]
    ax.barh(np.arange(len(largest)), values, color=np.where(values > 0, RIGHT, LEFT), height=0.75)
    names = [shortened(subject.features[feature], 1.1, 7) for feature in largest]
    ax.set_yticks(np.arange(len(largest)), names, fontsize=7, parse_math=False)
    ax.tick_params(axis="x", labelsize=6)
    ax.locator_params(axis="x", nbins=4)
    ax.set_ylim(BARS - 0.5 if len(weights) >= BARS else len(weights) - 0.5, -0.5)
    ax.axvline(0, color=INK, linewidth=0.6)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("← left    weight    right →", fontsize=7, color=MUTED)


DRAWINGS = {"gray": _draw_gray, "diverging": _draw_diverging, "bars": _draw_bars}
