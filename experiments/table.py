"""Means and spreads of the finished cells by data set, method and depth."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments import cells
from experiments.configs import Config
from experiments.methods import ALGORITHMS, METHODS, SEARCHES, STAGES, comparable, stage_of
from experiments.store import Record, store_of

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

    def __sub__(self, other: Summary) -> Summary:
        """Subtract seed by seed."""
        return Summary(tuple(one - two for one, two in zip(self.values, other.values, strict=False)))

    def __str__(self) -> str:
        return self.rounded if self.spread is None else f"{self.rounded} ± {self.spread:.2f}"

    @property
    def rounded(self) -> str:
        """The mean with two decimals, never -0.00."""
        return f"{round(self.mean, 2) + 0.0:.2f}"


@dataclass(frozen=True)
class Results:
    """The cells of one data set, the trials behind them, and how many cells of other data were left out."""

    config: Config
    done: dict[tuple[str, int], list[Record]] = field(default_factory=dict)
    given_up: dict[tuple[str, int], list[Record]] = field(default_factory=dict)
    trials: list[Record] = field(default_factory=list)
    n_other_data: int = 0
    trials_of_epochs: list[Record] = field(default_factory=list)

    @classmethod
    def of(cls, config: Config, records: Iterable[Record]) -> Results:
        """Cells that the configuration asks for, of its data; others are left out."""
        records = list(records)
        wanted = set(expected(config))
        asked = [
            record
            for record in records
            if record["kind"] == cells.CELL and (record["method"], record["depth"], record["seed"]) in wanted
        ]
        known = [cell for cell in asked if config.fingerprint in (None, cell.get("fingerprint", config.fingerprint))]
        done, given_up = defaultdict(list), defaultdict(list)
        for cell in known:
            kind = done if cell["status"] == cells.DONE else given_up
            kind[cell["method"], cell["depth"]].append(cell)
        alike = {key: _alike(group) for key, group in done.items()}
        trials, of_epochs = (
            [record for record in records if record["kind"] == kind] for kind in (cells.SELECTION, cells.EPOCHS)
        )
        return cls(config, alike, dict(given_up), trials, len(asked) - len(known), of_epochs)

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
        """Return True if the cell has an earlier set-up, which the next run replaces: see ``report.EARLIER_WORDS``."""
        group = self.done.get((method, depth), [])
        return any(map(_is_earlier, group)) or self.starts_from_greedy_line(method, depth) is False

    def starts_from_greedy_line(self, method: str, depth: int) -> bool | None:
        """Return whether a finetuned tree starts from the tree of the Greedy line; None where one has no cell."""
        algorithm = method.partition("_")[2]
        pair = self.done.get((method, depth)), self.done.get((f"{STAGES[0]}_{algorithm}", depth))
        if stage_of(method) not in STAGES[1:] or not all(pair):
            return None
        one, other = (group[0]["config"]["parameters"]["epochs"] for group in pair if group)
        return bool(one == other)

    def with_gamma_continued(self) -> Results:
        """Return the results in which the trees that stand as finetuned are those whose γ goes on from growth."""
        one, other = STAGES[1:]
        others = {key: group for key, group in self.done.items() if stage_of(key[0]) != one}
        moved = {(name.replace(other, one), depth): group for (name, depth), group in others.items()}
        return replace(self, done=moved)

    @property
    def is_verified(self) -> bool:
        """Return False if cells are of data whose fingerprint the configuration does not know."""
        prints = {cell.get("fingerprint") for group in self.done.values() for cell in group}
        return self.config.made or prints <= {None, self.config.fingerprint}

    def at_the_edge(self, method: str) -> tuple[list[int], list[int]]:
        """List the depths whose best ν is the largest one tried, and those that lack trials of candidates."""
        edge, lacking = [], []
        assert self.config.baselines is not None
        wanted = {str(one) for one in self.config.baselines.candidates(method)}
        for trial in self.trials:
            if trial["method"] == method:
                tried = trial["validation_hard"]
                numbers = [float(name.split(",")[0]) for name in tried if not name.startswith("by gain")]
                edge += [trial["depth"]] if trial["nu"] == max(numbers) else []
                lacking += [trial["depth"]] if wanted - set(tried) else []
        return edge, lacking

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


def _alike(group: list[Record]) -> list[Record]:
    """Return the largest part of a group that has one configuration: only its seeds are averaged.

    While a run is under way some seeds may still have records of an earlier configuration.
    """
    settings: dict[str, list[Record]] = {}
    for cell in group:
        config = comparable(cell)
        parameters = {name: value for name, value in config["parameters"].items() if name != "random_state"}
        config = config | {"parameters": parameters, "seed": None}
        settings.setdefault(json.dumps(config, sort_keys=True), []).append(cell)
    return max(settings.values(), key=lambda part: (not _is_earlier(part[0]), len(part)))


def _is_earlier(cell: Record) -> bool:
    return bool(cell["config"].get("search") != SEARCHES.get(cell["method"]))


def expected(config: Config) -> list[tuple[str, int, int]]:
    """List all cells of a configuration as (method, depth, seed)."""
    every: list[tuple[str, int, int]] = []
    if config.ours:
        names = [name for algorithm in config.ours.algorithms for name in config.ours.lines(algorithm)]
        every += [(name, depth, seed) for name in names for depth in config.depths for seed in config.ours.seeds]
    if config.baselines:
        for name in config.baselines.methods:
            every += [(name, depth, seed) for depth in config.depths for seed in config.baselines.seeds_at(depth)]
    if soft := config.soft:
        depths = [depth for depth in config.depths if depth <= soft.max_depth]
        every += [("soft", depth, seed) for depth in depths for seed in soft.seeds]
    return every


def is_whole(trial: Record) -> bool:
    """Return True if a selection has tried all candidates; an interrupted one of ours names no epochs yet."""
    return not trial["method"].endswith(ALGORITHMS) or trial.get("epochs") is not None


def chosen_epochs(trials: Iterable[Record]) -> dict[tuple[str, int], int]:
    """Return the best epochs of each of our methods and depths, by the mean over seeds that tried all of them.

    Trials of finetuning count where they start from the best epochs of growth.
    """
    found: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for trial in trials:
        if trial["method"].endswith(ALGORITHMS) and is_whole(trial) and "validation_hard" in trial:
            found[trial["method"], trial["depth"]].append(trial)
    best: dict[tuple[str, int], int] = {}
    for method, depth in sorted(found, key=lambda pair: not pair[0].startswith("greedy")):
        many = [trial for trial in found[method, depth] if is_from_greedy(trial, best)]
        if many:
            scores = [trial["validation_hard"] for trial in many]
            means = {int(n): np.mean([one[n] for one in scores]) for n in scores[0]}
            best[method, depth] = min(means, key=lambda n: (-means[n], n))
    return best


def is_from_greedy(record: Record, best: Mapping[tuple[str, int], int]) -> bool:
    """Return True unless a finetuned tree starts from other epochs of growth than are best for the greedy one."""
    if stage_of(record["method"]) not in STAGES[1:]:
        return True
    start = f"{STAGES[0]}_{record['method'].partition('_')[2]}", record["depth"]
    return bool(record["config"]["parameters"].get("epochs") == best.get(start))
