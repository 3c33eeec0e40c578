"""Input and output of the searches for splits, and the simplest of them: the best of many random directions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from crisptree.baselines.thresholds import LeafLimits, best_thresholds
from crisptree.learning.options import Plan
from crisptree.learning.samples import Groups, Samples
from crisptree.splits import ObliqueSplits, random_directions
from crisptree.targets import Classes

TARGET_STEPS = 2.0**24
"""Regression targets are rounded to so many steps per spread: their sums are then exact, and rounding does not decide
among splits of equal gain."""

N_DIRECTIONS = 100
"""Random directions that compete at a leaf."""


class NodeRows(NamedTuple):
    """The rows of one leaf as arrays: x (n, n_features), y (n,) or (n, n_outputs), weight (n,)."""

    x: npt.NDArray[np.float32]
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SearchContext:
    """What stays the same while a baseline grows a tree.

    Parameters
    ----------
    samples : Samples
        The training rows.
    plan : Plan
        Epochs, batches and learning rate of the baselines that use gradients.
    leaf_limits : LeafLimits
        Minimum size of each side of a split.
    generator : torch.Generator
        Every random number comes from it.
    nu : float or None
        The bound ν on ‖w‖² of the baselines that have one.
    """

    samples: Samples
    plan: Plan
    leaf_limits: LeafLimits
    generator: torch.Generator
    nu: float | None = None

    @property
    def n_classes(self) -> int | None:
        """Number of classes; None for regression."""
        target = self.samples.target
        return target.n_values if isinstance(target, Classes) else None

    def nodes(self, groups: Groups) -> Iterator[NodeRows]:
        """Iterate over the rows of every group."""
        for rows in groups.rows.split(groups.sizes.tolist()):
            x, y, weight = self.samples.batch(rows), self.samples.y[rows], self.samples.weight[rows].double()
            values = y.cpu().numpy()
            if self.n_classes is None:
                values = np.round(values * TARGET_STEPS) / TARGET_STEPS
            yield NodeRows(x.cpu().numpy(), values, weight.cpu().numpy())

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
    found = HyperplaneArrays.idle(len(groups.sizes), n_features)
    for number, node in enumerate(context.nodes(groups)):
        directions = random_directions(n_directions, n_features, context.generator)
        found.set_best(number, node, directions.detach().cpu().numpy().astype(np.float32, copy=False), context)
    return context.splits(found)
