"""One live line while a tree trains; beside the command line the only place that prints."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.text import Text

from crisptree.learning.history import EpochRecord


class Ears:
    """Keeps every record and passes it on to the callbacks."""

    def __init__(self, callbacks: Sequence[Callable[[EpochRecord], None]]) -> None:
        self.history: list[EpochRecord] = []
        self.callbacks = callbacks

    def hear(self, record: EpochRecord) -> None:
        self.history.append(record)
        for callback in self.callbacks:
            callback(record)


@contextmanager
def listening(verbose: int, callbacks: Sequence[Callable[[EpochRecord], None]] | None) -> Iterator[Ears]:
    """Ears for a fit, with a live line in the terminal where ``verbose`` asks for one."""
    if not verbose:
        yield Ears(list(callbacks or []))
        return
    console = Console(stderr=True)
    line = ProgressLine()
    with Live(Text("training …"), console=console, refresh_per_second=8, transient=False) as live:

        def show(record: EpochRecord) -> None:
            live.update(Text(line.text(record), no_wrap=True, overflow="ellipsis"))

        yield Ears([show, *(callbacks or [])])
    if not console.is_terminal:
        console.print()  # only in a terminal does the live line end itself


class ProgressLine:
    """Words for a record, with the time left of its phase."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.phase = ""
        self.started = self.latest = clock()

    def text(self, record: EpochRecord) -> str:
        now = self.clock()
        if record.phase != self.phase:
            # A later phase begins where the earlier one ended.
            self.started = self.latest
        self.phase, self.latest = record.phase, now
        levels = "?" if record.n_levels is None else record.n_levels
        parts = [
            f"{record.phase:<8} level {record.level}/{levels}",
            f"epoch {record.epoch}/{record.n_epochs}",
            f"steepness {record.steepness:.1f}",
            f"loss {record.loss:.4f}",
        ]
        if record.validation_score is not None:
            parts.append(f"validation {record.validation_score:.4f}")
        left = self._seconds_left(record, now)
        parts.append("? left" if left is None else f"{_clock_face(left)} left")
        return " · ".join(parts)

    def _seconds_left(self, record: EpochRecord, now: float) -> float | None:
        done = fraction_done(record)
        elapsed = now - self.started
        if done is None or done <= 0 or elapsed <= 0:
            return None
        return elapsed * (1 - done) / done


def fraction_done(record: EpochRecord) -> float | None:
    """How much of its phase a record ends; None where the number of levels is not known."""
    within = record.epoch / record.n_epochs
    if record.phase != "grow":
        return within
    if record.n_levels is None:
        return None
    return (record.level - 1 + within) / max(record.n_levels, record.level)


def _clock_face(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
