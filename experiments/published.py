"""Published accuracies of the paper's baselines beside ours, with their sources."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.claims import ALL_HIGHER, OPEN, OURS, Verdict, label
from experiments.comparing import Comparison, Tally
from experiments.methods import METHODS
from experiments.table import Results, Summary

FILE = Path(__file__).with_suffix(".toml")
SHALLOW = {"mnist": 4, "connect4": 2}
"""The depths of which the paper says that they are enough to surpass all that was published."""


@dataclass(frozen=True)
class Value:
    """A published accuracy. ``depths`` is empty where only the best of a curve is known."""

    data: str
    method: str
    depths: tuple[int, ...]
    accuracy: float
    source: str
    margin: float | None = None

    @property
    def summary(self) -> Summary:
        """Convert the value to the form of our own."""
        return Summary((self.accuracy,), known_spread=self.margin)

    def shown(self, number: int) -> str:
        """Format the value for the table, with the number of its source."""
        if not self.depths:
            where = ", best"
        else:
            first, last = self.depths[0], self.depths[-1]
            where = f", depth {first}" + (f"–{last}" if last > first else "")
        return f"{self.summary}{where} [{number}]"


@dataclass(frozen=True)
class Published:
    """All values, and the sources by name."""

    values: tuple[Value, ...]
    sources: Mapping[str, str]

    @classmethod
    def read(cls, path: Path = FILE) -> Published:
        """Read the values of a file."""
        found = tomllib.loads(path.read_text(encoding="utf-8"))
        values = tuple(Value(**(value | {"depths": tuple(value["depths"])})) for value in found["value"])
        unknown = sorted({value.source for value in values} - set(found["sources"]))
        if unknown:
            raise ValueError(f"{path.name}: every source must be among [sources]; got {', '.join(unknown)}.")
        return cls(values, found["sources"])

    def table(self, results: Sequence[Results]) -> tuple[list[str], list[list[str]]]:
        """Return header and rows: one row per baseline, one column per data set of the paper's figure."""
        numbers = {name: number for number, name in enumerate(self.sources, start=1)}
        columns = [found for found in results if any(value.data == found.config.data for value in self.values)]
        rows = []
        for method in (name for name, entry in METHODS.items() if entry.family == "baselines"):
            cells = []
            for found in columns:
                of_cell = [v for v in self.values if (v.data, v.method) == (found.config.data, method)]
                cells.append("; ".join(value.shown(numbers[value.source]) for value in of_cell))
            rows.append([label(method), *cells])
        return ["", *(found.config.title for found in columns)], rows

    def evaluate_claims(self, results: Mapping[str, Results]) -> list[Verdict]:
        """Test the claims on test rows against the published values."""
        return [self._at_known_depths(found) for found in results.values() if self._of(found)] + [
            self._already_above(results[name], depth) for name, depth in SHALLOW.items() if name in results
        ]

    def _of(self, found: Results) -> list[Value]:
        return [value for value in self.values if value.data == found.config.data]

    def _at_known_depths(self, found: Results) -> Verdict:
        pairs = [
            Comparison(ours, value.summary, f"depth {depth}", f"{label(value.method)}, published")
            for value in self._of(found)
            for depth in value.depths
            if (ours := found.get(OURS, depth, "test_hard"))
        ]
        return _make_verdict(found, "more accurate on test rows at the depths that are known", pairs)

    def _already_above(self, found: Results, depth: int) -> Verdict:
        ours = found.get(OURS, depth, "test_hard")
        values = self._of(found) if ours else []
        pairs = [
            Comparison(ours, value.summary, f"depth {depth}", f"{label(value.method)}, published")
            for value in values
            if ours
        ]
        return _make_verdict(found, f"depth {depth} is above every published value on test rows", pairs)


def _make_verdict(found: Results, claim: str, pairs: list[Comparison]) -> Verdict:
    if not pairs:
        return Verdict(found.config.title, claim, OPEN, words="no cell that it needs has run")
    tally = Tally.of(pairs)
    words = "; ".join(map(str, pairs))
    return Verdict(found.config.title, claim, ALL_HIGHER.verdict(tally), tally, len(pairs), words)
