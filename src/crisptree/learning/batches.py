"""Shuffled batches inside groups of rows: many stumps, each with its own rows, or one tree with all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.learning.journal import Arrays, Page
from crisptree.learning.plan import Plan

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Update:
    """The rows of one optimiser step: of each group in ``active`` the places ``begin`` to ``end`` of the epoch's order.

    An epoch's order (``Orders``) is new every time; its updates are always the same places.
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

    @classmethod
    def everything(cls, n_rows: int, device: torch.device) -> Groups:
        """One group of all rows."""
        return cls(torch.arange(n_rows, device=device), torch.tensor([n_rows], device=device))

    @cached_property
    def group(self) -> Tensor:
        """The group of each of ``rows``.  (n,)"""
        return torch.repeat_interleave(torch.arange(len(self.sizes), device=self.sizes.device), self.sizes)

    @cached_property
    def host_sizes(self) -> Integers:
        """``sizes`` as an array."""
        return self.sizes.cpu().numpy()

    def taken(self, plan: Plan) -> Integers:
        """How many rows of each group an epoch goes through: all of them, or the group's share of ``rows_per_epoch``.

        A small group gives more than its share: a batch, and as many batches as ``min_updates`` demands of an epoch.
        """
        sizes = self.host_sizes
        if plan.rows_per_epoch is None or plan.rows_per_epoch >= sizes.sum():
            return sizes
        share = np.ceil(sizes * (plan.rows_per_epoch / sizes.sum())).astype(np.int64)
        batches = max(1, -(-plan.min_updates // max(plan.epochs, 1)))
        return np.minimum(sizes, np.maximum(share, batches * plan.batch_size))

    def sampled(self, plan: Plan) -> Groups:
        """As many rows of each group as an epoch goes through, evenly spread."""
        sizes, taken = self.host_sizes, self.taken(plan)
        if np.array_equal(taken, sizes):
            return self
        starts = np.repeat(np.cumsum(sizes) - sizes, taken)
        number = np.arange(taken.sum()) - np.repeat(np.cumsum(taken) - taken, taken)
        places = torch.from_numpy(starts + number * np.repeat(sizes, taken) // np.repeat(taken, taken))
        device = self.rows.device
        return Groups(self.rows[places.to(device)], torch.from_numpy(taken).to(device))

    def n_batches(self, plan: Plan) -> Integers:
        """Batches of each group: as few as hold ``batch_size`` rows at most, and all of nearly one size."""
        return -(-self.taken(plan) // plan.batch_size)

    def passes(self, plan: Plan) -> Integers:
        """How often an epoch goes through each group: once, or as often as ``min_updates`` demands."""
        return np.maximum(-(-plan.min_updates // (self.n_batches(plan) * max(plan.epochs, 1))), 1)

    def turns(self, plan: Plan) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Of every step of an epoch: the groups that have one, which of its batches each takes, and of how many.

        A group that has finished its batches drops out.
        """
        n_batches = self.n_batches(plan)
        n_updates = n_batches * self.passes(plan)
        longest_first = np.argsort(-n_updates, kind="stable")
        n_active = np.searchsorted(-n_updates[longest_first], -np.arange(n_updates.max()), side="left")
        active = np.arange(0)
        for step, number in enumerate(n_active):
            if number != len(active):
                active = np.sort(longest_first[:number])
                whole = n_batches[active]
            yield active, step % whole, whole

    def schedule(self, plan: Plan) -> Iterator[Update]:
        """The steps of every epoch."""
        sizes = self.taken(plan)
        starts = np.cumsum(sizes) - sizes
        for active, batch, whole in self.turns(plan):
            start, size = starts[active], sizes[active]
            yield Update(active, start + batch * size // whole, start + (batch + 1) * size // whole)

    def shuffled(self, plan: Plan, generator: torch.Generator) -> Tensor:
        """All ``rows`` in a random order, each group's own among themselves.  (n,)"""
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
        order = Orders(self, plan, generator).next()
        for update in self.schedule(plan):
            rows = order[torch.from_numpy(update.places).to(order.device)]
            yield rows, update.per_row(update.active).to(order.device)


class RowOrders(Protocol):
    """The rows of one epoch after the other."""

    @property
    def generators(self) -> Sequence[torch.Generator]:
        """Where their random numbers come from."""

    def next(self) -> Tensor:
        """The order of the next epoch.  (taken rows,)"""

    def kept(self) -> Arrays:
        """What a checkpoint must hold of them, beside the generators."""

    def restore(self, page: Page) -> None:
        """Be as after the epochs of a page."""


class Orders:
    """The rows of one epoch after the other: all of them, shuffled, or a share of every group.

    With a share, epochs walk on through one shuffled order; a group that is used up is shuffled again.
    """

    def __init__(self, groups: Groups, plan: Plan, generator: torch.Generator) -> None:
        self.groups, self.plan, self.generator = groups, plan, generator
        self.sizes, self.taken = groups.host_sizes, groups.taken(plan)
        self.takes_all = np.array_equal(self.sizes, self.taken)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.position = self.sizes.copy()  # all used up
        self.places: npt.NDArray[np.signedinteger] | None = None
        self.generators = [generator]

    def next(self) -> Tensor:
        """The order of the next epoch.  (taken rows,)"""
        if self.takes_all:
            return self.groups.shuffled(self.plan, self.generator)
        if self.places is None:
            self._begin(int(torch.randint(2**62, (), generator=self.generator)))
        places = self._next_places()
        return self.groups.rows[torch.from_numpy(places).to(self.groups.rows.device)]

    def _begin(self, seed: int) -> None:
        small = len(self.groups.rows) < 2**31
        self.places = np.arange(len(self.groups.rows), dtype=np.int32 if small else np.int64)
        self.seed, self.shuffler = seed, np.random.default_rng(seed)

    def _next_places(self) -> npt.NDArray[np.signedinteger]:
        assert self.places is not None
        for group in np.flatnonzero(self.position + self.taken > self.sizes):
            start = self.starts[group]
            self.shuffler.shuffle(self.places[start : start + self.sizes[group]])
            self.position[group] = 0
        begin = self.starts + self.position
        self.position += self.taken
        return self.places[Update(np.arange(len(begin)), begin, begin + self.taken).places]

    def kept(self) -> Arrays:
        """The seed of the order, from which it is shuffled again; nothing where every epoch has a new one."""
        return {} if self.takes_all else {"orders.seed": np.array([self.seed])}

    def restore(self, page: Page) -> None:
        """Go through the orders of the epochs that are done."""
        if not self.takes_all:
            seed = int(page.take("orders.seed", np.zeros(1, dtype=np.int64))[0])
            if seed < 0:
                raise page.wrong("the seed of its orders is negative")
            self._begin(seed)
            for _ in range(page.epochs):
                self._next_places()


class NoOrders:
    """No order: who takes the steps draws it by itself."""

    def __init__(self, generator: torch.Generator) -> None:
        self.generators = [generator]

    def next(self) -> Tensor:
        return torch.zeros(0, dtype=torch.long)

    def kept(self) -> Arrays:
        return {}

    def restore(self, page: Page) -> None:
        pass


def group_rows(group_of_row: Tensor, wanted: list[int]) -> Groups:
    """The rows of some groups, in the order of ``wanted``; rows of other groups are left out."""
    device = group_of_row.device
    if device.type == "cpu" and len(wanted) < np.iinfo(np.int16).max:
        return _grouped_by_digits(group_of_row.numpy(), wanted)
    place = torch.full((int(group_of_row.max()) + 1,), -1, device=device)
    place[torch.tensor(wanted, device=device)] = torch.arange(len(wanted), device=device)
    here = place[group_of_row]
    rows = torch.nonzero(here >= 0)[:, 0]
    order = torch.argsort(here[rows], stable=True)
    return Groups(rows[order], torch.bincount(here[rows], minlength=len(wanted)))


def _grouped_by_digits(group_of_row: Integers, wanted: list[int]) -> Groups:
    """The same: NumPy sorts numbers of 16 bits by their digits, in a fraction of the time and room."""
    place = np.zeros(int(group_of_row.max()) + 1, dtype=np.int16)
    place[wanted] = np.arange(1, len(wanted) + 1)
    here = place[group_of_row]
    sizes = np.bincount(here, minlength=len(wanted) + 1)
    rows = np.argsort(here, kind="stable")[sizes[0] :]
    return Groups(torch.from_numpy(rows), torch.from_numpy(sizes[1:]))
