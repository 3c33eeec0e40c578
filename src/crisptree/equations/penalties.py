"""What keeps weights small, few or smooth. All act on weights in the scaled space, never on the bias."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from torch import Tensor


def l2(weights: Tensor) -> Tensor:
    """‖β_i‖² of every split.  (n_splits, …) → (n_splits,)"""
    return weights.square().flatten(1).sum(dim=1)


def soft_threshold(weights: Tensor, threshold: Tensor) -> Tensor:
    """sign(β) max(|β| − t, 0): the proximal step of t·|β|, which gives exact zeros."""
    return weights.sign() * (weights.abs() - threshold).clamp_min(0)


def roughness(weights: Tensor, image_shape: tuple[int, ...]) -> Tensor:
    """β_iᵀ M β_i = Σ over neighbouring pixels of (β_{i,a} − β_{i,b})², of every split.  → (n_splits,)

    M is ``grid_laplacian(image_shape)``; weights are (n_splits, h·w) or (n_splits, h·w·channels) and channels
    are not neighbours of each other.
    """
    images = weights.reshape(len(weights), *image_shape[:2], -1)
    down, across = (images.diff(dim=side).square().flatten(1).sum(dim=1) for side in (1, 2))
    return down + across


def grid_laplacian(image_shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """M of the pixel grid: M_aa is the number of neighbours, M_ab = −1 for neighbours, 0 elsewhere.

    Neighbours are the pixels above, below, left and right. The definition that ``roughness`` is held to.
    """
    height, width = image_shape[:2]
    channels = image_shape[2] if len(image_shape) == 3 else 1
    numbers = np.arange(height * width * channels).reshape(height, width, channels)
    down = (numbers[:-1].ravel(), numbers[1:].ravel())
    across = (numbers[:, :-1].ravel(), numbers[:, 1:].ravel())
    laplacian = np.zeros((numbers.size, numbers.size))
    for a, b in (down, across):
        for here, there in ((a, b), (b, a)):
            laplacian[here, there] = -1.0
            np.add.at(laplacian, (here, here), 1.0)
    return laplacian
