"""The training rows, seen a batch at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from crisptree.learning.batches import Groups

ROWS_AT_ONCE = 8192
"""Passes over all rows take this many at a time."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Scaled rows, class numbers and weights on the training device.

    ``batch`` is the only access to rows, so that arrays, memory maps and windows of images can stand behind it.

    Parameters
    ----------
    x : Tensor of shape (n, n_features)
        Scaled features.
    y : Tensor of shape (n,), int64
        Class numbers 0 … n_classes − 1.
    weight : Tensor of shape (n,)
        Positive sample weights.
    n_classes : int
        How many classes there are.
    """

    x: Tensor
    y: Tensor
    weight: Tensor
    n_classes: int

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_features(self) -> int:
        return self.x.shape[1]

    @property
    def device(self) -> torch.device:
        return self.y.device

    def batch(self, rows: Tensor) -> Tensor:
        """The features of some rows.  (b,) → (b, n_features)"""
        return self.x.index_select(0, rows)

    def pieces(self, rows: Tensor | None = None) -> tuple[Tensor, ...]:
        """Row numbers a few thousand at a time: all of them, or those given."""
        everything = torch.arange(len(self), device=self.device) if rows is None else rows
        return everything.split(ROWS_AT_ONCE)

    def mean(self) -> Tensor:
        """The weighted mean of all rows.  (n_features,)"""
        rows = torch.arange(len(self), device=self.device)
        return self.group_means(Groups(rows, torch.tensor([len(self)], device=self.device)))[0]

    def group_means(self, groups: Groups) -> Tensor:
        """The weighted mean of every group's rows.  (n_groups, n_features)"""
        n_groups = len(groups.sizes)
        sums = torch.zeros(n_groups, self.n_features, dtype=torch.float64, device=self.device)
        totals = torch.zeros(n_groups, dtype=torch.float64, device=self.device)
        for rows, group in zip(self.pieces(groups.rows), self.pieces(groups.group), strict=True):
            weight = self.weight[rows].double()
            sums.index_add_(0, group, self.batch(rows) * weight[:, None])
            totals.index_add_(0, group, weight)
        return (sums / totals[:, None]).to(self.weight.dtype)

    def group_mean_weight(self, groups: Groups) -> Tensor:
        """The mean weight of every group's rows.  (n_groups,)"""
        totals = torch.zeros(len(groups.sizes), dtype=torch.float64, device=self.device)
        totals.index_add_(0, groups.group, self.weight[groups.rows].double())
        return (totals / groups.sizes).to(self.weight.dtype)

    def class_weights(self) -> Tensor:
        """The total weight of every class.  (n_classes,)"""
        totals = torch.zeros(self.n_classes, dtype=torch.float64, device=self.device)
        return totals.index_add_(0, self.y, self.weight.double())
