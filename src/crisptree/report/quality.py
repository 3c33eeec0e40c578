"""How good the answers are: the baseline, curves for every class, calibration, and what pruning would cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import FlatTree
from crisptree.inference.pruning import iterate_path
from crisptree.inference.statistics import node_tables
from crisptree.inspection import ModelView
from crisptree.inspection.columns import list_columns, sum_by_column
from crisptree.inspection.importances import feature_importances
from crisptree.report.samples import ReportRows

Doubles = npt.NDArray[np.float64]

POINTS = 80
"""Of a curve, at most."""

CURVES = 12
"""Classes with a curve; of more, those with the most rows."""

BINS = 10
"""Groups of equally many rows in the calibration curve."""

COLUMNS = 300
"""Columns whose importance is listed."""


def collect_quality(view: ModelView, rows: ReportRows | None) -> dict[str, Any]:
    """The values of the page's part about quality; None for what needs true classes and has none."""
    truth = None if rows is None or rows.y is None or not len(rows.y) else rows
    said = None if truth is None else view.tree.leaf_values(truth.leaf, truth.X)
    known = truth is not None and truth.y is not None and said is not None
    return {
        "baseline": baseline(view, rows),
        "roc": roc_curves(truth.y, said) if known else None,  # type: ignore[union-attr, arg-type]
        "calibration": calibration(truth.y, said) if known else None,  # type: ignore[union-attr, arg-type]
        "pruning": _pruning(view, truth),
        "importances": importances(view),
    }


def baseline(view: ModelView, rows: ReportRows | None) -> dict[str, Any]:
    """The most frequent class of training, and how often it would have been right."""
    counts = view.tree.statistics.node_counts[0]
    first = int(view.node_values[0].argmax())
    trained = float(counts.sum())
    given = None if rows is None or rows.y is None or not len(rows.y) else float(np.mean(rows.y == first))
    return {"class": first, "training": float(counts[first] / trained) if trained else None, "given": given}


def roc_curves(truth: npt.NDArray[np.int64], said: Doubles) -> list[dict[str, Any]]:
    """Of every class against all others: how many of its rows are found for how many false alarms, and the area.

    Of two classes the second one stands for both; of many, some have an area only.

    Examples
    --------
    >>> roc_curves(np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.2, 0.8], [0.9, 0.1]]))
    [{'class': 1, 'alarms': [0.0, 0.0, 1.0], 'found': [0.0, 0.5, 1.0], 'area': 0.75}]
    """
    n_classes = said.shape[1]
    sizes = np.bincount(truth, minlength=n_classes)
    shown = set(np.argsort(-sizes, kind="stable")[:CURVES].tolist())
    curves = []
    for number in [1] if n_classes == 2 else range(n_classes):
        is_it = truth == number
        if not is_it.any() or is_it.all():
            continue
        values, group = np.unique(-said[:, number], return_inverse=True)
        found = np.concatenate([[0.0], np.bincount(group, is_it, len(values)).cumsum() / is_it.sum()])
        alarms = np.concatenate([[0.0], np.bincount(group, ~is_it, len(values)).cumsum() / (~is_it).sum()])
        area = float(np.sum(np.diff(alarms) * (found[1:] + found[:-1]) / 2))
        kept = _thinned(len(found)) if number in shown else np.zeros(0, dtype=np.intp)
        curves.append({"class": number, "alarms": _short(alarms[kept]), "found": _short(found[kept]), "area": area})
    return curves


def calibration(truth: npt.NDArray[np.int64], said: Doubles) -> dict[str, Any]:
    """What was said against what came true, in groups of rows that were told about the same.

    Of two classes it is the probability of the second; of more, that of the class that was predicted. Rows of one
    probability stay in one group.
    """
    two = said.shape[1] == 2
    chance = said[:, 1] if two else said.max(axis=1)
    came = truth == 1 if two else said.argmax(axis=1) == truth
    edges = np.unique(np.quantile(chance, np.arange(1, BINS) / BINS, method="inverted_cdf"))
    group = np.searchsorted(edges, chance)
    rows = np.bincount(group)
    there = rows > 0
    told, was = (np.bincount(group, values)[there] / rows[there] for values in (chance, came))
    return {"class": 1 if two else None, "told": _short(told), "came": _short(was), "rows": rows[there].tolist()}


def _pruning(view: ModelView, rows: ReportRows | None) -> dict[str, Any] | None:
    """Leaves and accuracy of every tree on the way of cost–complexity pruning, the largest tree first."""
    tree, structure = view.tree, view.tree.structure
    if not structure.n_splits or not tree.statistics.node_counts.any() or tree.is_linear:
        return None
    answers = tree.meaning.answers(node_tables(tree))
    n_classes = len(view.class_names)
    trained = tree.statistics.node_counts[structure.n_splits :]
    given = None if rows is None else tree.meaning.tally(rows.labels, np.ones(len(rows.X)), rows.leaf, len(trained))
    prices, leaves, accuracy, in_training = [], [], [], []
    for price, ends in iterate_path(tree):
        right = answers[ends][:, None] == np.arange(n_classes)
        prices.append(price)
        leaves.append(len(np.unique(ends)))
        in_training.append(float((trained * right).sum() / trained.sum()))
        if given is not None:
            accuracy.append(float((given * right).sum() / given.sum()))
    kept = _thinned(len(prices))
    return {
        "alphas": [float(f"{prices[place]:.4g}") for place in kept],
        "leaves": [leaves[place] for place in kept],
        "training": _short(np.array(in_training)[kept]),
        "given": None if given is None else _short(np.array(accuracy)[kept]),
    }


def importances(view: ModelView) -> list[tuple[str, float]] | None:
    """Columns of the table and their shares of the information gain, the largest first; None for images and modules."""
    if view.image_shape is not None or not isinstance(view.tree, FlatTree):
        return None
    columns = list_columns(view)
    shares = sum_by_column(columns, feature_importances(view.tree))
    order = np.argsort(-shares, kind="stable")[:COLUMNS]
    return [(columns[j].name, round(float(shares[j]), 6)) for j in order if shares[j] > 0]


def _thinned(length: int) -> npt.NDArray[np.intp]:
    """Which points of a curve are kept: the ends, and some between them."""
    return np.unique(np.linspace(0, length - 1, min(length, POINTS)).round().astype(np.intp))


def _short(values: Doubles) -> list[float]:
    return [round(float(value), 5) for value in values]
