"""Splits as rules in the units of the table: weighted features compared with a threshold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crisptree.inference import FlatTree
from crisptree.inspection.importances import compute_effects, rank_features


class SplitRule(NamedTuple):
    """A rule; rows that satisfy it go right."""

    terms: tuple[tuple[float, int], ...]
    """(weight, feature) pairs, the most influential first; the weight of a single feature is 1."""

    left_out: int
    """Number of nonzero terms that are not listed; the threshold is that of the whole sum."""

    sign: str
    """">" or "<"."""

    threshold: float

    def format(self, names: list[str], digits: int = 4) -> str:
        """Format the rule as text.

        Examples
        --------
        >>> SplitRule(((1.0, 1),), 0, "<", 3.5).format(["age", "income"])
        'income < 3.5'
        >>> SplitRule(((0.5, 0), (-2.0, 1)), 3, ">", 7.0).format(["age", "income"])
        '0.5 × age − 2 × income + 3 more > 7'
        """
        return f"{self.format_sum(names, digits)} {self.sign} {format_number(self.threshold, digits)}"

    def format_sum(self, names: list[str], digits: int = 4) -> str:
        """Format the left side of the rule."""
        parts = self.format_terms(names, digits)
        if self.left_out:
            parts.append(f"+ {self.left_out} more" if parts else f"{self.left_out} terms")
        return " ".join(parts) or "0"

    def format_terms(self, names: list[str], digits: int = 4) -> list[str]:
        """Format every term; a single feature has no weight."""
        if len(self.terms) == 1 and not self.left_out and self.terms[0][0] == 1:
            return [names[self.terms[0][1]]]
        signs = ("− " if weight < 0 else "+ " if position else "" for position, (weight, _) in enumerate(self.terms))
        return [
            f"{sign}{format_number(abs(weight), digits)} × {names[feature]}"
            for sign, (weight, feature) in zip(signs, self.terms, strict=True)
        ]


def make_split_rule(tree: FlatTree, split: int, top: int | None = None) -> SplitRule:
    """Make the rule of a split in raw units, with its ``top`` most influential terms; None for all."""
    weight, bias = tree.weight[split].astype(np.float64), float(tree.bias[split])
    used = np.flatnonzero(weight)
    if len(used) == 1 and top != 0:  # a threshold in the unit of the feature
        feature = int(used[0])
        return SplitRule(((1.0, feature),), 0, ">" if weight[feature] > 0 else "<", -bias / weight[feature] + 0.0)
    order = rank_features(compute_effects(tree, split), len(used) if top is None else top)
    without_spread = [] if top is not None else [j for j in used if j not in set(order.tolist())]
    listed = [*order.tolist(), *without_spread]
    return SplitRule(tuple((float(weight[j]), int(j)) for j in listed), len(used) - len(listed), ">", -bias + 0.0)


def format_number(value: float, digits: int = 4) -> str:
    """Format a number with so many significant digits and a typographic minus sign."""
    return f"{value:.{digits}g}".replace("-", "−")
