"""Trained trees as plain arrays; by the sides that annotations name, model files are written and checked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from crisptree.inference.summation import linear_scores
from crisptree.rows.sparse import SparseRows
from crisptree.rows.windows import Windows
from crisptree.scaling import Scaling
from crisptree.structure import TreeStructure
from crisptree.targets import TARGETS, Target

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Rows = npt.NDArray[np.floating] | Windows | SparseRows


@dataclass(frozen=True, eq=False)
class Statistics:
    """What training left behind: all that explanations, drawings and the soft tree need.

    Parameters
    ----------
    node_counts : ndarray of shape (n_nodes, n_statistics)
        What the training rows that pass each node add up to, splits first, then leaves: the weight of every class.
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
        How strongly the leaf tables were drawn towards those above them; None where they are the leaves' own.
    lowest, highest : ndarray of shape (n_features,) or None
        The smallest and the largest value of every feature in training; None where nobody has looked.
    whole : ndarray of shape (n_features,), uint8, or None
        1 for features that were whole numbers in every training row.
    y_center, y_unit : ndarray of shape (n_targets,) or None
        Where y are numbers, their mean and spread in training: tables and counts are those of (y − center) / unit.
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
    target: str = field(default="classes", kw_only=True)

    @cached_property
    def meaning(self) -> Target:
        """What the numbers of a leaf mean."""
        return TARGETS[self.target](self.leaves.shape[1])

    @property
    @abstractmethod
    def n_features(self) -> int:
        """How many features a row must have."""

    @abstractmethod
    def scores(self, X: Singles, split: int) -> Singles:
        """f(x) of one split for the rows given.  (n, n_features) → (n,)"""

    @abstractmethod
    def parts_of(self, splits: npt.NDArray[np.int64]) -> dict[str, Any]:
        """The fields that describe splits, for some of them only."""

    @property
    def n_outputs(self) -> int:
        """How many numbers a leaf says: one for every class."""
        return self.leaves.shape[1]

    def in_units(self, tables: Doubles) -> Doubles:
        """Tables in the units of y, which numbers were scaled from; those of classes as they are.  (m, n_outputs)"""
        center, unit = self.statistics.y_center, self.statistics.y_unit
        return tables if center is None or unit is None else self.meaning.in_units(tables, center, unit)

    @cached_property
    def _tables(self) -> Doubles:
        return self.in_units(self.leaves)

    @cached_property
    def _answers(self) -> npt.NDArray[Any]:
        answers: npt.NDArray[Any] = self.meaning.answers(self._tables)
        return answers

    def labels(self, leaf: Any = slice(None)) -> npt.NDArray[Any]:
        """What some leaves predict, or all of them: the number of the most frequent class, or means.  (b,) → (b, …)"""
        return self._answers[leaf]

    def leaf_values(self, leaf: Any = slice(None), X: Rows | None = None) -> Doubles:
        """What the tree says of rows that end in some leaves: class probabilities, or means and variances.

        (b,) → (b, n_outputs). ``X`` are those rows, for leaves whose answer depends on more than that a row has
        reached them.
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
    """

    weight: Annotated[Singles, "splits", "features"] = field(kw_only=True)
    bias: Annotated[Singles, "splits"] = field(kw_only=True)

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
