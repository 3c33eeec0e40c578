"""The training rows, seen a batch at a time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crisptree.learning.batches import Groups
from crisptree.native import training

ROWS_AT_ONCE = 8192
"""Passes over all rows take this many at a time."""

ROWS_IN_PLACE = 2**18
"""Passes that need no copy of the rows take this many."""

GROUPS_PER_PRODUCT = 32
"""Sums over groups are taken about so many groups at a time: a product with more would mostly multiply zeros."""


@dataclass(frozen=True, eq=False)
class WindowRows:
    """Rows that are windows of images: feature j of row r is ``data[base[r] + offset[j]]``.

    Parameters
    ----------
    data : Tensor of shape (n_values,)
        Scaled images after each other.
    base : Tensor of shape (n,), int64
        Where every row's pixel is.
    offset : Tensor of shape (n_features,), int64
        How far from it every feature is.
    """

    data: Tensor
    base: Tensor
    offset: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.base), len(self.offset)

    @property
    def dtype(self) -> torch.dtype:
        return self.data.dtype

    @property
    def device(self) -> torch.device:
        return self.data.device

    def is_contiguous(self) -> bool:
        """Whether the kernels can read the images where they lie."""
        return self.data.is_contiguous()

    def index_select(self, dim: int, rows: Tensor) -> Tensor:
        """Some rows as a tensor: the definition.  (b,) → (b, n_features)"""
        assert dim == 0
        return self.data[self.base[rows][:, None] + self.offset]


@dataclass(frozen=True, eq=False)
class Samples:
    """Scaled rows, class numbers and weights on the training device.

    Torch's steps and every pass over the rows ask ``batch`` for them; the fused steps read an array where it lies, and
    on the CPU windows too.

    Parameters
    ----------
    x : Tensor of shape (n, n_features), or WindowRows
        Scaled features, as an array or as windows of images.
    y : Tensor of shape (n,), int64
        Class numbers 0 … n_classes − 1.
    weight : Tensor of shape (n,)
        Positive sample weights.
    n_classes : int
        How many classes there are.
    """

    x: Tensor | WindowRows
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
        if self.native_rows is None or isinstance(self.x, Tensor):
            return self.x.index_select(0, rows)
        copies = torch.empty(len(rows), self.n_features, dtype=self.x.dtype)
        self.native_rows.gather(rows.numpy(), copies.numpy(), torch.get_num_threads())
        return copies

    @cached_property
    def native_rows(self) -> Any:
        """The rows as the native kernels see them; None where they cannot read them."""
        kinds = {torch.float32: "SingleRows", torch.float64: "DoubleRows"}
        if training is None or self.device.type != "cpu" or self.x.dtype not in kinds or not self.x.is_contiguous():
            return None
        arrays = (self.x,) if isinstance(self.x, Tensor) else (self.x.data, self.x.base, self.x.offset)
        return getattr(training, kinds[self.x.dtype])(*(array.detach().numpy() for array in arrays))

    def pieces(self, rows: Tensor | None = None, *, in_place: bool = False) -> tuple[Tensor, ...]:
        """Row numbers a few thousand at a time: all of them, or those given; more where the rows stay in place."""
        everything = torch.arange(len(self), device=self.device) if rows is None else rows
        return everything.split(ROWS_IN_PLACE if in_place else ROWS_AT_ONCE)

    def mean(self) -> Tensor:
        """The weighted mean of all rows.  (n_features,)"""
        rows = torch.arange(len(self), device=self.device)
        return self.group_means(Groups(rows, torch.tensor([len(self)], device=self.device)))[0]

    def group_means(self, groups: Groups) -> Tensor:
        """The weighted mean of every group's rows.  (n_groups, n_features)"""
        sums = torch.zeros(len(groups.sizes), self.n_features, dtype=torch.float64, device=self.device)
        ends = np.cumsum(groups.host_sizes)
        at_once = int(np.clip(GROUPS_PER_PRODUCT * np.median(groups.host_sizes), 64, ROWS_AT_ONCE))
        for start in range(0, len(groups.rows), at_once):
            # A few rows belong to a few groups, which follow each other: their sums are one small product.
            rows = groups.rows[start : start + at_once]
            first, last = np.searchsorted(ends, (start, start + len(rows) - 1), side="right")
            here = torch.arange(first, last + 1, device=self.device)
            member = groups.group[start : start + len(rows)] == here[:, None]
            sums[first : last + 1] += (member * self.weight[rows]) @ self.batch(rows)
        return (sums / (self.group_mean_weight(groups) * groups.sizes)[:, None]).to(self.weight.dtype)

    def group_mean_weight(self, groups: Groups) -> Tensor:
        """The mean weight of every group's rows.  (n_groups,)"""
        sizes = groups.host_sizes
        totals = np.add.reduceat(self.weight[groups.rows].cpu().double().numpy(), np.cumsum(sizes) - sizes)
        return torch.from_numpy(totals / sizes).to(self.device)

    def class_weights(self) -> Tensor:
        """The total weight of every class.  (n_classes,)"""
        totals = np.bincount(self.y.cpu(), weights=self.weight.cpu().double(), minlength=self.n_classes)
        return torch.from_numpy(totals).to(self.device)
