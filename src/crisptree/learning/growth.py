"""Structure learning: which leaves become splits, level by level or best first.

There is one grower. It asks a ``Routing`` where the rows are and a ``Finder`` for splits: rows in memory are routed one
by one, other rows are known by the sums over each leaf.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.learning.cart import LeafLimits, best_thresholds, round_down
from crisptree.learning.history import EpochCallback, StopTraining
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
from crisptree.learning.samples import Groups, Samples, group_rows
from crisptree.learning.sources.base import LeafGroups, SummedRows
from crisptree.learning.stumps import (
    Outcome,
    Stumps,
    SummedLevel,
    TreeStumps,
    find_initial_splits,
    init_stump_tables,
    search_initial_splits,
    train_batched_stumps,
)
from crisptree.splits import AbstractSplits, ObliqueSplits, SplitKind
from crisptree.splits.base import AxisSplits
from crisptree.structure import TreeStructure
from crisptree.targets import Target, gain
from crisptree.tree import Tree

TRIES = 6
"""A stump that leaves one side empty starts again from another random direction: one try, and five more."""


LOST = 0.5
"""A trained stump of a regression that gains less than this share of its initial gain is put back to its start."""


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

    def __init__(self, rows: SummedRows) -> None:
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


def single_leaf(samples: Samples | SummedRows, kind: SplitKind, generator: torch.Generator) -> Tree:
    """Return the tree before it grows: one leaf for all rows."""
    splits = kind.initial(samples.weight.new_zeros(0, samples.n_features), generator)
    return Tree(TreeStructure.single_leaf(), splits, samples.table(), samples.target.name)


def grow_balanced(
    samples: Samples,
    depth: int,
    kind: SplitKind,
    generator: torch.Generator,
    constraints: WeightConstraints | None = None,
) -> Tree:
    """Make a random complete tree: every split passes through the mean of the samples, every leaf table is random."""
    structure = TreeStructure.balanced(depth)
    tables = samples.target.random_tables(structure.n_leaves, generator)
    centers = samples.mean().expand(structure.n_splits, -1)
    splits = constrain_start(kind.initial(centers, generator), centers, constraints, is_sparse=samples.is_sparse)
    return Tree(structure, splits, tables.to(samples.weight), samples.target.name)


def grow(
    tree: Tree,
    samples: Samples | SummedRows,
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
    if isinstance(samples, SummedRows):
        return grow_with(
            SummedStumps(samples, plan, limits, kind, generator, on_epoch, constraints), tree, samples, limits
        )
    find = TrainedStumps(samples, plan, limits, kind, generator, on_epoch, constraints, n_drawn, holds_on)
    return grow_with(find, tree, samples, limits, signs=find.signs)


def grow_with(
    find: Finder, tree: Tree, samples: Samples | SummedRows, limits: GrowthLimits, *, signs: Tensor | None = None
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
    tree: Tree, samples: Samples | SummedRows, limits: GrowthLimits, tries: int = TRIES, *, signs: Tensor | None = None
) -> Growth:
    """Grow one tree as a generator that requests splits; a leaf without a good one requests it ``tries`` times.

    Without ``max_depth`` such a leaf then gets the best threshold on one feature, if splits are hyperplanes or
    thresholds of dense rows in memory without ``signs``: growth ends where leaves are pure or their rows all alike.
    """
    routing: Routing = RowRouting(samples, tree) if isinstance(samples, Samples) else SummedRouting(samples)
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

    def thin(self, stumps: Stumps, centers: Tensor, constraints: WeightConstraints) -> Stumps:
        """Set weights of the stumps to zero that the constraints forbid."""
        splits, zeros = constraints.thin(stumps.splits, centers)
        return Stumps(splits, stumps.leaves, stumps.groups, zeros=zeros, signs=self.signs)

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
        train_batched_stumps(parts, plan, on_epoch=on_epoch, name=name)

    def outcomes(stumps: list[Stumps], on_epoch: Callable[[EpochEnd], None] | None) -> list[Outcome]:
        trained(stumps, plan, on_epoch)
        if constraints is not None and constraints.removes_weights:
            centers = [middle for _, middle in begins]
            n_features = finders[0].samples.n_features
            for stage in constraints.list_stages(n_features) if plan.optimizer == LBFGS else [constraints]:
                triples = zip(finders, stumps, centers, strict=True)
                stumps = [finder.thin(one, middle, stage) for finder, one, middle in triples]
                trained(stumps, plan.later_half, None)
        return [finder.outcome(one) for finder, one in zip(finders, stumps, strict=True)]

    if finders[0].searches_start and finders[0].holds_on:
        # Soft turns may lose what a hard one has found: rows beyond both ends pull a hyperplane flat.
        before = [finder.outcome(one) for finder, (one, _) in zip(finders, begins, strict=True)]
        after = outcomes([one for one, _ in begins], report)
        pairs = zip(after, before, (request.groups for request in requests), strict=True)
        return [one.or_better(start.where(one.gains < LOST * start.gains), groups) for one, start, groups in pairs]
    # Signs say what is on the right side, and so do random tables: the other way round is tried too.
    swapped = [one.swap_tables() for one, _ in begins] if finders[0].signs is not None else []
    found = outcomes([one for one, _ in begins], report)
    if not swapped:
        return found
    others = outcomes(swapped, None)
    return [one.or_better(other, request.groups) for one, other, request in zip(found, others, requests, strict=True)]


@dataclass(frozen=True, eq=False)
class SummedStumps:
    """Finds splits by training stumps on rows that are summed over, from a random start."""

    rows: SummedRows
    plan: Plan
    limits: GrowthLimits
    kind: SplitKind
    generator: torch.Generator
    on_epoch: EpochCallback | None
    constraints: WeightConstraints | None = None

    tries: ClassVar[int] = TRIES

    def __call__(self, groups: LeafGroups, level: int) -> Outcome:
        rows, centers = self.rows, groups.centers
        splits = constrain_start(
            self.kind.candidates(centers, self.generator), centers, self.constraints, is_sparse=False
        )
        tables = init_stump_tables(rows.target, [state.statistics for state in groups.states], self.generator)
        tables = tables.to(rows.weight)
        if rows.sample is not None and self.constraints is None:
            splits, tables = search_initial_splits(
                splits, tables, groups.tree, groups.leaves, rows.sample, self.generator
            )
        report = make_reporter(
            self.on_epoch,
            phase="grow",
            level=level,
            n_levels=None if self.limits.max_leaf_nodes else self.limits.max_depth,
            n_splits=len(groups.leaves),
            n_epochs=self.plan.epochs,
        )
        found = self._trained(groups, splits, tables, level, report)
        if self.signs is None:
            return found
        # Signs say what is on the right side, and so do random tables: the other way round is tried too.
        return found.or_better(self._trained(groups, splits, tables.flip(0), level, None), groups)

    @property
    def signs(self) -> Tensor | None:
        return None if self.constraints is None else self.constraints.signs

    def _trained(
        self,
        groups: LeafGroups,
        splits: AbstractSplits,
        tables: Tensor,
        level: int,
        on_epoch: Callable[[EpochEnd], None] | None,
    ) -> Outcome:
        """Stumps after their training, and what they do to the rows."""
        name, rows = f"growth at level {level}", self.rows
        stumps = SummedLevel(rows, groups, splits, tables, signs=self.signs)
        train(stumps, rows, self.plan, generator=self.generator, on_epoch=on_epoch, name=name)
        if self.constraints is not None and self.constraints.removes_weights:
            thinner, zeros = self.constraints.thin(stumps.splits, groups.centers)
            stumps = SummedLevel(rows, groups, thinner, stumps.leaves, zeros, self.signs)
            train(stumps, rows, self.plan.later_half, generator=self.generator, name=name)
        left, right = rows.sides(groups.tree, groups.leaves, stumps.splits.detach())
        target = rows.target
        weights = target.weight(left.statistics), target.weight(right.statistics)
        least = self.limits.min_weight_fraction_leaf * float(target.weight(rows.root.statistics))
        accepted = np.minimum(left.n_rows, right.n_rows) >= max(self.limits.min_samples_leaf, 1)
        accepted &= np.minimum(*weights) >= least
        return Outcome(
            splits=stumps.splits.detach(),
            tables=stumps.leaves.reshape(2, len(groups.leaves), -1).transpose(0, 1),
            gains=gain(target, left.statistics, right.statistics),
            weights=weights[0] + weights[1],
            accepted=accepted,
            sides=(left, right),
        )
