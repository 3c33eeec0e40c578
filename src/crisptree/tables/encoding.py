"""Batches of a table as rows of float32 features, by a stored preprocessing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from crisptree.remedies import Remedy
from crisptree.tables.errors import TableError, counted, listed, meant
from crisptree.tables.preprocessing import Column, Preprocessing
from crisptree.tables.source import Source
from crisptree.tables.values import Values, booleans, first_row, number_mask, numbers, texts, values_of

Rows = npt.NDArray[np.float32]


class Encoder:
    """Applies a preprocessing to one file, and counts what training did not know.

    Parameters
    ----------
    preprocessing : Preprocessing
        What the model file holds.
    source : Source
        The file.
    without : collection of str
        Columns that are no features, where columns are found by their place.
    missing : collection of str
        More texts that mean a missing value.
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
        self.unknown: dict[str, Counter[str]] = {}
        self.filled: Counter[str] = Counter()

    def encode(self, batch: pa.RecordBatch, start: int) -> Rows:
        """The rows of a batch whose first one is row ``start`` of the file, counted from 0.  (n, n_features)"""
        X = np.zeros((batch.num_rows, self.preprocessing.n_features), dtype=np.float32)
        place = 0
        for name, column in zip(self.names, self.preprocessing.columns, strict=True):
            width = len(column.features)
            values = values_of(batch.column(name), name, self.missing)
            part = X[:, place : place + width]
            if column.kind == "category":
                self._encode_category(column, values, part)
            else:
                self._encode_number(column, values, part, start)
            if column.missing:
                part[~values.present, -1] = 1
            place += width
        return X

    def rows(self, on_batch: Callable[[], Any] = lambda: None) -> Rows:
        """All rows of the file at once.  (n, n_features)"""
        blocks = [np.zeros((0, self.preprocessing.n_features), dtype=np.float32)]
        for batch in self.source.batches(self.names):
            blocks.append(self.encode(batch, self.source.n_read))
            on_batch()
        return np.concatenate(blocks)

    def notes(self) -> Iterator[str]:
        """What the user should know about the rows so far."""
        for name, counts in self.unknown.items():
            unknown = counted(sum(counts.values()), "value")
            yield (
                f"column {name!r}: {unknown} that training did not know ({listed(counts, 5)}); all its features are 0 "
                "there."
            )
        for name, count in self.filled.items():
            yield f"column {name!r}: {counted(count, 'missing value')}, none in training; {self._replacement(name)}"

    def _replacement(self, name: str) -> str:
        column = next(column for column in self.preprocessing.columns if column.name == name)
        return (
            "all its features are 0 there." if column.kind == "category" else f"the mean {column.mean:.6g} stands in."
        )

    def _encode_number(self, column: Column, values: Values, part: Rows, start: int) -> None:
        found = booleans(values) if column.kind == "boolean" else None
        if found is None:
            found = numbers(values)
        if found is None:
            raise self._not_a_number(column, values, start)
        missing = ~values.present
        if missing.any():
            if np.isnan(column.mean):
                raise TableError(
                    f"{self._shown(column)} must have a number in every row, because the model keeps nothing to fill a "
                    f"missing one with; row {start + int(missing.argmax()) + 1} has none."
                )
            part[missing, 0] = column.mean
            if not column.missing:
                self.filled[column.name] += int(missing.sum())
        with np.errstate(over="ignore"):
            part[values.present, 0] = found
        not_finite = ~np.isfinite(part[:, 0])
        if not_finite.any():
            raise TableError(
                f"{self._shown(column)} must hold finite numbers that single precision can hold; "
                f"row {start + int(not_finite.argmax()) + 1} does not."
            )

    def _not_a_number(self, column: Column, values: Values, start: int) -> TableError:
        if values.kind != "text":
            return TableError(f"{self._shown(column)} must hold numbers, as in training; it holds dates.")
        mask = number_mask(values)
        value = values.array[int(np.argmin(mask))].as_py()
        what = "true or false" if column.kind == "boolean" else "numbers"
        missing = Remedy("missing", [value])
        return TableError(
            f"{self._shown(column)} must hold {what}, as in training; row {first_row(~mask, values, start)} has "
            f"{value!r}. If that means a missing value, say {missing}.",
            missing,
        )

    def _shown(self, column: Column) -> str:
        return f"{self.source.path}: column {column.name!r}"

    def _encode_category(self, column: Column, values: Values, part: Rows) -> None:
        found = texts(values)
        places = pc.index_in(found, pa.array(column.categories, pa.string()))
        known = np.asarray(pc.is_valid(places).to_numpy(zero_copy_only=False), dtype=bool)
        part[values.where[known], np.asarray(places.drop_null().to_numpy(zero_copy_only=False), dtype=np.int64)] = 1
        if not known.all():
            counts = self.unknown.setdefault(column.name, Counter())
            for entry in found.filter(pa.array(~known)).value_counts().to_pylist():
                # A column of ids would otherwise be kept whole.
                counts[entry["values"] if entry["values"] in counts or len(counts) < 1000 else "…"] += entry["counts"]
        missing = int((~values.present).sum())
        if missing and not column.missing:
            self.filled[column.name] += missing


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
        what = "columns by name" if preprocessing.named else "features by their place"
        drop = Remedy("drop", ["NAME"])
        raise TableError(
            f"{source.path} must have {len(wanted)} features; it has {len(given)}. The model takes {what}"
            + ("." if preprocessing.named else f"; leave out what is none with {drop}."),
            drop,
        )
    return given
