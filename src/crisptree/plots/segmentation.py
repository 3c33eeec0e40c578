"""Segmentation and pixel regression of an image beside the truth: the paper's figure of four panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from crisptree.inspection.validation import check_boolean
from crisptree.plots.style import new_grid

INCHES = 3.0  # side of a panel
UNIT = {"vmin": 0.0, "vmax": 1.0}

Panel = tuple[str, npt.NDArray[Any], dict[str, float]]
"""A title, the values of all pixels, and the limits of the gray scale."""


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
    """Plot an image, its labels, the leaf of every pixel and the probability of a class, side by side.

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

    Returns
    -------
    array of matplotlib axes
        One for each panel.
    """
    shown: list[Panel] = [_image(image)]
    if truth is not None:
        shown.append(("ground truth", np.unique(truth, return_inverse=True)[1].reshape(np.shape(truth)), {}))
    shown.append(("leaf affiliation", np.asarray(leaves), UNIT))
    shown.append((f"p({class_name})" if class_name else "probability", 1 - np.asarray(probability), UNIT))
    return _draw_panels(shown, axes, titles, "Of probabilities draw one class, e.g. predict_proba(image)[:, :, 1].")


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
    """Plot an image, the true values of its pixels, the leaf of every pixel and the predictions, side by side.

    True and predicted values share one gray scale, that of the true ones where these are given.

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, channels)
        The image; of two, or more than three channels the first is drawn.
    truth : array of shape (height, width), or None
        The true values, NaN where there are none; None leaves the panel out.
    leaves : array of shape (height, width)
        ``CrispPixelRegressor.leaf_image``: leaves from left to right as gray values from 0 to 1.
    numbers : array of shape (height, width)
        One output of ``CrispPixelRegressor.predict`` or ``predict_std``.
    axes : sequence of matplotlib axes, default=None
        As many as there are panels; None makes a figure.
    name : str, default="predicted"
        Title of the predictions.
    titles : bool, default=True
        Draw the titles of the panels.

    Returns
    -------
    array of matplotlib axes
        One for each panel.
    """
    shown: list[Panel] = [_image(image)]
    scale = np.asarray(numbers if truth is None else truth, dtype=np.float64)
    known = scale[np.isfinite(scale)]
    limits = {"vmin": float(known.min()), "vmax": float(known.max())} if len(known) else {}
    if truth is not None:
        shown.append(("ground truth", scale, limits))
    shown += [("leaf affiliation", np.asarray(leaves), UNIT), (name, np.asarray(numbers), limits)]
    return _draw_panels(shown, axes, titles, "Of several outputs draw one, e.g. predict(image)[:, :, 0].")


def _image(image: npt.ArrayLike) -> Panel:
    if np.ndim(image) not in (2, 3):
        raise ValueError(f"`image` must be (height, width[, channels]); got an array of shape {np.shape(image)}.")
    return "image", _to_displayable(np.asarray(image)), {}


def _draw_panels(shown: list[Panel], axes: Any, titles: bool, hint: str) -> npt.NDArray[Any]:
    """Draw panels side by side, each with one value for every pixel of the first one."""
    titles = check_boolean("titles", titles)
    shape = np.shape(shown[0][1])[:2]
    for title, values, _ in shown[1:]:
        if np.shape(values) != shape:
            raise ValueError(
                f"all panels must have one value for each of the image's {shape} pixels; got {np.shape(values)} for "
                f"{title}. {hint}"
            )
    panel = (INCHES, INCHES * shape[0] / shape[1])
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
