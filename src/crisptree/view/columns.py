"""The columns of a user's table, and which of the features that a tree sees each of them has become."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crisptree.view.names import on_one_line

if TYPE_CHECKING:
    from crisptree.view.model import ModelView

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RawColumn:
    """One column of the table.

    Parameters
    ----------
    name : str
        Its name, as it can stand in a line of text.
    kind : {"number", "boolean", "category"}
        What its values are.
    features : tuple of int
        Its features: one for a number, one for every level of a category.
    levels : tuple of str
        The levels of a category, as the table has them.
    missing : int or None
        The feature that is 1 where a value is missing.
    label : object
        What the table calls it: its name with all characters, or a number where columns are labelled by such.
    """

    name: str
    kind: str
    features: tuple[int, ...]
    levels: tuple[str, ...] = ()
    missing: int | None = None
    label: Any = None

    @property
    def shown_levels(self) -> list[str]:
        """Its levels as they can stand in a line of text."""
        return on_one_line(self.levels)

    @property
    def all_features(self) -> tuple[int, ...]:
        """Its features, with the one that tells where a value is missing."""
        return self.features if self.missing is None else (*self.features, self.missing)

    def is_missing(self, row: npt.NDArray[Any]) -> bool:
        """Whether a row of features has no value in this column."""
        return self.missing is not None and bool(row[self.missing] > 0)

    def value(self, row: npt.NDArray[Any]) -> Any:
        """What a row of features has in this column: a number, a level, or None where it is missing or not known.

        Examples
        --------
        >>> RawColumn("plan", "category", (0, 1), ("basic", "gold")).value(np.array([0.0, 1.0]))
        'gold'
        """
        if self.is_missing(row):
            return None
        if self.kind != "category":
            return float(row[self.features[0]])
        chosen = [level for feature, level in zip(self.features, self.levels, strict=True) if row[feature] > 0.5]
        return chosen[0] if chosen else None


def columns_of(view: ModelView) -> tuple[RawColumn, ...]:
    """The columns that a model was trained on, in their order; where no preprocessing tells, every feature is one."""
    stored, labels = preprocessing_of(view), _labels_of(view)
    if stored is None:
        own = [] if view.earlier else [str(name) for name in getattr(view.estimator, "feature_names_in_", ())]
        given = labels or own or view.feature_names
        numbered = enumerate(zip(view.feature_names, given, strict=True))
        return tuple(RawColumn(name, "number", (number,), label=label) for number, (name, label) in numbered)
    label_of = dict(zip(stored.input_names, labels, strict=False)) if not stored.named else {}
    origin, names, columns = np.asarray(stored.origin), on_one_line(column.name for column in stored.columns), []
    for number, column in enumerate(stored.columns):
        features = [int(feature) for feature in np.flatnonzero(origin == number)]
        missing = features.pop() if column.missing else None
        name = names[number] if column.kind == "category" else view.feature_names[features[0]]
        label = label_of.get(column.name, column.name)
        columns.append(RawColumn(name, column.kind, tuple(features), tuple(column.categories), missing, label))
    return tuple(columns)


def _labels_of(view: ModelView) -> list[Any]:
    """The labels of the columns of a DataFrame that the model itself has taken, where they are no text."""
    behind_steps = any(not hasattr(step, "encoded") or hasattr(step, "steps") for step in view.earlier)
    return [] if behind_steps else view.estimator.__dict__.get("column_labels_", [])


def preprocessing_of(view: ModelView) -> Any:
    """How the columns of a table have become the features of the tree; None where nothing says so."""
    for holder in (view.estimator, *reversed(view.earlier)):
        steps = [holder, *(step for _, step in reversed(getattr(holder, "steps", ())))]
        for step in steps[:2]:  # of a Pipeline only the last step hands its features to the tree
            stored = getattr(step, "__dict__", {}).get("preprocessing_")
            if stored is not None:
                return stored if len(stored.origin) == view.tree.n_features else None
    return None


def row_of_table(view: ModelView, x: npt.NDArray[Any]) -> dict[Any, Any] | None:
    """A row of features as a row of the table that the model takes, by its columns; None where that cannot be told."""
    if view.image_shape is not None:
        return None
    stored = preprocessing_of(view)
    if stored is not None or not view.earlier:
        return {column.label: _in_table(column.kind, column.value(x)) for column in columns_of(view)}
    rows = x[None].astype(np.float64)
    for transformer in reversed(view.earlier):
        if not hasattr(transformer, "inverse_transform"):
            return None
        rows = np.asarray(transformer.inverse_transform(rows))
        if rows.ndim != 2 or rows.dtype.kind not in "fiu":
            return None  # the words of a text, which are no columns
    names = getattr(view.earlier[0], "feature_names_in_", None)
    if names is None:
        names = [f"x{number}" for number in range(rows.shape[1])]
    values = (_in_table("number", value) for value in rows[0].tolist())
    return dict(zip(map(str, names), values, strict=True))


def _in_table(kind: str, value: Any) -> Any:
    """A value as the table has it: true or false, a level, or a number without the digits that float32 adds."""
    if value is None or kind == "category":
        return value
    return value > 0.5 if kind == "boolean" else float(str(np.float32(value)))


def in_columns(columns: Iterable[RawColumn], of_features: Doubles) -> Doubles:
    """Numbers of features added up by column.  (n_features,) → (n_columns,)"""
    return np.array([of_features[list(column.all_features)].sum() for column in columns], dtype=np.float64)
