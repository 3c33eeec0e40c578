"""Predictions for every pixel: segmentations and pixel regressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from crisptree.inspection.validation import check_boolean
from crisptree.plots.style import new_grid

Doubles = npt.NDArray[np.float64]
Panel = tuple[str, npt.NDArray[Any], dict[str, float]]
"""A title, the values of all pixels, and the limits of the gray scale."""

PANEL_INCHES = 3.0
UNIT_RANGE = {"vmin": 0.0, "vmax": 1.0}


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
