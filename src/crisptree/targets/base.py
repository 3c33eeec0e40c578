"""Interfaces of what depends on y: ``Target`` for training and prediction, ``TargetEncoding`` for user input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from crisptree.equations.gain import impurity_decrease

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from crisptree.inference.statistics import SomeTree

Doubles = npt.NDArray[np.float64]


class EStep(NamedTuple):
    """Result of an E-step: responsibilities (n, n_leaves), weighted statistics of all rows (n_leaves, n_nodes ·
    n_statistics), and log-likelihoods log p(y_n∣x_n) (n,).
    """

    responsibilities: Tensor
    statistics: Tensor
    log_likelihoods: Tensor


@dataclass(frozen=True)
class Target(ABC):
    """The distribution of y in a leaf: a table of ``n_values`` parameters.

    Rows reach a leaf with *evidence* log p(y ∣ leaf), and leave *statistics* behind: ``n_statistics`` numbers that add
    up over rows, from which the next table follows. Where many stumps train at once, ``node`` is the stump of every
    row, and tables and statistics of all stumps stand side by side: (n_leaves, n_nodes · n_values).
    """

    name: ClassVar[str]
    is_regression: ClassVar[bool] = False
    starts_at_node: ClassVar[bool] = False
    """Whether the first tables of a stump depend on the rows that it is to part; see ``stump_tables``."""

    has_axis_splits: ClassVar[bool] = True
    """Whether thresholds on single features can be found for it."""

    n_values: int

    @property
    def hard(self) -> Target:
        """The target of hard labels, for model selection and deterministic trees."""
        return self

    def conform(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Convert the y of validation rows to the form that this target trains on."""
        return y

    @property
    def n_statistics(self) -> int:
        """Length of a leaf's sufficient statistics."""
        return self.n_values

    @property
    def n_classes(self) -> int | None:
        """Number of classes; None unless a table has one entry for each."""
        return None

    @property
    def min_leaves(self) -> int:
        """The fewest leaves with which a tree can predict every class."""
        return self.n_values

    @abstractmethod
    def evidence(self, tables: Tensor, y: Tensor, node: Tensor | None = None) -> Tensor:
        """log p(y_n ∣ leaf).  (n_leaves, n_nodes · n_values), (n,), (n,) → (n, n_leaves)"""

    @abstractmethod
    def statistics(self, responsibilities: Tensor, y: Tensor, node: Tensor | None = None, n_nodes: int = 1) -> Tensor:
        """Σ_n h_{n,ℓ} s(y_n), node by node.  (n, n_leaves) → (n_leaves, n_nodes · n_statistics)"""

    def e_step(
        self,
        log_paths: Tensor,
        tables: Tensor,
        y: Tensor,
        weight: Tensor,
        node: Tensor | None = None,
        n_nodes: int = 1,
    ) -> EStep:
        """Compute responsibilities, statistics and log-likelihoods of weighted rows from log μ  (n, n_leaves)."""
        from crisptree.equations.em import responsibilities
        from crisptree.equations.routing import log_likelihoods

        evidence = self.evidence(tables, y, node)
        h = responsibilities(log_paths, evidence)
        statistics = self.statistics(h * weight[:, None], y, node, n_nodes)
        return EStep(h, statistics, log_likelihoods(log_paths, evidence))

    @abstractmethod
    def update(self, statistics: Tensor, previous: Tensor, prior: float) -> Tensor:
        """Compute the M-step of leaves: maximum-likelihood tables; an empty leaf keeps its own.  (m, n_statistics)"""

    def pool_variances(self, tables: Tensor, statistics: Tensor) -> Tensor:
        """Pool the variances of the leaves of one node where that helps training.

        (n_leaves, n_nodes, n_values), (n_leaves, n_nodes, n_statistics) → the first
        """
        return tables

    @abstractmethod
    def random_tables(self, n: int, generator: Generator) -> Tensor:
        """Draw initial tables.  (n, n_values)"""

    def stump_tables(self, tables: Tensor, statistics: Tensor) -> Tensor:
        """Centre the random tables of the two leaves of m stumps on the rows of each.

        (2, m, n_values), (m, n_statistics) → (2, m, n_values)
        """
        return tables

    @abstractmethod
    def tally(self, y: Any, weight: Any, node: Any, n_nodes: int) -> Any:
        """Sum Σ w_n s(y_n) over the rows at every node, in the type of the weights: arrays or tensors.

        (b,), (b,), (b,) → (n_nodes, n_statistics); with weights (b, c) → (n_nodes, c, n_statistics)
        """

    def score(self, tables: Any, leaf: Any, y: Any) -> Any:
        """Score the prediction of every row's leaf; higher is better.  (n_leaves, n_values) → (n,)"""
        return self.score_predictions(self.predict(tables)[leaf], y)

    @abstractmethod
    def score_predictions(self, predicted: Any, y: Any) -> Any:
        """Score every row's prediction, arrays or tensors; higher is better.  (n,)"""

    @abstractmethod
    def loss(self, tables: Doubles, statistics: Doubles) -> float:
        """Sum the loss of leaf tables on validation rows, from the statistics of those that reach every leaf."""

    def strata(self, y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Strata for hold-out and cross-validation.  (n,)"""
        return y

    @abstractmethod
    def weight(self, statistics: Doubles) -> Doubles:
        """Total weight of the rows behind the statistics.  (…, n_statistics) → (…)"""

    @abstractmethod
    def impurity(self, statistics: Doubles) -> Doubles:
        """Compute the minimum of −Σ_n log p(y_n) of one leaf for the rows behind the statistics.  (…)"""

    @abstractmethod
    def is_mixed(self, statistics: Doubles) -> npt.NDArray[np.bool_]:
        """True where the rows behind the statistics differ in y, so that a split could separate them.  (…)"""

    @abstractmethod
    def tables(self, statistics: Doubles, prior: float = 0.0) -> Doubles:
        """Compute leaf tables of the deterministic tree.  (m, n_statistics) → (m, n_values)"""

    @abstractmethod
    def predict(self, tables: Any) -> Any:
        """Predict from tables, arrays or tensors: class indices, or means.  (m, n_values) → (m,) or (m, n_outputs)"""

    def restore_units(self, tables: Doubles, center: Doubles, unit: Doubles) -> Doubles:
        """Convert tables of a scaled y to its units.  (m, n_values)"""
        return tables

    @abstractmethod
    def sum_scores(self, tables: Doubles, statistics: Doubles) -> Doubles:
        """Sum ``score_predictions`` over the rows behind the statistics of every leaf.  (m,)"""

    def independent_outputs(self, tables: Doubles) -> Doubles:
        """Return the outputs that do not follow from each other, features of a later stage.  (m, n_values) → (m, k)"""
        return tables

    @abstractmethod
    def check(self, tables: Doubles) -> str | None:
        """Say what is wrong with the tables of a file ("not probabilities"), or return None."""


def gain(target: Target, left: Doubles, right: Doubles) -> Doubles:
    """Compute the impurity decrease of a split per unit of weight, from the statistics on its two sides.  (…)"""
    both = left + right
    return impurity_decrease(target.impurity(both), target.impurity(left), target.impurity(right), target.weight(both))


class TargetInput(NamedTuple):
    """y as passed by the user.

    ``classes`` are those of the columns where y are probabilities; ``source`` is the row that each row is a copy of.
    """

    y: Any
    is_multi_output: bool = False
    classes: npt.NDArray[Any] | None = None
    source: npt.NDArray[np.intp] | None = None


class EncodedTarget(NamedTuple):
    """Encoded y and weights of the training rows, the mask that selects these rows, and the encoding."""

    encoding: TargetEncoding
    y: npt.NDArray[Any]
    weight: Doubles
    kept: npt.NDArray[np.bool_]


class Reduction(Protocol):
    """Sums and maxima over the shards of all processes."""

    def total(self, parts: Sequence[Any], shape: tuple[int, ...] = ()) -> Doubles: ...

    def maximum(self, values: Doubles) -> Doubles: ...


class Rows(Protocol):
    """Rows with y and weights."""

    @property
    def y(self) -> npt.NDArray[Any]: ...

    @property
    def weight(self) -> Doubles: ...


class TargetStatistics(ABC):
    """Statistics of y that are updated batch by batch, in the first of several passes over the same rows."""

    n_rows: int
    """Rows that train, known once all batches have been added."""

    checksum: npt.NDArray[Any]
    """``rows_checksum`` of all rows of the first pass, known once all batches have been added."""

    @abstractmethod
    def add(self, y: npt.NDArray[Any], weight: Doubles, name: str) -> Doubles:
        """Add a batch, which errors call ``name``; return its weights as far as they are known."""

    @abstractmethod
    def learn(self, name: str) -> tuple[TargetEncoding, Doubles]:
        """Learn the encoding, and the target's statistics of all rows."""

    @abstractmethod
    def rows_checksum(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Compute an order-independent checksum by which later passes are compared with the first."""

    @abstractmethod
    def describe_checksum(self, checksum: npt.NDArray[Any]) -> str:
        """Describe a checksum in an error message."""


class TargetEncoding(ABC):
    """Encoding of y for training, learned from an array, from batches or by a process group."""

    classes: npt.NDArray[Any] | None = None

    @property
    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator that describe y."""

    @abstractmethod
    def target_of(self, y: npt.NDArray[Any]) -> Target:
        """Return the target of encoded y."""

    @classmethod
    @abstractmethod
    def of_fitted(cls, attributes: Mapping[str, Any], tree: Any) -> Self:
        """Restore the encoding of a fitted estimator from its attributes and one of its trees."""

    @classmethod
    @abstractmethod
    def read(cls, y: Any) -> TargetInput:
        """Check y as a user passes it, before it is made an array beside X."""

    @classmethod
    @abstractmethod
    def check(cls, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Check an array of y that is encoded later."""

    @classmethod
    @abstractmethod
    def learn(
        cls,
        given: TargetInput,
        y: npt.NDArray[Any],
        weight: Doubles,
        parameters: Mapping[str, Any],
        earlier: Self | None = None,
        *,
        is_part: bool = False,
    ) -> EncodedTarget:
        """Encode the y of a fit. Rows of weight zero are left out before anything is learned.

        ``earlier`` is the encoding of a fitted tree that is to be trained further; with ``is_part``, y may lack some of
        its classes.
        """

    @abstractmethod
    def encode_validation(self, y: Any, name: str | None = None, *, may_be_soft: bool = False) -> npt.NDArray[Any]:
        """Encode the y of validation rows, which errors call ``name``."""

    @classmethod
    @abstractmethod
    def statistics(cls, parameters: Mapping[str, Any]) -> TargetStatistics:
        """Begin to learn from batches."""

    @classmethod
    @abstractmethod
    def summarize(cls, y: npt.NDArray[Any]) -> Any:
        """Summarize the y of one process for ``merge``."""

    @classmethod
    @abstractmethod
    def merge(cls, summaries: Sequence[Any]) -> Self:
        """Merge the summaries of all processes into an encoding that knows neither weights nor scale yet."""

    @abstractmethod
    def as_numbers(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Convert y to numbers that can be sent to another process, for ``encode``."""

    @abstractmethod
    def reduce(self, parts: Sequence[Rows], reduction: Reduction, parameters: Mapping[str, Any]) -> Self:
        """Learn weights or scale from the rows of all processes; ``parts`` are the shards of this one, as numbers."""

    @abstractmethod
    def no_rows(self) -> npt.NDArray[Any]:
        """Return the encoded y of no rows."""

    @abstractmethod
    def encode(self, numbers: npt.NDArray[Any], weight: Doubles) -> tuple[npt.NDArray[Any], Doubles]:
        """Encode ``as_numbers`` of rows that the encoding was learned from; rows that do not train get weight 0."""

    def scale_predictions(self, predictions: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Convert predictions in units of y to those of encoded y."""
        return predictions

    def restore_units(self, tree: SomeTree) -> SomeTree:
        """Return the tree that predicts in the units of y."""
        return tree
