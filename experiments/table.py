"""Means and spreads of the finished cells by data set, method and depth."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from experiments import cells
from experiments.configs import Config
from experiments.methods import ALGORITHMS, METHODS, SEARCHES, STAGES
from experiments.store import store_of

MISSING, EARLIER = "—", "†"


@dataclass(frozen=True)
class Summary:
    """A metric over seeds, in percent. The spread is the standard deviation; a single seed has none."""

    values: tuple[float, ...]
    asked: int = 0
    known_spread: float | None = None

    @property
    def is_partial(self) -> bool:
        """Return True if the configuration has more seeds than are finished."""
        return len(self.values) < self.asked

    @property
    def with_seeds(self) -> str:
        """Mean ± spread, and how many seeds where some are not there yet."""
        return str(self) + (f" ({len(self.values)} of {self.asked} seeds)" if self.is_partial else "")

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return float(np.mean(self.values))

    @property
    def spread(self) -> float | None:
        """The standard deviation over seeds (n − 1), or that of a source."""
        if self.known_spread is not None:
            return self.known_spread
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None

    def __str__(self) -> str:
        return f"{self.mean:.2f}" if self.spread is None else f"{self.mean:.2f} ± {self.spread:.2f}"


@dataclass(frozen=True)
class Results:
    """The cells of one data set, and which of them there should be.

    ``choices`` counts the seeds whose trials chose the epochs of a method and depth; ``chosen`` are those that the mean
    over these seeds prefers, the fewest of those that tie.
    """

    config: Config
    done: dict[tuple[str, int], list[dict[str, Any]]] = field(default_factory=dict)
    given_up: dict[tuple[str, int], list[dict[str, Any]]] = field(default_factory=dict)
    choices: Counter[tuple[str, int]] = field(default_factory=Counter)
    chosen: dict[tuple[str, int], int] = field(default_factory=dict)

    @classmethod
    def of(cls, config: Config, records: Iterable[dict[str, Any]]) -> Results:
        """Cells that the configuration asks for; others are left out."""
        records = list(records)
        found = [record for record in records if record["kind"] == cells.CELL]
        trials = [record for record in records if record["kind"] == cells.SELECTION]
        wanted = {(method, depth, seed) for method, depth, seed in expected(config)}
        done, given_up = defaultdict(list), defaultdict(list)
        for cell in found:
            if (cell["method"], cell["depth"], cell["seed"]) in wanted:
                kind = done if cell["status"] == cells.DONE else given_up
                kind[cell["method"], cell["depth"]].append(cell)
        choices = Counter((trial["method"], trial["depth"]) for trial in trials if is_whole(trial))
        return cls(
            config, {key: _alike(group) for key, group in done.items()}, dict(given_up), choices, chosen_epochs(trials)
        )

    @classmethod
    def read(cls, config: Config, folder: Path) -> Results:
        """Read the results of a folder with one file per data set."""
        return cls.of(config, store_of("paper", folder, config.data).records())

    @property
    def methods(self) -> list[str]:
        """List the methods of the configuration, in the order of the tables."""
        asked = {method for method, _, _ in expected(self.config)}
        return [name for name in METHODS if name in asked]

    def get(self, method: str, depth: int, metric: str) -> Summary | None:
        """Return a metric in percent; None if no cell is finished or the method has none."""
        values = [cell["metrics"][metric] for cell in self.done.get((method, depth), [])]
        kept = tuple(100 * value for value in values if value is not None)
        asked = sum((method, depth) == (name, at) for name, at, _ in expected(self.config))
        return Summary(kept, asked) if kept else None

    def shown(self, method: str, depth: int, metric: str) -> str:
        """Format a cell: mean ± spread and missing seeds, or the reason why it is empty."""
        summary = self.get(method, depth, metric)
        if summary is None:
            return f"{MISSING} ({self.reason(method, depth)})"
        return summary.with_seeds + (f" {EARLIER}" if self.is_earlier(method, depth) else "")

    def reason(self, method: str, depth: int) -> str:
        """Describe why there is no cell."""
        if self.given_up.get((method, depth)):
            return "time cap"
        return "not run" if any((method, depth) == (name, at) for name, at, _ in expected(self.config)) else "not asked"

    def is_earlier(self, method: str, depth: int) -> bool:
        """Return True if the cell has an earlier set-up of a baseline, which the next run replaces."""
        return any(map(_is_earlier, self.done.get((method, depth), [])))

    def epochs(self, method: str, depth: int) -> int | None:
        """Return the epochs of a method at a depth."""
        group = self.done.get((method, depth))
        return group[0].get("epochs") if group else None

    def is_by_other_epochs(self, method: str, depth: int) -> bool:
        """Return True if cells were trained with other epochs than all seeds select now."""
        return self.chosen.get((method, depth)) not in (None, self.epochs(method, depth))

    def counted(self) -> tuple[int, int, int]:
        """Count the cells that are finished, ran into a time cap, and are configured."""
        done, capped = (sum(map(len, part.values())) for part in (self.done, self.given_up))
        return done, capped, len(expected(self.config))

    def hours(self) -> float:
        """Sum the hours of the fits of the finished cells, without trials on validation rows."""
        return sum(cell["seconds"] for group in self.done.values() for cell in group) / 3600

    def origins(self) -> list[str]:
        """List the commits and machines of the cells."""
        found = set()
        for group in self.done.values():
            for cell in group:
                machine = cell["machine"]
                place = f"{machine['cpu']}, {machine['cores']} cores"
                place += f", {machine['gpu']}" if machine["gpu"] else ""
                found.add(
                    f"`{cell['commit'][:12]}{'+changes' if cell['commit'].endswith('+changes') else ''}` on {place}"
                )
        return sorted(found)


def _alike(group: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the largest part of a group that has one configuration: only its seeds are averaged.

    While a run is under way some seeds may still have records of an earlier configuration.
    """
    settings: dict[str, list[dict[str, Any]]] = {}
    for cell in group:
        parameters = {name: value for name, value in cell["config"]["parameters"].items() if name != "random_state"}
        config = cell["config"] | {"parameters": parameters, "seed": None}
        settings.setdefault(json.dumps(config, sort_keys=True), []).append(cell)
    return max(settings.values(), key=lambda part: (not _is_earlier(part[0]), len(part)))


def _is_earlier(cell: dict[str, Any]) -> bool:
    return bool(cell["config"].get("search") != SEARCHES.get(cell["method"]))


def expected(config: Config) -> list[tuple[str, int, int]]:
    """List all cells of a configuration as (method, depth, seed)."""
    every: list[tuple[str, int, int]] = []
    if config.ours:
        names = [f"{stage}_{algorithm}" for algorithm in config.ours.algorithms for stage in STAGES]
        every += [(name, depth, seed) for name in names for depth in config.depths for seed in config.ours.seeds]
    if config.baselines:
        for name in config.baselines.methods:
            every += [(name, depth, seed) for depth in config.depths for seed in config.baselines.seeds_at(depth)]
    if soft := config.soft:
        depths = [depth for depth in config.depths if depth <= soft.max_depth]
        every += [("soft", depth, seed) for depth in depths for seed in soft.seeds]
    return every


def is_whole(trial: dict[str, Any]) -> bool:
    """Return True if a selection has tried all candidates; an interrupted one of ours names no epochs yet."""
    return not trial["method"].endswith(ALGORITHMS) or trial.get("epochs") is not None


def chosen_epochs(trials: Iterable[dict[str, Any]]) -> dict[tuple[str, int], int]:
    """Return the best epochs of each of our methods and depths, by the mean over seeds that tried all of them."""
    found = defaultdict(list)
    for trial in trials:
        if trial["method"].endswith(ALGORITHMS) and is_whole(trial) and "validation_hard" in trial:
            found[trial["method"], trial["depth"]].append(trial["validation_hard"])
    means = {pair: {int(n): np.mean([one[n] for one in many]) for n in many[0]} for pair, many in found.items()}
    return {pair: min(scores, key=lambda n: (-scores[n], n)) for pair, scores in means.items()}
