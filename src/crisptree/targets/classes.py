"""Classes: a leaf is a distribution π_ℓ over them, as in the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from crisptree.equations.gain import entropy
from crisptree.targets.base import Target

if TYPE_CHECKING:
    from torch import Generator, Tensor

Doubles = npt.NDArray[np.float64]

SMALLEST_PROBABILITY = 1e-8
"""No entry of a leaf table falls below this: a class of probability zero in every leaf would leave its samples
without any responsible leaf (0/0), and a leaf could never take a class back."""

SMALLEST_JUDGED = 1e-15
"""A class of probability zero counts as this in a log loss that must stay finite."""


@dataclass(frozen=True)
class Classes(Target):
    """y_n is the number of a class; statistics are counts of classes.

    Examples
    --------
    >>> import torch
    >>> two = Classes(2)
    >>> h, y = torch.tensor([[0.25, 0.75], [1.0, 0.0]]), torch.tensor([1, 0])
    >>> two.statistics(h, y).tolist()
    [[1.0, 0.25], [0.0, 0.75]]
    """

    name: ClassVar[str] = "classes"

    def conform(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The most probable class where y are probabilities."""
        return y if y.ndim == 1 else y.argmax(axis=1)

    def evidence(self, tables: Tensor, y: Tensor, place: Tensor | None = None) -> Tensor:
        """log π_ℓ(y_n).  (n, n_leaves)"""
        return tables.log().T[self._column(y, place)]

    def statistics(self, responsibilities: Tensor, y: Tensor, place: Tensor | None = None, n_places: int = 1) -> Tensor:
        """Σ_n 1(y_n = k) h_{n,ℓ}, where h may carry sample weights.  (n_leaves, n_places · n_classes)"""
        counts = responsibilities.new_zeros(n_places * self.n_values, responsibilities.shape[1])
        return counts.index_add_(0, self._column(y, place), responsibilities).T

    def _column(self, y: Any, place: Any) -> Any:
        return y if place is None else place * self.n_values + y

    def update(self, statistics: Tensor, previous: Tensor, prior: float = 0.0) -> Tensor:
        """π_ℓ(k) = (c_{ℓ,k} + α) / Σ_k' (c_{ℓ,k'} + α) with a Dirichlet prior α; no exact zeros."""
        raised = statistics + prior
        occupied = statistics.sum(dim=1, keepdim=True) > 0
        tables = (raised / raised.sum(dim=1, keepdim=True)).where(occupied, previous).clamp_min(SMALLEST_PROBABILITY)
        return tables / tables.sum(dim=1, keepdim=True)

    def random_tables(self, n: int, generator: Generator) -> Tensor:
        """Uniformly random entries, normalised."""
        import torch

        raw = 1 - torch.rand(n, self.n_values, generator=generator)  # in (0, 1]: no table starts with a zero
        return raw / raw.sum(dim=1, keepdim=True)

    def tally(self, y: Any, weight: Any, place: Any, n_places: int) -> Any:
        """Counts of classes."""
        column = self._column(y, place)
        if isinstance(weight, np.ndarray):
            return np.bincount(column, weight, n_places * self.n_values).reshape(n_places, self.n_values)
        if weight.dim() == 2 and weight.shape[1] > 1:
            counts = weight.new_zeros(n_places * self.n_values, weight.shape[1]).index_add_(0, column, weight)
            return counts.reshape(n_places, self.n_values, -1).transpose(1, 2)
        # torch adds numbers many times quicker than rows of one number
        counts = weight.new_zeros(n_places * self.n_values).index_add_(0, column, weight.reshape(-1))
        return counts.reshape(n_places, *[1] * (weight.dim() - 1), self.n_values)

    def agreement(self, predicted: Any, y: Any) -> Any:
        """1 where the class is the row's, 0 elsewhere: the mean is the accuracy."""
        return predicted == y

    def loss(self, tables: Doubles, statistics: Doubles) -> float:
        """The log loss."""
        return float(-(statistics * np.log(np.maximum(tables, SMALLEST_JUDGED))).sum())

    def weight(self, statistics: Doubles) -> Doubles:
        return np.asarray(statistics.sum(axis=-1))

    def impurity(self, statistics: Doubles) -> Doubles:
        """N · H: the rows' number times the entropy of their classes."""
        return self.weight(statistics) * entropy(statistics)

    def is_mixed(self, statistics: Doubles) -> npt.NDArray[np.bool_]:
        return np.asarray((statistics > 0).sum(axis=-1) > 1)

    def tables(self, statistics: Doubles, prior: float = 0.0) -> Doubles:
        """Class frequencies with a Dirichlet prior; all zeros where there is nothing at all."""
        raised = statistics + prior
        return raised / np.maximum(raised.sum(axis=1, keepdims=True), np.finfo(float).tiny)

    def answers(self, tables: Any) -> Any:
        """The number of the most frequent class."""
        return tables.argmax(1)

    def agreements(self, tables: Doubles, statistics: Doubles) -> Doubles:
        """The rows of the most frequent class."""
        return statistics[np.arange(len(tables)), self.answers(tables)]

    def told(self, tables: Doubles) -> Doubles:
        """The probabilities of all classes but the first."""
        return tables[:, 1:]

    def check(self, tables: Doubles) -> str | None:
        if (tables < 0).any() or not np.allclose(tables.sum(axis=1), 1, atol=1e-4):
            return "not probabilities"
        return None
