"""Axis-aligned splits f(x) = w x_a + b: a threshold on one feature.

While a stump trains, every feature is a candidate with a logistic stump of its own; the best gain wins, and from
then on the axis is fixed while weight and threshold still move.
"""

from __future__ import annotations

import torch
from torch import Tensor

from crisptree.splits.base import LinearSplits


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

    def replaced(self, parameters: dict[str, Tensor]) -> AxisSplits:
        return AxisSplits(parameters["weight"], parameters["bias"], parameters["axis"], self.n_features)

    def trainable(self) -> AxisSplits:
        values = {name: value.detach().clone() for name, value in self.parameters.items()}
        for name in ("weight", "bias"):
            values[name].requires_grad_()
        return self.replaced(values)

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
        raise TypeError("candidates compete at their own node only; call .at(x, node), or .chosen(…) first.")

    def at(self, x: Tensor, split: Tensor) -> Tensor:
        return x * self.parameters["weight"][split] + self.parameters["bias"][split]

    def replaced(self, parameters: dict[str, Tensor]) -> AxisCandidates:
        return AxisCandidates(parameters["weight"], parameters["bias"])

    def chosen(self, candidate: Tensor) -> AxisSplits:
        weight, bias = (
            self.parameters[name].detach().gather(1, candidate[:, None])[:, 0] for name in ("weight", "bias")
        )
        return AxisSplits(weight, bias, candidate, self.parameters["weight"].shape[1])
