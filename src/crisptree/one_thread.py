"""Torch on one thread, for the caller alone; and threads of our own that work on fixed pieces.

Torch's own threads divide a sum by their number, so its bits would hang on ``n_jobs``; and a process that has used them
cannot use them in a child that it forks. So torch works on one thread wherever we call it, and pieces that do not
depend on the number of threads are handed to our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Protocol, TypeVar

import torch

Given = TypeVar("Given")
Result = TypeVar("Result")


class Mapping(Protocol):
    """What ``map`` does."""

    def __call__(self, function: Callable[[Given], Result], given: Iterable[Given], /) -> Iterator[Result]: ...


_lock = Lock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch works on one thread inside, and on as many as before outside; other threads do not notice."""
    with _lock:  # a thread's first question to torch, asked while another thread sets its number, would hear that one
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
    """A ``map`` on so many threads, torch on one in each of them; what it gives is in the order of what it is given."""
    if number == 1:
        yield map
        return
    with ThreadPoolExecutor(number, initializer=_set_here, initargs=(1,)) as pool:
        yield pool.map


def _set_here(number: int) -> None:
    """Torch's number of threads in this thread.

    ``torch.set_num_threads`` tells the calling thread, and those that are yet to call torch for the first time. What
    those are told is put back at once: a thread that begins here knows it, and can tell it again.
    """
    told, changed = Event(), Event()
    for_others = 1

    def ask_and_put_back() -> None:
        nonlocal for_others
        for_others = torch.get_num_threads()
        told.set()
        changed.wait()
        torch.set_num_threads(for_others)

    with _lock:
        torch.get_num_threads()  # the first call of a thread takes on what new ones are told, and must not come later
        other = Thread(target=ask_and_put_back, daemon=True)
        other.start()
        try:
            told.wait()
            torch.set_num_threads(number)
        finally:
            changed.set()
            other.join()
