"""Lines of progress: what is finished, and how long the run has taken."""

from __future__ import annotations

import time

from rich.console import Console


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


def spoken(seconds: float) -> str:
    """Format a duration.

    >>> spoken(42), spoken(600), spoken(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
