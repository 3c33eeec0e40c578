"""Cells of the tables, one JSON file each: what was asked, what came out, where from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DONE = "done"
TIME_CAP = "time cap"


@dataclass(frozen=True, order=True)
class Cell:
    """A method at a depth with a seed."""

    method: str
    depth: int
    seed: int

    def path(self, folder: Path) -> Path:
        """The cell's file in the folder of its data set."""
        return folder / self.method / f"depth-{self.depth:02d}-seed-{self.seed}.json"

    def __str__(self) -> str:
        return f"{self.method}, depth {self.depth}, seed {self.seed}"


def read_all(folder: Path) -> Iterator[dict[str, Any]]:
    """Every cell in the folder of a data set."""
    for path in sorted(folder.glob("*/depth-*-seed-*.json")):
        yield json.loads(path.read_text(encoding="utf-8"))


def read(path: Path) -> dict[str, Any] | None:
    """A JSON file; None where there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON file whole or not at all, whatever interrupts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        unfinished.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def is_settled(found: dict[str, Any] | None, config: dict[str, Any], time_cap: float | None) -> bool:
    """Whether a file answers for this configuration; one that ran into a lower time cap than now does not."""
    if found is None or found["config"] != as_json(config):
        return False
    return found["status"] == DONE or (time_cap is not None and found["time_cap"] >= time_cap)


def as_json(content: Any) -> Any:
    """What a reader of the file will see: lists for tuples."""
    return json.loads(json.dumps(content))
