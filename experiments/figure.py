"""The figures of the page: accuracy over the depth, and EM beside the alternating scheme, one of each per data set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.comparing import Comparison
from experiments.methods import ALGORITHMS, METHODS, STAGES
from experiments.table import Results

TEST, TRAIN = "test_hard", "train_hard"
OURS, LEAD_FROM = "finetuned_em", 6
"""Whose lead is drawn, and from which depth on: above it curves lie too close for an axis that shows them all."""

STYLES: dict[str, dict[str, Any]] = {
    "greedy_em": {"color": "#f4a582", "linestyle": "-", "marker": "o"},
    "finetuned_em": {"color": "#b2182b", "linestyle": "-", "marker": "o"},
    "continued_em": {"color": "#d6604d", "linestyle": "-.", "marker": "p"},
    "greedy_alternating": {"color": "#c2a5cf", "linestyle": "-", "marker": "s"},
    "finetuned_alternating": {"color": "#762a83", "linestyle": "-", "marker": "s"},
    "continued_alternating": {"color": "#9970ab", "linestyle": "-.", "marker": "P"},
    "axis_aligned": {"color": "#4d4d4d", "linestyle": "--", "marker": "x"},
    "random": {"color": "#999999", "linestyle": "--", "marker": "+"},
    "oc1": {"color": "#1b7837", "linestyle": "--", "marker": "^"},
    "co2": {"color": "#4393c3", "linestyle": "--", "marker": "v"},
    "non_greedy": {"color": "#2166ac", "linestyle": "--", "marker": "d"},
}
SOFT = ("soft", {"color": "#e6a700", "linestyle": ":", "marker": "*"})
SOFT_METRICS = {TEST: "test_soft", TRAIN: "train_soft"}
PAIRS = tuple(tuple(f"{stage}_{algorithm}" for algorithm in ALGORITHMS) for stage in STAGES)
"""The lines of the supplement's figure: EM and the alternating scheme."""

LEAD_LINES = {"linewidth": 1.2, "markersize": 4, "elinewidth": 0.7, "capsize": 2}
LEAD_TICKS = (-1, 0, 1, 2, 5, 10, 20)


def draw_depths(results: Results) -> Figure:
    """Draw a column of the paper's figure 3, with our lead between test and training accuracy."""
    figure, (test, lead, train) = _new_figure(results)
    names = [name for name in STYLES if not name.endswith("alternating")]
    for axis, metric in ((test, TEST), (train, TRAIN)):
        draw_curves(axis, results, metric, names)
        _draw_curve(axis, results, SOFT[0], SOFT_METRICS[metric], "Soft, visits all leaves", SOFT[1])
    depths = [depth for depth in results.config.depths if depth >= LEAD_FROM]
    for name in names:
        if name != OURS:
            _draw_leads(lead, results, OURS, name, depths, METHODS[name].label)
    lead.set_title(f"Lead of {METHODS[OURS].label} on test rows,\nfrom depth {LEAD_FROM} on [points]", fontsize=9)
    lead.set_yscale("symlog", linthresh=2)
    lead.set_yticks(LEAD_TICKS, [f"{tick:+d}" if tick else "0" for tick in LEAD_TICKS])
    return _with_legend(figure, test)


def draw_schemes(results: Results) -> Figure:
    """Draw a column of the supplement's figure: EM and the alternating scheme, and the difference of the two."""
    figure, (test, lead, train) = _new_figure(results)
    have_run = {method for method, _ in results.done}
    pairs = [pair for pair in PAIRS if have_run.issuperset(pair)]
    for axis, metric in ((test, TEST), (train, TRAIN)):
        draw_curves(axis, results, metric, [name for pair in pairs for name in pair])
    for one, other in pairs:
        _draw_leads(lead, results, one, other, results.config.depths, METHODS[one].short, style=one)
    lead.set_title("EM minus alternating\non test rows [points]", fontsize=9)
    return _with_legend(figure, test)


def _new_figure(results: Results) -> tuple[Figure, Any]:
    figure = Figure(figsize=(11.0, 4.2), layout="constrained")
    axes = figure.subplots(1, 3)
    figure.suptitle(results.config.title, fontsize=11, fontweight="bold")
    for axis, name in zip(axes, ("Test accuracy [%]", "", "Training accuracy [%]"), strict=True):
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("Maximum depth")
        axis.set_xticks(results.config.depths)
        axis.grid(alpha=0.25, linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
    axes[1].axhline(0, color="#666666", linewidth=1.0)
    return figure, axes


def _with_legend(figure: Figure, axis: Any) -> Figure:
    handles, names = axis.get_legend_handles_labels()
    style: dict[str, Any] = {"fontsize": 8, "handlelength": 3, "frameon": False}
    figure.legend(handles, names, loc="outside lower center", ncols=4, **style)
    return figure


def draw_curves(axis: Any, results: Results, metric: str, names: Sequence[str]) -> None:
    """Draw the hard accuracy of methods over the depth."""
    for name in names:
        _draw_curve(axis, results, name, metric, METHODS[name].label, STYLES[name])


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


def _draw_leads(
    axis: Any, results: Results, one: str, other: str, depths: Sequence[int], title: str, *, style: str = ""
) -> None:
    """Draw the difference of two test accuracies, with the width of a tie as a bar."""
    found = [(depth, results.get(one, depth, TEST), results.get(other, depth, TEST)) for depth in depths]
    pairs = [(depth, Comparison(first, second, "", "")) for depth, first, second in found if first and second]
    if pairs:
        places, leads, widths = zip(*((depth, pair.lead, pair.width) for depth, pair in pairs), strict=True)
        axis.errorbar(places, leads, yerr=widths, label=title, **LEAD_LINES, **STYLES[style or other])


FIGURES = {"depths": draw_depths, "schemes": draw_schemes}


def save(results: Results, stem: Path) -> list[Path]:
    """Draw both figures of a data set beside the page: ``paper-mnist-depths.png``, ``paper-mnist-schemes.png``."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    written = []
    for name, draw in FIGURES.items():
        written.append(stem.with_name(f"{stem.name}-{results.config.data}-{name}.png".replace("_", "-")))
        draw(results).savefig(written[-1], dpi=110, metadata={"Software": None})
    return written
