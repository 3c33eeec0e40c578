"""Rows a few at a time, on several threads where that helps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")

CORES = os.cpu_count() or 1  # asked once: the question takes longer than a row

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


def n_threads(n_jobs: int | None) -> int:
    """None and −1 are all cores, as in scikit-learn's estimators; more threads than cores help nobody."""
    return CORES if n_jobs is None or n_jobs < 0 else min(n_jobs, CORES)
