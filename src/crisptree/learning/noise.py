"""The noise on the inputs of a training: how wide it is, and which pixels it moves together."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from crisptree.equations.noise import correlated, damped_steepness, line_correlation
from crisptree.learning.plan import Plan
from crisptree.splits import AbstractSplits, ObliqueSplits


@dataclass(frozen=True, eq=False)
class Noise:
    """Normal noise of one width on every scaled feature.

    Parameters
    ----------
    width : float
        σ, 0 for none.
    lines : (Tensor, Tensor) or None
        The correlations of pixels of one column, (h, h), and of one line, (w, w); None where features are independent.
    varying : Tensor of shape (n_features,) or None
        1 for features that vary, 0 for those that have no noise either: else their weights, which do nothing, would
        learn to cancel that of their neighbours. None where all vary.
    """

    width: float
    lines: tuple[Tensor, Tensor] | None = None
    varying: Tensor | None = None

    @classmethod
    def of(cls, plan: Plan, varying: Tensor | None, like: Tensor) -> Noise:
        """The noise of a plan, on the device and in the precision of ``like``."""
        if not plan.is_correlated or plan.image_shape is None:
            return cls(plan.input_noise)
        down, across = (line_correlation(side, plan.noise_correlation).to(like) for side in plan.image_shape[:2])
        return cls(plan.input_noise, (down, across), None if varying is None else varying.to(like))

    def correlated(self, weight: Tensor) -> Tensor:
        """S β, the weights themselves under independent noise.  (n_splits, n_features) → the same"""
        if self.lines is None:
            return weight
        noisy = weight if self.varying is None else weight * self.varying
        smooth = correlated(noisy, *self.lines)
        return smooth if self.varying is None else smooth * self.varying

    def squared_norms(self, splits: AbstractSplits) -> Tensor:
        """βᵀSβ of every split.  → (n_splits,)"""
        if self.lines is None or not isinstance(splits, ObliqueSplits):
            return splits.squared_norms()
        weight = splits.parameters["weight"]
        # S is a correlation but for its cut-off tails, which may leave a zero slightly below it.
        return torch.linalg.vecdot(weight, self.correlated(weight)).clamp_min(0)

    def damped(self, steepness: float | Tensor, splits: AbstractSplits) -> Tensor:
        """The steepness of every split.  → (n_splits,)"""
        return damped_steepness(steepness, self.width, self.squared_norms(splits))
