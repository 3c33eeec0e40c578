"""What a split asks, as a rule in the units of the table: terms on one side, a threshold on the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crisptree.inference import FlatTree
from crisptree.view.influence import effects, most_influential


class SplitRule(NamedTuple):
    """Rows for which it holds go right."""

    terms: tuple[tuple[float, int], ...]
    """Weight and feature, the most influential first; the weight of a single feature is 1."""

    left_out: int
    """Terms with a weight that are not among these; the comparison is that of the whole sum."""

    sign: str
    """">" or "<"."""

    threshold: float

    def words(self, names: list[str], digits: int = 4) -> str:
        """The rule as text.

        Examples
        --------
        >>> SplitRule(((1.0, 1),), 0, "<", 3.5).words(["age", "income"])
        'income < 3.5'
        >>> SplitRule(((0.5, 0), (-2.0, 1)), 3, ">", 7.0).words(["age", "income"])
        '0.5 × age − 2 × income + 3 more > 7'
        """
        return f"{self.sum_words(names, digits)} {self.sign} {number(self.threshold, digits)}"

    def sum_words(self, names: list[str], digits: int = 4) -> str:
        """Its left side."""
        parts = self.term_words(names, digits)
        if self.left_out:
            parts.append(f"+ {self.left_out} more" if parts else f"{self.left_out} terms")
        return " ".join(parts) or "0"

    def term_words(self, names: list[str], digits: int = 4) -> list[str]:
        """Every term as text; a feature alone has no weight."""
        if len(self.terms) == 1 and not self.left_out and self.terms[0][0] == 1:
            return [names[self.terms[0][1]]]
        signs = ("− " if weight < 0 else "+ " if place else "" for place, (weight, _) in enumerate(self.terms))
        return [
            f"{sign}{number(abs(weight), digits)} × {names[feature]}"
            for sign, (weight, feature) in zip(signs, self.terms, strict=True)
        ]


def split_rule(tree: FlatTree, split: int, most: int | None = None) -> SplitRule:
    """The rule of a split in raw units, with its most influential terms; None for all."""
    weight, bias = tree.weight[split].astype(np.float64), float(tree.bias[split])
    used = np.flatnonzero(weight)
    if len(used) == 1 and most != 0:  # a question in the feature's own unit
        feature = int(used[0])
        return SplitRule(((1.0, feature),), 0, ">" if weight[feature] > 0 else "<", -bias / weight[feature] + 0.0)
    order = most_influential(effects(tree, split), len(used) if most is None else most)
    without_spread = [] if most is not None else [j for j in used if j not in set(order.tolist())]
    chosen = [*order.tolist(), *without_spread]
    return SplitRule(tuple((float(weight[j]), int(j)) for j in chosen), len(used) - len(chosen), ">", -bias + 0.0)


def number(value: float, digits: int = 4) -> str:
    """A number with so many digits, its minus sign a real one."""
    return f"{value:.{digits}g}".replace("-", "−")
