"""Shuffled batches inside groups of rows: many stumps, each with its own rows, or one tree with all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.learning.plan import Plan

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Update:
    """The rows of one optimiser step: of each group in ``active`` the places ``begin`` to ``end`` of the epoch's order.

    An epoch's order (``Groups.shuffled``) is new every time; its updates are always the same places.
    """

    active: Integers
    begin: Integers
    end: Integers

    @property
    def lengths(self) -> Integers:
        """Rows of each active group."""
        return self.end - self.begin

    @property
    def places(self) -> Integers:
        """All places, group after group.  (b,)"""
        lengths = self.lengths
        return np.arange(lengths.sum()) + np.repeat(self.begin - (np.cumsum(lengths) - lengths), lengths)

    def per_row(self, values: npt.NDArray[np.generic]) -> Tensor:
        """One value of each active group, repeated for its rows.  (a,) → (b,)"""
        return torch.from_numpy(np.repeat(values, self.lengths))


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

    @cached_property
    def group(self) -> Tensor:
        """The group of each of ``rows``.  (n,)"""
        return torch.repeat_interleave(torch.arange(len(self.sizes), device=self.sizes.device), self.sizes)

    @cached_property
    def host_sizes(self) -> Integers:
        """``sizes`` as an array."""
        return self.sizes.cpu().numpy()

    def n_batches(self, plan: Plan) -> Integers:
        """Batches of each group: as few as hold ``batch_size`` rows at most, and all of nearly one size."""
        return -(-self.host_sizes // plan.batch_size)

    def passes(self, plan: Plan) -> Integers:
        """How often an epoch goes through each group: once, or as often as ``min_updates`` demands."""
        return np.maximum(-(-plan.min_updates // (self.n_batches(plan) * max(plan.epochs, 1))), 1)

    def schedule(self, plan: Plan) -> Iterator[Update]:
        """The steps of every epoch. A group that has finished its batches drops out."""
        sizes, n_batches = self.host_sizes, self.n_batches(plan)
        n_updates, starts = n_batches * self.passes(plan), np.cumsum(sizes) - sizes
        longest_first = np.argsort(-n_updates, kind="stable")
        n_active = np.searchsorted(-n_updates[longest_first], -np.arange(n_updates.max()), side="left")
        active = np.arange(0)
        for step, number in enumerate(n_active):
            if number != len(active):
                active = np.sort(longest_first[:number])
                start, size, whole = starts[active], sizes[active], n_batches[active]
            batch = step % whole
            yield Update(active, start + batch * size // whole, start + (batch + 1) * size // whole)

    def shuffled(self, plan: Plan, generator: torch.Generator) -> Tensor:
        """``rows`` in the order of one epoch, each group's own among themselves.  (n,)"""
        if self.n_batches(plan).max() == 1:
            return self.rows  # one batch holds them all: their order means nothing
        if self.rows.is_cuda:
            # Sorting on the device is quicker than sending an order there; it draws only from a generator of its own.
            own = torch.Generator(self.rows.device).manual_seed(int(torch.randint(2**62, (), generator=generator)))
            keys = torch.rand(len(self.rows), dtype=torch.float64, device=self.rows.device, generator=own)
            return self.rows[torch.argsort(keys + self.group)]
        random = torch.rand(len(self.rows), dtype=torch.float64, generator=generator)
        order = np.argsort((random + self.group).numpy())  # several times quicker than torch's sort
        return self.rows[torch.from_numpy(order)]

    def epoch(self, plan: Plan, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows and groups of every step of one epoch.  (b,), (b,)"""
        order = self.shuffled(plan, generator)
        for update in self.schedule(plan):
            rows = order[torch.from_numpy(update.places).to(order.device)]
            yield rows, update.per_row(update.active).to(order.device)


def group_rows(group_of_row: Tensor, wanted: list[int]) -> Groups:
    """The rows of some groups, in the order of ``wanted``; rows of other groups are left out."""
    device = group_of_row.device
    place = torch.full((int(group_of_row.max()) + 1,), -1, device=device)
    place[torch.tensor(wanted, device=device)] = torch.arange(len(wanted), device=device)
    here = place[group_of_row]
    rows = torch.nonzero(here >= 0)[:, 0]
    order = torch.argsort(here[rows], stable=True)
    return Groups(rows[order], torch.bincount(here[rows], minlength=len(wanted)))
