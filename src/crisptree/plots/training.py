"""How a training went: likelihood, steepness and hard score, epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from crisptree.inspection.model_view import unwrap_model
from crisptree.plots.style import ACCENT, DARK, MUTED, RIGHT, check_axes, write

CURVES: tuple[tuple[str, Callable[[Any], float | None]], ...] = (
    ("mean log-likelihood", lambda record: -record.loss),
    ("steepness γ", lambda record: record.steepness),
    ("validation accuracy\n(hard)", lambda record: record.validation_score),
)
"""What the axes show, from above."""

PHASES = {"grow": RIGHT, "finetune": ACCENT}

NARROWEST_LABEL = 0.07
"""A level is named where it takes at least this part of the width."""


def plot_training(model: Any, axes: Any = None) -> npt.NDArray[Any]:
    """Draw likelihood, steepness and the deterministic tree's validation accuracy over all epochs.

    Levels of the greedy growth stand side by side, on shaded ground in turn, and finetuning after them in another
    colour. While stumps are grown the likelihood is theirs, on the rows of the level; so it starts anew with each.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator with its ``history_``, or a Pipeline that ends in one.
    axes : array of 2 or 3 matplotlib axes, default=None
        Where to draw; with two of them the accuracy is left out. None makes a figure of as many as there is to see.

    Returns
    -------
    ndarray of matplotlib axes
        One for each curve.
    """
    records = list(getattr(unwrap_model(model)[1], "history_", []) or [])
    if not records:
        raise ValueError(
            "plot_training must have a model with a history; this one has none: it is not fitted, was trained without "
            "epochs, or was loaded from a file, which does not keep it. Fit it here, then plot."
        )
    if axes is None:
        number = 3 if any(record.validation_score is not None for record in records) else 2
        _, axes = plt.subplots(number, 1, figsize=(7.0, 1.6 * number + 0.4), sharex=True, layout="constrained")
    drawn = np.asarray(axes, dtype=object).reshape(-1)
    if len(drawn) not in (2, 3):
        raise ValueError(f"`axes` must be 2 or 3 axes, for likelihood, steepness and accuracy; got {len(drawn)}.")
    for ax in drawn:
        check_axes(ax, "axes")
    pieces = _pieces(records)
    for ax, (label, value) in zip(drawn, CURVES, strict=False):
        _draw_curve(ax, pieces, value)
        ax.set_ylabel(label, fontsize=8)
        ax.tick_params(labelsize=7)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_xlim(0.5, len(records) + 0.5)
    _name(drawn[0], pieces, len(records))
    drawn[-1].set_xlabel("epoch", fontsize=8)
    return drawn


def _pieces(records: Sequence[Any]) -> list[tuple[int, list[Any]]]:
    """Runs of epochs of one phase and level, each with the number of its first epoch, from 1."""
    pieces, start = [], 1
    for _, run in groupby(records, key=lambda record: (record.phase, record.level)):
        piece = list(run)
        pieces.append((start, piece))
        start += len(piece)
    return pieces


def _draw_curve(ax: Axes, pieces: list[tuple[int, list[Any]]], value: Callable[[Any], float | None]) -> None:
    """A line for each run, every second one on grey; broken where best-first growth goes on to other stumps."""
    for number, (start, piece) in enumerate(pieces):
        if number % 2:
            ax.axvspan(start - 0.5, start + len(piece) - 0.5, color="#f1f3f5", linewidth=0, zorder=0)
        again = [place for place, (one, other) in enumerate(pairwise(piece), 1) if other.epoch <= one.epoch]
        heights = np.array([value(record) for record in piece], dtype=np.float64)  # NaN for None
        x, y = np.insert(start + np.arange(len(piece)), again, 0), np.insert(heights, again, np.nan)
        ax.plot(x, y, color=PHASES.get(piece[0].phase, DARK), linewidth=1.4, marker=".", markersize=3)


def _name(ax: Axes, pieces: list[tuple[int, list[Any]]], n_epochs: int) -> None:
    """Above the first axes what was trained when."""
    for start, piece in pieces:
        if len(piece) >= NARROWEST_LABEL * n_epochs:
            text = "finetuning" if piece[0].phase == "finetune" else f"level {piece[0].level}"
            middle = start - 0.5 + len(piece) / 2
            write(ax, middle, 1.02, text, 7, va="bottom", color=MUTED, transform=ax.get_xaxis_transform())
