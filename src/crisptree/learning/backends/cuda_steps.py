"""The steps of an epoch on CUDA: a few fused kernels each, recorded once as a graph and then replayed.

``TorchSteps`` is the definition. There hundreds of small launches make a step; here an epoch is one launch. A
tree is dense on this device: products of a batch with all splits are quicker there than finding the few that matter.
"""

from __future__ import annotations

import logging
import math
import time
import warnings
from functools import cache

import torch
from torch import Tensor

from crisptree.exceptions import CrispTreeWarning
from crisptree.learning.backends.base import EpochResult, Trainee
from crisptree.learning.backends.cuda_graphs import launching, on_device, recorded
from crisptree.learning.backends.cuda_leaves import LEAVES
from crisptree.learning.backends.cuda_work import StumpWork, TreeWork, Work, kernels
from crisptree.learning.plan import Pace, Plan
from crisptree.learning.samples import Samples
from crisptree.rows.arrays import ArrayRows
from crisptree.splits import ObliqueSplits

logger = logging.getLogger("crisptree")

LAUNCHES_AT_MOST = 50_000
"""An epoch of more launches is not recorded: the graph would be larger than the data."""

SHARE_FOR_COPIES = 0.5
"""Windows of an epoch may take so much of the device's free memory; more of them train with torch's steps."""

SECONDS_OF_BUILDING = 0.1
"""The smallest kernel takes longer only where it is not in Triton's cache, and then the others are not there either."""

MOST_STATISTICS = 4096
"""A kernel holds the counts of several tasks at once: as many as there are classes, or two for every output."""


def _copies_fit(trainee: Trainee, samples: Samples, plan: Plan) -> bool:
    """Whether the windows of an epoch may be written down on the device."""
    # Of the whole device and of what torch holds of it, not of what is free: a fit must not depend on those before it.
    _, total = torch.cuda.mem_get_info(samples.device)
    free = total - torch.cuda.memory_allocated(samples.device)
    values = int(trainee.groups.taken(plan).sum()) * samples.n_features
    return values * samples.rows.dtype.itemsize < SHARE_FOR_COPIES * free


@cache
def _triton_works(device: torch.device) -> bool:
    """Triton may be installed where it cannot build anything: without a C compiler, or for an old device."""
    if kernels is None:
        return False
    memory, started = torch.zeros(1, device=device), time.perf_counter()
    try:
        with torch.cuda.device(device):
            kernels.nothing[(1,)](memory)
    except Exception as error:
        warnings.warn(
            f"Triton must be able to build kernels for quick training on CUDA, and cannot here ({error}). The slower "
            "steps of torch do the same; a C compiler and Python's headers are what is missing most often.",
            CrispTreeWarning,
            stacklevel=2,
        )
        return False
    if time.perf_counter() - started > SECONDS_OF_BUILDING:
        logger.warning(
            "Kernels are built for this device, so the first fit takes some seconds more. Triton keeps them "
            "(in ~/.triton/cache, or where TRITON_CACHE_DIR says): later fits and processes find them there."
        )
    return True


class CudaSteps:
    """The same steps as ``TorchSteps``, on the same parameters in place."""

    @staticmethod
    def supports(trainee: Trainee, samples: Samples, plan: Plan) -> bool:
        """Hyperplanes, and classes or numbers, on CUDA, where Triton works and an epoch's windows fit into memory.

        Their weights must be free to have any sign, and l1 must shrink them one by one.
        """
        rows = samples.rows
        return (
            isinstance(trainee.splits, ObliqueSplits)
            and trainee.signs is None
            and not plan.shrinks_groups
            and type(samples.target) in LEAVES
            and samples.device.type == "cuda"
            and rows.dtype in (torch.float32, torch.float64)
            and rows.arrays[0].is_contiguous()
            and samples.target.n_statistics <= MOST_STATISTICS
            and (isinstance(rows, ArrayRows) or _copies_fit(trainee, samples, plan))
            and _triton_works(samples.device)
        )

    def __init__(self, trainee: Trainee, samples: Samples, plan: Plan, *, fresh: bool) -> None:
        self.trainee, self.samples, self.plan = trainee, samples, plan
        work = TreeWork if trainee.is_whole_tree else StumpWork
        self.work: Work = work(trainee, samples, plan, fresh)
        self.total_weight = float(samples.weight[trainee.groups.rows].double().sum())
        self.graph: torch.cuda.CUDAGraph | None = None
        self.n_epochs = 0

    def epoch(self, pace: Pace, order: Tensor) -> EpochResult:
        with torch.no_grad(), on_device(self.samples.device):
            self.work.begin(pace, order, self.trainee.leaves)
            if self.graph is not None:
                self.graph.replay()
            else:
                with launching:
                    self._launch()
            self.n_epochs += 1
            log_likelihood, checksum = self.work.found.tolist()
            if self.n_epochs == 1 and self.plan.epochs > 1:
                self._record()  # the first epoch has compiled what it needed
            return EpochResult(self.work.counts, -log_likelihood / self.total_weight, math.isfinite(checksum))

    def memory(self) -> dict[str, Tensor]:
        work = self.work
        names = ("mean.weight", "square.weight", "mean.bias", "square.bias", "steps", "moving")
        return dict(zip(names, (*work.adam, work.steps, work.moving), strict=True))

    def _record(self) -> None:
        if self.samples.device.type == "cuda" and self.work.n_launches <= LAUNCHES_AT_MOST:
            self.graph = recorded(self._launch)

    def _launch(self) -> None:
        work = self.work
        work.launch()
        torch.sum(work.log_likelihood, dim=0, dtype=torch.float64, out=work.found[0])
        # A weight that is infinite or not a number spoils the sum of all: one number to read instead of two.
        torch.sum(work.weight.sum(dim=1) + work.bias, dim=0, dtype=torch.float64, out=work.found[1])
