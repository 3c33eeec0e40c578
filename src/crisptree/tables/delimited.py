"""CSV and TSV, plain or compressed. Every value is read as text; what it means is decided in one place, later."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from crisptree.tables.errors import TableError
from crisptree.tables.source import Source

UNPACK: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
BLOCK = 2**20
"""Bytes that are parsed at a time; Arrow reads 32 such blocks ahead. No row may be longer, so wide tables take more."""

BLOCK_PER_HEADER = 16

NOT_UTF8 = "must be UTF-8 text; it is not. Save it as UTF-8."

DELIMITERS = {".csv": ",", ".tsv": "\t"}


class Delimited(Source):
    """A text file with a header and a value per column in every line."""

    def __init__(self, path: Path, delimiter: str) -> None:
        self.delimiter = delimiter
        self.position: Callable[[], int] | None = None
        with _readable(path), _open(path) as (file, _):
            names = _header(file, path, delimiter)
        if len(names) == 1 and any(other in names[0] for other in ";,\t|"):
            other = next(other for other in ";,\t|" if other in names[0])
            raise TableError(
                f"{path} must have its columns separated by {delimiter!r}; its header is {names[0][:60]!r}. "
                f"Say --delimiter {other!r}."
            )
        self.block = max(BLOCK, BLOCK_PER_HEADER * sum(len(name.encode()) + 1 for name in names))
        super().__init__(path, names)

    def raw_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Blocks of text."""
        with _readable(self.path), _open(self.path) as (file, raw):
            self.position = raw.tell
            try:
                yield from self._reader(file, columns)
            finally:
                self.position = None

    def fraction_read(self) -> float | None:
        """Bytes read of the file's bytes."""
        return min(1.0, self.position() / max(1, self.path.stat().st_size)) if self.position else None

    def _reader(self, file: Any, columns: list[str]) -> Any:
        return arrow_csv.open_csv(
            file,
            read_options=arrow_csv.ReadOptions(block_size=self.block, use_threads=False),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self.delimiter,
                newlines_in_values=True,
                # In a table of one column an empty line is a missing value, not nothing.
                ignore_empty_lines=len(self.names) > 1,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(columns, pa.string()), include_columns=columns, strings_can_be_null=False
            ),
        )


def _header(file: Any, path: Path, delimiter: str) -> list[str]:
    """The names in the first line. Arrow would read far ahead for them."""
    text = io.TextIOWrapper(file, "utf-8-sig", newline="")
    try:
        return next(line for line in csv.reader(text, delimiter=delimiter) if line)
    except StopIteration:
        raise TableError(f"{path} is empty; the first line of a table must name its columns.") from None
    except UnicodeDecodeError:
        raise TableError(f"{path} {NOT_UTF8}") from None
    except csv.Error as error:
        raise TableError(f"{path} cannot be read as a table: {error}.") from error
    finally:
        text.detach()  # the file is closed by whoever opened it


@contextmanager
def _open(path: Path) -> Iterator[tuple[Any, IO[bytes]]]:
    """The text of a file, and the file itself, whose position tells how much has been read."""
    with path.open("rb") as raw:
        unpack = UNPACK.get(path.suffix.lower())
        yield (raw if unpack is None else unpack(raw)), raw


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except pa.ArrowInvalid as error:
        raise TableError(f"{path} {_reason(str(error))}") from error
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise TableError(f"{path} is damaged or not a {path.suffix} file ({error}).") from error
    except OSError as error:
        if error.errno is not None or path.suffix not in UNPACK:
            raise
        raise TableError(f"{path} is damaged or not a {path.suffix} file ({error}).") from error


def _reason(said: str) -> str:
    if "UTF8" in said:
        return NOT_UTF8
    if "straddl" in said or "block" in said:
        return "has a line that is far longer than its header, or a quotation mark that is never closed."
    return f"cannot be read as a table: {said.removeprefix('CSV parse error: ')}"
