"""The columns of a table as plain values, understood as the encoder understands them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from crisptree.tables.number_texts import PLAIN, NumberTexts
from crisptree.tables.preprocessing import Preprocessing
from crisptree.tables.values import values_of


def plain_columns(
    preprocessing: Preprocessing,
    names: Sequence[str],
    batch: Any,
    missing: Collection[str],
    written: NumberTexts = PLAIN,
) -> dict[str, list[Any]]:
    """Numbers, booleans and text, None where a value is missing; by the columns of training, found under ``names``.

    Examples
    --------
    >>> from crisptree.tables.preprocessing import Column
    >>> from crisptree.tables.table import table_of
    >>> columns = (Column("age", "number"), Column("plan", "category", categories=("1", "gold")))
    >>> table = table_of({"age": ["41", ""], "plan": ["1.0", " gold "]})
    >>> plain_columns(Preprocessing(columns), ["age", "plan"], table, ("",))
    {'age': [41.0, None], 'plan': ['1', 'gold']}
    """
    found = {}
    for name, column in zip(names, preprocessing.columns, strict=True):
        values = values_of(batch.column(name), name, missing, written)
        cells: list[Any] = [None] * len(values.present)
        present: Sequence[Any]
        if column.kind == "category":
            places, _ = values.places(column.categories)
            known = enumerate(places.tolist())
            present = [column.categories[place] if place >= 0 else str(values.value(at)) for at, place in known]
        else:
            numbers = values.booleans() if column.kind == "boolean" else values.numbers()
            numbers = values.numbers() if numbers is None else numbers
            present = [] if numbers is None else numbers.tolist()
            if column.kind == "boolean":
                present = [bool(value) if value in (0, 1) else value for value in present]
        for row, value in zip(values.where.tolist(), present, strict=True):
            cells[row] = value
        found[column.name] = cells
    return found
