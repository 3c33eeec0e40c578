"""Trees and data with known answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from crisptree import CrispTreeClassifier, CrispTreeRegressor
from crisptree.data.rows import ArrayRows, ScaledRows
from crisptree.learning.samples import Samples
from crisptree.splits import ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.targets import Classes, Gaussians
from crisptree.tree import Tree

FIGURE_1 = TreeStructure([1, ~0, ~3, ~1], [2, 3, ~4, ~2])
"""The paper's figure 1: splits 1 … 4 are 0 … 3, leaves A … E are 0 … 4."""

CHAIN = TreeStructure([~0, ~1, ~2, ~3], [1, 2, 3, ~4])
"""Every left child is a leaf."""

SHAPES = [TreeStructure.single_leaf(), TreeStructure.stump(), FIGURE_1, CHAIN, TreeStructure.balanced(4)]


def random_structure(n_splits: int, seed: int) -> TreeStructure:
    """Any shape: random leaves are split one after the other."""
    rng = np.random.default_rng(seed)
    structure = TreeStructure.single_leaf()
    for _ in range(n_splits):
        structure = structure.split_leaves([int(rng.integers(structure.n_leaves))])
    return structure


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_tables(n_leaves: int, n_classes: int, seed: int = 0) -> torch.Tensor:
    raw = torch.rand(n_leaves, n_classes, generator=generator(seed), dtype=torch.float64) + 0.05
    return raw / raw.sum(dim=1, keepdim=True)


def random_tree(structure: TreeStructure, n_features: int, n_classes: int, seed: int = 0) -> Tree:
    """Random hyperplanes and leaf tables, in double precision."""
    weight = torch.randn(structure.n_splits, n_features, generator=generator(seed), dtype=torch.float64)
    bias = torch.randn(structure.n_splits, generator=generator(seed + 1), dtype=torch.float64) / 2
    return Tree(structure, ObliqueSplits(weight, bias), random_tables(structure.n_leaves, n_classes, seed))


def brute_force_paths(scores: torch.Tensor, structure: TreeStructure, steepness: float) -> torch.Tensor:
    """μ as the product along every path, straight from the paper's definition."""
    turn = torch.sigmoid(steepness * scores)
    columns = []
    for leaf in range(structure.n_leaves):
        product = torch.ones(len(scores), dtype=scores.dtype)
        for split, right in structure.path(leaf):
            product = product * (turn[:, split] if right else 1 - turn[:, split])
        columns.append(product)
    return torch.stack(columns, dim=1)


def diagonal(n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes on either side of x_0 = x_1, with a gap: one oblique split is enough."""
    X = np.random.default_rng(seed).uniform(-1, 1, (4 * n, 2))
    X = X[np.abs(X[:, 0] - X[:, 1]) > 0.2][:n].astype(np.float32)
    return X, (X[:, 0] > X[:, 1]).astype(int)


def checkerboard(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Exclusive or: the class is the sign of x_0 x_1, with a gap."""
    X = np.random.default_rng(seed).uniform(-1, 1, (6 * n, 2))
    X = X[np.abs(X).min(axis=1) > 0.1][:n].astype(np.float32)
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def clouds(n: int = 300, n_features: int = 5, n_classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian clouds around one centre per class, overlapping a little."""
    rng = np.random.default_rng(seed)
    centers = 2.5 * rng.normal(size=(n_classes, n_features))
    y = np.arange(n) % n_classes
    return (centers[y] + rng.normal(size=(n, n_features))).astype(np.float32), y


def connect4_like(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Boards after eight random drops, one-hot as Connect-4's (n, 126); the class says who has more pairs."""
    rng = np.random.default_rng(seed)
    boards = np.zeros((n, 7, 6), dtype=np.int64)
    height = np.zeros((n, 7), dtype=np.int64)
    rows = np.arange(n)
    for turn in range(8):
        column = rng.integers(0, 7, n)
        column = np.where(height[rows, column] < 6, column, height.argmin(axis=1))
        boards[rows, column, height[rows, column]] = 1 + turn % 2
        height[rows, column] += 1
    ours, theirs = (((boards[:, 1:] == side) & (boards[:, :-1] == side)).sum(axis=(1, 2)) for side in (1, 2))
    lead = np.sign(ours - theirs)
    return np.eye(3, dtype=np.float32)[boards.reshape(n, -1)].reshape(n, -1), lead + 1


def class_samples(x: torch.Tensor | ScaledRows, y: torch.Tensor, weight: torch.Tensor, n_classes: int) -> Samples:
    """Rows with the numbers of their classes."""
    return Samples(ArrayRows(x) if isinstance(x, torch.Tensor) else x, y, weight, Classes(n_classes))


def number_samples(x: torch.Tensor | ScaledRows, y: torch.Tensor, weight: torch.Tensor) -> Samples:
    """Rows with numbers, (n, n_outputs)."""
    return Samples(ArrayRows(x) if isinstance(x, torch.Tensor) else x, y, weight, Gaussians(2 * y.shape[1]))


def random_gaussians(n_leaves: int, n_outputs: int = 1, seed: int = 0) -> torch.Tensor:
    mean = torch.randn(n_leaves, n_outputs, generator=generator(seed), dtype=torch.float64)
    return torch.cat([mean, 0.2 + torch.rand(mean.shape, generator=generator(seed), dtype=torch.float64)], dim=1)


def ridges(n: int = 400, n_features: int = 4, noise: float = 0.1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A number that steps up across two diagonals, with noise: four oblique leaves say all."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)).astype(np.float32)
    steps = 2.0 * (X[:, 0] > X[:, 1]) + 1.0 * (X[:, 2] + X[:, 3] > 0)
    return X, steps + noise * rng.normal(size=n)


def plain_regressor(**parameters: Any) -> CrispTreeRegressor:
    """A regressor that chooses nothing by itself, and trains in little time."""
    plain = {"split": "oblique", "l1": 0.0, "input_noise": 0.0, "scale": "feature", "shrinkage": 0.0, "max_depth": 3}
    quick = {"epochs": 10, "finetune_epochs": 10, "min_updates": 100, "random_state": 0, "n_jobs": 1, "device": "cpu"}
    return CrispTreeRegressor.from_flat(**{**plain, **quick, **parameters})


def plain_tree(**parameters: Any) -> CrispTreeClassifier:
    """A classifier that chooses nothing by itself: hyperplanes, EM, no penalties."""
    plain = {"split": "oblique", "algorithm": "em", "l1": 0.0, "input_noise": 0.0, "scale": "feature", "shrinkage": 0.0}
    return CrispTreeClassifier.from_flat(**{**plain, **parameters})
