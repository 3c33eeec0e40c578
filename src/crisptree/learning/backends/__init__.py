"""Who takes the steps of an epoch: a table, the quickest first. ``torch_steps`` is the definition and supports all.

Each backend says what it ``supports``; ``tests/learning/test_backends.py`` runs all of them against the definition on
one grid of cases.
"""

from crisptree.learning.backends.base import Backend, EpochResult, Steps, Trainee
from crisptree.learning.backends.cuda_steps import CudaSteps
from crisptree.learning.backends.graphed_steps import GraphedSteps
from crisptree.learning.backends.native_steps import NativeSteps
from crisptree.learning.backends.torch_steps import TorchSteps
from crisptree.learning.plan import Plan
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
