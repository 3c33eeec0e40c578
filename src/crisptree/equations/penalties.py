"""Penalties on weights in the scaled space, never on the bias: l2, l1, groups and the spatial Laplacian."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


def l2(weights: Tensor) -> Tensor:
    """‖β_i‖² of every split.  (n_splits, …) → (n_splits,)"""
    return weights.square().flatten(1).sum(dim=1)


def soft_threshold(weights: Tensor, threshold: Tensor) -> Tensor:
    """sign(β) max(|β| − t, 0): the proximal step of t·|β|, which gives exact zeros."""
    return weights.sign() * (weights.abs() - threshold).clamp_min(0)


NEWTON_STEPS = 8
"""So many find the norm of a group to the last digits, wherever its thresholds lie; the test tries nine decades."""


def group_threshold(weights: Tensor, threshold: Tensor, members: Tensor) -> Tensor:
    """argmin_b Σ_j (b_j − β_j)² / 2t_j + Σ_g ‖b_g‖: the proximal step of Σ‖β_g‖, under which groups vanish as a whole.

    b_j = β_j s / (s + t_j), where s = ‖b_g‖ solves Σ_j β_j² / (s + t_j)² = 1, or is zero where the sum is below 1 at
    s = 0. Newton's steps on (Σ …)^(−1/2), which is concave in s, go up to it from below. Where the thresholds of a
    group are equal this is β max(1 − t / ‖β‖, 0), and for a group of one it is ``soft_threshold``.

    Parameters
    ----------
    weights, threshold : Tensor of shape (n_splits, n_features)
        β and t ≥ 0.
    members : Tensor of shape (n_features, n_groups)
        1 where a feature belongs to a group, 0 elsewhere; each belongs to one at most, and those of none become 0.
    """
    least = torch.finfo(weights.dtype).tiny  # where s + t is zero, β is too
    size = weights.abs() * members.sum(dim=1)
    norm = ((size - threshold).clamp_min(0).square() @ members).sqrt()  # as each |b_j| ≥ |β_j| − t_j
    for _ in range(NEWTON_STEPS):
        reach = (norm @ members.T + threshold).clamp_min(least)
        squares = (size / reach).square()
        total, cubes = squares @ members, (squares / reach) @ members
        norm = (norm + total * (total.sqrt() - 1) / cubes.clamp_min(least)).clamp_min(0)
    norms = norm @ members.T
    return weights * norms / (norms + threshold).clamp_min(least)


def spatial_penalty(weights: Tensor, image_shape: tuple[int, ...]) -> Tensor:
    """β_iᵀ M β_i = Σ over neighbouring pixels of (β_{i,a} − β_{i,b})², of every split.  → (n_splits,)

    M is ``grid_laplacian(image_shape)``; weights are (n_splits, h·w) or (n_splits, h·w·channels) and channels
    are not neighbours of each other.
    """
    images = weights.reshape(len(weights), *image_shape[:2], -1)
    down, across = (images.diff(dim=side).square().flatten(1).sum(dim=1) for side in (1, 2))
    return down + across


def grid_laplacian(image_shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """M of the pixel grid: M_aa is the number of neighbours, M_ab = −1 for neighbours, 0 elsewhere.

    Neighbours are the pixels above, below, left and right. The definition that ``spatial_penalty`` is held to.
    """
    height, width = image_shape[:2]
    channels = image_shape[2] if len(image_shape) == 3 else 1
    numbers = np.arange(height * width * channels).reshape(height, width, channels)
    down = (numbers[:-1].ravel(), numbers[1:].ravel())
    across = (numbers[:, :-1].ravel(), numbers[:, 1:].ravel())
    laplacian = np.zeros((numbers.size, numbers.size))
    for a, b in (down, across):
        for one, other in ((a, b), (b, a)):
            laplacian[one, other] = -1.0
            np.add.at(laplacian, (one, one), 1.0)
    return laplacian
