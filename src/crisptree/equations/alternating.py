"""The supplement's scheme: leaf tables are the class frequencies N_{ℓ,k}/N_ℓ of the deterministic tree.

The splits then follow the gradient of the log-likelihood under those tables, which ``em.split_loss`` gives when
its responsibilities come from the current parameters; the frequencies themselves are
``em.leaf_distributions(em.class_counts(hard_responsibilities(…), …))``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from crisptree.equations.routing import goes_right, log_path_probabilities
from crisptree.structure import TreeStructure

HARD_STEEPNESS = 1000.0
"""A steepness at which e^−γ is exactly zero in floating point, so that a turn of ±1 has probability 0 or 1."""


def hard_responsibilities(scores: Tensor, structure: TreeStructure) -> Tensor:
    """1(ℓ = ℓ(x_n)) = lim_{γ→∞} μ_ℓ(x_n): one for the leaf that the sample reaches.  (n, n_leaves)"""
    signs = torch.where(goes_right(scores), 1.0, -1.0).to(scores.dtype)
    return log_path_probabilities(signs, structure, HARD_STEEPNESS).exp()
