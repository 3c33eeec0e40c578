"""Non-greedy training of a whole tree (Norouzi, Collins, Johnson, Fleet & Kohli 2015).

The bound of ``co2`` over the decisions of the whole tree, lowered by stochastic gradients with ‖w_i‖² ≤ ν for every
split. The loss-augmented inference considers the leaf that a row reaches and those it would reach with one decision of
its path reversed. The assignment of rows to leaves, and so the leaf tables, is updated once per epoch.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from crisptree.baselines.co2 import NU_CANDIDATES, Children, Floats, Paths, bound_steps, losses
from crisptree.equations.routing import goes_right
from crisptree.learning.engines.base import Checkpointable, Progress, RngState, TensorState
from crisptree.learning.engines.native_engine import best_entries
from crisptree.learning.finetuning import BestTree, TrainedTree, hard_score
from crisptree.learning.history import EpochCallback, EpochRecord
from crisptree.learning.loop import EpochEnd, EpochHistory
from crisptree.learning.options import Plan
from crisptree.learning.samples import Samples
from crisptree.splits import ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.tree import Tree


class NonGreedyResult(NamedTuple):
    """The tree, the ν that trained it (None without training), and its accuracy on validation rows, if any.

    ``record`` is that of the epoch after which the tree stood so; None before any.
    """

    tree: Tree
    nu: float | None
    score: float | None
    record: EpochRecord | None = None


def train_non_greedy(
    tree: Tree,
    samples: Samples,
    plan: Plan,
    nu: float | None,
    *,
    generator: torch.Generator,
    on_epoch: EpochCallback | None = None,
    validation: Samples | None = None,
    patience: int | None = None,
) -> NonGreedyResult:
    """Train the whole tree, which is not modified, from its current state.

    ``nu`` is the bound on ‖w_i‖²; None tries those of ``NU_CANDIDATES`` and keeps the tree that is best on the
    ``validation`` rows, on which the deterministic tree is scored after every epoch. ``patience`` is early stopping:
    end after so many epochs without a higher validation score, and take the tree of the first epoch with the highest,
    the start included. ``on_epoch`` gets the mean bound as loss; with several ν the epochs are numbered through.
    """
    if nu is None and validation is None:
        raise ValueError("`nu` must be a number without validation rows to select it; got None.")
    several = NU_CANDIDATES if nu is None else (nu,)
    if tree.structure.n_splits == 0 or plan.epochs == 0:
        return NonGreedyResult(tree, None, None)
    best: NonGreedyResult | None = None
    for number, one in enumerate(several):
        run = _NonGreedyTraining(
            tree, samples, plan, one, generator, validation, number * plan.epochs, len(several) * plan.epochs
        )
        result = run.train(on_epoch, patience)
        if best is None or (result.score or 0.0) > (best.score or 0.0):
            best = result
    assert best is not None
    return best


class _NonGreedyTraining:
    """The training with one ν."""

    def __init__(
        self,
        tree: Tree,
        samples: Samples,
        plan: Plan,
        nu: float,
        generator: torch.Generator,
        validation: Samples | None,
        first_epoch: int,
        n_epochs: int,
    ) -> None:
        self.start, self.samples, self.plan, self.nu = tree, samples, plan, nu
        self.generator, self.validation = generator, validation
        self.first_epoch, self.n_epochs = first_epoch, n_epochs
        self.groups = samples.everything()
        splits = tree.splits.trainable()
        assert isinstance(splits, ObliqueSplits)
        self.splits = splits
        self.steps = bound_steps(splits, samples, TreeRoutes(tree.structure), nu)

    def train(self, on_epoch: EpochCallback | None, patience: int | None) -> NonGreedyResult:
        steepness = self.plan.steepness_at(0)
        start, tree = TrainedTree(self.start, steepness), self.start
        held = self.validation
        scored = None if held is None else partial(hard_score, samples=self.samples, validation=held)
        best = None if scored is None else BestTree(start, lambda: tree, scored, patience)
        ends, progress = EpochHistory(), Progress(f"non-greedy training with nu={self.nu:g}", self.plan.epochs)
        parts: list[Checkpointable] = [TensorState("splits", self.splits.parameters), ends, RngState([self.generator])]
        parts += [] if best is None else [best]
        working = [TensorState("optimiser", self.steps.optimizer_state())]
        progress.restore(parts if progress.is_over else [*parts, *working])
        hear = (lambda record: None) if on_epoch is None else on_epoch
        records: list[EpochRecord] = []

        def report(end: EpochEnd) -> None:
            records.append(self._record(end))
            hear(records[-1])

        for end in ends.ends:
            report(end)
        tree, counts = self._updated_tree() if progress.epochs else (self.start, self.samples.hard_counts(self.start))
        for epoch in range(progress.epochs, progress.epochs if progress.is_over else self.plan.epochs):
            self.steps.begin(losses(counts), self.plan.settings_at(epoch).learning_rate)
            bound = self._epoch()
            tree, counts = self._updated_tree()
            ends.ends.append(EpochEnd(epoch, steepness, bound, None if best is None else best(steepness)))
            report(ends.ends[-1])
            is_done = best is not None and best.is_done
            progress.keep(epoch + 1, parts, working, is_over=is_done)
            if is_done:
                break
        if patience is not None and best is not None:
            return NonGreedyResult(best.tree.tree, self.nu, best.score, best.recorded(records).record)
        return NonGreedyResult(tree, self.nu, ends.ends[-1].score, records[-1])

    def _updated_tree(self) -> tuple[Tree, Tensor]:
        """Current tree with tables from the rows that reach its leaves, and their counts."""
        tree = Tree(self.start.structure, self.splits.detached(), self.start.leaves)
        counts = self.samples.hard_counts(tree)
        even = torch.full_like(counts, 1 / counts.shape[1])
        return replace(tree, leaves=self.samples.target.update(counts, even, self.plan.leaf_prior)), counts

    def _epoch(self) -> float:
        """Steps on all batches; the mean bound before each step."""
        steps = [self.steps.take(rows, group) for rows, group in self.groups.epoch(self.plan, self.generator)]
        return sum(bound for bound, _ in steps) / sum(weight for _, weight in steps)

    def _record(self, end: EpochEnd) -> EpochRecord:
        depth = self.start.structure.depth
        return EpochRecord(
            phase="finetune",
            level=depth,
            n_levels=depth,
            n_splits=self.start.structure.n_splits,
            epoch=self.first_epoch + end.epoch + 1,
            n_epochs=self.n_epochs,
            steepness=end.steepness,
            loss=end.loss,
            validation_score=end.score,
        )


class TreeRoutes:
    """Every row starts at the root of one tree."""

    def __init__(self, structure: TreeStructure) -> None:
        self.structure = structure
        self.left: Children = structure.left
        self.right: Children = structure.right

    def paths(self, splits: ObliqueSplits, x: Tensor, y: Tensor, group: Tensor, loss: Tensor) -> Paths:
        return tree_paths(splits, self.structure, x, y, loss)

    def worst(self, loss: Floats) -> Floats:
        return best_entries(self.structure, loss)


def tree_paths(splits: ObliqueSplits, structure: TreeStructure, x: Tensor, y: Tensor, loss: Tensor) -> Paths:
    """Inputs of the bound for rows that start at the root of a tree.

    A row and all its reversals descend together: column 0 of ``nodes`` is the row itself, and every level adds the
    column that takes the other child there and follows its own decisions afterwards. ``loss`` is (n_leaves, n_classes).
    """
    left, right = (
        torch.from_numpy(np.array(children, dtype=np.int64)).to(x.device)
        for children in (structure.left, structure.right)
    )
    scores = splits(x)
    decisions = goes_right(scores)
    nodes = torch.zeros(len(x), 1, dtype=torch.long, device=x.device)
    path = []
    for _ in range(structure.depth):
        current = nodes.clamp_min(0)
        decision = decisions.gather(1, current)
        below = torch.where(nodes >= 0, torch.where(decision, right[current], left[current]), nodes)
        own, first = nodes[:, :1], current[:, :1]
        other = torch.where(decision[:, :1], left[first], right[first])
        path.append(own)
        nodes = torch.cat([below, torch.where(own >= 0, other, own)], dim=1)
    ways = torch.cat(path, dim=1)
    cost = loss[~nodes, y[:, None]]
    on_path = ways.clamp_min(0)
    reversed_cost = cost[:, 1:].masked_fill(ways < 0, -torch.inf)
    return Paths(on_path, scores.gather(1, on_path), cost[:, 0], reversed_cost)
