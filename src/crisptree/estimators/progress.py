"""The records of a fit, and how far it is; beside the command line the only place that prints."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from crisptree.learning.history import EpochRecord
from crisptree.visible import visible

if TYPE_CHECKING:
    from crisptree.learning.choosing import Trial

SECONDS_BETWEEN_LINES = 10.0
SECONDS_TO_JUDGE = 1.0
"""How long work must have taken before the time left is worth telling."""

PHASES = {"grow": "growing", "finetune": "finetuning"}


class Recorder:
    """Keeps every record and passes it on to the callbacks."""

    def __init__(self, callbacks: Sequence[Callable[[EpochRecord], None]]) -> None:
        self.history: list[EpochRecord] = []
        self.callbacks = callbacks

    def record(self, record: EpochRecord) -> None:
        self.history.append(record)
        for callback in self.callbacks:
            callback(record)


@contextmanager
def recording(verbose: int, callbacks: Sequence[Callable[[EpochRecord], None]] | None) -> Iterator[Recorder]:
    """A recorder for a fit, with a display on stderr where ``verbose`` asks for one."""
    if not verbose:
        yield Recorder(list(callbacks or []))
        return
    with ProgressDisplay(Console(stderr=True), keep=True) as display:
        yield Recorder([display.show_epoch, *(callbacks or [])])


@contextmanager
def hearing_trials(verbose: int) -> Iterator[Callable[[Trial], None]]:
    """What hears of the trials of a choice: a display on stderr where ``verbose`` asks for one."""
    if not verbose:
        yield lambda trial: None
        return
    with ProgressDisplay(Console(stderr=True)) as display:
        yield display.show_trial


class ProgressDisplay:
    """A bar with the time left in a terminal, elsewhere a line now and then.

    Parameters
    ----------
    console : Console
        Where to show it.
    keep : bool
        Whether the last state stays to be read when the work is done.
    """

    def __init__(self, console: Console, *, keep: bool = False) -> None:
        self.console, self.keep = console, keep
        self.live = console.is_terminal or console.is_jupyter
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
        self.progress = Progress(*columns, TimeRemainingColumn(), console=console, transient=not keep)
        self.what = self.text = ""
        self.started = self.latest = self.printed = time.monotonic()

    def __enter__(self) -> Self:
        if self.live:
            self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live:
            self.progress.stop()
        elif self.keep and self.text:
            self._print(self.text)

    def show_epoch(self, record: EpochRecord) -> None:
        """Say how far a fit is."""
        level = f"level {record.level}/{record.n_levels or '?'}, " if record.phase == "grow" else ""
        detail = (
            f"{level}epoch {record.epoch}/{record.n_epochs}, steepness {record.steepness:.1f}, loss {record.loss:.4f}"
        )
        if record.validation_score is not None:
            detail += f", validation {record.validation_score:.4f}"
        self.update(PHASES.get(record.phase, record.phase), fraction_done(record), detail)

    def show_trial(self, trial: Trial) -> None:
        """Say what a choice has tried."""
        values = ", ".join(f"{name}={value}" for name, value in trial.values.items())
        self.update("choosing", None, f"{values}: {trial.score:.4f}")

    def update(self, what: str, fraction: float | None, detail: str = "") -> None:
        """Say how much of a piece of work is done, from 0 to 1; None where that is not known."""
        now, fresh = time.monotonic(), what != self.what
        if fresh:
            # A piece of work begins where the one before it ended: its first report comes when some of it is done.
            self.what, self.started = what, self.latest
        self.latest, self.text = now, visible(f"{what} {detail}".rstrip())
        if self.live:
            if fresh:
                for task in self.progress.task_ids:
                    self.progress.remove_task(task)
                self.progress.add_task(self.text)
            total = None if fraction is None else 1.0
            self.progress.update(
                self.progress.task_ids[0], description=self.text, completed=fraction or 0.0, total=total
            )
        elif now - self.printed >= SECONDS_BETWEEN_LINES:
            self.printed = now
            self._print(self.text + _time_left(fraction, now - self.started))

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


def fraction_done(record: EpochRecord) -> float | None:
    """How much of its phase a record ends; None where the number of levels is not known."""
    within = record.epoch / record.n_epochs
    if record.phase != "grow":
        return within
    if record.n_levels is None:
        return None
    return (record.level - 1 + within) / max(record.n_levels, record.level)


def _time_left(fraction: float | None, seconds: float) -> str:
    if not fraction or seconds < SECONDS_TO_JUDGE:
        return " …"
    minutes, rest = divmod(round(seconds * (1 - fraction) / fraction), 60)
    return f": {fraction:.0%}, {minutes}:{rest:02d} left"
