"""The convex–concave bound of Norouzi et al. (2015), shared by CO2 (one split) and the non-greedy tree (all splits).

A row takes the turns h = sgn(Wx), reaches leaf ℓ(h) and costs loss(ℓ(h), y). For any W

    loss(ℓ(h), y) ≤ max_g [ gᵀWx + loss(ℓ(g), y) ] − Σ_i |w_iᵀx|,  g ∈ {−1, 1}^splits,

since g = h is among those compared. Among the g that differ from h in one turn i at most, only turns on the row's own
path change its leaf, and gᵀWx − Σ|w_iᵀx| = −2 |w_iᵀx|. So the bound of a row is

    max( loss(ℓ(h), y),  max_{i on the path} [ loss(ℓ(h with turn i reversed), y) − 2 |w_iᵀx| ] ).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from crisptree.equations.routing import goes_right
from crisptree.splits import ObliqueSplits

EVEN_SHARE = 0.01
"""Leaf tables are mixed with so much of the even distribution, so that an unseen class costs a finite loss."""

NUS = (10.0, 100.0, 1000.0)
"""The ν that compete where none is given. Rows of more features are longer and make do with smaller ones."""


class Paths(NamedTuple):
    """What the bound of some rows asks.

    Parameters
    ----------
    splits : Tensor of shape (n, depth)
        The splits on each row's path; any where the path is shorter.
    scores : Tensor of shape (n, depth)
        Their scores w_iᵀx.
    own : Tensor of shape (n,)
        loss(ℓ(h), y).
    reversed : Tensor of shape (n, depth)
        loss(ℓ(h with turn i reversed), y); −∞ where the path is shorter.
    """

    splits: Tensor
    scores: Tensor
    own: Tensor
    reversed: Tensor


def losses(counts: Tensor) -> Tensor:
    """loss(ℓ, k) = −log π_ℓ(k) with π from the classes counted in every leaf.  (…, n_classes) → (…, n_classes)"""
    n_classes = counts.shape[-1]
    totals = counts.sum(dim=-1, keepdim=True)
    frequencies = torch.where(totals > 0, counts / totals.clamp_min(1e-30), 1 / n_classes)
    return -torch.log((1 - EVEN_SHARE) * frequencies + EVEN_SHARE / n_classes)


def bounds(paths: Paths) -> Tensor:
    """max(loss(ℓ(h), y), max_i [loss(ℓ(h with turn i reversed), y) − 2 |w_iᵀx|]) of every row.  (n,)"""
    return torch.maximum(paths.own, (paths.reversed - 2 * paths.scores.abs()).amax(dim=1))


def add_gradient(splits: ObliqueSplits, x: Tensor, weight: Tensor, paths: Paths) -> Tensor:
    """Add the gradient of Σ_n weight_n bound_n; which splits it reaches.

    Where a reversed turn i attains the maximum, ∂/∂w_i (−2 |w_iᵀx|) = −2 sgn(w_iᵀx) x; elsewhere it is zero.
    """
    value, place = (paths.reversed - 2 * paths.scores.abs()).max(dim=1)
    rows = torch.nonzero(value > paths.own)[:, 0]
    split = paths.splits[rows, place[rows]]
    turn = torch.where(goes_right(paths.scores[rows, place[rows]]), 1.0, -1.0).to(weight)
    factor = -2 * turn * weight[rows]
    for name, values in (("weight", x[rows] * factor[:, None]), ("bias", factor)):
        parameter = splits.parameters[name]
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        parameter.grad.index_add_(0, split, values)
    return split.unique()


@torch.no_grad()
def project(splits: ObliqueSplits, nu: float) -> None:
    """w_i ← min(1, √ν / ‖w_i‖) w_i, the bias being one of its coefficients, in place."""
    weight, bias = splits.parameters["weight"], splits.parameters["bias"]
    lengths = (weight.square().sum(dim=1) + bias.square()).sqrt()
    factor = (math.sqrt(nu) / lengths.clamp_min(1e-30)).clamp_max(1.0)
    weight *= factor[:, None]
    bias *= factor


def learning_rate(rate: float, nu: float, n_features: int) -> float:
    """rate · √(ν / p): Adam moves each of p coefficients by about as much, so a step is ``rate`` times the radius."""
    return rate * math.sqrt(nu / n_features)
