"""What the finished cells say: means and spreads by data set, method and depth."""

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
        """Whether the configuration asks for more seeds than are finished."""
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
        """The standard deviation between seeds (n − 1), or what a source says."""
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
        """The results in a folder that holds one file per data set."""
        return cls.of(config, store_of("paper", folder, config.data).records())

    @property
    def methods(self) -> list[str]:
        """The methods that the configuration asks for, in the order of the tables."""
        asked = {method for method, _, _ in expected(self.config)}
        return [name for name in METHODS if name in asked]

    def get(self, method: str, depth: int, metric: str) -> Summary | None:
        """A metric in percent; None where no cell is finished or the method has none."""
        values = [cell["metrics"][metric] for cell in self.done.get((method, depth), [])]
        kept = tuple(100 * value for value in values if value is not None)
        asked = sum((method, depth) == (name, at) for name, at, _ in expected(self.config))
        return Summary(kept, asked) if kept else None

    def shown(self, method: str, depth: int, metric: str) -> str:
        """The cell of a table: mean ± spread, how many seeds are not there yet, or why there is nothing."""
        summary = self.get(method, depth, metric)
        if summary is None:
            return f"{MISSING} ({self.reason(method, depth)})"
        return summary.with_seeds + (f" {EARLIER}" if self.is_earlier(method, depth) else "")

    def reason(self, method: str, depth: int) -> str:
        """Why there is no cell."""
        if self.given_up.get((method, depth)):
            return "time cap"
        return "not run" if any((method, depth) == (name, at) for name, at, _ in expected(self.config)) else "not asked"

    def is_earlier(self, method: str, depth: int) -> bool:
        """Whether the cell comes from an earlier set-up of a baseline, which the next run replaces."""
        return any(map(_is_earlier, self.done.get((method, depth), [])))

    def epochs(self, method: str, depth: int) -> int | None:
        """The epochs that a method was trained with at a depth."""
        group = self.done.get((method, depth))
        return group[0].get("epochs") if group else None

    def is_by_other_epochs(self, method: str, depth: int) -> bool:
        """Whether cells were trained before all seeds had chosen the epochs, and these are others."""
        return self.chosen.get((method, depth)) not in (None, self.epochs(method, depth))

    def counted(self) -> tuple[int, int, int]:
        """How many cells are finished, ran into a time cap, and are asked for."""
        done, capped = (sum(map(len, part.values())) for part in (self.done, self.given_up))
        return done, capped, len(expected(self.config))

    def hours(self) -> float:
        """What the fits of the finished cells took one after another, trials on validation rows not counted."""
        return sum(cell["seconds"] for group in self.done.values() for cell in group) / 3600

    def origins(self) -> list[str]:
        """The commits and machines that the cells come from."""
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
    """The largest part of a group that comes from one configuration: only its seeds have a mean.

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
    """All cells of a configuration as (method, depth, seed)."""
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
    """Whether a choice has tried all it has to try: one of ours that was broken off names no epochs yet."""
    return not trial["method"].endswith(ALGORITHMS) or trial.get("epochs") is not None


def chosen_epochs(trials: Iterable[dict[str, Any]]) -> dict[tuple[str, int], int]:
    """The epochs that each of our methods and depths does best with, on the mean of seeds that have tried them all."""
    found = defaultdict(list)
    for trial in trials:
        if trial["method"].endswith(ALGORITHMS) and is_whole(trial) and "validation_hard" in trial:
            found[trial["method"], trial["depth"]].append(trial["validation_hard"])
    means = {pair: {int(n): np.mean([one[n] for one in many]) for n in many[0]} for pair, many in found.items()}
    return {pair: min(scores, key=lambda n: (-scores[n], n)) for pair, scores in means.items()}
