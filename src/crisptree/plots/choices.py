"""What a fit tried before it chose: accuracy on held-out rows against the size of the tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from crisptree.inspection.model_view import unwrap_model
from crisptree.plots.style import ACCENT, MUTED, new_axes


class Kind(NamedTuple):
    """A kind of trial: how it is drawn, and what is written beside it on which side."""

    marker: str
    color: str
    parameter: str
    text: str
    side: str


KINDS = {
    "noise widths": Kind("o", "#3b6fb6", "input_noise", "σ = {:g}", "right"),
    "one scale": Kind("P", "#56b4e9", "input_noise", "σ = {:g}", "left"),
    "l2": Kind("v", "#009e73", "l2", "l2 = {:g}", "right"),
    "shallow": Kind("D", "#8a6fb0", "max_depth", "depth {}", "left"),
    "sparse": Kind("^", "#c79a00", "l1", "l1 = {:g}", "right"),
    "thresholds": Kind("s", "#777777", "max_depth", "{}", "left"),
}
"""In the order of the key. Thresholds are named by their depth alone, because there are many."""

SIDES: dict[str, dict[str, Any]] = {
    "right": {"xytext": (8, 0), "ha": "left"},
    "left": {"xytext": (-8, 0), "ha": "right"},
}


def plot_choices(model: Any, ax: Axes | None = None) -> Axes:
    """Draw everything that a fit tried: hard accuracy on held-out rows, with its standard error, and size.

    The chosen setting has a ring. It need not be the highest: among the best of every kind it is the one with the
    fewest weights within one standard error of the best, taken over the rows on which the two differ.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator with its ``path_``, or a Pipeline that ends in one.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib axes
    """
    found = unwrap_model(model)[1]
    trials = list(getattr(found, "path_", []) or [])
    if not trials:
        raise ValueError(
            "plot_choices must have a model that chose something; this one has no path_: it is not fitted, had numbers "
            "for all parameters or too few rows to choose by, or was loaded from a file, which does not keep it. Fit "
            "it here with input_noise='auto', for example, then plot."
        )
    ax = new_axes(ax, (6.4, 4.0))
    deepest = max((_depth(trial.values) for trial in trials), default=np.inf)
    of_kind: dict[str, list[Any]] = {name: [] for name in KINDS}
    for trial in trials:
        of_kind[_kind(trial.values, deepest)].append(trial)
    for name, some in of_kind.items():
        if some:
            _draw(ax, name, some)
    _ring(ax, found.chosen_, trials)
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.margins(x=0.15)
    ax.set_xlabel("weights that are not zero", fontsize=8)
    ax.set_ylabel("accuracy on held-out rows, hard, in %", fontsize=8)
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def _depth(values: Mapping[str, Any]) -> float:
    return np.inf if values["max_depth"] is None else values["max_depth"]


def _kind(values: Mapping[str, Any], deepest: float) -> str:
    if values.get("split") == "axis":
        return "thresholds"
    if values.get("l1"):
        return "sparse"
    if _depth(values) < deepest:
        return "shallow"
    if values.get("l2"):
        return "l2"
    return "one scale" if values.get("scale") == "global" else "noise widths"


def _point(trial: Any) -> tuple[float, float, float]:
    """Weights, accuracy and its standard error, the latter two in %; a single leaf, which has none, stands at 1."""
    error = trial.error
    return max(trial.weights, 1.0), 100 * trial.score, 100 * error


def _draw(ax: Axes, name: str, trials: Sequence[Any]) -> None:
    """The trials of one kind, with what sets each apart from its like."""
    kind = KINDS[name]
    size, accuracy, error = np.array([_point(trial) for trial in trials]).T
    ax.errorbar(
        size,
        accuracy,
        error,
        fmt=kind.marker,
        color=kind.color,
        markersize=5,
        elinewidth=0.8,
        capsize=2,
        label=name,
        zorder=3,
    )
    for trial, x, y in zip(trials, size, accuracy, strict=True):
        value = trial.values.get(kind.parameter)
        if value is not None:
            text, place = kind.text.format(value), SIDES[kind.side]
            ax.annotate(text, (x, y), fontsize=6, color=MUTED, va="center", textcoords="offset points", **place)


def _ring(ax: Axes, chosen: Mapping[str, Any], trials: Sequence[Any]) -> None:
    values = {name: value for name, value in chosen.items() if name != "shrinkage"}
    for trial in trials:
        if trial.values == values:
            x, y, _ = _point(trial)
            ring: dict[str, Any] = {"markersize": 12, "markerfacecolor": "none", "markeredgewidth": 1.6}
            ax.plot([x], [y], "o", color=ACCENT, linestyle="none", label="chosen", zorder=4, **ring)
