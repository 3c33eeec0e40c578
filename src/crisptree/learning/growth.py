"""Structure learning: which leaves become splits, level by level or best first; every split begins as a stump.

All unresolved leaves of a tree are trained as one batch of stumps. Each row belongs to exactly one node, so m stumps
are m splits in one loop; for the equations they are ONE stump in which every row has a node index, and the leaf tables
of all nodes stand side by side.

There is one grower. It asks a ``Routing`` where the rows are and a ``Finder`` for splits: rows in memory are routed one
by one, other rows are known by the sums over each leaf.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.equations.alternating import hard_responsibilities
from crisptree.learning.cart import LeafLimits, best_thresholds, round_down
from crisptree.learning.engines.base import Groups, Models, group_rows
from crisptree.learning.history import EpochCallback, StopTraining
from crisptree.learning.initialisation import find_initial_splits, search_initial_splits
from crisptree.learning.joint_stumps import TreeStumps, train_jointly
from crisptree.learning.loop import EpochEnd, make_reporter, train
from crisptree.learning.options import (
    LBFGS,
    GrowthLimits,
    Patch,
    Plan,
    WeightConstraints,
    constrain_start,
    with_drawn_features,
)
from crisptree.learning.samples import LeafGroups, RowSource, Samples, Side, SummedRows
from crisptree.splits import AbstractSplits, ObliqueSplits, SplitKind
from crisptree.splits.base import AxisSplits
from crisptree.structure import TreeStructure
from crisptree.targets import Target, gain
from crisptree.tree import Tree

TRIES = 6
"""A stump that leaves one side empty starts again from another random direction: one try, and five more."""

LOST = 0.5
"""A trained stump of a regression that gains less than this share of its initial gain is put back to its start."""

GAIN_DIGITS = 9
"""Gains that agree in so many decimals are equal, and the first candidate wins: rounding must not choose a feature."""


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

    def restart(self, splits: AbstractSplits, leaves: Tensor, zeros: Tensor | None) -> Self:
        """Return the same stumps with other parameters to start from."""
        other = copy(self)
        other.splits, other.leaves, other.zeros = splits.trainable(), leaves, zeros
        return other

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
        overall = torch.zeros(n_nodes, target.n_statistics, dtype=torch.float64, device=device)
        n_right = torch.zeros(n_nodes, n_candidates, dtype=torch.long, device=device)
        branches = []
        for rows, group, went_right in self._iter_branches(samples):
            y, weight = samples.y[rows], samples.weight[rows].double()
            right += target.tally(y, went_right * weight[:, None], group, n_nodes)
            overall += target.tally(y, weight, group, n_nodes)
            if n_candidates == 1:  # torch adds numbers many times quicker than rows of one number
                n_right[:, 0].index_add_(0, group, went_right[:, 0].long())
            else:
                n_right.index_add_(0, group, went_right.long())
            branches.append(went_right)
        on_right, total = right.cpu().numpy(), overall.cpu().numpy()[:, None]
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
        signs: Tensor | None = None,
    ) -> None:
        groups = Groups(torch.zeros(0, dtype=torch.long), torch.tensor(open_leaves.sizes))
        super().__init__(splits, leaves, groups, signs=signs)
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


def min_leaf_weight(limits: GrowthLimits, samples: Samples) -> float:
    """Return the weight that each side of a split must keep."""
    return limits.min_weight_fraction_leaf * float(samples.weight.double().sum())


class Request(NamedTuple):
    """Request of growth: a split for every group of rows, whose leaves are at depth ``level`` − 1 at most."""

    groups: Any
    level: int


Growth = Generator[Request, Outcome, Tree]
"""A tree that grows: it asks for splits, is sent what was found, and returns itself in the end."""


class Finder(Protocol):
    """Finds one split for every group of rows, whose leaves are at most ``level`` − 1 splits below the root.

    ``tries`` is how often a leaf whose split was not accepted is handed in again.
    """

    tries: ClassVar[int]

    def __call__(self, groups: Any, level: int) -> Outcome: ...


class Routing(ABC):
    """Leaf of every row while a tree grows."""

    retries_later = False
    total_weight: float

    @abstractmethod
    def counts(self, n_leaves: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
        """Return number of rows and statistics of every leaf.  (n_leaves,), (n_leaves, n_statistics)"""

    @abstractmethod
    def groups(self, tree: Tree, leaves: list[int]) -> Any:
        """Return the rows of some leaves, as finders take them."""

    @abstractmethod
    def move(self, found: TrainedLevel, leaf_of_group: dict[int, int]) -> None:
        """Move the rows that some of the trained stumps send right to new leaves."""


class TrainedLevel(NamedTuple):
    """Trained stumps and the rows of each."""

    outcome: Outcome
    groups: Any


class RowRouting(Routing):
    """The leaf of every row in memory."""

    def __init__(self, samples: Samples, tree: Tree) -> None:
        self.samples = samples
        self.leaf_of_row = samples.all_leaves(tree)
        self.total_weight = float(samples.weight.double().sum())

    def counts(self, n_leaves: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
        samples = self.samples
        rows = torch.bincount(self.leaf_of_row, minlength=n_leaves).cpu().numpy()
        ones = torch.ones(len(samples), dtype=torch.float64, device=samples.device)
        return rows, samples.target.tally(samples.y, ones, self.leaf_of_row, n_leaves).cpu().numpy()

    def groups(self, tree: Tree, leaves: list[int]) -> Groups:
        return group_rows(self.leaf_of_row, leaves)

    def move(self, found: TrainedLevel, leaf_of_group: dict[int, int]) -> None:
        groups, goes_right = found.groups, found.outcome.goes_right
        assert goes_right is not None
        device = self.leaf_of_row.device
        new = torch.full((len(groups.sizes),), -1, device=device)
        numbers, leaves = (torch.tensor(list(part), device=device) for part in (leaf_of_group, leaf_of_group.values()))
        new[numbers] = leaves
        to = new[groups.group]
        moves = goes_right & (to >= 0)
        self.leaf_of_row[groups.rows[moves]] = to[moves]


class SummedRouting(Routing):
    """The sums over every leaf of rows that are not in memory; growth begins at a single leaf."""

    def __init__(self, rows: RowSource) -> None:
        assert isinstance(rows, SummedRows)
        self.rows, self.states = rows, {0: rows.root}
        self.retries_later = rows.retries_later
        self.total_weight = float(rows.target.weight(rows.root.statistics))

    def counts(self, n_leaves: int) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
        states = [self.states[leaf] for leaf in range(n_leaves)]
        return np.array([state.n_rows for state in states]), np.stack([state.statistics for state in states])

    def groups(self, tree: Tree, leaves: list[int]) -> LeafGroups:
        return LeafGroups(tree, leaves, [self.states[leaf] for leaf in leaves])

    def move(self, found: TrainedLevel, leaf_of_group: dict[int, int]) -> None:
        assert found.outcome.sides is not None
        for number, leaf in leaf_of_group.items():
            sides = (side.leaf(number, self.rows.target, self.rows.weight) for side in found.outcome.sides)
            self.states[found.groups.leaves[number]], self.states[leaf] = sides


@dataclass(frozen=True, eq=False)
class Candidate:
    """A trained stump that waits at a leaf, one of those ``found`` with it.

    ``decrease`` is its gain times the leaf's share of all samples.
    """

    leaf: int
    found: TrainedLevel
    number: int
    decrease: float


def single_leaf(samples: RowSource, kind: SplitKind, generator: torch.Generator) -> Tree:
    """Return the tree before it grows: one leaf for all rows."""
    splits = kind.initial(samples.weight.new_zeros(0, samples.n_features), generator)
    return Tree(TreeStructure.single_leaf(), splits, samples.table(), samples.target.name)


def grow(
    tree: Tree,
    samples: RowSource,
    plan: Plan,
    limits: GrowthLimits,
    kind: SplitKind,
    *,
    generator: torch.Generator,
    on_epoch: EpochCallback | None = None,
    constraints: WeightConstraints | None = None,
    n_drawn: int | Patch | None = None,
    holds_on: bool = False,
) -> Tree:
    """Grow a tree until the limits hold, each new split trained as a stump on the rows that reach it.

    ``n_drawn`` is how many features a split may have, drawn for each, or the patch of the image; None lets it have all.
    ``holds_on`` puts stumps of regressions back that gain little after training, which is where constant leaves had
    better end.
    """
    options = (plan, limits, kind, generator, on_epoch, constraints, n_drawn, holds_on)
    if isinstance(samples, Samples):
        find = TrainedStumps(samples, *options)
    else:
        assert isinstance(samples, SummedRows)
        find = SummedStumps(samples, *options)
    return grow_with(find, tree, samples, limits, signs=find.signs)


def grow_with(
    find: Finder, tree: Tree, samples: RowSource, limits: GrowthLimits, *, signs: Tensor | None = None
) -> Tree:
    """Grow a tree until the limits hold, with the splits that ``find`` gives.

    Without ``max_leaf_nodes`` all open leaves of a level are split together; with it the split that adds most to
    the tree's log-likelihood (gain times share of the samples) comes first.
    """

    def find_all(requests: dict[int, Request]) -> list[Outcome]:
        return [find(*request) for request in requests.values()]

    return grow_side_by_side(find_all, [grow_by_requests(tree, samples, limits, find.tries, signs=signs)])[0]


def grow_side_by_side(find_all: Callable[[dict[int, Request]], list[Outcome]], growths: Sequence[Growth]) -> list[Tree]:
    """Grow some trees side by side: what all of them ask for, by their numbers, is found at once."""
    requests: dict[int, Request] = {}
    trees: dict[int, Tree] = {}

    def go_on(number: int, resume: Callable[[], Request]) -> None:
        try:
            requests[number] = resume()
        except StopIteration as end:
            trees[number] = end.value
            requests.pop(number, None)

    for number, growth in enumerate(growths):
        go_on(number, lambda growth=growth: next(growth))  # type: ignore[misc]
    while requests:
        asked = list(requests)
        try:
            found = find_all(requests)
        except StopTraining as stop:
            for number in asked:
                go_on(number, lambda number=number, stop=stop: growths[number].throw(stop))  # type: ignore[misc]
            continue
        for number, outcome in zip(asked, found, strict=True):
            go_on(number, lambda number=number, outcome=outcome: growths[number].send(outcome))  # type: ignore[misc]
    return [trees[number] for number in range(len(growths))]


def grow_by_requests(
    tree: Tree, samples: RowSource, limits: GrowthLimits, tries: int = TRIES, *, signs: Tensor | None = None
) -> Growth:
    """Grow one tree as a generator that requests splits; a leaf without a good one requests it ``tries`` times.

    Without ``max_depth`` such a leaf then gets the best threshold on one feature, if splits are hyperplanes or
    thresholds of dense rows in memory without ``signs``: growth ends where leaves are pure or their rows all alike.
    """
    routing = RowRouting(samples, tree) if isinstance(samples, Samples) else SummedRouting(samples)
    is_free = limits.max_depth is None and signs is None and not samples.is_sparse and tries > 1
    waiting: dict[int, Candidate] = {}
    failures: Counter[int] = Counter()
    fresh = list(range(tree.structure.n_leaves))
    while fresh and not _is_full(tree, limits):
        leaves = _open_leaves(tree.structure, fresh, routing, limits, samples.target)
        try:
            for _ in range(1 if routing.retries_later else tries):
                if not leaves:
                    break
                groups = routing.groups(tree, leaves)
                outcome = yield Request(groups, int(tree.structure.leaf_depths[leaves].max()) + 1)
                for candidate in _candidates(outcome, groups, leaves, limits, routing.total_weight):
                    waiting[candidate.leaf] = candidate
                leaves = [leaf for leaf, good in zip(leaves, outcome.accepted.tolist(), strict=True) if not good]
            if leaves and is_free and isinstance(samples, Samples):
                for candidate in _threshold_candidates(tree, samples, routing, leaves, limits):
                    waiting[candidate.leaf] = candidate
        except StopTraining:
            return tree
        failures.update(leaves)
        selected = _select_candidates(waiting, limits)
        fresh = [leaf for leaf in leaves if failures[leaf] < tries] if routing.retries_later else []
        for number, candidate in enumerate(selected, start=tree.structure.n_leaves):
            fresh += [candidate.leaf, number]
            failures[candidate.leaf] = 0
            del waiting[candidate.leaf]
        if selected:
            tree = _with_splits(tree, selected, routing)
    return tree


def _with_splits(tree: Tree, selected: list[Candidate], routing: Routing) -> Tree:
    """Replace the selected leaves by their stumps, and route their rows."""
    splits, tables, n_leaves = [], [], tree.structure.n_leaves
    for _, several in groupby(enumerate(selected, start=n_leaves), key=lambda one: id(one[1].found)):
        some = list(several)
        found, numbers = some[0][1].found, [candidate.number for _, candidate in some]
        routing.move(found, {candidate.number: leaf for leaf, candidate in some})
        splits.append(found.outcome.splits.select(numbers))
        tables.append(found.outcome.tables[torch.tensor(numbers, device=found.outcome.tables.device)])
    leaves = [candidate.leaf for candidate in selected]
    return tree.split_leaves(leaves, AbstractSplits.concatenate(splits), torch.cat(tables))


def _is_full(tree: Tree, limits: GrowthLimits) -> bool:
    return limits.max_leaf_nodes is not None and tree.structure.n_leaves >= limits.max_leaf_nodes


def _select_candidates(waiting: dict[int, Candidate], limits: GrowthLimits) -> list[Candidate]:
    if limits.max_leaf_nodes is None or not waiting:
        return list(waiting.values())
    return [max(waiting.values(), key=lambda candidate: candidate.decrease)]


def _open_leaves(
    structure: TreeStructure, fresh: list[int], routing: Routing, limits: GrowthLimits, target: Target
) -> list[int]:
    """Return leaves that are shallow, large and mixed enough."""
    rows, statistics = routing.counts(structure.n_leaves)
    good = rows >= max(limits.min_samples_split, 2 * limits.min_samples_leaf)
    good &= target.is_mixed(statistics)
    if limits.max_depth is not None:
        good &= structure.leaf_depths < limits.max_depth
    return [leaf for leaf in fresh if good[leaf]]


def _candidates(
    outcome: Outcome, groups: Any, leaves: list[int], limits: GrowthLimits, total_weight: float
) -> Iterator[Candidate]:
    decreases = outcome.gains * outcome.weights / total_weight
    found = TrainedLevel(outcome, groups)
    for number in np.flatnonzero(outcome.accepted & (decreases >= limits.min_impurity_decrease)).tolist():
        yield Candidate(leaves[number], found, number, float(decreases[number]))


def _threshold_candidates(
    tree: Tree, samples: Samples, routing: Routing, leaves: list[int], limits: GrowthLimits
) -> Iterator[Candidate]:
    """Yield the best thresholds of single features at leaves where no trained stump parts the rows."""
    if isinstance(tree.splits, ObliqueSplits | AxisSplits):
        groups = routing.groups(tree, leaves)
        outcome = threshold_stumps(type(tree.splits), samples, groups, limits)
        yield from _candidates(outcome, groups, leaves, limits, routing.total_weight)


@torch.no_grad()
def threshold_stumps(
    kind: type[ObliqueSplits] | type[AxisSplits], samples: Samples, groups: Groups, limits: GrowthLimits
) -> Outcome:
    """Return the best threshold on one feature for every group of rows; not accepted where no threshold parts them."""
    target, n_nodes = samples.target, len(groups.sizes)
    least = LeafLimits(limits.min_samples_leaf, min_leaf_weight(limits, samples))
    weight = np.zeros((n_nodes, samples.n_features), dtype=np.float32)
    bias = np.full(n_nodes, -1.0, dtype=np.float32)  # no row goes right
    for node, rows in enumerate(groups.rows.split(groups.sizes.tolist())):
        scores = np.ascontiguousarray(samples.batch(rows).cpu().numpy().T)
        y, row_weight = samples.y[rows].cpu().numpy(), samples.weight[rows].double().cpu().numpy()
        best = best_thresholds(scores, y, row_weight, target.n_classes, least)
        feature = best.best_line()
        if feature is not None:
            weight[node, feature], bias[node] = 1.0, -round_down(best.threshold[feature])
    splits = kind.from_hyperplanes(*(torch.from_numpy(part).to(samples.weight) for part in (weight, bias)))
    before = samples.table().expand(2 * n_nodes, -1)
    stumps = Stumps(splits, before.reshape(2, -1), groups)
    statistics = stumps.hard_counts(samples).reshape(-1, target.n_statistics)
    stumps.leaves = target.update(statistics, before, 0.0).reshape(2, -1)
    return stumps.outcome(samples, *least)


@dataclass(frozen=True, eq=False)
class TrainedStumps:
    """Finds splits by training a probabilistic stump at every leaf, from a random start."""

    samples: Samples
    plan: Plan
    limits: GrowthLimits
    kind: SplitKind
    generator: torch.Generator
    on_epoch: EpochCallback | None
    constraints: WeightConstraints | None = None
    n_drawn: int | Patch | None = None
    holds_on: bool = False

    tries: ClassVar[int] = TRIES

    def __call__(self, groups: Groups, level: int) -> Outcome:
        return find_batched_stumps([self], [Request(groups, level)])[0]

    def begin(self, groups: Groups) -> tuple[Stumps, Tensor]:
        """Stumps from a random start, and the middle of every group's rows."""
        samples, n_nodes = self.samples, len(groups.sizes)
        n_candidates = samples.n_features if self.kind.compete_by_feature else 1
        centers = samples.group_means(groups.sample(self.plan))
        splits = constrain_start(
            self.kind.candidates(centers, self.generator), centers, self.constraints, is_sparse=samples.is_sparse
        )
        splits, zeros = with_drawn_features(splits, centers, self.n_drawn, self.plan.image_shape, self.generator)
        if self.searches_start and isinstance(splits, ObliqueSplits):
            start, target = find_initial_splits(splits, samples, groups, self.generator), samples.target
            sums = start.statistics.reshape(2 * n_nodes, -1)
            tables = target.update(sums, samples.table().expand(2 * n_nodes, -1), 0.0).reshape(2, -1)
            return Stumps(start.splits, tables.to(samples.weight), groups), centers
        tables = samples.target.random_tables(2 * n_nodes * n_candidates, self.generator)
        tables = self._at_nodes(tables, groups, n_candidates).reshape(2, -1).to(samples.weight)
        return Stumps(splits, tables, groups, n_candidates, zeros=zeros, signs=self.signs), centers

    @property
    def searches_start(self) -> bool:
        """True if stumps start at the best of some hyperplanes: in regression with unconstrained weights."""
        free = self.signs is None and self.n_drawn is None and not self.kind.compete_by_feature
        return free and self.samples.target.is_regression and not self.samples.is_sparse

    def outcome(self, stumps: Stumps) -> Outcome:
        """Return the partition of the rows by trained stumps."""
        least = min_leaf_weight(self.limits, self.samples)
        return stumps.outcome(self.samples, self.limits.min_samples_leaf, least)

    def _at_nodes(self, tables: Tensor, groups: Groups, n_candidates: int) -> Tensor:
        """Random tables, moved to where the y of every node's rows are, if the target says that they must."""
        samples, target = self.samples, self.samples.target
        if not target.starts_at_node:
            return tables
        rows, n_nodes = groups.rows, len(groups.sizes)
        sums = target.tally(samples.y[rows], samples.weight[rows].double(), groups.group, n_nodes)
        sums = sums.repeat_interleave(n_candidates, dim=0)
        return target.stump_tables(tables.reshape(2, len(sums), -1).to(sums.device), sums)

    @property
    def signs(self) -> Tensor | None:
        return None if self.constraints is None else self.constraints.signs


def find_batched_stumps(finders: Sequence[TrainedStumps], requests: Sequence[Request]) -> list[Outcome]:
    """Train the requests of several trees in one batch; rows and random numbers are separate."""
    plan, constraints, limits = finders[0].plan, finders[0].constraints, finders[0].limits
    begins = [finder.begin(request.groups) for finder, request in zip(finders, requests, strict=True)]
    level = max(request.level for request in requests)
    name = f"growth at level {level}"

    report = make_reporter(
        finders[0].on_epoch,
        phase="grow",
        level=level,
        n_levels=None if limits.max_leaf_nodes else limits.max_depth,
        n_splits=sum(len(request.groups.sizes) for request in requests),
        n_epochs=plan.epochs,
    )

    def trained(stumps: list[Stumps], plan: Plan, on_epoch: Callable[[EpochEnd], None] | None) -> None:
        parts = [TreeStumps(one, finder.samples, finder.generator) for one, finder in zip(stumps, finders, strict=True)]
        if len(parts) > 1:
            train_jointly(parts, plan, on_epoch=on_epoch, name=name)
        else:
            (only,) = parts
            train(only.stumps, only.samples, plan, generator=only.generator, on_epoch=on_epoch, name=name)

    def outcomes(stumps: list[Stumps], on_epoch: Callable[[EpochEnd], None] | None) -> list[Outcome]:
        trained(stumps, plan, on_epoch)
        if constraints is not None and constraints.removes_weights:
            centers = [middle for _, middle in begins]
            n_features = finders[0].samples.n_features
            for stage in constraints.list_stages(n_features) if plan.optimizer == LBFGS else [constraints]:
                thinned = [stage.thin(one.splits, middle) for one, middle in zip(stumps, centers, strict=True)]
                pairs = zip(stumps, thinned, strict=True)
                stumps = [one.restart(splits, one.leaves, zeros) for one, (splits, zeros) in pairs]
                trained(stumps, plan.later_half, None)
        return [finder.outcome(one) for finder, one in zip(finders, stumps, strict=True)]

    if finders[0].searches_start and finders[0].holds_on:
        # Soft turns may lose what a hard one has found: rows beyond both ends pull a hyperplane flat.
        before = [finder.outcome(one) for finder, (one, _) in zip(finders, begins, strict=True)]
        after = outcomes([one for one, _ in begins], report)
        pairs = zip(after, before, (request.groups for request in requests), strict=True)
        return [one.or_better(start.where(one.gains < LOST * start.gains), groups) for one, start, groups in pairs]
    # Signs say what is on the right side, and so do random tables: the other way round is tried too.
    several = begins if finders[0].signs is not None else []
    swapped = [one.restart(one.splits, one.leaves.flip(0), one.zeros) for one, _ in several]
    found = outcomes([one for one, _ in begins], report)
    if not swapped:
        return found
    others = outcomes(swapped, None)
    return [one.or_better(other, request.groups) for one, other, request in zip(found, others, requests, strict=True)]


@dataclass(frozen=True, eq=False)
class SummedStumps(TrainedStumps):
    """Finds splits by training stumps on rows that are summed over, from a random start."""

    samples: SummedRows  # type: ignore[assignment]

    def begin(self, groups: LeafGroups) -> tuple[Stumps, Tensor]:  # type: ignore[override]
        rows, centers = self.samples, groups.centers
        splits = constrain_start(
            self.kind.candidates(centers, self.generator), centers, self.constraints, is_sparse=False
        )
        statistics = torch.from_numpy(np.stack([state.statistics for state in groups.states]))
        tables = rows.target.random_tables(2 * len(statistics), self.generator).reshape(2, len(statistics), -1)
        tables = rows.target.stump_tables(tables, statistics).reshape(2, -1).to(rows.weight)
        if rows.sample is not None and self.constraints is None and rows.target.is_regression:
            splits, tables = search_initial_splits(
                splits, tables, groups.tree, groups.leaves, rows.sample, self.generator
            )
        return SummedLevel(rows, groups, splits, tables, signs=self.signs), centers

    def outcome(self, stumps: Stumps) -> Outcome:
        assert isinstance(stumps, SummedLevel)
        rows, open_leaves, target = self.samples, stumps.open, self.samples.target
        left, right = rows.sides(open_leaves.tree, open_leaves.leaves, stumps.splits.detach())
        weights = target.weight(left.statistics), target.weight(right.statistics)
        least = self.limits.min_weight_fraction_leaf * float(target.weight(rows.root.statistics))
        accepted = np.minimum(left.n_rows, right.n_rows) >= max(self.limits.min_samples_leaf, 1)
        accepted &= np.minimum(*weights) >= least
        return Outcome(
            splits=stumps.splits.detach(),
            tables=stumps.leaves.reshape(2, len(open_leaves.leaves), -1).transpose(0, 1),
            gains=gain(target, left.statistics, right.statistics),
            weights=weights[0] + weights[1],
            accepted=accepted,
            sides=(left, right),
        )
