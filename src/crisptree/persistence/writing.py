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
    temporary, lock = _create(target, prefix, 0o666 if mode is None else 0o600)
    try:
        yield temporary
        _flush(temporary, mode)
        temporary.replace(target)  # while the lock is held: a file without one is stale and may be removed
        _folder_to_disk(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(lock)


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


def _create(target: Path, prefix: str, mode: int) -> tuple[Path, int]:
    """A new temporary file, and the handle that locks it until it is closed or the process ends.

    The umask takes from its permissions; where a file is to be replaced, no other may read the new one even for a
    moment.
    """
    ending = target.suffix if len(os.fsencode(target.suffix)) <= LONGEST_ENDING else ""
    while True:
        temporary = target.parent / f"{prefix}{secrets.token_hex(4)}{ending}"
        if sys.platform == "win32":  # the lock comes first: without it the file is stale
            lock = os.open(_lock_file(temporary), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_TEMPORARY)
            try:
                os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode))
            except BaseException:
                os.close(lock)
                raise
            return temporary, lock
        lock = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        with suppress(BlockingIOError):
            _lock(lock)
            if temporary.exists():
                return temporary, lock
        os.close(lock)  # another writer found it before it was locked, and removes it as stale


def _flush(temporary: Path, mode: int | None) -> None:
    """Give a file its permissions and write it to the disk."""
    handle = os.open(temporary, os.O_RDWR)
    try:
        if mode is not None:
            temporary.chmod(mode)
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_stale(folder: Path, prefix: str) -> None:
    """Remove temporary files of this target that nobody has locked: their writers were killed.

    Anything may have such a name: a pipe is not waited for, a link not followed, and only regular files are removed.
    """
    with suppress(OSError):
        for left in folder.glob(f"{prefix}*"):
            with suppress(OSError):
                if sys.platform == "win32":
                    if stat.S_ISREG(left.lstat().st_mode) and not _lock_file(left).exists():
                        left.unlink()
                    continue
                handle = os.open(left, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
                try:
                    status = os.fstat(handle)
                    if stat.S_ISREG(status.st_mode) and _lock(handle) and os.path.samestat(status, left.lstat()):
                        left.unlink()
                finally:
                    os.close(handle)


if sys.platform == "win32":

    def _lock_file(temporary: Path) -> Path:
        """The file that exists while a temporary file is being written; the system removes it when its handle closes.

        Windows renames no file that is open, so that the temporary file itself cannot be locked until it has its name.
        """
        return temporary.with_name(f".{temporary.name}")

else:

    def _lock(handle: int) -> bool:
        """Lock a file for this handle; False where the file system knows no locks.

        Raises
        ------
        BlockingIOError
            Another handle has locked it.
        """
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
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
