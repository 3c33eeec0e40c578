"""Average ranks of models over tables, and their critical difference: Friedman's and Nemenyi's tests (Demšar 2006)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Self

import matplotlib as mpl
import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

ALPHA = 0.05
MIN_MODELS, MIN_TABLES = 3, 2
"""Fewer have no test of Friedman's."""

FIRST_LABEL, LABEL_STEP, BAR_STEP = 0.9, 0.45, 0.16
"""Distances on the plot, below the axis."""


class Ranks(NamedTuple):
    """Average ranks of models, 1 for the best, with Friedman's p-value and the critical difference of two ranks."""

    mean: np.ndarray
    p_value: float
    critical_difference: float
    n_tables: int

    @classmethod
    def of(cls, points: np.ndarray) -> Self:
        """Rank models by their points on every table; equal points share their ranks.  (n_tables, n_models)

        Examples
        --------
        >>> Ranks.of(np.array([[3.0, 2.0, 1.0], [3.0, 1.0, 1.0]])).mean.tolist()
        [1.0, 2.25, 2.75]
        """
        n_tables, n_models = points.shape
        if np.ptp(points, axis=1).any() and n_models >= MIN_MODELS and n_tables >= MIN_TABLES:
            p_value = float(friedmanchisquare(*points.T).pvalue)
        else:
            p_value = 1.0
        quantile = studentized_range.ppf(1 - ALPHA, max(n_models, 2), np.inf) / np.sqrt(2)
        difference = float(quantile * np.sqrt(n_models * (n_models + 1) / (6 * n_tables)))
        return cls(rankdata(-points, axis=1).mean(axis=0), p_value, difference, n_tables)

    def find_groups(self) -> list[tuple[int, int]]:
        """Return the largest groups of models without a significant difference: first and last place by rank."""
        ranks = np.sort(self.mean)
        last = np.searchsorted(ranks, ranks + self.critical_difference, side="right") - 1
        groups = [(first, int(end)) for first, end in enumerate(last) if end > first]
        return [(first, end) for first, end in groups if not any(a < first and end <= b for a, b in groups)]


def draw_ranks(ranks: Ranks, titles: list[str], path: Path) -> None:
    """Draw average ranks on a line; bars join models whose ranks differ by less than the critical difference."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    order, groups = np.argsort(ranks.mean, kind="stable"), ranks.find_groups()
    n_models = len(order)
    n_left = (n_models + 1) // 2
    bars_end = BAR_STEP * (len(groups) + 1)
    height = bars_end + FIRST_LABEL + LABEL_STEP * n_left
    with mpl.rc_context({"font.size": 9}):
        figure = Figure(figsize=(8.0, 0.6 * height + 0.9), dpi=150, layout="constrained")
        FigureCanvasAgg(figure)
        ax = figure.subplots()
        low, high = 1.0, float(max(n_models, 2))
        margin = 0.45 * (high - low)
        ax.set_xlim(low - margin, high + margin)
        ax.set_ylim(-height, 1.2)
        ax.axis("off")
        ax.plot([low, high], [0, 0], color="black", linewidth=1)
        for tick in range(1, n_models + 1):
            ax.plot([tick, tick], [0, 0.12], color="black", linewidth=1)
            ax.text(tick, 0.2, str(tick), ha="center", va="bottom")
        ax.plot([low, low + ranks.critical_difference], [0.9, 0.9], color="black", linewidth=1.5)
        ax.text(
            low + ranks.critical_difference + 0.05,
            0.9,
            f"critical difference {ranks.critical_difference:.2f}",
            va="center",
        )
        for number, (first, last) in enumerate(groups):
            y = -BAR_STEP * (number + 1)
            ends = [ranks.mean[order[first]] - 0.03, ranks.mean[order[last]] + 0.03]
            ax.plot(ends, [y, y], color="tab:red", linewidth=3, solid_capstyle="butt")
        for place, model in enumerate(order):
            is_left = place < n_left
            row = place if is_left else n_models - 1 - place
            y, rank = -(bars_end + FIRST_LABEL / 2 + LABEL_STEP * row), ranks.mean[model]
            x = low - 0.02 * (high - low) if is_left else high + 0.02 * (high - low)
            ax.plot([rank, rank, x], [0, y, y], color="0.4", linewidth=0.8)
            text = f"{titles[model]}  {rank:.2f}" if is_left else f"{rank:.2f}  {titles[model]}"
            ax.text(x, y, f" {text} ", ha="right" if is_left else "left", va="center")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Software": None})
