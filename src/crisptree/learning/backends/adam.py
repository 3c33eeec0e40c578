"""Adam for stacked splits: each split has its own step count, and one that rests in a step does not move."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from crisptree.equations.penalties import group_threshold, soft_threshold
from crisptree.splits import AbstractSplits

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class FeatureGroups:
    """Groups of features at some splits, and which of their weights are held at zero or to a sign.

    What is held does not count in the norm of its group: it is put right before, which is where the proximal step of
    the penalty and of the constraint together leads.

    Parameters
    ----------
    bounds : sequence of (int, int)
        The first feature of every group, and the one after its last.
    like : Tensor of shape (n_splits, n_features)
        Weights, for their type, device and width.
    zeros, signs : Tensor, optional
        As ``Trainee`` has them.
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

    def shrunk(self, weights: Tensor, threshold: Tensor, rows: slice | Tensor) -> Tensor:
        """The weights of the splits ``rows`` after the proximal step of l1: groups as such, others one by one."""
        if self.zeros is not None:
            weights = weights.masked_fill(self.zeros[rows], 0.0)
        if self.signs is not None:
            weights = weights.masked_fill(weights * self.signs < 0, 0.0)
        together = group_threshold(weights, threshold * self.roots, self.members)
        return torch.where(self.roots > 0, together, soft_threshold(weights, threshold))


class Adam:
    """Kingma & Ba's optimiser, with a proximal step for l1 in the optimiser's own metric.

    torch.optim.Adam would move a split without rows by its momentum alone, and count the step.

    Parameters
    ----------
    splits : AbstractSplits
        Their parameters that ask for gradients are changed in place.
    learning_rate : float
        α.
    l1 : float, default=0.0
        Strength of Σ|β| on the splits' sparse parameter; zeros are exact.
    shares : Tensor of shape (n_splits,), default=None
        What that strength is multiplied by at every split.
    groups : FeatureGroups, default=None
        Features whose weights l1 shrinks by their common norm, by √size ‖β_g‖ in place of Σ|β|.
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

    def memory(self) -> dict[str, Tensor]:
        """Steps and moments, where they lie."""
        moments = (("mean", self.means), ("square", self.squares))
        return {"steps": self.steps} | {f"{kind}.{name}": value for kind, of in moments for name, value in of.items()}

    def zero_grad(self) -> None:
        for value in self.parameters.values():
            value.grad = None

    def add(self, gradients: Sequence[Tensor | None]) -> None:
        """More of the gradient of every parameter; None where there is none."""
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
                moved = self._shrunk(moved, rate * self.l1[name] * self.shares[rows].reshape(shape), rows)
            moves = None if mask is None else mask.reshape(shape)
            if touched is not None and touched.shape == value.shape:
                moves = touched[rows] if moves is None else touched & moves
            for place, new in ((self.means[name], mean), (self.squares[name], square), (value, moved)):
                place[rows] = new if moves is None else torch.where(moves, new, place[rows])

    def _shrunk(self, weights: Tensor, threshold: Tensor, rows: slice | Tensor) -> Tensor:
        if self.groups is None:
            return soft_threshold(weights, threshold)
        return self.groups.shrunk(weights, threshold, rows)
