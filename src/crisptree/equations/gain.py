"""Entropy and information gain, from the counts of the deterministic tree, in nats.

The counts are hard on both sides of the difference (no soft tables): the gain of a split is then exactly the
growth of the deterministic tree's mean log-likelihood, as the paper's section 3.6 derives it.
"""

from __future__ import annotations

from torch import Tensor, special


def entropy(counts: Tensor) -> Tensor:
    """−Σ_k p_k log p_k of the class frequencies.  (…, n_classes) → (…); zero for no samples at all"""
    frequencies = (counts / counts.sum(dim=-1, keepdim=True)).nan_to_num(0.0)
    return special.entr(frequencies).sum(dim=-1)


def information_gain(left_counts: Tensor, right_counts: Tensor) -> Tensor:
    """H(parent) − N_left/N H(left) − N_right/N H(right).  Two (…, n_classes) → (…)"""
    left, right = left_counts.sum(dim=-1), right_counts.sum(dim=-1)
    children = left * entropy(left_counts) + right * entropy(right_counts)
    return entropy(left_counts + right_counts) - children / (left + right)
