"""Steps that lower the bound of ``bound``: ``TorchBound`` is the definition, ``NativeBound`` the fast way.

A row needs the scores on its own path and on the paths that it would take with one turn reversed, O(depth²) of them.
The definition evaluates all splits of a tree; the kernel those alone, and leaves a reversal out that cannot attain the
maximum: one whose worst leaf, less 2 |w_iᵀx|, costs no more than what is found already.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.baselines.bound import Paths, add_gradient, bounds, learning_rate, project
from crisptree.learning.engines.torch_engine import Adam
from crisptree.learning.samples import Samples
from crisptree.native import training
from crisptree.splits import ObliqueSplits

Floats = npt.NDArray[np.floating]
Children = npt.NDArray[np.int32]


class Ways(Protocol):
    """Where rows go down: one tree, or many stumps side by side.

    Attributes
    ----------
    left, right : ndarray of shape (n_splits,)
        Children as in ``TreeStructure``. A row begins at the split that has the number of its group.
    """

    left: Children
    right: Children

    def paths(self, splits: ObliqueSplits, x: Tensor, y: Tensor, group: Tensor, loss: Tensor) -> Paths:
        """What the bound asks of some rows."""
        ...

    def worst(self, loss: Floats) -> Floats:
        """The largest loss of any leaf under every node, splits first.  (n_leaves, k) → (n_nodes, k)"""
        ...


class TorchBound:
    """Steps on splits in place.

    Parameters
    ----------
    splits : ObliqueSplits
        Trainable; shortened to ‖w‖² ≤ ν at once and after every step.
    samples : Samples
        The training rows.
    ways : Ways
        Where they go down.
    nu : float
        ν.
    """

    def __init__(self, splits: ObliqueSplits, samples: Samples, ways: Ways, nu: float) -> None:
        self.splits, self.samples, self.ways, self.nu = splits, samples, ways, nu
        project(splits, nu)
        self.adam = Adam(splits, 0.0)

    def memory(self) -> dict[str, Tensor]:
        """What the optimiser remembers from one epoch to the next, where it lies."""
        return self.adam.memory()

    def begin(self, loss: Tensor, rate: float) -> None:
        """Start an epoch with the leaves' losses (n_leaves, n_classes) and a share of the ball's radius as step."""
        self.loss = loss
        self.adam.learning_rate = learning_rate(rate, self.nu, self.samples.n_features)

    @torch.no_grad()
    def take(self, rows: Tensor, group: Tensor) -> tuple[float, float]:
        """A step on some rows; Σ weight · bound before it, and Σ weight."""
        x, weight = self.samples.batch(rows), self.samples.weight[rows]
        paths = self.ways.paths(self.splits, x, self.samples.y[rows], group, self.loss)
        self.adam.zero_grad()
        self.adam.step(add_gradient(self.splits, x, weight, paths))
        project(self.splits, self.nu)
        return float((weight * bounds(paths)).sum()), float(weight.sum())


class NativeBound:
    """The same steps along paths only, on the same parameters in place."""

    @staticmethod
    def supports(samples: Samples) -> bool:
        """Whether the kernel is there and can read the rows."""
        return samples.native_rows is not None

    def __init__(self, splits: ObliqueSplits, samples: Samples, ways: Ways, nu: float) -> None:
        self.ways, self.nu, self.n_features = ways, nu, samples.n_features
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

    def memory(self) -> dict[str, Tensor]:
        names = ("mean.weight", "square.weight", "mean.bias", "square.bias", "steps")
        return {name: torch.from_numpy(place) for name, place in zip(names, self.moments, strict=True)}

    def begin(self, loss: Tensor, rate: float) -> None:
        self.worst = np.ascontiguousarray(self.ways.worst(loss.numpy()), dtype=self.dtype)
        self.kernel.learning_rate = learning_rate(rate, self.nu, self.n_features)

    def take(self, rows: Tensor, group: Tensor) -> tuple[float, float]:
        start = group.numpy().astype(np.int32)
        found = self.kernel.bound(rows.numpy(), start, self.ways.left, self.ways.right, self.worst, self.nu)
        self.n_scores += found.pairs
        return found.log_likelihood, found.weight


def bound_steps(splits: ObliqueSplits, samples: Samples, ways: Ways, nu: float) -> TorchBound | NativeBound:
    """The quickest way that there is for these rows."""
    kind = NativeBound if NativeBound.supports(samples) else TorchBound
    return kind(splits, samples, ways, nu)
