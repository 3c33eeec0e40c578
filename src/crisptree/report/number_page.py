"""The page about a regressor: its errors, its leaves and its rules, drawn without a script."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import crisptree
from crisptree.export import html, text
from crisptree.inference import FlatTree
from crisptree.inspection import ModelView
from crisptree.inspection.importances import feature_importances

Doubles = npt.NDArray[np.float64]

SIDE, EDGE = 320, 44
"""Of a diagram, in pixels: its sides, and the room for the numbers beside it."""

BINS = 31
MOST_LEAVES, MOST_FEATURES = 40, 20


class Errors(NamedTuple):
    """What is known of one output on some rows."""

    name: str
    true: Doubles
    predicted: Doubles

    @property
    def left(self) -> Doubles:
        return self.true - self.predicted

    @property
    def rmse(self) -> float:
        return float(np.sqrt(np.mean(self.left**2)))

    @property
    def cards(self) -> list[tuple[str, str]]:
        """R², the errors, and that of always saying the mean."""
        plain = float(np.std(self.true))
        share = 1 - self.rmse**2 / plain**2 if plain > 0 else float("nan")
        return [
            ("R²", f"{share:.3f}"),
            ("root mean squared error", f"{self.rmse:.4g}"),
            ("mean absolute error", f"{np.mean(np.abs(self.left)):.4g}"),
            ("spread of the true numbers", f"{plain:.4g}"),
        ]


def number_page(environment: Any, view: ModelView, X: Any, y: Any, title: str, most_dots: int) -> str:
    """The whole page."""
    from markupsafe import Markup

    style = files("crisptree.report").joinpath("numbers.css").read_text(encoding="utf-8")
    template = files("crisptree.report").joinpath("numbers.html").read_text(encoding="utf-8")
    structure, leaf, truth = view.tree.structure, None, None
    rows = None if X is None else view.prepare_rows(X)
    if rows is not None:
        leaf = view.apply(rows)
    if leaf is not None and y is not None:
        truth = np.asarray(y, dtype=np.float64).reshape(len(leaf), -1)
        if truth.shape[1] != len(view.class_names) or not np.isfinite(truth).all():
            raise ValueError(f"`y` must hold {len(view.class_names)} finite numbers for every row; got {np.shape(y)}.")
    outputs = []
    if leaf is not None and rows is not None and truth is not None:
        means = view.tree.predictions(leaf, rows)
        outputs = [Errors(name, truth[:, k], means[:, k]) for k, name in enumerate(view.class_names)]
    facts = f"{structure.n_leaves:,} leaves, depth {structure.depth}, {view.tree.n_features:,} features"
    return str(
        environment.from_string(template).render(
            title=title,
            facts=facts,
            version=crisptree.__version__,
            style=Markup(style),
            outputs=[
                (one.name, one.cards, Markup(_scatter(one, most_dots)), Markup(_histogram(one))) for one in outputs
            ],
            n_rows=None if leaf is None else len(leaf),
            leaves=_leaves(view, leaf, outputs),
            importances=_importances(view),
            tree=Markup(html(view.estimator, view.feature_names)),
            rules=text(view.estimator, view.feature_names),
        )
    )


def _leaves(view: ModelView, leaf: Any, outputs: list[Errors]) -> list[tuple[str, ...]]:
    """The leaves with most rows: number, training rows, answer, rows of the page, their error."""
    n_splits = view.tree.structure.n_splits
    order = np.argsort(-view.node_weights[n_splits:], kind="stable")[:MOST_LEAVES]
    lines: list[tuple[str, ...]] = []
    for number in order.tolist():
        here = None if leaf is None else leaf == number
        there = "" if here is None else f"{int(here.sum()):,}"
        error = ""
        if here is not None and outputs and here.any():
            error = ", ".join(f"{np.sqrt(np.mean(one.left[here] ** 2)):.4g}" for one in outputs)
        lines.append(
            (
                str(number),
                f"{view.node_weights[n_splits + number]:,.6g}",
                view.describe_node(n_splits + number),
                there,
                error,
            )
        )
    return lines


def _importances(view: ModelView) -> list[tuple[str, float]]:
    if not isinstance(view.tree, FlatTree):
        return []
    found = feature_importances(view.tree)
    order = np.argsort(-found, kind="stable")[:MOST_FEATURES]
    return [(view.feature_names[feature], float(found[feature])) for feature in order if found[feature] > 0]


def _scatter(errors: Errors, most: int) -> str:
    """True numbers up, predicted ones across, and the line where both are equal."""
    some = np.random.default_rng(0).permutation(len(errors.true))[: max(most, 1)]
    low = float(min(errors.true.min(), errors.predicted.min()))
    high = float(max(errors.true.max(), errors.predicted.max()))
    reach = high - low or 1.0

    def place(values: Doubles) -> Doubles:
        return (values - low) / reach * SIDE

    dots = "".join(
        f'<circle cx="{EDGE + x:.1f}" cy="{SIDE - y:.1f}" r="2"/>'
        for x, y in zip(place(errors.predicted[some]), place(errors.true[some]), strict=True)
    )
    line = f'<line x1="{EDGE}" y1="{SIDE}" x2="{EDGE + SIDE}" y2="0"/>'
    return _diagram(f'{line}<g class="dots">{dots}</g>', low, high, low, high, "predicted", "true")


def _histogram(errors: Errors) -> str:
    """How many rows are off by how much."""
    reach = float(np.abs(errors.left).max()) or 1.0
    counts, _ = np.histogram(errors.left, bins=BINS, range=(-reach, reach))
    wide, tall = SIDE / BINS, SIDE / max(int(counts.max()), 1)
    bars = "".join(
        f'<rect x="{EDGE + k * wide:.1f}" y="{SIDE - n * tall:.1f}" width="{wide - 1:.1f}" height="{n * tall:.1f}"/>'
        for k, n in enumerate(counts.tolist())
    )
    return _diagram(f'<g class="bars">{bars}</g>', -reach, reach, 0.0, float(counts.max()), "true − predicted", "rows")


def _diagram(inside: str, left: float, right: float, low: float, high: float, across: str, up: str) -> str:
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
