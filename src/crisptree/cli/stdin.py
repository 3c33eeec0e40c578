"""A table that comes through a pipe: kept in a temporary file, since tables are read more than once."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from crisptree import limits
from crisptree.encoding.errors import TableError
from crisptree.files import PIECE

STDIN = Path("-")
ENDINGS = {
    b"PAR1": ".parquet",
    b"PK\x03\x04": ".npz",
    b"\x1f\x8b": ".csv.gz",
    b"BZh": ".csv.bz2",
    b"\xfd7zXZ\x00": ".csv.xz",
}
"""How files begin; what begins with none of these is text."""

LIBSVM = re.compile(rb"\S+([ \t]+\d+:[ \t]*[-+.\deE]+)+[ \t]*(\r?\n|#|$)")


@contextmanager
def on_disk(data: Path) -> Iterator[Path]:
    """The file, or a copy of what comes from stdin; errors then say stdin."""
    if data != STDIN:
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="crisptree-") as folder:
        try:
            path = _copied(Path(folder))
        except OSError as error:
            error.filename = error.filename or "stdin"
            raise
        try:
            yield path
        except (ValueError, typer.BadParameter) as error:
            error.args = tuple(_renamed(part, path) for part in error.args)
            if isinstance(error, typer.BadParameter):
                error.message = _renamed(error.message, path)
            raise


def _copied(folder: Path) -> Path:
    """All of stdin, as long as it is no larger than a file may be."""
    n_bytes, most, stream = 0, limits.current(), sys.stdin.buffer
    if sys.stdin.isatty():
        print("The table is read from the keyboard; end it as the end of a file is typed here.", file=sys.stderr)
    first = stream.read(PIECE)
    ending = next((ending for begin, ending in ENDINGS.items() if first.startswith(begin)), "")
    path = folder / f"stdin{ending or ('.libsvm' if LIBSVM.match(first) else '.csv')}"
    with path.open("wb") as file:
        piece = first
        while piece:
            n_bytes += len(piece)
            try:
                most.check("file_bytes", n_bytes, f"has more than {n_bytes - len(piece):,} bytes")
            except limits.LimitError as error:
                raise TableError(f"stdin {error}") from None
            file.write(piece)
            piece = stream.read(PIECE)
    return path


def _renamed(part: Any, path: Path) -> Any:
    return part.replace(str(path), "stdin") if isinstance(part, str) else part
