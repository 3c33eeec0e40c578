"""Rows a few at a time, on several threads where that helps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import joblib

Result = TypeVar("Result")

CORES = joblib.cpu_count()  # with the quota of the cgroup; asked once, because files are read for it

ROWS_AT_ONCE = 8192
"""Statistics in double precision are taken over this many rows at a time, to keep memory near the data's own."""

ROWS_IN_CACHE = 256
"""Several passes over a block of rows in double precision are quick where the block stays in the cache."""


def row_blocks(n_rows: int, at_once: int = ROWS_AT_ONCE) -> Iterator[slice]:
    """Slices that cover the rows a few thousand at a time."""
    return (slice(start, min(start + at_once, n_rows)) for start in range(0, n_rows, at_once))


def over_blocks(
    function: Callable[[slice], Result], n_rows: int, at_once: int = ROWS_AT_ONCE, n_jobs: int | None = None
) -> Iterator[Result]:
    """What the function gives for every block, in the order of the rows, whatever the number of threads.

    NumPy works on arrays without holding the interpreter, so threads are enough.
    """
    threads = n_threads(n_jobs)
    if threads == 1 or n_rows <= at_once:
        yield from map(function, row_blocks(n_rows, at_once))
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(function, row_blocks(n_rows, at_once))


def available_cores() -> int:
    """Count the cores that this process may use, by its CPU affinity and by the quota of its cgroup."""
    return min(CORES, len(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else CORES


def n_threads(n_jobs: int | None, n_processes: int = 1) -> int:
    """Resolve ``n_jobs`` to a number of threads, as scikit-learn and joblib do.

    Parameters
    ----------
    n_jobs : int or None
        None is the ``n_jobs`` of the enclosing ``joblib.parallel_config``, or 1. A negative number counts from the
        available cores: −1 is all of them, −2 all but one. More threads than cores are never used.
    n_processes : int, default=1
        Processes that share the cores.
    """
    if n_jobs is None:
        n_jobs = joblib.effective_n_jobs(None)
    if n_jobs == 1:
        return 1
    cores = max(1, available_cores() // n_processes)
    return min(n_jobs, cores) if n_jobs > 0 else max(1, cores + 1 + n_jobs)
