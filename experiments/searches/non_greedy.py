"""Non-greedy training of a whole tree (Norouzi, Collins, Johnson, Fleet & Kohli 2015).

The bound of ``co2`` over the decisions of the whole tree, lowered by stochastic gradients with ‖w_i‖² ≤ ν for every
split. The loss-augmented inference considers the leaf that a row reaches and those it would reach with one decision of
its path reversed. The assignment of rows to leaves, and so the leaf tables, is updated once per epoch.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from crisptree.equations.routing import goes_right
from crisptree.learning.engines.native_engine import best_entries
from crisptree.learning.history import EpochCallback, EpochRecord
from crisptree.learning.options import Plan
from crisptree.learning.samples import Samples
from crisptree.splits import ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.tree import Tree
from experiments.searches.co2 import Children, Floats, Paths, bound_steps, losses


def train_non_greedy(
    tree: Tree,
    samples: Samples,
    plan: Plan,
    nu: float,
    generator: torch.Generator,
    on_epoch: EpochCallback | None = None,
) -> Tree:
    """Train the whole tree, which is not modified, from its current state; ``nu`` is the bound on ‖w_i‖².

    ``on_epoch`` gets the mean bound as loss.
    """
    if tree.structure.n_splits == 0:
        return tree
    splits = tree.splits.trainable()
    assert isinstance(splits, ObliqueSplits)
    steps, groups = bound_steps(splits, samples, TreeRoutes(tree.structure), nu), samples.as_one_group()
    start = tree
    counts = samples.hard_counts(tree)
    for epoch in range(plan.epochs):
        steps.begin(losses(counts), plan.settings_at(epoch).learning_rate)
        taken = [steps.take(rows, group) for rows, group in groups.epoch(plan, generator)]
        tree = Tree(start.structure, splits.detach(), start.leaves)
        counts = samples.hard_counts(tree)
        even = torch.full_like(counts, 1 / counts.shape[1])
        tree = replace(tree, leaves=samples.target.update(counts, even, plan.leaf_prior))
        if on_epoch is not None:
            on_epoch(_record(tree, plan, epoch, sum(bound for bound, _ in taken) / sum(weight for _, weight in taken)))
    return tree


def _record(tree: Tree, plan: Plan, epoch: int, bound: float) -> EpochRecord:
    depth = tree.structure.depth
    return EpochRecord(
        phase="finetune",
        level=depth,
        n_levels=depth,
        n_splits=tree.structure.n_splits,
        epoch=epoch + 1,
        n_epochs=plan.epochs,
        steepness=plan.steepness_at(0),
        loss=bound,
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
