"""The only epoch loop: E-step, steps on the splits, leaf tables, once per epoch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from crisptree.equations.em import class_counts, leaf_distributions, node_masses, responsibilities, split_loss
from crisptree.equations.penalties import l2, roughness
from crisptree.equations.routing import log_likelihoods, log_path_probabilities
from crisptree.learning.adam import Adam
from crisptree.learning.batches import Groups
from crisptree.learning.plan import Plan
from crisptree.learning.samples import Samples
from crisptree.splits import AbstractSplits, ObliqueSplits
from crisptree.structure import TreeStructure

VALUES_AT_ONCE = 2**22
"""A step goes through its rows in pieces of about this many values, so memory does not grow with the step."""


@dataclass(frozen=True)
class Algorithm:
    """Where the responsibilities and the leaf tables of an epoch come from.

    All algorithms take the same step on the splits, one weighted logistic regression per split. With
    responsibilities from the parameters at the start of the epoch it is EM's M-step; with responsibilities from
    the current parameters its gradient is the log-likelihood's.
    """

    fresh_responsibilities: bool
    hard_leaves: bool


ALGORITHMS = {
    "em": Algorithm(fresh_responsibilities=False, hard_leaves=False),
    "likelihood": Algorithm(fresh_responsibilities=True, hard_leaves=False),
    "alternating": Algorithm(fresh_responsibilities=True, hard_leaves=True),
}


class DivergenceError(ValueError):
    """A loss became infinite or not a number."""


class Trainee(Protocol):
    """What ``train`` changes: splits and leaf tables, with the rows that belong to them.

    ``leaves`` is (n_leaves, n_labels) and ``structure`` is what one row goes through; a batch of stumps is a single
    stump whose labels carry their node's number.
    """

    structure: TreeStructure
    splits: AbstractSplits
    leaves: Tensor
    groups: Groups

    def scores(self, splits: AbstractSplits, x: Tensor, group: Tensor) -> Tensor:
        """Scores of the rows.  (b, n_features), (b,) → (b', structure.n_splits); b' is b times the candidates"""

    def labels(self, y: Tensor, group: Tensor) -> Tensor:
        """Columns of ``leaves``.  (b,), (b,) → (b',)"""

    def hard_counts(self, samples: Samples) -> Tensor:
        """N_{ℓ,k} of the deterministic tree.  (n_leaves, n_labels)"""


class EpochEnd(NamedTuple):
    """What ``train`` reports after an epoch, the first one being 0."""

    epoch: int
    steepness: float
    loss: float


def train(
    trainee: Trainee,
    samples: Samples,
    plan: Plan,
    *,
    generator: torch.Generator,
    on_epoch: Callable[[EpochEnd], None] | None = None,
    name: str = "training",
) -> None:
    """Train splits and leaf tables for ``plan.epochs`` epochs, in place.

    Parameters
    ----------
    trainee : Trainee
        A batch of stumps or a whole tree.
    samples : Samples
        The training rows.
    plan : Plan
        Every number of the phase.
    generator : torch.Generator
        Shuffles the batches; it is drawn from only where there is more than one.
    on_epoch : callable, optional
        Hears of every epoch.
    name : str
        The phase, for error messages.
    """
    algorithm = ALGORITHMS[plan.algorithm]
    adam = Adam(trainee.splits, plan.learning_rate, plan.l1)
    piece = max(1, VALUES_AT_ONCE // max(samples.n_features, trainee.structure.n_leaves))
    share = trainee.groups.passes(plan).to(samples.weight.dtype).reciprocal()
    mean_weight = samples.group_mean_weight(trainee.groups)
    for epoch in range(plan.epochs):
        steepness = plan.steepness_at(epoch)
        before = None if algorithm.fresh_responsibilities else trainee.splits.detached()
        counts = torch.zeros_like(trainee.leaves)
        log_likelihood = torch.zeros((), dtype=torch.float64, device=samples.device)
        total_weight = torch.zeros_like(log_likelihood)
        for update in trainee.groups.updates(plan, generator):
            adam.zero_grad()
            weight = samples.weight[update.rows]
            # Each stump's loss is a mean over its own rows. A batch of light rows takes a small step: they are divided
            # by the mean weight of the whole group.
            size = torch.bincount(update.group, minlength=len(share))
            per_group = weight / (mean_weight * size)[update.group]
            for part in torch.arange(len(update.rows), device=samples.device).split(piece):
                rows, group = update.rows[part], update.group[part]
                x, labels = samples.batch(rows), trainee.labels(samples.y[rows], group)
                scores = trainee.scores(trainee.splits, x, group)
                repeats = len(labels) // len(rows)
                with torch.no_grad():
                    basis = scores if before is None else trainee.scores(before, x, group)
                    log_paths = log_path_probabilities(basis, trainee.structure, steepness)
                    h = responsibilities(log_paths, trainee.leaves, labels)
                    once = (weight[part] * share[group]).repeat_interleave(repeats)
                    counts += class_counts(h * once[:, None], labels, trainee.leaves.shape[1])
                    log_likelihood += (once * log_likelihoods(log_paths, trainee.leaves, labels)).sum()
                    total_weight += once.sum()
                    mass = per_group[part].repeat_interleave(repeats)[:, None]
                    left, right = node_masses(h * mass, trainee.structure)
                split_loss(scores, left, right, steepness).backward()
            _add_penalty_gradient(trainee.splits, plan)
            adam.step(update.active)
        if algorithm.hard_leaves:
            counts = trainee.hard_counts(samples)
        trainee.leaves = _updated_leaves(counts, trainee.leaves, samples.n_classes, plan.leaf_prior)
        loss = float(-log_likelihood / total_weight)
        _check_finite(loss, trainee, name, epoch, steepness)
        if on_epoch is not None:
            on_epoch(EpochEnd(epoch, steepness, loss))


def _updated_leaves(counts: Tensor, leaves: Tensor, n_classes: int, prior: float) -> Tensor:
    tables = leaf_distributions(counts.reshape(-1, n_classes), leaves.reshape(-1, n_classes), prior)
    return tables.reshape_as(leaves)


def _add_penalty_gradient(splits: AbstractSplits, plan: Plan) -> None:
    """l2 ‖β‖² of all splits, λ βᵀMβ of hyperplanes. l1 acts inside the optimiser."""
    if plan.l2:
        for weight in splits.weights():
            (plan.l2 * l2(weight)).backward()
    if plan.roughness and plan.image_shape is not None and isinstance(splits, ObliqueSplits):
        (plan.roughness * roughness(splits.parameters["weight"], plan.image_shape)).backward()


def _check_finite(loss: float, trainee: Trainee, name: str, epoch: int, steepness: float) -> None:
    finite = all(bool(torch.isfinite(value).all()) for value in trainee.splits.parameters.values())
    if math.isfinite(loss) and finite:
        return
    found = f"the loss became {loss:g}" if finite else "weights of splits became infinite or not a number"
    raise DivergenceError(
        f"{name} stopped in epoch {epoch + 1} (steepness {steepness:g}): all must stay finite, but {found}. "
        "Lower learning_rate, steepness_step or the penalties, or train with scale='feature'."
    )
