"""Searches of the comparison methods for splits: what they share, thresholds on one feature, random directions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from sklearn.tree import DecisionTreeClassifier

from crisptree.learning.cart import LeafLimits, best_thresholds, round_down
from crisptree.learning.engines.base import Groups
from crisptree.learning.options import Plan
from crisptree.learning.samples import Samples
from crisptree.splits import ObliqueSplits, random_directions

N_DIRECTIONS = 100
"""Random directions that compete at a leaf."""


class NodeRows(NamedTuple):
    """The rows of one leaf as arrays: x (n, n_features), y (n,), weight (n,)."""

    x: npt.NDArray[np.float32]
    y: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SearchContext:
    """What stays the same while a search grows a tree.

    ``plan`` is for searches that use gradients, ``nu`` the bound ν on ‖w‖² of those that have one; every random number
    comes from ``generator``.
    """

    samples: Samples
    plan: Plan
    leaf_limits: LeafLimits
    generator: torch.Generator
    nu: float | None = None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.samples.target.n_values

    def nodes(self, groups: Groups) -> Iterator[NodeRows]:
        """Iterate over the rows of every group."""
        for rows in groups.rows.split(groups.sizes.tolist()):
            x, y, weight = self.samples.batch(rows), self.samples.y[rows], self.samples.weight[rows].double()
            yield NodeRows(x.cpu().numpy(), y.cpu().numpy(), weight.cpu().numpy())

    def seed(self) -> int:
        """Draw a seed for the generator of another library."""
        return int(torch.randint(2**31, (1,), generator=self.generator))

    def splits(self, hyperplanes: HyperplaneArrays) -> ObliqueSplits:
        """Convert hyperplanes to splits on the device of the samples."""
        weight, bias = (torch.from_numpy(np.asarray(part)).to(self.samples.weight) for part in hyperplanes)
        return ObliqueSplits(weight, bias)


class HyperplaneArrays(NamedTuple):
    """weight · x + bias > 0 goes right: (n, n_features) and (n,)."""

    weight: npt.NDArray[np.floating]
    bias: npt.NDArray[np.floating]

    @classmethod
    def idle(cls, n: int, n_features: int) -> HyperplaneArrays:
        """Splits that send every row left: the result where no split is found, which growth rejects."""
        return cls(np.zeros((n, n_features), dtype=np.float32), np.full(n, -1.0))

    def set_best(
        self, number: int, node: NodeRows, directions: npt.NDArray[np.floating], context: SearchContext
    ) -> None:
        """Set one hyperplane to the direction and threshold with the highest gain on the rows of a node, if any."""
        scores = directions @ node.x.T
        best = best_thresholds(scores, node.y, node.weight, context.n_classes, context.leaf_limits)
        line = best.best_line()
        if line is not None:
            self.weight[number], self.bias[number] = directions[line], -best.threshold[line]


def random_splits(context: SearchContext, groups: Groups, n_directions: int = N_DIRECTIONS) -> ObliqueSplits:
    """Find the best of ``n_directions`` random unit directions, drawn anew for every group of rows."""
    n_features = context.samples.n_features
    hyperplanes = HyperplaneArrays.idle(len(groups.sizes), n_features)
    for number, node in enumerate(context.nodes(groups)):
        directions = random_directions(n_directions, n_features, context.generator)
        hyperplanes.set_best(number, node, directions.detach().cpu().numpy().astype(np.float32, copy=False), context)
    return context.splits(hyperplanes)


def axis_aligned_splits(context: SearchContext, groups: Groups) -> ObliqueSplits:
    """Find the best threshold on one feature for every group of rows.

    scikit-learn finds one stump per leaf, so that all stopping rules, weights and warm starts are the library's own.
    """
    return context.splits(axis_aligned_hyperplanes(context, groups))


def axis_aligned_hyperplanes(context: SearchContext, groups: Groups) -> HyperplaneArrays:
    """Find the same as arrays, each hyperplane with one weight, which is 1."""
    seed = context.seed()
    hyperplanes = HyperplaneArrays.idle(len(groups.sizes), context.samples.n_features)
    for number, node in enumerate(context.nodes(groups)):
        stump = best_stump(node, context.leaf_limits, seed)
        if stump is not None:
            feature, threshold = stump
            hyperplanes.weight[number, feature] = 1.0
            hyperplanes.bias[number] = -threshold
    return hyperplanes


def best_stump(node: NodeRows, leaf_limits: LeafLimits, seed: int = 0) -> tuple[int, np.float32] | None:
    """Find the feature and the threshold with the highest gain; None if no threshold is allowed.

    ``seed`` decides among features of equal gain.
    """
    share = (1 - 1e-9) * leaf_limits.weight / node.weight.sum()  # the minimum itself is enough, despite rounding
    if share > 0.5:  # two sides cannot both keep so much
        return None
    tree = DecisionTreeClassifier(
        criterion="entropy",
        max_depth=1,
        min_samples_leaf=leaf_limits.rows,
        min_weight_fraction_leaf=share,
        random_state=seed,
    )
    fitted = tree.fit(node.x, node.y, sample_weight=node.weight).tree_
    if fitted.node_count == 1:
        return None
    return int(fitted.feature[0]), round_down(fitted.threshold[0])
