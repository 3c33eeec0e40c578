"""The interface of split functions f(x), and hyperplanes: oblique ones and thresholds on one feature."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

Factory = Callable[[tuple[int, ...]], nn.Module]
"""Makes a split module for an input shape."""


class AbstractSplits(ABC):
    """Several splits of one kind, their parameters stacked: ``parameters[name]`` is (n_splits, …).

    Objects are values: growing, selecting and freezing return new ones. Only an optimiser writes into
    ``parameters``, in place.
    """

    parameters: dict[str, Tensor]

    is_random = False
    """True if scores use torch's global generator in training, as dropout does."""

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
    def replace_parameters(self, parameters: dict[str, Tensor]) -> Self:
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

    def select_candidates(self, candidate: Tensor) -> AbstractSplits:
        """Select one of several candidates per node; most splits have only one.  (n_splits,)"""
        return self

    def detach(self) -> Self:
        """Return a copy without gradients."""
        return self.replace_parameters({name: value.detach().clone() for name, value in self.parameters.items()})

    def trainable(self) -> Self:
        """Return a copy whose parameters require gradients."""
        return self.replace_parameters(
            {name: value.detach().clone().requires_grad_() for name, value in self.parameters.items()}
        )

    def on(self, device: torch.device) -> Self:
        """Return the splits on another device."""
        return self.replace_parameters({name: value.detach().to(device) for name, value in self.parameters.items()})

    def select(self, splits: Tensor | Sequence[int]) -> Self:
        """Select splits by their indices."""
        index = torch.as_tensor(splits, dtype=torch.long, device=next(iter(self.parameters.values())).device)
        return self.replace_parameters({name: value.detach()[index] for name, value in self.parameters.items()})

    @staticmethod
    def concatenate(several: Sequence[AbstractSplits]) -> AbstractSplits:
        """Concatenate splits of one class."""
        names = several[0].parameters
        return several[0].replace_parameters(
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
    is_random: bool = False  # as in AbstractSplits


def random_directions(n: int, n_features: int, generator: torch.Generator) -> Tensor:
    """Draw directions uniformly from the unit sphere.  (n, n_features)"""
    return torch.nn.functional.normalize(torch.randn(n, n_features, generator=generator), dim=1)


MAX_SPLITS_FOR_PRODUCT = 8
"""Up to so many splits, one matrix product of all is faster than gathering the weights of every row."""


class ObliqueSplits(LinearSplits):
    """Hyperplanes: ``weight`` (n_splits, n_features) and ``bias`` (n_splits,)."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self.parameters = {"weight": weight, "bias": bias}

    @classmethod
    def initial(cls, centers: Tensor, generator: torch.Generator) -> ObliqueSplits:
        """Draw random directions, one through each center.  (n_splits, n_features)"""
        weight = random_directions(len(centers), centers.shape[1], generator).to(centers)
        return cls(weight, -(weight * centers).sum(dim=1))

    @classmethod
    def from_hyperplanes(cls, weight: Tensor, bias: Tensor) -> ObliqueSplits:
        """Invert ``hyperplanes``."""
        return cls(weight, bias)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.addmm(self.parameters["bias"], x, self.parameters["weight"].T)

    def at(self, x: Tensor, split: Tensor) -> Tensor:
        if self.n_splits == 1:
            return self(x)[:, 0]
        if self.n_splits <= MAX_SPLITS_FOR_PRODUCT:
            return self(x).gather(1, split[:, None])[:, 0]
        weight = self.parameters["weight"].index_select(0, split)
        return torch.linalg.vecdot(x, weight) + self.parameters["bias"].index_select(0, split)

    def squared_norms(self) -> Tensor:
        return self.parameters["weight"].square().sum(dim=1)

    def replace_parameters(self, parameters: dict[str, Tensor]) -> ObliqueSplits:
        return ObliqueSplits(parameters["weight"], parameters["bias"])

    def hyperplanes(self) -> tuple[Tensor, Tensor]:
        """β as (n_splits, n_features) and (n_splits,)."""
        return self.parameters["weight"], self.parameters["bias"]


class AxisSplits(LinearSplits):
    """``weight`` (n_splits,), ``bias`` (n_splits,) and the fixed ``axis`` (n_splits,) of n_features."""

    def __init__(self, weight: Tensor, bias: Tensor, axis: Tensor, n_features: int) -> None:
        # The axis is stacked with the parameters so that growing and selecting carry it along;
        # being an integer it takes no gradient.
        self.parameters = {"weight": weight, "bias": bias, "axis": axis}
        self.n_features = n_features

    @classmethod
    def initial(cls, centers: Tensor, generator: torch.Generator) -> AxisSplits:
        """Draw random axes with a random sign, each through its center.  (n_splits, n_features)"""
        n_splits, n_features = centers.shape
        axis = torch.randint(n_features, (n_splits,), generator=generator).to(centers.device)
        sign = torch.randint(2, (n_splits,), generator=generator).to(centers) * 2 - 1
        return cls(sign, -sign * centers.gather(1, axis[:, None])[:, 0], axis, n_features)

    @classmethod
    def from_hyperplanes(cls, weight: Tensor, bias: Tensor) -> AxisSplits:
        """Invert ``hyperplanes``; each row of ``weight`` has one nonzero entry."""
        if bool((torch.count_nonzero(weight, dim=1) > 1).any()):
            raise ValueError("an axis-aligned split must have one weight; got hyperplanes with several.")
        axis = weight.abs().argmax(dim=1)
        return cls(weight.gather(1, axis[:, None])[:, 0], bias, axis, weight.shape[1])

    def __call__(self, x: Tensor) -> Tensor:
        return x[:, self.parameters["axis"]] * self.parameters["weight"] + self.parameters["bias"]

    def at(self, x: Tensor, split: Tensor) -> Tensor:
        weight, bias, axis = (self.parameters[name][split] for name in ("weight", "bias", "axis"))
        return x.gather(1, axis[:, None])[:, 0] * weight + bias

    def replace_parameters(self, parameters: dict[str, Tensor]) -> AxisSplits:
        return AxisSplits(parameters["weight"], parameters["bias"], parameters["axis"], self.n_features)

    def trainable(self) -> AxisSplits:
        values = {name: value.detach().clone() for name, value in self.parameters.items()}
        for name in ("weight", "bias"):
            values[name].requires_grad_()
        return self.replace_parameters(values)

    def hyperplanes(self) -> tuple[Tensor, Tensor]:
        """β as (n_splits, n_features) and (n_splits,)."""
        weight = self.parameters["weight"]
        dense = weight.new_zeros(self.n_splits, self.n_features)
        return dense.scatter(1, self.parameters["axis"][:, None], weight[:, None]), self.parameters["bias"]


class AxisCandidates(LinearSplits):
    """All features of every node at once: ``weight`` and ``bias`` (n_nodes, n_features)."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self.parameters = {"weight": weight, "bias": bias}

    @classmethod
    def initial(cls, centers: Tensor, generator: torch.Generator) -> AxisCandidates:
        """Draw a random sign for every feature, with thresholds at the center.  (n_nodes, n_features)"""
        signs = torch.randint(2, centers.shape, generator=generator).to(centers) * 2 - 1
        return cls(signs, -signs * centers)

    def __call__(self, x: Tensor) -> Tensor:
        raise TypeError("candidates compete at their own node only; call .at(x, node), or .select_candidates(…) first.")

    def at(self, x: Tensor, split: Tensor) -> Tensor:
        return x * self.parameters["weight"][split] + self.parameters["bias"][split]

    def replace_parameters(self, parameters: dict[str, Tensor]) -> AxisCandidates:
        return AxisCandidates(parameters["weight"], parameters["bias"])

    def select_candidates(self, candidate: Tensor) -> AxisSplits:
        weight, bias = (
            self.parameters[name].detach().gather(1, candidate[:, None])[:, 0] for name in ("weight", "bias")
        )
        return AxisSplits(weight, bias, candidate, self.parameters["weight"].shape[1])


KINDS = {
    "oblique": SplitKind(ObliqueSplits.initial, ObliqueSplits.initial),
    "axis": SplitKind(AxisSplits.initial, AxisCandidates.initial, compete_by_feature=True),
}
LINEAR: dict[str, type[ObliqueSplits] | type[AxisSplits]] = {"oblique": ObliqueSplits, "axis": AxisSplits}


def resolve_kind(split: str | Factory, input_shape: tuple[int, ...]) -> SplitKind:
    """Resolve the parameter ``split``: a name of ``KINDS`` or of a module, or a factory of modules."""
    if isinstance(split, str) and split in KINDS:
        return KINDS[split]
    from crisptree.splits.module import make_module_kind  # which subclasses AbstractSplits

    return make_module_kind(split, input_shape)
