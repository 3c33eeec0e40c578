"""How much memory this process may use: that of the machine, or less where a container or a service is held to less."""

from __future__ import annotations

import math
import os
from pathlib import Path, PurePosixPath

ROOT = Path("/sys/fs/cgroup")
PROCESS = Path("/proc/self/cgroup")
LIMITS = {"": ("memory.max", "memory.high"), "memory": ("memory.limit_in_bytes",)}
"""Files that hold a limit: of the control groups of today (version 2), and of those of one controller (version 1)."""


def usable_memory() -> float:
    """Bytes; endless where nothing says how many."""
    return min(_physical(), control_group_limit())


def control_group_limit(root: Path = ROOT, process: Path = PROCESS) -> float:
    """The least that the process's control groups allow, their parents too; endless without any."""
    try:
        lines = process.read_text().splitlines()
    except OSError:
        lines = []
    # Inside a container the group's own path may not be there: its root is the container's group.
    places = [(controller, PurePosixPath("/")) for controller in LIMITS]
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, where = rest.partition(":")
        places += [(name, PurePosixPath(where)) for name in controllers.split(",") if name in LIMITS]
    found = math.inf
    for controller, path in places:
        for group in (path, *path.parents):
            folder = root / controller / str(group).lstrip("/")
            found = min(found, *(_number(folder / name) for name in LIMITS[controller]))
    return found


def _number(file: Path) -> float:
    """What a file says; endless for "max", and where there is none."""
    try:
        return float(int(file.read_text()))
    except (OSError, ValueError):
        return math.inf


def _physical() -> float:
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf
