"""Structure learning: which leaves become splits, level by level or best first."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from crisptree.baselines.thresholds import LeafLimits, best_thresholds, round_down
from crisptree.learning.batches import Groups, group_rows
from crisptree.learning.constraints import Held, begun, with_drawn_features
from crisptree.learning.history import EpochRecord, Listener, StopTraining
from crisptree.learning.plan import Plan
from crisptree.learning.row_routing import leaves_of, reads_in_place
from crisptree.learning.samples import Samples
from crisptree.learning.spec import Limits
from crisptree.learning.starts import best_start
from crisptree.learning.stumps import Outcome, Stumps
from crisptree.learning.together import Part, train_together
from crisptree.learning.train import EpochEnd
from crisptree.splits import AbstractSplits, ObliqueSplits, SplitKind
from crisptree.splits.axis import AxisSplits
from crisptree.structure import TreeStructure
from crisptree.targets import Classes, Gaussians
from crisptree.tree import Tree

TRIES = 6
"""A stump that leaves one side empty starts again from another random direction: one try, and five more."""


LOST = 0.5
"""A trained stump of numbers that gains less than this share of what it began with is put back to its beginning."""


def min_leaf_weight(limits: Limits, samples: Samples) -> float:
    """The weight that each side of a split must keep."""
    return limits.min_weight_fraction_leaf * float(samples.weight.double().sum())


class Found(NamedTuple):
    """Trained stumps and the rows of each."""

    outcome: Outcome
    groups: Groups

    def move(self, leaf_of_row: Tensor, leaf_of_group: dict[int, int]) -> None:
        """Send the rows that some of the stumps turn right to new leaves."""
        new = torch.full((len(self.groups.sizes),), -1, device=leaf_of_row.device)
        groups, leaves = (
            torch.tensor(list(part), device=new.device) for part in (leaf_of_group, leaf_of_group.values())
        )
        new[groups] = leaves
        to = new[self.groups.group]
        moves = self.outcome.turns & (to >= 0)
        leaf_of_row[self.groups.rows[moves]] = to[moves]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A trained stump that waits at a leaf, one of those ``found`` with it.

    ``decrease`` is its gain times the leaf's share of all samples.
    """

    leaf: int
    found: Found
    number: int
    decrease: float


class Request(NamedTuple):
    """What growth asks for: a split for every group of rows, whose leaves are at most ``level`` − 1 below the root."""

    groups: Groups
    level: int


Growth = Generator[Request, Outcome, Tree]
"""A tree that grows: it asks for splits, is sent what was found, and returns itself in the end."""


class Finder(Protocol):
    """How the splits of some open leaves are found; growth itself does not ask how.

    ``tries`` is how often a leaf whose split was not accepted is handed in again.
    """

    tries: ClassVar[int]

    def __call__(self, groups: Groups, level: int) -> Outcome:
        """One split for every group of rows, whose leaves are at most ``level`` − 1 splits below the root."""
        ...


def single_leaf(samples: Samples, kind: SplitKind, generator: torch.Generator) -> Tree:
    """The tree before it grows: one leaf for all rows."""
    splits = kind.initial(samples.weight.new_zeros(0, samples.n_features), generator)
    return Tree(TreeStructure.single_leaf(), splits, samples.table(), samples.target.name)


def grow_balanced(
    samples: Samples, depth: int, kind: SplitKind, generator: torch.Generator, held: Held | None = None
) -> Tree:
    """A random complete tree: every split goes through the mean of the samples, every leaf table is random."""
    structure = TreeStructure.balanced(depth)
    tables = samples.target.random_tables(structure.n_leaves, generator)
    centers = samples.mean().expand(structure.n_splits, -1)
    splits = begun(kind.initial(centers, generator), centers, held, is_sparse=samples.is_sparse)
    return Tree(structure, splits, tables.to(samples.weight), samples.target.name)


def grow(
    tree: Tree,
    samples: Samples,
    plan: Plan,
    limits: Limits,
    kind: SplitKind,
    *,
    generator: torch.Generator,
    on_epoch: Listener | None = None,
    held: Held | None = None,
    n_drawn: int | None = None,
    holds_on: bool = False,
) -> Tree:
    """Grow a tree until the limits hold, each new split trained as a stump on the rows that reach it.

    ``n_drawn`` is how many features a split may have, drawn for each; None lets it have all. ``holds_on`` puts stumps
    of numbers back that training has taken to where they gain little, which is where constant leaves had better end.
    """
    find = TrainedStumps(samples, plan, limits, kind, generator, on_epoch, held, n_drawn, holds_on)
    return grow_with(find, tree, samples, limits, signs=find.signs)


def grow_with(find: Finder, tree: Tree, samples: Samples, limits: Limits, *, signs: Tensor | None = None) -> Tree:
    """Grow a tree until the limits hold, with the splits that ``find`` gives.

    Without ``max_leaf_nodes`` all open leaves of a level are split together; with it the split that adds most to
    the tree's log-likelihood (gain times share of the samples) comes first.
    """

    def find_all(requests: dict[int, Request]) -> list[Outcome]:
        return [find(*request) for request in requests.values()]

    return grow_together(find_all, [growing(tree, samples, limits, find.tries, signs=signs)])[0]


def grow_together(find_all: Callable[[dict[int, Request]], list[Outcome]], growths: Sequence[Growth]) -> list[Tree]:
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


def growing(tree: Tree, samples: Samples, limits: Limits, tries: int = TRIES, *, signs: Tensor | None = None) -> Growth:
    """The growth of one tree, which stops wherever it needs splits; a leaf without a good one asks ``tries`` times.

    Without ``max_depth`` such a leaf then gets the best threshold on one feature, if splits are hyperplanes or
    thresholds of dense rows without ``signs``: growth ends only where leaves are pure or their rows are all alike.
    """
    is_free = limits.max_depth is None and signs is None and not samples.is_sparse and tries > 1
    thresholds = type(tree.splits) if is_free and isinstance(tree.splits, ObliqueSplits | AxisSplits) else None
    growth = _Growth(samples, limits, tries, thresholds)
    in_place = reads_in_place(samples, tree.splits)
    leaf_of_row = torch.cat([leaves_of(tree, samples, rows) for rows in samples.pieces(in_place=in_place)])
    waiting: dict[int, Candidate] = {}
    fresh = list(range(tree.structure.n_leaves))
    while fresh and not _is_full(tree, limits):
        try:
            for candidate in (yield from growth.candidates(tree.structure, fresh, leaf_of_row)):
                waiting[candidate.leaf] = candidate
        except StopTraining:
            return tree
        chosen = _choose(waiting, limits)
        fresh = []
        for number, candidate in enumerate(chosen, start=tree.structure.n_leaves):
            fresh += [candidate.leaf, number]
            del waiting[candidate.leaf]
        if chosen:
            tree = _with_splits(tree, chosen, leaf_of_row)
    return tree


def _with_splits(tree: Tree, chosen: list[Candidate], leaf_of_row: Tensor) -> Tree:
    """The tree with the chosen stumps in the place of their leaves; their rows are moved."""
    splits, tables, n_leaves = [], [], tree.structure.n_leaves
    for _, several in groupby(enumerate(chosen, start=n_leaves), key=lambda one: id(one[1].found)):
        some = list(several)
        found, numbers = some[0][1].found, [candidate.number for _, candidate in some]
        found.move(leaf_of_row, {candidate.number: leaf for leaf, candidate in some})
        splits.append(found.outcome.splits.select(numbers))
        tables.append(found.outcome.tables[torch.tensor(numbers, device=leaf_of_row.device)])
    leaves = [candidate.leaf for candidate in chosen]
    return tree.grown(leaves, AbstractSplits.concatenated(splits), torch.cat(tables))


def _is_full(tree: Tree, limits: Limits) -> bool:
    return limits.max_leaf_nodes is not None and tree.structure.n_leaves >= limits.max_leaf_nodes


def _choose(waiting: dict[int, Candidate], limits: Limits) -> list[Candidate]:
    if limits.max_leaf_nodes is None or not waiting:
        return list(waiting.values())
    return [max(waiting.values(), key=lambda candidate: candidate.decrease)]


@dataclass(frozen=True, eq=False)
class _Growth:
    """What stays the same while a tree grows."""

    samples: Samples
    limits: Limits
    tries: int
    thresholds: type[ObliqueSplits] | type[AxisSplits] | None = None

    def candidates(
        self, structure: TreeStructure, fresh: list[int], leaf_of_row: Tensor
    ) -> Generator[Request, Outcome, list[Candidate]]:
        """Splits for those of the fresh leaves that may be split; useless ones are tried again."""
        leaves, found = self._open(structure, fresh, leaf_of_row), list[Candidate]()
        for _ in range(self.tries):
            if not leaves:
                break
            level = int(structure.leaf_depths[leaves].max()) + 1
            groups = group_rows(leaf_of_row, leaves)
            outcome = yield Request(groups, level)
            found += self._accepted(outcome, groups, leaves)
            leaves = [leaf for leaf, good in zip(leaves, outcome.accepted.tolist(), strict=True) if not good]
        if leaves and self.thresholds is not None:
            groups = group_rows(leaf_of_row, leaves)
            outcome = threshold_stumps(self.thresholds, self.samples, groups, self.limits)
            found += self._accepted(outcome, groups, leaves)
        return found

    def _open(self, structure: TreeStructure, fresh: list[int], leaf_of_row: Tensor) -> list[int]:
        """Leaves that are shallow, large and mixed enough."""
        samples, limits = self.samples, self.limits
        rows = torch.bincount(leaf_of_row, minlength=structure.n_leaves).cpu().numpy()
        ones = torch.ones(len(samples), dtype=torch.float64, device=samples.device)
        there = samples.target.tally(samples.y, ones, leaf_of_row, structure.n_leaves).cpu().numpy()
        good = rows >= max(limits.min_samples_split, 2 * limits.min_samples_leaf)
        good &= samples.target.is_mixed(there)
        if limits.max_depth is not None:
            good &= structure.leaf_depths < limits.max_depth
        return [leaf for leaf in fresh if good[leaf]]

    def _accepted(self, outcome: Outcome, groups: Groups, leaves: list[int]) -> Iterator[Candidate]:
        total = float(self.samples.weight.double().sum())
        decreases = outcome.gains * outcome.weights / total
        found = Found(outcome, groups)
        for number in np.flatnonzero(outcome.accepted & (decreases >= self.limits.min_impurity_decrease)).tolist():
            yield Candidate(leaves[number], found, number, float(decreases[number]))


@torch.no_grad()
def threshold_stumps(
    kind: type[ObliqueSplits] | type[AxisSplits], samples: Samples, groups: Groups, limits: Limits
) -> Outcome:
    """The best threshold on one feature for every group of rows; not accepted where no threshold parts them."""
    target, n_nodes = samples.target, len(groups.sizes)
    least = LeafLimits(limits.min_samples_leaf, min_leaf_weight(limits, samples))
    weight = np.zeros((n_nodes, samples.n_features), dtype=np.float32)
    bias = np.full(n_nodes, -1.0, dtype=np.float32)  # no row goes right
    for node, rows in enumerate(groups.rows.split(groups.sizes.tolist())):
        scores = np.ascontiguousarray(samples.batch(rows).cpu().numpy().T)
        y, row_weight = samples.y[rows].cpu().numpy(), samples.weight[rows].double().cpu().numpy()
        best = best_thresholds(scores, y, row_weight, target.n_values if isinstance(target, Classes) else None, least)
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
    limits: Limits
    kind: SplitKind
    generator: torch.Generator
    on_epoch: Listener | None
    held: Held | None = None
    n_drawn: int | None = None
    holds_on: bool = False

    tries: ClassVar[int] = TRIES

    def __call__(self, groups: Groups, level: int) -> Outcome:
        return found_together([self], [Request(groups, level)])[0]

    def begun(self, groups: Groups) -> tuple[Stumps, Tensor]:
        """Stumps from a random start, and the middle of every group's rows."""
        samples, n_nodes = self.samples, len(groups.sizes)
        n_candidates = samples.n_features if self.kind.compete_by_feature else 1
        centers = samples.group_means(groups.sampled(self.plan))
        splits = begun(self.kind.candidates(centers, self.generator), centers, self.held, is_sparse=samples.is_sparse)
        splits, zeros = with_drawn_features(splits, centers, self.n_drawn, self.generator)
        if self.looks_around and isinstance(splits, ObliqueSplits):
            start, target = best_start(splits, samples, groups, self.generator), samples.target
            sums = start.statistics.reshape(2 * n_nodes, -1)
            tables = target.update(sums, samples.table().expand(2 * n_nodes, -1), 0.0).reshape(2, -1)
            return Stumps(start.splits, tables.to(samples.weight), groups), centers
        tables = samples.target.random_tables(2 * n_nodes * n_candidates, self.generator)
        tables = self._at_nodes(tables, groups, n_candidates).reshape(2, -1).to(samples.weight)
        return Stumps(splits, tables, groups, n_candidates, zeros=zeros, signs=self.signs), centers

    @property
    def looks_around(self) -> bool:
        """Whether stumps begin at the best of some hyperplanes: those of numbers whose weights are free."""
        free = self.held is None and self.n_drawn is None and not self.kind.compete_by_feature
        return free and isinstance(self.samples.target, Gaussians) and not self.samples.is_sparse

    def thinned(self, stumps: Stumps, centers: Tensor) -> Stumps:
        """The stumps with the weights that may stay."""
        assert self.held is not None
        splits, zeros = self.held.thinned(stumps.splits, centers)
        return Stumps(splits, stumps.leaves, stumps.groups, zeros=zeros, signs=self.signs)

    def outcome(self, stumps: Stumps) -> Outcome:
        """What trained stumps do to the rows."""
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
        return None if self.held is None else self.held.signs


def found_together(finders: Sequence[TrainedStumps], requests: Sequence[Request]) -> list[Outcome]:
    """What each of some trees asks for, all of it trained in one batch; only rows and random numbers are their own."""
    plan, held, limits = finders[0].plan, finders[0].held, finders[0].limits
    begins = [finder.begun(request.groups) for finder, request in zip(finders, requests, strict=True)]
    level = max(request.level for request in requests)
    name = f"growth at level {level}"

    def report(end: EpochEnd) -> None:
        if finders[0].on_epoch is not None:
            finders[0].on_epoch(
                EpochRecord(
                    phase="grow",
                    level=level,
                    n_levels=None if limits.max_leaf_nodes else limits.max_depth,
                    n_splits=sum(len(request.groups.sizes) for request in requests),
                    epoch=end.epoch + 1,
                    n_epochs=plan.epochs,
                    steepness=end.steepness,
                    loss=end.loss,
                )
            )

    def trained(stumps: list[Stumps], plan: Plan, on_epoch: Callable[[EpochEnd], None] | None) -> None:
        parts = [Part(one, finder.samples, finder.generator) for one, finder in zip(stumps, finders, strict=True)]
        train_together(parts, plan, on_epoch=on_epoch, name=name)

    def outcomes(stumps: list[Stumps], on_epoch: Callable[[EpochEnd], None] | None) -> list[Outcome]:
        trained(stumps, plan, on_epoch)
        if held is not None and held.chooses:
            centers = [middle for _, middle in begins]
            stumps = [finder.thinned(one, middle) for finder, one, middle in zip(finders, stumps, centers, strict=True)]
            trained(stumps, plan.later_half, None)
        return [finder.outcome(one) for finder, one in zip(finders, stumps, strict=True)]

    if finders[0].looks_around and finders[0].holds_on:
        # Soft turns may lose what a hard one has found: rows beyond both ends pull a hyperplane flat.
        before = [finder.outcome(one) for finder, (one, _) in zip(finders, begins, strict=True)]
        after = outcomes([one for one, _ in begins], report)
        pairs = zip(after, before, (request.groups for request in requests), strict=True)
        return [one.or_better(start.where(one.gains < LOST * start.gains), groups) for one, start, groups in pairs]
    # Signs say what is on the right side, and so do random tables: the other way round is tried too.
    turned = [one.turned() for one, _ in begins] if finders[0].signs is not None else []
    found = outcomes([one for one, _ in begins], report)
    if not turned:
        return found
    others = outcomes(turned, None)
    return [one.or_better(other, request.groups) for one, other, request in zip(found, others, requests, strict=True)]
