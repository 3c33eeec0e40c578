"""Batches of a table as rows of float32 features, by a stored preprocessing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree import limits
from crisptree.files import checked_size, reading
from crisptree.tables.errors import RefusedColumns, TableError, counted, listed, meant
from crisptree.tables.number_texts import hint
from crisptree.tables.preprocessing import Column, Preprocessing
from crisptree.tables.table import AnyTable
from crisptree.tables.values import Values, values_of

Rows = npt.NDArray[np.float32]


class Encoder:
    """Applies a preprocessing to one table, and counts what training did not know.

    ``without`` are columns that are no features, where columns are found by their place; ``missing`` are more texts
    that mean a missing value. With ``fill``, the mean stands in for a value that is missing where none was in training;
    otherwise that is an error.
    """

    def __init__(
        self,
        preprocessing: Preprocessing,
        source: AnyTable,
        *,
        without: Collection[str] = (),
        missing: Collection[str] = (),
        fill: bool = True,
    ) -> None:
        self.preprocessing, self.source, self.fill = preprocessing, source, fill
        self.missing = {*preprocessing.missing, *missing}
        self.names = _matched(preprocessing, source, without)
        self.unknown: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.filled: Counter[str] = Counter()

    def encode(self, batch: Any, start: int) -> Rows:
        """The rows of a batch whose first one is row ``start`` of the table, counted from 0.  (n, n_features)"""
        start += self.source.first_row
        X = np.zeros((batch.num_rows, self.preprocessing.n_features), dtype=np.float32)
        place, refused = 0, {}
        for name, column in zip(self.names, self.preprocessing.columns, strict=True):
            width = len(column.features)
            try:
                self._encode_column(column, batch.column(name), X[:, place : place + width], start)
            except TableError as error:
                refused[column.name] = str(error)
            place += width
        if refused:
            raise RefusedColumns(self.source.path, refused)
        return X

    def _encode_column(self, column: Column, given: Any, part: Rows, start: int) -> None:
        values = values_of(given, column.name, self.missing, self.source.written)
        if not (self.fill or column.missing or values.present.all()):
            self._refuse_holes(column, values, start)
        if column.kind == "category":
            self._encode_category(column, values, part)
        else:
            self._encode_number(column, values, part, start)
        if column.missing:
            part[~values.present, -1] = 1
        elif not values.present.all():
            self.filled[column.name] += int((~values.present).sum())

    def rows(self, on_batch: Callable[[], Any] = lambda: None, wanted: npt.NDArray[np.bool_] | None = None) -> Rows:
        """All rows of the file at once, or those that are wanted: no others are held.  (n, n_features)"""
        size, most, width = checked_size(self.source.path), limits.current(), self.preprocessing.n_features
        blocks, n_rows, start = [np.zeros((0, width), dtype=np.float32)], 0, 0
        for block in self.blocks(on_batch):
            if wanted is not None:
                start, block = start + len(block), block[wanted[start : start + len(block)]]
            n_rows += len(block)
            most.check_unpacked(4 * n_rows * width, size, f"becomes {n_rows:,} rows × {width:,} features")
            blocks.append(block)
        return np.concatenate(blocks)

    def blocks(self, on_batch: Callable[[], Any] = lambda: None) -> Iterator[Rows]:
        """All rows of the file, some at a time."""
        with reading(self.source.path, TableError, self.source.kind):
            for batch in self.source.batches(self.names):
                yield self.encode(batch, self.source.n_read)
                on_batch()

    def notes(self) -> Iterator[str]:
        """What the user should know about the rows so far."""
        no_feature = "all its features are 0 there."
        for name, counts in self.unknown.items():
            unknown = counted(sum(counts.values()), "value")
            yield f"column {name!r}: {unknown} that training did not know ({listed(counts, 5)}); {no_feature}"
        for column in self.preprocessing.columns:
            if count := self.filled[column.name]:
                instead = no_feature if column.kind == "category" else f"the mean {column.mean:.6g} stands in."
                yield f"column {column.name!r}: {counted(count, 'missing value')}, none in training; {instead}"

    def _encode_number(self, column: Column, values: Values, part: Rows, start: int) -> None:
        shown = f"{self.source.path}: column {column.name!r}"
        found = values.booleans() if column.kind == "boolean" else None
        if found is None:
            found = values.numbers()
        if found is None and values.kind != "text":
            raise TableError(
                f"{shown} must hold numbers, as in training; it holds dates. Make the same numbers of them."
            )
        if found is None:
            row, value = values.first(~values.number_mask(), start)
            what = "true or false" if column.kind == "boolean" else "numbers"
            how = self._remedy(column, value)
            raise TableError(f"{shown} must hold {what}, as in training; row {row} has {value!r}. {how}")
        missing = ~values.present
        if missing.any() and np.isnan(column.mean):
            raise TableError(
                f"{shown} must have a number in every row, because the model keeps nothing to fill a missing one with; "
                f"row {start + int(missing.argmax())} has none."
            )
        with np.errstate(over="ignore", under="ignore"):
            if missing.any():
                part[missing, 0], part[values.present, 0] = column.mean, found
            else:
                part[:, 0] = found
        not_finite = ~np.isfinite(part[:, 0])
        if not_finite.any():
            raise TableError(
                f"{shown} must hold finite numbers that single precision can hold; "
                f"row {start + int(not_finite.argmax())} does not. Correct it, or leave the row out."
            )

    def _remedy(self, column: Column, value: str) -> str:
        """What to do about a text that is no number; a call of predict has no word for a missing value."""
        if self.source.kind != "table":
            return hint(value, self.source.written) or f"If that means a missing value, say `missing={[value]}`."
        can_be_missing = column.missing or self.fill
        missing = ", or put None in its place if it means a missing value" if can_be_missing else ""
        return f"Correct it{missing}, or leave the row out."

    def _encode_category(self, column: Column, values: Values, part: Rows) -> None:
        places, unknown = values.places(column.categories)
        if unknown:
            known = places >= 0
            part[values.where[known], places[known]] = 1
        else:
            part[values.where, places] = 1
        for text, count in unknown.items():
            counts = self.unknown[column.name]
            # A column of ids would otherwise be kept whole.
            counts[text if text in counts or len(counts) < 1000 else "…"] += count

    def _refuse_holes(self, column: Column, values: Values, start: int) -> None:
        raise TableError(
            f"{self.source.path}: column {column.name!r} must have a value in every row, because none was missing in "
            f"training; row {start + int(values.present.argmin())} has none. Fill it or leave the row out, or train "
            "with rows in which it is missing."
        )


def unused(preprocessing: Preprocessing, source: AnyTable) -> list[str]:
    """Columns of the file that are neither used nor were known in training."""
    if not preprocessing.named or source.matrix:
        return []
    known = {column.name for column in preprocessing.columns} | set(preprocessing.left_out) | {preprocessing.target}
    return [name for name in source.names if name not in known]


def _matched(preprocessing: Preprocessing, source: AnyTable, without: Collection[str]) -> list[str]:
    """The file's column for every column of the preprocessing."""
    wanted = [column.name for column in preprocessing.columns]
    if preprocessing.named and not source.matrix:
        there = set(source.names)
        lacking = [name for name in wanted if name not in there]
        if lacking:
            raise TableError(
                f"{source.path} must have all columns that the model was trained on; it has no {listed(lacking)}."
                f"{meant(lacking[0], unused(preprocessing, source))}"
            )
        return wanted
    given = source.features({*without, *([preprocessing.target] if preprocessing.target else [])})
    if len(given) != len(wanted):
        by_place = "features by their place; leave out what is none with `drop=['NAME']`"
        takes = "columns by name" if preprocessing.named else by_place
        raise TableError(
            f"{source.path} must have {len(wanted)} features; it has {len(given)}. The model takes {takes}."
        )
    return given
