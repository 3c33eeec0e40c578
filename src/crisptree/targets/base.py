"""The contract between learning and what y is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.equations.gain import impurity_decrease

if TYPE_CHECKING:
    from torch import Generator, Tensor

Doubles = npt.NDArray[np.float64]


class EStep(NamedTuple):
    """What some rows say under the tables as they are.

    ``responsibilities`` are (n, n_leaves), ``statistics`` those of all rows by their weight (n_leaves, n_places ·
    n_statistics), ``log_likelihoods`` log p(y_n∣x_n) (n,).
    """

    responsibilities: Tensor
    statistics: Tensor
    log_likelihoods: Tensor


@dataclass(frozen=True)
class Target(ABC):
    """What the numbers of a leaf mean.

    A leaf holds ``n_values`` numbers, its table. Rows reach it with *evidence* log p(y ∣ leaf), and leave *statistics*
    behind: ``n_statistics`` numbers that add up over rows, from which the next table follows. Where many stumps train
    at once, every row has a *place*, the stump it belongs to, and tables and statistics of all places stand side by
    side: (n_leaves, n_places · n_values). Without places there is one.

    Parameters
    ----------
    n_values : int
        How many numbers a leaf's table has.
    """

    name: ClassVar[str]
    starts_at_node: ClassVar[bool] = False
    """Whether the first tables of a stump depend on the rows that it is to part; see ``stump_tables``."""

    has_axis_splits: ClassVar[bool] = True
    """Whether thresholds on single features can be found for it."""

    n_values: int

    @property
    def hard(self) -> Target:
        """The target of hard labels, by which model selection and deterministic trees go."""
        return self

    def conform(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The y of validation rows in the form that this target has in training."""
        return y

    @property
    def n_statistics(self) -> int:
        """How many numbers of a leaf add up over rows."""
        return self.n_values

    @property
    def fewest_leaves(self) -> int:
        """How many leaves a tree needs at least to tell apart what there is."""
        return self.n_values

    @abstractmethod
    def evidence(self, tables: Tensor, y: Tensor, place: Tensor | None = None) -> Tensor:
        """log p(y_n ∣ leaf).  (n_leaves, n_places · n_values), (n,), (n,) → (n, n_leaves)"""

    @abstractmethod
    def statistics(self, responsibilities: Tensor, y: Tensor, place: Tensor | None = None, n_places: int = 1) -> Tensor:
        """Σ_n h_{n,ℓ} s(y_n), place by place.  (n, n_leaves) → (n_leaves, n_places · n_statistics)"""

    def e_step(
        self,
        log_paths: Tensor,
        tables: Tensor,
        y: Tensor,
        weight: Tensor,
        place: Tensor | None = None,
        n_places: int = 1,
    ) -> EStep:
        """Responsibilities, statistics and log-likelihoods of weighted rows, from log μ_ℓ(x_n)  (n, n_leaves).

        For a y whose parts may come from different leaves there is more to it than evidence; see ``SoftClasses``.
        """
        from crisptree.equations.em import responsibilities
        from crisptree.equations.routing import log_likelihoods

        evidence = self.evidence(tables, y, place)
        h = responsibilities(log_paths, evidence)
        statistics = self.statistics(h * weight[:, None], y, place, n_places)
        return EStep(h, statistics, log_likelihoods(log_paths, evidence))

    @abstractmethod
    def update(self, statistics: Tensor, previous: Tensor, prior: float) -> Tensor:
        """The M-step of leaves: the likeliest tables; a leaf that nothing reached keeps its own.  (m, n_statistics)"""

    def drawn_together(self, tables: Tensor, statistics: Tensor) -> Tensor:
        """Tables after an update, made more alike among the leaves of one place where that helps training.

        (n_leaves, n_places, n_values), (n_leaves, n_places, n_statistics) → the first
        """
        return tables

    @abstractmethod
    def random_tables(self, n: int, generator: Generator) -> Tensor:
        """Tables that tell leaves apart before anything is known.  (n, n_values)"""

    def stump_tables(self, tables: Tensor, statistics: Tensor) -> Tensor:
        """Random tables of the two leaves of m stumps, brought to where the rows of each are.

        (2, m, n_values), (m, n_statistics) → (2, m, n_values)
        """
        return tables

    @abstractmethod
    def tally(self, y: Any, weight: Any, place: Any, n_places: int) -> Any:
        """Σ w_n s(y_n) of the rows at every place, in the type of the weights: arrays or tensors.

        (b,), (b,), (b,) → (n_places, n_statistics); with weights (b, c) → (n_places, c, n_statistics)
        """

    def score(self, tables: Any, leaf: Any, y: Any) -> Any:
        """How good the answer of its leaf is for every row, the larger the better.  (n_leaves, n_values) → (n,)"""
        return self.agreement(self.answers(tables)[leaf], y)

    @abstractmethod
    def agreement(self, predicted: Any, y: Any) -> Any:
        """How good predictions are for every row, the larger the better: arrays or tensors.  (n,)"""

    @abstractmethod
    def loss(self, tables: Doubles, statistics: Doubles) -> float:
        """What tables cost rows that did not make them, from the statistics of those that reach every leaf."""

    def strata(self, y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Groups of rows of which a part that is held out has its share: for classes the classes.  (n,)"""
        return y

    @abstractmethod
    def weight(self, statistics: Doubles) -> Doubles:
        """The weight of the rows behind the statistics.  (…, n_statistics) → (…)"""

    @abstractmethod
    def impurity(self, statistics: Doubles) -> Doubles:
        """The least −Σ_n log p(y_n) that one leaf can have for the rows behind the statistics.  (…)"""

    @abstractmethod
    def is_mixed(self, statistics: Doubles) -> npt.NDArray[np.bool_]:
        """Whether the rows behind the statistics differ, so that a split could part them.  (…)"""

    @abstractmethod
    def tables(self, statistics: Doubles, prior: float = 0.0) -> Doubles:
        """Tables of the deterministic tree, from the rows that reach the leaves.  (m, n_statistics) → (m, n_values)"""

    @abstractmethod
    def answers(self, tables: Any) -> Any:
        """What each table predicts, arrays or tensors: for classes the number of the class.  (m, n_values) → (m,)"""

    def in_units(self, tables: Doubles, center: Doubles, unit: Doubles) -> Doubles:
        """Tables of a y that was scaled before training, in the units it came in.  (m, n_values)"""
        return tables

    @abstractmethod
    def agreements(self, tables: Doubles, statistics: Doubles) -> Doubles:
        """``agreement`` of what tables predict, added up over the rows that statistics are of.  → (m,)"""

    def told(self, tables: Doubles) -> Doubles:
        """What another tree is told of rows beside their features: numbers that do not follow from each other.

        (m, n_values) → (m, n_told)
        """
        return tables

    @abstractmethod
    def check(self, tables: Doubles) -> str | None:
        """What some numbers are instead of tables ("not probabilities"), or None; files are not trusted."""


def gain(target: Target, left: Doubles, right: Doubles) -> Doubles:
    """What a split gains for each unit of weight, from the statistics on its two sides.  Two (…, n) → (…)"""
    both = left + right
    return impurity_decrease(target.impurity(both), target.impurity(left), target.impurity(right), target.weight(both))
