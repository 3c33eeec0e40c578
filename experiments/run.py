"""Run the experiments: ``python -m experiments.run [configuration ...]``.

Finished cells are never run again; interrupt and repeat the command to go on. ``--jobs`` runs several processes,
``--dry-run`` says what there is to do and about how long it takes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from rich.console import Console

from crisptree.datasets import DataFormatError, DataNotFoundError, Dataset
from experiments import baselines, configs, ours, parallel, provenance
from experiments.methods import METHODS
from experiments.progress import Progress
from experiments.session import Filter, Session
from experiments.standins import LOADERS
from experiments.store import store_of
from experiments.trees import Shelf

RESULTS = provenance.RESULTS / "paper"
TREES = provenance.ROOT / "build" / "experiments"

Value = TypeVar("Value")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; the exit status is 1 where a data set could not be read though it is there."""
    given = _parser().parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    status = 0
    try:
        try:
            wanted = [(configs.read(path), path) for path in configs.find(given.configs)]
        except ValueError as error:
            console.print(str(error), markup=False)
            return 2
        if given.jobs > 1 or given.dry_run:
            return _run_side_by_side(wanted, given, console)
        for config, _ in wanted:
            status |= _run(config, given, console)
    except KeyboardInterrupt:
        console.print("Interrupted. What is finished stays; the same command goes on from here.")
        return 130
    return status


def _run(config: configs.Config, given: argparse.Namespace, console: Console) -> int:
    try:
        data = LOADERS[config.data]()
    except (DataNotFoundError, DataFormatError) as error:
        console.print(f"{config.title} is left out: {error}", markup=False)
        return int(isinstance(error, DataFormatError))
    commit = given.commit or provenance.commit(given.results)
    with TemporaryDirectory() as for_now:
        # Trees of code that nobody can check out again must not outlive the run.
        trees = given.trees if provenance.is_known(commit) else Path(for_now)
        _run_all(config, data, commit, trees, given, console)
    return 0


def _run_side_by_side(wanted: list[tuple[configs.Config, Path]], given: argparse.Namespace, console: Console) -> int:
    """Run all data sets in one pool of processes, so that no core idles at the end of one of them."""
    there, status = [], 0
    for config, path in wanted:
        try:
            LOADERS[config.data]()
        except (DataNotFoundError, DataFormatError) as error:
            console.print(f"{config.title} is left out: {error}", markup=False)
            status |= int(isinstance(error, DataFormatError))
        else:
            there.append((config, path))
    asked = Filter(given.methods, given.depths, given.seeds)
    by_data = [parallel.waves(config, path, asked) for config, path in there]
    planned = [[unit for waves in by_data for unit in waves[number]] for number in range(4)]
    if given.stage == "choose":
        planned = planned[:2]
    if given.dry_run:
        parallel.describe(planned, given.results, given.jobs, console)
        return status
    commit = given.commit or provenance.commit(given.results)
    shared = [
        "--device",
        given.device,
        "--results",
        str(given.results),
        "--trees",
        str(given.trees),
        "--commit",
        commit,
    ]
    shared += ["--time-cap", str(given.time_cap)] if given.time_cap is not None else []
    return status | parallel.run(planned, given.jobs, given.results, shared, console)


def _run_all(
    config: configs.Config, data: Dataset, commit: str, trees: Path, given: argparse.Namespace, console: Console
) -> None:
    session = Session(
        config=config,
        data=data,
        store=store_of("paper", given.results, config.data),
        shelf=Shelf(trees),
        progress=Progress(console),
        commit=commit,
        device=given.device,
        filter=Filter(given.methods, given.depths, given.seeds),
        time_cap=given.time_cap,
        trains=given.stage == "all",
    )
    ours.run(session)
    baselines.run(session)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="experiments.run", description=__doc__.splitlines()[0])
    parser.add_argument("configs", nargs="*", help="names or TOML files; all of the paper's for none")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="where to train")
    parser.add_argument("--methods", type=_several(_method), help="only these, with commas: " + ", ".join(METHODS))
    parser.add_argument("--depths", type=_several(int), help="only these, with commas")
    parser.add_argument("--seeds", type=_several(int), help="only these, with commas")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of the results")
    parser.add_argument("--trees", type=Path, default=TREES, help="where grown trees are kept for a resumed run")
    parser.add_argument("--commit", help="what to record where git cannot say it")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time, each with its share of the cores")
    parser.add_argument("--dry-run", action="store_true", help="say what there is to do and about how long it takes")
    parser.add_argument("--stage", choices=("all", "choose"), default="all", help="only choices on validation rows")
    parser.add_argument(
        "--time-cap", type=float, help="seconds for a baseline's growth, a baseline's training, a soft tree"
    )
    return parser


def _several(read: Callable[[str], Value]) -> Callable[[str], frozenset[Value]]:
    def values(text: str) -> frozenset[Value]:
        return frozenset(read(part.strip()) for part in text.split(","))

    return values


def _method(name: str) -> str:
    if name not in METHODS:
        raise argparse.ArgumentTypeError(f"a method must be one of {', '.join(METHODS)}; got {name!r}.")
    return name


if __name__ == "__main__":
    sys.exit(main())
