"""Files that are read: regular ones of an allowed size, and whatever is wrong with one told under its name."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

from crisptree import limits

PIECE = 2**20

StrPath = str | PathLike[str]


@contextmanager
def reading(path: object, error: type[ValueError], kind: str, remedy: str = "") -> Iterator[None]:
    """Whatever goes wrong in the block becomes an ``error`` that names the file, a ``kind`` of file, and a remedy.

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
    except ModuleNotFoundError:
        raise
    except limits.LimitError as beyond:
        raise error(f"{path} {beyond}") from beyond
    except MemoryError as lacking:
        raise error(f"{path} needs more memory than there is.") from lacking
    except OSError as failed:
        if failed.errno is not None:
            raise error(f"{path} cannot be read: {failed.strerror}.") from failed
        raise error(_damaged(path, kind, failed) + remedy) from failed
    except Exception as foreign:
        raise error(_damaged(path, kind, foreign) + remedy) from foreign


def checked_size(path: StrPath) -> int:
    """The bytes of a regular file; pipes, devices and files beyond the limit are refused before they are opened."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise limits.LimitError("must be a regular file; it is a folder, a pipe or a device.")
    limits.current().check("file_bytes", status.st_size, f"has {status.st_size:,} bytes")
    return status.st_size


def read_file(path: StrPath) -> bytes:
    """All bytes of a regular file."""
    size = checked_size(path)
    with open(path, "rb") as file:
        data = file.read(size + 1)
    if len(data) > size:
        raise limits.LimitError("grew while it was read. Read it when it is whole.")
    return data


def read_all(stream: Any, size: int) -> bytes:
    """What a stream unpacks from a file of ``size`` bytes, which may not become more than the limits say."""
    with Bounded(stream, size) as bounded:
        return b"".join(iter(lambda: bounded.read(PIECE), b""))


class Bounded(io.RawIOBase):
    """A stream of unpacked bytes that breaks off where they become more than a file of ``size`` bytes may become."""

    def __init__(self, stream: Any, size: int) -> None:
        self.stream, self.size, self.n_read, self.limits = stream, size, 0, limits.current()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self.stream.read(min(len(buffer), PIECE))
        self.n_read += len(piece)
        self.limits.check_unpacked(self.n_read, self.size, f"unpacks to more than {self.n_read - len(piece):,} bytes")
        buffer[: len(piece)] = piece
        return len(piece)


def _damaged(path: object, kind: str, error: Exception) -> str:
    said = " ".join(str(error).split())[:200] or type(error).__name__
    return f"{path} is damaged or not a {kind} ({said})."
