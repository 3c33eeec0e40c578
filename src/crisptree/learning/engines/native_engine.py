"""Compiled engines: steps of Adam, and full-batch L-BFGS for small dense tables.

``TorchEngine`` defines both objectives (``tests/learning/test_engines.py``, ``tests/learning/test_lbfgs.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.data.rows import ArrayRows, SelectedRows
from crisptree.equations.annealing import SLOPE
from crisptree.equations.leaves import LOG_TWO_PI
from crisptree.learning.engines.base import (
    Doubles,
    EpochResult,
    Integers,
    Parts,
    PartStep,
    StepwiseEngine,
    TrainState,
    Update,
    all_finite,
    penalty_shares,
)
from crisptree.learning.options import LBFGS, EpochSettings, Plan
from crisptree.learning.samples import Samples
from crisptree.native import training
from crisptree.splits import ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.targets import Classes, Gaussians, Target
from crisptree.threads import n_threads

BINS = 64
"""Numbers are put into so many bins by their size. For a bin it is known how dense its numbers can be in the leaves
under a node, so that a row leaves out what cannot be responsible for it without asking."""


class NativeLeaves(Protocol):
    """The leaves of a state; ``stumps`` and ``tree`` are the kernel's steps for them."""

    stumps: ClassVar[str]
    tree: ClassVar[str]

    def __init__(self, state: TrainState, samples: Samples, cuts: Integers) -> None: ...

    def tables(self) -> tuple[npt.NDArray[Any], ...]:
        """Leaf tables in the layout of the kernel."""


class NativeClasses:
    """Distributions over classes."""

    stumps: ClassVar[str] = "stumps"
    tree: ClassVar[str] = "tree"

    def __init__(self, state: TrainState, samples: Samples, cuts: Integers) -> None:
        self.state = state

    def tables(self) -> tuple[npt.NDArray[Any], ...]:
        leaves = self.state.leaves.detach().contiguous().numpy()
        return (best_entries(self.state.structure, leaves) if self.state.is_whole_tree else leaves,)


class NativeGaussians:
    """Normal distributions of regression leaves."""

    stumps: ClassVar[str] = "gaussian_stumps"
    tree: ClassVar[str] = "gaussian_tree"

    def __init__(self, state: TrainState, samples: Samples, cuts: Integers) -> None:
        self.state = state
        self.y = np.ascontiguousarray(samples.y.numpy(), dtype=np.float64)
        if state.is_whole_tree:
            # Every part has bins of its own: what a row leaves out must not depend on the rows of other parts.
            parts = [bin_numbers(self.y[begin:end]) for begin, end in pairwise(cuts) if end > begin]
            parts = parts or [(np.zeros(self.y.shape, np.int32), *np.zeros((2, self.y.shape[1], 1)))]
            self.bins = np.concatenate([bins + BINS * number for number, (bins, _, _) in enumerate(parts)])
            self.low, self.high = (np.concatenate([part[side] for part in parts], axis=1) for side in (1, 2))

    def tables(self) -> tuple[npt.NDArray[Any], ...]:
        leaves = self.state.leaves.detach().double().numpy().reshape(len(self.state.leaves), -1, 2, self.y.shape[1])
        mean, variance = leaves[:, :, 0], leaves[:, :, 1]
        peaks = -0.5 * (np.log(variance) + LOG_TWO_PI)
        forms = np.concatenate([mean, 0.5 / variance, peaks.sum(axis=-1, keepdims=True)], axis=-1)
        if not self.state.is_whole_tree:
            return self.y, np.ascontiguousarray(forms)
        densest = bound_densities(mean[:, 0], variance[:, 0], peaks[:, 0], self.low, self.high)
        best = best_entries(self.state.structure, densest.reshape(len(densest), -1))
        best = best.T.reshape(*densest.shape[1:], -1)  # (n_outputs, n_bins, n_nodes)
        highest = best[..., 0]
        relative = np.exp(best - highest[..., None])
        return self.y, self.bins, np.ascontiguousarray(forms[:, 0].T), relative, np.ascontiguousarray(highest)


LEAVES: dict[type[Target], type[NativeLeaves]] = {Classes: NativeClasses, Gaussians: NativeGaussians}
"""By the exact class of the target; subclasses may differ."""


def best_entries(structure: TreeStructure, leaves: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the largest entry of any leaf table under every node, splits first.  (n_leaves, k) → (n_nodes, k)"""
    best = np.empty((structure.n_nodes, leaves.shape[1]), dtype=leaves.dtype)
    best[structure.n_splits :] = leaves
    for splits in reversed(structure.levels):
        best[splits] = np.maximum(best[structure.left_nodes[splits]], best[structure.right_nodes[splits]])
    return best


def bin_numbers(y: Doubles) -> tuple[npt.NDArray[np.int32], Doubles, Doubles]:
    """Bin numbers by output; return the bin of every number and the edges of the bins.

    (n, n_outputs) → (n, n_outputs), two (n_outputs, BINS)
    """
    inner = np.quantile(y, np.arange(1, BINS) / BINS, axis=0).T
    bins = np.stack([np.searchsorted(edges, column) for edges, column in zip(inner, y.T, strict=True)], axis=1)
    low = np.concatenate([y.min(axis=0)[:, None], inner], axis=1)
    high = np.concatenate([inner, y.max(axis=0)[:, None]], axis=1)
    return bins.astype(np.int32), low, high


def bound_densities(mean: Doubles, variance: Doubles, peaks: Doubles, low: Doubles, high: Doubles) -> Doubles:
    """Bound the log-density of each output in each leaf over the numbers of a bin.

    Three (n_leaves, n_outputs), two (n_outputs, BINS) → (n_leaves, n_outputs, BINS)
    """
    far = np.maximum(np.maximum(low - mean[..., None], mean[..., None] - high), 0.0)
    return peaks[..., None] - 0.5 * far**2 / variance[..., None]


class Hyperplanes:
    """The splits of a state as kernels change them: weights, biases, Adam's moments, and norms under noise."""

    def __init__(self, state: TrainState, samples: Samples, plan: Plan) -> None:
        self.state, self.plan = state, plan
        for parameter in state.splits.parameters.values():
            parameter.data = parameter.data.contiguous()  # the kernel writes into the state's own memory
        self.weight, self.bias = (_view(state.splits.parameters[name]) for name in ("weight", "bias"))
        # The kernel updates ‖β‖² as the weights move.
        self.squares = np.multiply(self.weight, self.weight, dtype=np.float64).sum(axis=1)
        to_arrays = (self.weight, self.weight, self.bias, self.bias, self.bias)
        self.moments = [np.zeros_like(part) for part in to_arrays]
        self.shares = _view(penalty_shares(state, plan))

    def kernel(self, samples: Samples) -> Any:
        """Kernel that computes steps on the splits."""
        state, plan = self.state, self.plan
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
            plan.spatial_penalty,
            SLOPE * plan.input_noise**2,
            self.squares,
            np.ones(1),
            None,
            None,
            self.shares,
            image,
            None if state.zeros is None else _view(state.zeros),
            None if state.signs is None else _view(state.signs),
            np.asarray(plan.feature_groups if plan.shrinks_groups else (), dtype=np.int64).reshape(-1, 2),
            samples.threads,
        )

    def optimizer_state(self) -> dict[str, Tensor]:
        """State that is kept between epochs, without copies."""
        names = ("mean.weight", "square.weight", "mean.bias", "square.bias", "steps", "norms")
        places = zip(names, (*self.moments, self.squares), strict=True)
        return {name: torch.from_numpy(place) for name, place in places}

    def before(self, *, fresh: bool) -> tuple[npt.NDArray[Any], ...]:
        """Return the splits that compute responsibilities: a copy before the epoch, or the ones in training."""
        now = (self.weight, self.bias, self.squares)
        return now if fresh else tuple(part.copy() for part in now)


class NativeEngine(StepwiseEngine):
    """The same steps as ``TorchEngine``, on the same parameters in place."""

    @staticmethod
    def supports(state: TrainState, samples: Samples, plan: Plan) -> bool:
        """Return True for hyperplanes and classes or numbers, if the kernel is installed and reads such rows."""
        linear = isinstance(state.splits, ObliqueSplits) and type(samples.target) in LEAVES
        groups = plan.shrinks_groups and samples.is_sparse
        return linear and samples.native_rows is not None and not groups

    def __init__(
        self, state: TrainState, samples: Samples, plan: Plan, *, fresh: bool, cuts: Integers | None = None
    ) -> None:
        super().__init__(state, samples, plan, fresh=fresh)
        self.planes = Hyperplanes(state, samples, plan)
        self.kernel = self.planes.kernel(samples)
        cuts = np.array([0, len(samples)]) if cuts is None else cuts
        self.leaves = LEAVES[type(samples.target)](state, samples, cuts)

    def optimizer_state(self) -> dict[str, Tensor]:
        return self.planes.optimizer_state()

    def begin(self, settings: EpochSettings) -> None:
        self.steepness, self.kernel.learning_rate = settings
        self.kernel.forget()  # or a fit that is resumed here would cut batches into other pieces
        self.before = self.planes.before(fresh=self.fresh)
        self.tables = self.leaves.tables()
        self.counts = np.zeros((len(self.state.leaves), self.state.n_stumps * self.samples.target.n_statistics))
        self.log_likelihood = self.total_weight = 0.0
        self.pairs = 0

    def take(self, order: Tensor, update: Update, in_loss: Doubles, in_counts: Doubles) -> None:
        rows = (_view(order), update.active, update.begin, update.end, in_loss, in_counts)
        common = (*rows, *self.before, *self.tables, self.counts, self.steepness)
        if self.state.is_whole_tree:
            structure = self.state.structure
            step = getattr(self.kernel, self.leaves.tree)
            found = step(*common, structure.left, structure.right, self.plan.mass_threshold)
        else:
            found = getattr(self.kernel, self.leaves.stumps)(*common)
        self.log_likelihood += found.log_likelihood
        self.total_weight += found.weight
        self.pairs += found.pairs

    def project_constraints(self) -> None:
        """Do nothing: the kernel has projected the weights."""

    def end(self) -> tuple[Tensor, float]:
        counts = torch.from_numpy(self.counts).to(self.state.leaves)
        return counts, -self.log_likelihood / self.total_weight


class NativePartSums(NativeEngine):
    """The same steps with gradients of parts of the rows, which are added up before the splits move."""

    def __init__(
        self, state: Any, samples: Samples, plan: Plan, parts: Parts, steps: list[PartStep], *, fresh: bool
    ) -> None:
        super().__init__(state, samples, plan, fresh=fresh, cuts=parts.cuts)
        self.n_parts, self.steps = max(len(parts), 1), steps
        self.sums = torch.zeros(state.splits.n_splits, samples.n_features + 2, dtype=torch.int64)
        self.part_likelihoods = np.zeros((self.n_parts, 2))
        self.kernel.collect(self.sums.numpy(), parts.units, self.part_likelihoods)

    def begin_parts(self, settings: EpochSettings, order: Tensor) -> None:
        self.begin(settings)
        self.order, self.in_bounds = order, True
        self.counts = np.zeros((self.n_parts * len(self.counts), self.counts.shape[1]))
        self.part_likelihoods[:] = 0

    def run(self, take_steps: Callable[[], None], *, is_local: bool) -> None:
        take_steps()

    def add(self, step: int) -> None:
        update, in_loss, in_counts, *_ = self.steps[step]
        self.take(self.order, update, in_loss, in_counts)

    def move(self) -> None:
        self.in_bounds &= bool(self.kernel.move(self.steepness))

    def is_in_bounds(self) -> bool:
        return self.in_bounds

    def part_results(self) -> tuple[Any, Any]:
        return self.counts.reshape(self.n_parts, len(self.state.leaves), -1), self.part_likelihoods


def _view(tensor: Tensor) -> npt.NDArray[Any]:
    """Return the tensor's own memory as an array."""
    return tensor.detach().contiguous().numpy()


TRAINING_LEAF_PRIOR = 0.1
"""Pseudo-rows of a leaf while it trains, which keep the logits of a pure leaf finite."""

MIN_VALUES_FOR_THREADS = 2**12
"""Smaller problems are solved before a second thread has started."""


class LbfgsEngine:
    """Minimise the negative log-likelihood of all rows; stumps of a level are independent problems."""

    @staticmethod
    def supports(state: TrainState, samples: Samples, plan: Plan) -> bool:
        """Return True for a plan with L-BFGS, dense rows on the CPU and hyperplanes."""
        is_known = isinstance(state.splits, ObliqueSplits) and type(samples.target) in (Classes, Gaussians)
        is_dense = samples.native_rows is not None and isinstance(samples.rows, ArrayRows | SelectedRows)
        return plan.optimizer == LBFGS and is_known and state.models is None and is_dense

    def __init__(self, state: TrainState, samples: Samples, plan: Plan, *, fresh: bool) -> None:
        self.state, self.samples, self.plan = state, samples, plan
        for parameter in state.splits.parameters.values():
            parameter.data = parameter.data.contiguous()  # the kernel writes into the state's own memory
        self.shares = penalty_shares(state, plan).numpy()
        is_classification = type(samples.target) is Classes
        self.labels = samples.y.numpy() if is_classification else None
        self.values = None if is_classification else np.ascontiguousarray(samples.y.double().numpy())

    def optimizer_state(self) -> dict[str, Tensor]:
        """Return nothing: every epoch starts without curvature pairs."""
        return {}

    def epoch(self, settings: EpochSettings, order: Tensor) -> EpochResult:
        """Minimise at one steepness; splits and leaf tables are updated in place."""
        assert training is not None
        state, plan, samples, rows = self.state, self.plan, self.samples, self.samples.rows
        assert isinstance(rows, ArrayRows | SelectedRows)
        weight, bias = (state.splits.parameters[name].detach().numpy() for name in ("weight", "bias"))
        sizes = state.groups.host_sizes.astype(np.int64)
        ends = np.cumsum(sizes)
        leaves = state.leaves.detach().contiguous().clone()
        counts = np.zeros((len(leaves), state.n_stumps * samples.target.n_statistics))
        is_large = len(order) * samples.n_features >= MIN_VALUES_FOR_THREADS
        result = training.minimize(
            rows.values.numpy(),
            rows.index.numpy() if isinstance(rows, SelectedRows) else None,
            self.labels,
            self.values,
            samples.weight.numpy(),
            order.numpy(),
            ends - sizes,
            ends,
            state.structure.left,
            state.structure.right,
            weight,
            bias,
            leaves.numpy(),
            self.shares,
            None if state.zeros is None else state.zeros.contiguous().numpy(),
            counts,
            settings.steepness,
            SLOPE * plan.input_noise**2,
            plan.l1,
            plan.l2,
            TRAINING_LEAF_PRIOR,
            plan.max_iterations,
            plan.tolerance,
            np.array(plan.feature_groups, dtype=np.int64).reshape(-1, 2) if plan.shrinks_groups else None,
            None if state.signs is None else state.signs.numpy(),
            n_threads(samples.n_jobs) if is_large else 1,
        )
        state.leaves = leaves
        loss = -result.log_likelihood / result.weight
        return EpochResult(torch.from_numpy(counts).to(leaves), loss, all_finite(state.splits))
