"""Constraints on splits as a user writes them, by the names or numbers of columns: what they must be, and of which."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crisptree.encoding.preprocessing import Preprocessing
from crisptree.estimators.rules import Rule, is_whole

CONSTRAINTS = ("signs", "max_features_per_split", "apart")


def _is_column(value: Any) -> bool:
    return isinstance(value, str) or (is_whole(value) and value >= 0)


def _are_columns(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) > 0 and all(map(_is_column, value))


SIGNS = Rule(
    lambda value: (
        value is None
        or (
            isinstance(value, dict)
            and all(map(_is_column, value))
            and all(is_whole(sign) and sign in (-1, 1) for sign in value.values())
        )
    ),
    'None or a dict of columns, by name or number, with 1 or -1 for each, such as {"age": 1, 3: -1}',
)

APART = Rule(
    lambda value: (
        value is None or (isinstance(value, tuple | list) and len(value) > 1 and all(map(_are_columns, value)))
    ),
    'None or a list of two or more groups of columns, by name or number, such as [["age", "height"], [3, 4]]',
)


def are_constrained(parameters: Mapping[str, Any]) -> bool:
    """Whether the weights of splits may not be anything."""
    return any(parameters.get(name) for name in CONSTRAINTS)


def by_number(parameters: Mapping[str, Any], estimator: Any) -> dict[str, Any]:
    """The parameters with the numbers of columns in place of their names, for an estimator that has seen its rows.

    Where a table was encoded, the features of each of its columns are named too, as what l1 keeps or drops together.
    """
    names = estimator.__dict__.get("column_labels_") or [
        str(name) for name in getattr(estimator, "feature_names_in_", ())
    ]
    n_features, values = estimator.n_features_in_, dict(parameters)
    if parameters["signs"]:
        numbers = _numbers("signs", list(parameters["signs"]), names, n_features)
        values["signs"] = dict(zip(numbers, map(int, parameters["signs"].values()), strict=True))
    if parameters["apart"]:
        flat = _numbers("apart", [column for group in parameters["apart"] for column in group], names, n_features)
        ends = np.cumsum([len(group) for group in parameters["apart"]])
        values["apart"] = [flat[end - len(group) : end] for end, group in zip(ends, parameters["apart"], strict=True)]
    encoder = estimator.__dict__.get("encoder_")
    if encoder is not None:
        values = _of_features(values, encoder.preprocessing_)
    table = preprocessing_of_rows(estimator)
    return values if table is None else values | {"feature_groups": table.groups}


def preprocessing_of_rows(estimator: Any) -> Preprocessing | None:
    """What made the rows that an estimator trains on: its encoder, or whoever encoded them before and left word."""
    known = estimator.__dict__
    found: Preprocessing | None = (
        known["encoder_"].preprocessing_ if "encoder_" in known else known.get("preprocessing_")
    )
    return found


def _of_features(values: dict[str, Any], table: Preprocessing) -> dict[str, Any]:
    """The same for the features that the columns of a table become: a sign is that of the number, not of its holes."""
    places = {column.name: place for place, column in enumerate(table.columns)}
    of_column = [places.get(name) for name in table.input_names]
    features = [[] if place is None else np.flatnonzero(table.origin == place).tolist() for place in of_column]
    if values["signs"]:
        for number in values["signs"]:
            place = of_column[number]
            if place is None:
                raise ValueError(f"`signs` must name columns that are used; {table.input_names[number]!r} is left out.")
            if table.columns[place].kind == "category":
                name = table.columns[place].name
                raise ValueError(f"`signs` must name columns of numbers; {name!r} is a category, which has no order.")
        values["signs"] = {features[number][0]: sign for number, sign in values["signs"].items()}
    if values["apart"]:
        groups = [[feature for number in group for feature in features[number]] for group in values["apart"]]
        values["apart"] = [group for group in groups if group]
    return values


def _numbers(parameter: str, columns: Sequence[Any], names: list[Any], n_features: int) -> list[int]:
    numbers = [_number(parameter, column, names, n_features) for column in columns]
    twice = [column for place, column in enumerate(columns) if numbers[place] in numbers[:place]]
    if twice:
        raise ValueError(f"`{parameter}` must name every column once; got {twice[0]!r} again, by its name or number.")
    return numbers


def _number(parameter: str, column: Any, names: list[Any], n_features: int) -> int:
    """The place of a column, by its label, or by its number where columns have no labels or those are text."""
    if column in names:
        return names.index(column)
    are_texts = all(isinstance(name, str) for name in names)
    if not isinstance(column, str) and are_texts:
        if column >= n_features:
            raise ValueError(
                f"`{parameter}` must name columns of X, numbered from 0 to {n_features - 1}; got {column}."
            )
        return int(column)
    if not names:
        raise ValueError(
            f"`{parameter}` must give the numbers of columns where X has no names; got {column!r}. Fit a DataFrame, or "
            f"write 0 to {n_features - 1}. In a Pipeline, names come through with set_output(transform='pandas')."
        )
    close = difflib.get_close_matches(column, names, 1) if are_texts else []
    hint = (
        f" Did you mean {close[0]!r}?"
        if close
        else f" They are {', '.join(map(repr, names[:8]))}" + (", …" if len(names) > 8 else ".")
    )
    raise ValueError(f"`{parameter}` must name columns of X; got {column!r}.{hint}")
