"""Soft classes: a row has a probability of every class, and stands for one row of each class of that weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from crisptree.targets.base import EStep
from crisptree.targets.classes import Classes

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class SoftClasses(Classes):
    """y_n are the probabilities P_{n,k} of all classes; tables and statistics are those of ``Classes``.

    Only training knows it: the leaves of a tree are distributions over classes either way, so trees and files call
    their target "classes".

    Examples
    --------
    >>> import torch
    >>> paths, P = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.25, 0.75]])
    >>> tables = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> SoftClasses(2).e_step(paths.log(), tables, P, torch.ones(1)).responsibilities.tolist()
    [[0.25, 0.75]]
    """

    has_axis_splits: ClassVar[bool] = False

    @property
    def hard(self) -> Classes:
        return Classes(self.n_values)

    def conform(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Certain probabilities where y are labels."""
        return y if y.ndim == 2 else np.asarray(np.eye(self.n_values)[y])

    def evidence(self, tables: Tensor, y: Tensor, place: Tensor | None = None) -> Tensor:
        """Σ_k P_{n,k} log π_ℓ(k), as if the K rows had to share a leaf; the E-step lets each have its own."""
        leaves = self._leaves(tables, place).log()
        return (y.to(leaves)[:, None] @ leaves.mT)[:, 0]

    def e_step(
        self,
        log_paths: Tensor,
        tables: Tensor,
        y: Tensor,
        weight: Tensor,
        place: Tensor | None = None,
        n_places: int = 1,
    ) -> EStep:
        """That of K rows, summed over them; see ``equations.soft_labels``."""
        from crisptree.equations import soft_labels

        leaves, labels, paths = self._leaves(tables, place), y.to(log_paths), log_paths.exp()
        probabilities = soft_labels.class_probabilities(paths, leaves)
        ratios = soft_labels.label_ratios(labels, probabilities)
        visits = self.statistics(paths * weight[:, None], ratios, place, n_places)
        return EStep(
            soft_labels.responsibilities(paths, leaves, ratios),
            soft_labels.leaf_counts(tables, visits),
            soft_labels.log_likelihoods(probabilities, labels),
        )

    def _leaves(self, tables: Tensor, place: Tensor | None) -> Tensor:
        """(n_leaves, n_classes), or those of every row's own place: (n, n_leaves, n_classes)"""
        if place is None:
            return tables
        return tables.reshape(len(tables), -1, self.n_values).transpose(0, 1)[place]

    def statistics(self, responsibilities: Tensor, y: Tensor, place: Tensor | None = None, n_places: int = 1) -> Tensor:
        """Σ_n h_{n,ℓ} P_{n,k}, where all classes of a row share its h.  (n_leaves, n_places · n_classes)"""
        if place is None:
            return responsibilities.T @ y.to(responsibilities)
        counts = self.tally(y, responsibilities, place, n_places)
        return counts.transpose(0, 1).reshape(responsibilities.shape[1], -1)

    def tally(self, y: Any, weight: Any, place: Any, n_places: int) -> Any:
        """Sums of the probabilities."""
        if isinstance(weight, np.ndarray):
            return np.stack([np.bincount(place, weight * column, n_places) for column in y.T], axis=1)
        each = weight[..., None] * y.to(weight).reshape(len(y), *[1] * (weight.dim() - 1), self.n_values)
        return weight.new_zeros(n_places, *each.shape[1:]).index_add_(0, place, each)

    def strata(self, y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """The likeliest class."""
        return y.argmax(axis=1)

    def score(self, tables: Tensor, leaf: Tensor, y: Tensor) -> Tensor:
        """The row's probability of the most frequent class of the leaf: the mean is the expected accuracy."""
        return y.gather(1, tables.argmax(dim=1)[leaf][:, None])[:, 0]
