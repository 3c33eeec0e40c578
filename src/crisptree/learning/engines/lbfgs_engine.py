"""The engine of small dense tables: full-batch L-BFGS on splits and leaf tables, compiled.

An epoch is a minimisation at one steepness. ``TorchEngine`` defines the objective, the negative log-likelihood of all
rows; the compiled one has the same value and gradient (``tests/learning/test_lbfgs.py``).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from crisptree.data.rows import ArrayRows, PickedRows
from crisptree.equations.noise import SLOPE
from crisptree.learning.engines.base import EpochResult, TrainState, all_finite, penalty_shares
from crisptree.learning.options import LBFGS, EpochSettings, Plan
from crisptree.learning.samples import Samples
from crisptree.native import training
from crisptree.splits import ObliqueSplits
from crisptree.targets import Classes, Gaussians
from crisptree.threads import n_threads

TRAINING_LEAF_PRIOR = 0.1
"""Pseudo-rows of a leaf while it trains, which keep the logits of a pure leaf finite."""

MIN_VALUES_FOR_THREADS = 2**12
"""Smaller problems are solved before a second thread has started."""


class LbfgsEngine:
    """Minimise the negative log-likelihood of all rows; stumps of a level are independent problems."""

    @staticmethod
    def supports(state: TrainState, samples: Samples, plan: Plan) -> bool:
        """Return True for a plan with L-BFGS, dense rows on the CPU and hyperplanes whose signs are free."""
        is_known = isinstance(state.splits, ObliqueSplits) and type(samples.target) in (Classes, Gaussians)
        is_free = state.signs is None and state.models is None and not plan.shrinks_groups
        is_dense = samples.native_rows is not None and isinstance(samples.rows, ArrayRows | PickedRows)
        return plan.optimizer == LBFGS and is_known and is_free and is_dense

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
        assert isinstance(rows, ArrayRows | PickedRows)
        weight, bias = (state.splits.parameters[name].detach().numpy() for name in ("weight", "bias"))
        sizes = state.groups.host_sizes.astype(np.int64)
        ends = np.cumsum(sizes)
        leaves = state.leaves.detach().contiguous().clone()
        counts = np.zeros((len(leaves), state.n_stumps * samples.target.n_statistics))
        is_large = len(order) * samples.n_features >= MIN_VALUES_FOR_THREADS
        result = training.minimize(
            rows.values.numpy(),
            rows.index.numpy() if isinstance(rows, PickedRows) else None,
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
            n_threads(samples.n_jobs) if is_large else 1,
        )
        state.leaves = leaves
        loss = -result.log_likelihood / result.weight
        return EpochResult(torch.from_numpy(counts).to(leaves), loss, all_finite(state.splits))
