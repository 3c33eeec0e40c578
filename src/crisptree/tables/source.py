"""A file of rows, read in pieces of a fixed size, as often as needed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from crisptree import limits
from crisptree.files import PIECE, Bounded, checked_size, reading
from crisptree.tables.errors import TableError, listed, meant
from crisptree.tables.number_texts import PLAIN
from crisptree.tables.table import FEWEST_ROWS, MOST_ROWS, VALUES_AT_ONCE
from crisptree.tables.transcoding import Transcoded

UNPACK: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


class Source(ABC):
    """Rows in a file. What differs between formats is how the names and the raw batches are found.

    The first ``matrix`` columns are features without names of their own (.npz, LIBSVM; else 0); ``target`` is the
    column of labels and ``image_shape`` the shape of a row that is an image, where the format has a place for them;
    ``written`` says how numbers are written where they are text.
    """

    matrix = 0
    target: str | None = None
    image_shape: tuple[int, ...] | None = None
    n_read = 0
    first_row = 1  # people count the lines of a file from 1
    written = PLAIN

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self.path, self.names = path, tuple(names)
        check_columns(len(self.names) - 1)
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise TableError(f"{path} has two columns named {twice[0]!r}. Give every column a name of its own.")

    @property
    def kind(self) -> str:
        """What the file is called where it is damaged."""
        return f"{self.path.suffix} file"

    @abstractmethod
    def raw_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Batches of any size with the columns, in any order."""

    @abstractmethod
    def fraction_read(self) -> float | None:
        """How much of the file the latest pass has read, from 0 to 1; None where that is not known."""

    def batches(self, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
        """One pass over the rows. The size of the pieces depends on the number of columns alone.

        So a sum over pieces is the same, bit for bit, for a table in one format or another.
        """
        wanted = set(columns)
        order = [name for name in self.names if name in wanted]
        rows = max(FEWEST_ROWS, min(MOST_ROWS, VALUES_AT_ONCE // max(1, len(order))))
        self.n_read = 0
        with reading(self.path, TableError, self.kind):
            for batch in _pieces_of_equal_size(self.raw_batches(order), rows):
                yield batch.select(order)
                self.n_read += batch.num_rows

    def column(self, name: str, option: str) -> str:
        """A column's name, if there is such a column."""
        if name not in self.names:
            has = listed(self.names) if not self.matrix else listed(self.names[self.matrix :]) or "no labels"
            raise TableError(f"{self.path} has no column {name!r} ({option}); it has {has}.{meant(name, self.names)}")
        return name

    def columns(self, given: Iterable[str], option: str) -> list[str]:
        """The columns that words name, each of them a column or several with commas between them."""
        names: dict[str, None] = {}
        for word in given:
            for name in [word] if word in self.names or "," not in word else word.split(","):
                names[self.column(name if name in self.names else name.strip(), option)] = None
        return list(names)

    def features(self, without: Collection[str]) -> list[str]:
        """The columns that may be features: all but some, or those of the matrix."""
        names, others = self.names[: self.matrix] if self.matrix else self.names, set(without)
        return [name for name in names if name not in others]


def check_columns(n_columns: int) -> None:
    """Every column takes memory of its own; a matrix of hashed words, say, has columns that hold next to nothing."""
    limits.current().check("columns", n_columns, f"has {n_columns:,} columns, each of which takes memory of its own")


class TextSource(Source):
    """Rows in a file of text, plain or compressed; ``encoding`` is None for UTF-8."""

    raw: IO[bytes] | None = None
    encoding: str | None = None

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """The text as bytes in UTF-8, without its compression, which may not become more than the limits say."""
        unpack, size = UNPACK.get(self.path.suffix.lower()), checked_size(self.path)
        try:
            with self.path.open("rb") as self.raw:
                text: Any = self.raw if unpack is None else io.BufferedReader(Bounded(unpack(self.raw), size), PIECE)
                yield text if self.encoding is None else io.BufferedReader(Transcoded(text, self.encoding), PIECE)
        finally:
            self.raw = None

    def fraction_read(self) -> float | None:
        return min(1.0, self.raw.tell() / max(1, self.path.stat().st_size)) if self.raw else None


def _pieces_of_equal_size(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same rows in pieces of ``rows``, the last one smaller."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        count += batch.num_rows
        if count < rows:
            continue
        table = pa.Table.from_batches(waiting)
        while count >= rows:
            yield from table.slice(0, rows).combine_chunks().to_batches()
            table, count = table.slice(rows), count - rows
        waiting = table.to_batches()
    if count:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
