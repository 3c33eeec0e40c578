"""Cells of the tables, and the model selection behind them: configuration, result and provenance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiments.store import Record, as_json

DONE = "done"
TIME_CAP = "time cap"
CELL, SELECTION, EPOCHS = "cell", "selection", "epochs"
"""Kinds of records: a measured cell; a choice on validation rows that cells of all seeds rest on; trials of more epochs
of a baseline, which nothing rests on."""


@dataclass(frozen=True, order=True)
class Cell:
    """A method at a depth with a seed."""

    method: str
    depth: int
    seed: int

    def __str__(self) -> str:
        return f"{self.method}, depth {self.depth}, seed {self.seed}"


def is_valid(found: Record | None, config: dict[str, Any], time_cap: float | None) -> bool:
    """Return True if a record is valid for a configuration; one that ran into a lower time cap is not."""
    if found is None or found["config"] != as_json(config):
        return False
    return found["status"] == DONE or (time_cap is not None and found["time_cap"] >= time_cap)
