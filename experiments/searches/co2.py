"""The convex–concave bound of Norouzi et al. (2015), and CO2, which minimises it for single oblique splits.

A row follows the decisions h = sgn(Wx), reaches leaf ℓ(h) and costs loss(ℓ(h), y). For any W

    loss(ℓ(h), y) ≤ max_g [ gᵀWx + loss(ℓ(g), y) ] − Σ_i |w_iᵀx|,  g ∈ {−1, 1}^splits,

since g = h is among those compared. Among the g that differ from h in at most one decision i, only those on the row's
own path change its leaf, and gᵀWx − Σ|w_iᵀx| = −2 |w_iᵀx|. So the bound of a row is

    max( loss(ℓ(h), y),  max_{i on the path} [ loss(ℓ(h with decision i reversed), y) − 2 |w_iᵀx| ] ).

Stochastic gradients lower it; ‖w‖² ≤ ν keeps it loose enough to have any. ``TorchBound`` is the definition of a step,
``NativeBound`` the fast one. A row needs the scores on its own path and on the paths with one decision reversed,
O(depth²) of them. The definition evaluates all splits of a tree; the kernel those alone, and skips a reversal that
cannot attain the maximum: one whose worst leaf, less 2 |w_iᵀx|, costs no more than the best found so far.

CO2 trains stumps, for which the bound of a row is max_g [g wᵀx + loss(leaf g, y)] − |wᵀx|; all leaves of a level train
as one batch. ``non_greedy`` trains whole trees.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.equations.routing import goes_right
from crisptree.learning.cart import GAIN_DIGITS
from crisptree.learning.engines.base import Groups
from crisptree.learning.engines.torch_engine import Adam
from crisptree.learning.growth import Stumps
from crisptree.learning.samples import Samples
from crisptree.native import training
from crisptree.splits import AbstractSplits, ObliqueSplits
from experiments.searches.thresholds import SearchContext, random_splits

Floats = npt.NDArray[np.floating]
Children = npt.NDArray[np.int32]

UNIFORM_SHARE = 0.01
"""Share of the uniform distribution in leaf tables, so that an unseen class costs a finite loss."""

NU_CANDIDATES = (10.0, 100.0, 1000.0)
"""Values of ν to select from. Rows of more features have larger norms and need smaller ones."""


class Paths(NamedTuple):
    """Inputs of the bound of some rows: splits and scores w_iᵀx on their paths, (n, depth) each, and losses.

    ``own`` (n,) is loss(ℓ(h), y), ``reversed`` (n, depth) loss(ℓ(h with decision i reversed), y). Where a path is
    shorter, the split is arbitrary and its reversed loss −∞.
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
    return -torch.log((1 - UNIFORM_SHARE) * frequencies + UNIFORM_SHARE / n_classes)


def bounds(paths: Paths) -> Tensor:
    """max(loss(ℓ(h), y), max_i [loss(ℓ(h with decision i reversed), y) − 2 |w_iᵀx|]) of every row.  (n,)"""
    return torch.maximum(paths.own, (paths.reversed - 2 * paths.scores.abs()).amax(dim=1))


def add_gradient(splits: ObliqueSplits, x: Tensor, weight: Tensor, paths: Paths) -> Tensor:
    """Add the gradient of Σ_n weight_n bound_n to the parameters; return the splits that have one.

    Where a reversed decision i attains the maximum, ∂/∂w_i (−2 |w_iᵀx|) = −2 sgn(w_iᵀx) x; elsewhere it is zero.
    """
    value, position = (paths.reversed - 2 * paths.scores.abs()).max(dim=1)
    rows = torch.nonzero(value > paths.own)[:, 0]
    split = paths.splits[rows, position[rows]]
    sign = torch.where(goes_right(paths.scores[rows, position[rows]]), 1.0, -1.0).to(weight)
    factor = -2 * sign * weight[rows]
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


class Routes(Protocol):
    """Routing of rows for the bound: down one tree, or through one of many stumps.

    A row starts at the split with the index of its group; ``left`` and ``right`` are as in ``TreeStructure``.
    """

    left: Children
    right: Children

    def paths(self, splits: ObliqueSplits, x: Tensor, y: Tensor, group: Tensor, loss: Tensor) -> Paths:
        """Inputs of the bound of some rows."""
        ...

    def worst(self, loss: Floats) -> Floats:
        """Compute the largest loss of any leaf below every node, splits first.  (n_leaves, k) → (n_nodes, k)"""
        ...


class TorchBound:
    """Stochastic gradient steps on trainable splits in place, shortened to ‖w‖² ≤ ν at once and after every step."""

    def __init__(self, splits: ObliqueSplits, samples: Samples, routes: Routes, nu: float) -> None:
        self.splits, self.samples, self.routes, self.nu = splits, samples, routes, nu
        project(splits, nu)
        self.adam = Adam(splits, 0.0)

    def begin(self, loss: Tensor, rate: float) -> None:
        """Start an epoch with the losses of leaves (n_leaves, n_classes) and a share of the ball's radius as step."""
        self.loss = loss
        self.adam.learning_rate = learning_rate(rate, self.nu, self.samples.n_features)

    @torch.no_grad()
    def take(self, rows: Tensor, group: Tensor) -> tuple[float, float]:
        """Take a step on some rows; return Σ weight · bound before it, and Σ weight."""
        x, weight = self.samples.batch(rows), self.samples.weight[rows]
        paths = self.routes.paths(self.splits, x, self.samples.y[rows], group, self.loss)
        self.adam.zero_grad()
        self.adam.step(add_gradient(self.splits, x, weight, paths))
        project(self.splits, self.nu)
        return float((weight * bounds(paths)).sum()), float(weight.sum())


class NativeBound:
    """The same steps along paths only, on the same parameters in place."""

    @staticmethod
    def supports(samples: Samples) -> bool:
        """True if the kernel is installed and can read the rows."""
        return samples.native_rows is not None

    def __init__(self, splits: ObliqueSplits, samples: Samples, routes: Routes, nu: float) -> None:
        self.routes, self.nu, self.n_features = routes, nu, samples.n_features
        project(splits, nu)
        for parameter in splits.parameters.values():
            parameter.data = parameter.data.contiguous()  # the kernel writes into the splits' own memory
        weight, bias = (splits.parameters[name].detach().numpy() for name in ("weight", "bias"))
        self.moments = [np.zeros_like(part) for part in (weight, weight, bias, bias, bias)]
        no_image, no_penalties, no_correlation = (0, 0), (0.0, 0.0, 0.0, 0.0), (np.ones(1), None, None)
        no_groups = np.zeros((0, 2), dtype=np.int64)
        kind = "SingleTrainer" if samples.rows.dtype == torch.float32 else "DoubleTrainer"
        self.kernel: Any = getattr(training, kind)(
            *(samples.native_rows, samples.y.numpy(), samples.weight.numpy(), weight, bias),
            *self.moments,
            *no_penalties,
            *(np.zeros(len(bias)), *no_correlation),
            *(np.ones(len(bias)), no_image, None, None, no_groups, samples.threads),
        )
        self.dtype = weight.dtype
        self.n_scores = 0

    def begin(self, loss: Tensor, rate: float) -> None:
        self.worst = np.ascontiguousarray(self.routes.worst(loss.numpy()), dtype=self.dtype)
        self.kernel.learning_rate = learning_rate(rate, self.nu, self.n_features)

    def take(self, rows: Tensor, group: Tensor) -> tuple[float, float]:
        start = group.numpy().astype(np.int32)
        step = self.kernel.bound(rows.numpy(), start, self.routes.left, self.routes.right, self.worst, self.nu)
        self.n_scores += step.pairs
        return step.log_likelihood, step.weight


def bound_steps(splits: ObliqueSplits, samples: Samples, routes: Routes, nu: float) -> TorchBound | NativeBound:
    """Return the fastest implementation for these rows."""
    implementation = NativeBound if NativeBound.supports(samples) else TorchBound
    return implementation(splits, samples, routes, nu)


@torch.no_grad()
def co2_splits(context: SearchContext, groups: Groups) -> ObliqueSplits:
    """Improve the best random split of every group of rows; keep it where that does not increase the gain.

    With ``context.nu`` None each ν of ``NU_CANDIDATES`` is tried, and the highest gain on the leaf's rows wins.
    """
    best = random_splits(context, groups)
    highest = _gains(best, context, groups)
    start = best
    for nu in NU_CANDIDATES if context.nu is None else (context.nu,):
        trained = train_stumps(start, context, groups, nu)
        gains = _gains(trained, context, groups)
        best = _select(gains > highest, trained, best)
        highest = torch.maximum(gains, highest)
    return best


def train_stumps(start: ObliqueSplits, context: SearchContext, groups: Groups, nu: float) -> ObliqueSplits:
    """Train stumps for ``plan.epochs`` epochs; leaf tables are counted anew before each."""
    samples, plan = context.samples, context.plan
    splits = start.trainable()
    steps = bound_steps(splits, samples, StumpRoutes(len(groups.sizes)), nu)
    n_cells = len(groups.sizes) * samples.target.n_values
    for epoch in range(plan.epochs):
        counts = Stumps(splits, samples.weight.new_zeros(2, n_cells), groups).hard_counts(samples)
        steps.begin(losses(counts.reshape(-1, samples.target.n_values)), plan.settings_at(epoch).learning_rate)
        for rows, group in groups.epoch(plan, context.generator):
            steps.take(rows, group)
    return splits.detach()


class StumpRoutes:
    """Every row starts at the stump of its group; the left leaves of all stumps come before the right ones."""

    def __init__(self, n_stumps: int) -> None:
        self.n_stumps = n_stumps
        numbers = np.arange(n_stumps, dtype=np.int32)
        self.left: Children = ~numbers
        self.right: Children = ~(n_stumps + numbers)

    def paths(self, splits: ObliqueSplits, x: Tensor, y: Tensor, group: Tensor, loss: Tensor) -> Paths:
        return stump_paths(splits, x, y, group, loss.reshape(2, self.n_stumps, -1))

    def worst(self, loss: Floats) -> Floats:
        sides = loss.reshape(2, self.n_stumps, -1)
        return np.concatenate([sides.max(axis=0), loss])


def stump_paths(splits: ObliqueSplits, x: Tensor, y: Tensor, group: Tensor, loss: Tensor) -> Paths:
    """Inputs of the bound for rows at the stump of their group.

    ``loss`` (2, n_groups, n_classes) is that of the left and the right leaves.
    """
    scores = splits.at(x, group)
    right = goes_right(scores).long()
    return Paths(group[:, None], scores[:, None], loss[right, group, y], loss[1 - right, group, y][:, None])


def _gains(splits: AbstractSplits, context: SearchContext, groups: Groups) -> Tensor:
    """Information gain of every split, −1 for those that leave too little on a side.  (n_groups,)"""
    samples = context.samples
    leaves = samples.weight.new_zeros(2, len(groups.sizes) * samples.target.n_values)
    outcome = Stumps(splits, leaves, groups).outcome(samples, *context.leaf_limits)
    gains = np.where(outcome.accepted, outcome.gains.round(GAIN_DIGITS), -1.0)
    return torch.from_numpy(gains).to(samples.device)


def _select(condition: Tensor, these: ObliqueSplits, others: ObliqueSplits) -> ObliqueSplits:
    weights, biases = zip(these.hyperplanes(), others.hyperplanes(), strict=True)
    return ObliqueSplits(torch.where(condition[:, None], *weights), torch.where(condition, *biases))
