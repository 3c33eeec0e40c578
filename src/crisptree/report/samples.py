"""The rows that a report is written with, and those that the page holds to look at: which ones, their pictures or
values, and why they went where they went.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import FlatTree
from crisptree.inference.routing import visit_splits
from crisptree.inspection import ModelView
from crisptree.inspection.columns import list_columns, sum_by_column
from crisptree.inspection.counterfactual_search import FeasibleSet
from crisptree.inspection.counterfactuals import SearchLimitError, search_counterfactual
from crisptree.inspection.decision_path import compute_contributions, margin_scales
from crisptree.inspection.error_attribution import attribute_leaf_errors
from crisptree.inspection.importances import compute_influence
from crisptree.inspection.names import sanitize_names
from crisptree.report.encoding import grey_bytes, pack, shrunk, signed_bytes, step_within
from crisptree.report.what_if import collect_what_if

SAMPLE_VALUES = 3_000_000
"""Larger sets of sample images are shown at a lower resolution."""

WRONG_SHARE = 0.75
"""Of the samples, when there are more wrong ones: leaves need right examples too."""

SHOWN_COLUMNS = 40
"""Values kept of every tabular row."""

TOP_PUSHES = 5
"""Features named at every step of a tabular row; images show them all as a picture."""

CHANGES = 48
"""For how many samples the smallest change is searched."""

PATIENCE = 300
"""Quadratic programmes for each of these searches, which a single explanation has more of."""

CHANGED_COLUMNS = 8
"""Columns named in a smallest change."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ReportRows:
    """Rows that the model has not been trained on, or any others."""

    X: npt.NDArray[np.float32]  # as the tree sees them
    leaf: Integers  # where it sends each of them
    predicted: Integers  # class numbers
    y: Integers | None  # class numbers, where the caller knows them
    ids: npt.NDArray[Any] | None = None  # what the caller calls them; None where they are counted from 0

    @classmethod
    def of(cls, view: ModelView, X: Any, y: Any, ids: Any = None) -> ReportRows | None:
        """What the caller gives, checked; None where there are no rows."""
        if X is None and y is not None:
            raise ValueError("`y` must come with the rows it belongs to; got y without X. Give both, or neither.")
        if X is None:
            return None
        view.check_takes_rows("a report with rows")
        rows = view.prepare_rows(X)
        leaf = view.apply(rows)
        numbers = None if y is None else view.encode_labels(y, len(leaf))
        named = np.asarray(_index(X) if ids is None else ids) if ids is not None or _index(X) is not None else None
        if named is not None and named.shape != leaf.shape:
            raise ValueError(f"`ids` must have one for each of the {len(leaf)} rows of X; got shape {named.shape}.")
        return cls(rows, leaf, view.tree.predictions(leaf, rows).astype(np.int64), numbers, named)

    @property
    def labels(self) -> Integers:
        """The true classes, or the predicted ones where nobody knows the truth."""
        return self.predicted if self.y is None else self.y

    @property
    def wrong(self) -> npt.NDArray[np.bool_]:
        return self.predicted != self.labels


def _index(X: Any) -> Any:
    """The index of a DataFrame that says more than the place of a row."""
    index = getattr(X, "index", None)
    if index is None or callable(index) or getattr(index, "nlevels", 1) > 1:
        return None
    return None if np.array_equal(np.asarray(index), np.arange(len(index))) else index


def collect_samples(view: ModelView, rows: ReportRows, max_samples: int) -> dict[str, Any]:
    """Chosen rows with their explanations."""
    chosen = choose(rows, max_samples)
    X = rows.X[chosen]
    appearance = _appearance(view, X)
    return {
        "count": len(chosen),
        "row": pack(chosen, "int32"),
        "ids": None if rows.ids is None else sanitize_names(rows.ids[chosen].tolist()),
        "true": None if rows.y is None else pack(rows.y[chosen], "int16"),
        "predicted": pack(rows.predicted[chosen], "int16"),
        "leaf": pack(rows.leaf[chosen], "int32"),
        **appearance,
        **_steps(view, X),
        "changes": _changes(view, X, appearance),
        "changes_searched": min(CHANGES, len(chosen)),
        "what_if": collect_what_if(view, X),
    }


def collect_blame(view: ModelView, rows: ReportRows) -> list[list[float]]:
    """[split, errors, share of all errors], the most errors first; split −1 for errors without a culprit."""
    if view.tree.is_linear:  # a leaf has no one class that rows could miss
        return []
    return [list(entry) for entry in attribute_leaf_errors(view.tree, rows.leaf, rows.labels).table()]


def choose(rows: ReportRows, max_samples: int) -> Integers:
    """Wrong rows first, in turns from every confusion; then right ones, in turns from every leaf.

    Examples
    --------
    One from each of two leaves:

    >>> zeros = np.zeros(4, dtype=int)
    >>> choose(ReportRows(np.zeros((4, 1)), leaf=np.array([0, 0, 0, 1]), predicted=zeros, y=zeros), 2)
    array([0, 3])
    """
    n_classes = int(max(rows.predicted.max(initial=0), rows.labels.max(initial=0))) + 1
    cell = rows.labels * n_classes + rows.predicted
    group = np.where(rows.wrong, cell, n_classes**2 + rows.leaf)
    order = np.lexsort((_turn(group), ~rows.wrong))
    wrong, right = np.split(order, [np.count_nonzero(rows.wrong)])
    most_wrong = max(max_samples - len(right), int(WRONG_SHARE * max_samples + 0.5))
    wrong = wrong[:most_wrong]
    return np.concatenate([wrong, right[: max_samples - len(wrong)]]).astype(np.int64)


def _turn(group: Integers) -> Integers:
    """How many earlier rows are in the same group."""
    order = np.argsort(group, kind="stable")
    turn = np.empty(len(group), dtype=np.int64)
    turn[order] = np.arange(len(group)) - np.searchsorted(group[order], group[order])
    return turn


def _appearance(view: ModelView, X: npt.NDArray[np.float32]) -> dict[str, Any]:
    """What a sample looks like: an image, or the values, in column order, of the features with most influence at the
    splits that most training rows visit.
    """
    if view.image_shape is None:
        return _table(view, X)
    step = step_within(len(X), view.image_shape, SAMPLE_VALUES)
    images, low, high = grey_bytes(shrunk(X.reshape(-1, *view.image_shape), step))
    looks: dict[str, Any] = {"images": pack(images, "uint8"), "low": low, "high": high, "step": step}
    if view.has_weight_images:  # what turns pixels and scaled weights into pushes w (x − mean), at their resolution
        scaling = view.tree.statistics.scaling
        for name, values in (("mean", scaling.mean), ("factor", scaling.factor)):
            looks[name] = pack(values.reshape(view.image_shape), "float32")
    return looks


def _table(view: ModelView, X: npt.NDArray[np.float32]) -> dict[str, Any]:
    """The columns of the table and their values: a number, or the place of a level; NaN where it is missing, and −1 for
    a level that training did not know.
    """
    columns, tree = list_columns(view), view.tree
    shown = np.arange(min(SHOWN_COLUMNS, len(columns)))
    if isinstance(tree, FlatTree):  # those with the most influence first
        total = sum_by_column(columns, view.node_weights[: tree.structure.n_splits] @ compute_influence(tree))
        shown = np.argsort(-total, kind="stable")[:SHOWN_COLUMNS]
    values = np.empty((len(X), len(shown)))
    for place, column in enumerate(columns[number] for number in shown):
        own = X[:, list(column.features)]
        values[:, place] = own[:, 0]
        if column.kind == "category":
            values[:, place] = np.where(own.max(axis=1) > 0, own.argmax(axis=1), -1)
        if column.missing is not None:
            values[X[:, column.missing] > 0, place] = np.nan
    named = [{"name": columns[j].name, "levels": columns[j].display_levels or None, "column": int(j)} for j in shown]
    return {"columns": named, "more_columns": len(columns) - len(shown), "values": pack(values, "float32")}


def _steps(view: ModelView, X: npt.NDArray[np.float32]) -> dict[str, Any]:
    """Scores, margins, offsets and the largest pushes on every path; NaN and −1 beyond its end.

    These are the numbers of ``explain.path``, for all samples of a split at once.
    """
    tree = view.tree
    depth, places = tree.structure.depth, tree.structure.node_depths
    names_pushes = view.image_shape is None and isinstance(tree, FlatTree)
    top = min(TOP_PUSHES, tree.n_features) if names_pushes else 0
    numbers = np.full((len(X), depth, 3), np.nan)
    features = np.full((len(X), depth, top), -1, dtype=np.int64)
    pushes = np.zeros((len(X), depth, top, 2))
    units = margin_scales(tree)
    for split, rows, scores in visit_splits(tree, X):
        place = places[split]
        offset: Any = scores  # of a module, which has no sum
        if isinstance(tree, FlatTree):
            amounts, offset = compute_contributions(tree, X[rows], split)
            largest = np.argsort(-np.abs(amounts), axis=1, kind="stable")[:, :top]
            features[rows, place] = largest
            pushes[rows, place, :, 0] = np.take_along_axis(X[rows], largest, axis=1)
            pushes[rows, place, :, 1] = np.take_along_axis(amounts, largest, axis=1)
        numbers[rows, place] = np.stack(np.broadcast_arrays(scores, scores / units[split], offset), axis=1)
    return {
        "steps": pack(numbers, "float32"),
        "push_features": pack(features, "int32"),
        "pushes": pack(pushes, "float32"),
    }


def _shown(name: str, before: Any, after: Any) -> list[Any]:
    """A change of a column, its levels as they can stand in a line."""
    levels = (sanitize_names([value])[0] if isinstance(value, str) else value for value in (before, after))
    return [name, *levels]


def _changes(view: ModelView, X: npt.NDArray[np.float32], appearance: dict[str, Any]) -> dict[str, Any]:
    """The smallest change of the first samples that sends them to another class, by sample number."""
    if not isinstance(view.tree, FlatTree) or not view.tree.structure.n_splits or view.tree.is_linear:
        return {}
    found, columns = {}, list_columns(view)
    everything, costs = np.ones(len(columns), dtype=bool), np.ones(len(columns))
    for sample, x in enumerate(X[:CHANGES]):
        is_table = view.image_shape is None
        allowed = FeasibleSet.of(view.tree, x, columns, free=everything, costs=costs, as_in_training=is_table)
        try:
            change = search_counterfactual(view, x, allowed, None, CHANGED_COLUMNS, PATIENCE)
        except SearchLimitError:
            continue
        if change is None:
            continue
        entry = {
            "predicted": int(view.tree.labels(change.leaf)),
            "leaf": int(change.leaf),
            "distance": float(change.distance),
            "count": sum(column.value(x) != column.value(change.x) for column in columns) if is_table else 0,
            "columns": [_shown(*entry) for entry in change.columns] if is_table else [],
        }
        if view.image_shape is not None:  # the changed image on the grey scale of the samples, and the change itself
            after = change.x.astype(np.float64)
            images = shrunk(np.stack([after, after - x]).reshape(2, *view.image_shape), appearance["step"])
            reach = appearance["high"] - appearance["low"] or 1.0
            grey = np.clip((images[0] - appearance["low"]) / reach, 0.0, 1.0) * 255
            entry["image"] = pack(np.round(grey), "uint8")
            entry["difference"] = pack(signed_bytes(images[1:])[0][0], "int8")
        found[str(sample)] = entry
    return found
