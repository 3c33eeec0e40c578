"""Results of one experiment on one data set: a file of JSON lines, one record each, sorted by its key.

``python -m experiments.store EXPERIMENT FILE OTHER ...`` puts the records of other files, made on other machines, into
the first. A record that is there already is replaced.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Key = tuple[Any, ...]

ENDING = ".jsonl"
KEYS: dict[str, tuple[str, ...]] = {
    "paper": ("kind", "method", "depth", "seed"),
    "cnn": ("row", "seed"),
    "roughness": ("way", "part", "roughness", "seed"),
    "segmentation": ("row", "seed"),
    "recipe": ("kind", "part", "seed"),
    "extension": ("part", "row", "seed"),
}
"""The fields that identify a record of each experiment; the data set is the name of the file."""


class Store:
    """Records in a file. Every record is there whole or not at all, whatever interrupts and whoever writes beside."""

    def __init__(self, path: Path, fields: Sequence[str]) -> None:
        self.path, self.fields = path, tuple(fields)
        self._held: dict[Key, str] = {}
        self._stamp: tuple[int, int, int] | None = None

    def get(self, *key: Any) -> Record | None:
        """Return the record of a key; None without one."""
        line = self._lines().get(key)
        return None if line is None else json.loads(line)

    def records(self, **wanted: Any) -> list[Record]:
        """List all records in order, or those with these values."""
        every = (json.loads(line) for _, line in sorted(self._lines().items()))
        return [record for record in every if all(record[name] == value for name, value in wanted.items())]

    def put(self, *records: Record) -> None:
        """Write records; those with the same key go."""
        lines = {self._key(record): json.dumps(record, ensure_ascii=False) for record in records}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(self.path.parent):
            self._write(self._lines() | lines)

    def _write(self, lines: dict[Key, str]) -> None:
        # One file holds hours of work: it is replaced in one step, by one that has reached the disk.
        unfinished = self.path.with_name(self.path.name + ".tmp")
        try:
            with unfinished.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(f"{lines[key]}\n" for key in sorted(lines))
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, self.path)
        finally:
            unfinished.unlink(missing_ok=True)

    def _lines(self) -> dict[Key, str]:
        """Return the lines by key, read again if the file has changed; the later of two counts."""
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
                if stamp != self._stamp:
                    self._held, self._stamp = self._parsed(file.read()), stamp
        except FileNotFoundError:
            self._held, self._stamp = {}, None
        return self._held

    def _parsed(self, content: bytes) -> dict[Key, str]:
        # Not splitlines(): JSON may hold other characters that end a line, as they are.
        lines = content.split(b"\n")
        found = {}
        for number, raw in enumerate(lines, start=1):
            if not raw:
                continue
            try:
                line = raw.decode()
                record = json.loads(line)
            except (UnicodeDecodeError, json.JSONDecodeError) as error:
                if number == len(lines):
                    break  # a copy that was broken off, perhaps within a letter
                raise ValueError(
                    f"{self.path.name}: every line must be a JSON object; line {number} is not ({error}). Take the "
                    "line out, and the command that makes it will run it again."
                ) from error
            found[self._key(record)] = line
        return found

    def _key(self, record: Any) -> Key:
        if not isinstance(record, dict) or not set(self.fields) <= set(record):
            got = ", ".join(record) if isinstance(record, dict) else repr(record)
            raise ValueError(
                f"{self.path.name}: a record must be an object with {', '.join(self.fields)}; got {got}. Is it of "
                "another experiment?"
            )
        return tuple(record[name] for name in self.fields)


def store_of(experiment: str, folder: Path, data: str) -> Store:
    """Return the results of an experiment, a key of ``KEYS``, on a data set."""
    return Store(folder / (data + ENDING), KEYS[experiment])


def as_json(content: Any) -> Any:
    """Convert a value to what JSON restores: lists for tuples."""
    return json.loads(json.dumps(content))


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Nobody else writes into the folder meanwhile; runs of several methods may share a file."""
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def main(arguments: Sequence[str] | None = None) -> int:
    """Put files together."""
    parser = argparse.ArgumentParser(prog="experiments.store", description="Put files of results together.")
    parser.add_argument("experiment", choices=tuple(KEYS))
    parser.add_argument("file", type=Path, help="the file that takes the records")
    parser.add_argument("others", type=Path, nargs="+", help="files whose records it takes; later ones count")
    given = parser.parse_args(arguments)
    fields = KEYS[given.experiment]
    missing = [str(path) for path in given.others if not path.is_file()]
    if missing:
        parser.error(f"the other files must be there; these are not: {', '.join(missing)}.")
    Store(given.file, fields).put(*(record for path in given.others for record in Store(path, fields).records()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
