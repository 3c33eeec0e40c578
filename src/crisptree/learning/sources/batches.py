"""Rows that come in batches, pass after pass: trainings larger than memory.

A chunk of a pass is a small ``Samples``, on which the quickest backend takes its steps as anywhere else; the state of
the optimiser goes from one chunk to the next. Of a row nothing is kept but what it adds to sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from crisptree.inference import CrispTree
from crisptree.inference.statistics import SomeTree, SufficientStatistics, inherit_ranges, record_ranges, sum_statistics
from crisptree.learning.engines import EpochResult, quickest
from crisptree.learning.engines.base import Trainee, all_finite
from crisptree.learning.finetuning import WholeTree
from crisptree.learning.options import Pace, Plan
from crisptree.learning.samples import Orders, Samples, group_rows
from crisptree.learning.sources.base import (
    Doubles,
    LeafState,
    Side,
    SummedLevel,
    SummedRows,
    group_leaves,
    side_sums,
    split_sides,
)
from crisptree.learning.stumps import Stumps
from crisptree.learning.task import Part, Problem, scaled_samples
from crisptree.splits import AbstractSplits
from crisptree.tree import Tree

Chunks = Callable[[int | None], Iterator[Part]]
"""A pass over all rows; with a seed they are shuffled."""

OPTIMIZER_STATE = ("mean.", "square.", "steps")
"""What chunks hand on to each other, by the beginnings of the names; all else is computed from the weights."""


class Totals(NamedTuple):
    """What the first pass found: rows, their mean weight, the statistics of all, and the mean of raw features."""

    n_rows: int
    mean_weight: float
    statistics: Doubles
    mean: Doubles


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchedProblem(Problem):
    """A training on batches. ``training`` are some of the rows, ``chunks`` begins a pass over all of them.

    Weights of statistics are relative to the mean weight of all rows.
    """

    totals: Totals
    chunks: Chunks

    @property
    def n_rows(self) -> int:
        return self.totals.n_rows

    @property
    def mean_weight(self) -> float:
        return self.totals.mean_weight

    def on(self, device: torch.device, n_jobs: int | None, shifts: Any = None, **options: Any) -> tuple[Any, Any]:
        sample, validation = super().on(device, n_jobs)
        return BatchedRows(self, sample), validation

    def counted(self, tree: CrispTree, n_jobs: int | None) -> SufficientStatistics:
        structure = tree.structure
        leaves = np.zeros((structure.n_leaves, self.target.n_statistics))
        moments = np.zeros((structure.n_splits, 3))
        for part in self.chunks(None):
            found = sum_statistics(tree, part.X, part.y, part.weight, n_jobs, self.target)
            leaves, moments = leaves + found.leaves, moments + found.moments
        return SufficientStatistics(leaves, moments)

    def with_ranges(self, tree: SomeTree) -> SomeTree:
        """The tree with the ranges of the features of all rows."""
        seen: SomeTree | None = None
        for part in self.chunks(None):
            now = record_ranges(tree, part.X)
            seen = now if seen is None else inherit_ranges(now, seen, and_own=True)
        assert seen is not None
        return seen


class BatchedRows(SummedRows):
    """All rows of a batched problem, a chunk at a time."""

    retries_later = True

    def __init__(self, problem: BatchedProblem, sample: Samples) -> None:
        rows = problem.training
        none = Part(rows.X[:0], rows.y[:0], rows.weight[:0])
        super().__init__(scaled_samples(none, problem, 1.0, sample.device, sample.n_jobs), sample)
        self.problem, self.n_jobs = problem, sample.n_jobs

    def __len__(self) -> int:
        return self.problem.totals.n_rows

    def one_pass(self, seed: int | None = None) -> Iterator[Samples]:
        """All rows once, a chunk at a time; weights are relative to the mean of all."""
        problem = self.problem
        for part in problem.chunks(seed):
            yield scaled_samples(part, problem, problem.totals.mean_weight, self.device, self.n_jobs, as_array=True)

    @property
    def root(self) -> LeafState:
        """All rows as one leaf, known from the first pass."""
        totals, scaling = self.problem.totals, self.problem.scaling
        center = torch.from_numpy((totals.mean - scaling.center) * scaling.factor).to(self.weight)
        return LeafState(totals.n_rows, totals.statistics, center)

    def hard_counts(self, tree: Tree) -> Tensor:
        counts = torch.zeros(tree.structure.n_leaves, self.target.n_statistics, dtype=torch.float64, device=self.device)
        for samples in self.one_pass():
            counts += samples.hard_counts(tree).double()
        return counts

    @torch.no_grad()
    def sides(self, tree: Tree, leaves: list[int], splits: AbstractSplits | None) -> tuple[Side, Side]:
        total = sum(side_sums(samples, group_leaves(tree, samples, leaves), splits) for samples in self.one_pass())
        return split_sides(np.asarray(total), self.target.n_statistics)

    def steps(self, trainee: Trainee, plan: Plan, generator: torch.Generator, *, fresh: bool) -> BatchedSteps:
        assert fresh  # responsibilities of the parameters before an epoch would have to be kept for every row
        return BatchedSteps(trainee, self, plan, generator)

    def score(self, tree: Tree, tables: Tensor) -> float:
        total = weight = 0.0
        for samples in self.one_pass():
            own = float(samples.weight.double().sum())
            total, weight = total + own * samples.score(tree, tables), weight + own
        return total / weight


class BatchedSteps:
    """The steps of an epoch, chunk after chunk, by the quickest backend for each."""

    def __init__(self, trainee: Any, rows: BatchedRows, plan: Plan, generator: torch.Generator) -> None:
        self.trainee, self.rows, self.generator = trainee, rows, generator
        self.plan = replace(plan, rows_per_epoch=None)
        self.shares = trainee.penalty_shares if trainee.is_whole_tree and plan.has_penalties else None
        parameters = trainee.splits.parameters
        self.state = {"steps": next(iter(parameters.values())).new_zeros(trainee.splits.n_splits)}
        for kind in ("mean", "square"):
            self.state |= {f"{kind}.{name}": torch.zeros_like(value).detach() for name, value in parameters.items()}

    def memory(self) -> dict[str, Tensor]:
        return self.state

    def epoch(self, pace: Pace, order: Tensor) -> EpochResult:
        """All chunks of one pass; the order of the rows is drawn here."""
        trainee, target = self.trainee, self.rows.target
        n_columns = trainee.leaves.shape[1] // target.n_values * target.n_statistics
        counts = trainee.leaves.new_zeros(len(trainee.leaves), n_columns, dtype=torch.float64)
        loss = total = 0.0
        for samples in self.rows.one_pass(int(torch.randint(2**62, (), generator=self.generator))):
            chunk, index = self._chunk(samples)
            if not len(index):
                continue
            plan = replace(self.plan, min_updates=math.ceil(len(samples) / len(self.rows) * self.plan.min_updates))
            found = self._chunk_epoch(chunk, index, samples, plan, pace)
            wide = counts.reshape(len(counts), -1, target.n_statistics)
            some = found.counts.reshape(len(counts), -1, target.n_statistics).to(counts)
            wide[:, index if not trainee.is_whole_tree else slice(None)] += some
            weight = float(samples.weight[chunk.groups.rows].double().sum())
            loss, total = loss + weight * found.loss, total + weight
        return EpochResult(counts.to(trainee.leaves), loss / max(total, 1e-300), all_finite(trainee.splits))

    def _chunk(self, samples: Samples) -> tuple[Any, Tensor]:
        """What some rows of a chunk train, and the numbers of its splits: the whole tree, or the stumps they reach."""
        trainee = self.trainee
        if trainee.is_whole_tree:
            whole = WholeTree(trainee.tree(), samples, trainee.zeros, trainee.signs)
            if self.shares is not None:
                whole.__dict__["penalty_shares"] = self.shares
            return whole, torch.arange(trainee.structure.n_splits, device=samples.device)
        assert isinstance(trainee, SummedLevel)
        leaf = samples.all_leaves(trainee.open.tree)
        there = torch.bincount(leaf, minlength=trainee.open.tree.structure.n_leaves)[trainee.open.leaves] > 0
        index = torch.nonzero(there)[:, 0]
        if not len(index):
            return None, index
        groups = group_rows(leaf, [trainee.open.leaves[number] for number in index.tolist()])
        tables = trainee.leaves.reshape(2, trainee.n_places, -1)[:, index].reshape(2, -1)
        zeros = None if trainee.zeros is None else trainee.zeros[index]
        return Stumps(trainee.splits.select(index), tables, groups, zeros=zeros, signs=trainee.signs), index

    def _chunk_epoch(self, chunk: Any, index: Tensor, samples: Samples, plan: Plan, pace: Pace) -> EpochResult:
        """One epoch of a chunk, with the state of the optimiser as the chunk before left it."""
        steps = quickest(chunk, samples, plan)(chunk, samples, plan, fresh=True)
        state = {name: place for name, place in steps.memory().items() if name.startswith(OPTIMIZER_STATE)}
        for name, place in state.items():
            place.copy_(self.state[name][index])
        found = steps.epoch(pace, Orders(chunk.groups, plan, self.generator).next())
        for name, place in state.items():
            self.state[name][index] = place.to(self.state[name])
        for name, value in self.trainee.splits.parameters.items():
            value.data[index] = chunk.splits.parameters[name].detach()
        return found
