"""Engines that take the steps of an epoch, the quickest first; ``torch_engine`` is the definition and supports all.

Each engine has a method ``supports``; ``tests/learning/test_engines.py`` runs all of them against the definition on
one grid of cases.
"""

from crisptree.learning.engines.base import Engine, EpochResult, PartSums, SampleEngine, TrainState
from crisptree.learning.engines.cuda_engine import CudaEngine
from crisptree.learning.engines.cuda_graphs import GraphedEngine
from crisptree.learning.engines.cuda_part_sums import CudaPartSums
from crisptree.learning.engines.native_engine import LbfgsEngine, NativeEngine, NativePartSums
from crisptree.learning.engines.torch_engine import TorchEngine, TorchPartSums
from crisptree.learning.options import LBFGS, Plan
from crisptree.learning.samples import Samples

ENGINES: dict[str, type[SampleEngine]] = {
    "lbfgs": LbfgsEngine,
    "native": NativeEngine,
    "cuda": CudaEngine,
    "graphed": GraphedEngine,
    "torch": TorchEngine,
}
"""By name, in the order in which they are tried."""

PART_SUMS: tuple[type[PartSums], ...] = (NativePartSums, CudaPartSums, TorchPartSums)
"""Engines of a process group, the fastest first; the last one supports everything."""


def select_engine(state: TrainState, samples: Samples, plan: Plan) -> type[SampleEngine]:
    """The first engine that supports all of it; L-BFGS has a schedule that no other engine could take."""
    if plan.optimizer == LBFGS and not LbfgsEngine.supports(state, samples, plan):
        raise ValueError(
            "`optimizer` must be 'auto' or 'adam' here: 'lbfgs' needs hyperplanes, class labels or numbers as y, dense "
            "rows in memory, and the compiled kernels."
        )
    return next(engine for engine in ENGINES.values() if engine.supports(state, samples, plan))


__all__ = ["ENGINES", "PART_SUMS", "Engine", "EpochResult", "SampleEngine", "TrainState", "select_engine"]
