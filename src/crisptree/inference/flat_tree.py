"""Trained trees as plain arrays. Model files are written and checked by the dimensions that annotations name.

The order in which a score is summed up is part of the model: floating-point sums depend on it, and a row near a
hyperplane can change sides with it. So the order is fixed once: term j goes to lane j mod 32, each lane adds its terms
from left to right, and the lanes are added pairwise, the upper half to the lower half, until one is left; the bias
comes last. Products and sums are rounded to single precision one by one (no fused multiply-add). Any other
implementation must give these very bits. Thirty-two lanes let the widest vector units add without waiting for the
previous sum.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from crisptree.data.images import Windows
from crisptree.data.scaling import Scaling
from crisptree.data.sparse import SparseRows
from crisptree.structure import TreeStructure
from crisptree.targets import TARGETS, Target

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Rows = npt.NDArray[np.floating] | Windows | SparseRows

LANES = 32


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics of the training rows, which explanations, plots and the soft tree need.

    Parameters
    ----------
    node_counts : ndarray of shape (n_nodes, n_statistics)
        Sufficient statistics of the training rows that pass each node, splits first, then leaves; for classification
        the weight of every class.
    gain : ndarray of shape (n_splits,)
        Information gain of each split in nats, from those counts.
    score_mean, score_spread : ndarray of shape (n_splits,)
        Weighted mean and standard deviation of f(x) over the training rows that visit each split.
    scaling : Scaling
        Mean and spread of every feature in training, and how they were brought to one scale.
    soft_leaves : ndarray of shape (n_leaves, n_outputs)
        Leaf tables of the probabilistic tree.
    steepness : float
        γ of the last epoch.
    shrinkage : float or None
        Strength of the hierarchical shrinkage of the leaf tables; None without.
    lowest, highest : ndarray of shape (n_features,) or None
        The smallest and the largest value of every feature in training; None if unknown.
    whole : ndarray of shape (n_features,), uint8, or None
        1 for features that were whole numbers in every training row.
    y_center, y_unit : ndarray of shape (n_targets,) or None
        For regression the mean and spread of y in training: tables and counts are those of (y − center) / unit.
    """

    node_counts: Annotated[Doubles, "nodes", "statistics"]
    gain: Annotated[Doubles, "splits"]
    score_mean: Annotated[Doubles, "splits"]
    score_spread: Annotated[Doubles, "splits"]
    scaling: Scaling
    soft_leaves: Annotated[Doubles, "leaves", "outputs"]
    steepness: float
    shrinkage: float | None = None
    lowest: Annotated[Doubles, "features"] | None = None
    highest: Annotated[Doubles, "features"] | None = None
    whole: Annotated[npt.NDArray[np.uint8], "features"] | None = None
    y_center: Annotated[Doubles, "targets"] | None = None
    y_unit: Annotated[Doubles, "targets"] | None = None

    def __post_init__(self) -> None:
        if (self.y_center is None) != (self.y_unit is None):
            raise ValueError("y must have a center and a unit, or neither.")
        if self.shrinkage is not None and self.shrinkage < 0:  # from a file; it would divide by zero some day
            raise ValueError(f"shrinkage must be at least 0; got {self.shrinkage}.")


@dataclass(frozen=True, eq=False)
class CrispTree(ABC):
    """A trained tree that sends every row down one path: its structure, leaf tables and statistics."""

    structure: TreeStructure
    leaves: Annotated[Doubles, "leaves", "outputs"]
    statistics: Statistics
    target_name: str = field(default="classes", kw_only=True)

    @cached_property
    def target(self) -> Target:
        """The target of the leaf tables."""
        return TARGETS[self.target_name](self.leaves.shape[1])

    @property
    @abstractmethod
    def n_features(self) -> int:
        """How many features a row must have."""

    @abstractmethod
    def scores(self, X: Singles, split: int) -> Singles:
        """f(x) of one split for the rows given.  (n, n_features) → (n,)"""

    @abstractmethod
    def parts_of(self, splits: npt.NDArray[np.int64]) -> dict[str, Any]:
        """Select the fields of some splits."""

    @property
    def is_linear(self) -> bool:
        """True if leaves have linear models, so that a prediction needs the row and not only its leaf."""
        return False

    def models_of(self, nodes: npt.NDArray[np.int64]) -> dict[str, Any]:
        """Select the linear models of some nodes."""
        return {}

    def predictions(self, leaf: npt.NDArray[np.int64], X: Rows) -> npt.NDArray[Any]:
        """Predict rows that have reached the given leaves.  (b,), (b, n_features) → (b, …)"""
        if not self.is_linear:
            return self.labels(leaf)
        predictions: npt.NDArray[Any] = self.target.predict(self.leaf_values(leaf, X))
        return predictions

    @property
    def n_outputs(self) -> int:
        """Length of a leaf table: one entry per class."""
        return self.leaves.shape[1]

    def restore_units(self, tables: Doubles) -> Doubles:
        """Convert tables of a regression to the units of y; those of classification stay.  (m, n_outputs)"""
        center, unit = self.statistics.y_center, self.statistics.y_unit
        return tables if center is None or unit is None else self.target.restore_units(tables, center, unit)

    @cached_property
    def _tables(self) -> Doubles:
        return self.restore_units(self.leaves)

    @cached_property
    def _predictions(self) -> npt.NDArray[Any]:
        predictions: npt.NDArray[Any] = self.target.predict(self._tables)
        return predictions

    def labels(self, leaf: Any = slice(None)) -> npt.NDArray[Any]:
        """Predictions of some leaves, or of all: the index of the most frequent class, or means.  (b,) → (b, …)"""
        return self._predictions[leaf]

    def leaf_values(self, leaf: Any = slice(None), X: Rows | None = None) -> Doubles:
        """Outputs for rows that end in some leaves: class probabilities, or means and variances.

        (b,) → (b, n_outputs). ``X`` are those rows, which linear leaves need.
        """
        return self._tables[leaf]

    def __getstate__(self) -> dict[str, Any]:
        # What was derived from the fields is derived again; the kernel's own form cannot be pickled.
        return {name.name: getattr(self, name.name) for name in fields(self)}


@dataclass(frozen=True, eq=False)
class FlatTree(CrispTree):
    """A tree with linear splits f(x) = weight · x + bias on raw features, in single precision.

    Parameters
    ----------
    structure : TreeStructure
        Its children arrays are ``left`` and ``right``.
    leaves : ndarray of shape (n_leaves, n_classes)
        Class probabilities of every leaf.
    statistics : Statistics
        See there.
    weight : ndarray of shape (n_splits, n_features), float32
        Hyperplanes on raw features, the training scale folded in.
    bias : ndarray of shape (n_splits,), float32
        Their offsets.
    linear_weight : ndarray of shape (n_nodes, n_predictions, n_features) or None
        Where leaves have linear models, their weights on raw features: one function for every class or output. A node's
        are the sums of the parts on its path, so that a split that becomes a leaf has a model too.
    linear_bias : ndarray of shape (n_nodes, n_predictions) or None
        Their offsets.
    linear_variance : ndarray of shape (n_nodes, n_predictions) or None
        For regression the residual variance of the models, in the units of training.
    """

    weight: Annotated[Singles, "splits", "features"] = field(kw_only=True)
    bias: Annotated[Singles, "splits"] = field(kw_only=True)
    linear_weight: Annotated[Doubles, "nodes", "predictions", "features"] | None = field(default=None, kw_only=True)
    linear_bias: Annotated[Doubles, "nodes", "predictions"] | None = field(default=None, kw_only=True)
    linear_variance: Annotated[Doubles, "nodes", "predictions"] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if (self.linear_weight is None) != (self.linear_bias is None):
            raise ValueError("linear models must have weights and offsets.")
        if self.linear_weight is None:
            return
        is_regression = self.target.is_regression
        if self.linear_weight.shape[1] != (self.n_outputs // 2 if is_regression else self.n_outputs):
            raise ValueError("linear models must have a function for every class or output.")
        if is_regression != (self.linear_variance is not None) or (is_regression and (self.linear_variance < 0).any()):  # type: ignore[operator, union-attr]
            raise ValueError("linear models of a regression, and no others, must have variances.")

    @property
    def is_linear(self) -> bool:
        return self.linear_weight is not None

    def models_of(self, nodes: npt.NDArray[np.int64]) -> dict[str, Any]:
        names = ("linear_weight", "linear_bias", "linear_variance")
        models = {name: getattr(self, name) for name in names}
        return {name: None if value is None else value[nodes] for name, value in models.items()}

    def leaf_values(self, leaf: Any = slice(None), X: Rows | None = None) -> Doubles:
        if not self.is_linear or X is None:
            return super().leaf_values(leaf)
        return self.restore_units(self.scaled_values(np.asarray(leaf), X))

    def scaled_values(self, leaf: npt.NDArray[np.int64], X: Rows) -> Doubles:
        """Outputs for rows that have reached some leaves, in the units of training.  (b,), (b, n_features)"""
        if not self.is_linear:
            return self.leaves[leaf]
        return linear_tables(self, leaf, X)

    @property
    def left(self) -> npt.NDArray[np.int32]:
        return self.structure.left

    @property
    def right(self) -> npt.NDArray[np.int32]:
        return self.structure.right

    @property
    def n_features(self) -> int:
        return self.weight.shape[1]

    def scores(self, X: Singles, split: int) -> Singles:
        return linear_scores(X, self.weight[split], self.bias[split])

    def parts_of(self, splits: npt.NDArray[np.int64]) -> dict[str, Any]:
        return {"weight": self.weight[splits], "bias": self.bias[splits]}

    def scaled_hyperplanes(self) -> tuple[Doubles, Doubles]:
        """β in the scaled space of training: the weights to look at.  (n_splits, n_features), (n_splits,)"""
        return self.statistics.scaling.unfold(self.weight, self.bias)


def linear_tables(tree: FlatTree, leaf: npt.NDArray[np.int64], X: Rows) -> Doubles:
    """Evaluate the linear models of leaves: one small matrix product for all rows of a leaf.  (b, n_outputs)"""
    weight, bias, variance = tree.linear_weight, tree.linear_bias, tree.linear_variance
    assert weight is not None
    assert bias is not None
    n_splits = tree.structure.n_splits
    scores = np.empty((len(leaf), weight.shape[1]))
    for rows in group_by_leaf(leaf):
        node, some = n_splits + leaf[rows[0]], X[rows]
        x = np.asarray(some.dense() if isinstance(some, SparseRows) else some, dtype=np.float32).astype(np.float64)
        scores[rows] = x @ weight[node].T + bias[node]
    if variance is not None:
        return np.concatenate([scores, variance[n_splits + leaf]], axis=1)
    with np.errstate(under="ignore"):  # a class far less likely than the likeliest has probability 0
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def group_by_leaf(leaf: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Group row indices by their leaf, ascending; leaves without rows have no group."""
    order = np.argsort(leaf, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(leaf[order])) + 1) if len(order) else []


def linear_scores(X: Singles, weight: Singles, bias: np.float32) -> Singles:
    """weight · x + bias in the fixed order.  (n, n_features) → (n,)"""
    lanes = np.zeros((len(X), LANES), dtype=np.float32)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for start in range(0, X.shape[1], LANES):
            terms = X[:, start : start + LANES] * weight[start : start + LANES]
            lanes[:, : terms.shape[1]] += terms
        while lanes.shape[1] > 1:
            half = lanes.shape[1] // 2
            lanes = lanes[:, :half] + lanes[:, half:]
        return lanes[:, 0] + bias
