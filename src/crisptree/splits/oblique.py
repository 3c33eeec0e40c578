"""Oblique splits f(x) = (x, 1)·β: hyperplanes of any direction."""

from __future__ import annotations

import torch
from torch import Tensor

from crisptree.splits.base import LinearSplits, random_directions

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

    def replaced(self, parameters: dict[str, Tensor]) -> ObliqueSplits:
        return ObliqueSplits(parameters["weight"], parameters["bias"])

    def hyperplanes(self) -> tuple[Tensor, Tensor]:
        """β as (n_splits, n_features) and (n_splits,)."""
        return self.parameters["weight"], self.parameters["bias"]
