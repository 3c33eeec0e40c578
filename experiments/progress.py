"""Lines of progress: what is finished, and how long the run has taken."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from rich.console import Console

from crisptree.datasets import DataFormatError, DataNotFoundError
from experiments.store import Record

Data = TypeVar("Data")


class Progress:
    """Counts steps that took time; what was there already is passed over in silence.

    A run cannot know its steps before its choices are made; ``experiments.run --dry-run`` estimates its time from the
    records of like cells.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False, soft_wrap=True)
        self.done, self.started = 0, time.perf_counter()

    def step(self, name: str, outcome: str) -> None:
        """Count a step and print it."""
        self.done += 1
        self.say(f"[{self.done}, {spoken(time.perf_counter() - self.started)}] {name}: {outcome}")

    def say(self, line: str) -> None:
        """Print a line of text."""
        self.console.print(line, markup=False)


def announce(console: Console, title: str, missing: Sequence[tuple[str, str]], seconds: Mapping[str, float]) -> None:
    """Print which records a page lacks, as (row, rest of its name), and how long they take by the seconds of a row."""
    names = [f"{row}, {rest}" for row, rest in missing]
    console.print(f"{title}: {len(missing)} records to make" + (f" ({'; '.join(names)})" if names else ""))
    known = [seconds[row] for row, _ in missing if row in seconds]
    unknown = sorted({row for row, _ in missing} - set(seconds))
    if known:
        console.print(f"  about {spoken(sum(known))} on the machines of the records")
    if unknown:
        console.print(f"  no record to guess the time from: {', '.join(unknown)}")


def median_seconds(records: Iterable[Record], row: str) -> dict[str, float]:
    """Return the median seconds of the records by the value of a field."""
    found: dict[str, list[float]] = {}
    for record in records:
        if record.get("seconds"):
            found.setdefault(record[row], []).append(record["seconds"])
    return {name: statistics.median(values) for name, values in found.items()}


def left_out(load: Callable[[], Data], title: str, console: Console) -> Data | None:
    """Load a data set, or print that its section is left out and return None."""
    try:
        return load()
    except (DataNotFoundError, DataFormatError) as error:
        console.print(f"{title} is left out: {error}", markup=False)
        return None


def spoken(seconds: float) -> str:
    """Format a duration.

    >>> spoken(42), spoken(600), spoken(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
