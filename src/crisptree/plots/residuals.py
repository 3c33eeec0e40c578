"""How far the predictions of numbers are off: predicted against true, or what is left over."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from crisptree.inspection import view_model
from crisptree.plots.style import ACCENT, DARK, MUTED, new_axes
from crisptree.tensors import detach

KINDS = ("predicted", "residuals")


def plot_residuals(
    model: Any, X: Any, y: Any, ax: Axes | None = None, *, kind: str = "predicted", output: int = 0
) -> Axes:
    """Draw what a regressor predicts against what is true.

    Parameters
    ----------
    model : CrispTreeRegressor or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one.
    X : array-like of shape (n_samples, n_features)
        Rows, best those that the model has not seen.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Their numbers.
    ax : matplotlib axes, default=None
        Where to draw; None makes a figure.
    kind : {"predicted", "residuals"}, default="predicted"
        True numbers up and predicted ones across, where the line is a prediction without error; or the true number less
        the predicted one up, with the spread that the leaves claim as a band.
    output : int, default=0
        Which of several outputs.

    Returns
    -------
    matplotlib axes
        The axes drawn on.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from crisptree import CrispTreeRegressor
    >>> from crisptree.plots import plot_residuals
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = CrispTreeRegressor(max_depth=2, epochs=2, finetune_epochs=2, random_state=0).fit(X, y)
    >>> plot_residuals(model, X, y).get_xlabel()
    'predicted y'
    """
    if kind not in KINDS:
        raise ValueError(f"`kind` must be one of {', '.join(map(repr, KINDS))}; got {kind!r}.")
    view = view_model(model, "plot_residuals")
    if not view.is_regression:
        raise TypeError("plot_residuals must have a model that predicts numbers. plot_confusion is for classes.")
    rows, names = view.prepare_rows(X), view.class_names
    leaf = view.apply(rows)
    truth = np.asarray(detach(y), dtype=np.float64).reshape(len(leaf), -1)
    if truth.shape[1] != len(names) or not 0 <= output < len(names):
        raise ValueError(
            f"`y` must have {len(names)} columns and `output` be one of them; got {truth.shape}, {output}."
        )
    tables = view.tree.leaf_values()[:, [output, len(names) + output]]
    mean, true = view.tree.predictions(leaf, rows)[:, output], truth[:, output]
    spread = np.sqrt(tables[:, 1])
    ax = new_axes(ax, (4.6, 4.2))
    dots: dict[str, Any] = {"s": 8, "alpha": 0.5, "linewidths": 0, "color": ACCENT}
    if kind == "predicted":
        ends = [min(mean.min(), true.min()), max(mean.max(), true.max())]
        ax.plot(ends, ends, color=DARK, linewidth=0.8)
        ax.scatter(mean, true, **dots)
        ax.set_ylabel(f"true {names[output]}", fontsize=8)
    else:
        order = np.argsort(tables[:, 0])
        ax.fill_between(
            tables[order, 0], -spread[order], spread[order], step="mid", color=MUTED, alpha=0.25, linewidth=0
        )
        ax.axhline(0.0, color=DARK, linewidth=0.8)
        ax.scatter(mean, true - mean, **dots)
        ax.set_ylabel(f"true − predicted {names[output]}", fontsize=8)
    ax.set_xlabel(f"predicted {names[output]}", fontsize=8)
    ax.tick_params(labelsize=7)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
