"""The rivals, grown deeper step by step until the time cap; and the soft tree, one fit a cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from experiments import cells, methods
from experiments.cells import Cell
from experiments.configs import Rivals
from experiments.session import Session, hard_accuracy
from experiments.trees import Grown, TimeCapReached, at_most, grow, grow_on, timed, train_on


def count(session: Session) -> int:
    """How many steps of progress this part has."""
    total = len(_soft_cells(session))
    rivals = session.config.rivals
    if rivals is not None:
        wanted = session.wanted(rivals.methods, rivals.seeds)
        total += len(wanted) + len({cell.depth for cell in wanted if cell.method == "non_greedy"})
    return total


def run(session: Session) -> None:
    """All wanted cells of the rivals and of the soft tree."""
    rivals = session.config.rivals
    if rivals is not None:
        for name in (name for name in rivals.methods if name != "non_greedy"):
            for seed in rivals.seeds:
                _run_grown(session, rivals, name, seed)
        if "non_greedy" in rivals.methods:
            _run_non_greedy(session, rivals)
    for cell in _soft_cells(session):
        _run_soft(session, cell)


def _run_grown(session: Session, rivals: Rivals, name: str, seed: int) -> None:
    cap = session.cap(rivals.time_cap)

    def config_of(cell: Cell) -> dict[str, Any]:
        return _config(session, methods.rival(name, cell.depth, rivals.epochs, seed), cell.depth)

    def train(cell: Cell, grown: Grown) -> None:
        session.finish(cell, config_of(cell), grown.model, grown.seconds_to(cell.depth), epochs=_epochs(rivals, name))

    def give_up(cell: Cell) -> None:
        session.give_up(cell, config_of(cell), cap)

    open_cells = _open(session, session.wanted([name], [seed]), config_of, cap)
    _along(session, rivals, name, seed, "all", open_cells, train, give_up)


def _run_non_greedy(session: Session, rivals: Rivals) -> None:
    """ν on validation rows from the CO2 tree of the training rows, then all rows but the test's with that ν."""
    cap = session.cap(rivals.time_cap)
    chosen = _choose_nu(session, rivals, cap)

    def model_of(cell: Cell) -> Any:
        return methods.rival("non_greedy", cell.depth, rivals.epochs, cell.seed, chosen[cell.depth])

    def config_of(cell: Cell) -> dict[str, Any]:
        return _config(session, model_of(cell), cell.depth)

    def train(cell: Cell, grown: Grown) -> None:
        if (nu := chosen[cell.depth]) is None:
            raise TimeCapReached
        with at_most(cap):
            trained, seconds = timed(lambda: train_on(grown.model, model_of(cell), session.rows("all")))
        growing = grown.seconds_to(cell.depth)
        more = {"epochs": rivals.epochs, "nu": nu, "seconds_growing": round(growing, 3)}
        session.finish(cell, config_of(cell), trained, growing + seconds, **more)

    def give_up(cell: Cell) -> None:
        session.give_up(cell, config_of(cell), cap)

    for seed in rivals.seeds:
        open_cells = _open(session, session.wanted(["non_greedy"], [seed]), config_of, cap)
        _along(session, rivals, "co2", seed, "all", open_cells, train, give_up)


def _choose_nu(session: Session, rivals: Rivals, cap: float) -> dict[int, float | None]:
    """The ν of each depth, with the first seed; None where the time cap came first."""
    seed = rivals.seeds[0]
    depths = sorted({cell.depth for cell in session.wanted(["non_greedy"], rivals.seeds)})
    chosen: dict[int, float | None] = {}
    todo = []
    for cell in (Cell("non_greedy", depth, seed) for depth in depths):
        config = _selection_config(session, rivals, cell)
        found = session.found(cell, cells.SELECTION)
        if cells.is_settled(found, config, cap):
            chosen[cell.depth] = found["nu"]
            session.skip(cell)
        else:
            todo.append(cell)

    def record(cell: Cell, outcome: dict[str, Any]) -> None:
        session.record(cell, outcome, _selection_config(session, rivals, cell), cells.SELECTION)
        chosen[cell.depth] = outcome["nu"]

    def train(cell: Cell, grown: Grown) -> None:
        like = methods.rival("non_greedy", cell.depth, rivals.epochs, seed)
        validation = (session.data.X_valid, session.data.y_valid)
        with at_most(cap):
            trained, seconds = timed(lambda: train_on(grown.model, like, session.rows("train"), validation=validation))
        score = hard_accuracy(trained, validation)
        record(cell, {"status": cells.DONE, "nu": trained.nu_, "validation_hard": score})
        name = f"{session.config.data}: non_greedy, depth {cell.depth}, choice of nu"
        session.progress.step(name, f"validation {100 * score:.2f} in {seconds:.1f} s")

    def give_up(cell: Cell) -> None:
        record(cell, {"status": cells.TIME_CAP, "time_cap": cap, "nu": None})
        session.progress.step(f"{session.config.data}: non_greedy, depth {cell.depth}, choice of nu", "time cap")

    _along(session, rivals, "co2", seed, "train", todo, train, give_up)
    return chosen


def _along(
    session: Session,
    rivals: Rivals,
    name: str,
    seed: int,
    part: str,
    open_cells: list[Cell],
    train: Callable[[Cell, Grown], None],
    give_up: Callable[[Cell], None],
) -> None:
    """Grow to the depth of each open cell in turn; from the first that takes too long on, give up."""
    left = list(open_cells)
    try:
        for depth, grown in _growth(session, rivals, name, seed, part, [cell.depth for cell in open_cells]):
            if left and left[0].depth == depth:
                train(left[0], grown)
                del left[0]
    except TimeCapReached:
        for cell in left:
            give_up(cell)


def _growth(
    session: Session, rivals: Rivals, name: str, seed: int, part: str, depths: list[int]
) -> Iterator[tuple[int, Grown]]:
    """One tree, deeper at every step of the configuration, as far as it is needed; a kept tree saves the way to it."""
    steps = [depth for depth in session.config.depths if depths and depth <= depths[-1]]
    rows, cap = session.rows(part), session.cap(rivals.time_cap)
    keys = {}
    for depth in steps:
        model = methods.rival(name, depth, rivals.epochs, seed)
        keys[depth] = _config(session, model, depth, part) | {"seed": seed, "commit": session.commit}
    grown = None
    for depth in steps:
        kept = session.shelf.get(keys[depth])
        if kept is not None:
            kept.model.set_params(device=session.device)
            grown = kept
        elif grown is None:
            session.progress.say(f"{session.config.data}: growing {name}, seed {seed}")
            model = methods.rival(name, depth, rivals.epochs, seed).set_params(device=session.device)
            with at_most(cap):
                grown = grow(model, rows)
        else:
            grown = grow_on(grown, depth, _step_seed(seed, depth), rows, cap)
        if kept is None:
            session.shelf.put(keys[depth], grown)
        yield depth, grown


def _step_seed(seed: int, depth: int) -> int:
    """Another stream of random numbers for every step, or each would begin with the same directions."""
    return int(np.random.SeedSequence([seed, depth]).generate_state(1)[0] // 2)


def _open(session: Session, wanted: list[Cell], config_of: Callable[[Cell], dict[str, Any]], cap: float) -> list[Cell]:
    still = []
    for cell in wanted:
        if session.is_settled(cell, config_of(cell), cap):
            session.skip(cell)
        else:
            still.append(cell)
    return still


def _config(session: Session, model: Any, depth: int, part: str = "all") -> dict[str, Any]:
    return session.describe(model, part, steps=[step for step in session.config.depths if step <= depth])


def _epochs(rivals: Rivals, name: str) -> int | None:
    """Only CO2 follows gradients while it grows."""
    return rivals.epochs if name == "co2" else None


def _selection_config(session: Session, rivals: Rivals, cell: Cell) -> dict[str, Any]:
    model = methods.rival("non_greedy", cell.depth, rivals.epochs, cell.seed)
    return _config(session, model, cell.depth, "train") | {"seed": cell.seed}


def _soft_cells(session: Session) -> list[Cell]:
    soft = session.config.soft
    if soft is None:
        return []
    depths = [depth for depth in session.config.depths if depth <= soft.max_depth]
    return session.wanted([methods.SOFT], soft.seeds, depths)


def _run_soft(session: Session, cell: Cell) -> None:
    soft = session.config.soft
    assert soft is not None
    cap = session.cap(soft.time_cap)
    model = methods.soft(cell.depth, soft.epochs, cell.seed)
    config = session.describe(model)
    if session.is_settled(cell, config, cap):
        session.skip(cell)
        return
    try:
        with at_most(cap):
            fit = model.set_params(device=session.device).fit
            trained, seconds = timed(lambda: fit(*session.rows("all")))
    except TimeCapReached:
        session.give_up(cell, config, cap)
    else:
        session.finish(cell, config, trained, seconds, epochs=soft.epochs)
