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
        Its name.
    kind : {"number", "boolean", "category"}
        What its values are.
    features : tuple of int
        Its features: one for a number, one for every level of a category.
    levels : tuple of str
        The levels of a category.
    missing : int or None
        The feature that is 1 where a value is missing.
    """

    name: str
    kind: str
    features: tuple[int, ...]
    levels: tuple[str, ...] = ()
    missing: int | None = None

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
    stored = preprocessing_of(view)
    if stored is None:
        return tuple(RawColumn(name, "number", (number,)) for number, name in enumerate(view.feature_names))
    origin, columns = np.asarray(stored.origin), []
    for number, column in enumerate(stored.columns):
        features = [int(feature) for feature in np.flatnonzero(origin == number)]
        missing = features.pop() if column.missing else None
        is_category = column.kind == "category"
        (name,) = on_one_line([column.name]) if is_category else (view.feature_names[features[0]],)
        levels = on_one_line(column.categories)
        columns.append(RawColumn(name, column.kind, tuple(features), tuple(levels), missing))
    return tuple(columns)


def preprocessing_of(view: ModelView) -> Any:
    """How the columns of a table have become the features of the tree; None where nothing says so."""
    for holder in (view.estimator, *reversed(view.earlier)):
        steps = [holder, *(step for _, step in reversed(getattr(holder, "steps", ())))]
        for step in steps[:2]:  # of a Pipeline only the last step hands its features to the tree
            stored = getattr(step, "__dict__", {}).get("preprocessing_")
            if stored is not None:
                return stored if len(stored.origin) == view.tree.n_features else None
    return None


def row_of_table(view: ModelView, x: npt.NDArray[Any]) -> dict[str, Any] | None:
    """A row of features as a row of the table that the model takes, by its columns; None where that cannot be told."""
    if view.image_shape is not None:
        return None
    stored = preprocessing_of(view)
    if stored is not None:
        pairs = zip(stored.columns, columns_of(view), strict=True)
        return {column.name: _in_table(column.kind, raw.value(x)) for column, raw in pairs}
    rows = x[None].astype(np.float64)
    for transformer in reversed(view.earlier):
        if not hasattr(transformer, "inverse_transform"):
            return None
        rows = np.asarray(transformer.inverse_transform(rows))
        if rows.ndim != 2 or rows.dtype.kind not in "fiu":
            return None  # the words of a text, which are no columns
    first = view.earlier[0] if view.earlier else view.estimator
    names = getattr(first, "feature_names_in_", None)
    if names is None:
        names = [f"x{number}" for number in range(rows.shape[1])] if view.earlier else view.feature_names
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
