"""Stumps: all unresolved leaves of a tree, or of several trees, are one training problem.

Each row belongs to exactly one node, so m stumps train in one loop as a batch of m splits. For the equations they are
ONE stump in which every row has a node index: the leaf tables of all nodes stand side by side. Stumps of several trees
are one batch too: a stump's steps depend on its own rows alone, so a tree is what it would be without the others, on
the CPU bit for bit.

Stumps of regression trees start from an initialisation search. From a random hyperplane a stump follows the gradient
of its likelihood, which is close to zero where y does not rise or fall along it, as for the residuals of a linear
model. Stumps of classification trees need none, because random tables of two leaves differ in every class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.data.rows import ArrayRows, SelectedRows
from crisptree.equations.alternating import hard_responsibilities
from crisptree.learning.engines.base import Models
from crisptree.learning.loop import EpochEnd, train
from crisptree.learning.options import Plan
from crisptree.learning.samples import Groups, Orders, RowOrders, Samples, group_rows
from crisptree.learning.sources.base import LeafGroups, Side, SummedRows
from crisptree.splits import AbstractSplits, ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.targets import Gaussians, Target, gain
from crisptree.tree import Tree

ROWS_PER_NODE = 256
"""Rows of a node that are looked at."""

N_SINGLE_FEATURES, N_RANDOM_DIRECTIONS = 16, 8
"""Single features and random directions that are tried, beside the random hyperplane that there is."""

QUANTILES = (0.2, 0.35, 0.5, 0.65, 0.8)
"""Candidate offsets of a hyperplane along a direction, as quantiles of the rows."""

MIN_ROWS_TO_SEARCH = 32
"""Fewer rows of a node, out of a sample of all, say nothing about where to begin."""

QUANTILE_OFFSET = 0.37
"""Rows are picked at no round share of all weights, where rounding would tell one row from its copy."""

MAX_SEARCH_VALUES = 2**21


class Start(NamedTuple):
    """Hyperplanes, and what the rows on both sides of each add up to.  (2, n_nodes, n_statistics)"""

    splits: ObliqueSplits
    statistics: Tensor


def find_initial_splits(splits: ObliqueSplits, samples: Samples, groups: Groups, generator: torch.Generator) -> Start:
    """Search the rotation and offset of hyperplanes that separate the y of their rows best; their norm stays."""
    assert isinstance(samples.target, Gaussians)
    weight = splits.parameters["weight"].detach()
    n_nodes, n_features = weight.shape
    axes = torch.randperm(n_features, generator=generator)[:N_SINGLE_FEATURES]
    drawn = torch.randn(N_RANDOM_DIRECTIONS, n_features, generator=generator)
    along = torch.nn.functional.one_hot(axes, n_features)
    tried = torch.cat([along, drawn / drawn.norm(dim=1, keepdim=True)]).to(weight)
    length = weight.norm(dim=1)
    at_once = max(1, MAX_SEARCH_VALUES // (ROWS_PER_NODE * max(n_features, len(QUANTILES) * (len(tried) + 1))))
    found = []
    for nodes in torch.arange(n_nodes, device=weight.device).split(at_once):
        own = (weight[nodes] / length[nodes, None].clamp_min(1e-30))[:, None]
        directions = torch.cat([own, tried.expand(len(nodes), -1, -1)], dim=1)
        found.append(_best_of(directions, samples, _some_rows(groups, nodes, samples)))
    direction, threshold = (torch.cat([one[part] for one in found]) for part in (0, 1))
    parameters = {"weight": direction * length[:, None], "bias": -threshold * length}
    return Start(splits.replace_parameters(parameters), torch.cat([one[2] for one in found], dim=1))


def search_initial_splits(
    splits: AbstractSplits, tables: Tensor, tree: Tree, leaves: list[int], sample: Samples, generator: torch.Generator
) -> tuple[AbstractSplits, Tensor]:
    """Stumps at some leaves of a tree, those of a regression at the best start on a sample of all rows.

    Where the sample has too few rows of a leaf, its stump begins as it is. Tables are (2, n_nodes · n_values).
    """
    if not sample.target.is_regression or not isinstance(splits, ObliqueSplits) or not len(sample):
        return splits, tables
    leaf = sample.all_leaves(tree)
    here = torch.bincount(leaf, minlength=tree.structure.n_leaves)[leaves]
    known = torch.nonzero(here >= MIN_ROWS_TO_SEARCH)[:, 0]
    if not len(known):
        return splits, tables
    groups = group_rows(leaf, [leaves[number] for number in known.tolist()])
    chosen = splits.select(known)
    assert isinstance(chosen, ObliqueSplits)
    start = find_initial_splits(chosen, sample, groups, generator)
    parameters = {name: value.detach().clone() for name, value in splits.parameters.items()}
    for name, value in start.splits.parameters.items():
        parameters[name][known] = value
    wide = tables.reshape(2, len(leaves), -1).clone()
    before, sums = (part.reshape(2 * len(known), -1) for part in (wide[:, known], start.statistics))
    wide[:, known] = sample.target.update(sums, before, 0.0).reshape(2, len(known), -1)
    return splits.replace_parameters(parameters), wide.reshape(2, -1)


def _some_rows(groups: Groups, nodes: Tensor, samples: Samples) -> Tensor:
    """Sample rows of some nodes systematically by weight, heavy ones several times.  (n_nodes, ROWS_PER_NODE)"""
    ends = groups.sizes.cumsum(0)
    heights = torch.cat([samples.weight.new_zeros(1).double(), samples.weight[groups.rows].double().cumsum(0)])
    low, high = heights[(ends - groups.sizes)[nodes]], heights[ends[nodes]]
    steps = (torch.arange(ROWS_PER_NODE, device=nodes.device) + QUANTILE_OFFSET) / ROWS_PER_NODE
    positions = torch.searchsorted(heights, low[:, None] + steps * (high - low)[:, None]) - 1
    return groups.rows[positions.clamp(max=len(groups.rows) - 1)]


def _quantiles(scores: Tensor) -> Tensor:
    """Compute weighted quantiles along every direction.  (m, n, k) → (q, m, k)"""
    shares = torch.tensor(QUANTILES).to(scores)
    if scores.device.type != "cpu":
        return scores.quantile(shares, dim=1)
    # The same numbers: NumPy sorts without the positions, several times quicker.
    ordered = torch.from_numpy(np.sort(scores.transpose(1, 2).numpy(), axis=2))
    ranks = shares * (scores.shape[1] - 1)
    below, above = (ordered[..., end.long()] for end in (ranks.floor(), ranks.ceil()))
    return below.lerp(above, ranks - ranks.floor()).permute(2, 0, 1)


def _best_of(directions: Tensor, samples: Samples, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Direction, threshold and sums of both sides of the hyperplane that takes most off the variance.

    (m, k, n_features), (m, n) → (m, n_features), (m,), (2, m, n_statistics)
    """
    m, n = rows.shape
    x = samples.batch(rows.reshape(-1)).reshape(m, n, -1)
    y = samples.y[rows].to(x)
    scores = x @ directions.transpose(1, 2)
    limits = _quantiles(scores)  # (q, m, k)
    right = (scores > limits[:, :, None]).to(x)  # (q, m, n, k)
    each = torch.cat([torch.ones_like(y[..., :1]), y, y * y], dim=2)
    on_right = right.transpose(2, 3) @ each  # (q, m, k, n_statistics)
    everyone = each.sum(dim=1)[None, :, None]
    k = y.shape[2]
    gains = torch.zeros_like(on_right[..., 0])
    for side in (on_right, everyone - on_right):
        gains += (side[..., 1 : k + 1] ** 2).sum(-1) / side[..., 0].clamp_min(1e-30)
    best = gains.permute(1, 0, 2).reshape(m, -1).argmax(dim=1)
    quantile, number, node = best // directions.shape[1], best % directions.shape[1], torch.arange(m, device=x.device)
    there = on_right[quantile, node, number]
    return directions[node, number], limits[quantile, node, number], torch.stack([everyone[0, :, 0] - there, there])


GAIN_DIGITS = 9
"""Gains that agree in so many decimals are equal, and the first candidate wins: rounding must not choose a feature."""


def init_stump_tables(
    target: Target, statistics: Sequence[npt.NDArray[np.float64]], generator: torch.Generator
) -> Tensor:
    """Return the first tables of stumps at leaves, from what the rows of each leaf add up to.  (2, m · n_values)"""
    tables = target.random_tables(2 * len(statistics), generator).reshape(2, len(statistics), -1)
    return target.stump_tables(tables, torch.from_numpy(np.stack(statistics))).reshape(2, -1)


class Stumps:
    """m stumps, each with its own rows; at every node ``n_candidates`` splits compete.

    ``leaves`` are the left and right tables, (2, n_nodes · n_candidates · n_values). See ``TrainState`` for ``zeros``
    and ``signs``.
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
    def n_stumps(self) -> int:
        return len(self.groups.sizes) * self.n_candidates

    def swap_tables(self) -> Stumps:
        """Exchange left and right tables, before any training."""
        tables, others = self.leaves.flip(0), (self.groups, self.n_candidates, self.zeros, self.signs)
        return Stumps(self.splits, tables, *others)

    @property
    def penalty_shares(self) -> Tensor:
        """All: the loss of a stump is a mean over its own rows."""
        return torch.ones(self.splits.n_splits, dtype=torch.float64, device=self.leaves.device)

    def scores(self, splits: AbstractSplits, x: Tensor, group: Tensor) -> Tensor:
        return splits.at(x, group).reshape(-1, 1)

    def stump_index(self, group: Tensor) -> Tensor:
        candidate = torch.arange(self.n_candidates, device=group.device)
        return (group[:, None] * self.n_candidates + candidate).reshape(-1)

    @torch.no_grad()
    def hard_counts(self, samples: Any) -> Tensor:
        target = samples.target
        counts = self.leaves.new_zeros(2, self.n_stumps * target.n_statistics)
        for rows, group, went_right in self._iter_branches(samples):
            h = hard_responsibilities(went_right.reshape(-1, 1).to(counts), self.structure)
            weight, y = (part[rows].repeat_interleave(self.n_candidates, dim=0) for part in (samples.weight, samples.y))
            counts += target.statistics(h * weight[:, None], y, self.stump_index(group), self.n_stumps)
        return counts

    def _iter_branches(self, samples: Samples) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Rows, their groups, and which candidates send them right.  (b,), (b,), (b, n_candidates)"""
        in_place = samples.reads_in_place(self.splits)
        pieces = (samples.pieces(part, in_place=in_place) for part in (self.groups.rows, self.groups.group))
        for rows, group in zip(*pieces, strict=True):
            yield rows, group, samples.goes_right(self.splits, rows, group).reshape(len(rows), self.n_candidates)

    @torch.no_grad()
    def outcome(self, samples: Samples, min_rows: int, min_weight: float) -> Outcome:
        """Select the best candidate of every node by its gain on hard counts, and route its rows.

        A split is accepted only if both sides keep ``min_rows`` rows that weigh ``min_weight`` together.
        """
        target, device = samples.target, samples.device
        n_nodes, n_candidates = len(self.groups.sizes), self.n_candidates
        right = torch.zeros(n_nodes, n_candidates, target.n_statistics, dtype=torch.float64, device=device)
        everyone = torch.zeros(n_nodes, target.n_statistics, dtype=torch.float64, device=device)
        n_right = torch.zeros(n_nodes, n_candidates, dtype=torch.long, device=device)
        branches = []
        for rows, group, went_right in self._iter_branches(samples):
            y, weight = samples.y[rows], samples.weight[rows].double()
            right += target.tally(y, went_right * weight[:, None], group, n_nodes)
            everyone += target.tally(y, weight, group, n_nodes)
            if n_candidates == 1:  # torch adds numbers many times quicker than rows of one number
                n_right[:, 0].index_add_(0, group, went_right[:, 0].long())
            else:
                n_right.index_add_(0, group, went_right.long())
            branches.append(went_right)
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
            splits=self.splits.select_candidates(best).detach(),
            tables=tables[torch.from_numpy(nodes).to(device), best],
            gains=gains[nodes, winner],
            weights=node_weight[:, 0],
            accepted=accepted[nodes, winner],
            goes_right=torch.cat(branches).gather(1, best[self.groups.group][:, None])[:, 0],
        )


class SummedLevel(Stumps):
    """The stumps of one level in training, on rows known by their sums only."""

    def __init__(
        self,
        source: SummedRows,
        open_leaves: LeafGroups,
        splits: AbstractSplits,
        leaves: Tensor,
        zeros: Tensor | None = None,
        signs: Tensor | None = None,
    ) -> None:
        groups = Groups(torch.zeros(0, dtype=torch.long), torch.tensor(open_leaves.sizes))
        super().__init__(splits, leaves, groups, zeros=zeros, signs=signs)
        self.source, self.open = source, open_leaves

    def hard_counts(self, samples: Any) -> Tensor:
        left, right = self.source.sides(self.open.tree, self.open.leaves, self.splits.detach())
        counts = np.stack([left.statistics, right.statistics]).reshape(2, -1)
        return torch.from_numpy(counts).to(self.leaves)


@dataclass(frozen=True, eq=False)
class Outcome:
    """Trained stumps: a split, two leaf tables, gain and weight for every node, and where the rows go.

    ``accepted`` says which splits leave enough rows on both sides. Rows in memory have ``goes_right``, which follow the
    ``rows`` of their groups; other rows are known by the sums over both ``sides``.
    """

    splits: AbstractSplits
    tables: Tensor
    gains: npt.NDArray[np.float64]
    weights: npt.NDArray[np.float64]
    accepted: npt.NDArray[np.bool_]
    goes_right: Tensor | None = None
    sides: tuple[Side, Side] | None = None

    def where(self, wanted: npt.NDArray[np.bool_]) -> Outcome:
        """Reject the splits of other nodes."""
        return replace(self, accepted=self.accepted & wanted)

    def or_better(self, other: Outcome, groups: Groups | LeafGroups) -> Outcome:
        """Of every node the split of more gain: this one, or another of the same node."""
        takes = other.accepted & (~self.accepted | (other.gains > self.gains))
        which = torch.from_numpy(takes).to(self.tables.device)
        both = AbstractSplits.concatenate([self.splits, other.splits])
        goes_right, sides = self.goes_right, self.sides
        if goes_right is not None and other.goes_right is not None and isinstance(groups, Groups):
            goes_right = torch.where(which[groups.group], other.goes_right, goes_right)
        if sides is not None and other.sides is not None:
            left, right = (one.where(takes, better) for one, better in zip(sides, other.sides, strict=True))
            sides = left, right
        return Outcome(
            splits=both.select((np.arange(len(takes)) + len(takes) * takes).tolist()),
            tables=torch.where(which[:, None, None], other.tables, self.tables),
            gains=np.where(takes, other.gains, self.gains),
            weights=self.weights,
            accepted=self.accepted | other.accepted,
            goes_right=goes_right,
            sides=sides,
        )


class TreeStumps(NamedTuple):
    """The stumps of one tree, its rows, and where its random numbers come from."""

    stumps: Stumps
    samples: Samples
    generator: torch.Generator


def train_batched_stumps(
    parts: Sequence[TreeStumps],
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
    splits = AbstractSplits.concatenate([one.splits for one in several])
    leaves = torch.cat([one.leaves for one in several], dim=1)
    sizes = torch.cat([one.groups.sizes for one in several])
    rows = torch.arange(int(sizes.sum()), device=sizes.device)
    zeros_of_each = [one.zeros for one in several if one.zeros is not None]
    zeros = torch.cat(zeros_of_each) if zeros_of_each else None
    return Stumps(splits, leaves, Groups(rows, sizes), first.n_candidates, zeros, first.signs)


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
