"""Medians of calls that alternate, so that noise affects all alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

PASSES = 3
PAUSE = 0.3
"""Seconds before each turn: worker threads of the one before go on spinning for a while and would hold a core."""


def medians(
    calls: Mapping[str, Callable[[], object]],
    rounds: int = 25,
    repeat: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Seconds of one call of each: the median over several turns of ``rounds`` calls, a first one left out.

    ``time.process_time`` as the clock counts what all threads take of the processor, whatever else runs beside.
    """
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(PASSES):
        for name, call in calls.items():
            time.sleep(PAUSE)
            call()
            for _ in range(rounds):
                started = clock()
                for _ in range(repeat):
                    call()
                seconds[name].append((clock() - started) / repeat)
    return {name: float(np.median(values)) for name, values in seconds.items()}


def table(header: list[str], rows: list[list[str]]) -> str:
    """Format a Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"
