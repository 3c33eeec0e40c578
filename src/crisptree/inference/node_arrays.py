"""Arrays of a tree's nodes by scikit-learn's names, for programs that read ``tree_`` of its estimators."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.structure import TreeStructure

if TYPE_CHECKING:
    from scipy import sparse

    from crisptree.targets import Target

Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LEAF, UNDEFINED, OBLIQUE = -1, -2, -3
"""Child of a leaf, feature of a leaf (as in scikit-learn), and feature of a split that has several or is a module."""

MAX_FLOAT32 = np.float32(np.finfo(np.float32).max)
_BITS = 0x7F7FFFFF
"""Bits of the largest number; numbers of one sign are ordered as their bits are."""


class Threshold(NamedTuple):
    """A split on one feature: rows whose feature, as float32, is at most ``value`` go one way, all others the other.

    The score w · x + b, with each step rounded to single precision, is monotonic in x. So there is one largest x on
    one side, and a comparison with it decides as the sum does, for every number.
    """

    feature: int
    value: float
    """Threshold, exact in single precision; −∞ where every row is on the side of the larger values."""
    larger_go_right: bool


def find_split_threshold(weights: npt.NDArray[np.float32], bias: np.float32) -> Threshold:
    """Find the threshold of a split with at most one nonzero weight."""
    feature = int(np.argmax(weights != 0))
    weight = weights[feature]
    rises = bool(weight >= 0)  # without a weight the bias sends all rows one way, and either word is true

    def is_below(x: np.float32) -> bool:
        """Return True if x is on the side of the small values."""
        with np.errstate(over="ignore", under="ignore"):
            goes_right = np.float32(weight * x) + bias > 0
        return bool(goes_right) != rises

    if not is_below(-MAX_FLOAT32):
        return Threshold(feature, -np.inf, rises)
    low, high = -_BITS, _BITS + 1  # the number of ``low`` is below, that of ``high`` is not, or there is none
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_below(_float_at(middle)) else (low, middle)
    return Threshold(feature, float(_float_at(low)), rises)


def _float_at(rank: int) -> np.float32:
    """Return the float32 of a rank among all finite ones; zero has rank 0."""
    size = np.uint32(abs(rank)).view(np.float32)
    return -size if rank < 0 else size


def visited_nodes(structure: TreeStructure, leaves: Integers) -> sparse.csr_matrix:
    """Indicate the nodes on the paths to leaves, splits before leaves.  (n,) → (n, n_nodes)"""
    from scipy import sparse  # the command line refuses wrong arguments before scipy is imported

    distinct, which = np.unique(leaves, return_inverse=True)
    paths = [structure.nodes_to(leaf) for leaf in distinct.tolist()]
    lengths = np.array([len(path) for path in paths], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths[which])])
    offsets = (np.cumsum(lengths) - lengths)[which]  # of every row's path in the concatenation of all paths
    positions = np.arange(starts[-1]) + np.repeat(offsets - starts[:-1], lengths[which])
    columns = np.concatenate([np.zeros(0, dtype=np.int64), *paths]).astype(np.int64)[positions]
    return sparse.csr_matrix((np.ones(len(columns), dtype=bool), columns, starts), (len(which), structure.n_nodes))


class NodeArrays:
    """Mixin of trees: node i is split i for i < ``structure.n_splits``, and leaf i − ``structure.n_splits`` else.

    A row goes to ``children_left`` where ``X[feature] <= threshold``, both in single precision, or, at splits whose
    ``feature`` is −3, where ``weights_ @ x + biases_ <= 0``. ``feature`` is −2 and children are −1 at leaves.
    """

    if TYPE_CHECKING:
        structure: TreeStructure
        statistics: Any
        leaves: Doubles

        @property
        def target(self) -> Target: ...
        @property
        def n_features(self) -> int: ...
        def restore_units(self, tables: Doubles) -> Doubles: ...

    def linear_splits(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]] | None:
        """Return weights (n_splits, n_features) and biases (n_splits,) on raw features; None for split modules."""
        return None

    @property
    def node_count(self) -> int:
        """Number of nodes, splits and leaves."""
        return self.structure.n_nodes

    @property
    def capacity(self) -> int:
        """Number of nodes that the arrays hold."""
        return self.structure.n_nodes

    @property
    def max_depth(self) -> int:
        """Number of splits on the longest path."""
        return self.structure.depth

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.structure.n_leaves

    @property
    def n_outputs(self) -> int:
        """Number of outputs, 1 for classification."""
        return self.leaves.shape[1] // 2 if self.target.is_regression else 1

    @property
    def n_classes(self) -> Integers:
        """Number of classes; 1 for every output of a regression."""
        return np.full(self.n_outputs, 1 if self.target.is_regression else self.leaves.shape[1])

    @property
    def max_n_classes(self) -> int:
        """Number of classes; 1 for regression."""
        return int(self.n_classes.max())

    @cached_property
    def _conditions(self) -> tuple[Integers, Doubles, npt.NDArray[np.bool_]]:
        """Feature and threshold of every node, and whether small values go to our right child."""
        splits, linear = self.structure.n_splits, self.linear_splits()
        feature = np.full(self.node_count, UNDEFINED)
        feature[:splits] = OBLIQUE
        threshold = np.full(self.node_count, float(UNDEFINED))
        threshold[:splits] = np.nan
        is_turned = np.zeros(self.node_count, dtype=bool)
        if linear is not None:
            for split in np.flatnonzero(np.count_nonzero(linear[0], axis=1) <= 1):
                found = find_split_threshold(linear[0][split], linear[1][split])
                feature[split], threshold[split], is_turned[split] = found.feature, found.value, not found[2]
        return feature, threshold, is_turned

    @cached_property
    def _sides(self) -> tuple[Integers, Integers]:
        sides = (self.structure.left_nodes, self.structure.right_nodes)
        none, turned = np.full(self.n_leaves, LEAF), self._conditions[2][: self.structure.n_splits]
        left, right = (np.where(turned, other, own) for own, other in (sides, sides[::-1]))
        return np.append(left, none), np.append(right, none)

    @property
    def children_left(self) -> Integers:
        """Node of the small values, or of w · x + b ≤ 0; −1 at leaves.  (n_nodes,)"""
        return self._sides[0]

    @property
    def children_right(self) -> Integers:
        """Node of the large values, or of w · x + b > 0; −1 at leaves.  (n_nodes,)"""
        return self._sides[1]

    @property
    def feature(self) -> Integers:
        """Feature of a split on one feature; −3 at other splits, −2 at leaves.  (n_nodes,)"""
        return self._conditions[0]

    @property
    def threshold(self) -> Doubles:
        """Largest raw value that goes left; NaN at splits of several features, −2 at leaves.  (n_nodes,)"""
        return self._conditions[1]

    @property
    def weights_(self) -> npt.NDArray[np.float32]:
        """Weights of every split on raw features, 0 at leaves.  (n_nodes, n_features)"""
        return self._linear_parts()[0]

    @property
    def biases_(self) -> npt.NDArray[np.float32]:
        """Offset of every split, 0 at leaves.  (n_nodes,)"""
        return self._linear_parts()[1]

    def _linear_parts(self) -> tuple[npt.NDArray[np.float32], ...]:
        linear = self.linear_splits()
        if linear is None:
            raise AttributeError("the splits of this tree are modules, which have no weights of features.")
        signs = np.where(self._conditions[2][: self.structure.n_splits], -1, 1).astype(np.float32)
        parts = []
        for part in linear:
            values = np.zeros((self.node_count, *part.shape[1:]), dtype=np.float32)
            values[: len(part)] = (part.T * signs).T
            parts.append(values)
        return tuple(parts)

    @cached_property
    def value(self) -> Doubles:
        """Class frequencies (n_nodes, 1, n_classes), or means (n_nodes, n_outputs, 1)."""
        tables = self.restore_units(node_tables(self))
        if self.target.is_regression:
            return tables[:, : self.n_outputs, None]
        return tables[:, None, :]

    @cached_property
    def weighted_n_node_samples(self) -> Doubles:
        """Weight of the training rows of every node.  (n_nodes,)"""
        return np.maximum(self.target.weight(self.statistics.node_counts), 0.0)

    @property
    def n_node_samples(self) -> Integers:
        """``weighted_n_node_samples``, rounded: rows are not counted without their weights.  (n_nodes,)"""
        return np.rint(self.weighted_n_node_samples).astype(np.int64)

    @cached_property
    def impurity(self) -> Doubles:
        """Entropy of the classes in bits, or the mean variance of the outputs.  (n_nodes,)"""
        return self.target.mean_impurity(self.statistics.node_counts, self.statistics.y_unit)

    def compute_node_depths(self) -> Integers:
        """Return the depth of every node, 1 for the root.  (n_nodes,)"""
        return self.structure.node_depths + 1


def node_tables(tree: NodeArrays) -> Doubles:
    """Tables of all nodes, splits first; empty splits as in ``leaf_tables``, leaves as they are.  (n_nodes, …)"""
    tables = tree.target.tables(tree.structure.inherit_counts(tree.statistics.node_counts))
    tables[tree.structure.n_splits :] = tree.leaves
    return tables
