"""Threads and processes: blocks of rows, ``n_jobs``, torch on one thread, and whether a fit is distributed.

Torch's own threads divide a sum by their number, so its bits would depend on ``n_jobs``; and a process that has used
them cannot use them in a child that it forks. So torch runs on one thread wherever we call it, and our own threads
work on blocks that do not depend on their number.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Lock, Thread
from typing import Protocol, TypeVar

import joblib

Item = TypeVar("Item")
Result = TypeVar("Result")

CORES = joblib.cpu_count()  # with the quota of the cgroup; asked once, because files are read for it

ROWS_AT_ONCE = 8192
"""Statistics in double precision are taken over this many rows at a time, to keep memory near the data's own."""

ROWS_IN_CACHE = 256
"""Several passes over a block of rows in double precision are quick where the block stays in the cache."""


def row_blocks(n_rows: int, at_once: int = ROWS_AT_ONCE) -> Iterator[slice]:
    """Iterate over slices that cover the rows."""
    return (slice(start, min(start + at_once, n_rows)) for start in range(0, n_rows, at_once))


def over_blocks(
    function: Callable[[slice], Result], n_rows: int, at_once: int = ROWS_AT_ONCE, n_jobs: int | None = None
) -> Iterator[Result]:
    """Map a function over blocks of rows, in order, whatever the number of threads.

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

    None is the ``n_jobs`` of the enclosing ``joblib.parallel_config``, or 1. A negative number counts from the
    available cores: −1 is all of them, −2 all but one. More threads than cores are never used; ``n_processes`` share
    them.
    """
    if n_jobs is None:
        n_jobs = joblib.effective_n_jobs(None)
    if n_jobs == 1:
        return 1
    cores = max(1, available_cores() // n_processes)
    return min(n_jobs, cores) if n_jobs > 0 else max(1, cores + 1 + n_jobs)


class Mapping(Protocol):
    """The signature of ``map``."""

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item], /) -> Iterator[Result]: ...


_lock = Lock()


def _renew_lock() -> None:
    """Make the lock anew in a forked process, where the thread that may have held it does not exist."""
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread inside the block; other threads are not affected."""
    import torch

    with _lock:  # the first call of a thread while another sets its number would read that one
        before = torch.get_num_threads()
    if before == 1:
        yield
        return
    _set_here(1)
    try:
        yield
    finally:
        _set_here(before)


@contextmanager
def workers(number: int) -> Iterator[Mapping]:
    """Create a ``map`` on so many threads, with torch on one thread in each; results are in order."""
    if number == 1:
        yield map
        return
    with ThreadPoolExecutor(number, initializer=_set_here, initargs=(1,)) as pool:
        yield pool.map


def _set_here(number: int) -> None:
    """Set torch's number of threads for this thread only.

    ``torch.set_num_threads`` also sets the default of threads that have not called torch yet. A helper thread reads
    that default before the call and restores it afterwards.
    """
    import torch

    is_read, is_set = Event(), Event()
    default = 1

    def restore_default() -> None:
        nonlocal default
        default = torch.get_num_threads()
        is_read.set()
        is_set.wait()
        torch.set_num_threads(default)

    with _lock:
        torch.get_num_threads()  # the first call of a thread adopts the default, and must not come later
        other = Thread(target=restore_default, daemon=True)
        other.start()
        try:
            is_read.wait()
            torch.set_num_threads(number)
        finally:
            is_set.set()
            other.join()


_one_training: ContextVar[bool] = ContextVar("crisptree_one_training", default=False)


@contextmanager
def one_training_at_a_time() -> Iterator[None]:
    """Train trees inside the block one after the other, as a fit with checkpoints does, which hold one training."""
    before = _one_training.set(True)
    try:
        yield
    finally:
        _one_training.reset(before)


def limit_trainings(number: int) -> int:
    """Return the number of trainings that run side by side: 1 inside ``one_training_at_a_time``."""
    return 1 if _one_training.get() else number


_single_process: ContextVar[bool] = ContextVar("crisptree_single_process", default=False)


@contextmanager
def single_process() -> Iterator[None]:
    """Fit in this process only, on its own rows, as if there were no process group.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier
    >>> from crisptree.distributed import single_process
    >>> with single_process():
    ...     model = CrispTreeClassifier(max_depth=1, random_state=0).fit(*load_iris(return_X_y=True))
    >>> model.get_n_leaves()
    2
    """
    before = _single_process.set(True)
    try:
        yield
    finally:
        _single_process.reset(before)


def is_distributed() -> bool:
    """Return True in an initialised process group, outside ``single_process``.

    Examples
    --------
    >>> from crisptree.distributed import is_distributed
    >>> is_distributed()
    False
    """
    torch_distributed = sys.modules.get("torch.distributed")
    if torch_distributed is None or _single_process.get():
        return False
    return bool(torch_distributed.is_available() and torch_distributed.is_initialized())


def check_single_process(what: str) -> None:
    """Refuse in a process group what is not distributed: every process would silently do it by itself."""
    if is_distributed():
        raise ValueError(
            f"{what} is not distributed, only fit of a single tree is (CrispTreeClassifier, CrispTreeRegressor), on "
            "arrays; but this process is in a process group. Do it inside `crisptree.distributed.single_process()`."
        )
