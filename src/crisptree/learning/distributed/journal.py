"""The journal of a fit by several processes: the first one writes and reads it, the others follow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.journal import AnyJournal, Arrays, Page, current, keeping


class SharedJournal:
    """Pages that all processes get from the first, whose journal it is. What they hold is the same everywhere."""

    def __init__(self, journal: AnyJournal | None, group: ProcessGroup) -> None:
        self.journal, self.group = journal, group

    def page(self, name: str, epochs: int) -> Page:
        return self.group.from_first(lambda: self._own.page(name, epochs))

    def keep(self, page: Page, epochs: int, *, is_over: bool, arrays: Callable[[], Arrays]) -> None:
        self.group.from_first(lambda: self._own.keep(page, epochs, is_over=is_over, arrays=arrays))

    def write(self) -> None:
        """The first process does so when its own journal ends."""

    @property
    def _own(self) -> AnyJournal:
        assert self.journal is not None
        return self.journal


@contextmanager
def keeping_together(group: ProcessGroup) -> Iterator[None]:
    """Inside, trainings of all processes are kept in the journal of the first one."""
    with keeping(SharedJournal(current(), group)):
        yield
