"""Stumps of several trees in one batch, such as those of a level of all trees of a forest.

A stump's steps depend on its own rows alone, so a tree is what it would be without the others, on the CPU bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from crisptree.data.rows import ArrayRows, SelectedRows
from crisptree.learning.engines.base import Groups, Orders, RowOrders
from crisptree.learning.loop import EpochEnd, train
from crisptree.learning.options import Plan
from crisptree.learning.samples import Samples
from crisptree.splits import AbstractSplits

if TYPE_CHECKING:
    from crisptree.learning.growth import Stumps


class TreeStumps(NamedTuple):
    """The stumps of one tree, its rows, and where its random numbers come from."""

    stumps: Stumps
    samples: Samples
    generator: torch.Generator


def train_jointly(
    parts: Sequence[TreeStumps],
    plan: Plan,
    *,
    on_epoch: Callable[[EpochEnd], None] | None = None,
    name: str = "training",
) -> None:
    """Train the stumps of several trees in place, all in one batch."""
    assert plan.rows_per_epoch is None  # a share of all rows would be another one than that of each tree's own
    joint = _joint_stumps([part.stumps for part in parts])
    samples = _joint_samples(parts)
    generator, orders = parts[0].generator, _JointOrders(parts, plan)
    try:
        train(joint, samples, plan, generator=generator, orders=orders, on_epoch=on_epoch, name=name)
    finally:
        _share_out(joint, [part.stumps for part in parts])


def _joint_stumps(several: Sequence[Stumps]) -> Stumps:
    splits = AbstractSplits.concatenate([one.splits for one in several])
    leaves = torch.cat([one.leaves for one in several], dim=1)
    sizes = torch.cat([one.groups.sizes for one in several])
    rows = torch.arange(int(sizes.sum()), device=sizes.device)
    zeros_of_each = [one.zeros for one in several if one.zeros is not None]
    zeros = torch.cat(zeros_of_each) if zeros_of_each else None
    joint = several[0].restart(splits, leaves, zeros)
    joint.groups = Groups(rows, sizes)
    return joint


def _joint_samples(parts: Sequence[TreeStumps]) -> Samples:
    """Concatenate the rows of all groups, without a copy of their features."""
    first = parts[0].samples
    y = torch.cat([samples.y[stumps.groups.rows] for stumps, samples, _ in parts])
    weight = torch.cat([samples.weight[stumps.groups.rows] for stumps, samples, _ in parts])
    index = torch.cat([_picked(samples).index[stumps.groups.rows] for stumps, samples, _ in parts])
    rows = SelectedRows.of(ArrayRows(_picked(first).values), index)
    return Samples(rows, y, weight, first.target, first.n_jobs)


def _picked(samples: Samples) -> SelectedRows:
    assert isinstance(samples.rows, SelectedRows)
    return samples.rows


class _JointOrders(RowOrders):
    """Every tree shuffles its own rows with its own generator; every epoch has a new order of all rows."""

    def __init__(self, parts: Sequence[TreeStumps], plan: Plan) -> None:
        super().__init__([part.generator for part in parts])
        self.orders: list[Orders] = []
        begin = 0
        for stumps, samples, generator in parts:
            end = begin + len(stumps.groups.rows)
            rows = torch.arange(begin, end, device=samples.device)
            self.orders.append(Orders(Groups(rows, stumps.groups.sizes), plan, generator))
            begin = end

    def next(self) -> Tensor:
        return torch.cat([orders.next() for orders in self.orders])


def _share_out(joint: Stumps, several: Sequence[Stumps]) -> None:
    """Distribute the results of the joint training to the stumps of each tree."""
    ends = np.cumsum([0, *(one.splits.n_splits for one in several)])
    columns = np.cumsum([0, *(one.leaves.shape[1] for one in several)])
    for one, (begin, end), (left, right) in zip(several, pairwise(ends), pairwise(columns), strict=True):
        one.splits = joint.splits.select(torch.arange(int(begin), int(end))).trainable()
        one.leaves = joint.leaves[:, left:right].detach().clone()
