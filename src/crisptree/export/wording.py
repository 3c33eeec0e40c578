"""Splits and leaves in words, for the forms of a tree that people read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from crisptree.inference import FlatTree
from crisptree.view import ModelView, view_of
from crisptree.view.checks import whole_number, whole_number_or_none
from crisptree.view.influence import effects, most_influential


class ShownNode(NamedTuple):
    """A node that is written: its number, its depth, the split it hangs from (−1 above the root) and the turn taken."""

    node: int
    depth: int
    parent: int
    goes_right: bool


@dataclass(frozen=True, eq=False)
class Wording:
    """What to say about the nodes of a fitted model.

    Parameters
    ----------
    view : ModelView
        The model.
    terms : int
        How many terms of a split to write out.
    max_depth : int or None
        How many levels of splits to show.
    decimals : int
        Significant digits of numbers.
    """

    view: ModelView
    terms: int
    max_depth: int | None
    decimals: int

    @classmethod
    def of(
        cls, model: Any, purpose: str, feature_names: Sequence[object] | None, terms: Any, max_depth: Any, decimals: Any
    ) -> Wording:
        """What a caller gives, checked; ``purpose`` is the function to name in errors."""
        return cls(
            view_of(model, purpose, feature_names=feature_names),
            whole_number("terms", terms, 0),
            whole_number_or_none("max_depth", max_depth, 0),
            whole_number("decimals", decimals, 1),
        )

    def is_question(self, shown: ShownNode) -> bool:
        """Whether the node is a split whose children are shown too."""
        n_splits = self.view.tree.structure.n_splits
        return shown.node < n_splits and (self.max_depth is None or shown.depth < self.max_depth)

    def nodes(self) -> Iterator[ShownNode]:
        """What is shown: every node before its left side, and that before its right side."""
        structure, waiting = self.view.tree.structure, [ShownNode(0, 0, -1, False)]
        while waiting:
            shown = waiting.pop()
            yield shown
            if self.is_question(shown):
                for children, turn in ((structure.right_nodes, True), (structure.left_nodes, False)):
                    waiting.append(ShownNode(int(children[shown.node]), shown.depth + 1, shown.node, turn))

    def number(self, value: float) -> str:
        return f"{value:.{self.decimals}g}"

    def count(self, node: int) -> str:
        rows = f"{self.view.node_rows[node]:.6g}"
        return f"{rows} row" if rows == "1" else f"{rows} rows"

    def says(self, shown: ShownNode) -> str:
        """The question of a split, or the answer of a node below which nothing is shown."""
        return self.question(shown.node) if self.is_question(shown) else self.view.answer(shown.node)

    def question(self, split: int) -> str:
        """The split in raw units, its most influential terms first; what it says is true for the whole sum."""
        tree, names = self.view.tree, self.view.feature_names
        if not isinstance(tree, FlatTree):
            return f"module {split} > 0?"
        weight = tree.weight[split].astype(np.float64)
        largest = most_influential(effects(tree, split), self.terms)
        parts = [(weight[j] < 0, f"{self.number(abs(weight[j]))} * {names[j]}") for j in largest]
        left_out = np.count_nonzero(weight) - len(largest)
        if left_out:
            parts.append((False, f"({left_out} more term{'s' if left_out > 1 else ''})"))
        text = "".join((" - " if minus else " + ") + part for minus, part in parts) or " + 0"
        signed = text[3:] if text.startswith(" + ") else "-" + text[3:]
        return f"{signed} > {self.number(-float(tree.bias[split]) + 0.0)}?"

    def title(self, shown: ShownNode) -> str:
        n_splits = self.view.tree.structure.n_splits
        if shown.node >= n_splits:
            return f"leaf {shown.node - n_splits}"
        return f"split {shown.node}" + ("" if self.is_question(shown) else " and below")
