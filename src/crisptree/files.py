"""Reading of arrays in files, errors that name the file, and atomic writing."""

from __future__ import annotations

import bz2
import errno
import gzip
import hashlib
import io
import lzma
import os
import secrets
import stat
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from crisptree.limits import BoundedReader, LimitError, check_unpacked

CHUNK_BYTES = 2**20

DECOMPRESSORS: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
"""Functions that open a compressed stream, by the suffix of its file; see ``decompress``."""

MAX_SUFFIX_LENGTH = 16
"""Bytes of an ending that a temporary name keeps, for libraries that choose a format by it."""

MAX_TEMPORARY_AGE = 86_400
"""Seconds after which a temporary file counts as left behind by a killed process."""

StrPath = str | PathLike[str]


def decompress(stream: IO[bytes], suffix: str, n_packed: int) -> IO[bytes]:
    """Return a stream of decompressed bytes of a file of ``n_packed`` bytes, or the stream if it is not compressed."""
    if suffix not in DECOMPRESSORS:
        return stream
    return io.BufferedReader(BoundedReader(DECOMPRESSORS[suffix](stream), n_packed), CHUNK_BYTES)


@contextmanager
def reading(path: object, error: type[ValueError], kind: str, remedy: str = "") -> Iterator[None]:
    """Convert any error of the block to an ``error`` that names the file, its ``kind`` and a remedy.

    Libraries raise a dozen classes for damage, not all of them their own; a reader has one.

    Examples
    --------
    >>> with reading("x.gz", ValueError, ".gz file"):
    ...     raise EOFError("too short")
    Traceback (most recent call last):
      ...
    ValueError: x.gz is damaged or not a .gz file (too short).
    """
    try:
        yield
    except error as known:
        if str(path) in str(known):
            raise
        raise error(f"{path}: {known}") from known
    except LimitError as over:
        raise error(f"{path} {over}") from over
    except ModuleNotFoundError:
        raise
    except MemoryError as lacking:
        raise error(f"{path} needs more memory than there is.") from lacking
    except OSError as failed:
        if failed.errno is not None:
            raise error(f"{path} cannot be read: {failed.strerror}.") from failed
        raise error(_damaged(path, kind, failed) + remedy) from failed
    except Exception as foreign:
        raise error(_damaged(path, kind, foreign) + remedy) from foreign


def read_npz(path: StrPath) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays of a .npz file by name; nothing is unpickled.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.npz"
    >>> np.savez(path, X=np.zeros((2, 3)), y=np.arange(2))
    >>> {name: array.shape for name, array in read_npz(path).items()}
    {'X': (2, 3), 'y': (2,)}
    """
    with open(path, "rb") as file:
        if not zipfile.is_zipfile(file):  # NumPy would recommend to unpickle it
            raise ValueError("it is no archive of arrays")
        with zipfile.ZipFile(file) as archive:
            check_members(archive)
        file.seek(0)
        return dict(np.load(file, allow_pickle=False))


def check_members(archive: zipfile.ZipFile) -> None:
    """Refuse an archive whose members together decompress into more than the limit."""
    members = archive.infolist()
    check_unpacked(sum(one.file_size for one in members), sum(one.compress_size for one in members))


def read_libsvm(file: IO[bytes]) -> tuple[Any, npt.NDArray[np.float64]]:
    r"""Read lines of a label and ``index:value`` pairs, with ascending indices from 1, as a CSR matrix and labels.

    Raises
    ------
    ValueError
        With what the file must hold, to be put behind its name.

    Examples
    --------
    >>> import io
    >>> rows, labels = read_libsvm(io.BytesIO(b"2 1:.50 3:1  # the first row\n1 2:7\n"))
    >>> rows.toarray().tolist(), labels.tolist()
    ([[0.5, 0.0, 1.0], [0.0, 7.0, 0.0]], [2.0, 1.0])
    """
    from sklearn.datasets import load_svmlight_file  # takes a second to import

    try:
        rows, labels = load_svmlight_file(file, dtype=np.float64, zero_based=False)
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"must hold lines such as '1 3:0.5 7:1', with ascending indices from 1; it does not ({error})."
        ) from error
    return rows, labels


def _damaged(path: object, kind: str, error: Exception) -> str:
    message = " ".join(str(error).split())[:200] or type(error).__name__
    return f"{path} is damaged or not a {kind} ({message})."


@contextmanager
def atomic_write(path: str | PathLike[str]) -> Iterator[Path]:
    """Write to a temporary path in the same folder, which replaces the file if the block succeeds.

    On an error or interrupt an earlier file stays unchanged and no temporary file is left. A symbolic link stays, and
    its target is replaced. A file keeps its permissions, a new one gets those that the umask leaves. A pipe or a device
    is rejected. File and folder are synchronised to disk when the block is left.

    A killed process leaves its temporary file; a later write to the same path removes it once it is a day old.

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
    # Where a file is replaced, nobody else may read the new one even for a moment.
    temporary = _create(target, prefix, 0o666 if mode is None else 0o600)
    try:
        yield temporary
        _flush(temporary, mode)
        temporary.replace(target)
        _folder_to_disk(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _mode(target: Path) -> int | None:
    """Return the permissions of an existing file; None without one."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "a pipe or a device cannot be replaced by a file; name a file", str(target))
    return stat.S_IMODE(mode) & 0o777


def _create(target: Path, prefix: str, mode: int) -> Path:
    """Create an empty temporary file."""
    ending = target.suffix if len(os.fsencode(target.suffix)) <= MAX_SUFFIX_LENGTH else ""
    temporary = target.parent / f"{prefix}{secrets.token_hex(8)}{ending}"
    os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode))
    return temporary


def _flush(temporary: Path, mode: int | None) -> None:
    """Set the permissions of a file and write it to disk."""
    handle = os.open(temporary, os.O_RDWR)
    try:
        if mode is not None:
            temporary.chmod(mode)
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove_stale(folder: Path, prefix: str) -> None:
    """Remove old temporary files of this target, whose writers were killed; links and pipes of such a name stay."""
    for left in folder.glob(f"{prefix}*"):
        with suppress(OSError):
            status = left.lstat()
            if stat.S_ISREG(status.st_mode) and time.time() - status.st_mtime > MAX_TEMPORARY_AGE:
                left.unlink()


def _folder_to_disk(folder: Path) -> None:
    """Flush a folder, so that the new name survives a power failure; a no-op where that is not possible."""
    if sys.platform == "win32":
        return
    with suppress(OSError):
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(held)
        finally:
            os.close(held)
