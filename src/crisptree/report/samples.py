"""The rows of a report, and the selection of them that the page shows: their values, paths and counterfactuals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import FlatTree
from crisptree.inference.flat_tree import visit_splits
from crisptree.inspection import ModelView
from crisptree.inspection.counterfactual_search import FeasibleSet
from crisptree.inspection.counterfactuals import SearchLimitError, search_counterfactual
from crisptree.inspection.decision_path import compute_contributions, margin_scales
from crisptree.inspection.diagnostics import attribute_leaf_errors
from crisptree.inspection.display import sanitize_names
from crisptree.inspection.linear_splits import feature_importances, sum_by_column
from crisptree.inspection.model_view import InputColumn, linear_models
from crisptree.inspection.sentences import FALSE, TRUE
from crisptree.report.encoding import downsample, find_step, gray_bytes, pack, signed_bytes

MAX_SAMPLE_VALUES = 3_000_000
"""Larger sets of sample images are downsampled."""

MAX_WRONG_SHARE = 0.75
"""Largest share of misclassified samples: leaves need correct examples too."""

MAX_COLUMNS = 40
"""Columns kept of every tabular row."""

TOP_PUSHES = 5
"""Features listed at every step of a tabular row; images show all of them as an image."""

MAX_COUNTERFACTUALS = 48
"""Samples for which a counterfactual is searched."""

PROGRAMS_PER_SAMPLE = 300
"""Limit of quadratic programs in each of these searches; a single explanation has more."""

MAX_CHANGED_COLUMNS = 8
"""Columns listed in a counterfactual."""

MAX_WEIGHTS = 1_000_000
"""Larger trees are not written into the page a second time for edited rows."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ReportRows:
    """The rows of a report, usually of a test set."""

    X: npt.NDArray[np.float32]  # prepared
    leaf: Integers
    predicted: npt.NDArray[Any]  # class indices (n,), or numbers (n, n_outputs)
    y: npt.NDArray[Any] | None  # the same of the truth, if known
    ids: npt.NDArray[Any] | None = None  # identifiers; None where rows are numbered from 0

    @classmethod
    def of(cls, view: ModelView, X: Any, y: Any, ids: Any = None) -> ReportRows | None:
        """Validate the rows of the caller; None where there are none."""
        if X is None and y is not None:
            raise ValueError("`y` must come with the rows it belongs to; got y without X. Pass both, or neither.")
        if X is None:
            return None
        if not view.is_regression:
            view.check_takes_rows("a report with rows")
        rows = view.prepare_rows(X)
        leaf = view.apply(rows)
        truth = None if y is None else view.encode_target(y, len(leaf))
        ids = _index(X) if ids is None else ids
        names = None if ids is None else np.asarray(ids)
        if names is not None and names.shape != leaf.shape:
            raise ValueError(f"`ids` must have one for each of the {len(leaf)} rows of X; got shape {names.shape}.")
        predicted = view.tree.predictions(leaf, rows)
        return cls(rows, leaf, predicted if view.is_regression else predicted.astype(np.int64), truth, names)

    @property
    def labels(self) -> Integers:
        """True class indices, or the predicted ones where the truth is unknown."""
        return self.predicted if self.y is None else self.y

    @property
    def wrong(self) -> npt.NDArray[np.bool_]:
        """Flags of the misclassified rows."""
        return self.predicted != self.labels


def _index(X: Any) -> Any:
    """Return the index of a DataFrame; None without one, and for a plain range."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or getattr(index, "nlevels", 1) > 1:
        return None
    return None if np.array_equal(np.asarray(index), np.arange(len(index))) else index


def collect_samples(view: ModelView, rows: ReportRows, max_samples: int) -> dict[str, Any]:
    """Collect a selection of the rows with their explanations."""
    selected = select_rows(rows, max_samples)
    X = rows.X[selected]
    appearance, kind = _appearance(view, X), "float32" if view.is_regression else "int16"
    return {
        "count": len(selected),
        "row": pack(selected, "int32"),
        "ids": None if rows.ids is None else sanitize_names(rows.ids[selected].tolist()),
        "true": None if rows.y is None else pack(rows.y[selected], kind),
        "predicted": pack(rows.predicted[selected], kind),
        "leaf": pack(rows.leaf[selected], "int32"),
        **appearance,
        **_steps(view, X),
        "changes": _changes(view, X, appearance),
        "changes_searched": min(MAX_COUNTERFACTUALS, len(selected)),
        "what_if": collect_what_if(view, X),
    }


def collect_error_attribution(view: ModelView, rows: ReportRows) -> list[list[float]]:
    """Collect [split, errors, share of all errors], most errors first; split −1 for errors without one."""
    return [list(entry) for entry in attribute_leaf_errors(view.tree, rows.X, rows.leaf, rows.labels).table()]


def select_rows(rows: ReportRows, max_samples: int) -> Integers:
    """Select misclassified rows first, in turn from every confusion; then others, in turn from every leaf."""
    if rows.predicted.ndim > 1:  # of a regression no row is wrong
        return np.argsort(_rank_in_group(rows.leaf), kind="stable")[:max_samples]
    n_classes = int(max(rows.predicted.max(initial=0), rows.labels.max(initial=0))) + 1
    cell = rows.labels * n_classes + rows.predicted
    group = np.where(rows.wrong, cell, n_classes**2 + rows.leaf)
    order = np.lexsort((_rank_in_group(group), ~rows.wrong))
    wrong, right = np.split(order, [np.count_nonzero(rows.wrong)])
    most_wrong = max(max_samples - len(right), int(MAX_WRONG_SHARE * max_samples + 0.5))
    wrong = wrong[:most_wrong]
    return np.concatenate([wrong, right[: max_samples - len(wrong)]]).astype(np.int64)


def _rank_in_group(group: Integers) -> Integers:
    """Count the earlier rows of the same group."""
    order = np.argsort(group, kind="stable")
    rank = np.empty(len(group), dtype=np.int64)
    rank[order] = np.arange(len(group)) - np.searchsorted(group[order], group[order])
    return rank


def _appearance(view: ModelView, X: npt.NDArray[np.float32]) -> dict[str, Any]:
    """Collect the images of the samples, or the values of their most important columns."""
    if view.image_shape is None:
        return _table(view, X)
    step = find_step(len(X), view.image_shape, MAX_SAMPLE_VALUES)
    images, low, high = gray_bytes(downsample(X.reshape(-1, *view.image_shape), step))
    appearance: dict[str, Any] = {"images": pack(images, "uint8"), "low": low, "high": high, "step": step}
    if view.has_weight_images:  # for the contributions w (x − mean) of pixels
        scaling = view.tree.statistics.scaling
        for name, values in (("mean", scaling.mean), ("factor", scaling.factor)):
            appearance[name] = pack(values.reshape(view.image_shape), "float32")
    return appearance


def _table(view: ModelView, X: npt.NDArray[np.float32]) -> dict[str, Any]:
    """Collect columns and values: a number, or the index of a level; NaN where it is missing, −1 for unknown levels."""
    columns, tree = view.columns, view.tree
    shown = np.arange(min(MAX_COLUMNS, len(columns)))
    if isinstance(tree, FlatTree):  # the most important first
        shown = np.argsort(-sum_by_column(view, feature_importances(tree)), kind="stable")[:MAX_COLUMNS]
    values = np.empty((len(X), len(shown)))
    for position, column in enumerate(columns[number] for number in shown):
        own = X[:, column.features]
        values[:, position] = own[:, 0]
        if column.kind == "category":
            values[:, position] = np.where(own.max(axis=1) > 0, own.argmax(axis=1), -1)
        if column.missing_feature is not None:
            values[X[:, column.missing_feature] > 0, position] = np.nan
    named = [{"name": columns[j].name, "levels": _levels(columns[j]), "column": int(j)} for j in shown]
    return {"columns": named, "more_columns": len(columns) - len(shown), "values": pack(values, "float32")}


def _levels(column: InputColumn) -> list[str] | None:
    """Return the texts of the values of a column; None for numbers."""
    return [FALSE, TRUE] if column.kind == "boolean" else sanitize_names(column.categories) or None


def _steps(view: ModelView, X: npt.NDArray[np.float32]) -> dict[str, Any]:
    """Collect scores, margins, offsets and the largest contributions on every path; NaN and −1 beyond its end.

    These are the numbers of ``explain.path``, for all samples of a split at once.
    """
    tree = view.tree
    depth, levels_of = tree.structure.depth, tree.structure.node_depths
    names_pushes = view.image_shape is None and isinstance(tree, FlatTree)
    top = min(TOP_PUSHES, tree.n_features) if names_pushes else 0
    numbers = np.full((len(X), depth, 3), np.nan)
    features = np.full((len(X), depth, top), -1, dtype=np.int64)
    pushes = np.zeros((len(X), depth, top, 2))
    units = margin_scales(tree)
    for split, rows, scores in visit_splits(tree, X):
        position = levels_of[split]
        offset: Any = scores  # a module has no such sum
        if isinstance(tree, FlatTree):
            amounts, offset = compute_contributions(tree, X[rows], split)
            largest = np.argsort(-np.abs(amounts), axis=1, kind="stable")[:, :top]
            features[rows, position] = largest
            pushes[rows, position, :, 0] = np.take_along_axis(X[rows], largest, axis=1)
            pushes[rows, position, :, 1] = np.take_along_axis(amounts, largest, axis=1)
        numbers[rows, position] = np.stack(np.broadcast_arrays(scores, scores / units[split], offset), axis=1)
    return {
        "steps": pack(numbers, "float32"),
        "push_features": pack(features, "int32"),
        "pushes": pack(pushes, "float32"),
    }


def _changes(view: ModelView, X: npt.NDArray[np.float32], appearance: dict[str, Any]) -> dict[str, Any]:
    """Collect the counterfactuals of the first samples, by sample index."""
    if not isinstance(view.tree, FlatTree) or view.is_regression:
        return {}
    changes, columns = {}, view.columns
    everything, costs = np.ones(len(columns), dtype=bool), np.ones(len(columns))
    for sample, x in enumerate(X[:MAX_COUNTERFACTUALS]):
        is_table = view.image_shape is None
        feasible = FeasibleSet.of(view.tree, x, columns, free=everything, costs=costs, as_in_training=is_table)
        try:
            limits = (MAX_CHANGED_COLUMNS, PROGRAMS_PER_SAMPLE)
            change = search_counterfactual(view, x, feasible, None, *limits, rounds=is_table)
        except SearchLimitError:
            continue
        if change is None:
            continue
        entry = {
            "predicted": int(view.tree.predictions(np.array([change.leaf]), change.x[None])[0]),
            "leaf": int(change.leaf),
            "distance": float(change.distance),
            "count": sum(column.value(x) != column.value(change.x) for column in columns) if is_table else 0,
            "columns": [
                [sanitize_names([part])[0] if isinstance(part, str) else part for part in column]
                for column in (change.columns if is_table else ())
            ],
        }
        if view.image_shape is not None:  # the changed image on the gray scale of the samples, and the difference
            after = change.x.astype(np.float64)
            images = downsample(np.stack([after, after - x]).reshape(2, *view.image_shape), appearance["step"])
            span = appearance["high"] - appearance["low"] or 1.0
            gray = np.clip((images[0] - appearance["low"]) / span, 0.0, 1.0) * 255
            entry["image"] = pack(np.round(gray), "uint8")
            entry["difference"] = pack(signed_bytes(images[1:])[0][0], "int8")
        changes[str(sample)] = entry
    return changes


def collect_what_if(view: ModelView, X: npt.NDArray[np.float32]) -> dict[str, Any] | None:
    """Collect what the page needs to predict edited rows: the model for ``export/predict.js`` and the sample rows.

    None for images, modules and large trees.
    """
    tree = view.tree
    if not isinstance(tree, FlatTree) or view.image_shape is not None:
        return None
    models = linear_models(tree) or ()
    leaf_models = {
        name: part[tree.structure.n_splits :] for name, part in zip(("slopes", "offsets"), models, strict=False)
    }
    if max(tree.weight.size, X.size, *(part.size for part in leaf_models.values())) > MAX_WEIGHTS:
        return None
    statistics, described = tree.statistics, []
    for column in view.columns:
        first = column.feature
        ranges = (statistics.lowest, statistics.highest, statistics.whole) if column.kind == "number" else (None,) * 3
        low, high, whole = (None if values is None else values[first].item() for values in ranges)
        described.append(
            {
                "name": column.name,
                "kind": column.kind,
                "feature": first,
                "categories": sanitize_names(column.categories),
                "fill": column.fill,
                "missing": column.missing,
                "low": low,
                "high": high,
                "whole": bool(whole),
            }
        )
    return {
        "columns": described,
        "left": pack(tree.structure.left, "int32"),
        "right": pack(tree.structure.right, "int32"),
        "weight": pack(tree.weight, "float32"),
        "bias": pack(tree.bias, "float32"),
        "rows": pack(X, "float32"),
        **{name: pack(part, "float64") for name, part in leaf_models.items()},
    }
