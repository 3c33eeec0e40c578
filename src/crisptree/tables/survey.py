"""What the columns of a training table hold, found in one pass; the result is a ``Preprocessing``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.files import reading
from crisptree.tables.column_survey import MAX_CATEGORIES, Choices, ColumnSurvey
from crisptree.tables.errors import RefusedColumns, TableError, listed
from crisptree.tables.preprocessing import MISSING, Column, Preprocessing
from crisptree.tables.table import AnyTable
from crisptree.tables.values import Doubles, values_of

__all__ = ["MAX_CATEGORIES", "Choices", "Survey", "survey"]

LEFT_OUT = {"constant": "constant", "no values": "without any value"}
"""Why a column is left out, and how a note says so."""


class Survey:
    """What was seen of a table so far, piece by piece; ``features`` are the columns that may be used."""

    def __init__(self, source: AnyTable, features: list[str], choices: Choices) -> None:
        self.source, self.choices = source, choices
        self.missing = tuple(dict.fromkeys([*MISSING, *choices.missing]))
        self.seen = {name: ColumnSurvey(name, source, choices) for name in features}

    def add(
        self, batch: Any, start: int, rows: npt.NDArray[np.bool_] | None = None, weights: Doubles | None = None
    ) -> None:
        """Look at a piece whose first row is row ``start``; ``rows`` marks those to learn from, None for all.

        ``weights`` are what its rows weigh in the means that stand in for missing numbers.
        """
        for name, what in self.seen.items():
            try:
                values = values_of(batch.column(name), name, self.missing, self.source.written)
            except TableError as error:
                what.refusal = what.refusal or TableError(f"{self.source.path}: {error}")
                continue
            what.add(values if rows is None else values.only(rows), start, weights)

    def preprocessing(self, target: str | None = None) -> tuple[Preprocessing, list[str]]:
        """The preprocessing that the table needs, and what its owner should know; or all that cannot be used."""
        source, left_out = self.source, dict.fromkeys(self.choices.drop, "dropped")
        if self.choices.id is not None:
            left_out[self.choices.id] = "the id"
        columns: list[Column] = []
        notes: list[str] = []
        refused: dict[str, str] = {}
        for name, what in self.seen.items():
            try:
                column = what.column()
            except TableError as error:
                refused[name] = str(error)
                continue
            if isinstance(column, str):
                left_out[name] = column
                continue
            columns.append(column)
            notes.extend(what.notes(column))
        if refused:
            raise RefusedColumns(source.path, refused, can_be_dropped=not (source.matrix or source.kind == "table"))
        if not columns:
            reasons = [f"{name!r} {'has' if why == 'no values' else 'is'} {why}" for name, why in left_out.items()]
            reason = ", ".join(reasons) or "it has none"
            raise TableError(f"{source.path} must have at least one column to learn from; {reason}.")
        inputs = tuple(name for name in source.names if name in self.seen or name in left_out)
        preprocessing = Preprocessing(
            tuple(columns),
            not source.matrix,
            self.missing,
            target,
            left_out,
            inputs,
            source.written,
            self.choices.id,
        )
        twice = [name for name, count in Counter(preprocessing.feature_names).items() if count > 1]
        if twice:
            raise TableError(f"{source.path} has columns whose features would share the name {twice[0]!r}. Rename one.")
        for why, said in LEFT_OUT.items():
            if names := [name for name, reason in left_out.items() if reason == why]:
                notes.append(f"left out, {said}: {listed(names)}.")
        if incomplete := [column.name for column in columns if column.missing]:
            notes.append(f"missing values in {listed(incomplete)}: each gets one more feature that tells where.")
        return replace(preprocessing, notes=tuple(notes)), notes


def survey(
    source: AnyTable,
    features: list[str],
    choices: Choices,
    *,
    target: str | None = None,
    rows: npt.NDArray[np.bool_] | None = None,
    weights: Doubles | None = None,
    on_batch: Callable[[], Any] = lambda: None,
) -> tuple[Preprocessing, list[str]]:
    """The preprocessing that a training table needs, and what its owner should know.

    ``features`` are the columns that may be used, ``rows`` marks the rows to learn from (None for all), ``weights`` are
    what all rows weigh, ``target`` is kept for later, and ``on_batch`` is called after every piece.
    """
    seen = Survey(source, features, choices)
    with reading(source.path, TableError, source.kind):
        for batch in source.batches(features):
            start = source.n_read
            piece = slice(start, start + batch.num_rows)
            kept = None if rows is None else rows[piece]
            seen.add(batch, start + source.first_row, kept, None if weights is None else weights[piece])
            on_batch()
    return seen.preprocessing(target)
