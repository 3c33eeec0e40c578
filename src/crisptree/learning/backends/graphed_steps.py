"""Torch's steps on split modules, on CUDA: an epoch is recorded once as graphs and then replayed.

``TorchSteps`` is the definition. A small network makes a step of hundreds of tiny launches, each of which takes
the host longer than the device.
"""

from __future__ import annotations

import warnings
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from crisptree.exceptions import CrispTreeWarning
from crisptree.learning.backends.base import EpochResult, Trainee, all_finite
from crisptree.learning.backends.cuda_graphs import on_device, recorded
from crisptree.learning.backends.torch_steps import TorchSteps
from crisptree.learning.plan import Pace, Plan
from crisptree.learning.samples import Samples
from crisptree.splits import AbstractSplits, ModuleSplits

UPDATES_PER_GRAPH = 64


class GraphedSteps(TorchSteps):
    """The same steps with everything in one place, so that a recorded graph finds it."""

    @staticmethod
    def supports(trainee: Trainee, samples: Samples, plan: Plan) -> bool:
        """Split modules on CUDA."""
        return samples.device.type == "cuda" and isinstance(trainee.splits, ModuleSplits)

    def __init__(self, trainee: Trainee, samples: Samples, plan: Plan, *, fresh: bool) -> None:
        super().__init__(trainee, samples, plan, fresh=fresh)
        device = samples.device
        self.order = trainee.groups.rows[: int(trainee.groups.taken(plan).sum())].clone()
        self.steepness = torch.zeros((), dtype=torch.float64, device=device)
        self.adam.learning_rate = torch.zeros_like(self.steepness)
        self.leaves, self.counts = trainee.leaves.clone(), self._no_counts()
        self.log_likelihood = torch.zeros((), dtype=torch.float64, device=device)
        self.total_weight = torch.zeros_like(self.log_likelihood)
        self.before = None if fresh else trainee.splits.detached()
        schedule = list(trainee.groups.schedule(plan))
        self.updates = [self.prepared(update, *self.weighing(update)) for update in schedule]
        self.runs = [_runs(update.active, update.lengths) for update in schedule]
        self.graphs: list[torch.cuda.CUDAGraph] | None = None
        self.n_epochs = 0

    def epoch(self, pace: Pace, order: Tensor) -> EpochResult:
        with on_device(self.samples.device):
            self.order.copy_(order)
            self.begin(pace)
            if self.graphs:
                for graph in self.graphs:
                    graph.replay()
            else:
                self._launch(range(len(self.updates)))
            self.n_epochs += 1
            finite = all_finite(self.trainee.splits)
            if self.n_epochs == 1 and self.plan.epochs > 2 and self.samples.device.type == "cuda":
                self.graphs = self._recorded()  # the first epoch has chosen algorithms and memory
            return EpochResult(*self.end(), finite)

    @torch.no_grad()
    def begin(self, pace: Pace) -> None:
        for place, number in zip((self.steepness, self.adam.learning_rate), pace, strict=True):
            assert isinstance(place, Tensor)
            place.fill_(number)
        self.leaves.copy_(self.trainee.leaves)
        for value in (self.counts, self.log_likelihood, self.total_weight):
            value.zero_()
        if self.before is not None:
            for name, value in self.before.parameters.items():
                value.copy_(self.trainee.splits.parameters[name])

    def _launch(self, numbers: range) -> None:
        for number in numbers:
            self.current = self.runs[number]
            self._step(self.order, self.updates[number])

    def _scores(self, splits: AbstractSplits, x: Tensor, group: Tensor) -> Tensor:
        """Rows of a stump come in runs that the host knows: nobody has to look for them on the device."""
        if self.trainee.is_whole_tree or len(x) != self.current[-1][2]:
            return super()._scores(splits, x, group)
        return torch.cat([splits.score(x[start:stop], split) for split, start, stop in self.current])[:, None]

    def _recorded(self) -> list[torch.cuda.CUDAGraph]:
        """No graphs where a module does what cannot be recorded: then every epoch is launched step by step."""
        graphs = []
        try:
            for first in range(0, len(self.updates), UPDATES_PER_GRAPH):
                numbers = range(first, min(first + UPDATES_PER_GRAPH, len(self.updates)))
                graphs.append(recorded(partial(self._launch, numbers)))
        except RuntimeError as error:
            warnings.warn(
                f"the split module must not wait for the device to train quickly there, and does ({error}). It trains "
                "step by step instead.",
                CrispTreeWarning,
                stacklevel=2,
            )
            return []
        return graphs


def _runs(active: np.ndarray, lengths: np.ndarray) -> list[tuple[int, int, int]]:
    """(split, first row, row after its last) of every run of rows."""
    bounds = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    return [(split, start, stop) for split, (start, stop) in zip(active.tolist(), pairwise(bounds), strict=True)]
