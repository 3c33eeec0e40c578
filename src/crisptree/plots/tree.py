"""The whole tree: weight images or the largest weights at the splits, class bars at the leaves."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.patches import Rectangle

from crisptree.inference import CrispTree, FlatTree
from crisptree.plots.layout import Layout, tree_layout

LEVEL = 1.75  # distance of two levels, in widths of an end
BOX = 0.8  # side of a drawn node
TERMS = 3  # weights named at a split of tabular data
INCHES = {"image": 0.85, "bars": 1.7}  # width of an end
THINNEST, THICKEST = 0.4, 7.0  # points, of the arrows
INK, MUTED = "#222222", "#888888"


def plot_tree(
    model: Any,
    ax: Axes | None = None,
    *,
    max_depth: int | None = None,
    class_names: list[str] | None = None,
    feature_names: list[str] | None = None,
) -> Axes:
    """Draw a fitted tree.

    A row goes right where it resembles the weight image of the split, left where it resembles its negative. Arrows
    are as thick as the training samples that follow them. Bars in a leaf are its class frequencies.

    Parameters
    ----------
    model : CrispTreeClassifier
        A fitted estimator.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure of the size that the tree needs.
    max_depth : int, default=None
        Draw only so many levels of splits.
    class_names, feature_names : list of str, default=None
        Words in place of ``classes_`` and ``feature_names_in_``.

    Returns
    -------
    matplotlib axes
        The axes drawn on.
    """
    tree: CrispTree | None = getattr(model, "tree_", None)
    if tree is None:
        raise ValueError("plot_tree must have a fitted model; this one is not fitted. Call fit first.")
    names = [str(name) for name in (model.classes_ if class_names is None else class_names)]
    if len(names) != tree.leaves.shape[1]:
        raise ValueError(f"`class_names` must name all {tree.leaves.shape[1]} classes; got {len(names)} names.")
    columns = feature_names if feature_names is not None else getattr(model, "feature_names_in_", None)
    layout = tree_layout(tree.structure, max_depth)
    as_images = model.image_shape_ is not None and isinstance(tree, FlatTree)
    if ax is None:
        inches = INCHES["image" if as_images or layout.width == 1 else "bars"]
        size = (max(layout.width * inches, 3.0), max(layout.height * LEVEL * inches, 2.0))
        _, ax = plt.subplots(figsize=size, layout="constrained")
    _draw_arrows(ax, tree, layout)
    colors = class_colors(len(names))
    for node in layout.nodes:
        place = (layout.x[node], LEVEL * layout.y[node])
        if node >= tree.structure.n_splits or node in layout.cut:
            _draw_end(ax, tree, int(node), place, names, colors)
        elif not isinstance(tree, FlatTree):
            _draw_box(ax, place, f"module {node}")
        elif as_images:
            _draw_image(ax, tree, int(node), place, model.image_shape_)
        else:
            _draw_terms(ax, tree, int(node), place, columns)
    ax.set_xlim(-0.6, layout.width - 0.4)
    ax.set_ylim(-LEVEL * (layout.height - 1) - 0.95, 0.75)
    ax.set_aspect("equal")
    ax.set_axis_off()
    return ax


def class_colors(n_classes: int) -> npt.NDArray[np.float64]:
    """A color for every class: ten well-known ones, or evenly spaced hues.  (n_classes, 4)"""
    if n_classes <= 10:
        return np.array([mpl.colormaps["tab10"](number) for number in range(n_classes)])
    return np.asarray(mpl.colormaps["turbo"](np.linspace(0.05, 0.95, n_classes)))


def _draw_arrows(ax: Axes, tree: CrispTree, layout: Layout) -> None:
    totals = tree.statistics.node_counts.sum(axis=1)
    share = totals / max(totals[0], np.finfo(float).tiny)
    lines, widths = [], []
    for parent, child, _ in layout.edges:
        start = (layout.x[parent], LEVEL * layout.y[parent] - BOX / 2)
        lines.append([start, (layout.x[child], LEVEL * layout.y[child] + BOX / 2)])
        widths.append(THINNEST + (THICKEST - THINNEST) * share[child])
    ax.add_collection(LineCollection(lines, linewidths=widths, colors="#9aa7b5", capstyle="round", zorder=0))


def _draw_image(ax: Axes, tree: FlatTree, split: int, place: tuple[float, float], image_shape: Any) -> None:
    weights = tree.scaled_hyperplanes()[0][split].reshape(image_shape)
    low, high = weights.min(), weights.max()
    image = (weights - low) / (high - low if high > low else 1.0)
    if image.ndim == 3 and image.shape[2] not in (1, 3):
        image = image.mean(axis=2)
    x, y = place
    extent = (x - BOX / 2, x + BOX / 2, y - BOX / 2, y + BOX / 2)
    ax.imshow(image, cmap="gray", vmin=0, vmax=1, extent=extent, interpolation="nearest", zorder=2)
    ax.add_patch(Rectangle((extent[0], extent[2]), BOX, BOX, fill=False, edgecolor=INK, linewidth=0.6, zorder=3))


def _draw_terms(ax: Axes, tree: FlatTree, split: int, place: tuple[float, float], columns: Any) -> None:
    """The largest weights as signed bars: to the right what sends a row right."""
    weights = tree.scaled_hyperplanes()[0][split]
    largest = np.argsort(-np.abs(weights), kind="stable")[: min(TERMS, len(weights))]
    largest = largest[weights[largest] != 0]
    _draw_box(ax, place, "")
    x, y = place
    step = BOX / TERMS
    reach = np.abs(weights[largest]).max(initial=np.finfo(float).tiny)
    for row, feature in enumerate(largest):
        center = y + BOX / 2 - (row + 0.5) * step
        length = 0.45 * BOX * weights[feature] / reach
        ax.add_patch(
            Rectangle(
                (x, center - 0.3 * step), length, 0.6 * step, color="#c44e52" if length < 0 else "#4c72b0", zorder=2
            )
        )
        name = f"x{feature}" if columns is None else str(columns[feature])
        side = "right" if length > 0 else "left"
        ax.text(x - np.sign(length) * 0.02, center, name, ha=side, va="center", fontsize=6, color=INK, zorder=4)


def _draw_box(ax: Axes, place: tuple[float, float], text: str) -> None:
    x, y = place
    corner = (x - BOX / 2, y - BOX / 2)
    ax.add_patch(Rectangle(corner, BOX, BOX, facecolor="white", edgecolor=INK, linewidth=0.6, zorder=1))
    ax.text(x, y, text, ha="center", va="center", fontsize=6, color=INK, zorder=4)


def _draw_end(
    ax: Axes,
    tree: CrispTree,
    node: int,
    place: tuple[float, float],
    names: list[str],
    colors: npt.NDArray[np.float64],
) -> None:
    """Class bars, the name of the largest class, the number of training samples."""
    counts = tree.statistics.node_counts[node]
    leaf = node - tree.structure.n_splits
    table = tree.leaves[leaf] if leaf >= 0 else counts / max(counts.sum(), np.finfo(float).tiny)
    x, y = place
    width = BOX / len(table)
    bars = [
        Rectangle((x - BOX / 2 + number * width, y - BOX / 2), 0.9 * width, BOX * share)
        for number, share in enumerate(table)
    ]
    ax.add_collection(PatchCollection(bars, facecolors=colors, zorder=2))
    ax.plot([x - BOX / 2, x + BOX / 2], [y - BOX / 2] * 2, color=INK, linewidth=0.6, zorder=3)
    more = "" if leaf >= 0 else " …"
    ax.text(
        x,
        y - BOX / 2 - 0.05,
        names[int(table.argmax())] + more,
        ha="center",
        va="top",
        fontsize=8,
        fontweight="bold",
        color=INK,
    )
    ax.text(x, y - BOX / 2 - 0.32, f"{counts.sum():.6g}", ha="center", va="top", fontsize=5, color=MUTED)
