"""Files whose columns have names: CSV and TSV, plain or compressed, and Parquet.

Every value of a text file is read as text; what it means is decided in one place, later.
"""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from crisptree import limits
from crisptree.files import checked_size
from crisptree.tables.errors import TableError
from crisptree.tables.source import Source, TextSource
from crisptree.tables.table import MOST_ROWS
from crisptree.tables.transcoding import Transcoded, text_encoding

BLOCK = 2**20
"""Bytes that are parsed at a time; Arrow reads 32 such blocks ahead. No row may be longer, so wide tables take more."""

BLOCK_PER_HEADER = 16

DELIMITERS = {".csv": ",", ".tsv": "\t"}


class Delimited(TextSource):
    """A text file with a header and a value per column in every line."""

    def __init__(self, path: Path, delimiter: str, encoding: str | None = None) -> None:
        self.path, self.delimiter = path, delimiter
        self.encoding = None if encoding is None else text_encoding(encoding)
        try:
            with self.opened() as file:
                names = _header(file, path, delimiter)
        except UnicodeDecodeError:
            self._find_what_is_no_text()
            raise
        others = [other for other in ";,\t|" if other in names[0]]
        if len(names) == 1 and others:
            raise TableError(
                f"{path} must have its columns separated by {delimiter!r}; its header is {names[0][:60]!r}. "
                f"Say `delimiter={others[0]!r}`."
            )
        self.block = max(BLOCK, BLOCK_PER_HEADER * sum(len(name.encode()) + 1 for name in names))
        super().__init__(path, names)

    def raw_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        read = arrow_csv.ReadOptions(block_size=self.block, use_threads=False)
        several = len(self.names) > 1  # in a table of one column an empty line is a missing value, not nothing
        parse = arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, ignore_empty_lines=several)
        as_text = dict.fromkeys(columns, pa.string())
        convert = arrow_csv.ConvertOptions(column_types=as_text, include_columns=columns, strings_can_be_null=False)
        try:
            with self.opened() as file:
                yield from arrow_csv.open_csv(file, read, parse, convert)
        except pa.ArrowInvalid as error:
            if "UTF8" in str(error):
                self._find_what_is_no_text()
            raise TableError(f"{self.path} {_reason(str(error))}") from error

    def _find_what_is_no_text(self) -> None:
        """Raise the error that names the line; Arrow names none, and most tables need not be decoded twice."""
        with self.opened() as file:
            text = Transcoded(file, "utf-8")
            while text.read(BLOCK):
                pass


class Parquet(Source):
    """A Parquet file, a batch of rows at a time and only the columns that are needed."""

    def __init__(self, path: Path) -> None:
        size = checked_size(path)
        with pq.ParquetFile(path) as file:
            names, self.n_rows = file.schema_arrow.names, file.metadata.num_rows
            groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
        claims = f"says that it holds {self.n_rows:,} rows × {len(names):,} columns"
        limits.current().check_unpacked(4 * self.n_rows * len(names), size, claims)
        unpacked = sum(group.total_byte_size for group in groups)
        limits.current().check_unpacked(unpacked, size, f"says that it unpacks to {unpacked:,} bytes")
        super().__init__(path, names)

    def raw_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(self.path) as file:
            yield from file.iter_batches(min(MOST_ROWS, 2**20 // max(1, len(columns)) + 1), columns=columns)

    def fraction_read(self) -> float | None:
        return self.n_read / max(1, self.n_rows)


def _header(file: Any, path: Path, delimiter: str) -> list[str]:
    """The names in the first line. Arrow would read far ahead for them."""
    try:
        return next(line for line in csv.reader(_lines(file), delimiter=delimiter) if line)
    except StopIteration:
        raise TableError(f"{path} is empty; the first line of a table must name its columns.") from None
    except csv.Error as error:
        raise TableError(f"{path} cannot be read as a table: {error}.") from error


def _lines(file: Any) -> Iterator[str]:
    """The lines of a file, none of them longer than the limits say."""
    most = limits.current()
    begin = codecs.BOM_UTF8
    while line := file.readline(most.line_bytes + 1):
        for part in line.removeprefix(begin).splitlines(keepends=True):  # which may end in a carriage return alone
            most.check("line_bytes", len(part), f"begins with a line of more than {most.line_bytes:,} bytes")
            yield part.decode("utf-8")
        begin = b""


def _reason(message: str) -> str:
    if "straddl" in message or "block" in message:
        return "has a line that is far longer than its header, or a quotation mark that is never closed."
    return f"cannot be read as a table: {message.removeprefix('CSV parse error: ')}"
