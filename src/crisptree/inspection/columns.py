"""Columns of the input table, and the features of the tree that each of them is encoded as."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crisptree.inspection.names import sanitize_names

if TYPE_CHECKING:
    from crisptree.inspection.model_view import ModelView

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RawColumn:
    """A column of the input table.

    Parameters
    ----------
    name : str
        Its name, sanitized for one line of text.
    kind : {"number", "boolean", "category"}
        Type of its values.
    features : tuple of int
        Indices of its features: one for a number, one for every level of a category.
    levels : tuple of str
        The levels of a category, as in the table.
    missing : int or None
        Index of the feature that is 1 where a value is missing.
    label : object
        Its label in the table: its name unsanitized, or a number where columns are labelled by numbers.
    """

    name: str
    kind: str
    features: tuple[int, ...]
    levels: tuple[str, ...] = ()
    missing: int | None = None
    label: Any = None

    @property
    def display_levels(self) -> list[str]:
        """Its levels, sanitized for one line of text."""
        return sanitize_names(self.levels)

    @property
    def all_features(self) -> tuple[int, ...]:
        """Its features, including the missing-value indicator."""
        return self.features if self.missing is None else (*self.features, self.missing)

    def is_missing(self, row: npt.NDArray[Any]) -> bool:
        """Return True if a row of features has no value in this column."""
        return self.missing is not None and bool(row[self.missing] > 0)

    def value(self, row: npt.NDArray[Any]) -> Any:
        """Return the value of this column in a row of features; None where it is missing or an unknown level.

        Examples
        --------
        >>> RawColumn("plan", "category", (0, 1), ("basic", "gold")).value(np.array([0.0, 1.0]))
        'gold'
        """
        if self.is_missing(row):
            return None
        if self.kind != "category":
            return float(row[self.features[0]])
        active = [level for feature, level in zip(self.features, self.levels, strict=True) if row[feature] > 0.5]
        return active[0] if active else None


def list_columns(view: ModelView) -> tuple[RawColumn, ...]:
    """List the columns that a model was trained on; without a stored preprocessing every feature is a column."""
    stored, labels = find_preprocessing(view), _labels_of(view)
    if stored is None:
        own = [] if view.transformers else [str(name) for name in getattr(view.estimator, "feature_names_in_", ())]
        pairs = zip(view.feature_names, labels or own or view.feature_names, strict=True)
        return tuple(RawColumn(name, "number", (j,), label=label) for j, (name, label) in enumerate(pairs))
    label_of = dict(zip(stored.input_names, labels, strict=False)) if not stored.named else {}
    origin, names, columns = np.asarray(stored.origin), sanitize_names(column.name for column in stored.columns), []
    for number, column in enumerate(stored.columns):
        features = [int(feature) for feature in np.flatnonzero(origin == number)]
        missing = features.pop() if column.missing else None
        name = names[number] if column.kind == "category" else view.feature_names[features[0]]
        label = label_of.get(column.name, column.name)
        columns.append(RawColumn(name, column.kind, tuple(features), tuple(column.categories), missing, label))
    return tuple(columns)


def _labels_of(view: ModelView) -> list[Any]:
    """Return the column labels of the DataFrame that the model itself was fitted on, where they are no text."""
    behind_steps = any(not hasattr(step, "encoded") or hasattr(step, "steps") for step in view.transformers)
    return [] if behind_steps else view.estimator.__dict__.get("column_labels_", [])


def find_preprocessing(view: ModelView) -> Any:
    """Return the preprocessing that turns the columns of a table into the features of the tree; None without one."""
    for holder in (view.estimator, *reversed(view.transformers)):
        steps = [holder, *(step for _, step in reversed(getattr(holder, "steps", ())))]
        for step in steps[:2]:  # only the last step of a Pipeline outputs the features of the tree
            stored = getattr(step, "__dict__", {}).get("preprocessing_")
            if stored is not None:
                return stored if len(stored.origin) == view.tree.n_features else None
    return None


def restore_table_row(view: ModelView, x: npt.NDArray[Any]) -> dict[Any, Any] | None:
    """Invert the preprocessing of one row: a dict by column label; None where it is not invertible."""
    if view.image_shape is not None:
        return None
    stored = find_preprocessing(view)
    if stored is not None or not view.transformers:
        return {column.label: _restore_value(column.kind, column.value(x)) for column in list_columns(view)}
    rows = x[None].astype(np.float64)
    for transformer in reversed(view.transformers):
        if not hasattr(transformer, "inverse_transform"):
            return None
        rows = np.asarray(transformer.inverse_transform(rows))
        if rows.ndim != 2 or rows.dtype.kind not in "fiu":
            return None  # the words of a text are no columns
    names = getattr(view.transformers[0], "feature_names_in_", None)
    if names is None:
        names = [f"x{number}" for number in range(rows.shape[1])]
    values = (_restore_value("number", value) for value in rows[0].tolist())
    return dict(zip(map(str, names), values, strict=True))


def _restore_value(kind: str, value: Any) -> Any:
    """Return a value in the type of the table: bool, level, or a float without the digits that float32 adds."""
    if value is None or kind == "category":
        return value
    return value > 0.5 if kind == "boolean" else float(str(np.float32(value)))


def sum_by_column(columns: Iterable[RawColumn], values: Doubles) -> Doubles:
    """Sum the values of features by column.  (n_features,) → (n_columns,)"""
    return np.array([values[list(column.all_features)].sum() for column in columns], dtype=np.float64)
