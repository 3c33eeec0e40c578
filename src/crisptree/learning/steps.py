"""One optimiser step on a trainee, with torch: the definition, for every kind of split and device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.equations.em import class_counts, node_masses, responsibilities, split_loss
from crisptree.equations.penalties import l2, roughness
from crisptree.equations.routing import log_likelihoods, log_path_probabilities
from crisptree.learning.adam import Adam
from crisptree.learning.batches import Groups, Update
from crisptree.learning.plan import Pace, Plan
from crisptree.learning.samples import Samples
from crisptree.splits import AbstractSplits, ObliqueSplits
from crisptree.structure import TreeStructure

Doubles = npt.NDArray[np.float64]

VALUES_AT_ONCE = 2**22
"""A step goes through its rows in pieces of about this many values, so memory does not grow with the step."""


class Trainee(Protocol):
    """What is trained: splits and leaf tables, with the rows that belong to them.

    ``leaves`` is (n_leaves, n_labels) and ``structure`` is what one row goes through; a batch of stumps is a single
    stump whose labels carry their node's number. ``is_whole_tree`` tells the two apart.

    Where ``zeros`` (of the weights' shape) is True a weight stays zero: it is put back after every step, and as Adam
    moves each number by itself, the others never notice.
    """

    is_whole_tree: bool
    zeros: Tensor | None
    structure: TreeStructure
    splits: AbstractSplits
    leaves: Tensor
    groups: Groups

    @property
    def penalty_shares(self) -> Tensor:
        """The part of the rows, by weight, that each split's own problem has.  (n_splits,), float64"""

    def scores(self, splits: AbstractSplits, x: Tensor, group: Tensor) -> Tensor:
        """Scores of the rows.  (b, n_features), (b,) → (b', structure.n_splits); b' is b times the candidates"""

    def labels(self, y: Tensor, group: Tensor) -> Tensor:
        """Columns of ``leaves``.  (b,), (b,) → (b',)"""

    def hard_counts(self, samples: Samples) -> Tensor:
        """N_{ℓ,k} of the deterministic tree.  (n_leaves, n_labels)"""


class EpochResult(NamedTuple):
    """Leaf counts (n_leaves, n_labels), the mean negative log-likelihood, and whether all weights are finite.

    The counts may be overwritten by the next epoch.
    """

    counts: Tensor
    loss: float
    finite: bool


class Steps(Protocol):
    """The steps of a training, epoch by epoch."""

    torch_threads: int
    """How many threads torch may use between two steps."""

    def epoch(self, pace: Pace, order: Tensor) -> EpochResult:
        """All steps of an epoch, with the rows in this order.

        Responsibilities come from the parameters as they are at its start, or from the current ones.
        """


class Weighing:
    """How much a row counts in a step.

    Each stump's loss is a mean over its own rows. A batch of light rows takes a small step: they are divided by the
    mean weight of the whole group. Leaf counts are shared out over the passes of an epoch, and stand for all rows where
    an epoch sees a share of them.
    """

    def __init__(self, samples: Samples, groups: Groups, plan: Plan) -> None:
        self.share = groups.host_sizes / groups.taken(plan) / groups.passes(plan)
        self.mean_weight = samples.group_mean_weight(groups).cpu().numpy()

    def __call__(self, update: Update) -> tuple[Doubles, Doubles]:
        """What each active group's sample weights are multiplied by, in the loss and in the leaf counts.  (a,), (a,)"""
        return 1 / (self.mean_weight[update.active] * update.lengths), self.share[update.active]


class StepByStep(ABC):
    """Steps that are taken one after the other."""

    def __init__(self, trainee: Trainee, samples: Samples, plan: Plan, *, fresh: bool) -> None:
        self.trainee, self.samples, self.plan, self.fresh = trainee, samples, plan, fresh
        self.torch_threads = torch.get_num_threads()
        self.weighing = Weighing(samples, trainee.groups, plan)

    def epoch(self, pace: Pace, order: Tensor) -> EpochResult:
        self.begin(pace)
        for update in self.trainee.groups.schedule(self.plan):
            self.take(order, update, *self.weighing(update))
            if self.trainee.zeros is not None:
                self.trainee.splits.parameters["weight"].data.masked_fill_(self.trainee.zeros, 0.0)
        finite = all(bool(torch.isfinite(value).all()) for value in self.trainee.splits.parameters.values())
        return EpochResult(*self.end(), finite)

    @abstractmethod
    def begin(self, pace: Pace) -> None:
        """An epoch begins."""

    @abstractmethod
    def take(self, order: Tensor, update: Update, in_loss: Doubles, in_counts: Doubles) -> None:
        """One step on the splits; what it finds is added to the epoch's leaf counts and log-likelihood."""

    @abstractmethod
    def end(self) -> tuple[Tensor, float]:
        """The epoch's leaf counts and its mean negative log-likelihood."""


class Prepared(NamedTuple):
    """An update on the device: places in the order, and for each of them its group and its factors in loss and counts.

    ``active`` are the splits that move; None for all.
    """

    places: Tensor
    group: Tensor
    in_loss: Tensor
    in_counts: Tensor
    active: Tensor | None


class TorchSteps(StepByStep):
    """Scores and their gradients by automatic differentiation."""

    def __init__(self, trainee: Trainee, samples: Samples, plan: Plan, *, fresh: bool) -> None:
        super().__init__(trainee, samples, plan, fresh=fresh)
        self.shares = penalty_shares(trainee, plan)
        self.adam = Adam(trainee.splits, plan.learning_rate, plan.l1, self.shares)
        self.piece = max(1, VALUES_AT_ONCE // max(samples.n_features, trainee.structure.n_leaves))

    def begin(self, pace: Pace) -> None:
        self.steepness: float | Tensor = pace.steepness
        self.adam.learning_rate = pace.learning_rate
        self.before = None if self.fresh else self.trainee.splits.detached()
        self.leaves = self.trainee.leaves
        self.counts = torch.zeros_like(self.leaves)
        self.log_likelihood = torch.zeros((), dtype=torch.float64, device=self.samples.device)
        self.total_weight = torch.zeros_like(self.log_likelihood)

    def take(self, order: Tensor, update: Update, in_loss: Doubles, in_counts: Doubles) -> None:
        self._step(order, self._prepared(update, in_loss, in_counts))

    def _prepared(self, update: Update, in_loss: Doubles, in_counts: Doubles) -> Prepared:
        device, like = self.samples.device, self.samples.weight
        active = None
        if len(update.active) < len(self.trainee.groups.sizes):
            active = torch.from_numpy(update.active).to(device)
        return Prepared(
            places=torch.from_numpy(update.places).to(device),
            group=update.per_row(update.active).to(device),
            in_loss=update.per_row(in_loss).to(like),
            in_counts=update.per_row(in_counts).to(like),
            active=active,
        )

    def _step(self, order: Tensor, update: Prepared) -> None:
        self.adam.zero_grad()
        rows = order[update.places]
        weight = self.samples.weight[rows]
        mass, once = weight * update.in_loss, weight * update.in_counts
        reached = torch.zeros(self.trainee.structure.n_splits, dtype=torch.bool, device=rows.device)
        for start in range(0, len(rows), self.piece):
            part = slice(start, start + self.piece)
            reached |= self._differentiate(rows[part], update.group[part], mass[part], once[part])
        add_penalty_gradient(self.trainee.splits, self.plan, self.shares)
        # A split of a tree that no row reaches rests.
        rests = self.plan.mass_threshold and self.trainee.is_whole_tree
        self.adam.step(reached if rests else update.active)

    def _scores(self, splits: AbstractSplits, x: Tensor, group: Tensor) -> Tensor:
        return self.trainee.scores(splits, x, group)

    def _differentiate(self, rows: Tensor, group: Tensor, mass: Tensor, once: Tensor) -> Tensor:
        """Add the gradient of some rows; which splits any of them reaches.  (n_splits,)"""
        trainee = self.trainee
        x, labels = self.samples.batch(rows), trainee.labels(self.samples.y[rows], group)
        scores = self._scores(trainee.splits, x, group)
        repeats = len(labels) // len(rows)
        with torch.no_grad():
            basis = scores if self.before is None else self._scores(self.before, x, group)
            log_paths = log_path_probabilities(basis, trainee.structure, self.steepness)
            h = responsibilities(log_paths, self.leaves, labels)
            each = once.repeat_interleave(repeats)
            self.counts += class_counts(h * each[:, None], labels, self.leaves.shape[1])
            self.log_likelihood += (each * log_likelihoods(log_paths, self.leaves, labels)).sum()
            self.total_weight += each.sum()
            left, right = node_masses(h, trainee.structure)
            enough = left + right >= self.plan.mass_threshold
            weight = mass.repeat_interleave(repeats)[:, None] * enough
        split_loss(scores, left * weight, right * weight, self.steepness).backward()
        return enough.any(dim=0)

    def end(self) -> tuple[Tensor, float]:
        return self.counts, float(-self.log_likelihood / self.total_weight)


def penalty_shares(trainee: Trainee, plan: Plan) -> Tensor:
    """What the penalties of every split are multiplied by: the share of the rows that its loss is a mean over."""
    if plan.has_penalties:
        return trainee.penalty_shares
    first = next(iter(trainee.splits.parameters.values()))
    return torch.ones(len(first), dtype=torch.float64, device=first.device)


def add_penalty_gradient(splits: AbstractSplits, plan: Plan, shares: Tensor) -> None:
    """l2 ‖β‖² of all splits, λ βᵀMβ of hyperplanes. l1 acts inside the optimiser."""
    if plan.l2:
        for weight in splits.weights():
            (plan.l2 * shares.to(weight) @ l2(weight)).backward()
    if plan.roughness and plan.image_shape is not None and isinstance(splits, ObliqueSplits):
        weight = splits.parameters["weight"]
        (plan.roughness * shares.to(weight) @ roughness(weight, plan.image_shape)).backward()
