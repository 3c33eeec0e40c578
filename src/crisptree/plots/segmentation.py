"""What was found for every pixel of an image beside the truth: the paper's figure of four panels."""

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
"""A title, the values of all pixels, and from where to where greys go."""


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
    """Draw an image, its labels, the leaf of every pixel and the probability of a class, side by side.

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, channels)
        The image; of two, or more than three channels the first is drawn.
    truth : array of shape (height, width), or None
        Its labels, as numbers or any others; None leaves the panel out.
    leaves : array of shape (height, width)
        ``CrispSegmenter.leaf_image``: leaves from left to right as greys from 0 to 1.
    probability : array of shape (height, width)
        One class of ``CrispSegmenter.predict_proba``; darker is likelier, as in the paper.
    axes : sequence of matplotlib axes, default=None
        As many as there are panels; None makes a figure.
    class_name : str, default=""
        The class whose probability it is.
    titles : bool, default=True
        Whether panels say what they show.

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
    return _drawn(shown, axes, titles, "Of probabilities draw one class, e.g. predict_proba(image)[:, :, 1].")


def plot_pixel_numbers(
    image: npt.ArrayLike,
    truth: npt.ArrayLike | None,
    leaves: npt.ArrayLike,
    numbers: npt.ArrayLike,
    axes: Sequence[Axes] | npt.NDArray[Any] | None = None,
    *,
    name: str = "predicted",
    titles: bool = True,
) -> npt.NDArray[Any]:
    """Draw an image, the true numbers of its pixels, the leaf of every pixel and the numbers found, side by side.

    True numbers and those found are drawn on one scale of greys, which the true ones set where there are some.

    Parameters
    ----------
    image : array of shape (height, width) or (height, width, channels)
        The image; of two, or more than three channels the first is drawn.
    truth : array of shape (height, width), or None
        The true numbers, NaN where there are none; None leaves the panel out.
    leaves : array of shape (height, width)
        ``CrispPixelRegressor.leaf_image``: leaves from left to right as greys from 0 to 1.
    numbers : array of shape (height, width)
        ``CrispPixelRegressor.predict``, or ``predict_std``; of several outputs one.
    axes : sequence of matplotlib axes, default=None
        As many as there are panels; None makes a figure.
    name : str, default="predicted"
        What the numbers are.
    titles : bool, default=True
        Whether panels say what they show.

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
    return _drawn(shown, axes, titles, "Of several outputs draw one, e.g. predict(image)[:, :, 0].")


def _image(image: npt.ArrayLike) -> Panel:
    if np.ndim(image) not in (2, 3):
        raise ValueError(f"`image` must be (height, width[, channels]); got an array of shape {np.shape(image)}.")
    return "image", _drawable(np.asarray(image)), {}


def _drawn(shown: list[Panel], axes: Any, titles: bool, hint: str) -> npt.NDArray[Any]:
    """Panels side by side, each of one value for every pixel of the first one."""
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


def _drawable(image: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Greys, or three channels brought to the range of colours together."""
    if image.shape[2:] != (3,):
        return image if image.ndim == 2 else image[:, :, 0]
    low, high = float(image.min()), float(image.max())
    return (image.astype(np.float64) - low) / ((high - low) or 1.0)
