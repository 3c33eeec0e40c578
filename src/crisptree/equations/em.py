"""Expectation-maximisation: who is responsible for a sample, and what follows for leaves and splits."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from crisptree.equations.routing import log_turns
from crisptree.structure import TreeStructure

SMALLEST_PROBABILITY = 1e-8
"""No entry of a leaf table falls below this: a class of probability zero in every leaf would leave its samples
without any responsible leaf (0/0), and a leaf could never take a class back."""


def responsibilities(log_paths: Tensor, leaves: Tensor, y: Tensor) -> Tensor:
    """h_{n,ℓ} = π_ℓ(y_n) μ_ℓ(x_n) / Σ_ℓ' π_ℓ'(y_n) μ_ℓ'(x_n): the leaf's posterior.  (n, n_leaves)"""
    return torch.softmax(log_paths + leaves.log().T[y], dim=1)


def class_counts(responsibilities: Tensor, y: Tensor, n_classes: int) -> Tensor:
    """Σ_n 1(y_n = k) h_{n,ℓ}, where h may carry sample weights.  (n, n_leaves) → (n_leaves, n_classes)"""
    counts = responsibilities.new_zeros(n_classes, responsibilities.shape[1])
    return counts.index_add_(0, y, responsibilities).T


def leaf_distributions(counts: Tensor, previous: Tensor, prior: float = 0.0) -> Tensor:
    """π_ℓ(k) = (c_{ℓ,k} + α) / Σ_k' (c_{ℓ,k'} + α) with a Dirichlet prior α.  (n_leaves, n_classes)

    Has no exact zeros; a leaf that nothing reached keeps its previous distribution.
    """
    raised = counts + prior
    totals = raised.sum(dim=1, keepdim=True)
    occupied = counts.sum(dim=1, keepdim=True) > 0
    tables = torch.where(occupied, raised / totals, previous).clamp_min(SMALLEST_PROBABILITY)
    return tables / tables.sum(dim=1, keepdim=True)


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
    """The levels of a tree from the deepest up, each as (splits, their left nodes, their right nodes)."""
    left, right = (torch.from_numpy(nodes).to(device) for nodes in (structure.left_nodes, structure.right_nodes))
    levels = [torch.from_numpy(splits).to(device) for splits in reversed(structure.levels)]
    return [(splits, left[splits], right[splits]) for splits in levels], left, right


def split_loss(scores: Tensor, left_masses: Tensor, right_masses: Tensor, steepness: float | Tensor) -> Tensor:
    """−Σ_n Σ_ℓ h_{n,ℓ} log μ_ℓ(x_n) = −Σ_n Σ_i [H^R_{n,i} log σ(γ f_i) + H^L_{n,i} log(1 − σ(γ f_i))].

    One weighted logistic regression per split. Where a split has no mass it costs the sample nothing.
    Where H comes from the current parameters, its gradient is that of −Σ_n log p(y_n∣x_n) (Fisher's identity).
    """
    log_left, log_right = log_turns(scores, steepness)
    return -(left_masses * log_left + right_masses * log_right).sum()
