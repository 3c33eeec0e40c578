"""The training rows with what is known of them, seen a batch at a time."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.blocks import n_threads
from crisptree.data.rows import Rows, ShiftedImages, SparseTrainingRows, UnscaledRows
from crisptree.data.windows import Windows
from crisptree.equations.routing import goes_right
from crisptree.learning.batches import Groups
from crisptree.native import training
from crisptree.splits import AbstractSplits, ObliqueSplits
from crisptree.targets import Target
from crisptree.tree import Tree

Ints = npt.NDArray[np.int32]

ROWS_AT_ONCE = 8192
"""Passes over all rows take this many at a time."""

VALUES_AT_ONCE = 2**24
"""Sparse rows, which may be wide, are written down so many values at a time."""

ROWS_IN_PLACE = 2**18
"""Passes that need no copy of the rows take this many."""

VALUES_FOR_THREADS = 2**22
"""Data of fewer values trains on one thread: two are no quicker there, and when another program holds one of the
cores they wait for each other a hundred times as long as they work."""

GROUPS_PER_PRODUCT = 32
"""Sums over groups are taken about so many groups at a time: a product with more would mostly multiply zeros."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Scaled rows, their y and weights on the training device.

    Torch's steps and every pass over the rows ask ``batch`` for them; the fused steps read an array where it lies, and
    on the CPU windows too.

    Parameters
    ----------
    rows : Rows
        Scaled features, as an array, as windows of images, or sparse.
    y : Tensor of shape (n,) or (n, n_values)
        What is to be predicted: for classes their numbers, int64; for soft classes their probabilities.
    weight : Tensor of shape (n,)
        Positive sample weights.
    target : Target
        What y is.
    n_jobs : int or None, default=1
        Threads that may work on them, where there are enough; what comes out does not depend on it.
    """

    rows: Rows
    y: Tensor
    weight: Tensor
    target: Target
    n_jobs: int | None = 1

    def __len__(self) -> int:
        return len(self.y)

    @property
    def n_features(self) -> int:
        return self.rows.shape[1]

    @property
    def device(self) -> torch.device:
        return self.y.device

    @property
    def is_sparse(self) -> bool:
        """Whether only values that are not zero are kept."""
        return isinstance(self.rows, SparseTrainingRows)

    @property
    def are_many(self) -> bool:
        """Whether they are worth several threads."""
        values = self.rows.values.size if isinstance(self.rows, SparseTrainingRows) else len(self) * self.n_features
        return values > VALUES_FOR_THREADS

    @property
    def threads(self) -> int:
        """How many threads work on them."""
        return n_threads(self.n_jobs) if self.are_many else 1

    def batch(self, rows: Tensor) -> Tensor:
        """The features of some rows.  (b,) → (b, n_features)"""
        if self.native_rows is None or not isinstance(self.rows, Windows | UnscaledRows):
            return self.rows.batch(rows)
        copies = torch.empty(len(rows), self.n_features, dtype=self.rows.dtype)
        self.native_rows.gather(rows.numpy(), copies.numpy(), self.threads)
        return copies

    def shifted(self, generator: torch.Generator) -> AbstractContextManager[None]:
        """Inside, images that are to be shifted are; other rows are as always, and nothing is drawn."""
        return self.rows.shifted(generator) if isinstance(self.rows, ShiftedImages) else nullcontext()

    @cached_property
    def native_rows(self) -> Any:
        """The rows as the native kernels see them; None where they cannot read them."""
        kinds = {torch.float32: "SingleRows", torch.float64: "DoubleRows"}
        arrays = self.rows.arrays
        if training is None or self.device.type != "cpu" or self.rows.dtype not in kinds:
            return None
        if not arrays[0].is_contiguous():
            return None
        values = (np.require(array.detach().numpy(), requirements=("C", "A")) for array in arrays)
        width = (self.n_features,) if self.is_sparse else ()
        return getattr(training, kinds[self.rows.dtype])(*values, *width)

    def pieces(self, rows: Tensor | None = None, *, in_place: bool = False) -> tuple[Tensor, ...]:
        """Row numbers a few thousand at a time: all of them, or those given; more where the rows stay in place."""
        everything = torch.arange(len(self), device=self.device) if rows is None else rows
        if in_place:
            return everything.split(ROWS_IN_PLACE)
        return everything.split(max(1, VALUES_AT_ONCE // self.n_features) if self.is_sparse else ROWS_AT_ONCE)

    def mean(self) -> Tensor:
        """The weighted mean of all rows.  (n_features,)"""
        return self.group_means(Groups.everything(len(self), self.device))[0]

    def group_means(self, groups: Groups) -> Tensor:
        """The weighted mean of every group's rows.  (n_groups, n_features)"""
        total = self.group_mean_weight(groups) * groups.sizes
        if isinstance(self.rows, SparseTrainingRows):
            sums = self.rows.group_sums(groups.rows, groups.group, self.weight[groups.rows], len(groups.sizes))
            return (sums / total[:, None]).to(self.weight.dtype)
        sums = torch.zeros(len(groups.sizes), self.n_features, dtype=torch.float64, device=self.device)
        ends = np.cumsum(groups.host_sizes)
        at_once = int(np.clip(GROUPS_PER_PRODUCT * np.median(groups.host_sizes), 64, ROWS_AT_ONCE))
        for start in range(0, len(groups.rows), at_once):
            # A few rows belong to a few groups, which follow each other: their sums are one small product.
            rows = groups.rows[start : start + at_once]
            first, last = np.searchsorted(ends, (start, start + len(rows) - 1), side="right")
            here = torch.arange(first, last + 1, device=self.device)
            member = groups.group[start : start + len(rows)] == here[:, None]
            sums[first : last + 1] += (member * self.weight[rows]) @ self.batch(rows)
        return (sums / total[:, None]).to(self.weight.dtype)

    def group_mean_weight(self, groups: Groups) -> Tensor:
        """The mean weight of every group's rows.  (n_groups,)"""
        sizes = groups.host_sizes
        totals = np.add.reduceat(self.weight[groups.rows].cpu().double().numpy(), np.cumsum(sizes) - sizes)
        return torch.from_numpy(totals / sizes).to(self.device)

    def table(self) -> Tensor:
        """The table of one leaf that holds all rows.  (1, n_values)"""
        place = np.zeros(len(self), dtype=np.int64)
        totals = self.target.tally(self.y.cpu().numpy(), self.weight.cpu().double().numpy(), place, 1)
        return torch.from_numpy(self.target.tables(totals)).to(self.weight)

    def everything(self) -> Groups:
        """All rows as one group."""
        return Groups.everything(len(self), self.device)

    def reads_in_place(self, splits: AbstractSplits) -> bool:
        """Whether the native kernel routes the rows where they lie, without a copy."""
        if not isinstance(splits, ObliqueSplits) or self.native_rows is None:
            return False
        return splits.parameters["weight"].dtype == self.rows.dtype

    @torch.no_grad()
    def leaves(self, tree: Tree, rows: Tensor) -> Tensor:
        """The leaf of some rows under deterministic routing.  (b,) → (b,)"""
        if not tree.structure.n_splits:
            return torch.zeros_like(rows)
        if not self.reads_in_place(tree.splits):
            return tree.route(self.batch(rows))
        start = np.zeros(len(rows), dtype=np.int32)
        return self._ends(tree.splits, rows, start, tree.structure.left, tree.structure.right)

    def all_leaves(self, tree: Tree) -> Tensor:
        """The leaf of every row under deterministic routing.  (n,)"""
        pieces = self.pieces(in_place=self.reads_in_place(tree.splits))
        return torch.cat([self.leaves(tree, rows) for rows in pieces])

    @torch.no_grad()
    def turns(self, splits: AbstractSplits, rows: Tensor, split: Tensor) -> Tensor:
        """Whether some rows go right, each at its own split.  (b,), (b,) → (b,); candidates: (b, n_candidates)"""
        if not self.reads_in_place(splits):
            return goes_right(splits.at(self.batch(rows), split))
        left = ~(2 * np.arange(splits.n_splits, dtype=np.int32))  # the ends of split i are 2i and 2i + 1
        return self._ends(splits, rows, split.numpy().astype(np.int32), left, left - 1) % 2 == 1

    def _ends(self, splits: AbstractSplits, rows: Tensor, node: Ints, left: Ints, right: Ints) -> Tensor:
        weight, bias = (splits.parameters[name].detach().contiguous().numpy() for name in ("weight", "bias"))
        self.native_rows.route(rows.numpy(), node, weight, bias, left, right, self.threads)
        return torch.from_numpy(~node.astype(np.int64))

    def hard_counts(self, tree: Tree) -> Tensor:
        """The statistics of the rows that reach every leaf under deterministic routing.  (n_leaves, n_statistics)"""
        target, n_leaves = self.target, tree.structure.n_leaves
        counts = torch.zeros(n_leaves, target.n_statistics, dtype=tree.leaves.dtype, device=self.device)
        for rows in self.pieces(in_place=self.reads_in_place(tree.splits)):
            leaf = self.leaves(tree, rows)
            counts += target.tally(self.y[rows], self.weight[rows].to(counts), leaf, n_leaves)
        return counts

    def score(self, tree: Tree, tables: Tensor) -> float:
        """The weighted mean score of the rows under a deterministic tree with such leaf tables."""
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for rows in self.pieces(in_place=self.reads_in_place(tree.splits)):
            score = self.target.score(tables, self.leaves(tree, rows), self.y[rows])
            total += (self.weight[rows] * score).sum()
        return float(total / self.weight.double().sum())
