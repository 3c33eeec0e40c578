"""Training on rows in batches, in several passes.

A chunk of a pass is a small ``Samples``, on which the quickest backend takes its steps as anywhere else; the state of
the optimiser goes from one chunk to the next. Only sums over rows are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from crisptree.inference import CrispTree
from crisptree.inference.finalization import (
    SomeTree,
    SufficientStatistics,
    inherit_ranges,
    record_ranges,
    sum_statistics,
)
from crisptree.learning.engines.base import EpochResult, TrainState, all_finite
from crisptree.learning.finetuning import WholeTree
from crisptree.learning.loop import select_engine
from crisptree.learning.options import EpochSettings, Plan
from crisptree.learning.samples import Orders, RowSet, Samples, TrainingTask, group_rows, scale_samples
from crisptree.learning.sources.base import (
    Doubles,
    LeafState,
    Side,
    SummedRows,
    group_leaves,
    side_sums,
    split_sides,
)
from crisptree.learning.stumps import Stumps, SummedLevel
from crisptree.splits import AbstractSplits
from crisptree.tree import Tree

Chunks = Callable[[int | None], Iterator[RowSet]]
"""A pass over all rows; with a seed they are shuffled."""

OPTIMIZER_STATE = ("mean.", "square.", "steps")
"""Prefixes of the state that chunks pass on; everything else is computed from the weights."""


class Totals(NamedTuple):
    """Result of the first pass: rows, their mean weight, the statistics of all, and the mean of raw features."""

    n_rows: int
    mean_weight: float
    statistics: Doubles
    mean: Doubles


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchedTask(TrainingTask):
    """A training on batches. ``training`` are some of the rows, ``chunks`` begins a pass over all of them.

    Weights of statistics are relative to the mean weight of all rows.
    """

    totals: Totals
    chunks: Chunks

    is_small_table: ClassVar[bool] = False

    @property
    def n_rows(self) -> int:
        return self.totals.n_rows

    @property
    def mean_weight(self) -> float:
        return self.totals.mean_weight

    def on(self, device: torch.device, n_jobs: int | None, shifts: Any = None, **options: Any) -> tuple[Any, Any]:
        sample, validation = super().on(device, n_jobs)
        return BatchedRows(self, sample), validation

    def sum_statistics(self, tree: CrispTree, n_jobs: int | None) -> SufficientStatistics:
        structure = tree.structure
        leaves = np.zeros((structure.n_leaves, self.target.n_statistics))
        moments = np.zeros((structure.n_splits, 3))
        for part in self.chunks(None):
            found = sum_statistics(tree, part.X, part.y, part.weight, n_jobs, self.target)
            leaves, moments = leaves + found.leaves, moments + found.moments
        return SufficientStatistics(leaves, moments)

    def with_ranges(self, tree: SomeTree) -> SomeTree:
        """Return the tree with the ranges of the features of all rows."""
        seen: SomeTree | None = None
        for part in self.chunks(None):
            now = record_ranges(tree, part.X)
            seen = now if seen is None else inherit_ranges(now, seen, and_own=True)
        assert seen is not None
        return seen


class BatchedRows(SummedRows):
    """All rows of a batched problem, a chunk at a time."""

    retries_later = True

    def __init__(self, task: BatchedTask, sample: Samples) -> None:
        none = task.training.select(slice(0))
        super().__init__(scale_samples(none, task, 1.0, sample.device, sample.n_jobs), sample)
        self.task, self.n_jobs = task, sample.n_jobs

    def __len__(self) -> int:
        return self.task.totals.n_rows

    def one_pass(self, seed: int | None = None) -> Iterator[Samples]:
        """Yield all rows once, a chunk at a time; weights are relative to the mean of all."""
        task = self.task
        for part in task.chunks(seed):
            yield scale_samples(part, task, task.totals.mean_weight, self.device, self.n_jobs, as_array=True)

    @property
    def root(self) -> LeafState:
        """All rows as one leaf, known from the first pass."""
        totals, scaling = self.task.totals, self.task.scaling
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

    def make_engine(self, state: TrainState, plan: Plan, generator: torch.Generator, *, fresh: bool) -> BatchedEngine:
        assert fresh  # responsibilities of the parameters before an epoch would have to be kept for every row
        return BatchedEngine(state, self, plan, generator)

    def score(self, tree: Tree, tables: Tensor) -> float:
        total = weight = 0.0
        for samples in self.one_pass():
            own = float(samples.weight.double().sum())
            total, weight = total + own * samples.score(tree, tables), weight + own
        return total / weight


class BatchedEngine:
    """The steps of an epoch, chunk after chunk, by the quickest backend for each."""

    def __init__(self, state: Any, rows: BatchedRows, plan: Plan, generator: torch.Generator) -> None:
        self.state, self.rows, self.generator = state, rows, generator
        self.plan = replace(plan, rows_per_epoch=None)
        self.shares = state.penalty_shares if state.is_whole_tree and plan.has_penalties else None
        parameters = state.splits.parameters
        self.adam_state = {"steps": next(iter(parameters.values())).new_zeros(state.splits.n_splits)}
        for kind in ("mean", "square"):
            self.adam_state |= {
                f"{kind}.{name}": torch.zeros_like(value).detach() for name, value in parameters.items()
            }

    def optimizer_state(self) -> dict[str, Tensor]:
        return self.adam_state

    def epoch(self, settings: EpochSettings, order: Tensor) -> EpochResult:
        """Train on all chunks of one pass, in an order that is drawn here."""
        state, target = self.state, self.rows.target
        n_columns = state.leaves.shape[1] // target.n_values * target.n_statistics
        counts = state.leaves.new_zeros(len(state.leaves), n_columns, dtype=torch.float64)
        loss = total = 0.0
        for samples in self.rows.one_pass(int(torch.randint(2**62, (), generator=self.generator))):
            chunk, index = self._chunk(samples)
            if not len(index):
                continue
            plan = replace(self.plan, min_updates=math.ceil(len(samples) / len(self.rows) * self.plan.min_updates))
            found = self._chunk_epoch(chunk, index, samples, plan, settings)
            wide = counts.reshape(len(counts), -1, target.n_statistics)
            some = found.counts.reshape(len(counts), -1, target.n_statistics).to(counts)
            wide[:, index if not state.is_whole_tree else slice(None)] += some
            weight = float(samples.weight[chunk.groups.rows].double().sum())
            loss, total = loss + weight * found.loss, total + weight
        return EpochResult(counts.to(state.leaves), loss / max(total, 1e-300), all_finite(state.splits))

    def _chunk(self, samples: Samples) -> tuple[Any, Tensor]:
        """Return the state that a chunk trains and the indices of its splits: the whole tree, or the stumps reached."""
        state = self.state
        if state.is_whole_tree:
            whole = WholeTree(state.tree(), samples, state.zeros, state.signs)
            if self.shares is not None:
                whole.__dict__["penalty_shares"] = self.shares
            return whole, torch.arange(state.structure.n_splits, device=samples.device)
        assert isinstance(state, SummedLevel)
        leaf = samples.all_leaves(state.open.tree)
        there = torch.bincount(leaf, minlength=state.open.tree.structure.n_leaves)[state.open.leaves] > 0
        index = torch.nonzero(there)[:, 0]
        if not len(index):
            return None, index
        groups = group_rows(leaf, [state.open.leaves[number] for number in index.tolist()])
        tables = state.leaves.reshape(2, state.n_stumps, -1)[:, index].reshape(2, -1)
        zeros = None if state.zeros is None else state.zeros[index]
        return Stumps(state.splits.select(index), tables, groups, zeros=zeros, signs=state.signs), index

    def _chunk_epoch(
        self, chunk: Any, index: Tensor, samples: Samples, plan: Plan, settings: EpochSettings
    ) -> EpochResult:
        """Train one epoch of a chunk, with the optimiser state of the previous chunk."""
        engine = select_engine(chunk, samples, plan)(chunk, samples, plan, fresh=True)
        moments = {name: place for name, place in engine.optimizer_state().items() if name.startswith(OPTIMIZER_STATE)}
        for name, place in moments.items():
            place.copy_(self.adam_state[name][index])
        found = engine.epoch(settings, Orders(chunk.groups, plan, self.generator).next())
        for name, place in moments.items():
            self.adam_state[name][index] = place.to(self.adam_state[name])
        for name, value in self.state.splits.parameters.items():
            value.data[index] = chunk.splits.parameters[name].detach()
        return found
