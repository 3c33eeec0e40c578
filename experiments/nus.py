"""Selection of ν of CO2, and of ν and step of non-greedy training, on validation rows at every depth."""

from __future__ import annotations

from typing import Any

from experiments import cells, methods
from experiments.along import Along, Growth
from experiments.cells import Cell
from experiments.configs import Baselines
from experiments.methods import Bounded
from experiments.session import Session, hard_accuracy
from experiments.store import as_json
from experiments.trees import Grown, TimeCapReached, at_most, train_on

Chosen = dict[int, Bounded | None]


def select_co2(session: Session, baselines: Baselines, along: Along) -> Chosen:
    """CO2's ν at every depth; None where the time cap came first."""
    trials = _Trials(session, baselines, "co2", _depths(session, baselines, "co2"), along)
    for one in trials.candidates:

        def train(cell: Cell, grown: Grown, one: Bounded = one) -> None:
            trials.put(cell.depth, one, hard_accuracy(grown.model, trials.validation))

        def give_up(cell: Cell, one: Bounded = one) -> None:
            trials.put(cell.depth, one, None)

        growth = Growth("co2", trials.seed, one)
        along(growth, "train", [trials.cell(depth) for depth in trials.open(one)], train, give_up)
    return trials.chosen()


def select_non_greedy(session: Session, baselines: Baselines, along: Along) -> Chosen:
    """ν and step of non-greedy training from a CO2 tree of the same rows; None where the time cap came first."""
    trials = _Trials(session, baselines, "non_greedy", _depths(session, baselines, "non_greedy"), along)

    def train(cell: Cell, grown: Grown) -> None:
        for one in trials.candidates:
            if cell.depth not in trials.open(one):
                continue
            like = methods.baseline("non_greedy", cell.depth, baselines.epochs, trials.seed, one)
            try:
                with at_most(session.cap(baselines.time_cap)):
                    trained = train_on(grown.model, like, session.rows("train"))
            except TimeCapReached:
                trials.put(cell.depth, one, None)
            else:
                trials.put(cell.depth, one, hard_accuracy(trained, trials.validation))

    def give_up(cell: Cell) -> None:
        for one in trials.candidates:
            if cell.depth in trials.open(one):
                trials.put(cell.depth, one, None)

    still = [trials.open(one) for one in trials.candidates]
    for depth in trials.depths:
        if any(depth in depths for depths in still):
            along(Growth("co2", trials.seed), "train", [trials.cell(depth)], train, give_up)
    return trials.chosen()


def _depths(session: Session, baselines: Baselines, name: str) -> list[int]:
    return [cell.depth for cell in session.selection_cells([name], baselines.seeds[:1])]


class _Trials:
    """Scores on validation rows by depth and setting, also those of earlier runs; None for one that took too long."""

    def __init__(self, session: Session, baselines: Baselines, name: str, depths: list[int], along: Along) -> None:
        self.session, self.baselines, self.name, self.depths, self.along = session, baselines, name, depths, along
        self.candidates = baselines.candidates(name)
        self.seed, self.cap = baselines.seeds[0], session.cap(baselines.time_cap)
        self.validation = (session.data.X_valid, session.data.y_valid)
        self.scores = {depth: self._found(depth) for depth in depths}

    def cell(self, depth: int) -> Cell:
        return Cell(self.name, depth, self.seed)

    def open(self, one: Bounded) -> list[int]:
        """List the depths at which a candidate has no score yet."""
        return [depth for depth in self.depths if str(one) not in self.scores[depth]]

    def put(self, depth: int, one: Bounded, score: float | None) -> None:
        self.scores[depth][str(one)] = score
        best = self._best(depth)
        done = None not in self.scores[depth].values()
        outcome: dict[str, Any] = {"status": cells.DONE if done else cells.TIME_CAP}
        outcome |= {"time_cap": None if done else self.cap, "validation_hard": self.scores[depth]}
        outcome |= {"nu": best and best.nu, "rate": best and best.rate}
        self.session.record(self.cell(depth), outcome, self._config(depth), cells.SELECTION)
        said = "time cap" if score is None else f"validation {100 * score:.2f}"
        self.session.progress.step(f"{self.session.config.data}: {self.cell(depth)}, trial of nu {one}", said)

    def chosen(self) -> Chosen:
        return {depth: self._best(depth) for depth in self.depths}

    def _best(self, depth: int) -> Bounded | None:
        """Return the candidate with the highest score, the first in ties."""
        scores = {one: score for one in self.candidates if (score := self.scores[depth].get(str(one))) is not None}
        return max(scores, key=lambda one: scores[one]) if scores else None

    def _found(self, depth: int) -> dict[str, float | None]:
        found = self.session.found(self.cell(depth), cells.SELECTION)
        if found is None or found["config"] != as_json(self._config(depth)):
            return {}
        is_valid = found["status"] == cells.DONE or found["time_cap"] >= self.cap
        return {nu: score for nu, score in found["validation_hard"].items() if is_valid or score is not None}

    def _config(self, depth: int) -> dict[str, Any]:
        model = methods.baseline(self.name, depth, self.baselines.epochs, self.seed)
        return self.along.config(model, self.name, depth, "train") | {"seed": self.seed}
