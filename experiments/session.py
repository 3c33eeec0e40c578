"""Run of one data set: requested cells, existing cells, and records of results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from crisptree import CrispTreeClassifier
from crisptree.datasets import Dataset
from experiments import cells, methods, provenance
from experiments.cells import Cell
from experiments.configs import Config
from experiments.progress import Progress
from experiments.store import Record, Store
from experiments.trees import Rows, Shelf

PARTS = {"train": "training rows", "all": "training and validation rows"}


@dataclass(frozen=True)
class Filter:
    """Which cells are asked for; None for all."""

    methods: frozenset[str] | None = None
    depths: frozenset[int] | None = None
    seeds: frozenset[int] | None = None

    def wants(self, cell: Cell) -> bool:
        """Return True if a cell is requested."""
        pairs = ((self.methods, cell.method), (self.depths, cell.depth), (self.seeds, cell.seed))
        return all(wanted is None or value in wanted for wanted, value in pairs)


@dataclass(frozen=True)
class Session:
    """What all cells of a data set share."""

    config: Config
    data: Dataset
    store: Store
    shelf: Shelf
    progress: Progress
    commit: str
    device: str = "auto"
    filter: Filter = field(default_factory=Filter)
    time_cap: float | None = None
    trains: bool = True

    @cached_property
    def _rows(self) -> dict[str, Rows]:
        return {"train": (self.data.X_train, self.data.y_train), "all": self.data.all_but_test()}

    @cached_property
    def _fingerprint(self) -> str:
        return provenance.fingerprint(self.data)

    def rows(self, part: str) -> Rows:
        """Rows to train on, a key of ``PARTS``."""
        return self._rows[part]

    def cap(self, given: float) -> float:
        """Return the time cap of the command, else that of the configuration."""
        return given if self.time_cap is None else self.time_cap

    def wanted(self, names: Iterable[str], seeds: Iterable[int], depths: Iterable[int] | None = None) -> list[Cell]:
        """List the requested cells of some methods, shallow ones first."""
        depths = self.config.depths if depths is None else depths
        every = (Cell(name, depth, seed) for seed in seeds for depth in depths for name in names)
        return [cell for cell in every if self.filter.wants(cell)]

    def selection_cells(self, names: Iterable[str], seeds: Iterable[int]) -> list[Cell]:
        """List the trials behind the cells: of all their seeds, or only of the requested ones."""
        asked = self.filter.seeds if not self.trains else None
        depths = [depth for depth in self.config.depths if self.filter.depths is None or depth in self.filter.depths]
        names = [name for name in names if self.filter.methods is None or name in self.filter.methods]
        seeds = [seed for seed in seeds if asked is None or seed in asked]
        return [Cell(name, depth, seed) for seed in seeds for depth in depths for name in names]

    def describe(self, model: CrispTreeClassifier, part: str = "all", **more: Any) -> dict[str, Any]:
        """Return the configuration of a result; results of the same configuration are the same experiment."""
        X, _ = self.rows(part)
        return {
            "data": self.config.data,
            "trained_on": PARTS[part],
            "rows": len(X),
            "features": X.shape[1],
            "parameters": methods.parameters(model),
            **more,
        }

    def is_valid(self, cell: Cell, config: dict[str, Any], time_cap: float | None = None) -> bool:
        """Return True if the cell's record is valid for this configuration."""
        return cells.is_valid(self.found(cell), config, time_cap)

    def found(self, cell: Cell, kind: str = cells.CELL) -> Record | None:
        """Return the record of an earlier run."""
        record = self.store.get(kind, cell.method, cell.depth, cell.seed)
        return None if record is None else record | {"config": methods.comparable(record)}

    def record(self, cell: Cell, outcome: dict[str, Any], config: dict[str, Any], kind: str = cells.CELL) -> None:
        """Write what came out, with what it came from."""
        place = {"kind": kind, "data": self.config.data, **asdict(cell)}
        machine, versions = provenance.machine(self.device), provenance.versions()
        origin = {"commit": self.commit, "machine": machine, "versions": versions, "fingerprint": self._fingerprint}
        self.store.put({**place, **outcome, "config": config, **origin})

    def finish(
        self, cell: Cell, config: dict[str, Any], model: CrispTreeClassifier, seconds: float, **more: Any
    ) -> None:
        """Score a trained cell and write it."""
        metrics = self._metrics(model, with_soft=methods.METHODS[cell.method].family != "baselines")
        self.record(cell, {"status": cells.DONE, **more, "seconds": round(seconds, 3), "metrics": metrics}, config)
        self.progress.step(f"{self.config.data}: {cell}", f"test {100 * metrics['test_hard']:.2f} in {seconds:.1f} s")

    def give_up(self, cell: Cell, config: dict[str, Any], time_cap: float) -> None:
        """Record that a cell was not run, because it or a shallower one takes too long."""
        self.record(cell, {"status": cells.TIME_CAP, "time_cap": time_cap, "seconds": None, "metrics": None}, config)
        self.progress.step(f"{self.config.data}: {cell}", f"not run: time cap of {time_cap:g} s")

    def _metrics(self, model: CrispTreeClassifier, with_soft: bool) -> dict[str, Any]:
        parts = {"train": self.rows("all"), "test": (self.data.X_test, self.data.y_test)}
        metrics: dict[str, Any] = {f"{name}_hard": hard_accuracy(model, rows) for name, rows in parts.items()}
        for name, rows in parts.items():
            metrics[f"{name}_soft"] = soft_accuracy(model, rows) if with_soft else None
        leaves = model.get_n_leaves()
        visited = int(model.decision_path(self.data.X_test).sum()) / len(self.data.y_test)
        return metrics | {"leaves": leaves, "splits": leaves - 1, "mean_path_length": visited - 1}


def hard_accuracy(model: CrispTreeClassifier, rows: Rows) -> float:
    """Compute the accuracy of the deterministic tree."""
    return float(np.mean(model.predict(rows[0]) == rows[1]))


def soft_accuracy(model: CrispTreeClassifier, rows: Rows) -> float:
    """Compute the accuracy of the probabilistic tree, which visits all leaves."""
    best = model.soft_predict_proba(rows[0]).argmax(axis=1)
    return float(np.mean(model.classes_[best] == rows[1]))
