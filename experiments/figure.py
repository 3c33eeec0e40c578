"""The depth curves in the paper's layout: one column per data set, baselines dashed; and our lead from depth 6 on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from experiments.comparing import Comparison
from experiments.methods import METHODS
from experiments.table import Results

LARGEST_SVG = 300_000
TEST, TRAIN = "test_hard", "train_hard"
OURS, LEAD_FROM = "finetuned_em", 6
"""Whose lead is drawn, and from which depth on: above it curves lie too close for an axis that shows them all."""

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
LEAD_LINES = {"linewidth": 1.2, "markersize": 4, "elinewidth": 0.7, "capsize": 2}
LEAD_TICKS = (-1, 0, 1, 2, 5, 10, 20)
SOFT_METRICS = {"test_hard": "test_soft", "train_hard": "train_soft"}


def draw(columns: Sequence[Results]) -> Figure:
    """Draw one column per data set that has a finished cell."""
    figure = Figure(figsize=(max(3.1 * len(columns) + 0.6, 5.2), 9.4), layout="constrained")
    axes = figure.subplots(3, len(columns), squeeze=False, sharex="col")
    for column, results in enumerate(columns):
        draw_curves(axes[0, column], results, TEST)
        draw_leads(axes[1, column], results)
        draw_curves(axes[2, column], results, TRAIN)
        axes[0, column].set_title(results.config.title)
        axes[2, column].set_xlabel("Maximum depth")
    names = (
        "Test accuracy [%]",
        f"Test: {METHODS[OURS].label} minus the\nother, from depth {LEAD_FROM} on [points]",
        "Training accuracy [%]",
    )
    for row, name in enumerate(names):
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


def draw_leads(axis: Any, results: Results) -> Any:
    """Draw the difference of our test accuracy to each other method, with the width of a tie as a bar."""
    depths = [depth for depth in results.config.depths if depth >= LEAD_FROM]
    for name, style in STYLES.items():
        found = [(depth, results.get(OURS, depth, TEST), results.get(name, depth, TEST)) for depth in depths]
        pairs = [(depth, Comparison(ours, other, "", "")) for depth, ours, other in found if ours and other]
        if name == OURS or not pairs:
            continue
        places, leads, widths = zip(*((depth, pair.lead, pair.width) for depth, pair in pairs), strict=True)
        axis.errorbar(places, leads, yerr=widths, label=METHODS[name].label, **LEAD_LINES, **style)
    axis.axhline(0, color="#b2182b", linewidth=1.2)
    axis.set_yscale("symlog", linthresh=2)
    axis.set_yticks(LEAD_TICKS, [f"{tick:+d}" if tick else "0" for tick in LEAD_TICKS])
    axis.grid(alpha=0.25, linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
    return axis


def draw_curves(axis: Any, results: Results, metric: str) -> Any:
    """Draw the hard accuracy of every method over the depth, and the soft tree's soft one."""
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
