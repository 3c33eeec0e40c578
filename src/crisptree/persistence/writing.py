"""Files that are there whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path


@contextmanager
def written_whole(path: str | PathLike[str]) -> Iterator[Path]:
    """A temporary name in the same folder, with the same ending; it takes the file's place when all went well.

    Otherwise, on an interrupt too, an earlier file stays as it was and nothing else is left behind. A pipe or a device
    cannot be replaced; there the name is that of the file itself.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_whole(Path(folder) / "notes.txt") as temporary:
    ...         _ = temporary.write_text("all of it")
    ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
    [('notes.txt', 'all of it')]
    """
    target = Path(path)
    if target.exists() and not (target.is_file() or target.is_dir()):
        yield target
        return
    temporary = target.parent / f".{target.stem}.{secrets.token_hex(4)}{target.suffix}"
    temporary.touch(exist_ok=False)  # as any new file: its permissions are those that the umask leaves
    try:
        yield temporary
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
