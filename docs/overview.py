"""Draw the first pictures that readers see: that of the README, and the tree of digits (``make pictures``)."""

from __future__ import annotations

import io
import runpy
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from result_plots import COLORS, parse, read_table

from crisptree import CrispTreeClassifier
from crisptree.datasets import load_digits
from crisptree.plots import plot_tree

HERE = Path(__file__).parent
EXAMPLE = HERE.parent / "examples" / "plot_oblique_regions.py"
PAGE = HERE / "results" / "other-tables.md"
SCORES = {"accuracy, %": "accuracy in %,\n28 tables", "R² × 100": "R² × 100,\n22 tables"}
"""Columns of the page with mean scores, and their titles."""

MODELS = (
    "CART, tuned",
    "HistGradientBoosting",
    "random forest, 100 trees",
    "LightGBM",
    "crisp tree",
    "crisp forest, 25 trees",
)


def draw_regions(axes: Axes, title: str, model: Any, data: dict[str, Any]) -> None:
    """Draw the predictions of a tree on the plane, and the test rows."""
    classes = model.predict(data["grid"]).reshape(400, 400)
    axes.imshow(classes, extent=(-1, 1, -1, 1), origin="lower", cmap="viridis", alpha=0.45)
    axes.scatter(*data["X_test"].T, c=data["y_test"], s=7, cmap="viridis", edgecolors="white", linewidths=0.2)
    accuracy = 100 * model.score(data["X_test"], data["y_test"])
    axes.set_title(f"{title}: {model.get_n_leaves()} leaves,\naccuracy {accuracy:.1f} %")
    axes.set(xticks=[], yticks=[], xlim=(-1, 1), ylim=(-1, 1))


def draw_scores(axes: Axes, column: str) -> None:
    """Draw the mean score of every model."""
    header, rows = read_table(PAGE.read_text(encoding="utf-8"), (column, "median fit"))
    scores = {row[0]: parse(row[header.index(column)])[0] for row in rows}  # type: ignore[index]
    for place, model in enumerate(MODELS):
        is_ours = model.startswith("crisp")
        axes.plot(scores[model], place, "o", ms=8, color=COLORS[1] if is_ours else "#7a8694")
        axes.annotate(f"{scores[model]:.1f}", (scores[model], place), (0, 7), textcoords="offset points", ha="center")
    axes.set_title(SCORES[column])
    axes.grid(axis="y", color="#e3e6ea", lw=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0.2, y=0.12)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    axes.set_yticks(range(len(MODELS)), MODELS)
    for label in axes.get_yticklabels():
        label.set_fontweight("bold" if label.get_text().startswith("crisp") else "normal")


def save(figure: Figure, name: str, dpi: int) -> None:
    """Save a figure without transparency."""
    sheet = io.BytesIO()
    figure.savefig(sheet, dpi=dpi)
    Image.open(sheet).convert("RGB").save(HERE / "images" / name, optimize=True)


def draw_digits() -> None:
    """Draw the tree of guide/getting-started.md."""
    digits = load_digits()
    model = CrispTreeClassifier(max_depth=4, image_shape=(8, 8), spatial_penalty=0.01, random_state=0)
    axes = plot_tree(model.fit(digits.X_train, digits.y_train))
    save(axes.get_figure(), "digits-tree.png", 110)


def draw_overview() -> None:
    """Draw regions of CART and of a crisp tree, and mean scores on real tables."""
    data = runpy.run_path(str(EXAMPLE))
    plt.close("all")
    mpl.rcParams["font.size"] = 11
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.7), width_ratios=(3.1, 3.1, 2.0, 2.0), layout="constrained")
    draw_regions(axes[0], "CART", data["cart"], data)
    draw_regions(axes[1], "crisp tree", data["crisp"], data)
    draw_scores(axes[2], "accuracy, %")
    draw_scores(axes[3], "R² × 100")
    axes[3].set_yticklabels([])
    save(figure, "overview.png", 120)


def main() -> None:
    """Draw both."""
    mpl.use("Agg")
    draw_digits()
    draw_overview()


if __name__ == "__main__":
    main()
