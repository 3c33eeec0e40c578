"""Configurations of the experiments: one TOML file per data set."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from experiments.methods import ALGORITHMS, BASELINES, DEFAULT_BOUND, RATE, STAGES, Bounded
from experiments.standins import LOADERS

FOLDER = Path(__file__).parent / "configs"
PAPER = ("mnist", "sensit", "connect4", "protein")
MADE = ("made_sensors", "made_sequences")


@dataclass(frozen=True)
class Ours:
    """Greedy and finetuned trees: ``choice_seeds`` choose among ``epochs``, by their mean; ``seeds`` train with it.

    ``stages`` are the lines of every algorithm; those of finetuned trees start from the greedy one.
    """

    algorithms: tuple[str, ...]
    seeds: tuple[int, ...]
    epochs: tuple[int, ...]
    choice_seeds: tuple[int, ...] = (0,)
    stages: tuple[str, ...] = STAGES[:2]

    def lines(self, algorithm: str) -> tuple[str, ...]:
        """List the methods of an algorithm, the greedy one first."""
        return tuple(f"{stage}_{algorithm}" for stage in self.stages)


@dataclass(frozen=True)
class Baselines:
    """The baselines; ``time_cap`` is in seconds, for the growth of a tree and for its training each.

    Trees of ``deep_from`` levels and more have ``deep_seeds`` in place of ``seeds``. CO2 and non-greedy training choose
    among ``nus`` on validation rows, with the first seed, the latter among ``rates`` as well.
    """

    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    epochs: int
    time_cap: float
    nus: tuple[float, ...] = (0.1, 1.0, 4.0, 10.0, 43.0, 100.0, 250.0, 1000.0)
    rates: tuple[float, ...] = (RATE,)
    deep_from: int | None = None
    deep_seeds: tuple[int, ...] = ()

    def candidates(self, name: str) -> list[Bounded]:
        """List the candidates of a method. CO2 may also select ν by the gain at every leaf."""
        rates = self.rates if name == "non_greedy" else (RATE,)
        found = [Bounded(float(nu), float(rate)) for rate in rates for nu in self.nus]
        return [*found, DEFAULT_BOUND] if name == "co2" else found

    def seeds_at(self, depth: int) -> tuple[int, ...]:
        """Return the seeds of a depth."""
        return self.seeds if self.deep_from is None or depth < self.deep_from else self.deep_seeds


@dataclass(frozen=True)
class Soft:
    """The soft tree, which visits all leaves; ``time_cap`` is in seconds, for one tree."""

    seeds: tuple[int, ...]
    epochs: int
    max_depth: int
    time_cap: float


@dataclass(frozen=True)
class Config:
    """One data set's experiment; ``made`` where its rows come from a law and not from the world.

    ``fingerprint`` is that of the published data (``provenance.fingerprint``), None where the files were never here.
    """

    data: str
    title: str
    depths: tuple[int, ...]
    ours: Ours | None = None
    baselines: Baselines | None = None
    soft: Soft | None = None
    made: bool = False
    fingerprint: str | None = None


PARTS: dict[str, type[Ours] | type[Baselines] | type[Soft]] = {"ours": Ours, "baselines": Baselines, "soft": Soft}


def read(path: Path) -> Config:
    """Read the configuration in a TOML file."""
    values = tomllib.loads(path.read_text(encoding="utf-8"))
    parts = {
        name: _part(part, values.pop(name), f"{path.name}, [{name}]") for name, part in PARTS.items() if name in values
    }
    config: Config = _part(Config, values | parts, path.name)
    _check(config, path.name)
    return config


def find(names: Sequence[str]) -> list[Path]:
    """Find configuration files by name or path; by default the paper's in the order of its figure, then ours."""
    if not names:
        return [FOLDER / f"{name}.toml" for name in (*PAPER, "fashion_mnist", *MADE)]
    known = {path.stem: path for path in sorted(FOLDER.rglob("*.toml"))}
    paths = [known.get(name, Path(name)) for name in names]
    for name, path in zip(names, paths, strict=True):
        if not path.is_file():
            raise ValueError(f"a configuration must be one of {', '.join(known)}, or a TOML file; got {name!r}.")
    return paths


def _part(kind: type[Any], values: dict[str, Any], place: str) -> Any:
    known = [field.name for field in fields(kind)]
    unknown = [name for name in values if name not in known]
    if unknown:
        raise ValueError(f"{place}: the settings must be among {', '.join(known)}; got {', '.join(unknown)}.")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(f"{place}: the settings must hold {', '.join(known)}; {error}.") from error


def _check(config: Config, place: str) -> None:
    if config.data not in LOADERS:
        raise ValueError(f"{place}: `data` must be one of {', '.join(LOADERS)}; got {config.data!r}.")
    if not config.depths or list(config.depths) != sorted(set(config.depths)) or config.depths[0] < 1:
        raise ValueError(f"{place}: `depths` must rise from at least 1; got {list(config.depths)}.")
    if config.ours and not set(config.ours.algorithms) <= set(ALGORITHMS):
        raise ValueError(f"{place}: `algorithms` must be among {ALGORITHMS}; got {config.ours.algorithms}.")
    if config.baselines and not set(config.baselines.methods) <= set(BASELINES):
        raise ValueError(f"{place}: `methods` must be among {', '.join(BASELINES)}; got {config.baselines.methods}.")
    if config.ours and (config.ours.stages[:1] != STAGES[:1] or not set(config.ours.stages) <= set(STAGES)):
        raise ValueError(f"{place}: `stages` must be among {STAGES}, the first one first; got {config.ours.stages}.")
    for name in PARTS:
        part = getattr(config, name)
        if part is not None and not part.seeds:
            raise ValueError(f"{place}: `seeds` of [{name}] must hold a seed; got none.")
    if config.baselines and not (
        config.baselines.nus
        and config.baselines.rates
        and set(config.baselines.deep_seeds) <= set(config.baselines.seeds)
    ):
        raise ValueError(
            f"{place}: [baselines] must hold numbers in `nus` and `rates`, and `deep_seeds` from among its `seeds`."
        )
    if config.ours and not (config.ours.epochs and config.ours.choice_seeds):
        raise ValueError(f"{place}: `epochs` and `choice_seeds` of [ours] must hold a number; one holds none.")
