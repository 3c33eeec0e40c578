"""Many stumps at once: all open leaves of a tree are one training problem.

Each row belongs to exactly one node, so m stumps train in one loop as a batch of m splits. For the equations they are
ONE stump whose labels are pairs (node, class): its leaf tables hold every node's classes side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from crisptree.equations.alternating import hard_responsibilities
from crisptree.equations.em import class_counts
from crisptree.equations.gain import information_gain
from crisptree.learning.batches import Groups
from crisptree.learning.routing import reads_in_place, turns_of
from crisptree.learning.samples import Samples
from crisptree.splits import AbstractSplits
from crisptree.structure import TreeStructure

GAIN_DIGITS = 9
"""Gains that agree in so many decimals are equal, and the first candidate wins: rounding must not choose a feature."""


class Stumps:
    """m stumps, each with its own rows; every node may have several candidates for its split.

    Parameters
    ----------
    splits : AbstractSplits
        The split (or its candidates) of every node.
    leaves : Tensor of shape (2, n_nodes · n_candidates · n_classes)
        Left and right leaf tables.
    groups : Groups
        The rows of every node.
    n_candidates : int
        How many splits compete at a node.
    """

    is_whole_tree = False
    zeros: Tensor | None = None
    structure = TreeStructure.stump()

    def __init__(self, splits: AbstractSplits, leaves: Tensor, groups: Groups, n_candidates: int = 1) -> None:
        self.splits = splits.trainable()
        self.leaves = leaves
        self.groups = groups
        self.n_candidates = n_candidates
        self.n_classes = leaves.shape[1] // (len(groups.sizes) * n_candidates)

    @property
    def penalty_shares(self) -> Tensor:
        """All: the loss of a stump is a mean over its own rows."""
        return torch.ones(self.splits.n_splits, dtype=torch.float64, device=self.leaves.device)

    def scores(self, splits: AbstractSplits, x: Tensor, group: Tensor) -> Tensor:
        return splits.at(x, group).reshape(-1, 1)

    def labels(self, y: Tensor, group: Tensor) -> Tensor:
        candidate = torch.arange(self.n_candidates, device=y.device)
        contest = group[:, None] * self.n_candidates + candidate
        return (contest * self.n_classes + y[:, None]).reshape(-1)

    @torch.no_grad()
    def hard_counts(self, samples: Samples) -> Tensor:
        counts = torch.zeros_like(self.leaves)
        for rows, group, turned in self._turns(samples):
            h = hard_responsibilities(turned.reshape(-1, 1).to(counts), self.structure)
            weight = samples.weight[rows].repeat_interleave(self.n_candidates)
            counts += class_counts(h * weight[:, None], self.labels(samples.y[rows], group), counts.shape[1])
        return counts

    def _turns(self, samples: Samples) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Rows, their groups, and which candidates send them right.  (b,), (b,), (b, n_candidates)"""
        in_place = reads_in_place(samples, self.splits)
        pieces = (samples.pieces(part, in_place=in_place) for part in (self.groups.rows, self.groups.group))
        for rows, group in zip(*pieces, strict=True):
            yield rows, group, turns_of(self.splits, samples, rows, group).reshape(len(rows), self.n_candidates)

    @torch.no_grad()
    def outcome(self, samples: Samples, min_rows: int, min_weight: float) -> Outcome:
        """The best candidate of every node by information gain on hard counts, and what it does to the rows.

        A split is accepted only if both sides keep ``min_rows`` rows that weigh ``min_weight`` together.
        """
        n_nodes, n_candidates, n_classes = len(self.groups.sizes), self.n_candidates, self.n_classes
        device = samples.device
        right = torch.zeros(n_nodes * n_classes, n_candidates, dtype=torch.float64, device=device)
        everyone = torch.zeros(n_nodes * n_classes, dtype=torch.float64, device=device)
        n_right = torch.zeros(n_nodes, n_candidates, dtype=torch.long, device=device)
        turns = []
        for rows, group, turned in self._turns(samples):
            weight, cell = samples.weight[rows].double(), group * n_classes + samples.y[rows]
            _add_rows(right, cell, turned * weight[:, None])
            everyone.index_add_(0, cell, weight)
            _add_rows(n_right, group, turned.long())
            turns.append(turned)
        right_counts = right.reshape(n_nodes, n_classes, n_candidates).transpose(1, 2)
        all_counts = everyone.reshape(n_nodes, 1, n_classes)
        gains = information_gain(all_counts - right_counts, right_counts).clamp_min(0.0)
        right_weight, node_weight = right_counts.sum(dim=2), all_counts.sum(dim=2)
        accepted = torch.minimum(n_right, self.groups.sizes[:, None] - n_right) >= min_rows
        accepted &= torch.minimum(right_weight, node_weight - right_weight) >= min_weight
        best = torch.where(accepted, gains.round(decimals=GAIN_DIGITS), -1.0).argmax(dim=1)
        nodes = torch.arange(n_nodes, device=device)
        tables = self.leaves.reshape(2, n_nodes, n_candidates, n_classes).permute(1, 2, 0, 3)
        return Outcome(
            splits=self.splits.chosen(best).detached(),
            tables=tables[nodes, best],
            gains=gains[nodes, best],
            weights=node_weight[:, 0],
            accepted=accepted[nodes, best],
            turns=torch.cat(turns).gather(1, best[self.groups.group][:, None])[:, 0],
        )


@dataclass(frozen=True, eq=False)
class Outcome:
    """Trained stumps: a split, two leaf tables, gain and weight for every node, and the turn of every row.

    ``accepted`` says which splits leave enough rows on both sides; ``turns`` follows ``groups.rows``.
    """

    splits: AbstractSplits
    tables: Tensor
    gains: Tensor
    weights: Tensor
    accepted: Tensor
    turns: Tensor


def _add_rows(total: Tensor, place: Tensor, rows: Tensor) -> None:
    """Add every row to its place.  (m, k), (b,), (b, k)"""
    if total.shape[1] == 1:  # torch adds numbers many times quicker than rows of one number
        total, rows = total[:, 0], rows[:, 0]
    total.index_add_(0, place, rows)


def random_tables(n: int, n_classes: int, generator: torch.Generator) -> Tensor:
    """Leaf distributions with uniformly random entries, normalised.  (n, n_classes)"""
    raw = 1 - torch.rand(n, n_classes, generator=generator)  # in (0, 1]: no table starts with a zero
    return raw / raw.sum(dim=1, keepdim=True)
