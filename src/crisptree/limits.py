"""Resource limits: what files may ask of the machine that reads them, and how much memory this process may use.

Readers check the limits before they allocate. A limit is changed for a block of code, or by an environment variable
named after it, such as ``CRISPTREE_LIMIT_UNPACKED_BYTES=8000000000``.

>>> from crisptree import limits
>>> with limits.changed(pages=2):
...     limits.current().pages
2
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath

__all__ = ["Limits", "LimitError", "current", "changed"]

PREFIX = "CRISPTREE_LIMIT_"

CONTROL_GROUPS = Path("/sys/fs/cgroup")
PROCESS = Path("/proc/self/cgroup")


class LimitError(ValueError):
    """A file asks for more than a limit allows; the message names the limit and how to raise it."""


@dataclass(frozen=True)
class Limits:
    """Limits of file readers. The defaults suit data and models of one machine, and stop decompression bombs.

    Parameters
    ----------
    file_bytes : int, default=4 GiB
        The largest file that is opened.
    unpacked_bytes : int, default=512 MiB
        What any file may become in memory: its bytes without compression, or the rows × columns that it claims to hold.
    unpacked_ratio : int, default=64
        A file may become this many times its own bytes where that is more. Text and images shrink by 3 to 20.
    columns : int, default=65,536
        Columns of a table: each of them takes memory of its own, whatever it holds.
    line_bytes : int, default=16 MiB
        The longest line of a text, and the header of a model file.
    pages : int, default=10,000
        Pages of an image file.
    depth : int, default=1,000
        Splits on a path of a tree in a model file.
    reach : int, default=16,384
        Window × scale of a segmenter, in pixels.
    download_bytes : int, default=2 GiB
        What a server may send for a file whose size is not known.
    """

    file_bytes: int = 2**32
    unpacked_bytes: int = 2**29
    unpacked_ratio: int = 64
    columns: int = 2**16
    line_bytes: int = 2**24
    pages: int = 10_000
    depth: int = 1_000
    reach: int = 2**14
    download_bytes: int = 2**31

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"the limit `{name}` must be a whole number of at least 1; got {value!r}.")

    def check(self, name: str, requested: int, what: str) -> None:
        """Raise if more is requested than the limit of this name allows; ``what`` begins the message."""
        limit = getattr(self, name)
        if requested > limit:
            raise LimitError(f"{what}, more than the limit of {limit:,}. {_remedy(name, requested)}")

    def check_unpacked(self, requested: int, size: int, what: str) -> None:
        """Raise if a file of ``size`` bytes becomes more than allowed in memory."""
        limit = self.unpacked(size)
        if requested > limit:
            message = f"{what}, more than the {limit:,} that its {size:,} bytes may become"
            raise LimitError(f"{message}. {_remedy('unpacked_bytes', requested)}")

    def unpacked(self, size: int) -> int:
        """Return how many bytes a file of ``size`` bytes may become."""
        return max(self.unpacked_bytes, self.unpacked_ratio * size)


_NAMES = tuple(field.name for field in fields(Limits))
_here: ContextVar[dict[str, int] | None] = ContextVar("crisptree_limits", default=None)


def current() -> Limits:
    """Return the limits in effect: ``changed`` before the environment before defaults.

    Examples
    --------
    >>> current().file_bytes == 2**32
    True
    """
    from_environment = {name: _number(name, text) for name in _NAMES if (text := os.environ.get(_variable(name)))}
    return Limits(**from_environment | (_here.get() or {}))


@contextmanager
def changed(**changes: int) -> Iterator[Limits]:
    """Change some limits for a block of code, in this thread or task only.

    Examples
    --------
    >>> with changed(unpacked_bytes=10**10) as limits:
    ...     limits.unpacked(size=100)
    10000000000
    """
    for name in changes:
        if name not in _NAMES:
            raise TypeError(f"there is no limit {name!r}; there are {', '.join(_NAMES)}.")
    before = _here.set((_here.get() or {}) | changes)
    try:
        yield current()
    finally:
        _here.reset(before)


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{_variable(name)} must be a whole number; got {text!r}.") from None


def _variable(name: str) -> str:
    return PREFIX + name.upper()


def _remedy(name: str, requested: int) -> str:
    change = f"with crisptree.limits.changed({name}={requested}), or {_variable(name)}={requested}"
    return f"If you trust it, raise the limit: {change}."


def usable_memory() -> float:
    """Bytes of memory that this process may use, of the machine or of its control group; infinite if unknown."""
    return min(_physical_memory(), control_group_limit())


def control_group_limit(root: Path = CONTROL_GROUPS, process: Path = PROCESS) -> float:
    """Return the smallest memory limit of the process's control group (version 2) and its parents; infinite without."""
    try:
        path = process.read_text().rpartition("0::")[2].strip()
    except OSError:
        path = ""
    group = PurePosixPath("/", path)
    # Inside a container the group's own path may not be there: its root is the container's group.
    return min(_file_limit(root / str(each).lstrip("/") / "memory.max") for each in (group, *group.parents))


def _file_limit(file: Path) -> float:
    """Number in a file; infinite for "max" and if there is none."""
    try:
        return float(int(file.read_text()))
    except (OSError, ValueError):
        return math.inf


def _physical_memory() -> float:
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf
