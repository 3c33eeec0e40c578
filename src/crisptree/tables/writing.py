"""Tables that are written as they come, a piece at a time: CSV, TSV, Parquet; .npz is kept until the end."""

from __future__ import annotations

import re
import zipfile
from abc import ABC, abstractmethod
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from crisptree.tables.errors import TableError
from crisptree.tables.values import NUMBER

Columns = dict[str, Any]

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What begins a cell that spreadsheets compute instead of showing it."""


class TableWriter(ABC):
    """Takes pieces of a table, all with the same columns; ``close`` ends the file but leaves the handle open.

    With ``guard``, text that a spreadsheet would take for a formula gets an apostrophe before it, in files of text.
    """

    def __init__(self, file: BinaryIO, guard: bool = False) -> None:
        self.file, self.guard = file, guard

    @abstractmethod
    def write(self, columns: Columns) -> None:
        """Add rows: NumPy or pyarrow arrays of one length by the names of the columns."""

    @abstractmethod
    def close(self) -> None:
        """Write what is still to be written."""


class ArrowWriter(TableWriter):
    """A writer of pyarrow, made when the first piece says what the columns are: Parquet, one row group per piece."""

    writer: Any = None

    def opened(self, schema: pa.Schema) -> Any:
        return pq.ParquetWriter(self.file, schema)

    def write(self, columns: Columns) -> None:
        arrays = [values if isinstance(values, pa.Array) else pa.array(values) for values in columns.values()]
        table = pa.Table.from_arrays(arrays, names=list(columns))
        if self.writer is None:
            self.writer = self.opened(table.schema)
        self.writer.write_table(table)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


class DelimitedWriter(ArrowWriter):
    """Text with a header."""

    delimiter = ","

    def opened(self, schema: pa.Schema) -> Any:
        return arrow_csv.CSVWriter(self.file, schema, write_options=arrow_csv.WriteOptions(delimiter=self.delimiter))

    def write(self, columns: Columns) -> None:
        _check_flat(columns)
        super().write(
            {_guarded(name): _guarded_values(values) for name, values in columns.items()} if self.guard else columns
        )


class TabWriter(DelimitedWriter):
    """Text with tabs."""

    delimiter = "\t"


class NpzWriter(TableWriter):
    """Arrays by name; they are all kept in memory."""

    def __init__(self, file: BinaryIO, guard: bool = False) -> None:
        super().__init__(file, guard)
        self.pieces: list[dict[str, npt.NDArray[Any]]] = []

    def write(self, columns: Columns) -> None:
        _check_flat(columns)
        self.pieces.append({name: _plain(values) for name, values in columns.items()})

    def close(self) -> None:
        with zipfile.ZipFile(self.file, "w", zipfile.ZIP_DEFLATED, allowZip64=True) as archive:
            for name in self.pieces[0]:
                # With a date of its own choice, so that the same columns give the same bytes.
                with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, np.concatenate([piece[name] for piece in self.pieces]))


WRITERS: dict[str, type[TableWriter]] = {
    ".csv": DelimitedWriter,
    ".tsv": TabWriter,
    ".parquet": ArrowWriter,
    ".npz": NpzWriter,
}


def _guarded(text: str) -> str:
    return "'" + text if text.startswith(FORMULA) else text


def _guarded_values(values: Any) -> Any:
    """Text with an apostrophe before what begins like a formula; numbers are none, even where a sign begins them."""
    if isinstance(values, pa.Array) and pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    array = values if isinstance(values, pa.Array) else pa.array(values)
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return values
    begins = pc.match_substring_regex(array, f"^[{re.escape(''.join(FORMULA))}]")
    runs = pc.and_(begins, pc.invert(pc.match_substring_regex(array, NUMBER)))
    return pc.if_else(runs, pc.binary_join_element_wise("'", array, ""), array)


def _check_flat(columns: Columns) -> None:
    """Text and arrays have one plain value per field."""
    for name, values in columns.items():
        if isinstance(values, pa.Array) and pa.types.is_nested(values.type):
            raise TableError(
                f"column {name!r} holds values of type {values.type}, which only a .parquet can keep. Write one, or do "
                "without this column."
            )


def _plain(values: Any) -> npt.NDArray[Any]:
    array = values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else np.asarray(values)
    if array.dtype.kind != "O":
        return array
    return np.array(["" if value is None else str(value) for value in array], dtype=str)
