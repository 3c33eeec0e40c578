"""A tree grown, finetuned, made crisp and settled on shards of rows, some of them here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from crisptree.inference import CrispTree
from crisptree.inference.pruning import find_dead_splits, select_nodes
from crisptree.inference.statistics import SufficientStatistics, finalize_from, record_ranges, sum_statistics
from crisptree.learning.batches import Groups
from crisptree.learning.finetuning import Best, TrainedTree, hard_counts
from crisptree.learning.fitting import kind_for, training_on, unsettled_tree
from crisptree.learning.history import EpochRecord, Listener, StopTraining, iteration_of
from crisptree.learning.plan import Plan
from crisptree.learning.problem import SMALLEST_WEIGHT, Part, Problem, varying
from crisptree.learning.row_routing import leaves_of, reads_in_place
from crisptree.learning.samples import Samples
from crisptree.learning.sharded.groups import ShardedGroups
from crisptree.learning.sharded.growing import Growth
from crisptree.learning.sharded.rows import Shards
from crisptree.learning.sharded.team import Team
from crisptree.learning.sharded.work import Doubles, Work
from crisptree.learning.spec import Spec
from crisptree.learning.upper_levels import UpperLevels, stages
from crisptree.rows.base import scaled_rows
from crisptree.splits import AbstractSplits
from crisptree.tree import Tree


def fit_shards(
    spec: Spec,
    problem: Problem,
    shards: Shards,
    held: Shards | None,
    mean_weight: float,
    team: Team,
    on_epoch: Listener | None = None,
    sample: Part | None = None,
) -> tuple[CrispTree, CrispTree, int]:
    """Grow and finetune a tree; the greedy one, the finetuned one and the number of the epoch of finetuning at which
    the latter stood so (0 for none), the same in every process.

    Parameters
    ----------
    spec : Spec
        How.
    problem : Problem
        No rows, but their scaling and what y is.
    shards : Shards
        The rows of this process.
    held : Shards or None
        Rows that judge every epoch of finetuning.
    mean_weight : float
        Of all rows.
    team : Team
        The processes.
    on_epoch : callable, optional
        Hears of every epoch in the first process, which alone may ask to stop.
    sample : Part, optional
        Some of all rows, the same in every process, that tell where stumps of numbers may begin.
    """
    kind = kind_for(spec, problem)
    with training_on(spec, kind, problem) as device:

        def samples_of(part: Part) -> Samples:
            rows = scaled_rows(part.X, problem.scaling, device, spec.n_jobs)
            relative = np.maximum(part.weight / mean_weight, SMALLEST_WEIGHT)
            y, weight = torch.from_numpy(part.y).to(device), torch.from_numpy(relative).float().to(device)
            return Samples(rows, y, weight, problem.target, varying(problem.scaling).to(device), spec.n_jobs)

        ended = Together(team, on_epoch)
        scaled = list(map(samples_of, shards.parts))
        generator = torch.Generator().manual_seed(spec.seed)
        none = samples_of(problem.training)
        common = (none, shards.first, shards.n_shards, team, generator, ended)
        looked_at = none if sample is None else samples_of(sample)
        held_weights = spec.constraints.on(problem.scaling, device)
        work = Work(spec, kind, problem.target, scaled, *common, looked_at, held_weights)
        greedy = TrainedTree(Growth(work).grown(), spec.growth.final_steepness)
        tuned = greedy
        if not ended.asked:
            judges = None if held is None else list(map(samples_of, held.parts))
            tuned = _finetuned(work, greedy, spec.finetuning, judges, ended)
            tuned = _annealed_again(work, tuned, judges, ended)

        def crisp(soft: TrainedTree) -> CrispTree:
            return _crisp(soft, spec, problem, shards, team)

        tree = crisp(tuned)
        return tree if tuned is greedy else crisp(greedy), tree, iteration_of(tuned.record, ended.history)


class Together:
    """The first process hears of every epoch; whether it asks to stop, or fails, all are told."""

    def __init__(self, team: Team, callback: Listener | None) -> None:
        self.team, self.callback, self.asked = team, callback, False
        self.history: list[EpochRecord] = []

    def __call__(self, record: EpochRecord) -> None:
        self.history.append(record)
        self.asked = self.team.by_first(lambda: self._goes_on(record)) is False
        if self.asked:
            raise StopTraining(record)

    def _goes_on(self, record: EpochRecord) -> bool:
        try:
            if self.callback is not None:
                self.callback(record)
        except StopTraining:
            return False
        return True


class Whole:
    """A whole tree in training; the rows of every shard are one group."""

    is_whole_tree = True
    n_places = 1
    models = None

    def __init__(self, work: Work, tree: Tree) -> None:
        self.work, self.start = work, tree
        self.structure, self.leaves = tree.structure, tree.leaves
        self.splits = tree.splits.trainable()
        chooses = work.held is not None and work.held.chooses  # growth has chosen the weights of every split
        self.zeros = tree.splits.parameters["weight"].detach() == 0 if chooses else None
        self.signs = work.signs
        own = [Groups.everything(len(shard), shard.device) for shard in work.shards]
        self.sharded = ShardedGroups.of(own, 1, work.n_shards, work.first, work.team)

    @property
    def groups(self) -> Groups:
        return self.sharded.all

    @cached_property
    def penalty_shares(self) -> Tensor:
        """The part of all rows that visits each split before the training; see ``WholeTree``. All ask for it once."""
        counts = self.structure.sums_below(_hard_counts(self.work, self.start))
        visits, n_rows = self.work.target.weight(counts), int(self.sharded.sizes.sum())
        shares = np.maximum(visits[: self.structure.n_splits] / visits[0], 1 / n_rows)
        return torch.from_numpy(shares).to(self.leaves.device)

    def scores(self, splits: AbstractSplits, x: Tensor, group: Tensor) -> Tensor:
        return splits(x)

    def places(self, group: Tensor) -> None:
        """One for all rows."""

    def tree(self) -> Tree:
        return replace(self.start, splits=self.splits.detached(), leaves=self.leaves.detach().clone())

    def hard_counts(self, samples: Samples) -> Tensor:
        return torch.from_numpy(_hard_counts(self.work, self.tree())).to(self.leaves)


def _finetuned(work: Work, before: TrainedTree, plan: Plan, held: list[Samples] | None, ended: Together) -> TrainedTree:
    """All splits and leaves trained together, of a large tree the upper levels first; before where none was better."""
    tree = before.tree
    if not tree.structure.n_splits or not plan.epochs:
        return before
    start = TrainedTree(tree, plan.steepness_at(0))
    trainee = Whole(work, tree)
    *upper_stages, (_, plan) = stages(plan, tree.structure, int(trainee.sharded.sizes.sum()))
    for stage in upper_stages:
        upper = UpperLevels.of(tree, stage, lambda upper: torch.from_numpy(_hard_counts(work, upper)))
        levels = Whole(work, upper.tree)
        stopped_at = _train_whole(work, levels, stage.plan)
        tree = upper.put_back(levels.tree())
        if stopped_at is not None:
            return TrainedTree(tree, stopped_at, ended.history[-1])
        trainee = Whole(work, tree)
    scored: Callable[[Tree], float] | None = None if held is None else _Score(work, held)
    best = None if scored is None else Best(start, trainee.tree, scored, work.spec.patience)
    n_before = len(ended.history)
    stopped_at = _train_whole(work, trainee, plan, best)
    if work.spec.patience is None or best is None:
        steepness = plan.final_steepness if stopped_at is None else stopped_at
        return TrainedTree(trainee.tree(), steepness, ended.history[-1])
    return before if best.tree is start else best.recorded(ended.history[n_before:])


def _annealed_again(work: Work, best: TrainedTree, held: list[Samples] | None, ended: Together) -> TrainedTree:
    """The best of some further rounds; see ``learning.fitting``."""
    score = _Score(work, work.shards if held is None else held)
    for _ in range(work.spec.reanneal):
        if ended.asked:
            break
        again = _finetuned(work, best, work.spec.finetuning.later_half, held, ended)
        if again is not best and score(again.tree) >= score(best.tree):
            best = again
    return best


def _train_whole(work: Work, trainee: Whole, plan: Plan, judge: Best | None = None) -> float | None:
    """Train a tree; γ of the epoch after which a callback has asked to stop, or None."""
    depth, n_splits = trainee.structure.depth, trainee.structure.n_splits
    try:
        work.train(trainee, trainee.sharded, plan, phase="finetune", level=depth, n_splits=n_splits, judge=judge)
    except StopTraining as stop:
        return plan.steepness_at(stop.args[0].epoch - 1)
    return None


@dataclass(frozen=True, eq=False)
class _Score:
    """The accuracy of the deterministic tree on the rows that are held out in all processes."""

    work: Work
    held: list[Samples]

    def __call__(self, tree: Tree) -> float:
        tables = tree.hard_tables(torch.from_numpy(_hard_counts(self.work, tree)).to(tree.leaves))
        found = []
        for samples in self.held:
            total = np.zeros(2)
            for rows in samples.pieces(in_place=reads_in_place(samples, tree.splits)):
                score = self.work.target.score(tables, leaves_of(tree, samples, rows), samples.y[rows])
                weight = samples.weight[rows].double()
                total += float((weight * score).sum()), float(weight.sum())
            found.append(total)
        right, everything = self.work.team.total(found, (2,))
        return float(right / everything)


def _hard_counts(work: Work, tree: Tree) -> Doubles:
    """What the rows of all shards add up to in every leaf.  (n_leaves, n_statistics)"""
    parts = [hard_counts(tree, samples).double() for samples in work.shards]
    return work.team.total(parts, (tree.structure.n_leaves, work.target.n_statistics))


def _crisp(soft: TrainedTree, spec: Spec, problem: Problem, shards: Shards, team: Team) -> CrispTree:
    """The deterministic tree, with tables and statistics of all rows; see ``learning.fitting.crisp_tree``."""
    plain = unsettled_tree(soft, spec, problem)
    structure, target = plain.structure, problem.target
    parts = [part for part in shards.parts if len(part.y)]
    found = [sum_statistics(plain, part.X, part.y, part.weight, spec.n_jobs, target) for part in parts]
    leaves = team.total([one.leaves for one in found], (structure.n_leaves, target.n_statistics))
    moments = team.total([one.moments for one in found], (structure.n_splits, 3))
    tree = finalize_from(plain, SufficientStatistics(leaves, moments), spec.leaf_prior)
    if spec.image_shape is None:
        tree = _with_ranges(tree, parts, team)
    dead, to_right = find_dead_splits(tree)
    return select_nodes(tree, *tree.structure.spliced(dead, to_right), spec.leaf_prior) if len(dead) else tree


def _with_ranges(tree: CrispTree, parts: list[Part], team: Team) -> CrispTree:
    """The tree with the smallest and largest values of all rows, and whether they are whole numbers."""
    n = len(tree.statistics.scaling.center)
    # What is largest in all processes: minus the smallest, the largest, and whether some value is not whole.
    mine = np.concatenate([np.full(2 * n, -np.inf), np.zeros(n)])
    for part in parts:
        seen = record_ranges(tree, part.X).statistics
        assert seen.lowest is not None
        assert seen.highest is not None
        assert seen.whole is not None
        mine = np.maximum(mine, np.concatenate([-seen.lowest, seen.highest, 1.0 - seen.whole]))
    low, high, broken = team.extremes(mine).reshape(3, n)
    ranges = {"lowest": 0.0 - low, "highest": high + 0.0, "whole": (broken == 0).astype(np.uint8)}
    return replace(tree, statistics=replace(tree.statistics, **ranges))
