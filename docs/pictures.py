"""Draw the pictures of the documentation from the examples: ``make pictures``, or with the names of some of them."""

from __future__ import annotations

import io
import runpy
import sys
from pathlib import Path

import matplotlib as mpl
from PIL import Image

HERE = Path(__file__).parent

PICTURES: dict[str, list[str | None]] = {
    "plot_selection": ["choices.png"],
    "information_gain": ["information-gain.png"],
    "plot_distances": [None, "distances.png", "distances-stages.png", "distances-weights.png"],
    "figure_1": ["figure-1.png"],
    "plot_supplement_trees": ["tree-mnist.png", "tree-fashion.png"],
    "plot_segmentation": [None, "cells.png", "cells-weights.png"],
    "plot_soft_to_hard": ["soft-to-hard.png", "training.png"],
    "plot_one_path": ["path-in-tree.png", None],
    "plot_churn": ["churn-tree.png"],
    "plot_forest": ["forest-regions.png"],
    "plot_intervals": ["intervals.png"],
    "plot_linear_leaves": ["linear-leaves.png"],
    "plot_oblique_regions": ["oblique-regions.png"],
    "plot_tabular": ["tabular-tree.png", "tabular-weights.png"],
}
"""The figures of every example, and of the drawings of the experiments, in order; None is shown in the gallery only."""

VECTORS = {"tree-mnist.png"}
"""Those that are kept as .svg beside."""

WIDEST = 1500
"""Pixels."""


def main(examples: list[str]) -> None:
    """Run the examples and save their figures."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    mpl.rcParams["svg.hashsalt"] = "crisptree"  # the same drawing gives the same file
    for example in examples or PICTURES:
        plt.close("all")
        folder = "examples" if example.startswith("plot_") else "experiments/drawings"
        runpy.run_path(str(HERE.parent / folder / f"{example}.py"))
        for number, name in zip(plt.get_fignums(), PICTURES[example], strict=True):
            if name is None:
                continue
            figure = plt.figure(number)
            if name in VECTORS:
                figure.savefig(HERE / "images" / name.replace(".png", ".svg"), metadata={"Date": None})
            dpi = min(110.0, WIDEST / figure.get_size_inches()[0])
            sheet = io.BytesIO()
            figure.savefig(sheet, dpi=dpi)
            Image.open(sheet).convert("RGB").save(HERE / "images" / name, optimize=True)


if __name__ == "__main__":
    main(sys.argv[1:])
