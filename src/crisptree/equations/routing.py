"""Routing: split probabilities, path probabilities and predictions."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from crisptree.structure import TreeStructure


def goes_right(scores: Tensor) -> Tensor:
    """Θ(f): the deterministic turn. A score of exactly zero goes left."""
    return scores > 0


def log_branch_probabilities(scores: Tensor, steepness: float | Tensor) -> tuple[Tensor, Tensor]:
    """log(1 − σ(γ f)) and log σ(γ f): the probabilistic turns left and right, the shape of ``scores``."""
    steep = steepness * scores
    return logsigmoid(-steep), logsigmoid(steep)


def log_path_probabilities(scores: Tensor, structure: TreeStructure, steepness: float | Tensor) -> Tensor:
    """log μ_ℓ(x) = Σ_{r ∈ ℛ_ℓ} log σ(γ f_r) + Σ_{l ∈ ℒ_ℓ} log(1 − σ(γ f_l)).  (n, n_splits) → (n, n_leaves)

    Goes down level by level: a child's value is its parent's plus one turn, so the cost is n × splits.
    """
    log_left, log_right = log_branch_probabilities(scores, steepness)
    reached = scores.new_zeros(len(scores), 1)
    if structure.n_splits == 0:
        return reached
    levels, leaf_columns = _descent(structure, scores.device)
    ended = []
    for splits, inner_children, leaf_children in levels:
        left = reached + log_left.index_select(1, splits)
        right = reached + log_right.index_select(1, splits)
        children = torch.cat([left, right], dim=1)
        ended.append(children.index_select(1, leaf_children))
        reached = children.index_select(1, inner_children)
    return torch.cat(ended, dim=1).index_select(1, leaf_columns)


@lru_cache(maxsize=64)
def _descent(structure: TreeStructure, device: torch.device) -> tuple[list[tuple[Tensor, ...]], Tensor]:
    """Return the levels of a tree as column indices, and the column of every leaf after the levels are concatenated.

    A level is (its splits; which of its children, left ones then right ones, are splits; which are leaves).
    """
    levels, leaves = [], []
    splits = np.zeros(1, dtype=np.int64)
    while len(splits):
        children = np.concatenate([structure.left[splits], structure.right[splits]]).astype(np.int64)
        inner, ends = np.flatnonzero(children >= 0), np.flatnonzero(children < 0)
        levels.append(tuple(torch.from_numpy(columns).to(device) for columns in (splits, inner, ends)))
        leaves.append(~children[ends])
        splits = children[inner]
    return levels, torch.from_numpy(np.argsort(np.concatenate(leaves))).to(device)


def log_class_probabilities(log_paths: Tensor, leaves: Tensor) -> Tensor:
    """log p(y∣x) = log Σ_ℓ π_ℓ(y) μ_ℓ(x).  (n, n_leaves), (n_leaves, n_classes) → (n, n_classes)"""
    likeliest = log_paths.max(dim=1, keepdim=True).values  # taken out, so that the largest path is 1 and none overflows
    return ((log_paths - likeliest).exp() @ leaves).log() + likeliest


def log_likelihoods(log_paths: Tensor, evidence: Tensor) -> Tensor:
    """log p(y_n∣x_n) = log Σ_ℓ p(y_n∣ℓ) μ_ℓ(x_n) of every sample.  Two (n, n_leaves) → (n,)"""
    return torch.logsumexp(log_paths + evidence, dim=1)
