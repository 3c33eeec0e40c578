"""Stumps of several trees as one batch: each has its own rows, weights and random numbers, and all share the features.

A stump's steps depend on its own rows alone, so what comes out for a tree is what it would have been without the
others; on the CPU bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from crisptree.data.rows import ArrayRows, PickedRows
from crisptree.learning.batches import Groups, Orders
from crisptree.learning.journal import Arrays, Page
from crisptree.learning.plan import Plan
from crisptree.learning.samples import Samples
from crisptree.learning.stumps import Stumps
from crisptree.learning.train import EpochEnd, train
from crisptree.splits import AbstractSplits


class Part(NamedTuple):
    """The stumps of one tree, its rows, and where its random numbers come from."""

    stumps: Stumps
    samples: Samples
    generator: torch.Generator


def train_together(
    parts: Sequence[Part],
    plan: Plan,
    *,
    on_epoch: Callable[[EpochEnd], None] | None = None,
    name: str = "training",
) -> None:
    """Train the stumps of some trees in place, all in one batch."""
    if len(parts) == 1:
        stumps, samples, generator = parts[0]
        train(stumps, samples, plan, generator=generator, on_epoch=on_epoch, name=name)
        return
    assert plan.rows_per_epoch is None  # a share of all rows would be another one than that of each tree's own
    joint = _joint_stumps([part.stumps for part in parts])
    samples = _joint_samples(parts)
    generator, orders = parts[0].generator, _JointOrders(parts, plan)
    try:
        train(joint, samples, plan, generator=generator, orders=orders, on_epoch=on_epoch, name=name)
    finally:
        _share_out(joint, [part.stumps for part in parts])


def _joint_stumps(several: Sequence[Stumps]) -> Stumps:
    first = several[0]
    splits = AbstractSplits.concatenated([one.splits for one in several])
    leaves = torch.cat([one.leaves for one in several], dim=1)
    sizes = torch.cat([one.groups.sizes for one in several])
    rows = torch.arange(int(sizes.sum()), device=sizes.device)
    held = [one.zeros for one in several if one.zeros is not None]
    zeros = torch.cat(held) if held else None
    return Stumps(splits, leaves, Groups(rows, sizes), first.n_candidates, zeros, first.signs)


def _joint_samples(parts: Sequence[Part]) -> Samples:
    """The rows of all groups after each other, their features read where they lie."""
    first = parts[0].samples
    y = torch.cat([samples.y[stumps.groups.rows] for stumps, samples, _ in parts])
    weight = torch.cat([samples.weight[stumps.groups.rows] for stumps, samples, _ in parts])
    index = torch.cat([_picked(samples).index[stumps.groups.rows] for stumps, samples, _ in parts])
    rows = PickedRows.of(ArrayRows(_picked(first).values), index)
    return Samples(rows, y, weight, first.target, first.n_jobs)


def _picked(samples: Samples) -> PickedRows:
    assert isinstance(samples.rows, PickedRows)
    return samples.rows


class _JointOrders:
    """Every tree shuffles its own rows with its own generator."""

    def __init__(self, parts: Sequence[Part], plan: Plan) -> None:
        self.orders: list[Orders] = []
        begin = 0
        for stumps, samples, generator in parts:
            end = begin + len(stumps.groups.rows)
            rows = torch.arange(begin, end, device=samples.device)
            self.orders.append(Orders(Groups(rows, stumps.groups.sizes), plan, generator))
            begin = end

    @property
    def generators(self) -> list[torch.Generator]:
        return [orders.generator for orders in self.orders]

    def next(self) -> Tensor:
        return torch.cat([orders.next() for orders in self.orders])

    def kept(self) -> Arrays:
        """Nothing: every epoch has a new order of all rows."""
        return {}

    def restore(self, page: Page) -> None:
        pass


def _share_out(joint: Stumps, several: Sequence[Stumps]) -> None:
    """What the joint training found, to each tree's own stumps."""
    ends = np.cumsum([0, *(one.splits.n_splits for one in several)])
    columns = np.cumsum([0, *(one.leaves.shape[1] for one in several)])
    for one, (begin, end), (left, right) in zip(several, pairwise(ends), pairwise(columns), strict=True):
        one.splits = joint.splits.select(torch.arange(int(begin), int(end))).trainable()
        one.leaves = joint.leaves[:, left:right].detach().clone()
