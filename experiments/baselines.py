"""Runs of the baselines, grown through the depths until the time cap, and of the soft tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from experiments import methods
from experiments.along import Along, Growth
from experiments.cells import Cell
from experiments.configs import Baselines
from experiments.methods import DEFAULT_BOUND
from experiments.nus import select_co2, select_non_greedy
from experiments.session import Session
from experiments.trees import Grown, TimeCapReached, at_most, timed, train_on


def run(session: Session) -> None:
    """Run all requested cells of the baselines and the soft tree, or only their model selection."""
    baselines = session.config.baselines
    if baselines is not None:
        for name in baselines.methods:
            RUNS.get(name, _run_plain)(session, baselines, name)
    for cell in _soft_cells(session) if session.trains else ():
        _run_soft(session, cell)


def _run_plain(session: Session, baselines: Baselines, name: str) -> None:
    for seed in baselines.seeds if session.trains else ():
        cells_of_seed = [cell for cell in _cells(session, baselines, name) if cell.seed == seed]
        _run_grown(session, baselines, Growth(name, seed), cells_of_seed)


def _run_co2(session: Session, baselines: Baselines, name: str) -> None:
    wanted = _cells(session, baselines, name)
    chosen = select_co2(session, baselines, Along(session, baselines))
    for seed in baselines.seeds if session.trains else ():
        for one in dict.fromkeys(chosen.values()):
            mine = [cell for cell in wanted if cell.seed == seed and chosen[cell.depth] == one]
            _run_grown(session, baselines, Growth(name, seed, one or DEFAULT_BOUND), mine, is_hopeless=one is None)


def _run_non_greedy(session: Session, baselines: Baselines, name: str) -> None:
    """ν and step on validation rows from a CO2 tree of the training rows, then all rows but the test's with them.

    The CO2 tree is that whose ν the gain at every leaf chooses: the start should not hang on another method's choice.
    """
    wanted = _cells(session, baselines, name)
    along = Along(session, baselines)
    chosen = select_non_greedy(session, baselines, along)
    cap = session.cap(baselines.time_cap)

    def model_of(cell: Cell) -> Any:
        return methods.baseline(name, cell.depth, baselines.epochs, cell.seed, chosen[cell.depth] or DEFAULT_BOUND)

    def config_of(cell: Cell) -> dict[str, Any]:
        return along.config(model_of(cell), name, cell.depth)

    def train(cell: Cell, grown: Grown) -> None:
        with at_most(cap):
            trained, seconds = timed(lambda: train_on(grown.model, model_of(cell), session.rows("all")))
        growing = grown.seconds_to(cell.depth)
        more = {"epochs": baselines.epochs, "nu": model_of(cell).training.grow.nu, "seconds_growing": round(growing, 3)}
        session.finish(cell, config_of(cell), trained, growing + seconds, **more)

    def give_up(cell: Cell) -> None:
        session.give_up(cell, config_of(cell), cap)

    for cell in _open(session, wanted, config_of, cap) if session.trains else ():
        if chosen[cell.depth] is None:
            give_up(cell)
        else:
            along(Growth("co2", cell.seed), "all", [cell], train, give_up)


RUNS: dict[str, Callable[[Session, Baselines, str], None]] = {"co2": _run_co2, "non_greedy": _run_non_greedy}


def _run_grown(
    session: Session, baselines: Baselines, growth: Growth, wanted: list[Cell], *, is_hopeless: bool = False
) -> None:
    """Grow a tree through its cells; none where not even a choice came before the time cap."""
    cap, along = session.cap(baselines.time_cap), Along(session, baselines)
    name, seed, bounded = growth

    def config_of(cell: Cell) -> dict[str, Any]:
        return along.config(methods.baseline(name, cell.depth, baselines.epochs, seed, bounded), name, cell.depth)

    def train(cell: Cell, grown: Grown) -> None:
        more = {"epochs": baselines.epochs, "nu": bounded.nu} if name == "co2" else {"epochs": None}
        session.finish(cell, config_of(cell), grown.model, grown.seconds_to(cell.depth), **more)

    def give_up(cell: Cell) -> None:
        session.give_up(cell, config_of(cell), cap)

    still = _open(session, wanted, config_of, cap)
    if is_hopeless:
        for cell in still:
            give_up(cell)
    else:
        along(growth, "all", still, train, give_up)


def _cells(session: Session, baselines: Baselines, name: str) -> list[Cell]:
    """List the requested cells of a baseline; a depth has its own seeds."""
    return [cell for cell in session.wanted([name], baselines.seeds) if cell.seed in baselines.seeds_at(cell.depth)]


def _open(session: Session, wanted: list[Cell], config_of: Callable[[Cell], dict[str, Any]], cap: float) -> list[Cell]:
    return [cell for cell in wanted if not session.is_valid(cell, config_of(cell), cap)]


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
    if session.is_valid(cell, config, cap):
        return
    try:
        with at_most(cap):
            fit = model.set_params(training__device=session.device).fit
            trained, seconds = timed(lambda: fit(*session.rows("all")))
    except TimeCapReached:
        session.give_up(cell, config, cap)
    else:
        session.finish(cell, config, trained, seconds, epochs=soft.epochs)
