"""The shape of a binary tree in two integer arrays.

Splits are numbered from 0 (the root), leaves from 0 on their own. A child that is >= 0 is a split, a child
that is negative is the leaf ``~child``. Every split comes after its parent, so one pass over the numbers
goes down the tree and one pass backwards goes up; cycles cannot be represented.

Where splits and leaves must share one numbering (columns of ``decision_path``, rows of the class counts) the
splits come first: node i is split i for i < n_splits and leaf i - n_splits otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TreeStructure:
    """Children of every split; the numbering is at the top of this file.

    Examples
    --------
    The paper's figure 1: leaves A, B, C, D, E are 0 … 4, splits 1, 2, 3, 4 are 0 … 3.

    >>> figure_1 = TreeStructure([1, ~0, ~3, ~1], [2, 3, ~4, ~2])
    >>> figure_1.n_leaves, figure_1.depth
    (5, 3)
    >>> figure_1.path(1)  # to B: left at split 1, right at 2, left at 4
    [(0, False), (1, True), (3, False)]
    """

    left: Annotated[Ints, "splits"]
    right: Annotated[Ints, "splits"]

    def __init__(self, left: npt.ArrayLike, right: npt.ArrayLike) -> None:
        for name, children in (("left", left), ("right", right)):
            array = np.array(children, dtype=np.int32).reshape(-1)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        self._check()

    def _check(self) -> None:
        if len(self.left) != len(self.right):
            raise ValueError(
                f"a tree needs as many left as right children; got {len(self.left)} left and {len(self.right)} right."
            )
        children = np.concatenate([self.left, self.right]).astype(np.int64)
        parents = np.tile(np.arange(self.n_splits), 2)
        inner = children >= 0
        if np.any(children[inner] <= parents[inner]):
            raise ValueError("every split must be numbered after its parent, and the root is split 0.")
        expected_splits = np.arange(1, self.n_splits)
        if not np.array_equal(np.sort(children[inner]), expected_splits):
            raise ValueError(f"each of the splits 1 … {self.n_splits - 1} must be the child of exactly one split.")
        if self.n_splits and not np.array_equal(np.sort(~children[~inner]), np.arange(self.n_leaves)):
            raise ValueError(f"each of the leaves 0 … {self.n_leaves - 1} must be the child of exactly one split.")

    @classmethod
    def single_leaf(cls) -> TreeStructure:
        """Make the tree of one leaf."""
        return cls([], [])

    @classmethod
    def stump(cls) -> TreeStructure:
        """Make the tree of one split and two leaves."""
        return cls([~0], [~1])

    @classmethod
    def balanced(cls, depth: int) -> TreeStructure:
        """Make the complete tree of 2^depth leaves, numbered from left to right."""
        n_splits = 2**depth - 1
        children = np.arange(1, 2 * n_splits + 1).reshape(n_splits, 2)
        children[children >= n_splits] = ~(children[children >= n_splits] - n_splits)
        return cls(children[:, 0], children[:, 1])

    @property
    def n_splits(self) -> int:
        return len(self.left)

    @property
    def n_leaves(self) -> int:
        return self.n_splits + 1

    @property
    def n_nodes(self) -> int:
        return self.n_splits + self.n_leaves

    def split_leaves(self, leaves: Sequence[int]) -> TreeStructure:
        """Replace each of these leaves, which must differ, by a split, numbered from n_splits on.

        The left child keeps the leaf's number, the right children become leaves from n_leaves on.
        """
        old, added = np.array(leaves, dtype=np.int64), np.arange(len(leaves))
        for leaf in old[(old < 0) | (old >= self.n_leaves)]:
            raise ValueError(f"leaf must be one of 0 … {self.n_leaves - 1}; got {leaf}.")
        if len(np.unique(old)) < len(old):
            raise ValueError("the leaves must differ; one of them was given twice.")
        number = np.arange(-self.n_leaves, 0)[::-1]  # ~leaf for those that stay
        number[old] = self.n_splits + added
        left, right = (np.where(side < 0, number[~side], side) for side in (self.left, self.right))
        return TreeStructure(np.append(left, ~old), np.append(right, ~(self.n_leaves + added)))

    def truncate(self, depth: int) -> tuple[TreeStructure, npt.NDArray[np.int64]]:
        """Return the tree of at most ``depth``, and the node of this tree of each of its nodes, splits first.

        A split that becomes a leaf is numbered where its leftmost leaf was, so that growth undone is the tree before.
        """
        if depth < 0:
            raise ValueError(f"depth must be at least 0; got {depth}.")
        return self.prune(np.flatnonzero(self.node_depths[: self.n_splits] == depth))

    def prune(self, splits: npt.ArrayLike) -> tuple[TreeStructure, npt.NDArray[np.int64]]:
        """Return the tree in which these splits are leaves, and the node of this tree of each of its nodes."""
        is_end = np.arange(self.n_nodes) >= self.n_splits
        is_end[np.asarray(splits, dtype=np.int64)] = True
        passed, stops = [True] * self.n_nodes, is_end.tolist()
        for split, (left, right) in enumerate(zip(self.left_nodes.tolist(), self.right_nodes.tolist(), strict=True)):
            passed[left] = passed[right] = passed[split] and not stops[split]
        shown = np.array(passed)
        inner = np.flatnonzero(shown & ~is_end)
        ends = np.flatnonzero(shown & is_end)
        ends = ends[np.argsort(self.leaves_left_to_right[self.leaf_spans[ends, 0]])]
        number = np.zeros(self.n_nodes, dtype=np.int64)
        number[inner], number[ends] = np.arange(len(inner)), ~np.arange(len(ends))
        kept = TreeStructure(number[self.left_nodes[inner]], number[self.right_nodes[inner]])
        return kept, np.concatenate([inner, ends])

    def splice(self, splits: npt.ArrayLike, to_right: npt.ArrayLike) -> tuple[TreeStructure, npt.NDArray[np.int64]]:
        """Return the tree without these splits, and the node of this tree of each of its nodes, splits first.

        Each is replaced by its right subtree where ``to_right``, else by its left one; the other subtree is removed.
        The remaining splits and leaves keep their order.

        Examples
        --------
        >>> figure_1 = TreeStructure([1, ~0, ~3, ~1], [2, 3, ~4, ~2])
        >>> without, nodes = figure_1.splice([1], [True])  # split 4 with leaves B and C moves up, A is removed
        >>> without.left.tolist(), without.right.tolist(), (nodes[without.n_splits :] - figure_1.n_splits).tolist()
        ([2, -3, -1], [1, -4, -2], [1, 2, 3, 4])
        """
        successor = np.arange(self.n_nodes)
        removed = np.asarray(splits, dtype=np.int64)
        successor[removed] = np.where(to_right, self.right_nodes[removed], self.left_nodes[removed])
        for split in np.sort(removed)[::-1]:
            successor[split] = successor[successor[split]]
        shown, to = [False] * self.n_nodes, successor.tolist()
        shown[to[0]] = True
        for split, (left, right) in enumerate(zip(self.left_nodes.tolist(), self.right_nodes.tolist(), strict=True)):
            if shown[split]:
                shown[to[left]] = shown[to[right]] = True
        nodes = np.flatnonzero(shown)
        inner, ends = nodes[nodes < self.n_splits], nodes[nodes >= self.n_splits]
        number = np.zeros(self.n_nodes, dtype=np.int64)
        number[inner], number[ends] = np.arange(len(inner)), ~np.arange(len(ends))
        left, right = (number[successor[side[inner]]] for side in (self.left_nodes, self.right_nodes))
        return TreeStructure(left, right), nodes

    @cached_property
    def left_nodes(self) -> npt.NDArray[np.int64]:
        """The left child of every split as a node number (splits first, then leaves)."""
        return self._as_nodes(self.left)

    @cached_property
    def right_nodes(self) -> npt.NDArray[np.int64]:
        """The right child of every split as a node number (splits first, then leaves)."""
        return self._as_nodes(self.right)

    def _as_nodes(self, children: Ints) -> npt.NDArray[np.int64]:
        wide = children.astype(np.int64)
        return np.where(wide >= 0, wide, self.n_splits + ~wide)

    @cached_property
    def parents(self) -> npt.NDArray[np.int64]:
        """The split above every node; -1 above the root."""
        parents = np.full(self.n_nodes, -1, dtype=np.int64)
        parents[self.left_nodes] = np.arange(self.n_splits)
        parents[self.right_nodes] = np.arange(self.n_splits)
        return parents

    @cached_property
    def node_depths(self) -> npt.NDArray[np.int64]:
        """The depth of every node (splits first, then leaves)."""
        depths, splits, depth = np.zeros(self.n_nodes, dtype=np.int64), np.arange(min(self.n_splits, 1)), 0
        while len(splits):
            depth += 1
            children = np.concatenate([self.left_nodes[splits], self.right_nodes[splits]])
            depths[children] = depth
            splits = children[children < self.n_splits]
        return depths

    @property
    def leaf_depths(self) -> npt.NDArray[np.int64]:
        """The depth of every leaf."""
        return self.node_depths[self.n_splits :]

    @property
    def depth(self) -> int:
        """The largest number of splits on a path."""
        return int(self.leaf_depths.max())

    @cached_property
    def nodes_by_depth(self) -> npt.NDArray[np.int64]:
        """The node of every depth on the path to every leaf; the leaf itself beyond its depth.  (depth + 1, n_leaves)

        Row d has the ends of the tree truncated at depth d.
        """
        paths = np.empty((self.depth + 1, self.n_leaves), dtype=np.int64)
        nodes = np.arange(self.n_splits, self.n_nodes)
        for depth in range(self.depth, -1, -1):
            paths[depth] = nodes
            nodes = np.where(self.node_depths[nodes] == depth, self.parents[nodes], nodes)
        return paths

    @cached_property
    def levels(self) -> tuple[npt.NDArray[np.int64], ...]:
        """The splits of every depth, from the root down."""
        depths = self.node_depths[: self.n_splits]
        return tuple(np.flatnonzero(depths == depth) for depth in range(self.depth))

    @cached_property
    def leaves_left_to_right(self) -> npt.NDArray[np.int64]:
        """The leaf numbers in the order of a plot."""
        order, stack = [], [0 if self.n_splits else -1]
        while stack:
            child = stack.pop()
            if child < 0:
                order.append(~child)
            else:
                stack += [int(self.right[child]), int(self.left[child])]
        return np.array(order, dtype=np.int64)

    @cached_property
    def leaf_spans(self) -> npt.NDArray[np.int64]:
        """Every node's leaves as a range [start, stop) of ``leaves_left_to_right``.  (n_nodes, 2)"""
        spans = np.zeros((self.n_nodes, 2), dtype=np.int64)
        places = np.arange(self.n_leaves)
        spans[self.n_splits + self.leaves_left_to_right] = np.stack([places, places + 1], axis=1)
        for split in range(self.n_splits - 1, -1, -1):
            spans[split] = spans[self.left_nodes[split], 0], spans[self.right_nodes[split], 1]
        return spans

    def nodes_to(self, leaf: int) -> list[int]:
        """Return the nodes on the path to a leaf, from the root to the leaf itself."""
        return [*(split for split, _ in self.path(leaf)), self.n_splits + leaf]

    def path(self, leaf: int) -> list[tuple[int, bool]]:
        """Return the splits on the path to a leaf, each with True where the path turns right (ℛ_ℓ and ℒ_ℓ)."""
        node, path = self.n_splits + leaf, []
        while (parent := int(self.parents[node])) >= 0:
            path.append((parent, bool(self.right_nodes[parent] == node)))
            node = parent
        return path[::-1]

    def sums_below(self, leaf_values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Sum ``leaf_values`` over the leaves below every node (splits first, then leaves)."""
        sums = np.zeros((self.n_nodes, *leaf_values.shape[1:]))
        sums[self.n_splits :] = leaf_values
        for splits in reversed(self.levels):
            sums[splits] = sums[self.left_nodes[splits]] + sums[self.right_nodes[splits]]
        return sums

    def means_below(
        self, leaf_values: npt.NDArray[np.float64], leaf_weights: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.float64]:
        """Average ``leaf_values`` over the leaves below every node, unweighted where all weights are zero.

        (n_leaves, k), (n_leaves,) → (n_nodes, k), splits first
        """
        mixed, total = self.sums_below(leaf_values * leaf_weights[:, None]), self.sums_below(leaf_weights)
        plain, number = self.sums_below(leaf_values), self.sums_below(np.ones(self.n_leaves))
        means = np.where(total[:, None] > 0, mixed / np.maximum(total, 1e-300)[:, None], plain / number[:, None])
        means[self.n_splits :] = leaf_values
        return means

    def inherit_counts(self, node_counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Replace the counts of nodes without rows by those of the parent.  (n_nodes, n_statistics)"""
        counts = node_counts.copy()
        if node_counts.any(axis=1).all():
            return counts
        for split in range(self.n_splits):
            for child in (self.left_nodes[split], self.right_nodes[split]):
                if not counts[child].any():
                    counts[child] = counts[split]
        return counts

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeStructure):
            return NotImplemented
        return np.array_equal(self.left, other.left) and np.array_equal(self.right, other.right)

    @cached_property
    def _hash(self) -> int:
        return hash((self.left.tobytes(), self.right.tobytes()))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[TreeStructure], tuple[Ints, Ints]]:
        return TreeStructure, (self.left, self.right)
