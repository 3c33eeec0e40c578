"""Model and rows as one dictionary of plain values: all that the page shows."""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np

from crisptree import metrics
from crisptree.inference import CrispTree, FlatTree
from crisptree.inference.routing import visit_splits
from crisptree.inspection import ModelView
from crisptree.inspection.importances import compute_effects
from crisptree.inspection.rules import make_split_rule
from crisptree.report.encoding import pack, shrunk, signed_bytes, step_within
from crisptree.report.quality import collect_quality
from crisptree.report.samples import ReportRows, collect_blame, collect_samples

BINS = 30
"""Bars of a score histogram, at most two more."""

TAIL = 0.5
"""Percent of the scores on either side that the outermost bars hold, so that a few far rows do not flatten the rest."""

LARGEST_WEIGHTS = 12
"""Weights listed at a split of tabular data."""

WEIGHT_VALUES = 4_000_000
"""Larger sets of weight images are shown at a lower resolution."""

SEARCHED_WEIGHTS = 4_000_000
"""Of larger trees, the search finds a feature only among the largest weights of a split."""

EPOCHS_SHOWN = 1500
"""Longer histories are thinned."""

TEN = (
    "#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
)  # fmt: skip
"""matplotlib's tab10, which ``crisptree.plots`` uses; a report needs no matplotlib."""

LIGHTNESS = (0.44, 0.62)
"""Neighbouring hues beyond ten classes take turns, so that they can be told apart."""

PROBABILITIES = ("log_loss", "brier_score", "calibration_error")
"""Functions of ``crisptree.metrics`` that stand beside the accuracy."""


def collect(view: ModelView, rows: ReportRows | None, max_samples: int, target: str | None = None) -> dict[str, Any]:
    """Everything for the page, as values that JSON can hold; ``target`` is what the classes are classes of."""
    tree, labelled = view.tree, rows is not None and rows.y is not None
    return {
        "classes": view.class_names,
        "colors": class_colors(len(view.class_names)),
        "features": view.feature_names if view.image_shape is None else None,  # pixels are shown, not named
        "image": view.image_shape is not None,
        "linear": isinstance(tree, FlatTree),
        "labelled": labelled,
        "summary": _summary(view, rows),
        "tree": _tree(view, rows),
        "weights": _weights(view),
        "histograms": None if rows is None else _histograms(tree, rows, len(view.class_names)),
        "confusion": pack(view.confusion_matrix(rows.labels, rows.predicted), "uint32") if rows and labelled else None,
        "samples": None if rows is None else collect_samples(view, rows, max_samples),
        "blame": collect_blame(view, rows) if rows and labelled else None,
        "history": _history(view.estimator),
        "target": target,
        "rules": _rules(view),
        **collect_quality(view, rows),
    }


def class_colors(n_classes: int) -> list[str]:
    """Ten well-known colors, or evenly spaced hues.

    Examples
    --------
    >>> class_colors(2)
    ['#1f77b4', '#ff7f0e']
    """
    if n_classes <= len(TEN):
        return list(TEN[:n_classes])
    hues = [colorsys.hls_to_rgb(number / n_classes, LIGHTNESS[number % 2], 0.62) for number in range(n_classes)]
    return ["#" + "".join(f"{round(255 * channel):02x}" for channel in color) for color in hues]


def _summary(view: ModelView, rows: ReportRows | None) -> dict[str, Any]:
    tree, structure = view.tree, view.tree.structure
    leaves, passing = np.arange(structure.n_leaves), view.node_weights[structure.n_splits :]
    trained, correct = passing.sum(), tree.statistics.node_counts[structure.n_splits + leaves, tree.labels()].sum()
    if rows is not None:
        passing = np.bincount(rows.leaf, minlength=structure.n_leaves).astype(np.float64)
    total = max(float(passing.sum()), np.finfo(float).tiny)
    truth = None if rows is None or rows.y is None else rows
    return {
        "hard": None if truth is None else float(np.mean(~truth.wrong)),
        "soft": None if truth is None else float(np.mean(view.soft_predict_proba(truth.X).argmax(axis=1) == truth.y)),
        **_of_probabilities(view, truth),
        "training": float(correct / trained) if trained else None,
        "rows": None if rows is None else len(rows.X),
        "training_rows": float(trained),
        "leaves": structure.n_leaves,
        "splits": structure.n_splits,
        "depth": structure.depth,
        "path": float(passing @ structure.leaf_depths / total),
        "bytes": _size(tree),
        "steepness": float(tree.statistics.steepness),
    }


def _of_probabilities(view: ModelView, rows: ReportRows | None) -> dict[str, float | None]:
    """How good the probabilities of the crisp tree are; None where nobody knows, or where it is infinite."""
    if rows is None:
        return dict.fromkeys(PROBABILITIES)
    said = view.tree.leaf_values(rows.leaf, rows.X)
    return {name: _finite(getattr(metrics, name)(rows.y, said)) for name in PROBABILITIES}


def _size(tree: CrispTree) -> int:
    """The bytes that prediction needs: children, leaf tables in single precision, and what the splits are made of."""
    structure = tree.structure
    size = structure.left.nbytes + structure.right.nbytes + 4 * structure.n_leaves * tree.n_outputs
    parts = tree.parts_of(np.arange(structure.n_splits)) if structure.n_splits else {}
    for part in parts.values():  # of split modules: a dictionary of stacked tensors
        size += sum(array.nbytes for array in (part.parameters.values() if hasattr(part, "parameters") else [part]))
    return int(size)


def _tree(view: ModelView, rows: ReportRows | None) -> dict[str, Any]:
    structure, statistics = view.tree.structure, view.tree.statistics
    given = None
    if rows is not None:
        counts = view.tree.meaning.tally(rows.labels, np.ones(len(rows.X)), rows.leaf, structure.n_leaves)
        given = pack(structure.sums_below(counts), "float32")
    return {
        "left": pack(structure.left_nodes, "int32"),
        "right": pack(structure.right_nodes, "int32"),
        "train": pack(statistics.node_counts, "float32"),
        "given": given,
        "tables": pack(view.node_values[structure.n_splits :], "float32"),
        "gain": pack(statistics.gain, "float32"),
        "spread": pack(statistics.score_spread, "float32"),
    }


def _weights(view: ModelView) -> dict[str, Any] | None:
    """Images of the weights in the scaled space of training, or the most influential features of every split."""
    tree = view.tree
    if not isinstance(tree, FlatTree) or not tree.structure.n_splits:
        return None
    if view.image_shape is None:
        effect = compute_effects(tree)
        order = np.argsort(-np.abs(effect), axis=1, kind="stable")[:, :LARGEST_WEIGHTS]
        searchable = tree.weight.size <= SEARCHED_WEIGHTS
        return {
            "features": pack(order, "int32"),
            "values": pack(np.take_along_axis(effect, order, axis=1), "float32"),
            "raw": pack(np.take_along_axis(tree.weight, order, axis=1), "float32"),
            "thresholds": pack(np.array([_threshold(tree, split) for split in range(len(effect))]), "float32"),
            "nonzero": pack(np.count_nonzero(tree.weight, axis=1), "int32"),
            "used": pack(tree.weight != 0, "uint8") if searchable else None,
        }
    weights = tree.scaled_hyperplanes()[0]
    step = step_within(len(weights), view.image_shape, WEIGHT_VALUES)
    images, scale = signed_bytes(shrunk(weights.reshape(-1, *view.image_shape), step))
    return {"images": pack(images, "int8"), "scale": pack(scale, "float32"), "step": step}


def _threshold(tree: FlatTree, split: int) -> float:
    """What the weighted sum, or the only feature itself, is compared with."""
    return make_split_rule(tree, split, 1).threshold


def _rules(view: ModelView) -> list[str] | None:
    """What every split asks, in raw units; None for images and modules."""
    tree = view.tree
    if not isinstance(tree, FlatTree) or view.image_shape is not None:
        return None
    splits = range(tree.structure.n_splits)
    return [make_split_rule(tree, split, LARGEST_WEIGHTS).format(view.feature_names) for split in splits]


def _histograms(tree: CrispTree, rows: ReportRows, n_classes: int) -> dict[str, Any]:
    """Scores of the rows that visit each split, by class, in bins that zero separates."""
    n_splits = tree.structure.n_splits
    start, width = np.zeros(n_splits), np.zeros(n_splits)
    counts = np.zeros((n_splits, BINS + 2, n_classes), dtype=np.int64)
    for split, visitors, scores in visit_splits(tree, rows.X):
        values = scores.astype(np.float64)
        low, high = np.percentile(values, (TAIL, 100 - TAIL))
        width[split] = (max(high, 0.0) - min(low, 0.0)) / BINS or 1.0
        first = min(int(np.floor(low / width[split])), -1) if (values <= 0).any() else 0
        last = max(int(np.ceil(high / width[split])) - 1, 0)
        # Bins are closed on the right, as turns are: a score of zero goes left.
        number = np.ceil(np.clip(values / width[split], first, last + 1)).astype(np.int64) - 1
        bins = np.where(values > 0, np.clip(number, 0, last), np.clip(number, first, -1)) - first
        start[split] = first * width[split]
        np.add.at(counts[split], (bins, rows.labels[visitors]), 1)
    return {"start": pack(start, "float32"), "width": pack(width, "float32"), "counts": pack(counts, "uint32")}


def _history(model: Any) -> dict[str, Any] | None:
    records = list(getattr(model, "history_", None) or [])
    if not records:
        return None
    records = records[:: -(-len(records) // EPOCHS_SHOWN)]
    return {
        "phase": [record.phase for record in records],
        "level": [int(record.level) for record in records],
        "epoch": [int(record.epoch) for record in records],
        "likelihood": [_finite(-record.loss) for record in records],
        "steepness": [_finite(record.steepness) for record in records],
        "validation": [_finite(record.validation_score) for record in records],
    }


def _finite(value: float | None) -> float | None:
    """JSON knows no NaN."""
    return None if value is None or not np.isfinite(value) else round(float(value), 6)
