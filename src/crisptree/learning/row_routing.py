"""Which way training rows go in trees and stumps as they stand now: with the native kernel where it can read them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.equations.routing import goes_right
from crisptree.learning.samples import Samples
from crisptree.splits import AbstractSplits, ObliqueSplits
from crisptree.tree import Tree

Ints = npt.NDArray[np.int32]


def reads_in_place(samples: Samples, splits: AbstractSplits) -> bool:
    """Whether rows are routed where they lie, without a copy."""
    if not isinstance(splits, ObliqueSplits) or samples.native_rows is None:
        return False
    return splits.parameters["weight"].dtype == samples.rows.dtype


@torch.no_grad()
def leaves_of(tree: Tree, samples: Samples, rows: Tensor) -> Tensor:
    """The leaf of some rows under deterministic routing.  (b,) → (b,)"""
    if not tree.structure.n_splits:
        return torch.zeros_like(rows)
    if not reads_in_place(samples, tree.splits):
        return tree.route(samples.batch(rows))
    start = np.zeros(len(rows), dtype=np.int32)
    return _ends(tree.splits, samples, rows, start, tree.structure.left, tree.structure.right)


@torch.no_grad()
def turns_of(splits: AbstractSplits, samples: Samples, rows: Tensor, split: Tensor) -> Tensor:
    """Whether some rows go right, each at its own split.  (b,), (b,) → (b,); candidates: (b, n_candidates)"""
    if not reads_in_place(samples, splits):
        return goes_right(splits.at(samples.batch(rows), split))
    left = ~(2 * np.arange(splits.n_splits, dtype=np.int32))  # the ends of split i are 2i and 2i + 1
    return _ends(splits, samples, rows, split.numpy().astype(np.int32), left, left - 1) % 2 == 1


def _ends(splits: AbstractSplits, samples: Samples, rows: Tensor, node: Ints, left: Ints, right: Ints) -> Tensor:
    weight, bias = (splits.parameters[name].detach().contiguous().numpy() for name in ("weight", "bias"))
    samples.native_rows.route(rows.numpy(), node, weight, bias, left, right, samples.threads)
    return torch.from_numpy(~node.astype(np.int64))
