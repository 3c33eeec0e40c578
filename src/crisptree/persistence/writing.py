"""Atomic writing: a file is complete or not there at all, whatever happens in between."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

if sys.platform != "win32":
    import fcntl

LONGEST_ENDING = 16
"""Bytes of an ending that a temporary name keeps, for libraries that choose a format by it."""


@contextmanager
def atomic_write(path: str | PathLike[str]) -> Iterator[Path]:
    """Write to a temporary path in the same folder, which replaces the file if the block succeeds.

    On an error or interrupt an earlier file stays unchanged and no temporary file is left. A symbolic link stays, and
    its target is replaced. A file keeps its permissions, a new one gets those that the umask leaves. A pipe or a device
    is rejected. File and folder are synchronised to disk when the block is left.

    A killed process leaves its temporary file; the next one that writes to the same path removes it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "notes.txt") as temporary:
    ...         _ = temporary.write_text("all of it")
    ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
    [('notes.txt', 'all of it')]
    """
    target = Path(os.path.realpath(path))
    mode = _mode(target)
    prefix = f".crisptree-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]}-"
    _remove_stale(target.parent, prefix)
    temporary, held = _created(target, prefix, 0o666 if mode is None else 0o600)
    try:
        try:
            yield temporary
            if mode is not None:
                temporary.chmod(mode)
            os.fsync(held)
        finally:
            os.close(held)  # Windows renames no file that is open
        temporary.replace(target)
        _folder_to_disk(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _mode(target: Path) -> int | None:
    """The permissions of the file that is there, None where there is none."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "a pipe or a device cannot be replaced by a file; name a file", str(target))
    return stat.S_IMODE(mode) & 0o777


def _created(target: Path, prefix: str, mode: int) -> tuple[Path, int]:
    """A new file that nobody else has, and a handle that holds a lock on it for as long as it is written.

    The umask takes from its permissions; where a file is to be replaced, no other may read the new one even for a
    moment.
    """
    ending = target.suffix if len(os.fsencode(target.suffix)) <= LONGEST_ENDING else ""
    while True:
        temporary = target.parent / f"{prefix}{secrets.token_hex(4)}{ending}"
        held = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        if not _locked(held) or temporary.exists():
            return temporary, held
        os.close(held)  # taken for stale and removed in the moment before it was locked


def _remove_stale(folder: Path, prefix: str) -> None:
    """Remove temporary files of this target that nobody holds: their writers were killed."""
    with suppress(OSError):
        for left in folder.glob(f"{prefix}*"):
            with suppress(OSError):
                if sys.platform == "win32":  # nobody removes a file there that another has open
                    left.unlink()
                    continue
                held = os.open(left, os.O_RDONLY)
                try:
                    if _locked(held):
                        left.unlink()
                finally:
                    os.close(held)


def _locked(held: int) -> bool:
    """Lock a file for this handle; False where another holds it, or where the file system knows no locks."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _folder_to_disk(folder: Path) -> None:
    """So that the new name is there after the power fails; systems that cannot do that do it by themselves."""
    if sys.platform == "win32":
        return
    with suppress(OSError):
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(held)
        finally:
            os.close(held)
