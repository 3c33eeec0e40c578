"""What the search for the splits of some leaves is given, and the form of its answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.baselines.thresholds import Least
from crisptree.learning.options import Plan
from crisptree.learning.samples import Groups, Samples
from crisptree.splits import ObliqueSplits
from crisptree.targets import Classes

FINENESS = 2.0**24
"""A search sees numbers in steps of one part of so many of their spread: their sums are then exact, and rounding does
not choose among splits of equal gain."""


class Node(NamedTuple):
    """The rows of one leaf as arrays: x (n, n_features), y (n,) or (n, n_outputs), weight (n,)."""

    x: npt.NDArray[np.float32]
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Task:
    """What stays the same while a rival grows a tree.

    Parameters
    ----------
    samples : Samples
        The training rows.
    plan : Plan
        Epochs, batches and learning rate of the rivals that follow gradients.
    least : Least
        What each side of a split must keep.
    generator : torch.Generator
        Every random number comes from it.
    nu : float or None
        The bound ν on ‖w‖² of the rivals that have one.
    """

    samples: Samples
    plan: Plan
    least: Least
    generator: torch.Generator
    nu: float | None = None

    @property
    def n_classes(self) -> int | None:
        """How many classes there are; None where y are numbers."""
        target = self.samples.target
        return target.n_values if isinstance(target, Classes) else None

    def nodes(self, groups: Groups) -> Iterator[Node]:
        """The rows of every group."""
        for rows in groups.rows.split(groups.sizes.tolist()):
            x, y, weight = self.samples.batch(rows), self.samples.y[rows], self.samples.weight[rows].double()
            values = y.cpu().numpy()
            if self.n_classes is None:
                values = np.round(values * FINENESS) / FINENESS
            yield Node(x.cpu().numpy(), values, weight.cpu().numpy())

    def seed(self) -> int:
        """A fresh seed for a generator of another library."""
        return int(torch.randint(2**31, (1,), generator=self.generator))

    def splits(self, hyperplanes: Hyperplanes) -> ObliqueSplits:
        """The hyperplanes as splits beside the samples."""
        weight, bias = (torch.from_numpy(np.asarray(part)).to(self.samples.weight) for part in hyperplanes)
        return ObliqueSplits(weight, bias)


class Hyperplanes(NamedTuple):
    """weight · x + bias > 0 goes right: (n, n_features) and (n,)."""

    weight: npt.NDArray[np.floating]
    bias: npt.NDArray[np.floating]

    @classmethod
    def idle(cls, n: int, n_features: int) -> Hyperplanes:
        """Splits that send every row left: what stays where none is found, for growth to turn down."""
        return cls(np.zeros((n, n_features), dtype=np.float32), np.full(n, -1.0))


def as_array(values: Tensor) -> npt.NDArray[np.float32]:
    """A float32 array on the CPU."""
    return np.asarray(values.detach().cpu().numpy(), dtype=np.float32)
