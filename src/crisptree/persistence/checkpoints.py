"""Checkpoints of a fit: records of its trainings in a folder, from which a killed fit resumes.

A fit is deterministic, so only its trainings, which take long, are recorded: finished ones by their final state, the
current one by its state after some epoch. A resumed fit starts again, restores the recorded trainings and arrives at
the same tree, bit for bit. Training gets the store from
``learning.engines.base.use_store``; without one nothing is recorded.

``fit`` describes the fit, files from ``finished-00000`` on are only ever added, ``working`` is replaced. All have the
format of model files, arrays and JSON under a checksum, and are written atomically, so that the folder is valid
whenever the process is killed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.exceptions import CheckpointError
from crisptree.persistence.model_file import ModelFileError, Section, read, write

if sys.platform != "win32":
    import fcntl

FIT, FINISHED, WORKING, RECORD = "fit", "finished", "working", "page"
ENDING = ".safetensors"
MAX_NAME_LENGTH = 200

MAX_UNWRITTEN_RECORDS = 256
"""Number of finished records that are written at once, however little time has passed."""

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Record:
    """One training: its number and name, how many epochs are done and whether that was the last.

    ``arrays`` are those of its splits, leaf tables and random generators and, while it is running, of its optimiser;
    ``file`` is where it was read.
    """

    number: int
    name: str
    epochs: int = 0
    is_over: bool = False
    arrays: Arrays = field(default_factory=dict)
    file: str = ""

    def take(self, name: str, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a finite array of the type and shape of another."""
        array = self.arrays.get(name)
        if array is None or array.dtype != like.dtype or array.shape != like.shape:
            content = "nothing" if array is None else f"{array.dtype} of shape {array.shape}"
            raise self.make_error(f"{name!r} must be {like.dtype} of shape {like.shape}; it holds {content}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise self.make_error(f"{name!r} must be finite; it is not")
        return array

    def make_error(self, what: str) -> CheckpointError:
        return CheckpointError(f"{self.file} is damaged: in training {self.number + 1} ({self.name}) {what}.")

    def section(self) -> Section:
        """Return the record as a section of a file."""
        content = {"number": self.number, "name": self.name, "epochs": self.epochs, "is_over": self.is_over}
        return Section(content, self.arrays)

    @classmethod
    def of(cls, section: Section, file: str) -> Record:
        """Read and validate a section."""
        number, name, epochs, is_over = (section.content.get(key) for key in ("number", "name", "epochs", "is_over"))
        whole = all(type(value) is int and 0 <= value < 2**62 for value in (number, epochs))
        if not whole or not isinstance(name, str) or len(name) > MAX_NAME_LENGTH or not isinstance(is_over, bool):
            raise CheckpointError(f"{file} of the checkpoint is damaged: a record does not describe its training.")
        return cls(int(str(number)), name, int(str(epochs)), is_over, section.arrays, file)


class CheckpointFolder:
    """Files of one checkpoint folder, whose sections are records; damaged files raise ``CheckpointError``."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.n_finished = 0

    def fit(self) -> Section | None:
        """Read the description of the fit; None if there is none."""
        path = self._file(FIT)
        return read(path, {FIT}).section(FIT) if path.exists() else None

    def begin(self, fit: Section) -> None:
        """Write the description of the fit."""
        write(self._file(FIT), {FIT: fit})

    def finished(self) -> Iterator[Record]:
        """Iterate over all finished records in their order; further ones are added after them."""
        with self.translate_errors():
            while (path := self._next()).exists():
                self.n_finished += 1
                sections = read(path, {RECORD}).sections
                for name in sorted(sections, key=lambda name: (len(name), name)):
                    yield Record.of(sections[name], str(path))

    def add(self, records: list[Record]) -> None:
        """Add a file of finished records."""
        with self.translate_errors():
            write(self._next(), {f"{RECORD}_{number}": record.section() for number, record in enumerate(records)})
        self.n_finished += 1

    def working(self) -> Record | None:
        """Read the record of the current training."""
        path = self._file(WORKING)
        with self.translate_errors():
            return Record.of(read(path, {RECORD}).section(RECORD), str(path)) if path.exists() else None

    def put(self, record: Record) -> None:
        """Replace the record of the current training."""
        with self.translate_errors():
            write(self._file(WORKING), {RECORD: record.section()})

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Raise errors of files as errors of the checkpoint."""
        try:
            yield
        except ModelFileError as error:
            raise CheckpointError(
                f"the checkpoint cannot be read: {error} Begin anew in another folder, or remove the damaged file."
            ) from error
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint folder {self.path} must be writable and have room; it is not: {error}. Earlier "
                "checkpoints are intact: repair the folder and continue with `resume=True`."
            ) from error

    @contextmanager
    def lock(self) -> Iterator[bool]:
        """Lock the folder, which is created if missing; yields False if another process has locked it."""
        self.path.mkdir(parents=True, exist_ok=True)
        if sys.platform == "win32":
            yield True
            return
        lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(lock)  # releases the lock, as the end of the process does

    def _next(self) -> Path:
        return self._file(f"{FINISHED}-{self.n_finished:05d}")

    def _file(self, name: str) -> Path:
        return self.path / (name + ENDING)


class CheckpointStore:
    """Records in the order of the trainings, written every ``every`` seconds; 0 writes after every epoch."""

    def __init__(self, files: CheckpointFolder, every: float) -> None:
        self.files, self.every = files, every
        self.earlier = files.finished()
        self.interrupted = files.working()
        self.number = 0
        self.unwritten: list[Record] = []
        self.written = time.monotonic()

    def next_record(self, name: str, epochs: int) -> Record:
        """Return the record of the next training of so many epochs: of all, of the first of them, or of none."""
        number, self.number = self.number, self.number + 1
        record = next(self.earlier, None)
        if record is None and self.interrupted is not None and self.interrupted.number == number:
            record = self.interrupted
        if record is None:
            return Record(number, name)
        if (record.number, record.name) != (number, name):
            raise CheckpointError(
                f"the checkpoint must continue with training {number + 1} ({name}); {record.file} holds "
                f"{record.number + 1} ({record.name}). It is damaged, or callbacks have changed. "
                "Begin anew in another folder."
            )
        is_partial = record.is_over or record.epochs < epochs  # early stopping ends sooner
        if not (0 < record.epochs <= epochs and is_partial):
            raise record.make_error(f"{record.epochs} of {epochs} epochs are done")
        return record

    def keep(self, record: Record, epochs: int, *, is_over: bool, arrays: Callable[[], Arrays]) -> None:
        """Record that so many epochs of a training are done, and write the record if it is due."""
        is_due = time.monotonic() - self.written >= self.every
        if is_over:
            self.unwritten.append(Record(record.number, record.name, epochs, True, arrays()))
            if is_due or len(self.unwritten) >= MAX_UNWRITTEN_RECORDS:
                self.write()
        elif is_due:
            self.write(Record(record.number, record.name, epochs, False, arrays()))

    def write(self, current: Record | None = None) -> None:
        """Write finished records first: if the process is killed in between, an older current record is ignored."""
        if self.unwritten:
            self.files.add(self.unwritten)
            self.unwritten = []
        if current is not None:
            self.files.put(current)
        self.written = time.monotonic()
