"""Linear models in the leaves, whose weights are sums of parts along the path; arrays, not tensors.

Every node has a part of its own, and a leaf's weights are θ_ℓ = Σ of the parts on its path. With a penalty λ/2 on the
square of each part, a leaf is drawn towards what its parent would say: a node's sum is normal around its parent's with
precision λ. That is a chain of normal distributions along a tree, so the best sums of all nodes follow exactly from one
way up and one way down.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crisptree.structure import TreeStructure

Doubles = npt.NDArray[np.float64]

ROOT_SHARE = 2e-3
"""The penalty on the root's own part, its offset excepted, as a share of the weight of all rows: next to nothing for a
feature that varies, and the same whatever unit weights have."""


def tree_ridge(structure: TreeStructure, grams: Doubles, moments: Doubles, penalty: float) -> Doubles:
    """The least of Σ_ℓ ½ tr θ_ℓᵀ G_ℓ θ_ℓ − tr θ_ℓᵀ M_ℓ + λ/2 Σ_i ‖θ_i − θ_parent(i)‖²: the sums θ of all nodes.

    Upwards a node hands on λ S G and λ S M with S = (G + λ)⁻¹, what its rows still say about its parent; downwards
    θ_i = S (M + λ θ_parent). (n_leaves, q, q), (n_leaves, q, n_answers) → (n_nodes, q, n_answers); the last feature is
    the offset.
    """
    n_splits, q = structure.n_splits, grams.shape[1]
    gram = np.concatenate([np.zeros((n_splits, q, q)), grams])
    moment = np.concatenate([np.zeros((n_splits, *moments.shape[1:])), moments])
    inverse = np.zeros_like(gram)
    for level in reversed(structure.levels):
        for child in (structure.left_nodes[level], structure.right_nodes[level]):
            inverse[child] = np.linalg.inv(gram[child] + penalty * np.eye(q))
            handed = penalty * inverse[child] @ gram[child]
            gram[level] += (handed + handed.transpose(0, 2, 1)) / 2
            moment[level] += penalty * inverse[child] @ moment[child]
    total = grams[:, -1, -1].sum()
    own = np.diag([*np.full(q - 1, ROOT_SHARE * total), 1e-9 * total])
    sums = np.zeros_like(moment)
    sums[0] = np.linalg.solve(gram[0] + own, moment[0])
    for level in structure.levels:
        for child in (structure.left_nodes[level], structure.right_nodes[level]):
            sums[child] = inverse[child] @ (moment[child] + penalty * sums[level])
    return sums


def log_softmax(scores: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """log p_k = η_k − log Σ_j e^{η_j}.  (…, n_classes)"""
    shifted = scores - scores.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def working_response(scores: Doubles, log_probabilities: npt.NDArray[np.floating], y: npt.NDArray[np.int64]) -> Doubles:
    """η + 2 (1(y = k) − p_k): the softmax's log-likelihood is at least −¼‖η' − response‖² + a constant (Böhning 1992).

    Its curvature is at most ½ in every direction, so that a ridge regression on the response never lowers it.
    (n, n_classes)
    """
    response = scores - 2 * np.exp(log_probabilities)
    response[np.arange(len(y)), y] += 2
    return response
