"""The folder of a checkpoint: what the fit is, its trainings that are over, and the one at work.

``fit`` says what is trained on what, ``finished-00000`` and those after it are only ever added, ``working`` is
replaced. All are model files in their form: arrays and JSON under a checksum, written whole or not at all, so that
the folder is sound whenever the process is killed.
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

FIT, FINISHED, WORKING, PAGE = "fit", "finished", "working", "page"
ENDING = ".safetensors"


class CheckpointFolder:
    """Reads and writes the files of one folder."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.n_finished = 0

    def fit(self) -> Section | None:
        """What the checkpoint is of; None where there is none."""
        path = self._file(FIT)
        return read(path, {FIT}).section(FIT) if path.exists() else None

    def begin(self, fit: Section) -> None:
        """Say what the checkpoint is of."""
        write(self._file(FIT), {FIT: fit})

    def finished(self) -> Iterator[tuple[str, Section]]:
        """All pages that were added, in their order, and where each stands; the next ones are added after them."""
        while (path := self._next()).exists():
            self.n_finished += 1
            sections = read(path, {PAGE}).sections
            for name in sorted(sections, key=lambda name: (len(name), name)):
                yield str(path), sections[name]

    def add(self, pages: list[Section]) -> None:
        """A further file of pages."""
        write(self._next(), {f"{PAGE}_{number}": page for number, page in enumerate(pages)})
        self.n_finished += 1

    def working(self) -> tuple[str, Section] | None:
        """The page of the training at work, and where it stands."""
        path = self._file(WORKING)
        return (str(path), read(path, {PAGE}).section(PAGE)) if path.exists() else None

    def put(self, page: Section) -> None:
        """The same, in place of an earlier one."""
        write(self._file(WORKING), {PAGE: page})

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Inside, no other process has the folder; False where one has. It is made where it is missing."""
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
