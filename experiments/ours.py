"""Greedy and finetuned trees: epochs selected on validation rows, then several seeds on all rows but the test rows."""

from __future__ import annotations

from typing import Any

from experiments import cells, methods
from experiments.cells import Cell
from experiments.configs import Ours
from experiments.session import Session, hard_accuracy
from experiments.store import as_json
from experiments.trees import Grown, grow, timed, train_on


def count(session: Session) -> int:
    """Count the steps of progress."""
    ours = session.config.ours
    if ours is None:
        return 0
    names = _names(ours)
    total = len(session.wanted(names, ours.seeds)) if session.trains else 0
    if len(ours.epochs) > 1:
        total += len(ours.epochs) * len(session.selection_cells(names, ours.choice_seeds))
    return total


def run(session: Session) -> None:
    """Run all requested cells of the paper's own algorithms."""
    ours = session.config.ours
    for algorithm in ours.algorithms if ours else ():
        _run(session, ours, algorithm)


def _names(ours: Ours) -> list[str]:
    return [f"{stage}_{algorithm}" for algorithm in ours.algorithms for stage in methods.STAGES]


def _run(session: Session, ours: Ours, algorithm: str) -> None:
    names = [f"{stage}_{algorithm}" for stage in methods.STAGES]
    wanted = session.wanted(names, ours.seeds)
    chosen = _choose(session, ours, algorithm, session.selection_cells(names, ours.choice_seeds))
    for seed in ours.seeds if session.trains else ():
        for epochs in ours.epochs:
            mine = [cell for cell in wanted if cell.seed == seed and chosen[cell.method, cell.depth] == epochs]
            _finish(session, algorithm, epochs, mine)


def _finish(session: Session, algorithm: str, epochs: int, wanted: list[Cell]) -> None:
    """Run the cells of one seed that share a number of epochs, and so one growth."""
    grown = None
    for cell in wanted:
        model = _model(cell, epochs)
        config = session.describe(model, grown_to=session.config.depths[-1])
        if session.is_valid(cell, config):
            session.skip(cell)
            continue
        grown = grown or _grown(session, "all", algorithm, epochs, cell.seed)
        trained, seconds = _trained(session, grown, cell, epochs, "all")
        growing = grown.seconds_to(cell.depth)
        session.finish(cell, config, trained, growing + seconds, epochs=epochs, seconds_growing=round(growing, 3))


def _choose(session: Session, ours: Ours, algorithm: str, trials: list[Cell]) -> dict[tuple[str, int], int]:
    """Select the epochs of each method and depth by the hard accuracy on validation rows; fewer win ties."""
    pairs = list(dict.fromkeys((cell.method, cell.depth) for cell in trials))
    if len(ours.epochs) == 1:
        return dict.fromkeys(pairs, ours.epochs[0])
    scores = {cell: _scores(session, cell) for cell in trials}
    for seed in dict.fromkeys(cell.seed for cell in trials):
        for epochs in ours.epochs:
            _try(session, ours, algorithm, epochs, {cell: scores[cell] for cell in trials if cell.seed == seed})
    return {pair: best(_means([scores[cell] for cell in trials if _pair(cell) == pair]), ours.epochs) for pair in pairs}


def _try(session: Session, ours: Ours, algorithm: str, epochs: int, scores: dict[Cell, dict[str, float]]) -> None:
    """Run the trials of one seed with a number of epochs, which share one growth."""
    grown = None
    for cell, found in scores.items():
        if str(epochs) in found:
            session.skip(cell)
            continue
        grown = grown or _grown(session, "train", algorithm, epochs, cell.seed)
        trained, seconds = _trained(session, grown, cell, epochs, "train")
        score = hard_accuracy(trained, (session.data.X_valid, session.data.y_valid))
        found[str(epochs)] = score
        _record(session, cell, found, ours.epochs)
        session.progress.step(
            f"{session.config.data}: {cell}, trial of {epochs} epochs",
            f"validation {100 * score:.2f} in {seconds:.1f} s",
        )


def _means(scores: list[dict[str, float]]) -> dict[str, float]:
    return {epochs: sum(found[epochs] for found in scores) / len(scores) for epochs in scores[0]}


def _pair(cell: Cell) -> tuple[str, int]:
    return cell.method, cell.depth


def best(scores: dict[str, float], epochs: tuple[int, ...]) -> int:
    """Return the number of epochs with the highest score, the first in ties."""
    return max(epochs, key=lambda number: scores[str(number)])


def _scores(session: Session, cell: Cell) -> dict[str, float]:
    """Trials of an earlier run with the same configuration."""
    found = session.found(cell, cells.SELECTION)
    if found is None or found["config"] != as_json(_selection_config(session, cell)):
        return {}
    return found["validation_hard"]


def _record(session: Session, cell: Cell, scores: dict[str, float], epochs: tuple[int, ...]) -> None:
    whole = all(str(number) in scores for number in epochs)
    outcome = {"validation_hard": scores, "epochs": best(scores, epochs) if whole else None}
    session.record(cell, outcome, _selection_config(session, cell), cells.SELECTION)


def _selection_config(session: Session, cell: Cell) -> dict[str, Any]:
    config = session.describe(_model(cell, 1), "train", seed=cell.seed, grown_to=session.config.depths[-1])
    left_open = ("epochs", "finetune_epochs")
    config["parameters"] = {name: value for name, value in config["parameters"].items() if name not in left_open}
    return config


def _model(cell: Cell, epochs: int) -> Any:
    stage, algorithm = cell.method.split("_")
    return methods.ours(stage, algorithm, cell.depth, epochs, cell.seed)


def _grown(session: Session, part: str, algorithm: str, epochs: int, seed: int) -> Grown:
    """Grow the greedy tree of the largest depth, level by level; truncated, it is the tree of a depth."""
    model = methods.ours("greedy", algorithm, session.config.depths[-1], epochs, seed)
    key = session.describe(model, part, seed=seed, commit=session.commit)
    grown = session.shelf.get(key)
    if grown is None:
        session.progress.say(f"{session.config.data}: growing by {algorithm}, {epochs} epochs, seed {seed}")
        grown = grow(model.set_params(training__device=session.device), session.rows(part))
        session.shelf.put(key, grown)
    grown.model.set_params(training__device=session.device)
    return grown


def _trained(session: Session, grown: Grown, cell: Cell, epochs: int, part: str) -> tuple[Any, float]:
    """Train the cell's tree; return it with the seconds beyond growth."""
    start = grown.model.truncate(cell.depth)
    if cell.method.startswith("greedy"):
        return start, 0.0
    return timed(lambda: train_on(start, _model(cell, epochs), session.rows(part)))
