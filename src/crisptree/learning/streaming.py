"""A tree grown and finetuned on rows that come in chunks, pass after pass.

The epoch loop and the steps are those of rows in memory: a chunk is a small set of samples, and what the optimiser
remembers goes from one chunk to the next. Of a row nothing is kept but what it adds to sums of leaves and splits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.inference import CrispTree
from crisptree.inference.pruning import find_dead_splits, select_nodes
from crisptree.inference.statistics import add_prior_counts, finalize, inherit_ranges, record_ranges
from crisptree.learning.backends import EpochResult, Trainee, quickest
from crisptree.learning.backends.base import all_finite
from crisptree.learning.batches import Groups, NoOrders, Orders, group_rows
from crisptree.learning.finetuning import Best, TrainedTree, WholeTree, counted_score, hard_counts
from crisptree.learning.fitting import kind_for, training_on, unsettled_tree
from crisptree.learning.growing import TRIES
from crisptree.learning.history import Ending, EpochRecord, Listener, StopTraining, iteration_of
from crisptree.learning.plan import Pace, Plan
from crisptree.learning.problem import SMALLEST_WEIGHT, Part, Problem, varying
from crisptree.learning.row_routing import leaves_of, turns_of
from crisptree.learning.samples import ROWS_AT_ONCE, Samples
from crisptree.learning.spec import Spec
from crisptree.learning.starts import looked_around
from crisptree.learning.stumps import Stumps, started_tables
from crisptree.learning.train import EpochEnd, train
from crisptree.learning.upper_levels import UpperLevels, stages
from crisptree.rows.base import scaled_rows
from crisptree.splits import AbstractSplits
from crisptree.structure import TreeStructure
from crisptree.targets import gain
from crisptree.tree import Tree

Doubles = npt.NDArray[np.float64]

Chunks = Callable[[int | None], Iterator[Part]]
"""A pass over all rows; with a seed they are shuffled."""

CARRIED = ("mean.", "square.", "steps")
"""What an optimiser remembers, by the beginnings of the names; all else is computed from the weights."""


class Totals(NamedTuple):
    """What the first pass has found: rows, their mean weight, the statistics of all, and the mean of raw features."""

    n_rows: int
    mean_weight: float
    statistics: Doubles
    mean: Doubles


def fit_stream(
    spec: Spec,
    problem: Problem,
    totals: Totals,
    chunks: Chunks,
    on_epoch: Listener | None = None,
) -> tuple[CrispTree, CrispTree, int]:
    """Grow and finetune a tree; the greedy one, the finetuned one and the number of the epoch of finetuning at which
    the latter stood so (0 for none).

    Parameters
    ----------
    spec : Spec
        How: growth level by level with hyperplanes.
    problem : Problem
        Some of the rows, the scaling of all, what y is, and validation rows for early stopping.
    totals : Totals
        What is known of all rows.
    chunks : callable
        Begins a pass and gives raw rows; with a seed, shuffled by it.
    on_epoch : callable, optional
        Called with a record of every epoch.
    """
    kind = kind_for(spec, problem)
    with training_on(spec, kind, problem, totals.n_rows) as device:
        sample, validation = problem.on(device, spec.n_jobs)
        ended = Ending(on_epoch)
        generator = torch.Generator().manual_seed(spec.seed)
        work = _Stream(spec, problem, totals, chunks, sample, generator, ended)
        greedy = TrainedTree(work.grown(kind.initial), spec.growth.final_steepness)
        tuned = greedy if ended else work.finetuned(greedy, validation)
        tree = work.crisp(tuned)
        is_new = tuned.tree is not greedy.tree
        return work.crisp(greedy) if is_new else tree, tree, iteration_of(tuned.record, ended.history)


class _Open(NamedTuple):
    """A leaf that may be split: its rows, their statistics, the mean of their scaled features, and failed stumps."""

    n_rows: int
    statistics: Doubles
    center: Tensor
    failed: int = 0


@dataclass(frozen=True, eq=False)
class _Stream:
    """What the phases of a training share."""

    spec: Spec
    problem: Problem
    totals: Totals
    chunks: Chunks
    sample: Samples
    generator: torch.Generator
    on_epoch: Ending

    def one_pass(self, seed: int | None = None) -> Iterator[Samples]:
        """All rows once, a chunk at a time; weights are relative to the mean of all."""
        scaling, device = self.problem.scaling, self.sample.device
        for part in self.chunks(seed):
            rows = scaled_rows(part.X, scaling, device, self.spec.n_jobs, as_array=True)
            relative = np.maximum(part.weight / self.totals.mean_weight, SMALLEST_WEIGHT)
            y, weight = torch.from_numpy(part.y).to(device), torch.from_numpy(relative).float().to(device)
            yield Samples(rows, y, weight, self.sample.target, varying(scaling).to(device), self.spec.n_jobs)

    def grown(self, initial: Callable[[Tensor, torch.Generator], AbstractSplits]) -> Tree:
        """The tree, level by level, each level trained in passes of its own."""
        target, like = self.sample.target, self.sample.weight
        scaling = self.problem.scaling
        root = torch.from_numpy((self.totals.mean - scaling.center) * scaling.factor).to(like)
        splits = initial(like.new_zeros(0, len(root)), self.generator)
        table = torch.from_numpy(target.tables(self.totals.statistics[None])).to(like)
        tree = Tree(TreeStructure.single_leaf(), splits, table, target.name)
        candidates = {0: _Open(self.totals.n_rows, self.totals.statistics, root)}
        while leaves := [leaf for leaf, state in candidates.items() if self._may_split(tree, leaf, state)]:
            centers = torch.stack([candidates[leaf].center for leaf in leaves])
            tables = started_tables(target, [candidates[leaf].statistics for leaf in leaves], self.generator).to(like)
            splits = initial(centers, self.generator)
            splits, tables = looked_around(splits, tables, tree, leaves, self.sample, self.generator)
            level = _Level(tree, leaves, splits.trainable(), tables)
            try:
                self._train(cast(Trainee, level), self.spec.growth, "grow", tree.structure.depth + 1, len(leaves))
            except StopTraining:
                return tree
            tree, candidates = self._split(level, candidates)
        return tree

    def _may_split(self, tree: Tree, leaf: int, state: _Open) -> bool:
        limits = self.spec.limits
        deep = limits.max_depth is not None and tree.structure.leaf_depths[leaf] >= limits.max_depth
        mixed = bool(self.sample.target.is_mixed(state.statistics[None])[0])
        return mixed and not deep and state.n_rows >= max(limits.min_samples_split, 2 * limits.min_samples_leaf)

    def _train(
        self, trainee: Trainee, plan: Plan, phase: str, level: int, n_splits: int, judge: Best | None = None
    ) -> None:
        def report(end: EpochEnd) -> None:
            n_levels = self.spec.limits.max_depth if phase == "grow" else level
            numbers = level, n_levels, n_splits, end.epoch + 1, plan.epochs
            self.on_epoch(EpochRecord(phase, *numbers, end.steepness, end.loss, end.score))

        train(
            trainee,
            self.sample,
            plan,
            generator=self.generator,
            orders=NoOrders(self.generator),
            on_epoch=report,
            name=f"growth at level {level}" if phase == "grow" else "finetuning",
            judge=judge,
            steps=_StreamedSteps(trainee, self, plan),
        )

    def _split(self, level: _Level, before: Mapping[int, _Open]) -> tuple[Tree, dict[int, _Open]]:
        """The tree with the stumps that leave enough on both sides; the new leaves, and those to try once more."""
        found = level.counted(self)
        limits, target, tree = self.spec.limits, self.sample.target, level.tree
        left, total = found.total - found.right, target.weight(self.totals.statistics[None])[0]
        gains = gain(target, left, found.right)
        weights = target.weight(left), target.weight(found.right)
        good = np.minimum(found.n_right, found.n - found.n_right) >= max(limits.min_samples_leaf, 1)
        good &= np.minimum(*weights) >= limits.min_weight_fraction_leaf * total
        good &= gains * (weights[0] + weights[1]) / total >= limits.min_impurity_decrease
        accepted = np.flatnonzero(good)
        # A stump that sends all rows one way had a bad start; the leaf goes with those of the next level.
        one_way = np.flatnonzero((found.n_right == 0) | (found.n_right == found.n))
        again = {leaf: before[leaf] for leaf in (level.open[number] for number in one_way.tolist())}
        again = {leaf: s._replace(failed=s.failed + 1) for leaf, s in again.items() if s.failed + 1 < TRIES}
        if not len(accepted):
            return tree, again
        tables = level.leaves.reshape(2, len(good), -1)[:, accepted].transpose(0, 1)
        n_leaves = tree.structure.n_leaves
        tree = tree.grown([level.open[number] for number in accepted], level.splits.select(accepted.tolist()), tables)
        candidates = dict(again)
        for place, number in enumerate(accepted.tolist()):
            sums = (found.sums[number] - found.right_sums[number], found.right_sums[number])
            sides = (left[number], found.right[number])
            rows = (found.n[number] - found.n_right[number], found.n_right[number])
            for leaf, side in ((level.open[number], 0), (n_leaves + place, 1)):
                center = (sums[side] / target.weight(sides[side][None])[0]).to(self.sample.weight)
                candidates[leaf] = _Open(int(rows[side]), sides[side], center)
        return tree, candidates

    def finetuned(self, greedy: TrainedTree, validation: Samples | None) -> TrainedTree:
        """All splits and leaves trained together; of a large tree the upper levels first.

        Early stopping scores the deterministic tree on ``validation`` after every epoch, whose leaves take one more
        pass to count.
        """
        plan, tree = self.spec.finetuning, greedy.tree
        if not tree.structure.n_splits or not plan.epochs:
            return greedy
        *upper_stages, (_, plan) = stages(plan, tree.structure, self.totals.n_rows)
        for stage in upper_stages:
            upper = UpperLevels.of(tree, stage, lambda upper: torch.from_numpy(self._hard_counts(upper)))
            trained = self._tuned(upper.tree, stage.plan)
            tree = upper.put_back(trained.tree)
            if self.on_epoch:
                return trained._replace(tree=tree)
        if validation is None or self.spec.patience is None:
            return self._tuned(tree, plan)

        def scored(tree: Tree) -> float:
            return counted_score(tree, torch.from_numpy(self._hard_counts(tree)).to(tree.leaves), validation)

        return self._tuned(tree, plan, lambda now: Best(greedy, now, scored, self.spec.patience))

    def _tuned(
        self, tree: Tree, plan: Plan, judge_of: Callable[[Callable[[], Tree]], Best] | None = None
    ) -> TrainedTree:
        """The tree after its epochs, or the best of them where they are judged."""
        trainee = _Whole(tree, self._shares(tree) if plan.has_penalties else None)

        def now() -> Tree:
            return replace(tree, splits=trainee.splits.detached(), leaves=trainee.leaves)

        best = None if judge_of is None else judge_of(now)
        steepness, n_before = plan.final_steepness, len(self.on_epoch.history)
        try:
            depth, n_splits = tree.structure.depth, tree.structure.n_splits
            self._train(cast(Trainee, trainee), plan, "finetune", depth, n_splits, best)
        except StopTraining as stop:
            steepness = plan.steepness_at(stop.args[0].epoch - 1) if stop.args else plan.steepness_at(0)
        if best is not None:
            return best.recorded(self.on_epoch.history[n_before:])
        return TrainedTree(now(), steepness, self.on_epoch.history[-1])

    def _shares(self, tree: Tree) -> Tensor:
        """The part of all rows that visits each split, as ``WholeTree.penalty_shares`` has it."""
        visits = self.sample.target.weight(tree.structure.sums_below(self._hard_counts(tree)))
        shares = np.maximum(visits[: tree.structure.n_splits] / visits[0], 1 / self.totals.n_rows)
        return torch.from_numpy(shares).to(self.sample.device)

    def _hard_counts(self, tree: Tree) -> Doubles:
        """What the rows that reach every leaf add up to.  (n_leaves, n_statistics)"""
        return np.asarray(sum(hard_counts(tree, samples).double().cpu().numpy() for samples in self.one_pass()))

    def crisp(self, soft: TrainedTree) -> CrispTree:
        """The deterministic tree, with tables and statistics of all rows."""
        spec, whole = self.spec, None
        plain = unsettled_tree(soft, spec, self.problem)
        for part in self.chunks(None):
            now = finalize(plain, part.X, part.y, part.weight, spec.leaf_prior, spec.n_jobs, self.problem.target)
            now = record_ranges(now, part.X)
            if whole is not None:
                now = inherit_ranges(add_prior_counts(now, whole, 1.0, spec.leaf_prior), whole, and_own=True)
            whole = now
        assert whole is not None
        dead, to_right = find_dead_splits(whole)
        return select_nodes(whole, *whole.structure.spliced(dead, to_right), spec.leaf_prior) if len(dead) else whole


class _Found(NamedTuple):
    """What stumps do to all rows: statistics, numbers and sums of features, of all of a stump and of its right side."""

    total: Doubles
    right: Doubles
    n: npt.NDArray[np.int64]
    n_right: npt.NDArray[np.int64]
    sums: Tensor
    right_sums: Tensor


class _Level:
    """The stumps of one level; each chunk has some rows for some of them."""

    is_whole_tree = False
    zeros = signs = models = None
    structure = TreeStructure.stump()

    def __init__(self, tree: Tree, open_leaves: list[int], splits: AbstractSplits, leaves: Tensor) -> None:
        self.tree, self.open, self.splits, self.leaves = tree, open_leaves, splits, leaves

    def part(self, samples: Samples) -> tuple[Stumps, Tensor] | None:
        """The stumps that some rows of a chunk belong to, and their numbers."""
        everything = torch.arange(len(samples), device=samples.device)
        leaf = torch.cat([leaves_of(self.tree, samples, rows) for rows in everything.split(ROWS_AT_ONCE)])
        there = torch.bincount(leaf, minlength=self.tree.structure.n_leaves)[self.open] > 0
        index = torch.nonzero(there)[:, 0]
        if not len(index):
            return None
        groups = group_rows(leaf, [self.open[number] for number in index.tolist()])
        tables = self.leaves.reshape(2, len(self.open), -1)[:, index].reshape(2, -1)
        return Stumps(self.splits.select(index), tables, groups), index

    def add(self, counts: Tensor, some: Tensor, index: Tensor) -> None:
        """Leaf statistics of some stumps to those of all."""
        wide = counts.reshape(2, len(self.open), -1)
        wide[:, index] += some.reshape(2, len(index), -1).to(wide)

    @torch.no_grad()
    def counted(self, stream: _Stream) -> _Found:
        """One more pass: which way all rows go."""
        target, m, like = stream.sample.target, len(self.open), stream.sample.weight.double()
        total, right = (like.new_zeros(m, target.n_statistics) for _ in range(2))
        n, n_right = (torch.zeros(m, dtype=torch.long, device=like.device) for _ in range(2))
        sums, right_sums = (like.new_zeros(m, stream.sample.n_features) for _ in range(2))
        for samples in stream.one_pass():
            part = self.part(samples)
            if part is None:
                continue
            stumps, index = part
            numbers = (stumps.groups.rows.split(ROWS_AT_ONCE), stumps.groups.group.split(ROWS_AT_ONCE))
            for rows, group in zip(*numbers, strict=True):
                turned = turns_of(stumps.splits, samples, rows, group).reshape(-1)
                y, weight = samples.y[rows], samples.weight[rows].double()
                total[index] += target.tally(y, weight, group, len(index))
                right[index] += target.tally(y, weight * turned, group, len(index))
                place, x = index[group], samples.batch(rows).double() * weight[:, None]
                n += torch.bincount(place, minlength=m)
                n_right += torch.bincount(place[turned], minlength=m)
                sums.index_add_(0, place, x)
                right_sums.index_add_(0, place[turned], x[turned])
        all_of, on_right, rows_of, rows_right = (part.cpu().numpy() for part in (total, right, n, n_right))
        return _Found(all_of, on_right, rows_of, rows_right, sums, right_sums)


class _Whole:
    """A whole tree, trained on every chunk."""

    is_whole_tree = True
    zeros = signs = models = None

    def __init__(self, tree: Tree, shares: Tensor | None) -> None:
        self.tree, self.shares = tree, shares
        self.structure, self.leaves = tree.structure, tree.leaves
        self.splits = tree.splits.trainable()

    def part(self, samples: Samples) -> tuple[WholeTree, Tensor]:
        """The tree on the rows of a chunk, and the numbers of its splits: all."""
        now = replace(self.tree, splits=self.splits.detached(), leaves=self.leaves)
        whole = WholeTree(now, samples)
        if self.shares is not None:
            whole.__dict__["penalty_shares"] = self.shares
        return whole, torch.arange(self.structure.n_splits, device=samples.device)

    def add(self, counts: Tensor, some: Tensor, index: Tensor) -> None:
        """Leaf statistics of a chunk to those of the epoch."""
        counts += some.to(counts)


class _StreamedSteps:
    """The steps of an epoch, chunk after chunk, by the quickest backend for each."""

    def __init__(self, trainee: Any, stream: _Stream, plan: Plan) -> None:
        self.trainee, self.stream = trainee, stream
        self.plan = replace(plan, rows_per_epoch=None)
        parameters = trainee.splits.parameters
        self.state = {"steps": next(iter(parameters.values())).new_zeros(trainee.splits.n_splits)}
        for kind in ("mean", "square"):
            self.state |= {f"{kind}.{name}": torch.zeros_like(value).detach() for name, value in parameters.items()}

    def memory(self) -> dict[str, Tensor]:
        return self.state

    def epoch(self, pace: Pace, order: Tensor) -> EpochResult:
        trainee, target = self.trainee, self.stream.sample.target
        n_columns = trainee.leaves.shape[1] // target.n_values * target.n_statistics
        counts = trainee.leaves.new_zeros(len(trainee.leaves), n_columns, dtype=torch.float64)
        loss = total = 0.0
        for samples in self.stream.one_pass(int(torch.randint(2**62, (), generator=self.stream.generator))):
            part = trainee.part(samples)
            if part is None:
                continue
            some, index = part
            share = len(samples) / self.stream.totals.n_rows
            plan = replace(self.plan, min_updates=math.ceil(share * self.plan.min_updates))
            steps = quickest(some, samples, plan)(some, samples, plan, fresh=True)
            carried = {name: place for name, place in steps.memory().items() if name.startswith(CARRIED)}
            for name, place in carried.items():
                place.copy_(self.state[name][index])
            groups: Groups = some.groups
            found = steps.epoch(pace, Orders(groups, plan, self.stream.generator).next())
            for name, place in carried.items():
                self.state[name][index] = place.to(self.state[name])
            for name, value in trainee.splits.parameters.items():
                value.data[index] = some.splits.parameters[name].detach()
            trainee.add(counts, found.counts, index)
            weight = float(samples.weight[groups.rows].double().sum())
            loss, total = loss + weight * found.loss, total + weight
        return EpochResult(counts.to(trainee.leaves), loss / max(total, 1e-300), all_finite(trainee.splits))
