"""Shuffled batches inside groups of rows: many stumps, each with its own rows, or one tree with all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from crisptree.learning.plan import Plan


@dataclass(frozen=True, eq=False)
class Update:
    """The rows of one optimiser step.

    Parameters
    ----------
    rows, group : Tensor of shape (b,)
        Row numbers and the group each belongs to.
    active : Tensor of shape (a,) or None
        The groups that take part in this step; None for all.
    """

    rows: Tensor
    group: Tensor
    active: Tensor | None


@dataclass(frozen=True, eq=False)
class Groups:
    """Rows sorted by group; each group makes its own batches and its own number of passes.

    Parameters
    ----------
    rows : Tensor of shape (n,)
        Row numbers, group after group.
    sizes : Tensor of shape (n_groups,)
        Rows in each group, none empty.
    """

    rows: Tensor
    sizes: Tensor

    @property
    def group(self) -> Tensor:
        """The group of each of ``rows``.  (n,)"""
        return torch.repeat_interleave(torch.arange(len(self.sizes), device=self.sizes.device), self.sizes)

    def n_batches(self, plan: Plan) -> Tensor:
        """Batches of each group: as few as hold ``batch_size`` rows at most, and all of nearly one size."""
        return -(-self.sizes // plan.batch_size)

    def passes(self, plan: Plan) -> Tensor:
        """How often an epoch goes through each group: once, or as often as ``min_updates`` demands."""
        updates_per_pass = self.n_batches(plan) * max(plan.epochs, 1)
        return torch.clamp_min(-(-plan.min_updates // updates_per_pass), 1)

    def updates(self, plan: Plan, generator: torch.Generator) -> Iterator[Update]:
        """The steps of one epoch. A group that has finished its batches drops out."""
        n_batches, passes = self.n_batches(plan), self.passes(plan)
        n_updates = n_batches * passes
        starts = torch.cumsum(self.sizes, 0) - self.sizes
        rows = self._shuffled(n_batches, generator)
        for step in range(int(n_updates.max())):
            active = torch.nonzero(n_updates > step)[:, 0]
            batch = step % n_batches[active]
            begin = starts[active] + batch * self.sizes[active] // n_batches[active]
            end = starts[active] + (batch + 1) * self.sizes[active] // n_batches[active]
            lengths = end - begin
            offsets = torch.repeat_interleave(begin - (torch.cumsum(lengths, 0) - lengths), lengths)
            places = torch.arange(len(offsets), device=offsets.device) + offsets
            everyone = len(active) == len(self.sizes)
            yield Update(rows[places], torch.repeat_interleave(active, lengths), None if everyone else active)

    def _shuffled(self, n_batches: Tensor, generator: torch.Generator) -> Tensor:
        if int(n_batches.max()) == 1:
            return self.rows  # one batch holds them all: their order means nothing
        keys = torch.rand(len(self.rows), dtype=torch.float64, generator=generator) + self.group.cpu()
        order = torch.from_numpy(np.argsort(keys.numpy()))  # several times quicker than torch's sort
        return self.rows[order.to(self.rows.device)]


def group_rows(group_of_row: Tensor, wanted: list[int]) -> Groups:
    """The rows of some groups, in the order of ``wanted``; rows of other groups are left out."""
    device = group_of_row.device
    place = torch.full((int(group_of_row.max()) + 1,), -1, device=device)
    place[torch.tensor(wanted, device=device)] = torch.arange(len(wanted), device=device)
    here = place[group_of_row]
    rows = torch.nonzero(here >= 0)[:, 0]
    order = torch.argsort(here[rows], stable=True)
    return Groups(rows[order], torch.bincount(here[rows], minlength=len(wanted)))
