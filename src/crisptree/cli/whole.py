"""Places that commands write to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import typer

from crisptree.tables.errors import TableError


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
