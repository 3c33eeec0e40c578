"""The contract of split features."""

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
    """Whether scores draw random numbers from torch's own generator while gradients are taken, as dropout does."""

    @property
    def n_splits(self) -> int:
        return len(next(iter(self.parameters.values())))

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:
        """Scores of all splits.  (n, n_features) → (n, n_splits)"""

    @abstractmethod
    def at(self, x: Tensor, split: Tensor) -> Tensor:
        """The score of every row at its own split.  (n, n_features), (n,) → (n,); candidates: (n, n_candidates)"""

    def score(self, x: Tensor, split: int) -> Tensor:
        """The score of all rows at one split.  (n, n_features) → (n,)"""
        return self.at(x, torch.full((len(x),), split, device=x.device))

    @abstractmethod
    def replaced(self, parameters: dict[str, Tensor]) -> Self:
        """The same kind of splits with other parameters."""

    @abstractmethod
    def weights(self) -> list[Tensor]:
        """The parameters that l2 acts on: all but the offsets."""

    def squared_norms(self) -> Tensor:
        """‖β‖² of every hyperplane, candidates one after the other.  (n_splits · n_candidates,)"""
        raise TypeError(f"{type(self).__name__} are no hyperplanes and have no norms; train without input noise.")

    @property
    def sparse_parameter(self) -> str | None:
        """The parameter that l1's proximal step thins out; None where there is none."""
        return None

    def chosen(self, candidate: Tensor) -> AbstractSplits:
        """Of several candidates per node the one with the given number; most splits have only one.  (n_splits,)"""
        return self

    def detached(self) -> Self:
        """A frozen copy."""
        return self.replaced({name: value.detach().clone() for name, value in self.parameters.items()})

    def trainable(self) -> Self:
        """A copy whose parameters ask for gradients."""
        return self.replaced({name: value.detach().clone().requires_grad_() for name, value in self.parameters.items()})

    def on(self, device: torch.device) -> Self:
        """The same splits on another device."""
        return self.replaced({name: value.detach().to(device) for name, value in self.parameters.items()})

    def select(self, splits: Tensor | Sequence[int]) -> Self:
        """Some of the splits, in the given order."""
        index = torch.as_tensor(splits, dtype=torch.long, device=next(iter(self.parameters.values())).device)
        return self.replaced({name: value.detach()[index] for name, value in self.parameters.items()})

    @staticmethod
    def concatenated(several: Sequence[AbstractSplits]) -> AbstractSplits:
        """Splits of one kind after each other."""
        names = several[0].parameters
        return several[0].replaced(
            {name: torch.cat([splits.parameters[name].detach() for splits in several]) for name in names}
        )


class LinearSplits(AbstractSplits):
    """Splits with one ``weight`` for every feature they ask, and a ``bias``."""

    def squared_norms(self) -> Tensor:
        return self.parameters["weight"].square().reshape(-1)  # most ask one feature each

    def weights(self) -> list[Tensor]:
        return [self.parameters["weight"]]

    @property
    def sparse_parameter(self) -> str:
        return "weight"


@dataclass(frozen=True)
class SplitKind:
    """How splits of one kind begin.

    Parameters
    ----------
    initial : callable
        ``initial(centers, generator)``: one random split through each center, (n_splits, n_features).
    candidates : callable
        The same for splits that compete while a stump trains.
    compete_by_feature : bool
        Whether every feature is a candidate of its own at a node.
    draws : bool
        Whether scores draw random numbers from torch's own generator while gradients are taken, as dropout does.
    """

    initial: Callable[[Tensor, torch.Generator], AbstractSplits]
    candidates: Callable[[Tensor, torch.Generator], AbstractSplits]
    compete_by_feature: bool = False
    draws: bool = False


def random_directions(n: int, n_features: int, generator: torch.Generator) -> Tensor:
    """Directions drawn evenly from the unit sphere.  (n, n_features)"""
    return torch.nn.functional.normalize(torch.randn(n, n_features, generator=generator), dim=1)
