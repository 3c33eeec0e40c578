"""One optimiser step on hyperplanes, with the native kernel: scores, residuals, gradients and Adam in one pass.

``TorchSteps`` is the definition. A row of a tree goes down only where its label's probability may come from: a
subtree whose share of p(y∣x) stays below ``mass_threshold`` is neither evaluated nor differentiated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.equations.noise import SLOPE
from crisptree.learning.backends.base import Doubles, StepByStep, Trainee, penalty_shares
from crisptree.learning.backends.native_leaves import LEAVES
from crisptree.learning.batches import Update
from crisptree.learning.plan import Pace, Plan
from crisptree.learning.samples import Samples
from crisptree.native import training
from crisptree.splits import ObliqueSplits
from crisptree.targets import Classes


class Hyperplanes:
    """The splits of a trainee as kernels change them: weights, biases, Adam's moments, and norms under noise."""

    def __init__(self, trainee: Trainee, samples: Samples, plan: Plan) -> None:
        self.trainee, self.plan = trainee, plan
        for parameter in trainee.splits.parameters.values():
            parameter.data = parameter.data.contiguous()  # the kernel writes into the trainee's own memory
        self.weight, self.bias = (_view(trainee.splits.parameters[name]) for name in ("weight", "bias"))
        # The kernel updates ‖β‖² as the weights move.
        self.squares = np.multiply(self.weight, self.weight, dtype=np.float64).sum(axis=1)
        kept = (self.weight, self.weight, self.bias, self.bias, self.bias)
        self.moments = [np.zeros_like(part) for part in kept]
        self.shares = _view(penalty_shares(trainee, plan))

    def kernel(self, samples: Samples) -> Any:
        """What takes steps on them with some rows."""
        trainee, plan = self.trainee, self.plan
        kind = "SingleTrainer" if samples.rows.dtype == torch.float32 else "DoubleTrainer"
        image = plan.image_shape[:2] if plan.image_shape is not None else (0, 0)
        return getattr(training, kind)(
            samples.native_rows,
            _view(samples.y) if type(samples.target) is Classes else None,
            _view(samples.weight),
            self.weight,
            self.bias,
            *self.moments,
            plan.l1,
            plan.l2,
            plan.roughness,
            SLOPE * plan.input_noise**2,
            self.squares,
            np.ones(1),
            None,
            None,
            self.shares,
            image,
            None if trainee.zeros is None else _view(trainee.zeros),
            None if trainee.signs is None else _view(trainee.signs),
            np.asarray(plan.feature_groups if plan.shrinks_groups else (), dtype=np.int64).reshape(-1, 2),
            samples.threads,
        )

    def memory(self) -> dict[str, Tensor]:
        """What must be kept from one epoch to the next, where it lies."""
        names = ("mean.weight", "square.weight", "mean.bias", "square.bias", "steps", "norms")
        places = zip(names, (*self.moments, self.squares), strict=True)
        return {name: torch.from_numpy(place) for name, place in places}

    def before(self, *, fresh: bool) -> tuple[npt.NDArray[Any], ...]:
        """The splits that responsibilities come from: these as they are now, or as they will be."""
        now = (self.weight, self.bias, self.squares)
        return now if fresh else tuple(part.copy() for part in now)


class NativeSteps(StepByStep):
    """The same steps as ``TorchSteps``, on the same parameters in place."""

    @staticmethod
    def supports(trainee: Trainee, samples: Samples, plan: Plan) -> bool:
        """Hyperplanes and classes or numbers, where the kernel is there and can read the rows."""
        linear = isinstance(trainee.splits, ObliqueSplits) and type(samples.target) in LEAVES
        groups = plan.shrinks_groups and samples.is_sparse
        return linear and samples.native_rows is not None and not groups

    def __init__(self, trainee: Trainee, samples: Samples, plan: Plan, *, fresh: bool) -> None:
        super().__init__(trainee, samples, plan, fresh=fresh)
        self.planes = Hyperplanes(trainee, samples, plan)
        self.kernel = self.planes.kernel(samples)
        self.leaves = LEAVES[type(samples.target)](trainee, samples)

    def memory(self) -> dict[str, Tensor]:
        return self.planes.memory()

    def begin(self, pace: Pace) -> None:
        self.steepness, self.kernel.learning_rate = pace
        self.kernel.forget()  # or a fit that is resumed here would cut batches into other pieces
        self.before = self.planes.before(fresh=self.fresh)
        self.tables = self.leaves.tables()
        self.counts = np.zeros((len(self.trainee.leaves), self.trainee.n_places * self.samples.target.n_statistics))
        self.log_likelihood = self.total_weight = 0.0
        self.pairs = 0

    def take(self, order: Tensor, update: Update, in_loss: Doubles, in_counts: Doubles) -> None:
        rows = (_view(order), update.active, update.begin, update.end, in_loss, in_counts)
        common = (*rows, *self.before, *self.tables, self.counts, self.steepness)
        if self.trainee.is_whole_tree:
            structure = self.trainee.structure
            step = getattr(self.kernel, self.leaves.tree)
            found = step(*common, structure.left, structure.right, self.plan.mass_threshold)
        else:
            found = getattr(self.kernel, self.leaves.stumps)(*common)
        self.log_likelihood += found.log_likelihood
        self.total_weight += found.weight
        self.pairs += found.pairs

    def put_right(self) -> None:
        """The kernel has done so."""

    def end(self) -> tuple[Tensor, float]:
        counts = torch.from_numpy(self.counts).to(self.trainee.leaves)
        return counts, -self.log_likelihood / self.total_weight


def _view(tensor: Tensor) -> npt.NDArray[Any]:
    """The tensor's own memory as an array."""
    return tensor.detach().contiguous().numpy()
