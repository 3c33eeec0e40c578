"""What may change about a row: which features, from where to where, in whole numbers and categories, at which cost."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import FlatTree
from crisptree.view.columns import RawColumn

Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Group = tuple[npt.NDArray[np.intp], Doubles]
"""The features of one category, and the values that they may take together, one line for each.  (g,), (n, g)"""


@dataclass(frozen=True, eq=False)
class Allowed:
    """The rows that a search may come to.

    Parameters
    ----------
    unit : ndarray of shape (n_features,)
        How far a feature moves at a cost of 1; 0 where it stays as it is.
    factor : ndarray of shape (n_features,)
        The cost of moving a feature by 1.
    low, high : ndarray of shape (n_features,)
        From where to where it may move; infinite where anything goes.
    whole : ndarray of bool, shape (n_features,)
        Features that move to whole numbers only.
    groups : tuple
        Features that move together.
    """

    unit: Doubles
    factor: Doubles
    low: Doubles
    high: Doubles
    whole: Flags
    groups: tuple[Group, ...] = ()

    @classmethod
    def anything(cls, tree: FlatTree) -> Allowed:
        """Every feature that has varied in training may take any value."""
        scaling, nowhere = tree.statistics.scaling, np.full(tree.n_features, np.inf)
        return cls(scaling.unit, scaling.factor, -nowhere, nowhere, np.zeros(tree.n_features, dtype=bool))

    @classmethod
    def of(
        cls,
        tree: FlatTree,
        row: npt.NDArray[np.float32],
        columns: tuple[RawColumn, ...],
        *,
        free: Flags,
        costs: Doubles,
        as_in_training: bool,
    ) -> Allowed:
        """Of some columns: which may change, and what that costs in proportion."""
        scaling, statistics, x = tree.statistics.scaling, tree.statistics, row.astype(np.float64)
        cost, moves = np.ones(tree.n_features), np.zeros(tree.n_features, dtype=bool)
        for column, may, price in zip(columns, free, costs, strict=True):
            features = list(column.all_features)
            cost[features], moves[features] = price, may
            if as_in_training and column.missing is not None:
                # What is missing stays so, and what is there does not go away: neither is a change of the row itself.
                moves[features if column.is_missing(row) else [column.missing]] = False
        factor = scaling.factor * cost
        unit = np.where(moves, np.divide(1.0, factor, out=np.zeros_like(factor), where=factor > 0), 0.0)
        plain = cls.anything(tree)
        if not as_in_training:
            return cls(unit, factor, plain.low, plain.high, plain.whole)
        # A row beyond what training has seen may stay where it is, and need not become whole.
        low = plain.low if statistics.lowest is None else np.minimum(statistics.lowest, x)
        high = plain.high if statistics.highest is None else np.maximum(statistics.highest, x)
        whole = plain.whole if statistics.whole is None else (statistics.whole > 0) & (x == np.rint(x))
        low, high, whole = low.copy(), high.copy(), whole.copy()
        groups: list[Group] = []
        for column in columns:
            own = np.array(column.features, dtype=np.intp)
            if column.kind != "number":
                low[own], high[own] = np.minimum(0.0, x[own]), np.maximum(1.0, x[own])
                whole[own] = column.kind == "boolean" and bool((x[own] == np.rint(x[own])).all())
            if column.kind == "category" and moves[own].any():
                states, stays = np.unique(np.vstack([x[own], np.eye(len(own))]), axis=0), unit[own] == 0
                groups.append((own, states[(states[:, stays] == x[own][stays]).all(axis=1)]))
        return cls(unit, factor, low, high, whole, tuple(groups))


def free_columns(columns: tuple[RawColumn, ...], fixed: Any, only: Any) -> Flags:
    """Which columns may change: those of ``only``, or all, without those of ``fixed``.  (n_columns,)"""
    free = np.full(len(columns), only is None)
    if only is not None:
        free[places(columns, only, "only")] = True
    free[places(columns, fixed, "fixed")] = False
    return free


def costs_of(columns: tuple[RawColumn, ...], costs: Mapping[Any, float] | None) -> Doubles:
    """The cost of every column; 1 where none is named.  (n_columns,)"""
    prices = np.ones(len(columns))
    if costs is not None and not isinstance(costs, Mapping):
        raise TypeError(f"`costs` must be a dict of columns and numbers, e.g. {{'age': 3.0}}; got {costs!r}.")
    for column, price in (costs or {}).items():
        if isinstance(price, bool) or not isinstance(price, int | float | np.number) or not 0 < price < np.inf:
            raise ValueError(
                f"`costs` must be finite numbers above 0; got {price!r} for {column!r}. Name a column in `fixed` that "
                "must not change."
            )
        prices[places(columns, [column], "costs")] = price
    return prices


def places(columns: tuple[RawColumn, ...], wanted: Any, parameter: str) -> list[int]:
    """The numbers of some columns, which are named or counted."""
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        raise TypeError(f"`{parameter}` must be a list of columns; got {wanted!r}. Write [{wanted!r}].")
    names, labels, found = [column.name for column in columns], [column.label for column in columns], []
    by_label = not any(isinstance(label, str) for label in labels)
    for one in wanted:
        if isinstance(one, Hashable) and not isinstance(one, bool) and one in labels:
            found.append(labels.index(one))
        elif not by_label and isinstance(one, int | np.integer) and not isinstance(one, bool) and 0 <= one < len(names):
            found.append(int(one))
        elif isinstance(one, str) and " ".join(one.split()) in names:
            found.append(names.index(" ".join(one.split())))
        else:
            some = ", ".join(map(repr, labels[:8])) + (", …" if len(labels) > 8 else "")
            counted = "" if by_label else ", or count them from 0"
            raise ValueError(f"`{parameter}` must name columns of the table, {some}{counted}; got {one!r}.")
    return found
