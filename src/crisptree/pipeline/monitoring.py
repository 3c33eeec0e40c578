"""Checkpoints, records of epochs and the display of progress of a fit.

Besides the command line the only module that prints. A folder of checkpoints belongs to the fit whose fingerprint it
holds.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from html import escape
from importlib import import_module
from importlib.metadata import version
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from crisptree.exceptions import CheckpointError
from crisptree.inference import CrispTree
from crisptree.learning.history import EpochRecord
from crisptree.parameters.training import true_or_false
from crisptree.persistence.checkpoints import CheckpointFolder, CheckpointStore
from crisptree.persistence.model_file import Section
from crisptree.persistence.trees import trees_to_sections
from crisptree.sanitization import sanitize

if TYPE_CHECKING:
    from crisptree.selection.candidates import Trial


IGNORED_PARAMETERS = ("n_jobs", "verbose", "callbacks", "random_state", "device", "warm_start")
"""Parameters that change no tree, or whose resolved values are in the fingerprint."""

ROWS_AT_ONCE = 2**14


class Checkpoints(NamedTuple):
    """Folder of the checkpoints of a fit, seconds between two of them, and whether to resume."""

    folder: str | PathLike[str] | None = None
    every: float = 60.0
    resume: bool = False

    @contextmanager
    def keep(self, parameters: Mapping[str, Any], data: Mapping[str, Any], seed: int) -> Iterator[int]:
        """Write checkpoints inside, if there is a folder; provide the seed of the fit, or that of its checkpoint.

        ``data`` are the training data by the names that errors use.
        """
        every = self.every
        if isinstance(every, bool) or not isinstance(every, int | float) or not 0 <= every < float("inf"):
            raise ValueError(f"`checkpoint_every` must be seconds, 0 or more; got {every!r}.")
        true_or_false().check("resume", self.resume)
        if self.folder is not None and parameters.get("time_budget") is not None:
            raise ValueError(
                "`time_budget` must be None with `checkpoint`, because a resumed fit repeats the same candidates; got "
                f"{parameters['time_budget']!r}. Take max_candidates."
            )
        if self.folder is None:
            if self.resume:
                raise ValueError("`resume` must come with `checkpoint`, the folder to continue from; got none.")
            yield seed
            return
        from crisptree.learning.engines.base import use_store  # which imports torch

        files = CheckpointFolder(self.folder)
        with ExitStack() as stack:
            with files.translate_errors():
                if not stack.enter_context(files.lock()):
                    raise CheckpointError(
                        f"another process trains with the checkpoint {self.folder}. Wait for it, or end it."
                    )
                before = files.fit()
                if before is not None and not self.resume:
                    raise CheckpointError(
                        f"the folder {self.folder} must hold no checkpoint for a fit that begins; it does. Continue it "
                        "with `resume=True`, name another folder, or remove it."
                    )
                if before is not None and parameters["random_state"] is None:
                    seed = _seed(before, self.folder)
                current = fingerprint(parameters, data, seed)
                if before is None:
                    files.begin(Section({"of": current}))
                else:
                    _check_same(before.content.get("of"), current, self.folder)
                store = CheckpointStore(files, every)
            stack.enter_context(use_store(store))
            yield seed


def fingerprint(parameters: Mapping[str, Any], data: Mapping[str, Any], seed: int) -> dict[str, str]:
    """Describe everything that a fit depends on by short texts, so that errors can name what differs.

    ``data`` may hold the resolved device, where "auto" depends on the rows.
    """
    values = {name: value for name, value in parameters.items() if name not in IGNORED_PARAMETERS}
    texts = {name: describe_value(value) for name, value in sorted(values.items())}
    texts |= {name: digest(value) for name, value in data.items() if name != "device"}
    texts |= {f"version of {name}": version(name) for name in ("crisptree", "torch")}
    device = data.get("device")
    if device is None:
        from crisptree.learning.fitting import resolve_device  # which imports torch

        device = resolve_device(parameters["device"])
    return texts | {"random_state": str(seed), "device": str(device)}


def describe_value(value: Any) -> str:
    """Describe a parameter by a short text."""
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    return repr(value)


def digest(value: Any) -> str:
    """Compute a checksum of arrays and containers of arrays."""
    checksum = hashlib.sha256()
    for part in _bytes_of(value):
        checksum.update(part)
    return checksum.hexdigest()


def _bytes_of(value: Any) -> Iterator[Any]:
    if isinstance(value, CrispTree):
        sections = trees_to_sections({"tree": value})
        yield from _bytes_of([array for section in sections.values() for array in section.arrays.values()])
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        yield f"{value.dtype}{value.shape}".encode()
        rows = np.atleast_1d(value)
        for start in range(0, len(rows) if rows.size else 0, ROWS_AT_ONCE):
            yield np.ascontiguousarray(rows[start : start + ROWS_AT_ONCE]).view(np.uint8).data
    elif isinstance(value, list | tuple):
        yield str(len(value)).encode()
        for one in value:
            yield from _bytes_of(one)
    elif is_dataclass(value):
        yield from _bytes_of([getattr(value, each.name) for each in fields(value)])
    else:
        yield repr(value.tolist() if isinstance(value, np.ndarray) else value).encode()


def _seed(before: Section, folder: Any) -> int:
    of = before.content.get("of")
    text = of.get("random_state") if isinstance(of, dict) else None
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or int(text) >= 2**32:
        raise CheckpointError(f"the checkpoint {folder} is damaged: it lacks its seed.")
    return int(text)


def _check_same(before: Any, current: Mapping[str, str], folder: Any) -> None:
    if not isinstance(before, dict):
        raise CheckpointError(f"the checkpoint {folder} is damaged: it lacks its fingerprint.")
    names = [name for name in (*current, *before) if before.get(name) != current.get(name)]
    if names:
        differences = ", ".join(sorted({name if name in current else "others" for name in names}))
        raise CheckpointError(
            f"a checkpoint must be of the same data, parameters and versions; that in {folder} differs in "
            f"{differences}. Give fit what it had before, or name another folder."
        )


SECONDS_BETWEEN_LINES = 10.0
SECONDS_BETWEEN_FRAMES = 0.2
MIN_SECONDS_FOR_ESTIMATE, MIN_FRACTION_FOR_ESTIMATE = 1.0, 0.1
"""The remaining time is estimated after so many seconds, and after so much of the task."""

SHARE_OF_NEXT_LEVEL = 0.9
"""Work of a level of growth relative to that of the level above: between 1, where all rows reach the last level, and
growth that ends early because leaves are pure. Both are estimated within a factor of 2 for most of the time."""

SECONDS_BEFORE_DISPLAY = 3.0
"""Seconds after which a fit with verbose=None shows its progress."""

PHASES = {"grow": "growing", "finetune": "finetuning"}
SELECTING = "selecting"


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
def record_epochs(verbose: int | None, callbacks: Sequence[Callable[[EpochRecord], None]] | None) -> Iterator[Recorder]:
    """Provide the recorder of a fit, with a display on stderr if ``verbose``, or if None and the fit takes long."""
    with _open_display(verbose, keep=bool(verbose)) as display:
        yield Recorder([*([] if display is None else [display.show_epoch]), *(callbacks or [])])


_SHARED: ContextVar[ProgressDisplay | None] = ContextVar("_SHARED", default=None)


@contextmanager
def share_display(display: ProgressDisplay) -> Iterator[None]:
    """Let fits with ``verbose=None`` show their progress in an open display."""
    token = _SHARED.set(display)
    try:
        yield
    finally:
        _SHARED.reset(token)


@contextmanager
def _open_display(verbose: int | None, *, keep: bool) -> Iterator[ProgressDisplay | None]:
    """Provide the display of a fit; None where nothing is shown.

    For ``verbose=None`` it opens after ``SECONDS_BEFORE_DISPLAY``, and only where somebody sees it: in a notebook or a
    terminal, and not in the threads and processes of a search.
    """
    shared = _SHARED.get()
    if verbose is None and shared is not None:
        yield shared
        return
    console = Console(stderr=True)
    if verbose is None:
        is_main = threading.current_thread() is threading.main_thread()
        is_seen = console.is_terminal or console.is_jupyter
        if not (is_seen and is_main and multiprocessing.current_process().name == "MainProcess"):
            yield None
            return
    elif verbose <= 0:
        yield None
        return
    with ProgressDisplay(console, keep=keep, delay=SECONDS_BEFORE_DISPLAY if verbose is None else 0.0) as display:
        yield display


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
def display_trials(verbose: int | None) -> Iterator[Callable[[Trial, float], None]]:
    """Provide a callback for the trials of model selection, with the display of ``record_epochs``."""
    with _open_display(verbose, keep=False) as display:
        if display is not None:
            display.begin(SELECTING)
        yield (lambda trial, fraction: None) if display is None else display.show_trial


class TimeLeft:
    """Estimate of the seconds that a task still takes, from its speed since it began, or since its first update.

    What happened before the first update may have been another task, and the first tenth of a task says too little.
    """

    def __init__(self, begun: float | None = None) -> None:
        self.first = None if begun is None else (begun, 0.0)

    def estimate(self, fraction: float | None, now: float) -> float | None:
        """Return the seconds left when a fraction is done; None where too little is known."""
        if fraction is None:
            return None
        if self.first is None:
            self.first = now, fraction
        seconds, done = now - self.first[0], fraction - self.first[1]
        if done <= 0 or fraction < MIN_FRACTION_FOR_ESTIMATE or seconds < MIN_SECONDS_FOR_ESTIMATE:
            return None
        return seconds * (1 - fraction) / done


class ProgressDisplay:
    """Progress bar in a terminal or notebook, else a line every ``SECONDS_BETWEEN_LINES``; ``keep`` leaves the last.

    Nothing is shown in the first ``delay`` seconds.
    """

    def __init__(self, console: Console, *, keep: bool = False, delay: float = 0.0) -> None:
        self.console, self.keep, self.delay = console, keep, delay
        self.notebook = NotebookBar() if console.is_jupyter else None
        self.live = console.is_terminal and self.notebook is None
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
        self.progress = Progress(*columns, TextColumn("{task.fields[left]}"), console=console, transient=not keep)
        self.what = self.text = ""
        self.begun = "", 0.0
        self.fraction: float | None = None
        self.opened = self.printed = time.monotonic()
        self.time_left = TimeLeft()

    def __enter__(self) -> Self:
        if self.live and not self.delay:
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

    def show_trial(self, trial: Trial, fraction: float) -> None:
        """Show a candidate of model selection and its score; ``fraction`` is that of the selection that is done."""
        values = ", ".join(f"{name}={value}" for name, value in trial.values.items())
        self.update(SELECTING, fraction, f"{values}: {trial.score:.4f}")

    def begin(self, what: str) -> None:
        """Note that a task begins now; it is shown with its first update."""
        self.begun = what, time.monotonic()

    def update(self, what: str, fraction: float | None, detail: str = "") -> None:
        """Show the fraction of a task that is done, from 0 to 1; None if unknown."""
        now, fresh = time.monotonic(), what != self.what
        if fresh:
            begun = self.begun[1] if self.begun[0] == what else None
            self.what, self.time_left = what, TimeLeft(begun)
        self.fraction, self.text = fraction, sanitize(f"{what} {detail}".rstrip())
        left = self.time_left.estimate(fraction, now)
        if now - self.opened < self.delay:
            return
        if self.live:
            self._show_bar(fresh, left)
        elif self.notebook is not None:
            self.notebook.show(self.text + _format_time_left(fraction, left), fraction)
        elif now - self.printed >= SECONDS_BETWEEN_LINES:
            self.printed = now
            self._print(self.text + _format_time_left(fraction, left))

    def _show_bar(self, fresh: bool, left: float | None) -> None:
        """Update the bar in the terminal; one that was delayed opens now."""
        if fresh or not self.progress.task_ids:
            self.progress.start()
            for task in self.progress.task_ids:
                self.progress.remove_task(task)
            self.progress.add_task(self.text, left="")
        self.progress.update(
            self.progress.task_ids[0],
            description=self.text,
            completed=self.fraction or 0.0,
            total=None if self.fraction is None else 1.0,
            left="" if left is None else f"{_format_seconds(left)} left",
        )

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


def fraction_done(record: EpochRecord) -> float | None:
    """Return the fraction of the phase that a record completes; None for an unknown number of levels.

    A level of growth counts ``SHARE_OF_NEXT_LEVEL`` of the one above.
    """
    within = record.epoch / record.n_epochs
    if record.phase != "grow":
        return within
    if record.n_levels is None:
        return None
    left, never = (
        SHARE_OF_NEXT_LEVEL**level for level in (record.level - 1 + within, max(record.n_levels, record.level))
    )
    return (1 - left) / (1 - never)


def _format_time_left(fraction: float | None, left: float | None) -> str:
    if not fraction:
        return " …"
    return f": {fraction:.0%}" + (" …" if left is None else f", {_format_seconds(left)} left")


def _format_seconds(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
