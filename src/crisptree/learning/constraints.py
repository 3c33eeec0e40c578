"""What the weights of splits may be: of one sign, few, or not from two groups of features at once.

All of it comes down to two things that every backend puts right after each step: weights that are held at zero, and
signs. Which weights stay, where only some may, is decided once a split is trained; then the others train on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from crisptree.data.scaling import Scaling
from crisptree.splits import AbstractSplits, AxisCandidates, ObliqueSplits


@dataclass(frozen=True)
class Constraints:
    """Constraints by feature index.

    ``signs`` are features with +1 or -1 for the sign that their weights may have, ``max_features`` bounds the nonzero
    weights of a split, and of the groups in ``apart`` a split has weights for one at most.
    """

    signs: tuple[tuple[int, int], ...] = ()
    max_features: int | None = None
    apart: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Constraints:
        """Those of an estimator's parameters, whose features are numbers already."""
        return cls(
            tuple(sorted((parameters.get("sign_cst") or {}).items())),
            parameters.get("max_features_per_split"),
            tuple(map(tuple, parameters.get("interaction_cst") or ())),
        )

    def on(self, scaling: Scaling, device: torch.device) -> WeightConstraints | None:
        """The same as tensors, for rows that are scaled so; None where nothing is constrained."""
        if self == Constraints():
            return None
        signs = None
        if self.signs:
            signs = torch.zeros(len(scaling.factor), dtype=torch.int8)
            for feature, sign in self.signs:
                signs[feature] = sign
            signs = signs.to(device)
        spread = torch.as_tensor(scaling.spread * scaling.factor, device=device)
        return WeightConstraints(signs, spread, self.max_features, self.apart)


@dataclass(frozen=True, eq=False)
class WeightConstraints:
    """Constraints where a tree trains. ``spread`` is that of every scaled feature."""

    signs: Tensor | None
    spread: Tensor
    max_features: int | None
    apart: Sequence[Sequence[int]]

    @property
    def chooses(self) -> bool:
        """Whether some weights have to go once a split is trained."""
        return self.max_features is not None or bool(self.apart)

    def zeros(self, weight: Tensor) -> Tensor:
        """Which weights go: all but the group of most influence, then all but the largest.  (n_splits, n_features)

        The influence of a feature is |w_j| · spread_j, that of a group the root of the sum of their squares.
        """
        influence = weight.detach().abs() * self.spread.to(weight)
        if self.apart:
            groups = [torch.as_tensor(list(group), device=weight.device) for group in self.apart]
            strength = torch.stack([influence[:, group].square().sum(dim=1) for group in groups])
            winner = strength.argmax(dim=0)
            for number, group in enumerate(groups):
                lost = torch.nonzero(winner != number)[:, 0]
                influence[lost[:, None], group] = 0.0
        gone = influence == 0
        if self.max_features is not None and self.max_features < weight.shape[1]:
            largest = torch.argsort(influence, dim=1, descending=True, stable=True)[:, : self.max_features]
            gone |= torch.ones_like(gone).scatter(1, largest, False)
        return gone

    def thinned(self, splits: AbstractSplits, centers: Tensor) -> tuple[ObliqueSplits, Tensor]:
        """The splits without the weights that go, and which those are.

        The score of each split's center stays as it was: what goes is replaced by its mean.
        """
        assert isinstance(splits, ObliqueSplits)
        weight, bias = (part.detach() for part in splits.hyperplanes())
        zeros = self.zeros(weight)
        return ObliqueSplits(weight.masked_fill(zeros, 0.0), bias + (weight * zeros * centers).sum(dim=1)), zeros


def with_drawn_features(
    splits: AbstractSplits, centers: Tensor, n_drawn: int | None, generator: torch.Generator
) -> tuple[AbstractSplits, Tensor | None]:
    """Splits that each may ask a few features only, drawn for it, and the weights that stay zero for that.

    Of thresholds that compete, those on other features stay zero: they part no rows, so that none of them wins.
    """
    if n_drawn is None or n_drawn >= centers.shape[1] or not isinstance(splits, ObliqueSplits | AxisCandidates):
        return splits, None
    weight = splits.parameters["weight"].detach()
    keys = torch.rand(weight.shape, generator=generator)
    drawn = keys.argsort(dim=1, stable=True)[:, :n_drawn]
    zeros = torch.ones(weight.shape, dtype=torch.bool).scatter_(1, drawn, False).to(weight.device)
    weight = weight.masked_fill(zeros, 0.0)
    if isinstance(splits, AxisCandidates):
        return AxisCandidates(weight, -weight * centers), zeros
    weight = torch.nn.functional.normalize(weight, dim=1)
    return ObliqueSplits(weight, -(weight * centers).sum(dim=1)), zeros


def begun(
    splits: AbstractSplits, centers: Tensor, constraints: WeightConstraints | None, *, is_sparse: bool
) -> AbstractSplits:
    """Random splits as they may begin: with the signs they must have, each still through its center.

    Where rows are sparse, a split begins without weights for features that none of its rows have: nothing would move
    them, and rows that come later would be sent by chance.
    """
    signs = None if constraints is None else constraints.signs
    if not isinstance(splits, ObliqueSplits) or not (is_sparse or signs is not None):
        return splits
    weight, _ = splits.hyperplanes()
    if is_sparse:
        weight = torch.nn.functional.normalize(weight * (centers != 0), dim=1)
    if signs is not None:
        weight = torch.where(signs != 0, weight.abs() * signs.to(weight), weight)
    return ObliqueSplits(weight, -(weight * centers).sum(dim=1))
