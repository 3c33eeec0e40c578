"""Weight images of the clearest splits at several depths, with the spatial penalty above and without it below.

The paper chose “the parameters that show the best visible structures” by eye. Here a rule chooses: a split is clearer
the more its weights resemble the difference of what it parts, the mean of the training images that go right less the
mean of those that go left.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree import CrispTreeClassifier
from crisptree.plots import plot_weights
from experiments.trees import Rows

SHOWN = (1, 1, 2, 5)
"""So many splits of every depth, from the root down."""


def resemblance(model: CrispTreeClassifier, rows: Rows) -> npt.NDArray[np.float64]:
    """Correlate every split's weights with the difference of the mean images on its two sides.  (n_splits,)"""
    X, _ = rows
    path, tree = model.decision_path(X).tocsc(), model.tree_
    weights = tree.scaled_hyperplanes()[0]
    found = np.zeros(tree.structure.n_splits)
    for split in range(tree.structure.n_splits):
        here = X[path[:, split].indices]
        is_right = here @ tree.weight[split] + tree.bias[split] > 0
        difference = here[is_right].mean(axis=0) - here[~is_right].mean(axis=0)
        found[split] = np.corrcoef(weights[split], difference)[0, 1]
    return np.nan_to_num(found)


def clearest(model: CrispTreeClassifier, rows: Rows) -> list[tuple[int, int]]:
    """Select the clearest splits as (depth, split), level by level."""
    clear = resemblance(model, rows)
    chosen = []
    for depth, (splits, number) in enumerate(zip(model.tree_.structure.levels, SHOWN, strict=False)):
        best = sorted(splits.tolist(), key=lambda split: -clear[split])[:number]
        chosen += [(depth, split) for split in best]
    return chosen


def draw(smooth: CrispTreeClassifier, plain: CrispTreeClassifier, rows: Rows, titles: tuple[str, str]) -> Any:
    """Two rows of grey images, each normalised to the whole range as in the paper."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(1.55 * sum(SHOWN), 4.4), layout="constrained")
    for part, model, title in zip(figure.subfigures(2, 1), (smooth, plain), titles, strict=True):
        part.suptitle(title, x=0.005, ha="left", fontsize=10, fontweight="bold")
        axes = part.subplots(1, sum(SHOWN))
        for axis in axes:
            axis.set_axis_off()
        chosen = clearest(model, rows)
        splits = [split for _, split in chosen]
        plot_weights(model, splits, axes[: len(splits)])
        for axis, (depth, _) in zip(axes, chosen, strict=False):
            axis.set_title(f"depth {depth}", fontsize=9)
    return figure


def write(
    smooth: CrispTreeClassifier, plain: CrispTreeClassifier, rows: Rows, titles: tuple[str, str], to: Path
) -> None:
    """Draw into a file."""
    import matplotlib.pyplot as plt

    figure = draw(smooth, plain, rows, titles)
    figure.savefig(to, dpi=110)
    plt.close(figure)
