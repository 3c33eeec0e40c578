"""The same run in several processes: model selection first, then the cells that depend on it, longest first.

Every unit is a command of ``experiments.run`` with filters; units never write the same record, and a unit whose records
are there ends at once, so a run may be broken off and repeated.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments import cells
from experiments.configs import Config
from experiments.methods import ALGORITHMS, SEARCHES, SOFT, STAGES, stage_of
from experiments.progress import spoken
from experiments.session import Filter
from experiments.store import Record, store_of
from experiments.table import chosen_epochs, expected, is_from_greedy, is_whole

BOUNDED = ("co2", "non_greedy")
"""The baselines that choose among candidates."""

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Unit:
    """A part of a data set's run."""

    config: Config
    path: Path
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    depths: tuple[int, ...]
    stage: str = "all"

    def __str__(self) -> str:
        seeds, depths = (", ".join(map(str, numbers)) for numbers in (self.seeds, self.depths))
        what = "choices of " if self.stage == "choose" else ""
        return f"{self.config.data}: {what}{', '.join(self.methods)}, seed {seeds}, depth {depths}"

    def arguments(self) -> list[str]:
        """Return the command-line filters of the unit."""
        lists = {"--methods": self.methods, "--seeds": self.seeds, "--depths": self.depths}
        given = [part for name, values in lists.items() for part in (name, ",".join(map(str, values)))]
        return [str(self.path), *given, "--stage", self.stage]


def waves(config: Config, path: Path, wanted: Filter) -> list[list[Unit]]:
    """Units in four waves: choices; those of finetuning and non-greedy training; cells; those of the latter."""
    found: list[list[Unit]] = [[], [], [], []]
    depths = config.depths

    def add(wave: int, methods: tuple[str, ...], seeds: tuple[int, ...], at: tuple[int, ...], stage: str) -> None:
        found[wave].append(Unit(config, path, methods, seeds, at, stage))

    if ours := config.ours:
        for algorithm in ours.algorithms:
            names = ours.lines(algorithm)
            for number, name in enumerate(names if len(ours.epochs) > 1 else ()):
                for seed in ours.choice_seeds:
                    add(min(number, 1), (name,), (seed,), depths, "choose")
            for seed in ours.seeds:
                add(2, names, (seed,), depths, "all")
    for name in config.baselines.methods if config.baselines else ():
        assert config.baselines is not None
        first, whole = config.baselines.seeds[:1], name == "non_greedy"
        if name == "co2":
            add(0, (name,), first, depths, "choose")
        for depth in depths if whole else ():
            add(1, (name,), first, (depth,), "choose")
        for seed in config.baselines.seeds:
            mine = tuple(depth for depth in depths if seed in config.baselines.seeds_at(depth))
            for part in [(depth,) for depth in mine] if whole else [mine]:
                add(3 if whole else 2, (name,), (seed,), part, "all")
    if soft := config.soft:
        at = tuple(depth for depth in depths if depth <= soft.max_depth)
        add(2, (SOFT,), soft.seeds, at, "all")
    return [[kept for unit in wave if (kept := _kept(unit, wanted))] for wave in found]


def _kept(unit: Unit, wanted: Filter) -> Unit | None:
    """Filter a unit; model selection has seeds of its own, whatever cells are requested.

    Finetuned trees need Greedy's selection too.
    """
    lists: list[tuple[Any, ...]] = []
    names = wanted.methods
    if names is not None and unit.stage == "choose":
        names |= {f"{STAGES[0]}_{name.partition('_')[2]}" for name in names if stage_of(name)}
    for values, asked in ((unit.methods, names), (unit.seeds, wanted.seeds), (unit.depths, wanted.depths)):
        is_choice = unit.stage == "choose" and values is unit.seeds
        lists.append(tuple(value for value in values if asked is None or is_choice or value in asked))
    methods, seeds, depths = lists
    return replace(unit, methods=methods, seeds=seeds, depths=depths) if all(lists) else None


@dataclass(frozen=True)
class Estimate:
    """What the records that there are say of a unit: how many are missing, and about how many seconds they take."""

    missing: int
    seconds: float | None


def estimate(unit: Unit, results: Path, known: Sequence[Record]) -> Estimate:
    """Estimate the seconds from cells of the same method and depth; None without any.

    A tree is grown once per number of epochs for all its depths; choices take as long as the cells of the trials that
    they lack. Cells of other epochs than the recorded choices prefer are missing; what a choice still to be made will
    change cannot be known before.
    """
    records = [
        record for record in store_of("paper", results, unit.config.data).records() if record["kind"] != cells.EPOCHS
    ]
    selections = [record for record in records if record["kind"] == cells.SELECTION]
    chosen, bounds = chosen_epochs(selections), {(one["method"], one["depth"]): _bound(one) for one in selections}
    there = {
        (record["kind"], record["method"], record["depth"], record["seed"])
        for record in records
        if _is_current(record, chosen, bounds, unit.config)
    }
    kind = cells.SELECTION if unit.stage == "choose" else cells.CELL
    asked = expected(unit.config) if kind == cells.CELL else None
    every = [(name, depth, seed) for name in unit.methods for depth in unit.depths for seed in unit.seeds]
    missing = [key for key in every if (asked is None or key in asked) and (kind, *key) not in there]
    if not missing:
        return Estimate(0, 0.0)
    parts = [_seconds(unit.config.data, name, depth, known) for name, depth, _ in missing]
    if any(part is None for part in parts):
        return Estimate(len(missing), None)
    growths, trials = _work(unit, missing, selections, chosen)
    growing = max(part[0] for part in parts if part)
    return Estimate(
        len(missing), growths * growing + sum(n * part[1] for n, part in zip(trials, parts, strict=True) if part)
    )


def _work(
    unit: Unit,
    missing: Sequence[tuple[str, int, int]],
    selections: Sequence[Record],
    chosen: Mapping[tuple[str, int], int],
) -> tuple[int, list[int]]:
    """Count the growths to the largest depth that a unit needs, and the trials of each missing record."""
    ours, is_choice = unit.config.ours, unit.stage == "choose"
    if not ours or not unit.methods[0].endswith(ALGORITHMS):
        number = _trials_of_baseline(unit, selections) if is_choice else 1
        growths = 1 if unit.methods == ("non_greedy",) else number  # whose candidates all start from one CO2 tree
        return growths, [number] * len(missing)
    tried = {
        (one["method"], one["depth"], one["seed"]): len(one["validation_hard"])
        for one in selections
        if is_from_greedy(one, chosen)
    }
    trials = [len(ours.epochs) - tried.get(key, 0) if is_choice else 1 for key in missing]
    if is_choice and stage_of(unit.methods[0]) == STAGES[0]:
        return max(trials), trials
    depths = {depth for _, depth, _ in missing}
    greedy = f"{STAGES[0]}_{unit.methods[0].partition('_')[2]}"
    starts = {chosen[greedy, depth] for depth in depths if (greedy, depth) in chosen}
    unknown = sum((greedy, depth) not in chosen for depth in depths)
    return min(len(starts) + unknown, len(ours.epochs)), trials


def _trials_of_baseline(unit: Unit, selections: Sequence[Record]) -> int:
    """Count the candidates of a baseline's choice that were not tried at all of its depths."""
    assert unit.config.baselines is not None
    tried = [
        set(record["validation_hard"])
        for record in selections
        if (record["method"],) == unit.methods and record["depth"] in unit.depths
    ]
    common = set.intersection(*tried) if len(tried) == len(unit.depths) else set()
    return len({str(one) for one in unit.config.baselines.candidates(unit.methods[0])} - common)


def _seconds(data: str, name: str, depth: int, known: Sequence[Record]) -> tuple[float, float] | None:
    """Seconds of growth and of what follows it, in the median of like cells: of the data set, else of any.

    Trees whose γ continues take as long as those whose γ starts again.
    """
    names = dict.fromkeys((name, name.replace(STAGES[2], STAGES[1])))
    alike = [
        [one for one in known if (one["method"], one["depth"]) == (like, depth) and one["seconds"]] for like in names
    ]
    of_data = [[one for one in group if one["data"] == data] for group in alike]
    found = next(filter(None, of_data + alike), None)
    if found is None:
        return None
    growing = [record.get("seconds_growing", record["seconds"] if name != SOFT else 0.0) for record in found]
    rest = [record["seconds"] - part for record, part in zip(found, growing, strict=True)]
    return statistics.median(growing), statistics.median(rest)


def _bound(trial: Record) -> tuple[float | None, float | None]:
    """Return the ν and the step that a selection of a baseline has chosen."""
    return trial.get("nu"), trial.get("rate")


def _is_current(
    record: Record,
    chosen: Mapping[tuple[str, int], int],
    bounds: Mapping[tuple[str, int], tuple[float | None, float | None]],
    config: Config,
) -> bool:
    """Return True if a record has the present set-up: all candidates tried, the selected epochs and ν, Greedy's tree.

    A cell that was given up at a time cap counts.
    """
    method, depth = record["method"], record["depth"]
    if not is_from_greedy(record, chosen):
        return False
    if record["kind"] == cells.SELECTION:
        wanted = config.baselines.candidates(method) if config.baselines and method in BOUNDED else []
        if not is_whole(record) or {str(one) for one in wanted} - set(record["validation_hard"]):
            return False
    elif (epochs := chosen.get((method, depth))) is not None:
        stage = "epochs" if stage_of(method) == STAGES[0] else "finetune_epochs"
        if record["config"]["parameters"].get(stage) != epochs:
            return False
    elif method in BOUNDED and record["status"] == cells.DONE and (method, depth) in bounds:
        parameters = record["config"]["parameters"]
        if (parameters["nu"], parameters["learning_rate"]) != bounds[method, depth]:
            return False
    return bool(record["config"].get("search") == SEARCHES.get(method))


def known_cells(results: Path, configs: Iterable[Config]) -> list[Record]:
    """Read all finished cells of some data sets."""
    stores = (store_of("paper", results, config.data) for config in configs)
    return [record for store in stores for record in store.records(kind=cells.CELL) if record["status"] == cells.DONE]


def describe(planned: Sequence[Sequence[Unit]], results: Path, jobs: int, console: Console) -> None:
    """Say which units a run has, what they lack and about how long they take."""
    known = known_cells(results, {unit.config.data: unit.config for wave in planned for unit in wave}.values())
    total, longest, unknown = 0.0, 0.0, 0
    for number, wave in enumerate(planned, start=1):
        slowest = 0.0
        for unit in wave:
            guess = estimate(unit, results, known)
            if not guess.missing:
                continue
            took = "no record to guess from" if guess.seconds is None else f"about {spoken(guess.seconds)}"
            console.print(f"wave {number}: {unit}: {guess.missing} records to make, {took}", markup=False)
            unknown += guess.seconds is None
            total += guess.seconds or 0.0
            slowest = max(slowest, guess.seconds or 0.0)
        longest += slowest
    least = max(total / jobs, longest)
    more = f", and {unknown} units without a guess" if unknown else ""
    console.print(f"{spoken(total)} in all, {spoken(least)} with {jobs} at a time{more}.", markup=False)
    machines = sorted({record["machine"]["gpu"] or record["machine"]["cpu"] for record in known})
    console.print(f"These are times of the records' machines: {', '.join(machines) or 'none'}.", markup=False)


def run(planned: Sequence[Sequence[Unit]], jobs: int, results: Path, shared: Sequence[str], console: Console) -> int:
    """Run all units, ``jobs`` at a time; 1 where one of them failed."""
    known = known_cells(results, {unit.config.data: unit.config for wave in planned for unit in wave}.values())
    threads = str(max(1, (os.cpu_count() or 1) // jobs))
    limits = {"OMP_NUM_THREADS": threads, "LOKY_MAX_CPU_COUNT": threads}  # the latter bounds n_jobs=-1
    environment = os.environ | limits | {"PYTHONPATH": os.pathsep.join([str(ROOT), *_path()])}
    failed = 0

    def call(unit: Unit) -> int:
        started = time.perf_counter()
        command = [sys.executable, "-m", "experiments.run", *unit.arguments(), *shared]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        last = (done.stdout.strip().splitlines() or [""])[-1]
        said = f"{last} ({spoken(time.perf_counter() - started)})" if done.returncode == 0 else done.stderr or last
        console.print(f"{unit}: {said}", markup=False)
        return done.returncode

    for wave in planned:
        guesses = {unit: estimate(unit, results, known) for unit in wave}
        todo = sorted((u for u in wave if guesses[u].missing), key=lambda u: -(guesses[u].seconds or 1e9))
        with ThreadPoolExecutor(jobs) as pool:
            failed |= any(list(pool.map(call, todo)))
    return int(failed)


def _path() -> list[str]:
    return [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
