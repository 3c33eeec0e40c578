"""Baselines that grow a tree: the library's growth with another search for splits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch

from crisptree.baselines.cart import LeafLimits, SearchContext, axis_aligned_splits, random_splits
from crisptree.baselines.co2 import co2_splits
from crisptree.baselines.oc1 import oc1_splits
from crisptree.learning.engines.base import Checkpointable, Progress, RngState, TensorState
from crisptree.learning.growth import grow_with, min_leaf_weight
from crisptree.learning.history import EpochCallback, EpochRecord
from crisptree.learning.options import GrowthLimits, Plan
from crisptree.learning.samples import Groups, Samples
from crisptree.learning.stumps import Outcome, Stumps
from crisptree.splits import ObliqueSplits
from crisptree.targets import Target
from crisptree.tree import Tree

Search = Callable[[SearchContext, Groups], ObliqueSplits]

SEARCHES: dict[str, Search] = {
    "axis_aligned": axis_aligned_splits,
    "random": random_splits,
    "oc1": oc1_splits,
    "co2": co2_splits,
}


def grow_baseline(
    name: str,
    tree: Tree,
    samples: Samples,
    plan: Plan,
    limits: GrowthLimits,
    *,
    generator: torch.Generator,
    nu: float | None = None,
    on_epoch: EpochCallback | None = None,
) -> Tree:
    """Grow a tree of oblique splits with the search ``name``, a key of ``SEARCHES``.

    ``plan`` has the leaf prior, and epochs, batches and learning rate for CO2; ``nu`` is CO2's bound on ‖w‖², where
    None tries several at every leaf. ``on_epoch`` is called once per level; its loss is the mean impurity after the
    split.
    """
    leaf_limits = LeafLimits(limits.min_samples_leaf, min_leaf_weight(limits, samples))
    find = _BaselineStumps(SEARCHES[name], SearchContext(samples, plan, leaf_limits, generator, nu), limits, on_epoch)
    return grow_with(find, tree, samples, limits)


@dataclass(frozen=True, eq=False)
class _BaselineStumps:
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
        splits = self._search_splits(groups, level)
        everyone = samples.table().expand(2 * n_nodes, -1)
        stumps = Stumps(splits, everyone.reshape(2, -1), groups)
        counts = stumps.hard_counts(samples)
        statistics, prior = counts.reshape(-1, target.n_statistics), self.context.plan.leaf_prior
        stumps.leaves = target.update(statistics, everyone, prior).reshape(2, -1)
        outcome = stumps.outcome(samples, *self.context.leaf_limits)
        if self.on_epoch is not None:
            self.on_epoch(self._record(statistics, level))
        return outcome

    def _search_splits(self, groups: Groups, level: int) -> ObliqueSplits:
        """Search for splits, or restore those found before the fit was resumed."""
        progress = Progress(f"search at level {level}", 1)
        like = self.context.samples.weight.new_zeros(len(groups.sizes), self.context.samples.n_features)
        splits = ObliqueSplits(like, like[:, 0].clone()) if progress.is_over else self.search(self.context, groups)
        parts: list[Checkpointable] = [TensorState("splits", splits.parameters), RngState([self.context.generator])]
        if progress.is_over:
            progress.restore(parts)
        else:
            progress.keep(1, parts)
        return splits

    def _record(self, statistics: torch.Tensor, level: int) -> EpochRecord:
        loss = _mean_impurity(self.context.samples.target, statistics)
        return EpochRecord(
            phase="grow",
            level=level,
            n_levels=None if self.limits.max_leaf_nodes else self.limits.max_depth,
            n_splits=len(statistics) // 2,
            epoch=1,
            n_epochs=1,
            steepness=self.context.plan.steepness_at(0),
            loss=loss,
        )


def _mean_impurity(target: Target, statistics: torch.Tensor) -> float:
    """Mean impurity per unit of weight; for classification in the precision of the counts."""
    if target.n_classes is not None:
        shares = statistics / statistics.sum(dim=1, keepdim=True).clamp_min(1e-30)
        return float(-torch.xlogy(statistics, shares).sum() / statistics.sum())
    sums = statistics.double().cpu().numpy()
    return float(target.impurity(sums).sum() / target.weight(sums).sum())
