"""Entropy and information gain, from the counts of the deterministic tree, in nats; arrays, not tensors.

The counts are hard on both sides of the difference (no soft tables): the gain of a split is then exactly the
growth of the deterministic tree's mean log-likelihood, as the paper's section 3.6 derives it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]

TINY = np.finfo(float).tiny


def entropy(counts: Doubles) -> Doubles:
    """H = −Σ_k p_k log p_k of the class frequencies.  (…, n_classes) → (…); zero for no samples at all"""
    shares = counts / np.maximum(counts.sum(axis=-1), TINY)[..., None]
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(-(shares * logs).sum(axis=-1))


def impurity_decrease(parent: Doubles, left: Doubles, right: Doubles, weight: Doubles) -> Doubles:
    """(I_parent − I_left − I_right) / N, never below zero; with I = N · H it is the information gain.  (…)"""
    return np.maximum((parent - (left + right)) / np.maximum(weight, TINY), 0.0)
