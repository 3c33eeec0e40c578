"""Splits and leaves in words, for the forms of a tree that people read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.inference import CrispTree, FlatTree
from crisptree.inference.statistics import node_tables
from crisptree.naming import feature_names as names_of


class Shown(NamedTuple):
    """A node of the drawing: its number, its depth, the split it hangs from (−1 above the root) and the turn taken."""

    node: int
    depth: int
    parent: int
    goes_right: bool


@dataclass(frozen=True, eq=False)
class Wording:
    """What to say about the nodes of a fitted model.

    Parameters
    ----------
    model : CrispTreeClassifier
        A fitted estimator.
    feature_names : sequence of str or None
        Words in place of the model's own.
    terms : int
        How many terms of a split to write out.
    max_depth : int or None
        How many levels of splits to show.
    decimals : int
        Significant digits of numbers.
    """

    model: Any
    feature_names: Sequence[object] | None
    terms: int
    max_depth: int | None
    decimals: int

    def __post_init__(self) -> None:
        if getattr(self.model, "tree_", None) is None:
            raise ValueError("a tree can be written down once it is fitted; this model is not. Call fit first.")
        if self.max_depth is not None:
            _check_number("max_depth", self.max_depth, 0)
        _check_number("terms", self.terms, 0)
        _check_number("decimals", self.decimals, 1)

    @property
    def tree(self) -> CrispTree:
        return self.model.tree_

    @cached_property
    def names(self) -> list[str]:
        return [_on_one_line(name) for name in names_of(self.model, self.feature_names)]

    @cached_property
    def tables(self) -> npt.NDArray[np.float64]:
        return node_tables(self.tree)

    @cached_property
    def rows(self) -> npt.NDArray[np.float64]:
        """Training rows at every node, by weight.  (n_nodes,)"""
        return self.tree.statistics.node_counts.sum(axis=1)

    def is_question(self, shown: Shown) -> bool:
        """Whether the node is a split whose children are shown too."""
        return shown.node < self.tree.structure.n_splits and (self.max_depth is None or shown.depth < self.max_depth)

    def nodes(self) -> Iterator[Shown]:
        """What is shown: every node before its left side, and that before its right side."""
        structure, waiting = self.tree.structure, [Shown(0, 0, -1, False)]
        while waiting:
            shown = waiting.pop()
            yield shown
            if self.is_question(shown):
                for children, turn in ((structure.right_nodes, True), (structure.left_nodes, False)):
                    waiting.append(Shown(int(children[shown.node]), shown.depth + 1, shown.node, turn))

    def number(self, value: float) -> str:
        return f"{value:.{self.decimals}g}"

    def count(self, node: int) -> str:
        rows = f"{self.rows[node]:.6g}"
        return f"{rows} row" if rows == "1" else f"{rows} rows"

    def question(self, split: int) -> str:
        """The split in raw units, its most influential terms first; what it says is true for the whole sum."""
        if not isinstance(self.tree, FlatTree):
            return f"module {split} > 0?"
        weight = self.tree.weight[split].astype(np.float64)
        influence = np.abs(weight) * self.tree.statistics.scaling.spread
        present = np.flatnonzero(weight)
        largest = present[np.argsort(-influence[present], kind="stable")][: self.terms]
        parts = [(weight[j] < 0, f"{self.number(abs(weight[j]))} * {self.names[j]}") for j in largest]
        left_out = len(present) - len(largest)
        if left_out:
            parts.append((False, f"({left_out} more term{'s' if left_out > 1 else ''})"))
        text = "".join((" - " if minus else " + ") + part for minus, part in parts) or " + 0"
        signed = text[3:] if text.startswith(" + ") else "-" + text[3:]
        return f"{signed} > {self.number(-float(self.tree.bias[split]) + 0.0)}?"

    def answer(self, node: int) -> str:
        """The most frequent class of a node and its share."""
        table = self.tables[node]
        return f"{_on_one_line(self.model.classes_[table.argmax()])} ({table.max():.1%})"

    def title(self, shown: Shown) -> str:
        n_splits = self.tree.structure.n_splits
        if shown.node >= n_splits:
            return f"leaf {shown.node - n_splits}"
        return f"split {shown.node}" + ("" if self.is_question(shown) else " and below")


def _check_number(name: str, value: Any, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
        raise ValueError(f"`{name}` must be a whole number of at least {low}; got {value!r}.")


def _on_one_line(name: object) -> str:
    return " ".join(str(name).splitlines())
