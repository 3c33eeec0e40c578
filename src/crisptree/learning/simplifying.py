"""Taking weights and subtrees away from a trained tree, as long as the deterministic tree stays good enough."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.learning.finetuning import Finetuned, finetune
from crisptree.learning.history import Listener
from crisptree.learning.plan import Plan
from crisptree.learning.samples import Samples
from crisptree.splits import ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.tree import Tree
from crisptree.warning import CrispTreeWarning

Doubles = npt.NDArray[np.float64]

ROUNDING = 1e-9
"""Sums of weights may differ by this share when taken in another order; a tolerance of zero must survive that."""


class Counted(NamedTuple):
    """The rows of every class that reach every leaf of the deterministic tree.  (n_leaves, n_classes)"""

    training: Doubles
    validation: Doubles


@dataclass(frozen=True, eq=False)
class Task:
    """What a simplification works with.

    Parameters
    ----------
    samples : Samples
        The rows to refit on.
    plan : Plan
        The refit after every stage.
    count : callable
        ``count(tree)``: where training and validation rows end in the deterministic tree.
    spread : Tensor of shape (n_features,)
        How much each scaled feature varies; a weight counts by |w_j| · spread_j.
    """

    samples: Samples
    plan: Plan
    count: Callable[[Tree], Counted]
    spread: Tensor

    def score(self, tree: Tree) -> float:
        """The accuracy on the validation rows, with leaf tables from the training rows."""
        counted = self.count(tree)
        majority = _majorities(tree.structure, counted.training)[tree.structure.n_splits :]
        right = counted.validation[np.arange(len(majority)), majority].sum()
        return float(right / counted.validation.sum())


def simplify(
    start: Finetuned,
    task: Task,
    *,
    max_terms: int | None,
    lowest: float | None,
    generator: torch.Generator,
    on_epoch: Listener | None = None,
) -> Finetuned:
    """First fewer weights, then fewer splits.

    Weights go by halves of the largest number that any split has, with a refit after each stage: a tree taken down in
    one go loses several times as much. Subtrees go by what they bring on the validation rows.

    Parameters
    ----------
    start : Finetuned
        A tree with linear splits and its steepness; it is left as it is.
    task : Task
        Rows, plan and counts.
    max_terms : int or None
        The most weights that a split may keep, whatever that costs.
    lowest : float or None
        The score down to which more may be taken away; None takes no more than ``max_terms`` asks for.
    generator : torch.Generator
        Shuffles the batches of refits.
    on_epoch : callable, optional
        Hears of every epoch.
    """
    now = start
    for terms, must in _stages(start.tree, max_terms, go_on=lowest is not None):
        thinner = _refitted(now.tree, terms, task, generator, on_epoch)
        if lowest is not None and terms == max_terms:
            lowest = _within_reach(lowest, task.score(thinner.tree), terms)
        if lowest is not None and not must and task.score(thinner.tree) < lowest - ROUNDING:
            break
        now = thinner
    if lowest is None:
        return now
    return Finetuned(_pruned(now.tree, task.count(now.tree), lowest), now.steepness)


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


def _refitted(tree: Tree, terms: int, task: Task, generator: torch.Generator, on_epoch: Listener | None) -> Finetuned:
    """The tree with the largest terms of every split, all that is left trained jointly."""
    weight, bias = tree.splits.parameters["weight"], tree.splits.parameters["bias"]
    influence = weight.abs() * task.spread
    largest = torch.argsort(influence, dim=1, descending=True, stable=True)[:, :terms]
    zeros = torch.ones_like(weight, dtype=torch.bool).scatter(1, largest, False) | (weight == 0)
    # The mean row's score stays as it was: what goes is replaced by its mean.
    thinned = ObliqueSplits(weight.masked_fill(zeros, 0.0), bias + (weight * zeros) @ task.samples.mean())
    start = Tree(tree.structure, thinned, tree.leaves)
    return finetune(start, task.samples, task.plan, generator=generator, on_epoch=on_epoch, zeros=zeros)


def _pruned(tree: Tree, counted: Counted, lowest: float) -> Tree:
    """The tree without subtrees that the score can do without."""
    ends = weakest_links(tree.structure, counted, lowest)
    if not ends:
        return tree
    structure, nodes = tree.structure.pruned(ends)
    splits, leaves = nodes[: structure.n_splits], nodes[structure.n_splits :]
    held = counted.training.sum(axis=1)
    tables = tree.structure.means_below(tree.leaves.double().cpu().numpy(), held)[leaves]
    return Tree(structure, tree.splits.select(splits.tolist()), torch.from_numpy(tables).to(tree.leaves))


def weakest_links(structure: TreeStructure, counted: Counted, lowest: float) -> list[int]:
    """Which splits to make leaves of, so that the validation score stays at ``lowest`` or above.

    Again and again the split goes whose subtree brings the fewest right answers for each split that it needs. A subtree
    that brings none, or does harm, goes at once.
    """
    n_splits = structure.n_splits
    node_counts = structure.sums_below(counted.validation)
    as_leaf = node_counts[np.arange(structure.n_nodes), _majorities(structure, counted.training)]
    needed = (lowest - ROUNDING) * node_counts[0].sum()
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


def _majorities(structure: TreeStructure, counts: Doubles) -> npt.NDArray[np.intp]:
    """The most frequent class of every node; without any rows that of the node above.  (n_nodes,)"""
    nodes = structure.sums_below(counts)
    majority = nodes.argmax(axis=1)
    for node in np.flatnonzero(nodes.sum(axis=1) == 0):
        # Splits come after their parents, leaves after all splits.
        majority[node] = majority[structure.parents[node]]
    return majority
