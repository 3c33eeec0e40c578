"""The torch engine: the definition, for every kind of split, row, target and device.

Adam for stacked splits comes first: each split has its own step count, and splits without rows in a step do not move.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from crisptree.equations.annealing import damped_steepness
from crisptree.equations.em import node_masses, split_loss
from crisptree.equations.penalties import group_threshold, l2, soft_threshold, spatial_penalty
from crisptree.equations.routing import log_path_probabilities
from crisptree.learning.engines.base import (
    Doubles,
    EpochResult,
    Parts,
    PartStep,
    StepwiseEngine,
    TrainState,
    Update,
    penalty_shares,
)
from crisptree.learning.options import EpochSettings, Plan
from crisptree.learning.samples import Samples
from crisptree.splits import AbstractSplits, ObliqueSplits
from crisptree.threads import Mapping, workers

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class FeatureGroups:
    """Groups of features at some splits, by the first feature of each and the one after its last.

    Constrained weights do not count in the norm of their group: they are projected before, which is where the proximal
    step of the penalty and of the constraint together leads. ``like`` are weights (n_splits, n_features).
    """

    def __init__(
        self,
        bounds: Sequence[tuple[int, int]],
        like: Tensor,
        zeros: Tensor | None = None,
        signs: Tensor | None = None,
    ) -> None:
        members = torch.zeros(like.shape[1], len(bounds), dtype=like.dtype)
        for group, (begin, end) in enumerate(bounds):
            members[begin:end, group] = 1
        self.members = members.to(like.device)
        self.roots = (self.members @ self.members.sum(dim=0)).sqrt()
        self.zeros, self.signs = zeros, signs

    def shrink(self, weights: Tensor, threshold: Tensor, rows: slice | Tensor) -> Tensor:
        """Apply the proximal step of l1 to the weights of the splits ``rows``, group by group or weight by weight."""
        if self.zeros is not None:
            weights = weights.masked_fill(self.zeros[rows], 0.0)
        if self.signs is not None:
            weights = weights.masked_fill(weights * self.signs < 0, 0.0)
        together = group_threshold(weights, threshold * self.roots, self.members)
        return torch.where(self.roots > 0, together, soft_threshold(weights, threshold))


class Adam:
    """Kingma & Ba's optimiser, with a proximal step for l1 in the optimiser's own metric.

    torch.optim.Adam would move a split without rows by its momentum alone, and count the step. ``l1`` Σ|β| acts on the
    splits' sparse parameter and gives exact zeros; it is multiplied by ``shares`` (n_splits,) at every split, and
    weights of ``groups`` are shrunk by √size ‖β_g‖ instead.
    """

    def __init__(
        self,
        splits: AbstractSplits,
        learning_rate: float,
        l1: float = 0.0,
        shares: Tensor | None = None,
        groups: FeatureGroups | None = None,
    ) -> None:
        self.parameters = {name: value for name, value in splits.parameters.items() if value.requires_grad}
        self.learning_rate: float | Tensor = learning_rate
        self.l1 = {splits.sparse_parameter: l1} if l1 and splits.sparse_parameter else {}
        self.groups = groups
        first = next(iter(self.parameters.values()))
        self.steps = torch.zeros(len(first), dtype=first.dtype, device=first.device)
        self.shares = torch.ones_like(self.steps) if shares is None else shares.to(first)
        self.means = {name: torch.zeros_like(value) for name, value in self.parameters.items()}
        self.squares = {name: torch.zeros_like(value) for name, value in self.parameters.items()}

    def optimizer_state(self) -> dict[str, Tensor]:
        """Return steps and moments, without copies."""
        moments = (("mean", self.means), ("square", self.squares))
        return {"steps": self.steps} | {f"{kind}.{name}": value for kind, of in moments for name, value in of.items()}

    def zero_grad(self) -> None:
        for value in self.parameters.values():
            value.grad = None

    def add(self, gradients: Sequence[Tensor | None]) -> None:
        """Add to the gradient of every parameter; None adds nothing."""
        for value, gradient in zip(self.parameters.values(), gradients, strict=True):
            if gradient is not None:
                value.grad = gradient.contiguous() if value.grad is None else value.grad + gradient

    @torch.no_grad()
    def step(self, active: Tensor | None = None, touched: Tensor | None = None) -> None:
        """Move all splits, or only the ``active`` ones: their numbers, or a mask, which the host need not know.

        Of their weights all move, or only those ``touched``, of the weights' shape; the others and their moments rest.
        """
        mask = active if active is not None and active.dtype == torch.bool else None
        rows = slice(None) if active is None or mask is not None else active
        self.steps[rows] += 1 if mask is None else mask
        for name, value in self.parameters.items():
            if value.grad is None:
                continue
            shape = (-1, *[1] * (value.dim() - 1))
            steps = self.steps[rows].reshape(shape)
            gradient = value.grad[rows]
            mean = self.means[name][rows].lerp(gradient, 1 - BETA_1)
            square = self.squares[name][rows].lerp(gradient.square(), 1 - BETA_2)
            rate = self.learning_rate * ((square / (1 - BETA_2**steps)).sqrt() + EPSILON).reciprocal()
            moved = value[rows] - rate * mean / (1 - BETA_1**steps)
            if name in self.l1:
                moved = self._shrink(moved, rate * self.l1[name] * self.shares[rows].reshape(shape), rows)
            moves = None if mask is None else mask.reshape(shape)
            if touched is not None and touched.shape == value.shape:
                moves = touched[rows] if moves is None else touched & moves
            for stump, new in ((self.means[name], mean), (self.squares[name], square), (value, moved)):
                stump[rows] = new if moves is None else torch.where(moves, new, stump[rows])

    def _shrink(self, weights: Tensor, threshold: Tensor, rows: slice | Tensor) -> Tensor:
        if self.groups is None:
            return soft_threshold(weights, threshold)
        return self.groups.shrink(weights, threshold, rows)


VALUES_AT_ONCE = 2**22
"""Values of a piece of a step: its rows are processed piece by piece, so memory does not grow with the step."""

VALUES_PER_THREAD = 2**17
"""Where the rows are many, pieces are so small that every thread gets some, whether there are several or not."""


class Prepared(NamedTuple):
    """An update on the device: positions in the order, and for each of them its group, its factors in loss and counts.

    ``active`` are the splits that move; None for all.
    """

    positions: Tensor
    group: Tensor
    in_loss: Tensor
    in_counts: Tensor
    active: Tensor | None


class StepSums(NamedTuple):
    """Sums over some rows of a step: gradients by parameter, leaf statistics, log-likelihood, weight, reached splits.

    ``touched`` are the weights that sparse rows have values for, (n_splits, n_features); None where rows are dense.
    """

    gradients: tuple[Tensor | None, ...]
    statistics: Tensor
    log_likelihood: Tensor
    weight: Tensor
    reached: Tensor
    touched: Tensor | None


class TorchEngine(StepwiseEngine):
    """Scores and their gradients by automatic differentiation."""

    each: Mapping = map

    @staticmethod
    def supports(state: TrainState, samples: Samples, plan: Plan) -> bool:
        """Return True: the definition supports everything."""
        return True

    def __init__(self, state: TrainState, samples: Samples, plan: Plan, *, fresh: bool) -> None:
        super().__init__(state, samples, plan, fresh=fresh)
        self.shares = penalty_shares(state, plan)
        self.adam = Adam(state.splits, plan.learning_rate, plan.l1, self.shares, _groups_of(state, plan))
        values = max(samples.n_features, state.structure.n_leaves) * math.prod(samples.y.shape[1:])
        parallel = samples.are_many and samples.device.type == "cpu" and not state.splits.is_random
        self.threads = samples.threads if parallel else 1
        self.piece = max(1, (VALUES_PER_THREAD if parallel else VALUES_AT_ONCE) // values)

    def epoch(self, settings: EpochSettings, order: Tensor) -> EpochResult:
        with workers(self.threads) as self.each:
            return super().epoch(settings, order)

    def optimizer_state(self) -> dict[str, Tensor]:
        return self.adam.optimizer_state()

    def begin(self, settings: EpochSettings) -> None:
        self.steepness: float | Tensor = settings.steepness
        self.adam.learning_rate = settings.learning_rate
        self.before = None if self.fresh else self.state.splits.detach()
        self.leaves = self.state.leaves
        self.counts = self._no_counts()
        self.log_likelihood = torch.zeros((), dtype=torch.float64, device=self.samples.device)
        self.total_weight = torch.zeros_like(self.log_likelihood)

    def _no_counts(self) -> Tensor:
        n_columns = self.state.n_stumps * self.samples.target.n_statistics
        return self.state.leaves.new_zeros(len(self.state.leaves), n_columns)

    def take(self, order: Tensor, update: Update, in_loss: Doubles, in_counts: Doubles) -> None:
        self._step(order, self.prepare(update, in_loss, in_counts))

    def prepare(self, update: Update, in_loss: Doubles, in_counts: Doubles) -> Prepared:
        device, like = self.samples.device, self.samples.weight
        active = None
        if len(update.active) < len(self.state.groups.sizes):
            active = torch.from_numpy(update.active).to(device)
        return Prepared(
            positions=torch.from_numpy(update.positions).to(device),
            group=update.per_row(update.active).to(device),
            in_loss=update.per_row(in_loss).to(like),
            in_counts=update.per_row(in_counts).to(like),
            active=active,
        )

    def _step(self, order: Tensor, update: Prepared) -> None:
        self.adam.zero_grad()
        reached, touched = self._collect(order, update)
        add_penalty_gradient(self.state.splits, self.plan, self.shares)
        # A split of a tree that no row reaches rests.
        rests = self.plan.mass_threshold and self.state.is_whole_tree
        self.adam.step(reached if rests else update.active, touched)

    def _collect(self, order: Tensor, update: Prepared) -> tuple[Tensor, Tensor | None]:
        """Return the gradients of all rows of a step at the parameters, the splits that they reach, and the weights."""
        rows = order[update.positions]
        weight = self.samples.weight[rows]
        mass, once = weight * update.in_loss, weight * update.in_counts
        reached = torch.zeros(self.state.structure.n_splits, dtype=torch.bool, device=rows.device)
        touched = None
        pieces = zip(*(part.split(self.piece) for part in (rows, update.group, mass, once)), strict=True)
        for found in self.each(self._differentiate, pieces):
            # In the order of the rows, whichever thread is ready first.
            self.adam.add(found.gradients)
            self.counts += found.statistics
            self.log_likelihood += found.log_likelihood
            self.total_weight += found.weight
            reached |= found.reached
            if found.touched is not None:
                touched = found.touched if touched is None else touched | found.touched
        return reached, touched

    def _scores(self, splits: AbstractSplits, x: Tensor, group: Tensor) -> Tensor:
        return self.state.scores(splits, x, group)

    def damped_steepness(self, splits: AbstractSplits) -> Tensor:
        """γ of every split under noise on the inputs.  (n_splits,)"""
        return damped_steepness(self.steepness, self.plan.input_noise, splits.squared_norms())

    def _steepness_of(self, splits: AbstractSplits, stump: Tensor | None) -> float | Tensor:
        """Return γ; under noise on the inputs that of every split, or of every row at its split."""
        if not self.plan.input_noise:
            return self.steepness
        steepness = self.damped_steepness(splits)
        return steepness if stump is None else steepness[stump][:, None]

    def _differentiate(self, piece: tuple[Tensor, ...]) -> StepSums:
        """Return indices, groups, and weights in loss and counts of some rows.  Four (b,)"""
        rows, group, mass, once = piece
        state, target = self.state, self.samples.target
        x, stump = self.samples.batch(rows), state.stump_index(group)
        scores = self._scores(state.splits, x, group)
        repeats = len(scores) // len(rows)
        y = self.samples.y[rows].repeat_interleave(repeats, dim=0)
        with torch.no_grad():
            before = self.before or state.splits
            basis = scores if self.before is None else self._scores(before, x, group)
            log_paths = log_path_probabilities(basis, state.structure, self._steepness_of(before, stump))
            each = once.repeat_interleave(repeats)
            found = target.e_step(log_paths, self.leaves, y, each, stump, state.n_stumps)
            left, right = node_masses(found.responsibilities, state.structure)
            enough = left + right >= self.plan.mass_threshold
            weight = mass.repeat_interleave(repeats)[:, None] * enough
        loss = split_loss(scores, left * weight, right * weight, self._steepness_of(state.splits, stump))
        gradients = torch.autograd.grad(loss, list(self.adam.parameters.values()), allow_unused=True)
        log_likelihood = (each * found.log_likelihoods).sum()
        touched = self._touched(x, stump, enough) if self.samples.is_sparse else None
        return StepSums(gradients, found.statistics, log_likelihood, each.sum(), enough.any(dim=0), touched)

    def _touched(self, x: Tensor, stump: Tensor | None, enough: Tensor) -> Tensor:
        """Return the weights that move: those for which a row that counts at the split has a value.

        (n_splits, n_features)
        """
        there = (x != 0).to(x)
        if stump is None:
            return enough.to(x).T @ there > 0
        return there.new_zeros(self.state.n_stumps, there.shape[1]).index_add_(0, stump, there * enough) > 0

    def end(self) -> tuple[Tensor, float]:
        return self.counts, float(-self.log_likelihood / self.total_weight)


MAX_UNITS = 2.0**50
OUT_OF_BOUNDS = 2**32
"""Added to the number of a split for gradients that are not finite or of more than ``MAX_UNITS``."""


def add_in_units(sums: Tensor, gradient: Tensor, units: Tensor, reached: Tensor, splits: Tensor | None) -> None:
    """Add gradients of weights and bias, (…, m, n_features + 1), to the sums of some ``splits`` (m,), or of all."""
    whole = (gradient.double() / units).round()
    in_bounds = (whole.abs() < MAX_UNITS).all(dim=-1)
    number = reached * torch.where(in_bounds, 1, OUT_OF_BOUNDS)
    values = torch.cat([whole.where(in_bounds[..., None], 0.0).long(), number[..., None]], dim=-1)
    if splits is None:
        sums += values.reshape(-1, *sums.shape).sum(dim=0)
    else:
        sums.index_add_(0, splits, values)


def scaled_units(units: Tensor, steepness: float) -> Tensor:
    """Return the units of gradients at a steepness, with which they grow."""
    return units * 2.0 ** math.floor(math.log2(steepness))


class TorchPartSums(TorchEngine):
    """The same steps with gradients of parts of the rows, which are added up before the splits move."""

    def __init__(
        self, state: Any, samples: Samples, plan: Plan, parts: Parts, steps: list[PartStep], *, fresh: bool
    ) -> None:
        super().__init__(state, samples, plan, fresh=fresh)
        self.parts, self.steps, device = parts, steps, samples.device
        self.sums = torch.zeros(state.splits.n_splits, samples.n_features + 2, dtype=torch.int64, device=device)
        self.number = torch.zeros((), dtype=torch.int64, device=device)
        self.units = torch.from_numpy(parts.units).to(device)

    def begin_parts(self, settings: EpochSettings, order: Tensor) -> None:
        self.begin(settings)
        self.order, self.scaled_units = order, scaled_units(self.units, settings.steepness)
        n_parts = max(len(self.parts), 1)
        self.part_counts = self.counts.new_zeros(n_parts, *self.counts.shape)
        self.part_likelihoods = self.log_likelihood.new_zeros(n_parts, 2)
        self.number.zero_()

    def run(self, take_steps: Callable[[], None], *, is_local: bool) -> None:
        take_steps()

    def add(self, step: int) -> None:
        update, in_loss, in_counts, *_ = self.steps[step]
        group, part = update.active // len(self.parts), update.active % len(self.parts)
        for number in np.unique(part):
            here = part == number
            self.counts = self.part_counts[number]
            self.log_likelihood, self.total_weight = self.part_likelihoods[number].unbind()
            some = Update(group[here], update.begin[here], update.end[here])
            self.adam.zero_grad()
            reached, _ = self._collect(self.order, self.prepare(some, in_loss[here], in_counts[here]))
            splits = None if self.state.is_whole_tree else torch.from_numpy(some.active).to(self.sums.device)
            weight, bias = (value.grad for value in (self.adam.parameters[name] for name in ("weight", "bias")))
            assert weight is not None
            assert bias is not None
            gradient = torch.cat([weight, bias[:, None]], dim=1)
            if splits is not None:
                gradient, reached = gradient[splits], torch.ones_like(splits)
            add_in_units(self.sums, gradient, self.scaled_units, reached, splits)

    def move(self) -> None:
        number, parameters = self.sums[:, -1], self.adam.parameters
        gradient = (self.sums[:, :-1] * self.scaled_units).to(parameters["weight"])
        by_name = {"weight": gradient[:, :-1], "bias": gradient[:, -1]}
        self.adam.zero_grad()
        self.adam.add([by_name[name] for name in parameters])
        add_penalty_gradient(self.state.splits, self.plan, self.shares)
        self.adam.step(number > 0)
        self.project_constraints()
        torch.maximum(self.number, number.max(), out=self.number)
        self.sums.zero_()

    def is_in_bounds(self) -> bool:
        return int(self.number) < OUT_OF_BOUNDS

    def part_results(self) -> tuple[Any, Any]:
        return self.part_counts.double().cpu().numpy(), self.part_likelihoods.cpu().numpy()


def _groups_of(state: TrainState, plan: Plan) -> FeatureGroups | None:
    """Return the groups of features that l1 shrinks jointly; only hyperplanes have a weight for each."""
    if not (plan.shrinks_groups and isinstance(state.splits, ObliqueSplits)):
        return None
    weight = state.splits.parameters["weight"]
    return FeatureGroups(plan.feature_groups, weight, state.zeros, state.signs)


def add_penalty_gradient(splits: AbstractSplits, plan: Plan, shares: Tensor) -> None:
    """Add the gradients of l2 ‖β‖², and of λ βᵀMβ for hyperplanes. l1 acts inside the optimiser."""
    if plan.l2:
        for weight in splits.weights():
            (plan.l2 * shares.to(weight) @ l2(weight)).backward()
    if plan.spatial_penalty and plan.image_shape is not None and isinstance(splits, ObliqueSplits):
        weight = splits.parameters["weight"]
        (plan.spatial_penalty * shares.to(weight) @ spatial_penalty(weight, plan.image_shape)).backward()
