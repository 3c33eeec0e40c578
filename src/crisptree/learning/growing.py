"""Structure learning: which leaves become splits, level by level or best first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from crisptree.learning.batches import Groups, group_rows
from crisptree.learning.constraints import Held, begun
from crisptree.learning.history import EpochRecord, Listener, StopTraining
from crisptree.learning.plan import Plan
from crisptree.learning.row_routing import leaves_of, reads_in_place
from crisptree.learning.samples import Samples
from crisptree.learning.spec import Limits
from crisptree.learning.stumps import Outcome, Stumps
from crisptree.learning.train import EpochEnd, train
from crisptree.splits import AbstractSplits, SplitKind
from crisptree.structure import TreeStructure
from crisptree.tree import Tree

TRIES = 6
"""A stump that leaves one side empty starts again from another random direction: one try, and five more."""


def min_leaf_weight(limits: Limits, samples: Samples) -> float:
    """The weight that each side of a split must keep."""
    return limits.min_weight_fraction_leaf * float(samples.weight.double().sum())


@dataclass(frozen=True, eq=False)
class Candidate:
    """A trained stump that waits at a leaf. ``decrease`` is its gain times the leaf's share of all samples."""

    leaf: int
    splits: AbstractSplits
    table: Tensor
    decrease: float
    right_rows: Tensor


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
) -> Tree:
    """Grow a tree until the limits hold, each new split trained as a stump on the rows that reach it."""
    return grow_with(TrainedStumps(samples, plan, limits, kind, generator, on_epoch, held), tree, samples, limits)


def grow_with(find: Finder, tree: Tree, samples: Samples, limits: Limits) -> Tree:
    """Grow a tree until the limits hold, with the splits that ``find`` gives.

    Without ``max_leaf_nodes`` all open leaves of a level are split together; with it the split that adds most to
    the tree's log-likelihood (gain times share of the samples) comes first.
    """
    growth = _Growth(find, samples, limits)
    in_place = reads_in_place(samples, tree.splits)
    leaf_of_row = torch.cat([leaves_of(tree, samples, rows) for rows in samples.pieces(in_place=in_place)])
    waiting: dict[int, Candidate] = {}
    fresh = list(range(tree.structure.n_leaves))
    while fresh and not _is_full(tree, limits):
        try:
            for candidate in growth.candidates(tree.structure, fresh, leaf_of_row):
                waiting[candidate.leaf] = candidate
        except StopTraining:
            return tree
        chosen = _choose(waiting, limits)
        fresh = []
        for number, candidate in enumerate(chosen, start=tree.structure.n_leaves):
            leaf_of_row[candidate.right_rows] = number
            fresh += [candidate.leaf, number]
            del waiting[candidate.leaf]
        if chosen:
            splits = AbstractSplits.concatenated([candidate.splits for candidate in chosen])
            tables = torch.stack([candidate.table for candidate in chosen])
            tree = tree.grown([candidate.leaf for candidate in chosen], splits, tables)
    return tree


def _is_full(tree: Tree, limits: Limits) -> bool:
    return limits.max_leaf_nodes is not None and tree.structure.n_leaves >= limits.max_leaf_nodes


def _choose(waiting: dict[int, Candidate], limits: Limits) -> list[Candidate]:
    if limits.max_leaf_nodes is None or not waiting:
        return list(waiting.values())
    return [max(waiting.values(), key=lambda candidate: candidate.decrease)]


@dataclass(frozen=True, eq=False)
class _Growth:
    """What stays the same while a tree grows."""

    find: Finder
    samples: Samples
    limits: Limits

    def candidates(self, structure: TreeStructure, fresh: list[int], leaf_of_row: Tensor) -> Iterator[Candidate]:
        """Splits for those of the fresh leaves that may be split; useless ones are tried again."""
        leaves = self._open(structure, fresh, leaf_of_row)
        for _ in range(self.find.tries):
            if not leaves:
                return
            level = int(structure.leaf_depths[leaves].max()) + 1
            groups = group_rows(leaf_of_row, leaves)
            outcome = self.find(groups, level)
            yield from self._accepted(outcome, groups, leaves)
            leaves = [leaf for leaf, good in zip(leaves, outcome.accepted.tolist(), strict=True) if not good]

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
        accepted = outcome.accepted
        sizes = groups.sizes.tolist()
        pieces = zip(groups.rows.split(sizes), outcome.turns.split(sizes), strict=True)
        for number, (rows, turns) in enumerate(pieces):
            if accepted[number] and decreases[number] >= self.limits.min_impurity_decrease:
                yield Candidate(
                    leaf=leaves[number],
                    splits=outcome.splits.select([number]),
                    table=outcome.tables[number],
                    decrease=float(decreases[number]),
                    right_rows=rows[turns],
                )


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

    tries: ClassVar[int] = TRIES

    def __call__(self, groups: Groups, level: int) -> Outcome:
        samples, n_nodes = self.samples, len(groups.sizes)
        n_candidates = samples.n_features if self.kind.compete_by_feature else 1
        centers = samples.group_means(groups.sampled(self.plan))
        splits = begun(self.kind.candidates(centers, self.generator), centers, self.held, is_sparse=samples.is_sparse)
        tables = samples.target.random_tables(2 * n_nodes * n_candidates, self.generator)
        tables = self._at_nodes(tables, groups, n_candidates).reshape(2, -1).to(samples.weight)
        name = f"growth at level {level}"

        def report(end: EpochEnd) -> None:
            if self.on_epoch is not None:
                self.on_epoch(
                    EpochRecord(
                        phase="grow",
                        level=level,
                        n_levels=None if self.limits.max_leaf_nodes else self.limits.max_depth,
                        n_splits=n_nodes,
                        epoch=end.epoch + 1,
                        n_epochs=self.plan.epochs,
                        steepness=end.steepness,
                        loss=end.loss,
                    )
                )

        def outcome(tables: Tensor, on_epoch: Callable[[EpochEnd], None] | None) -> Outcome:
            stumps = Stumps(splits, tables, groups, n_candidates, signs=self.signs)
            train(stumps, samples, self.plan, generator=self.generator, on_epoch=on_epoch, name=name)
            if self.held is not None and self.held.chooses:
                thinned, zeros = self.held.thinned(stumps.splits, centers)
                stumps = Stumps(thinned, stumps.leaves, groups, zeros=zeros, signs=self.signs)
                train(stumps, samples, self.plan.later_half, generator=self.generator, name=name)
            return stumps.outcome(samples, self.limits.min_samples_leaf, min_leaf_weight(self.limits, samples))

        found = outcome(tables, report)
        # Signs say what is on the right side, and so do random tables: the other way round is tried too.
        return found if self.signs is None else found.or_better(outcome(tables.flip(0), None), groups)

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
