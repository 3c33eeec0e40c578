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

    n_values: int

    @property
    def n_statistics(self) -> int:
        """How many numbers of a leaf add up over rows."""
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

    @abstractmethod
    def random_tables(self, n: int, generator: Generator) -> Tensor:
        """Tables that tell leaves apart before anything is known.  (n, n_values)"""

    @abstractmethod
    def tally(self, y: Any, weight: Any, place: Any, n_places: int) -> Any:
        """Σ w_n s(y_n) of the rows at every place, in the type of the weights: arrays or tensors.

        (b,), (b,), (b,) → (n_places, n_statistics); with weights (b, c) → (n_places, c, n_statistics)
        """

    @abstractmethod
    def score(self, tables: Tensor, leaf: Tensor, y: Tensor) -> Tensor:
        """How good the answer of its leaf is for every row, the larger the better.  (n_leaves, n_values) → (n,)"""

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
    def answers(self, tables: Doubles) -> npt.NDArray[Any]:
        """What each table predicts: for classes the number of the class.  (m, n_values) → (m,)"""

    @abstractmethod
    def check(self, tables: Doubles) -> str | None:
        """What some numbers are instead of tables ("not probabilities"), or None; files are not trusted."""


def gain(target: Target, left: Doubles, right: Doubles) -> Doubles:
    """What a split gains for each unit of weight, from the statistics on its two sides.  Two (…, n) → (…)"""
    both = left + right
    return impurity_decrease(target.impurity(both), target.impurity(left), target.impurity(right), target.weight(both))
