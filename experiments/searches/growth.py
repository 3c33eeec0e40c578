"""The comparison methods as values of ``grow``: the library's growth with another search for splits, and non-greedy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch

from crisptree.learning.cart import LeafLimits
from crisptree.learning.engines.base import Groups
from crisptree.learning.fitting import TrainingContext
from crisptree.learning.growth import Outcome, Stumps, grow_with, min_leaf_weight
from crisptree.learning.history import EpochCallback, EpochRecord
from crisptree.learning.options import GrowthLimits, Plan
from crisptree.learning.samples import Samples
from crisptree.splits import ObliqueSplits
from crisptree.tree import Tree
from experiments.searches.co2 import co2_splits
from experiments.searches.non_greedy import train_non_greedy
from experiments.searches.oc1 import oc1_splits
from experiments.searches.thresholds import SearchContext, axis_aligned_splits, random_splits

Search = Callable[[SearchContext, Groups], ObliqueSplits]

SEARCHES: dict[str, Search] = {
    "axis_aligned": axis_aligned_splits,
    "random": random_splits,
    "oc1": oc1_splits,
    "co2": co2_splits,
}


@dataclass(frozen=True)
class SearchGrowth:
    """Growth of oblique splits by a search, a key of ``SEARCHES``.

    ``nu`` is CO2's bound on ‖w‖², where None tries several at every leaf.
    """

    name: str
    nu: float | None = None

    def __call__(self, context: TrainingContext, tree: Tree) -> Tree:
        """Grow a tree on the rows of a training."""
        spec, samples, generator = context.spec, context.samples, context.generator
        return grow_by_search(
            self.name, tree, samples, spec.growth, spec.limits, generator, nu=self.nu, on_epoch=context.on_epoch
        )


@dataclass(frozen=True)
class NonGreedyTraining:
    """Non-greedy training of the tree of a warm start, whose structure it keeps, with the bound ν on ‖w‖²."""

    nu: float | None

    def __call__(self, context: TrainingContext, tree: Tree) -> Tree:
        """Train all splits of a tree on the rows of a training."""
        if self.nu is None:
            raise ValueError("`nu` must be a number for non-greedy training; got None.")
        return train_non_greedy(
            tree, context.samples, context.spec.growth, self.nu, context.generator, context.on_epoch
        )


def grow_by_search(
    name: str,
    tree: Tree,
    samples: Samples,
    plan: Plan,
    limits: GrowthLimits,
    generator: torch.Generator,
    *,
    nu: float | None = None,
    on_epoch: EpochCallback | None = None,
) -> Tree:
    """Grow a tree of oblique splits with the search ``name``, a key of ``SEARCHES``.

    ``plan`` has the leaf prior, and epochs, batches and learning rate for CO2. ``on_epoch`` is called once per level;
    its loss is the mean entropy after the split.
    """
    leaf_limits = LeafLimits(limits.min_samples_leaf, min_leaf_weight(limits, samples))
    find = _Finder(SEARCHES[name], SearchContext(samples, plan, leaf_limits, generator, nu), limits, on_epoch)
    return grow_with(find, tree, samples, limits)


@dataclass(frozen=True, eq=False)
class _Finder:
    """A search in the form that growth asks for: its splits, with their effect on the rows."""

    search: Search
    context: SearchContext
    limits: GrowthLimits
    on_epoch: EpochCallback | None

    tries: ClassVar[int] = 1

    @torch.no_grad()
    def __call__(self, groups: Groups, level: int) -> Outcome:
        samples = self.context.samples
        n_nodes, target = len(groups.sizes), samples.target
        splits = self.search(self.context, groups)
        everyone = samples.table().expand(2 * n_nodes, -1)
        stumps = Stumps(splits, everyone.reshape(2, -1), groups)
        counts = stumps.hard_counts(samples).reshape(-1, target.n_statistics)
        stumps.leaves = target.update(counts, everyone, self.context.plan.leaf_prior).reshape(2, -1)
        outcome = stumps.outcome(samples, *self.context.leaf_limits)
        if self.on_epoch is not None:
            self.on_epoch(self._record(counts, level))
        return outcome

    def _record(self, counts: torch.Tensor, level: int) -> EpochRecord:
        shares = counts / counts.sum(dim=1, keepdim=True).clamp_min(1e-30)
        return EpochRecord(
            phase="grow",
            level=level,
            n_levels=None if self.limits.max_leaf_nodes else self.limits.max_depth,
            n_splits=len(counts) // 2,
            epoch=1,
            n_epochs=1,
            steepness=self.context.plan.steepness_at(0),
            loss=float(-torch.xlogy(counts, shares).sum() / counts.sum()),
        )
