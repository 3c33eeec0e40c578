"""Files of text, plain or compressed."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from crisptree.tables.errors import TableError
from crisptree.tables.source import Source

UNPACK: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


class TextSource(Source):
    """Rows in a file of text."""

    raw: IO[bytes] | None = None

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """The text as bytes, without its compression."""
        unpack = UNPACK.get(self.path.suffix.lower())
        try:
            with self.path.open("rb") as self.raw:
                yield self.raw if unpack is None else unpack(self.raw)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            if unpack is None or getattr(error, "errno", None) is not None:
                raise
            raise TableError(f"{self.path} is damaged or not a {self.path.suffix} file ({error}).") from error
        finally:
            self.raw = None

    def fraction_read(self) -> float | None:
        """Bytes read of the file's bytes."""
        return min(1.0, self.raw.tell() / max(1, self.path.stat().st_size)) if self.raw else None
