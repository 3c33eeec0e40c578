"""What the native kernel is told of leaves at the start of an epoch: their tables, in the form quickest there."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from crisptree.equations.gaussian import LOG_TWO_PI
from crisptree.learning.backends.base import Trainee
from crisptree.learning.samples import Samples
from crisptree.structure import TreeStructure
from crisptree.targets import Classes, Gaussians, Target

Doubles = npt.NDArray[np.float64]

BINS = 64
"""Numbers are put into so many bins by their size. For a bin it is known how dense its numbers can be in the leaves
under a node, so that a row leaves out what cannot be responsible for it without asking."""


class NativeLeaves(Protocol):
    """The leaves of a trainee; ``stumps`` and ``tree`` are the kernel's steps for them."""

    stumps: ClassVar[str]
    tree: ClassVar[str]

    def __init__(self, trainee: Trainee, samples: Samples) -> None: ...

    def tables(self) -> tuple[npt.NDArray[Any], ...]:
        """What the kernel is given of the tables as they are."""


class NativeClasses:
    """Distributions over classes."""

    stumps: ClassVar[str] = "stumps"
    tree: ClassVar[str] = "tree"

    def __init__(self, trainee: Trainee, samples: Samples) -> None:
        self.trainee = trainee

    def tables(self) -> tuple[npt.NDArray[Any], ...]:
        leaves = self.trainee.leaves.detach().contiguous().numpy()
        return (best_entries(self.trainee.structure, leaves) if self.trainee.is_whole_tree else leaves,)


class NativeGaussians:
    """Normal distributions of numbers."""

    stumps: ClassVar[str] = "gaussian_stumps"
    tree: ClassVar[str] = "gaussian_tree"

    def __init__(self, trainee: Trainee, samples: Samples) -> None:
        self.trainee = trainee
        self.y = np.ascontiguousarray(samples.y.numpy(), dtype=np.float64)
        if trainee.is_whole_tree:
            self.bins, self.low, self.high = binned(self.y)

    def tables(self) -> tuple[npt.NDArray[Any], ...]:
        leaves = self.trainee.leaves.detach().double().numpy().reshape(len(self.trainee.leaves), -1, 2, self.y.shape[1])
        mean, variance = leaves[:, :, 0], leaves[:, :, 1]
        peaks = -0.5 * (np.log(variance) + LOG_TWO_PI)
        forms = np.concatenate([mean, 0.5 / variance, peaks.sum(axis=-1, keepdims=True)], axis=-1)
        if not self.trainee.is_whole_tree:
            return self.y, np.ascontiguousarray(forms)
        densest = densest_in_bins(mean[:, 0], variance[:, 0], peaks[:, 0], self.low, self.high)
        best = best_entries(self.trainee.structure, densest.reshape(len(densest), -1))
        best = best.T.reshape(*densest.shape[1:], -1)  # (n_outputs, n_bins, n_nodes)
        highest = best[..., 0]
        relative = np.exp(best - highest[..., None])
        return self.y, self.bins, np.ascontiguousarray(forms[:, 0].T), relative, np.ascontiguousarray(highest)


LEAVES: dict[type[Target], type[NativeLeaves]] = {Classes: NativeClasses, Gaussians: NativeGaussians}
"""By the target, which must be this one and none that is derived from it."""


def best_entries(structure: TreeStructure, leaves: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The largest entry of any leaf table under every node, splits first.  (n_leaves, k) → (n_nodes, k)"""
    best = np.empty((structure.n_nodes, leaves.shape[1]), dtype=leaves.dtype)
    best[structure.n_splits :] = leaves
    for splits in reversed(structure.levels):
        best[splits] = np.maximum(best[structure.left_nodes[splits]], best[structure.right_nodes[splits]])
    return best


def binned(y: Doubles) -> tuple[npt.NDArray[np.int32], Doubles, Doubles]:
    """The bin of every number, by output, and where each bin begins and ends.

    (n, n_outputs) → (n, n_outputs), two (n_outputs, BINS)
    """
    inner = np.quantile(y, np.arange(1, BINS) / BINS, axis=0).T
    bins = np.stack([np.searchsorted(edges, column) for edges, column in zip(inner, y.T, strict=True)], axis=1)
    low = np.concatenate([y.min(axis=0)[:, None], inner], axis=1)
    high = np.concatenate([inner, y.max(axis=0)[:, None]], axis=1)
    return bins.astype(np.int32), low, high


def densest_in_bins(mean: Doubles, variance: Doubles, peaks: Doubles, low: Doubles, high: Doubles) -> Doubles:
    """The largest log-density of each output in each leaf that any number of a bin has.

    Three (n_leaves, n_outputs), two (n_outputs, BINS) → (n_leaves, n_outputs, BINS)
    """
    far = np.maximum(np.maximum(low - mean[..., None], mean[..., None] - high), 0.0)
    return peaks[..., None] - 0.5 * far**2 / variance[..., None]
