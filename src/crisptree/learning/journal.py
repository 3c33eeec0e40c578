"""The journal of a fit: what its trainings have come to, so that one that was killed goes on where it stood.

A fit does the same every time: only what takes long needs to be kept. That are its trainings, each a *page*: those that
are over with the numbers that they ended with, and the one at work as it is after some epoch. A fit that is resumed
begins anew, takes from its journal what is written there, and comes to the same tree, bit for bit; which leaves wait
to be split, which trial of a choice is next and what was chosen follow by themselves.

Whoever trains asks ``current`` for the journal; without one nothing is kept. Free of torch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Arrays = dict[str, npt.NDArray[Any]]

PAGES_AT_ONCE = 256
"""So many pages are written at the latest, however soon they were filled."""


class CheckpointError(ValueError):
    """A checkpoint that is damaged, that belongs to another fit, or that cannot be written."""


@dataclass(frozen=True, eq=False)
class Page:
    """One training: its place among all, its name, how many epochs are done and whether that was the last.

    ``arrays`` are those of its splits, leaf tables and random generators and, while it is at work, its optimiser's;
    ``file`` is where it was read.
    """

    number: int
    name: str
    epochs: int = 0
    is_over: bool = False
    arrays: Arrays = field(default_factory=dict)
    file: str = ""

    def take(self, name: str, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """An array of the type and shape of another, and finite."""
        array = self.arrays.get(name)
        if array is None or array.dtype != like.dtype or array.shape != like.shape:
            found = "nothing" if array is None else f"{array.dtype} of shape {array.shape}"
            raise self.wrong(f"{name!r} must be {like.dtype} of shape {like.shape}; it holds {found}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise self.wrong(f"{name!r} must be finite; it is not")
        return array

    def wrong(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self.file} is damaged: in training {self.number + 1} ({self.name}) {what}.")


class Store(Protocol):
    """Where pages are kept."""

    def finished(self) -> Iterator[Page]:
        """The pages of trainings that are over, in their order."""

    def at_work(self) -> Page | None:
        """The page of the training that was at work, if there is one."""

    def add(self, pages: list[Page]) -> None:
        """Keep some more finished pages."""

    def put(self, page: Page) -> None:
        """Keep the page of the training at work, in place of the one before."""


class Journal:
    """Pages in the order of the trainings.

    Parameters
    ----------
    store : Store
        Where they are kept.
    every : float
        Seconds between two writings; 0 writes after every epoch.
    """

    def __init__(self, store: Store, every: float) -> None:
        self.store, self.every = store, every
        self.earlier = store.finished()
        self.interrupted = store.at_work()
        self.number = 0
        self.filled: list[Page] = []
        self.written = time.monotonic()

    def page(self, name: str, epochs: int) -> Page:
        """What is known of the next training, which has so many epochs: all, the first of them, or nothing."""
        number, self.number = self.number, self.number + 1
        found = next(self.earlier, None)
        if found is None and self.interrupted is not None and self.interrupted.number == number:
            found = self.interrupted
        if found is None:
            return Page(number, name)
        if (found.number, found.name) != (number, name):
            raise CheckpointError(
                f"the checkpoint must go on with training {number + 1} ({name}); {found.file} holds {found.number + 1} "
                f"({found.name}). It is damaged, or callbacks do otherwise than before. Begin anew in another folder."
            )
        if not (0 < found.epochs <= epochs and (found.is_over or found.epochs < epochs)):  # early stopping ends sooner
            raise found.wrong(f"{found.epochs} of {epochs} epochs are done")
        return found

    def keep(self, page: Page, epochs: int, *, is_over: bool, arrays: Callable[[], Arrays]) -> None:
        """So many epochs of a training are done; written down if it is time to."""
        due = time.monotonic() - self.written >= self.every
        if is_over:
            self.filled.append(Page(page.number, page.name, epochs, True, arrays()))
            if due or len(self.filled) >= PAGES_AT_ONCE:
                self.write()
        elif due:
            self.write(Page(page.number, page.name, epochs, False, arrays()))

    def write(self, at_work: Page | None = None) -> None:
        """Finished pages first: were the process killed in between, the older page of work would be passed over."""
        if self.filled:
            self.store.add(self.filled)
            self.filled = []
        if at_work is not None:
            self.store.put(at_work)
        self.written = time.monotonic()


class AnyJournal(Protocol):
    """What a training needs of a journal."""

    def page(self, name: str, epochs: int) -> Page:
        """What is known of the next training."""

    def keep(self, page: Page, epochs: int, *, is_over: bool, arrays: Callable[[], Arrays]) -> None:
        """So many epochs of a training are done."""

    def write(self) -> None:
        """Write down what waits for it."""


_current: ContextVar[AnyJournal | None] = ContextVar("crisptree_journal", default=None)


def current() -> AnyJournal | None:
    """The journal of the fit that runs here, if it keeps one."""
    return _current.get()


@contextmanager
def keeping(journal: AnyJournal) -> Iterator[None]:
    """Inside, trainings are kept; all of them are written when the block ends well."""
    before = _current.set(journal)
    try:
        yield
        journal.write()
    finally:
        _current.reset(before)
