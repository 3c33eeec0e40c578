"""The depth curves in the paper's layout: test above train, one column per data set, rivals dashed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from experiments.methods import METHODS
from experiments.table import Results

LARGEST_SVG = 300_000
METRICS = {"test_hard": "Test accuracy [%]", "train_hard": "Training accuracy [%]"}

STYLES: dict[str, dict[str, Any]] = {
    "greedy_em": {"color": "#f4a582", "linestyle": "-", "marker": "o"},
    "finetuned_em": {"color": "#b2182b", "linestyle": "-", "marker": "o"},
    "greedy_alternating": {"color": "#c2a5cf", "linestyle": "-", "marker": "s"},
    "finetuned_alternating": {"color": "#762a83", "linestyle": "-", "marker": "s"},
    "axis_aligned": {"color": "#4d4d4d", "linestyle": "--", "marker": "x"},
    "random": {"color": "#999999", "linestyle": "--", "marker": "+"},
    "oc1": {"color": "#1b7837", "linestyle": "--", "marker": "^"},
    "co2": {"color": "#4393c3", "linestyle": "--", "marker": "v"},
    "non_greedy": {"color": "#2166ac", "linestyle": "--", "marker": "d"},
}
SOFT_STYLE = {"color": "#e6a700", "linestyle": ":", "marker": "*"}
SOFT_METRICS = {"test_hard": "test_soft", "train_hard": "train_soft"}


def draw(columns: Sequence[Results]) -> Figure:
    """One column per data set that has a finished cell."""
    figure = Figure(figsize=(max(3.1 * len(columns) + 0.6, 5.2), 6.4), layout="constrained")
    axes = figure.subplots(2, len(columns), squeeze=False, sharex="col")
    for column, results in enumerate(columns):
        for row, metric in enumerate(METRICS):
            draw_curves(axes[row, column], results, metric)
        axes[0, column].set_title(results.config.title)
        axes[1, column].set_xlabel("Maximum depth")
    for row, name in enumerate(METRICS.values()):
        axes[row, 0].set_ylabel(name)
    handles = {}
    for axis in axes.flat:
        handles.update(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    order = [name for name in (*(METHODS[key].label for key in STYLES), "Soft, visits all leaves") if name in handles]
    figure.legend(
        [handles[name] for name in order],
        order,
        loc="outside lower center",
        ncols=2 if len(columns) == 1 else 4,
        fontsize=8,
        handlelength=3,
        frameon=False,
    )
    return figure


def draw_curves(axis: Any, results: Results, metric: str) -> Any:
    """The hard accuracy of every method over the depth, and the soft tree's soft one."""
    for name, style in STYLES.items():
        _draw_curve(axis, results, name, metric, METHODS[name].label, style)
    _draw_curve(axis, results, "soft", SOFT_METRICS[metric], "Soft, visits all leaves", SOFT_STYLE)
    axis.set_xticks(results.config.depths)
    axis.grid(alpha=0.25, linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    return axis


def _draw_curve(axis: Any, results: Results, name: str, metric: str, title: str, style: dict[str, Any]) -> None:
    """Means over seeds with a band of one spread; a depth without a cell is a gap."""
    depths = np.array(results.config.depths)
    found = [results.get(name, int(depth), metric) for depth in depths]
    if not any(found):
        return
    means = np.array([summary.mean if summary else np.nan for summary in found])
    spreads = np.array([(summary.spread or 0.0) if summary else np.nan for summary in found])
    axis.plot(depths, means, label=title, linewidth=1.4, markersize=4, **style)
    if np.nanmax(spreads) > 0:
        axis.fill_between(depths, means - spreads, means + spreads, color=style["color"], alpha=0.2, linewidth=0)


def save(figure: Figure, stem: Path) -> list[Path]:
    """Write a picture as .png, and as .svg where that is small."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    picture, drawing = (stem.with_name(stem.name + ending) for ending in (".png", ".svg"))
    with matplotlib.rc_context({"svg.hashsalt": "crisptree", "svg.fonttype": "none"}):
        figure.savefig(picture, dpi=150, metadata={"Software": None})
        figure.savefig(drawing, metadata={"Date": None, "Creator": None})
    if drawing.stat().st_size > LARGEST_SVG:
        drawing.unlink()
        return [picture]
    return [picture, drawing]
