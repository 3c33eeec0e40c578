"""A row's path in one line, in the words of the table rather than of its encoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.explain import Push, path
from crisptree.tables.preprocessing import Preprocessing

MOST_PUSHES = 12
"""Pushes that are looked through for one to the side that the row takes."""


def path_text(model: Any, row: npt.NDArray[np.float32], preprocessing: Preprocessing) -> str:
    """The splits on a row's path, and what did most to send it there."""
    explained = path(model, row, top=MOST_PUSHES)
    parts = []
    for step in explained.steps:
        turn = f"split {step.split} {'right' if step.goes_right else 'left'}"
        with_it = [push for push in step.pushes if push.amount != 0 and (push.amount > 0) == step.goes_right]
        parts.append(f"{turn} ({push_text(with_it[0], preprocessing)})" if with_it else turn)
    return "; ".join([*parts, f"leaf {explained.leaf}: {explained.predicted}"])


def push_text(push: Push, preprocessing: Preprocessing) -> str:
    """What a feature says about the row.

    Examples
    --------
    >>> from crisptree.tables.preprocessing import Column
    >>> columns = (Column("age", "number", mean=40.0, missing=True), Column("sex", "category", categories=("f", "m")))
    >>> said = [push_text(Push(j, "", value, 1.0), Preprocessing(columns)) for j, value in enumerate([40, 1, 0, 1])]
    >>> said
    ['age = 40', 'age is missing', 'sex is not f', 'sex is m']
    """
    origin = int(preprocessing.origin[push.feature])
    column = preprocessing.columns[origin]
    place = push.feature - int(np.searchsorted(preprocessing.origin, origin))
    if column.kind == "category" and place < len(column.categories):
        return f"{column.name} is {'' if push.value else 'not '}{column.categories[place]}"
    if place > 0 or column.kind == "category":
        return f"{column.name} is {'' if push.value else 'not '}missing"
    if column.kind == "boolean" and push.value in (0, 1):
        return f"{column.name} is {'true' if push.value else 'false'}"
    return f"{column.name} = {push.value:.6g}"
