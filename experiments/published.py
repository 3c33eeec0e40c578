"""Published accuracies of the paper's baselines beside ours, with their sources."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.claims import ALL_HIGHER, OPEN, OURS, TITLES, Verdict, label
from experiments.comparing import MARGIN, Comparison, Tally
from experiments.methods import METHODS
from experiments.table import Results, Summary

FILE = Path(__file__).with_suffix(".toml")
TEST = "test_hard"
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
        known = [found for found in results.values() if self._of(found)]
        shallow = [self._already_above(results[name], depth) for name, depth in SHALLOW.items() if name in results]
        gain = [self._largest_gain(results)] if "mnist" in results else []
        return [*(self._at_known_depths(found) for found in known), *shallow, *gain]

    def compare_reimplementations(self, results: Mapping[str, Results]) -> list[str]:
        """List by how much our re-implementations are better than their published curves."""
        lines = []
        for value in self.values:
            found = results.get(value.data)
            if found is None or value.margin is None:
                continue
            made = [(score, depth) for depth in found.config.depths if (score := found.get(value.method, depth, TEST))]
            if made:
                best, depth = max(made, key=lambda pair: pair[0].mean)
                lines.append(
                    f"{found.config.title}: our {label(value.method)} reaches {best} at depth {depth}, the published "
                    f"curve {value.summary} ({best.mean - value.accuracy:+.2f})."
                )
        return lines

    def _largest_gain(self, results: Mapping[str, Results]) -> Verdict:
        """The best depth of ours is further above the best published value on MNIST than on the other data sets."""
        gains = {name: gain for name in TITLES if name in results and (gain := self._gain(results[name]))}
        ours = gains.pop("mnist", None)
        where = "best depth less the best published value"
        pairs = [Comparison(ours, gain, where, TITLES[name]) for name, gain in gains.items() if ours]
        claim = "the highest increase in test accuracy of all data sets"
        return _make_verdict(results["mnist"], claim, pairs, len(TITLES) - 1)

    def _gain(self, found: Results) -> Summary | None:
        known = [value for value in self._of(found) if value.margin is not None]
        scores = [score for depth in found.config.depths if (score := found.get(OURS, depth, TEST))]
        if not known or not scores:
            return None
        best, published = max(scores, key=lambda score: score.mean), max(known, key=lambda value: value.accuracy)
        spread = Comparison(best, published.summary, "", "").width
        return Summary((best.mean - published.accuracy,), known_spread=spread)

    def _of(self, found: Results) -> list[Value]:
        return [value for value in self.values if value.data == found.config.data]

    def _at_known_depths(self, found: Results) -> Verdict:
        pairs = [
            Comparison(ours, value.summary, f"depth {depth}", f"{label(value.method)}, published")
            for value in self._of(found)
            for depth in value.depths
            if (ours := found.get(OURS, depth, TEST))
        ]
        return _make_verdict(found, "more accurate on test rows at the depths that are known", pairs)

    def _already_above(self, found: Results, depth: int) -> Verdict:
        ours = found.get(OURS, depth, TEST)
        values = self._of(found) if ours else []
        pairs = [
            Comparison(ours, value.summary, f"depth {depth}", f"{label(value.method)}, published")
            for value in values
            if ours
        ]
        return _make_verdict(found, f"depth {depth} is above every published value on test rows", pairs)


def _make_verdict(found: Results, claim: str, pairs: list[Comparison], asked: int | None = None) -> Verdict:
    if not pairs:
        return Verdict(found.config.title, claim, OPEN, words="no cell that it needs has run")
    tallies = Tally.of(pairs), Tally.of(pairs, MARGIN)
    more = "" if asked in (None, len(pairs)) else f", where tested ({len(pairs)} of {asked})"
    verdicts = [ALL_HIGHER.verdict(tally) + more for tally in tallies]
    words = "; ".join(map(str, pairs))
    return Verdict(found.config.title, claim, *verdicts, *tallies, words, ALL_HIGHER.hardest(tallies[0]))
