"""Non-greedy training with more epochs: ``python -m experiments.more_epochs [configuration ...]``.

Our lines select their epochs, the baselines train for a fixed number. For the strongest of them this makes the trials
that a selection would make, with the first seed and the ν and step that are selected already. Finished ones are kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from crisptree.datasets import Dataset
from experiments import cells, configs, methods, provenance
from experiments.along import Along, Growth
from experiments.cells import Cell
from experiments.configs import Baselines, Config
from experiments.methods import Bounded
from experiments.progress import Progress, left_out
from experiments.session import Session, hard_accuracy
from experiments.standins import LOADERS
from experiments.store import Record, store_of
from experiments.trees import Grown, Shelf, train_on

NAME = "non_greedy"
RESULTS = provenance.RESULTS / "paper"


def missing(config: Config, results: Path) -> list[Cell]:
    """List the depths whose ν is selected and whose trials are not whole."""
    store = store_of("paper", results, config.data)
    selected = {record["depth"]: record for record in store.records(kind=cells.SELECTION, method=NAME)}
    found = {record["depth"]: record for record in store.records(kind=cells.EPOCHS, method=NAME)}
    wanted = {str(epochs) for epochs in config.ours.epochs} if config.ours else set()
    return [
        Cell(NAME, depth, record["seed"])
        for depth, record in sorted(selected.items())
        if record.get("nu") is not None and not _is_whole(found.get(depth), record, wanted)
    ]


def _is_whole(found: Record | None, selected: Record, wanted: set[str]) -> bool:
    if found is None or (found["nu"], found["rate"]) != (selected["nu"], selected["rate"]):
        return False
    return wanted <= set(found["validation_hard"])


def run(session: Session, baselines: Baselines, wanted: Sequence[Cell]) -> None:
    """Grow CO2's tree through the depths, and train it with every number of epochs at each of them."""
    assert session.config.ours is not None
    epochs_of_ours = session.config.ours.epochs
    along = Along(session, baselines)

    def train(cell: Cell, grown: Grown) -> None:
        selected = session.found(cell, cells.SELECTION)
        assert selected is not None
        bounded = Bounded(selected["nu"], selected["rate"])
        scores = {}
        for epochs in epochs_of_ours:
            like = methods.baseline(NAME, cell.depth, epochs, cell.seed, bounded)
            trained = train_on(grown.model, like, session.rows("train"))
            scores[str(epochs)] = hard_accuracy(trained, (session.data.X_valid, session.data.y_valid))
        config = along.config(methods.baseline(NAME, cell.depth, 1, cell.seed, bounded), NAME, cell.depth, "train")
        outcome = {"validation_hard": scores, "nu": bounded.nu, "rate": bounded.rate}
        session.record(cell, outcome, config, cells.EPOCHS)
        session.progress.step(f"{session.config.data}: {cell}", f"validation {scores}")

    for cell in wanted:
        along(Growth("co2", cell.seed), "train", [cell], train, lambda _: None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing."""
    parser = argparse.ArgumentParser(prog="experiments.more_epochs", description=__doc__.splitlines()[0])
    parser.add_argument("configs", nargs="*", help="names or TOML files; all of the paper's for none")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--trees", type=Path, default=provenance.ROOT / "build" / "experiments")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--commit", help="what to record where git cannot say it")
    parser.add_argument("--dry-run", action="store_true", help="list what is missing")
    given = parser.parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    for config in map(configs.read, configs.find(given.configs)):
        wanted = missing(config, given.results)
        if given.dry_run:
            depths = ", ".join(str(cell.depth) for cell in wanted)
            console.print(f"Epochs of non-greedy training, {config.title}: {len(wanted)} records to make ({depths})")
        elif wanted and (data := left_out(LOADERS[config.data], config.title, console)) is not None:
            run(_session(config, data, given, console), config.baselines or Baselines((), (), 1, 1.0), wanted)
    return 0


def _session(config: Config, data: Dataset, given: argparse.Namespace, console: Console) -> Session:
    commit = given.commit or provenance.commit(given.results)
    store = store_of("paper", given.results, config.data)
    return Session(config, data, store, Shelf(given.trees), Progress(console), commit, given.device)


if __name__ == "__main__":
    sys.exit(main())
