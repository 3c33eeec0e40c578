"""Batches of a table as rows of float32 features, by a stored preprocessing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from crisptree import limits
from crisptree.files import checked_size, reading
from crisptree.tables.errors import TableError, counted, listed, meant
from crisptree.tables.number_texts import hint
from crisptree.tables.preprocessing import Column, Preprocessing
from crisptree.tables.source import Source
from crisptree.tables.values import Values, values_of

Rows = npt.NDArray[np.float32]


class Encoder:
    """Applies a preprocessing to one file, and counts what training did not know.

    ``without`` are columns that are no features, where columns are found by their place; ``missing`` are more texts
    that mean a missing value.
    """

    def __init__(
        self,
        preprocessing: Preprocessing,
        source: Source,
        *,
        without: Collection[str] = (),
        missing: Collection[str] = (),
    ) -> None:
        self.preprocessing, self.source = preprocessing, source
        self.missing = {*preprocessing.missing, *missing}
        self.names = _matched(preprocessing, source, without)
        self.unknown: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.filled: Counter[str] = Counter()

    def encode(self, batch: pa.RecordBatch, start: int) -> Rows:
        """The rows of a batch whose first one is row ``start`` of the file, counted from 0.  (n, n_features)"""
        X = np.zeros((batch.num_rows, self.preprocessing.n_features), dtype=np.float32)
        place = 0
        for name, column in zip(self.names, self.preprocessing.columns, strict=True):
            width = len(column.features)
            values = values_of(batch.column(name), name, self.missing, self.source.written)
            part = X[:, place : place + width]
            if column.kind == "category":
                self._encode_category(column, values, part)
            else:
                self._encode_number(column, values, part, start)
            if column.missing:
                part[~values.present, -1] = 1
            elif not values.present.all():
                self.filled[column.name] += int((~values.present).sum())
            place += width
        return X

    def rows(self, on_batch: Callable[[], Any] = lambda: None) -> Rows:
        """All rows of the file at once.  (n, n_features)"""
        size, most, width = checked_size(self.source.path), limits.current(), self.preprocessing.n_features
        blocks = [np.zeros((0, width), dtype=np.float32)]
        with reading(self.source.path, TableError, self.source.kind):
            for batch in self.source.batches(self.names):
                n_rows = self.source.n_read + batch.num_rows
                most.check_unpacked(4 * n_rows * width, size, f"becomes {n_rows:,} rows × {width:,} features")
                blocks.append(self.encode(batch, self.source.n_read))
                on_batch()
        return np.concatenate(blocks)

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
            raise TableError(f"{shown} must hold numbers, as in training; it holds dates.")
        if found is None:
            row, value = values.first(~values.number_mask(), start)
            what = "true or false" if column.kind == "boolean" else "numbers"
            how = hint(value, values.written) or f"If that means a missing value, say `missing={[value]}`."
            raise TableError(f"{shown} must hold {what}, as in training; row {row} has {value!r}. {how}")
        missing = ~values.present
        if missing.any() and np.isnan(column.mean):
            raise TableError(
                f"{shown} must have a number in every row, because the model keeps nothing to fill a missing one with; "
                f"row {start + int(missing.argmax()) + 1} has none."
            )
        with np.errstate(over="ignore"):
            part[missing, 0], part[values.present, 0] = column.mean, found
        not_finite = ~np.isfinite(part[:, 0])
        if not_finite.any():
            raise TableError(
                f"{shown} must hold finite numbers that single precision can hold; "
                f"row {start + int(not_finite.argmax()) + 1} does not."
            )

    def _encode_category(self, column: Column, values: Values, part: Rows) -> None:
        found = values.texts()
        places = pc.index_in(found, pa.array(column.categories, pa.string()))
        known = np.asarray(pc.is_valid(places).to_numpy(zero_copy_only=False), dtype=bool)
        part[values.where[known], np.asarray(places.drop_null().to_numpy(zero_copy_only=False), dtype=np.int64)] = 1
        for entry in found.filter(pa.array(~known)).value_counts().to_pylist():
            counts = self.unknown[column.name]
            # A column of ids would otherwise be kept whole.
            counts[entry["values"] if entry["values"] in counts or len(counts) < 1000 else "…"] += entry["counts"]


def unused(preprocessing: Preprocessing, source: Source) -> list[str]:
    """Columns of the file that are neither used nor were known in training."""
    if not preprocessing.named or source.matrix:
        return []
    known = {column.name for column in preprocessing.columns} | set(preprocessing.left_out) | {preprocessing.target}
    return [name for name in source.names if name not in known]


def _matched(preprocessing: Preprocessing, source: Source, without: Collection[str]) -> list[str]:
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
