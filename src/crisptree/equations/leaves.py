"""Leaves: Gaussian leaves, linear models in leaves. NumPy only, or any array library."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.structure import TreeStructure

Doubles = npt.NDArray[np.float64]

MIN_VARIANCE = 1e-3
"""Lower bound of the variance of a leaf, relative to that of all rows; with variance 0 no other row could reach it."""

DEEPEST_DOUBT = 300.0
"""Densities are at least e⁻³⁰⁰ times the largest of a row, so that products with path probabilities do not underflow
and responsibilities stay defined for a row that is far from every leaf."""

LOG_TWO_PI = math.log(2 * math.pi)


def log_densities(y: Any, mean: Any, variance: Any) -> Any:
    """log N(y; m, v) = −½ Σ_k [(y_k − m_k)² / v_k + log 2π v_k].  Three (…, n_outputs) → (…)"""
    return -0.5 * ((y - mean) ** 2 / variance + (variance.log() + LOG_TWO_PI)).sum(-1)


def mean_and_variance(weight: Any, sums: Any, squares: Any, prior: float) -> tuple[Any, Any]:
    """m = Σ w y / N and v = Σ w y² / N − m², with ``prior`` rows of mean 0 and variance 1 more.

    (…, 1), (…, n_outputs), (…, n_outputs) → two (…, n_outputs). The variance may be below the smallest one, and where
    there is nothing at all both are 0 / 0.
    """
    total = weight + prior
    mean = sums / total
    return mean, (squares + prior) / total - mean * mean


OWN_SHARE = 0.5
"""Weight of a leaf's own variance in training, against the pooled one."""


def pooled_variance(variance: Any, weight: Any) -> Any:
    """½ v_ℓ + ½ Σ_ℓ N_ℓ v_ℓ / Σ_ℓ N_ℓ: a compromise between separate and pooled variances.

    With separate variances, a leaf of low variance repels all other rows; with a pooled one, leaves cannot differ.
    (n_leaves, …, n_outputs), (n_leaves, …, 1) → the first
    """
    pooled = (weight * variance).sum(0) / weight.sum(0).clamp_min(1e-30)
    return OWN_SHARE * variance + (1 - OWN_SHARE) * pooled


def squared_error(weight: Any, sums: Any, squares: Any, mean: Any) -> Any:
    """Σ w Σ_k (y_k − m_k)² from sums over the rows.  (…, 1), three (…, n_outputs) → (…)"""
    return (squares - 2 * mean * sums + weight * mean * mean).sum(-1)


ROOT_SHARE = 2e-3
"""The penalty on the root's own part, its offset excepted, as a share of the weight of all rows: next to nothing for a
feature that varies, and the same whatever unit weights have."""


def root_strengths(structure: TreeStructure, q: int, total: float, penalty: float) -> Doubles:
    """Penalties of the root's weights: next to nothing above splits; λ of a single leaf, a ridge model.  (q,)"""
    strengths = np.full(q, ROOT_SHARE * total if structure.n_splits else penalty)
    strengths[-1] = 1e-9 * total
    return strengths


class TreeRidge:
    """The least of Σ_ℓ ½ tr θ_ℓᵀ G_ℓ θ_ℓ − tr θ_ℓᵀ M_ℓ + λ/2 Σ_i ‖θ_i − θ_parent(i)‖² over the sums θ of all nodes.

    Upwards a node hands on λ S G and λ S M with S = (G + λ)⁻¹, what its rows still say about its parent; downwards
    θ_i = S (M + λ θ_parent). What does not depend on M is computed once. A node of few rows is kept as a factor of its
    Gram matrix G = AᵀA with as many lines: λ S G = RᵀR with R = (1 + A Aᵀ/λ)^{−½} A, and λ S M = M − RᵀR M / λ, so that
    no q × q matrix is inverted for it.

    Parameters
    ----------
    structure : TreeStructure
        The tree.
    grams : iterable of Gram
        G_ℓ of every leaf; A_ℓ are its rows, each times the root of its weight. The last feature is the offset.
    penalty : float
        λ.
    """

    def __init__(self, structure: TreeStructure, grams: Iterable[Gram], penalty: float) -> None:
        self.structure, self.penalty = structure, penalty
        total = 0.0
        below: dict[int, list[Gram]] = {}
        self.nodes: dict[int, _Node] = {}
        for leaf, gram in enumerate(grams, start=structure.n_splits):
            total += gram.weight
            below[leaf] = [gram]
        for split in reversed(_from_the_root(structure)):
            below[split] = []
            for child in (structure.left_nodes[split], structure.right_nodes[split]):
                self.nodes[child] = _Node.of(Gram.sum(below.pop(child)), penalty)
                below[split].append(self.nodes[child].handed)
        root = Gram.sum(below[0]).dense()
        self.root = root + np.diag(root_strengths(structure, len(root), total, penalty))

    def sums(self, moments: Doubles) -> Doubles:
        """θ of all nodes.  (n_leaves, q, n_outputs) → (n_nodes, q, n_outputs)"""
        structure, penalty = self.structure, self.penalty
        moment = np.concatenate([np.zeros((structure.n_splits, *moments.shape[1:])), moments])
        order = _from_the_root(structure)
        for split in reversed(order):
            for child in (structure.left_nodes[split], structure.right_nodes[split]):
                moment[split] += penalty * self.nodes[child].solve(moment[child])
        sums = np.zeros_like(moment)
        sums[0] = np.linalg.solve(self.root, moment[0])
        for split in order:
            for child in (structure.left_nodes[split], structure.right_nodes[split]):
                sums[child] = self.nodes[child].solve(moment[child] + penalty * sums[split])
        return sums


class Gram(NamedTuple):
    """A Gram matrix G = AᵀA: its factor where that has at most half as many lines as G, otherwise G itself."""

    array: Doubles
    is_factor: bool

    @classmethod
    def of_factor(cls, factor: Doubles) -> Gram:
        few = 2 * len(factor) <= factor.shape[1]
        return cls(factor, True) if few else cls(factor.T @ factor, False)

    @property
    def weight(self) -> float:
        """Σ a² of the last feature."""
        return float(self.array[:, -1] @ self.array[:, -1] if self.is_factor else self.array[-1, -1])

    @classmethod
    def sum(cls, grams: Sequence[Gram]) -> Gram:
        if all(gram.is_factor for gram in grams):
            return cls.of_factor(np.concatenate([gram.array for gram in grams]))
        return cls(np.sum([gram.dense() for gram in grams], axis=0), False)

    def dense(self) -> Doubles:
        return np.asarray(self.array.T @ self.array) if self.is_factor else self.array


class _Node(NamedTuple):
    """What a node hands on, λ S G, and S itself where it is no more than (1 − RᵀR/λ)/λ."""

    handed: Gram
    inverse: Doubles | None
    penalty: float

    @classmethod
    def of(cls, gram: Gram, penalty: float) -> _Node:
        q = gram.array.shape[1]
        if gram.is_factor:
            within = np.eye(len(gram.array)) + gram.array @ gram.array.T / penalty
            handed = np.linalg.solve(np.linalg.cholesky(within), gram.array)
            return cls(Gram(handed, True), None, penalty)
        inverse: Doubles = np.linalg.inv(gram.array + penalty * np.eye(q)).astype(np.float64, copy=False)
        product = penalty * inverse @ gram.array
        return cls(Gram((product + product.T) / 2, False), inverse, penalty)

    def solve(self, values: Doubles) -> Doubles:
        """S times some columns."""
        if self.inverse is not None:
            return np.asarray(self.inverse @ values)
        factor = self.handed.array
        return np.asarray((values - factor.T @ (factor @ values) / self.penalty) / self.penalty)


def _from_the_root(structure: TreeStructure) -> list[int]:
    """List all splits, parents before their children."""
    return [split for level in structure.levels for split in level.tolist()]


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
