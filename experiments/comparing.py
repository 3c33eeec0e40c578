"""Two rules for every comparison, by the spread over seeds and by a margin: higher, tied or lower."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.table import Summary

HIGHER, TIED, LOWER = "higher", "tied", "lower"

MARGIN = 0.5
"""Points below which a difference has no practical relevance."""

RULE = f"""\
**Two rules for every comparison.** *By spread*: two accuracies are *tied* where their means differ by no more than the
spread of a difference between single seeds, √(s² + s′²); otherwise one is *higher*. A method of which one seed has run
so far is taken to spread as much as the other; of a value that was read off a figure, s is the error of the reading.
*By margin*: they are tied where their means differ by no more than {MARGIN:g} points, or the error of the reading,
whatever the spread. The first rule says whether seeds explain a difference, the second whether it matters."""


@dataclass(frozen=True)
class Comparison:
    """Our accuracy and another's."""

    ours: Summary
    theirs: Summary
    where: str
    whose: str

    @property
    def lead(self) -> float:
        """Points by which ours is better."""
        return self.ours.mean - self.theirs.mean

    @property
    def width(self) -> float:
        """Points within which it is a tie by the spread over seeds."""
        spreads = [part.spread for part in (self.ours, self.theirs)]
        known = [spread for spread in spreads if spread is not None]
        one, other = (known[-1] if spread is None else spread for spread in spreads) if known else (0.0, 0.0)
        return float((one**2 + other**2) ** 0.5)

    def outcome(self, margin: float | None = None) -> str:
        """Compare ours with the other by the spread or, with a margin in points, by that alone.

        What was read off a figure is not known better than the error of the reading, whatever the margin.
        """
        if abs(self.lead) <= (self.width if margin is None else max(margin, self.theirs.known_spread or 0.0)):
            return TIED
        return HIGHER if self.lead > 0 else LOWER

    @property
    def brief(self) -> str:
        """Both means and their difference."""
        means = f"{self.ours.rounded} against {self.theirs.rounded} of {self.whose}"
        return f"{self.where}: {means} ({self.lead:+.2f})"

    def __str__(self) -> str:
        numbers = f"{self.ours.with_seeds} against {self.theirs.with_seeds} of {self.whose}"
        return f"{self.where}: {numbers} ({self.lead:+.2f}, tie within {self.width:.2f})"


@dataclass(frozen=True)
class Tally:
    """How many comparisons came out which way, by the spread or by a margin."""

    comparisons: tuple[Comparison, ...]
    margin: float | None = None

    @classmethod
    def of(cls, comparisons: Sequence[Comparison], margin: float | None = None) -> Tally:
        """Count them."""
        return cls(tuple(comparisons), margin)

    def __getitem__(self, outcome: str) -> int:
        return Counter(comparison.outcome(self.margin) for comparison in self.comparisons)[outcome]

    def __str__(self) -> str:
        return " / ".join(str(self[outcome]) for outcome in (HIGHER, TIED, LOWER))

    def share(self, outcome: str) -> float:
        """Return the share of comparisons with an outcome."""
        return self[outcome] / len(self.comparisons)

    def which(self, outcome: str) -> list[Comparison]:
        """List the comparisons with an outcome, the largest differences first."""
        found = [comparison for comparison in self.comparisons if comparison.outcome(self.margin) == outcome]
        return sorted(found, key=lambda comparison: -abs(comparison.lead))

    @property
    def is_partial(self) -> bool:
        """Return True if a comparison has fewer seeds than configured."""
        return any(part.is_partial for pair in self.comparisons for part in (pair.ours, pair.theirs))
