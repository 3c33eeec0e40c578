"""EM where a row has a probability P_{n,k} of every class: it stands for K rows, one of each class, of these weights.

The K rows share one path, so nothing has to be repeated: the sums over them stand inside the formulas. With P one-hot
they are those of ``em`` and ``routing``.

Leaves are (n_leaves, n_classes), or (n, n_leaves, n_classes) where every row has tables of its own. No sum needs
logarithms here: a path that vanishes takes no part, and p(k∣x) is at least the smallest entry of the tables.
"""

from __future__ import annotations

from torch import Tensor


def class_probabilities(paths: Tensor, leaves: Tensor) -> Tensor:
    """p(k∣x_n) = Σ_ℓ π_ℓ(k) μ_ℓ(x_n).  (n, n_leaves), (…, n_leaves, n_classes) → (n, n_classes)"""
    return (paths[:, None] @ leaves)[:, 0]


def label_ratios(labels: Tensor, probabilities: Tensor) -> Tensor:
    """r_{n,k} = P_{n,k} / p(k∣x_n): how much more of a class there should be.  Two (n, n_classes) → (n, n_classes)"""
    return labels / probabilities


def responsibilities(paths: Tensor, leaves: Tensor, ratios: Tensor) -> Tensor:
    """h_{n,ℓ} = Σ_k P_{n,k} π_ℓ(k) μ_ℓ(x_n) / p(k∣x_n) = μ_ℓ(x_n) Σ_k π_ℓ(k) r_{n,k}.  (n, n_leaves)"""
    return paths * (ratios[:, None] @ leaves.mT)[:, 0]


def leaf_counts(leaves: Tensor, visits: Tensor) -> Tensor:
    """c_{ℓ,k} = Σ_n w_n P_{n,k} π_ℓ(k) μ_ℓ(x_n) / p(k∣x_n) = π_ℓ(k) v_{ℓ,k}.  Two (n_leaves, n_classes)

    The visits are v_{ℓ,k} = Σ_n w_n μ_ℓ(x_n) r_{n,k}.
    """
    return leaves * visits


def log_likelihoods(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Σ_k P_{n,k} log p(k∣x_n) of every row.  Two (n, n_classes) → (n,)"""
    return (labels * probabilities.log()).sum(dim=1)
