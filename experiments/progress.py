"""Progress and remaining time: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar


class Progress:
    """Counts steps. Those that were there already do not enter the estimate of the time left."""

    def __init__(self, total: int, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False, soft_wrap=True)
        self.total, self.done, self.fresh = total, 0, 0
        self.started = time.perf_counter()
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[left]}"))
        live = self.console.is_terminal
        self._bar = Bar(*columns, console=self.console) if live else None
        self._task = self._bar.add_task("", total=total, left="") if self._bar else None

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def expect(self, total: int) -> None:
        """Set the number of steps."""
        self.total = total
        if self._bar and self._task is not None:
            self._bar.update(self._task, total=total)

    def step(self, name: str, outcome: str) -> None:
        """Count a step that took time."""
        self.done += 1
        self.fresh += 1
        left = f"about {spoken(self.seconds_left())} left"
        self.say(f"[{self.done}/{self.total}] {name}: {outcome}" + ("" if self._bar else f"; {left}"))
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=self.done, left=left)

    def skip(self, name: str) -> None:
        """Count a step whose result exists already."""
        self.done += 1
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=self.done)

    def say(self, line: str) -> None:
        """Print a line of text."""
        self.console.print(line, markup=False)

    def seconds_left(self) -> float:
        """Estimate the remaining seconds from the mean of the steps so far."""
        spent = time.perf_counter() - self.started
        return spent / max(self.fresh, 1) * max(self.total - self.done, 0)


def spoken(seconds: float) -> str:
    """Format a duration.

    >>> spoken(42), spoken(600), spoken(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
