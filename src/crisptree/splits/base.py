"""Interface of split functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor


class AbstractSplits(ABC):
    """Several splits of one kind, their parameters stacked: ``parameters[name]`` is (n_splits, …).

    Objects are values: growing, selecting and freezing return new ones. Only an optimiser writes into
    ``parameters``, in place.
    """

    parameters: dict[str, Tensor]

    draws = False
    """Whether scores draw from torch's global generator in training, as dropout does."""

    @property
    def n_splits(self) -> int:
        return len(next(iter(self.parameters.values())))

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:
        """Compute the scores of all splits.  (n, n_features) → (n, n_splits)"""

    @abstractmethod
    def at(self, x: Tensor, split: Tensor) -> Tensor:
        """Score every row at its own split.  (n, n_features), (n,) → (n,); candidates: (n, n_candidates)"""

    def score(self, x: Tensor, split: int) -> Tensor:
        """Compute the scores of all rows at one split.  (n, n_features) → (n,)"""
        return self.at(x, torch.full((len(x),), split, device=x.device))

    @abstractmethod
    def replaced(self, parameters: dict[str, Tensor]) -> Self:
        """Return splits of the same class with other parameters."""

    @abstractmethod
    def weights(self) -> list[Tensor]:
        """Return the parameters that l2 penalises: all but the offsets."""

    def squared_norms(self) -> Tensor:
        """‖β‖² of every hyperplane, candidates one after the other.  (n_splits · n_candidates,)"""
        raise TypeError(f"{type(self).__name__} are no hyperplanes and have no norms; train without input noise.")

    @property
    def sparse_parameter(self) -> str | None:
        """The parameter of l1's proximal step; None if there is none."""
        return None

    def chosen(self, candidate: Tensor) -> AbstractSplits:
        """Select one of several candidates per node; most splits have only one.  (n_splits,)"""
        return self

    def detached(self) -> Self:
        """Return a copy without gradients."""
        return self.replaced({name: value.detach().clone() for name, value in self.parameters.items()})

    def trainable(self) -> Self:
        """Return a copy whose parameters require gradients."""
        return self.replaced({name: value.detach().clone().requires_grad_() for name, value in self.parameters.items()})

    def on(self, device: torch.device) -> Self:
        """Return the splits on another device."""
        return self.replaced({name: value.detach().to(device) for name, value in self.parameters.items()})

    def select(self, splits: Tensor | Sequence[int]) -> Self:
        """Select splits by their indices."""
        index = torch.as_tensor(splits, dtype=torch.long, device=next(iter(self.parameters.values())).device)
        return self.replaced({name: value.detach()[index] for name, value in self.parameters.items()})

    @staticmethod
    def concatenated(several: Sequence[AbstractSplits]) -> AbstractSplits:
        """Concatenate splits of one class."""
        names = several[0].parameters
        return several[0].replaced(
            {name: torch.cat([splits.parameters[name].detach() for splits in several]) for name in names}
        )


class LinearSplits(AbstractSplits):
    """Splits with one ``weight`` per feature and a ``bias``."""

    def squared_norms(self) -> Tensor:
        return self.parameters["weight"].square().reshape(-1)  # one feature each, unless overridden

    def weights(self) -> list[Tensor]:
        return [self.parameters["weight"]]

    @property
    def sparse_parameter(self) -> str:
        return "weight"


@dataclass(frozen=True)
class SplitKind:
    """Initialisation of a kind of splits.

    ``initial(centers, generator)`` makes one random split through each center, (n_splits, n_features), ``candidates``
    the same for those that compete while a stump trains.
    """

    initial: Callable[[Tensor, torch.Generator], AbstractSplits]
    candidates: Callable[[Tensor, torch.Generator], AbstractSplits]
    compete_by_feature: bool = False  # every feature is a candidate at every node
    draws: bool = False  # as in AbstractSplits


def random_directions(n: int, n_features: int, generator: torch.Generator) -> Tensor:
    """Draw directions uniformly from the unit sphere.  (n, n_features)"""
    return torch.nn.functional.normalize(torch.randn(n, n_features, generator=generator), dim=1)
