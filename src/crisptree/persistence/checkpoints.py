"""The folder of a checkpoint: a description of the fit, records of finished trainings, and one of the current training.

``fit`` describes the fit, files from ``finished-00000`` on are only ever added, ``working`` is replaced. All have the
format of model files, arrays and JSON under a checksum, and are written atomically, so that the folder is valid
whenever the process is killed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crisptree.persistence.model_file import Section, read, write

if sys.platform != "win32":
    import fcntl

FIT, FINISHED, WORKING, RECORD = "fit", "finished", "working", "page"
ENDING = ".safetensors"


class CheckpointFolder:
    """Files of one checkpoint folder."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.n_finished = 0

    def fit(self) -> Section | None:
        """Description of the fit; None if there is none."""
        path = self._file(FIT)
        return read(path, {FIT}).section(FIT) if path.exists() else None

    def begin(self, fit: Section) -> None:
        """Write the description of the fit."""
        write(self._file(FIT), {FIT: fit})

    def finished(self) -> Iterator[tuple[str, Section]]:
        """Iterate over all finished records in their order, with their paths; further ones are added after them."""
        while (path := self._next()).exists():
            self.n_finished += 1
            sections = read(path, {RECORD}).sections
            for name in sorted(sections, key=lambda name: (len(name), name)):
                yield str(path), sections[name]

    def add(self, records: list[Section]) -> None:
        """Add a file of finished records."""
        write(self._next(), {f"{RECORD}_{number}": record for number, record in enumerate(records)})
        self.n_finished += 1

    def working(self) -> tuple[str, Section] | None:
        """Record of the current training, with its path."""
        path = self._file(WORKING)
        return (str(path), read(path, {RECORD}).section(RECORD)) if path.exists() else None

    def put(self, record: Section) -> None:
        """Replace the record of the current training."""
        write(self._file(WORKING), {RECORD: record})

    @contextmanager
    def held(self) -> Iterator[bool]:
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
            os.close(lock)  # which lets go of it, as the end of the process does

    def _next(self) -> Path:
        return self._file(f"{FINISHED}-{self.n_finished:05d}")

    def _file(self, name: str) -> Path:
        return self.path / (name + ENDING)
