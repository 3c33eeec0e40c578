"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from crisptree.tables.errors import TableError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary name in the same folder, with the same ending; it takes the file's place when all went well."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def check_output(path: Path, endings: Sequence[str], option: str = "-o") -> Path:
    """Refuse a place that cannot be written to before any work is done."""
    if endings and path.suffix.lower() not in endings:
        raise typer.BadParameter(f"{option} must end in {' or '.join(endings)}; got {str(path)!r}.")
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise TableError(f"there is no folder {path.parent} for {path.name}. Make it first.")
    if not os.access(path.parent, os.W_OK):
        raise TableError(f"the folder {path.parent} cannot be written to.")
    return path


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
