"""Parquet, a batch of rows at a time and only the columns that are needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from crisptree.tables.errors import TableError
from crisptree.tables.source import MOST_ROWS, Source


class Parquet(Source):
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        try:
            with pq.ParquetFile(path) as file:
                names, self.n_rows = file.schema_arrow.names, file.metadata.num_rows
        except pa.ArrowException as error:
            raise TableError(f"{path} is damaged or not a Parquet file ({error}).") from error
        super().__init__(path, names)

    def raw_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Batches of the file's own size or less."""
        try:
            with pq.ParquetFile(self.path) as file:
                yield from file.iter_batches(min(MOST_ROWS, 2**20 // max(1, len(columns)) + 1), columns=columns)
        except pa.ArrowException as error:
            raise TableError(f"{self.path} is damaged ({error}).") from error

    def fraction_read(self) -> float | None:
        """Rows read of all rows."""
        return self.n_read / max(1, self.n_rows)
