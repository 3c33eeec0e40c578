"""Model and rows as one dictionary of plain values: all that the page shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree import metrics
from crisptree.inference import CrispTree, FlatTree
from crisptree.inference.reference import visits
from crisptree.report.colors import class_colors
from crisptree.report.encoding import pack, shrunk, signed_bytes, step_within
from crisptree.report.rows import ReportRows
from crisptree.report.samples import collect_blame, collect_samples
from crisptree.view import ModelView
from crisptree.view.influence import effects

BINS = 30
"""Bars of a score histogram, at most two more."""

TAIL = 0.5
"""Percent of the scores on either side that the outermost bars hold, so that a few far rows do not flatten the rest."""

LARGEST_WEIGHTS = 12
"""Weights listed at a split of tabular data."""

WEIGHT_VALUES = 4_000_000
"""Larger sets of weight images are shown at a lower resolution."""

EPOCHS_SHOWN = 1500
"""Longer histories are thinned."""

PROBABILITIES = ("log_loss", "brier_score", "calibration_error")
"""Functions of ``crisptree.metrics`` that stand beside the accuracy."""

Doubles = npt.NDArray[np.float64]


def collect(view: ModelView, rows: ReportRows | None, max_samples: int) -> dict[str, Any]:
    """Everything for the page, as values that JSON can hold."""
    tree = view.tree
    return {
        "classes": view.class_names,
        "colors": class_colors(len(view.class_names)),
        "features": view.feature_names if view.image_shape is None else None,  # pixels are shown, not named
        "image": view.image_shape is not None,
        "linear": isinstance(tree, FlatTree),
        "labelled": rows is not None and rows.y is not None,
        "summary": _summary(view, rows),
        "tree": _tree(view, rows),
        "weights": _weights(view),
        "histograms": None if rows is None else _histograms(tree, rows, len(view.class_names)),
        "confusion": _confusion(view, rows),
        "samples": None if rows is None else collect_samples(view, rows, max_samples),
        "blame": None if rows is None or rows.y is None else collect_blame(view, rows),
        "history": _history(view.estimator),
    }


def _summary(view: ModelView, rows: ReportRows | None) -> dict[str, Any]:
    tree, structure = view.tree, view.tree.structure
    leaf_counts, passing = tree.statistics.node_counts[structure.n_splits :], view.node_rows[structure.n_splits :]
    trained = passing.sum()
    correct = leaf_counts[np.arange(structure.n_leaves), tree.labels()].sum()
    if rows is not None:
        passing = np.bincount(rows.leaf, minlength=structure.n_leaves).astype(np.float64)
    total = max(float(passing.sum()), np.finfo(float).tiny)
    truth = None if rows is None or rows.y is None else rows
    return {
        "hard": None if truth is None else float(np.mean(~truth.wrong)),
        "soft": None if truth is None else float(np.mean(view.soft_tables(truth.X).argmax(axis=1) == truth.y)),
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
    parts = tree.parts_of(np.arange(structure.n_splits)) if structure.n_splits else {}
    arrays = [array for part in parts.values() for array in _arrays_of(part)]
    tables = 4 * structure.n_leaves * tree.n_outputs
    return int(structure.left.nbytes + structure.right.nbytes + tables + sum(array.nbytes for array in arrays))


def _arrays_of(part: Any) -> list[Any]:
    parameters = getattr(part, "parameters", None)  # of split modules: a dictionary of stacked tensors
    return [part] if parameters is None else list(parameters.values())


def _tree(view: ModelView, rows: ReportRows | None) -> dict[str, Any]:
    structure, statistics = view.tree.structure, view.tree.statistics
    given = None
    if rows is not None:
        counts = np.zeros((structure.n_leaves, len(view.class_names)))
        np.add.at(counts, (rows.leaf, rows.labels), 1.0)
        given = pack(structure.sums_below(counts), "float32")
    return {
        "left": pack(structure.left_nodes, "int32"),
        "right": pack(structure.right_nodes, "int32"),
        "train": pack(statistics.node_counts, "float32"),
        "given": given,
        "tables": pack(view.tables[structure.n_splits :], "float32"),
        "gain": pack(statistics.gain, "float32"),
        "spread": pack(statistics.score_spread, "float32"),
    }


def _weights(view: ModelView) -> dict[str, Any] | None:
    """Images of the weights in the scaled space of training, or the most influential features of every split."""
    tree = view.tree
    if not isinstance(tree, FlatTree) or not tree.structure.n_splits:
        return None
    if view.image_shape is None:
        effect = effects(tree)
        order = np.argsort(-np.abs(effect), axis=1, kind="stable")[:, :LARGEST_WEIGHTS]
        return {
            "features": pack(order, "int32"),
            "values": pack(np.take_along_axis(effect, order, axis=1), "float32"),
            "nonzero": pack(np.count_nonzero(effect, axis=1), "int32"),
        }
    weights = tree.scaled_hyperplanes()[0]
    step = step_within(len(weights), view.image_shape, WEIGHT_VALUES)
    images, scale = signed_bytes(shrunk(weights.reshape(-1, *view.image_shape), step))
    return {"images": pack(images, "int8"), "scale": pack(scale, "float32"), "step": step}


def _histograms(tree: CrispTree, rows: ReportRows, n_classes: int) -> dict[str, Any]:
    """Scores of the rows that visit each split, by class, in bins that zero separates."""
    n_splits = tree.structure.n_splits
    start, width = np.zeros(n_splits), np.zeros(n_splits)
    counts = np.zeros((n_splits, BINS + 2, n_classes), dtype=np.int64)
    for split, visitors, scores in visits(tree, rows.X):
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


def _confusion(view: ModelView, rows: ReportRows | None) -> dict[str, Any] | None:
    return None if rows is None or rows.y is None else pack(view.confusion(rows.y, rows.predicted), "uint32")


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
