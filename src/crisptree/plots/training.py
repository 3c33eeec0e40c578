"""The course of a fit: training curves, and the candidates of model selection."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from crisptree.inference.flat_tree import has_linear_leaves
from crisptree.inspection.model_view import unwrap_model
from crisptree.plots.style import ACCENT, DARK, MUTED, RIGHT, check_axes, new_axes, write

CURVES: tuple[tuple[str, Callable[[Any], float | None]], ...] = (
    ("mean log-likelihood", lambda record: -record.loss),
    ("steepness γ", lambda record: record.steepness),
    ("validation accuracy\n(hard)", lambda record: record.validation_score),
)
"""Label and value of each axes, from the top."""

PHASES = {"grow": RIGHT, "finetune": ACCENT}

MIN_LABEL_SHARE = 0.07
"""A level is labelled where it covers at least this share of the width."""


MARKERS = {"oblique splits": ("o", RIGHT), "axis splits": ("s", "#777777"), "linear leaves": ("^", "#c79a00")}
"""Marker and color of the candidates by their family."""


def plot_training(model: Any, axes: Any = None) -> npt.NDArray[Any]:
    """Plot likelihood, steepness and the validation accuracy of the deterministic tree over all epochs.

    Levels of growth are shaded alternately; finetuning follows in another color. During growth the likelihood is that
    of the stumps of a level, so it restarts at every level.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator with its ``history_``, or a Pipeline that ends in one.
    axes : array of 2 or 3 matplotlib axes, default=None
        Where to draw; with two of them the accuracy is left out. None makes a figure.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> fixed = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 1.0, "random_state": 0}
    >>> model = CrispTreeClassifier(**fixed, max_depth=2).fit(X, y)
    >>> from crisptree.plots import plot_training
    >>> ax = plot_training(model)
    """
    records = list(getattr(unwrap_model(model)[1], "history_", []) or [])
    if not records:
        raise ValueError(
            "plot_training needs a model with a training history; this one has none: it is not fitted, was trained "
            "without epochs, or was loaded from a file, which does not store it. Fit it, then plot."
        )
    if axes is None:
        number = 3 if any(record.validation_score is not None for record in records) else 2
        _, axes = plt.subplots(number, 1, figsize=(7.0, 1.6 * number + 0.4), sharex=True, layout="constrained")
    drawn = np.asarray(axes, dtype=object).reshape(-1)
    if len(drawn) not in (2, 3):
        raise ValueError(f"`axes` must be 2 or 3 axes, for likelihood, steepness and accuracy; got {len(drawn)}.")
    for ax in drawn:
        check_axes(ax, "axes")
    pieces = _split_phases(records)
    for ax, (label, value) in zip(drawn, CURVES, strict=False):
        _draw_curve(ax, pieces, value)
        ax.set_ylabel(label, fontsize=8)
        ax.tick_params(labelsize=7)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_xlim(0.5, len(records) + 0.5)
    _label_phases(drawn[0], pieces, len(records))
    drawn[-1].set_xlabel("epoch", fontsize=8)
    return drawn


def _split_phases(records: Sequence[Any]) -> list[tuple[int, list[Any]]]:
    """Return runs of epochs of one phase and level, each with the number of its first epoch, from 1."""
    pieces, start = [], 1
    for _, run in groupby(records, key=lambda record: (record.phase, record.level)):
        piece = list(run)
        pieces.append((start, piece))
        start += len(piece)
    return pieces


def _draw_curve(ax: Axes, pieces: list[tuple[int, list[Any]]], value: Callable[[Any], float | None]) -> None:
    """Draw a line for each run, shaded alternately; broken where best-first growth continues with other stumps."""
    for number, (start, piece) in enumerate(pieces):
        if number % 2:
            ax.axvspan(start - 0.5, start + len(piece) - 0.5, color="#f1f3f5", linewidth=0, zorder=0)
        again = [index for index, (one, other) in enumerate(pairwise(piece), 1) if other.epoch <= one.epoch]
        heights = np.array([value(record) for record in piece], dtype=np.float64)  # NaN for None
        x, y = np.insert(start + np.arange(len(piece)), again, 0), np.insert(heights, again, np.nan)
        ax.plot(x, y, color=PHASES.get(piece[0].phase, DARK), linewidth=1.4, marker=".", markersize=3)


def _label_phases(ax: Axes, pieces: list[tuple[int, list[Any]]], n_epochs: int) -> None:
    """Label the phases above the first axes."""
    for start, piece in pieces:
        if len(piece) >= MIN_LABEL_SHARE * n_epochs:
            text = "finetuning" if piece[0].phase == "finetune" else f"level {piece[0].level}"
            middle = start - 0.5 + len(piece) / 2
            write(ax, middle, 1.02, text, 7, va="bottom", color=MUTED, transform=ax.get_xaxis_transform())


def plot_selection(model: Any, ax: Axes | None = None) -> Axes:
    """Plot all candidates of model selection: accuracy on held-out rows with its standard error against the size.

    Candidates are annotated by their depth; the selected one has a ring.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator with its ``cv_results_``, or a Pipeline that ends in one.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier
    >>> from crisptree.plots import plot_selection
    >>> ax = plot_selection(CrispTreeClassifier(max_depth=2, random_state=0).fit(*load_iris(return_X_y=True)))
    """
    estimator = unwrap_model(model)[1]
    trials = list(getattr(estimator, "cv_results_", []) or [])
    if not trials:
        raise ValueError(
            "plot_selection needs a model that selected its parameters; this one has no cv_results_: it is not fitted, "
            "all parameters were given, there were too few rows, or it was loaded from a file, which lacks it. "
            "Fit it with input_noise='auto', for example, then plot."
        )
    ax = new_axes(ax, (6.4, 4.0))
    families = [_family(trial.values) for trial in trials]
    for family in dict.fromkeys(families):
        _draw_candidates(ax, family, [trial for trial, own in zip(trials, families, strict=True) if own == family])
    _mark_selected(ax, estimator.best_params_, trials)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.margins(x=0.15)
    ax.set_xlabel("non-zero weights", fontsize=8)
    scoring = estimator.scoring
    metric = "accuracy on held-out rows, hard, in %" if scoring is None else f"{scoring} on held-out rows × 100"
    ax.set_ylabel(metric, fontsize=8)
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def _point(trial: Any) -> tuple[float, float, float]:
    """Return size, accuracy and standard error in %; a single leaf, which has no weights, has size 1."""
    return max(trial.weights, 1.0), 100 * trial.score, 100 * trial.error


def _family(values: Mapping[str, Any]) -> str:
    return "linear leaves" if has_linear_leaves(values) else f"{values.get('split', 'oblique')} splits"


def _draw_candidates(ax: Axes, family: str, trials: Sequence[Any]) -> None:
    """Draw the candidates of a family with error bars, annotated by their depth."""
    marker, color = MARKERS.get(family, ("D", MUTED))
    size, accuracy, error = np.array([_point(trial) for trial in trials]).T
    style: dict[str, Any] = {"markersize": 5, "elinewidth": 0.8, "capsize": 2, "zorder": 3}
    ax.errorbar(size, accuracy, error, fmt=marker, color=color, label=family, **style)
    for trial, x, y in zip(trials, size, accuracy, strict=True):
        place: dict[str, Any] = {"xytext": (8, 0), "textcoords": "offset points", "va": "center"}
        ax.annotate(f"{trial.values.get('max_depth')}", (x, y), fontsize=6, color=MUTED, **place)


def _mark_selected(ax: Axes, selected: Mapping[str, Any], trials: Sequence[Any]) -> None:
    """Draw a ring around the selected candidate; some parameters, such as shrinkage, are selected after all trials."""
    matches = [trial for trial in trials if all(selected.get(name) == value for name, value in trial.values.items())]
    if matches:
        x, y, _ = _point(max(matches, key=lambda trial: (len(trial.values), trial.score)))
        ring: dict[str, Any] = {"markersize": 12, "markerfacecolor": "none", "markeredgewidth": 1.6}
        ax.plot([x], [y], "o", color=ACCENT, linestyle="none", label="selected", zorder=4, **ring)
