"""Taking weights and subtrees away from a trained tree, as long as the deterministic tree stays good enough."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from crisptree.exceptions import CrispTreeWarning
from crisptree.inference import CrispTree, route_rows
from crisptree.inference.finalization import remove_dead_splits
from crisptree.learning.finetuning import TrainedTree
from crisptree.learning.fitting import device_of, finalize_tree, fit_tree
from crisptree.learning.history import EpochCallback
from crisptree.learning.options import Spec
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.splits import LINEAR, ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.targets import Target
from crisptree.tree import Tree

Doubles = npt.NDArray[np.float64]

ROUNDING = 1e-9
"""Sums of weights may differ by this share when taken in another order; a tolerance of zero must survive that."""


class Counted(NamedTuple):
    """What the rows add up to that reach every leaf of the deterministic tree.  (n_leaves, n_statistics)"""

    target: Target
    training: Doubles
    validation: Doubles

    @classmethod
    def of(cls, tree: CrispTree, validation: RowSet, n_jobs: int | None = None) -> Counted:
        """From a tree with leaf statistics, and the validation rows."""
        structure = tree.structure
        leaf = route_rows(tree, validation.X, n_jobs)
        held_out = tree.target.tally(validation.y, validation.weight, leaf, structure.n_leaves)
        return cls(tree.target, tree.statistics.node_counts[structure.n_splits :], held_out)

    def as_leaves(self, structure: TreeStructure) -> Doubles:
        """How well every node would answer the validation rows that pass it, by its training rows.  (n_nodes,)"""
        nodes = structure.sums_below(self.training)
        tables = self.target.tables(nodes)
        for node in np.flatnonzero(self.target.weight(nodes) == 0):
            # Splits come after their parents, leaves after all splits.
            tables[node] = tables[structure.parents[node]]
        return self.target.sum_scores(tables, structure.sums_below(self.validation))

    def score(self, structure: TreeStructure) -> float:
        """The accuracy on the validation rows, or R² about, with leaf tables from the training rows."""
        right = self.as_leaves(structure)[structure.n_splits :]
        return float(right.sum() / self.target.weight(self.validation).sum())


def simplify(
    tree: CrispTree,
    spec: Spec,
    task: TrainingTask,
    validation: RowSet,
    *,
    max_terms: int | None,
    lowest: float | None,
    on_epoch: EpochCallback | None = None,
) -> CrispTree:
    """First fewer weights, then fewer splits.

    Weights go by halves of the largest number that any split has, with a refit by ``spec`` (``grow="keep"``) after each
    stage: a tree taken down in one go loses several times as much. Subtrees go by what they bring on the validation
    rows. A split keeps ``max_terms`` weights at most, whatever that costs; more is removed as long as the validation
    score stays above ``lowest``, nothing more if it is None. The tree is returned as it is where nothing is removed.
    """
    generator = torch.Generator().manual_seed(spec.seed)
    tree = remove_dead_splits(tree, spec.leaf_prior)
    device = device_of(spec.device, task, spec.split, has_kernels=spec.has_kernels)
    soft = Tree.soft(tree, device, LINEAR.get(str(spec.split), ObliqueSplits))
    start = now = SimplifiedTree(TrainedTree(soft, tree.statistics.steepness), None)
    for terms, must in _stages(soft, max_terms, go_on=lowest is not None):
        thinner = _refitted(now.soft.tree, terms, spec, task, generator, on_epoch)
        score = 0.0 if lowest is None else thinner.counted(validation, spec).score(thinner.structure)
        if lowest is not None and terms == max_terms:
            lowest = _within_reach(lowest, score, terms)
        if lowest is not None and not must and score < lowest - ROUNDING:
            break
        now = thinner
    if lowest is not None:
        alive = now.finalized(task, spec)
        counted = alive.counted(validation, spec)
        ends = weakest_links(alive.structure, counted, lowest)
        if ends or alive.structure != now.structure:
            now = alive.without(ends, counted)
    return tree if now is start else now.finalized(task, spec).tree


@dataclass(frozen=True, eq=False)
class SimplifiedTree:
    """A tree on its way to fewer weights: soft, and deterministic once it is finalized."""

    soft: TrainedTree
    crisp: CrispTree | None

    @property
    def structure(self) -> TreeStructure:
        return self.soft.tree.structure

    @property
    def tree(self) -> CrispTree:
        """The deterministic tree of a finalized stage."""
        assert self.crisp is not None
        return self.crisp

    def finalized(self, task: TrainingTask, spec: Spec) -> SimplifiedTree:
        """With tables and statistics from the rows of the refit, and without splits that part none of these."""
        if self.crisp is not None:
            return self
        crisp, soft = finalize_tree(self.soft, spec, task)
        return SimplifiedTree(soft, crisp)

    def counted(self, validation: RowSet, spec: Spec) -> Counted:
        """Where training and validation rows end in a finalized stage."""
        return Counted.of(self.tree, validation, spec.n_jobs)

    def without(self, ends: list[int], counted: Counted) -> SimplifiedTree:
        """The tree in which some splits have become leaves."""
        if not ends:
            return self
        tree = self.soft.tree
        structure, nodes = tree.structure.prune(ends)
        splits, leaves = nodes[: structure.n_splits], nodes[structure.n_splits :]
        rows = counted.target.weight(counted.training)
        tables = tree.structure.means_below(tree.leaves.double().cpu().numpy(), rows)[leaves]
        to_arrays = tree.splits.select(splits.tolist())
        pruned = replace(tree, structure=structure, splits=to_arrays, leaves=torch.from_numpy(tables).to(tree.leaves))
        return SimplifiedTree(TrainedTree(pruned, self.soft.steepness), None)


def _stages(tree: Tree, max_terms: int | None, *, go_on: bool) -> Iterator[tuple[int, bool]]:
    """How many terms a split may keep, and whether that must be: by halves to ``max_terms``, then on to one."""
    if not isinstance(tree.splits, ObliqueSplits) or tree.structure.n_splits == 0:
        return
    terms = int(torch.count_nonzero(tree.splits.parameters["weight"], dim=1).max())
    while max_terms is not None and terms > max_terms:
        terms = max(-(-terms // 2), max_terms)
        yield terms, True
    while go_on and terms > 1:
        terms = -(-terms // 2)
        yield terms, False


def _within_reach(lowest: float, reached: float, terms: int) -> float:
    if reached < lowest - ROUNDING:
        warnings.warn(
            f"max_terms={terms} alone takes the score on the validation rows to {reached:.4f}, below the {lowest:.4f} "
            "that tolerance allows. Nothing else that costs anything is taken away; allow more terms to stay within.",
            CrispTreeWarning,
            stacklevel=2,
        )
    return min(lowest, reached)


def _refitted(
    tree: Tree, terms: int, spec: Spec, task: TrainingTask, generator: torch.Generator, on_epoch: EpochCallback | None
) -> SimplifiedTree:
    """The tree with the largest terms of every split, all that is left trained jointly."""
    weight, bias = tree.splits.parameters["weight"], tree.splits.parameters["bias"]
    samples, _ = task.on(weight.device, spec.n_jobs)
    scaling = task.scaling
    influence = weight.abs() * torch.as_tensor(scaling.spread * scaling.factor).to(weight)
    largest = torch.argsort(influence, dim=1, descending=True, stable=True)[:, :terms]
    zeros = torch.ones_like(weight, dtype=torch.bool).scatter(1, largest, False) | (weight == 0)
    # The mean row's score stays as it was: what goes is replaced by its mean.
    thinned = ObliqueSplits(weight.masked_fill(zeros, 0.0), bias + (weight * zeros) @ samples.mean())
    start = TrainedTree(replace(tree, splits=thinned), spec.finetuning.steepness_at(0))
    fitted = fit_tree(spec, task, start=start, zeros=zeros, generator=generator, on_epoch=on_epoch)
    return SimplifiedTree(fitted.soft, fitted.tree)


def weakest_links(structure: TreeStructure, counted: Counted, lowest: float) -> list[int]:
    """Which splits to make leaves of, so that the validation score stays at ``lowest`` or above.

    Again and again the split goes whose subtree brings the least right for each split that it needs. A subtree
    that brings none, or does harm, goes at once.
    """
    n_splits = structure.n_splits
    as_leaf = counted.as_leaves(structure)
    needed = (lowest - ROUNDING) * counted.target.weight(counted.validation).sum()
    splits_below = np.append(np.ones(n_splits), np.zeros(structure.n_leaves))
    right = as_leaf.copy()
    alive = np.ones(n_splits, dtype=bool)
    ends: list[int] = []
    while alive.any():
        for level in reversed(structure.levels):
            here = level[alive[level]]
            left, other = structure.left_nodes[here], structure.right_nodes[here]
            right[here] = right[left] + right[other]
            splits_below[here] = 1 + splits_below[left] + splits_below[other]
        lost = (right - as_leaf)[:n_splits]
        may_go = np.flatnonzero(alive & (right[0] - lost >= needed))
        if not len(may_go):
            break
        price = lost[may_go] / splits_below[may_go]
        chosen = int(may_go[np.lexsort((-splits_below[may_go], price))[0]])
        gone = _under(structure, chosen)
        alive[gone] = False
        right[chosen], splits_below[chosen] = as_leaf[chosen], 0.0
        ends = [split for split in ends if split not in set(gone.tolist())] + [chosen]
    return sorted(ends)


def _under(structure: TreeStructure, split: int) -> npt.NDArray[np.int64]:
    """A split and all splits below it."""
    spans = structure.leaf_spans[: structure.n_splits]
    start, stop = spans[split]
    return np.flatnonzero((spans[:, 0] >= start) & (spans[:, 1] <= stop))
