"""Records of a fit and the display of its progress; besides the command line the only module that prints."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from crisptree.learning.history import EpochRecord
from crisptree.sanitization import sanitize

if TYPE_CHECKING:
    from crisptree.selection.trials import Trial

SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_FRAMES = 0.2
MIN_SECONDS_FOR_ESTIMATE = 1.0
"""The remaining time is estimated after so many seconds."""

PHASES = {"grow": "growing", "finetune": "finetuning"}


class Recorder:
    """Store every record and call the callbacks with it."""

    def __init__(self, callbacks: Sequence[Callable[[EpochRecord], None]]) -> None:
        self.history: list[EpochRecord] = []
        self.callbacks = callbacks

    def record(self, record: EpochRecord) -> None:
        self.history.append(record)
        for callback in self.callbacks:
            callback(record)


@contextmanager
def recording(verbose: int, callbacks: Sequence[Callable[[EpochRecord], None]] | None) -> Iterator[Recorder]:
    """Provide the recorder of a fit, with a display on stderr if ``verbose``."""
    if verbose <= 0:
        yield Recorder(list(callbacks or []))
        return
    with ProgressDisplay(Console(stderr=True), keep=True) as display:
        yield Recorder([display.show_epoch, *(callbacks or [])])


class NotebookBar:
    """Progress bar of a notebook cell, shown by IPython since rich needs ipywidgets."""

    def __init__(self) -> None:
        self.ipython = import_module("IPython.display")
        self.handle: Any = None
        self.shown = 0.0

    def show(self, text: str, fraction: float | None, *, last: bool = False) -> None:
        """Update the bar, at most every ``SECONDS_BETWEEN_FRAMES`` unless it is the last time."""
        now = time.monotonic()
        if not last and now - self.shown < SECONDS_BETWEEN_FRAMES:
            return
        self.shown = now
        value = "" if fraction is None else f' value="{fraction:.4f}"'
        content = self.ipython.HTML(f'<progress max="1"{value}></progress> {escape(text)}')
        if self.handle is None:
            self.handle = self.ipython.display(content, display_id=True)
        else:
            self.handle.update(content)

    def clear(self) -> None:
        """Remove the bar."""
        if self.handle is not None:
            self.handle.update(self.ipython.HTML(""))


@contextmanager
def hearing_trials(verbose: int) -> Iterator[Callable[[Trial], None]]:
    """Provide a callback for the trials of model selection, with a display on stderr if ``verbose``."""
    if verbose <= 0:
        yield lambda trial: None
        return
    with ProgressDisplay(Console(stderr=True)) as display:
        yield display.show_trial


class ProgressDisplay:
    """Progress bar in a terminal or notebook, else a line every ``SECONDS_BETWEEN_LINES``; ``keep`` leaves the last."""

    def __init__(self, console: Console, *, keep: bool = False) -> None:
        self.console, self.keep = console, keep
        self.notebook = NotebookBar() if console.is_jupyter else None
        self.live = console.is_terminal and self.notebook is None
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
        self.progress = Progress(*columns, TimeRemainingColumn(), console=console, transient=not keep)
        self.what = self.text = ""
        self.fraction: float | None = None
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
        elif self.notebook is not None:
            if self.keep and self.text:
                self.notebook.show(self.text, 1.0 if kind is None else self.fraction, last=True)
            else:
                self.notebook.clear()
        elif self.keep and self.text:
            self._print(self.text)

    def show_epoch(self, record: EpochRecord) -> None:
        """Show an epoch of a fit."""
        level = f"level {record.level}/{record.n_levels or '?'}, " if record.phase == "grow" else ""
        detail = (
            f"{level}epoch {record.epoch}/{record.n_epochs}, steepness {record.steepness:.1f}, loss {record.loss:.4f}"
        )
        if record.validation_score is not None:
            detail += f", validation {record.validation_score:.4f}"
        self.update(PHASES.get(record.phase, record.phase), fraction_done(record), detail)

    def show_trial(self, trial: Trial) -> None:
        """Show a candidate of model selection and its score."""
        values = ", ".join(f"{name}={value}" for name, value in trial.values.items())
        self.update("selecting", None, f"{values}: {trial.score:.4f}")

    def update(self, what: str, fraction: float | None, detail: str = "") -> None:
        """Show the fraction of a task that is done, from 0 to 1; None if unknown."""
        now, fresh = time.monotonic(), what != self.what
        if fresh:
            # A task begins where the one before ended: its first update comes when some of it is done.
            self.what, self.started = what, self.latest
        self.latest, self.fraction, self.text = now, fraction, sanitize(f"{what} {detail}".rstrip())
        if self.live:
            if fresh:
                for task in self.progress.task_ids:
                    self.progress.remove_task(task)
                self.progress.add_task(self.text)
            total = None if fraction is None else 1.0
            self.progress.update(
                self.progress.task_ids[0], description=self.text, completed=fraction or 0.0, total=total
            )
        elif self.notebook is not None:
            self.notebook.show(self.text + _time_left(fraction, now - self.started), fraction)
        elif now - self.printed >= SECONDS_BETWEEN_LINES:
            self.printed = now
            self._print(self.text + _time_left(fraction, now - self.started))

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


def fraction_done(record: EpochRecord) -> float | None:
    """Return the fraction of the phase that a record completes; None for an unknown number of levels."""
    within = record.epoch / record.n_epochs
    if record.phase != "grow":
        return within
    if record.n_levels is None:
        return None
    return (record.level - 1 + within) / max(record.n_levels, record.level)


def _time_left(fraction: float | None, seconds: float) -> str:
    if not fraction or seconds < MIN_SECONDS_FOR_ESTIMATE:
        return " …"
    minutes, rest = divmod(round(seconds * (1 - fraction) / fraction), 60)
    return f": {fraction:.0%}, {minutes}:{rest:02d} left"
