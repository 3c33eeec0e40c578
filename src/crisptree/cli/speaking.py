"""What a command says: results on stdout, notes and progress on stderr; with --json one document on stdout."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import numpy as np
from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from crisptree.cli.flags import with_flags

SECONDS_BETWEEN_LINES = 10.0
SECONDS_TO_JUDGE = 1.0


class Speaker:
    """Says things to a person, or keeps them for one JSON document."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.notes: list[str] = []
        self.out, self.err = Console(), Console(stderr=True)

    def note(self, text: str) -> None:
        """Something that the user should know, on stderr; JSON holds it as well."""
        text = with_flags(text)
        self.notes.append(text)
        self.err.print(f"note: {text}", markup=False, highlight=False, soft_wrap=True)

    def note_all(self, texts: Iterable[str]) -> None:
        """Several notes."""
        for text in texts:
            self.note(text)

    def show(self, result: RenderableType) -> None:
        """A part of the result for a person."""
        if not self.as_json:
            markup = not isinstance(result, str)
            self.out.print(result, markup=markup, highlight=False, soft_wrap=isinstance(result, str))

    def finish(self, document: dict[str, Any]) -> None:
        """The whole result for a machine."""
        if self.as_json:
            escaped = not (sys.stdout.encoding or "").lower().startswith("utf")
            print(json.dumps({**document, "notes": self.notes}, indent=2, ensure_ascii=escaped, default=_plain))

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Warnings of the library become notes."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            finally:
                self.note_all(dict.fromkeys(str(warning.message) for warning in caught))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return str(value)


class Bar:
    """Progress on stderr: a bar with the time left in a terminal, elsewhere a line now and then."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.progress: Progress | None = None
        self.task: TaskID | None = None
        self.what = ""
        self.started = self.spoke = time.monotonic()

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
            self.progress = Progress(*columns, TimeRemainingColumn(), console=self.console, transient=True)
            self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.progress is not None:
            self.progress.stop()

    def update(self, what: str, fraction: float | None, detail: str = "") -> None:
        """Say how much of a piece of work is done, from 0 to 1; None where that is not known."""
        now = time.monotonic()
        fresh = what != self.what
        if fresh:
            self.what, self.started = what, now
        text = f"{what} {detail}".rstrip()
        if self.progress is not None:
            if fresh and self.task is not None:
                self.progress.remove_task(self.task)
            if fresh or self.task is None:
                self.task = self.progress.add_task(text, total=1.0)
            self.progress.update(
                self.task, description=text, completed=fraction or 0.0, total=None if fraction is None else 1.0
            )
        elif now - self.spoke >= SECONDS_BETWEEN_LINES:
            self.spoke = now
            self.console.print(text + _time_left(fraction, now - self.started), markup=False, highlight=False)


def _time_left(fraction: float | None, seconds: float) -> str:
    if not fraction or seconds < SECONDS_TO_JUDGE:
        return " …"
    minutes, rest = divmod(round(seconds * (1 - fraction) / fraction), 60)
    return f": {fraction:.0%}, {minutes}:{rest:02d} left"
