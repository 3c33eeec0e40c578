"""Greedy and finetuned trees: epochs selected on validation rows, then several seeds on all rows but the test rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments import cells, methods
from experiments.cells import Cell
from experiments.configs import Ours
from experiments.session import Session, hard_accuracy
from experiments.store import as_json
from experiments.trees import Grown, grow, timed, train_on


def run(session: Session) -> None:
    """Run all requested cells of the paper's own algorithms."""
    ours = session.config.ours
    for algorithm in ours.algorithms if ours else ():
        _run(session, ours, algorithm)


def _run(session: Session, ours: Ours, algorithm: str) -> None:
    """Run all lines: Greedy selects the epochs of growth, the others start from that tree and select their own."""
    greedy, *others = ours.lines(algorithm)
    tuned = {name: session.selection_cells([name], ours.choice_seeds) for name in others}
    starts = session.selection_cells([greedy], ours.choice_seeds)
    needed = dict.fromkeys(cell.depth for trials in tuned.values() for cell in trials)
    starts += [Cell(greedy, depth, seed) for seed in ours.choice_seeds for depth in needed]
    growth = _choose(session, ours, list(dict.fromkeys(starts)), None)
    finetuning = {name: _choose(session, ours, trials, growth) for name, trials in tuned.items()}
    for seed in ours.seeds if session.trains else ():
        wanted = [cell for cell in session.wanted([greedy, *others], ours.seeds) if cell.seed == seed]
        for epochs in ours.epochs:
            mine = [cell for cell in wanted if growth[cell.depth] == epochs]
            _finish(session, algorithm, epochs, mine, finetuning)


def _finish(
    session: Session, algorithm: str, epochs: int, wanted: list[Cell], finetuning: Mapping[str, Mapping[int, int]]
) -> None:
    """Run the cells of one seed that share a number of epochs of growth, and so one growth."""
    grown = None
    for cell in wanted:
        more = finetuning[cell.method][cell.depth] if _is_finetuned(cell) else 0
        model = methods.ours(cell.method, cell.depth, epochs, more, cell.seed)
        config = session.describe(model, grown_to=session.config.depths[-1])
        if session.is_valid(cell, config):
            continue
        grown = grown or _grown(session, "all", algorithm, epochs, cell.seed)
        trained, seconds = _trained(session, grown, cell, model, "all")
        growing = round(grown.seconds_to(cell.depth), 3)
        outcome = {"epochs": epochs, "finetune_epochs": more, "seconds_growing": growing}
        session.finish(cell, config, trained, growing + seconds, **outcome)


def _choose(session: Session, ours: Ours, trials: list[Cell], growth: Mapping[int, int] | None) -> dict[int, int]:
    """Select the epochs at each depth by the mean hard accuracy on validation rows; fewer win ties.

    Without ``growth`` they are those of growth, else those of finetuning a tree of so many epochs of growth.
    """
    if len(ours.epochs) == 1:
        return dict.fromkeys(session.config.depths, ours.epochs[0])
    scores = {cell: _scores(session, cell, growth) for cell in trials}
    for seed in dict.fromkeys(cell.seed for cell in trials):
        grown: dict[int, Grown] = {}
        for cell, epochs in [(cell, epochs) for epochs in ours.epochs for cell in trials if cell.seed == seed]:
            if str(epochs) not in scores[cell]:
                _try(session, ours, cell, growth, epochs, scores[cell], grown)
    return {
        depth: best(_means([scores[cell] for cell in trials if cell.depth == depth]), ours.epochs)
        for depth in _depths(trials)
    }


def _try(
    session: Session,
    ours: Ours,
    cell: Cell,
    growth: Mapping[int, int] | None,
    epochs: int,
    scores: dict[str, float],
    grown: dict[int, Grown],
) -> None:
    """Make one trial; trees of the same epochs of growth are grown once for all depths."""
    first, more = (epochs, 0) if growth is None else (growth[cell.depth], epochs)
    if first not in grown:
        grown[first] = _grown(session, "train", _algorithm(cell), first, cell.seed)
    model = methods.ours(cell.method, cell.depth, first, more, cell.seed)
    trained, seconds = _trained(session, grown[first], cell, model, "train")
    score = hard_accuracy(trained, (session.data.X_valid, session.data.y_valid))
    scores[str(epochs)] = score
    whole = all(str(number) in scores for number in ours.epochs)
    outcome = {"validation_hard": scores, "epochs": best(scores, ours.epochs) if whole else None}
    session.record(cell, outcome, _selection_config(session, cell, growth), cells.SELECTION)
    said = f"validation {100 * score:.2f} in {seconds:.1f} s"
    session.progress.step(f"{session.config.data}: {cell}, trial of {epochs} epochs", said)


def _means(scores: list[dict[str, float]]) -> dict[str, float]:
    return {epochs: sum(found[epochs] for found in scores) / len(scores) for epochs in scores[0]}


def _depths(trials: list[Cell]) -> list[int]:
    return list(dict.fromkeys(cell.depth for cell in trials))


def _is_finetuned(cell: Cell) -> bool:
    return methods.stage_of(cell.method) != methods.STAGES[0]


def _algorithm(cell: Cell) -> str:
    return cell.method.split("_")[1]


def best(scores: dict[str, float], epochs: tuple[int, ...]) -> int:
    """Return the number of epochs with the highest score, the first in ties."""
    return max(epochs, key=lambda number: scores[str(number)])


def _scores(session: Session, cell: Cell, growth: Mapping[int, int] | None) -> dict[str, float]:
    """Trials of an earlier run with the same configuration."""
    found = session.found(cell, cells.SELECTION)
    if found is None or found["config"] != as_json(_selection_config(session, cell, growth)):
        return {}
    return found["validation_hard"]


def _selection_config(session: Session, cell: Cell, growth: Mapping[int, int] | None) -> dict[str, Any]:
    """Return the identity of a selection: trials of finetuning belong to the epochs of growth they start from."""
    epochs = 1 if growth is None else growth[cell.depth]
    model = methods.ours(cell.method, cell.depth, epochs, 1, cell.seed)
    config = session.describe(model, "train", seed=cell.seed, grown_to=session.config.depths[-1])
    left_open = ("epochs", "finetune_epochs") if growth is None else ("finetune_epochs",)
    config["parameters"] = {name: value for name, value in config["parameters"].items() if name not in left_open}
    return config


def _grown(session: Session, part: str, algorithm: str, epochs: int, seed: int) -> Grown:
    """Grow the greedy tree of the largest depth, level by level; truncated, it is the tree of a depth."""
    model = methods.ours(f"{methods.STAGES[0]}_{algorithm}", session.config.depths[-1], epochs, 0, seed)
    key = session.describe(model, part, seed=seed, commit=session.commit)
    grown = session.shelf.get(key)
    if grown is None:
        session.progress.say(f"{session.config.data}: growing by {algorithm}, {epochs} epochs, seed {seed}")
        grown = grow(model.set_params(training__device=session.device), session.rows(part))
        session.shelf.put(key, grown)
    grown.model.set_params(training__device=session.device)
    return grown


def _trained(session: Session, grown: Grown, cell: Cell, like: Any, part: str) -> tuple[Any, float]:
    """Train the cell's tree; return it with the seconds beyond growth."""
    start = grown.model.truncate(cell.depth)
    if not _is_finetuned(cell):
        return start, 0.0
    return timed(lambda: train_on(start, like, session.rows(part)))
