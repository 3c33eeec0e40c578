"""Predictions of the probabilistic tree. Imports torch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.data.rows import RawRows
from crisptree.inference import CrispTree, FlatTree
from crisptree.inference.flat_tree import dense_blocks
from crisptree.threads import one_thread
from crisptree.tree import Tree


@one_thread()
@torch.no_grad()
def soft_probabilities(tree: CrispTree, X: RawRows, steepness: float | None) -> npt.NDArray[np.float64]:
    """Predict p(y∣x) by the probabilistic tree.  (n, n_classes)"""
    if tree.is_linear:
        return _soft_linear(tree, X, steepness)
    soft, gamma = Tree.soft(tree), _steepness(tree, steepness)
    logs = [soft.log_class_probabilities(block, gamma).double() for block in _scaled_blocks(tree, X)]
    return np.asarray(torch.softmax(torch.cat(logs), dim=1).numpy())


@one_thread()
@torch.no_grad()
def soft_means(tree: CrispTree, X: RawRows, steepness: float | None) -> npt.NDArray[np.float64]:
    """Predict E(y∣x) = Σ_ℓ m_ℓ μ_ℓ(x) by the probabilistic regression tree, in the units of y."""
    if tree.is_linear:
        return np.asarray(tree.target.predict(tree.restore_units(_soft_linear(tree, X, steepness))))
    soft, gamma = Tree.soft(tree), _steepness(tree, steepness)
    means = torch.from_numpy(tree.target.predict(tree.restore_units(tree.statistics.soft_leaves)))
    paths = (soft.log_path_probabilities(block, gamma).double().exp() for block in _scaled_blocks(tree, X))
    return np.asarray(torch.cat([path @ means for path in paths]).numpy())


def _soft_linear(tree: CrispTree, X: RawRows, steepness: float | None) -> npt.NDArray[np.float64]:
    """Compute Σ_ℓ μ_ℓ(x) times the prediction of the linear model of leaf ℓ, in the units of training."""
    assert isinstance(tree, FlatTree)
    soft, gamma, blocks, start = Tree.soft(tree), _steepness(tree, steepness), [], 0
    for scaled in _scaled_blocks(tree, X):
        paths, rows = soft.log_path_probabilities(scaled, gamma).double().exp().numpy(), X[start : start + len(scaled)]
        values = np.zeros((len(scaled), tree.n_values))
        for leaf in range(tree.structure.n_leaves):
            values += paths[:, [leaf]] * tree.scaled_values(np.full(len(scaled), leaf), rows)
        blocks.append(values)
        start += len(scaled)
    return np.concatenate(blocks)


def _steepness(tree: CrispTree, steepness: float | None) -> float:
    return tree.statistics.steepness if steepness is None else steepness


def _scaled_blocks(tree: CrispTree, X: RawRows) -> Iterator[Tensor]:
    return (torch.from_numpy(tree.statistics.scaling.apply(block)) for _, block in dense_blocks(X))
