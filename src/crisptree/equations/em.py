"""Expectation-maximisation: responsibilities, masses of nodes and the loss of splits."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from crisptree.equations.routing import log_branch_probabilities
from crisptree.structure import TreeStructure


def responsibilities(log_paths: Tensor, evidence: Tensor) -> Tensor:
    """h_{n,ℓ} = p(y_n∣ℓ) μ_ℓ(x_n) / Σ_ℓ' p(y_n∣ℓ') μ_ℓ'(x_n): the leaf's posterior.  Two (n, n_leaves) → (n, n_leaves)

    The evidence is log p(y_n∣ℓ); for classes log π_ℓ(y_n).
    """
    return torch.softmax(log_paths + evidence, dim=1)


def node_masses(responsibilities: Tensor, structure: TreeStructure) -> tuple[Tensor, Tensor]:
    """H^L_{n,i} and H^R_{n,i}: the responsibilities of all leaves left and right of each split.

    (n, n_leaves) → two (n, n_splits). Goes up level by level: a split's mass is the sum of its children's.
    """
    levels, left_nodes, right_nodes = _ascent(structure, responsibilities.device)
    masses = responsibilities.new_empty(structure.n_nodes, len(responsibilities))
    masses[structure.n_splits :] = responsibilities.T
    for splits, left, right in levels:
        masses[splits] = masses[left] + masses[right]
    return masses[left_nodes].T, masses[right_nodes].T


@lru_cache(maxsize=64)
def _ascent(structure: TreeStructure, device: torch.device) -> tuple[list[tuple[Tensor, ...]], Tensor, Tensor]:
    """Return the levels of a tree from the deepest up, each as (splits, their left nodes, their right nodes)."""
    left, right = (torch.from_numpy(nodes).to(device) for nodes in (structure.left_nodes, structure.right_nodes))
    levels = [torch.from_numpy(splits).to(device) for splits in reversed(structure.levels)]
    return [(splits, left[splits], right[splits]) for splits in levels], left, right


def split_loss(scores: Tensor, left_masses: Tensor, right_masses: Tensor, steepness: float | Tensor) -> Tensor:
    """−Σ_n Σ_ℓ h_{n,ℓ} log μ_ℓ(x_n) = −Σ_n Σ_i [H^R_{n,i} log σ(γ f_i) + H^L_{n,i} log(1 − σ(γ f_i))].

    One weighted logistic regression per split. Where a split has no mass it costs the sample nothing.
    Where H comes from the current parameters, its gradient is that of −Σ_n log p(y_n∣x_n) (Fisher's identity).
    """
    log_left, log_right = log_branch_probabilities(scores, steepness)
    return -(left_masses * log_left + right_masses * log_right).sum()
