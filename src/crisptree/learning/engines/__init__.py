"""Who takes the steps of an epoch: a table, the quickest first. ``torch_steps`` is the definition and supports all.

Each backend says what it ``supports``; ``tests/learning/test_engines.py`` runs all of them against the definition on
one grid of cases.
"""

from crisptree.learning.engines.base import Backend, EpochResult, Steps, Trainee
from crisptree.learning.engines.cuda_engine import CudaSteps
from crisptree.learning.engines.cuda_graphs import GraphedSteps
from crisptree.learning.engines.native_engine import NativeSteps
from crisptree.learning.engines.torch_engine import TorchSteps
from crisptree.learning.options import Plan
from crisptree.learning.samples import Samples

BACKENDS: dict[str, type[Backend]] = {
    "native": NativeSteps,
    "cuda": CudaSteps,
    "graphed": GraphedSteps,
    "torch": TorchSteps,
}
"""By name, in the order in which they are asked."""


def quickest(trainee: Trainee, samples: Samples, plan: Plan) -> type[Backend]:
    """The first backend that supports all of it."""
    return next(backend for backend in BACKENDS.values() if backend.supports(trainee, samples, plan))


__all__ = ["BACKENDS", "Backend", "EpochResult", "Steps", "Trainee", "quickest"]
