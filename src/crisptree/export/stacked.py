"""The trees of a model as one: splits and leaves numbered through, and sparse splits as gaps and weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.export.portable import Portable

WIDEST_GAP = 255
"""A gap between two terms is one byte; a wider one is bridged by terms of weight zero."""


@dataclass(frozen=True, eq=False)
class Stacked:
    """All trees of a model, one after the other.

    Parameters
    ----------
    root : ndarray of shape (n_trees,)
        Where every tree begins: a split ≥ 0, or the leaf −root − 1 of a tree that asks nothing.
    first_leaf : ndarray of shape (n_trees,)
        The number of every tree's leaf 0.
    left, right : ndarray of shape (n_splits,)
        Children: a child c ≥ 0 is a split, c < 0 is leaf −c − 1.
    weight, bias : ndarray, float32
        Hyperplanes on raw features.
    tables : ndarray of shape (n_leaves, n_outputs)
        What every leaf says.
    linear : pair of ndarray or None
        Where leaves have linear models, their weights and offsets; see ``PortableTree``.
    """

    root: npt.NDArray[np.int64]
    first_leaf: npt.NDArray[np.int64]
    left: npt.NDArray[np.int64]
    right: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float32]
    bias: npt.NDArray[np.float32]
    tables: npt.NDArray[np.float64]
    linear: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None = None

    @classmethod
    def of(cls, model: Portable) -> Stacked:
        """The trees of a model in their order."""
        splits = np.cumsum([0, *(tree.structure.n_splits for tree in model.trees)])
        leaves = np.cumsum([0, *(tree.structure.n_leaves for tree in model.trees)])
        left: list[npt.NDArray[np.int64]] = []
        right: list[npt.NDArray[np.int64]] = []
        root = []
        for number, tree in enumerate(model.trees):
            for side, children in ((left, tree.structure.left), (right, tree.structure.right)):
                own = children.astype(np.int64)
                side.append(np.where(own >= 0, own + splits[number], own - leaves[number]))
            root.append(splits[number] if tree.structure.n_splits else ~leaves[number])
        models = [tree.linear for tree in model.trees if tree.linear is not None]
        weights, offsets = zip(*models, strict=True) if models else ((), ())
        return cls(
            np.array(root),
            leaves[:-1],
            np.concatenate(left),
            np.concatenate(right),
            np.concatenate([tree.weight for tree in model.trees]),
            np.concatenate([tree.bias for tree in model.trees]),
            np.concatenate([tree.tables for tree in model.trees]),
            (np.concatenate(weights), np.concatenate(offsets)) if models else None,
        )

    @property
    def n_trees(self) -> int:
        return len(self.root)

    @property
    def n_splits(self) -> int:
        return len(self.left)

    @property
    def n_leaves(self) -> int:
        return len(self.tables)

    @cached_property
    def answers(self) -> npt.NDArray[np.int64]:
        """The place of the largest number of every leaf's table, the first of equal ones.  (n_leaves,)"""
        return self.tables.argmax(axis=1)

    @property
    def model_cost(self) -> int:
        """Multiply-adds of the linear models of one leaf of every tree."""
        return 0 if self.linear is None else self.n_trees * int(np.prod(self.linear[0].shape[1:]))

    def arrivals(self, right: Any, n_rows: int) -> npt.NDArray[np.int64]:
        """Where rows arrive in every tree; ``right(split, rows)`` says who turns right.  (n_trees, n_rows)"""
        found = np.empty((self.n_trees, n_rows), dtype=np.int64)
        for tree, root in enumerate(self.root):
            waiting = [(int(root), np.arange(n_rows))]
            while waiting:
                node, rows = waiting.pop()
                if node < 0:
                    found[tree, rows] = ~node
                elif len(rows):
                    turns = right(node, rows)
                    waiting += [(int(self.left[node]), rows[~turns]), (int(self.right[node]), rows[turns])]
        return found

    def path_costs(self, costs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """What the splits on the way to every leaf cost in all.  (n_splits,) → (n_leaves,)"""
        total = np.zeros(self.n_leaves, dtype=np.int64)
        waiting = [(int(root), 0) for root in self.root]
        while waiting:
            node, spent = waiting.pop()
            if node < 0:
                total[~node] = spent
            else:
                after = spent + int(costs[node])
                waiting += [(int(self.left[node]), after), (int(self.right[node]), after)]
        return total

    def worst_cost(self, costs: npt.NDArray[np.int64]) -> int:
        """The most that one row can cost: the dearest path of every tree."""
        return int(np.maximum.reduceat(self.path_costs(costs), self.first_leaf).sum())


@dataclass(frozen=True, eq=False)
class Terms:
    """The weights of splits that are not zero: how many features to go on, and the weight of the one reached.

    Parameters
    ----------
    start : ndarray of shape (n_splits + 1,)
        Where the terms of every split begin.
    gap : ndarray of shape (n_terms,), uint8
        From the feature before, or from feature 0, to the term's own.
    value : ndarray of shape (n_terms,)
        Weights, zero only where a gap is bridged.

    Examples
    --------
    >>> terms = Terms.of(np.array([[0, 5, 0, 7], [3, 0, 0, 0]]))
    >>> terms.start.tolist(), terms.gap.tolist(), terms.value.tolist()
    ([0, 2, 3], [1, 2, 0], [5, 7, 3])
    """

    start: npt.NDArray[np.int64]
    gap: npt.NDArray[np.uint8]
    value: npt.NDArray[Any]

    @classmethod
    def of(cls, weight: npt.NDArray[Any]) -> Terms:
        """The terms of every line of a matrix."""
        starts, gaps, values = [0], [], []
        for line in weight:
            at = 0
            for feature in np.flatnonzero(line).tolist():
                while feature - at > WIDEST_GAP:
                    at += WIDEST_GAP
                    gaps.append(WIDEST_GAP)
                    values.append(0)
                gaps.append(feature - at)
                values.append(line[feature])
                at = feature
            starts.append(len(gaps))
        return cls(np.array(starts), np.array(gaps, dtype=np.uint8), np.array(values, dtype=weight.dtype))

    def costs(self) -> npt.NDArray[np.int64]:
        """Multiply-adds of every split."""
        return np.diff(self.start)
