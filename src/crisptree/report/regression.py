"""The page about a regression tree: its errors, its leaves and its rules, drawn without a script."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from crisptree.export import html, text
from crisptree.inspection import ModelView
from crisptree.inspection.linear_splits import rank_columns
from crisptree.report.samples import ReportRows

Doubles = npt.NDArray[np.float64]

SIDE, EDGE = 320, 44
"""Of a diagram, in pixels: its sides, and the room for the axis labels beside it."""

BINS = 31
"""Of the histogram of residuals."""

MAX_LEAVES, MAX_FEATURES = 40, 20


class OutputErrors(NamedTuple):
    """Truth and prediction of one output."""

    name: str
    true: Doubles
    predicted: Doubles

    @property
    def residuals(self) -> Doubles:
        return self.true - self.predicted

    @property
    def cards(self) -> list[tuple[str, str]]:
        """R², RMSE, MAE, and the error of always predicting the mean."""
        spread = float(np.std(self.true))
        r2 = r2_score(self.true, self.predicted) if spread > 0 else float("nan")
        return [
            ("R²", f"{r2:.3f}"),
            ("root mean squared error", f"{root_mean_squared_error(self.true, self.predicted):.4g}"),
            ("mean absolute error", f"{mean_absolute_error(self.true, self.predicted):.4g}"),
            ("spread of the true numbers", f"{spread:.4g}"),
        ]


def build_context(view: ModelView, rows: ReportRows | None, max_samples: int, target: str | None) -> dict[str, Any]:
    """Collect the values of ``regression.html``; ``max_samples`` limits the points of a scatter plot."""
    from markupsafe import Markup

    structure, errors = view.tree.structure, []
    if rows is not None and rows.y is not None:
        errors = [OutputErrors(name, rows.y[:, k], rows.predicted[:, k]) for k, name in enumerate(view.class_names)]
    return {
        "facts": f"{structure.n_leaves:,} leaves, depth {structure.depth}, {view.tree.n_features:,} features",
        "outputs": [
            (one.name, one.cards, Markup(_draw_scatter(one, max_samples)), Markup(_draw_histogram(one)))
            for one in errors
        ],
        "n_rows": None if rows is None else len(rows.leaf),
        "leaves": _list_leaves(view, rows, errors),
        "importances": rank_columns(view, MAX_FEATURES),
        "tree": Markup(html(view.estimator, view.feature_names)),
        "rules": text(view.estimator, view.feature_names),
    }


def _list_leaves(view: ModelView, rows: ReportRows | None, errors: list[OutputErrors]) -> list[tuple[str, ...]]:
    """List the largest leaves: index, training rows, prediction, rows of the report, their RMSE."""
    n_splits = view.tree.structure.n_splits
    order = np.argsort(-view.node_weights[n_splits:], kind="stable")[:MAX_LEAVES]
    lines: list[tuple[str, ...]] = []
    for leaf in order.tolist():
        count = rmse = ""
        if rows is not None:
            in_leaf = rows.leaf == leaf
            count = f"{int(in_leaf.sum()):,}"
            if in_leaf.any():
                rmse = ", ".join(f"{np.sqrt(np.mean(one.residuals[in_leaf] ** 2)):.4g}" for one in errors)
        node = n_splits + leaf
        lines.append((str(leaf), f"{view.node_weights[node]:,.6g}", view.describe_node(node), count, rmse))
    return lines


def _draw_scatter(errors: OutputErrors, max_points: int) -> str:
    """Draw true against predicted values, with the diagonal."""
    some = np.random.default_rng(0).permutation(len(errors.true))[: max(max_points, 1)]
    low = float(min(errors.true.min(), errors.predicted.min()))
    high = float(max(errors.true.max(), errors.predicted.max()))
    span = high - low or 1.0

    def scale(values: Doubles) -> Doubles:
        return (values - low) / span * SIDE

    dots = "".join(
        f'<circle cx="{EDGE + x:.1f}" cy="{SIDE - y:.1f}" r="2"/>'
        for x, y in zip(scale(errors.predicted[some]), scale(errors.true[some]), strict=True)
    )
    line = f'<line x1="{EDGE}" y1="{SIDE}" x2="{EDGE + SIDE}" y2="0"/>'
    return _draw_axes(f'{line}<g class="dots">{dots}</g>', low, high, low, high, "predicted", "true")


def _draw_histogram(errors: OutputErrors) -> str:
    """Draw the histogram of the residuals."""
    limit = float(np.abs(errors.residuals).max()) or 1.0
    counts, _ = np.histogram(errors.residuals, bins=BINS, range=(-limit, limit))
    wide, tall = SIDE / BINS, SIDE / max(int(counts.max()), 1)
    bars = "".join(
        f'<rect x="{EDGE + k * wide:.1f}" y="{SIDE - n * tall:.1f}" width="{wide - 1:.1f}" height="{n * tall:.1f}"/>'
        for k, n in enumerate(counts.tolist())
    )
    inside = f'<g class="bars">{bars}</g>'
    return _draw_axes(inside, -limit, limit, 0.0, float(counts.max()), "true − predicted", "rows")


def _draw_axes(inside: str, left: float, right: float, low: float, high: float, across: str, up: str) -> str:
    bottom, end = SIDE + 14, EDGE + SIDE
    return (
        f'<svg viewBox="0 -6 {end + 10} {SIDE + 40}" role="img" aria-label="{up} against {across}">'
        f'<path class="axes" d="M{EDGE} 0V{SIDE}H{end}"/>{inside}'
        f'<text x="{EDGE}" y="{bottom}">{left:.3g}</text><text x="{end}" y="{bottom}" class="end">{right:.3g}</text>'
        f'<text x="{EDGE - 4}" y="{SIDE}" class="end">{low:.3g}</text>'
        f'<text x="{EDGE - 4}" y="8" class="end">{high:.3g}</text>'
        f'<text x="{EDGE + SIDE / 2}" y="{bottom + 14}" class="middle">{across}</text>'
        f'<text x="10" y="{SIDE / 2}" class="middle" transform="rotate(-90 10 {SIDE / 2})">{up}</text></svg>'
    )
