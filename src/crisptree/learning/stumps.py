"""Many stumps at once: all open leaves of a tree are one training problem.

Each row belongs to exactly one node, so m stumps train in one loop as a batch of m splits. For the equations they are
ONE stump in which every row has a place, its node: the leaf tables of all nodes stand side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.equations.alternating import hard_responsibilities
from crisptree.learning.backends.base import Models
from crisptree.learning.batches import Groups
from crisptree.learning.samples import Samples
from crisptree.learning.sources.base import LeafGroups, Side
from crisptree.splits import AbstractSplits
from crisptree.structure import TreeStructure
from crisptree.targets import Target, gain

GAIN_DIGITS = 9
"""Gains that agree in so many decimals are equal, and the first candidate wins: rounding must not choose a feature."""


def started_tables(target: Target, statistics: Sequence[npt.NDArray[np.float64]], generator: torch.Generator) -> Tensor:
    """The first tables of stumps at leaves, from what the rows of each leaf add up to.  (2, m · n_values)"""
    tables = target.random_tables(2 * len(statistics), generator).reshape(2, len(statistics), -1)
    return target.stump_tables(tables, torch.from_numpy(np.stack(statistics))).reshape(2, -1)


class Stumps:
    """m stumps, each with its own rows; every node may have several candidates for its split.

    Parameters
    ----------
    splits : AbstractSplits
        The split (or its candidates) of every node.
    leaves : Tensor of shape (2, n_nodes · n_candidates · n_values)
        Left and right leaf tables.
    groups : Groups
        The rows of every node.
    n_candidates : int
        How many splits compete at a node.
    zeros, signs : Tensor, optional
        Weights that stay zero, (n_nodes, n_features), and signs that they must have, (n_features,).
    """

    is_whole_tree = False
    models: Models | None = None
    structure = TreeStructure.stump()

    def __init__(
        self,
        splits: AbstractSplits,
        leaves: Tensor,
        groups: Groups,
        n_candidates: int = 1,
        zeros: Tensor | None = None,
        signs: Tensor | None = None,
    ) -> None:
        self.splits = splits.trainable()
        self.leaves = leaves
        self.groups = groups
        self.n_candidates = n_candidates
        self.zeros, self.signs = zeros, signs

    @property
    def n_places(self) -> int:
        return len(self.groups.sizes) * self.n_candidates

    def turned(self) -> Stumps:
        """The same before any training, with left and right tables exchanged."""
        tables, others = self.leaves.flip(0), (self.groups, self.n_candidates, self.zeros, self.signs)
        return Stumps(self.splits, tables, *others)

    @property
    def penalty_shares(self) -> Tensor:
        """All: the loss of a stump is a mean over its own rows."""
        return torch.ones(self.splits.n_splits, dtype=torch.float64, device=self.leaves.device)

    def scores(self, splits: AbstractSplits, x: Tensor, group: Tensor) -> Tensor:
        return splits.at(x, group).reshape(-1, 1)

    def places(self, group: Tensor) -> Tensor:
        candidate = torch.arange(self.n_candidates, device=group.device)
        return (group[:, None] * self.n_candidates + candidate).reshape(-1)

    @torch.no_grad()
    def hard_counts(self, samples: Samples) -> Tensor:
        target = samples.target
        counts = self.leaves.new_zeros(2, self.n_places * target.n_statistics)
        for rows, group, turned in self._turns(samples):
            h = hard_responsibilities(turned.reshape(-1, 1).to(counts), self.structure)
            weight, y = (part[rows].repeat_interleave(self.n_candidates, dim=0) for part in (samples.weight, samples.y))
            counts += target.statistics(h * weight[:, None], y, self.places(group), self.n_places)
        return counts

    def _turns(self, samples: Samples) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Rows, their groups, and which candidates send them right.  (b,), (b,), (b, n_candidates)"""
        in_place = samples.reads_in_place(self.splits)
        pieces = (samples.pieces(part, in_place=in_place) for part in (self.groups.rows, self.groups.group))
        for rows, group in zip(*pieces, strict=True):
            yield rows, group, samples.turns(self.splits, rows, group).reshape(len(rows), self.n_candidates)

    @torch.no_grad()
    def outcome(self, samples: Samples, min_rows: int, min_weight: float) -> Outcome:
        """The best candidate of every node by its gain on hard counts, and what it does to the rows.

        A split is accepted only if both sides keep ``min_rows`` rows that weigh ``min_weight`` together.
        """
        target, device = samples.target, samples.device
        n_nodes, n_candidates = len(self.groups.sizes), self.n_candidates
        right = torch.zeros(n_nodes, n_candidates, target.n_statistics, dtype=torch.float64, device=device)
        everyone = torch.zeros(n_nodes, target.n_statistics, dtype=torch.float64, device=device)
        n_right = torch.zeros(n_nodes, n_candidates, dtype=torch.long, device=device)
        turns = []
        for rows, group, turned in self._turns(samples):
            y, weight = samples.y[rows], samples.weight[rows].double()
            right += target.tally(y, turned * weight[:, None], group, n_nodes)
            everyone += target.tally(y, weight, group, n_nodes)
            if n_candidates == 1:  # torch adds numbers many times quicker than rows of one number
                n_right[:, 0].index_add_(0, group, turned[:, 0].long())
            else:
                n_right.index_add_(0, group, turned.long())
            turns.append(turned)
        on_right, total = right.cpu().numpy(), everyone.cpu().numpy()[:, None]
        gains = gain(target, total - on_right, on_right)
        right_weight, node_weight = target.weight(on_right), target.weight(total)
        many = n_right.cpu().numpy()
        accepted = np.minimum(many, self.groups.host_sizes[:, None] - many) >= min_rows
        accepted &= np.minimum(right_weight, node_weight - right_weight) >= min_weight
        winner = np.where(accepted, gains.round(GAIN_DIGITS), -1.0).argmax(axis=1)
        nodes, best = np.arange(n_nodes), torch.from_numpy(winner).to(device)
        tables = self.leaves.reshape(2, n_nodes, n_candidates, -1).permute(1, 2, 0, 3)
        return Outcome(
            splits=self.splits.chosen(best).detached(),
            tables=tables[torch.from_numpy(nodes).to(device), best],
            gains=gains[nodes, winner],
            weights=node_weight[:, 0],
            accepted=accepted[nodes, winner],
            turns=torch.cat(turns).gather(1, best[self.groups.group][:, None])[:, 0],
        )


@dataclass(frozen=True, eq=False)
class Outcome:
    """Trained stumps: a split, two leaf tables, gain and weight for every node, and where the rows go.

    ``accepted`` says which splits leave enough rows on both sides. Rows in memory have ``turns``, which follow the
    ``rows`` of their groups; other rows are known by the sums over both ``sides``.
    """

    splits: AbstractSplits
    tables: Tensor
    gains: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]
    accepted: npt.NDArray[np.bool_]
    turns: Tensor | None = None
    sides: tuple[Side, Side] | None = None

    def where(self, wanted: npt.NDArray[np.bool_]) -> Outcome:
        """The same with the splits of other nodes not accepted."""
        return replace(self, accepted=self.accepted & wanted)

    def or_better(self, other: Outcome, groups: Groups | LeafGroups) -> Outcome:
        """Of every node the split of more gain: this one, or another of the same node."""
        takes = other.accepted & (~self.accepted | (other.gains > self.gains))
        which = torch.from_numpy(takes).to(self.tables.device)
        both = AbstractSplits.concatenated([self.splits, other.splits])
        turns, sides = self.turns, self.sides
        if turns is not None and other.turns is not None and isinstance(groups, Groups):
            turns = torch.where(which[groups.group], other.turns, turns)
        if sides is not None and other.sides is not None:
            left, right = (one.where(takes, better) for one, better in zip(sides, other.sides, strict=True))
            sides = left, right
        return Outcome(
            splits=both.select((np.arange(len(takes)) + len(takes) * takes).tolist()),
            tables=torch.where(which[:, None, None], other.tables, self.tables),
            gains=np.where(takes, other.gains, self.gains),
            weights=self.weights,
            accepted=self.accepted | other.accepted,
            turns=turns,
            sides=sides,
        )
