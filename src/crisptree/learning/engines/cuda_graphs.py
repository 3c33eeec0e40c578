"""CUDA graphs and streams; the torch engine for split modules, captured as a graph.

A small network makes a step of hundreds of tiny launches, each of which takes the host longer than the device.
``TorchEngine`` is the definition of ``GraphedEngine``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, partial
from itertools import pairwise
from queue import SimpleQueue
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from crisptree.exceptions import CrispTreeWarning
from crisptree.learning.engines.base import EpochResult, TrainState, all_finite
from crisptree.learning.engines.torch_engine import TorchEngine
from crisptree.learning.options import EpochSettings, Plan
from crisptree.learning.samples import Samples
from crisptree.splits import AbstractSplits, ModuleSplits
from crisptree.threads import Mapping, workers

Given = TypeVar("Given")
Result = TypeVar("Result")

STREAMS = 3
"""Maximum number of trees finetuned on a device at once; more were not faster."""

MIN_TORCH_FOR_THREADS = "2.11"
"""The first version of torch by which several threads were seen to train on one device; the memory that earlier ones
keep for cuBLAS is not safe from them."""

launching = Lock()
"""Held while kernels are built or graphs are captured, which is not thread-safe."""


def on_device(device: torch.device) -> Any:
    """Make a device the current one inside the context."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


@cache
def _capture_stream(device: torch.device) -> torch.cuda.Stream:
    """Return the stream of graph captures, which the default stream does not support; cuBLAS keeps memory for each."""
    return torch.cuda.Stream(device)


@cache
def _streams(device: torch.device) -> SimpleQueue[torch.cuda.Stream]:
    """Return the idle streams of a device, always the same few, because cuBLAS keeps memory for each."""
    free = SimpleQueue[torch.cuda.Stream]()
    for _ in range(STREAMS):
        free.put(torch.cuda.Stream(device))
    return free


@cache
def _side_stream(stream: torch.cuda.Stream) -> torch.cuda.Stream:
    return torch.cuda.Stream(stream.device)


@contextmanager
def beside(device: torch.device) -> Iterator[None]:
    """Let the launches of the block run beside those after it, until ``rejoin``."""
    if device.type != "cuda":
        yield
        return
    here = torch.cuda.current_stream(device)
    side = _side_stream(here)
    side.wait_stream(here)
    with torch.cuda.stream(side):
        yield


def rejoin(device: torch.device) -> None:
    """Wait for the launches ``beside`` the current ones."""
    if device.type == "cuda":
        here = torch.cuda.current_stream(device)
        here.wait_stream(_side_stream(here))


def n_streams(device: torch.device, n_works: int, bytes_each: int) -> int:
    """Return how many tasks of this size may share a device: together they take at most half of its memory."""
    if device.type != "cuda" or torch.__version__ < MIN_TORCH_FOR_THREADS:
        return 1
    _, total = torch.cuda.mem_get_info(device)
    return max(1, min(STREAMS, n_works, total // 2 // max(1, bytes_each)))


@contextmanager
def streams(device: torch.device, number: int) -> Iterator[Mapping]:
    """Provide a ``map`` over streams of a device, one thread each: small launches do not fill a device.

    What it gives is in the order of what it is given, and may be read on any stream.
    """
    if number == 1:
        yield map
        return
    before, free = torch.cuda.current_stream(device), _streams(device)

    def on_a_stream(function: Callable[[Given], Result], given: Given) -> Result:
        stream = free.get()
        try:
            stream.wait_stream(before)
            with torch.cuda.stream(stream):
                result = function(given)
            stream.synchronize()
            return result
        finally:
            free.put(stream)

    with workers(number) as each_of:
        yield lambda function, given: each_of(partial(on_a_stream, function), given)


def capture_graph(launch: Callable[[], None], pool: Any = None) -> torch.cuda.CUDAGraph:
    """Capture launches as a CUDA graph, in the memory pool of another graph if given.

    ``torch.cuda.graph`` would give all spare memory back first, which takes longer.
    """
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
    if stream == torch.cuda.default_stream():
        stream = _capture_stream(stream.device)
    stream.wait_stream(torch.cuda.current_stream())
    with launching, torch.cuda.stream(stream):
        graph.capture_begin(pool=pool, capture_error_mode="thread_local")
        try:
            launch()
        except BaseException:
            with suppress(RuntimeError):  # what went wrong first is what must be heard
                graph.capture_end()
            raise
        graph.capture_end()
    torch.cuda.current_stream().wait_stream(stream)
    return graph


UPDATES_PER_GRAPH = 64


class GraphedEngine(TorchEngine):
    """The steps of ``TorchEngine`` in memory at fixed addresses, which CUDA graphs need."""

    @staticmethod
    def supports(state: TrainState, samples: Samples, plan: Plan) -> bool:
        """Return True for split modules on CUDA."""
        return samples.device.type == "cuda" and isinstance(state.splits, ModuleSplits)

    def __init__(self, state: TrainState, samples: Samples, plan: Plan, *, fresh: bool) -> None:
        super().__init__(state, samples, plan, fresh=fresh)
        device = samples.device
        self.order = state.groups.rows[: int(state.groups.count_taken(plan).sum())].clone()
        self.steepness = torch.zeros((), dtype=torch.float64, device=device)
        self.adam.learning_rate = torch.zeros_like(self.steepness)
        self.leaves, self.counts = state.leaves.clone(), self._no_counts()
        self.log_likelihood = torch.zeros((), dtype=torch.float64, device=device)
        self.total_weight = torch.zeros_like(self.log_likelihood)
        self.before = None if fresh else state.splits.detach()
        schedule = list(state.groups.schedule(plan))
        self.updates = [self.prepare(update, *self.loss_weights(update)) for update in schedule]
        self.runs = [_runs(update.active, update.lengths) for update in schedule]
        self.graphs: list[torch.cuda.CUDAGraph] | None = None
        self.n_epochs = 0

    def epoch(self, settings: EpochSettings, order: Tensor) -> EpochResult:
        with on_device(self.samples.device):
            self.order.copy_(order)
            self.begin(settings)
            if self.graphs:
                for graph in self.graphs:
                    graph.replay()
            else:
                self._launch(range(len(self.updates)))
            self.n_epochs += 1
            finite = all_finite(self.state.splits)
            if self.n_epochs == 1 and self.plan.epochs > 2 and self.samples.device.type == "cuda":
                self.graphs = self._capture_graphs()  # the first epoch has chosen algorithms and memory
            return EpochResult(*self.end(), finite)

    @torch.no_grad()
    def begin(self, settings: EpochSettings) -> None:
        for place, number in zip((self.steepness, self.adam.learning_rate), settings, strict=True):
            assert isinstance(place, Tensor)
            place.fill_(number)
        self.leaves.copy_(self.state.leaves)
        for value in (self.counts, self.log_likelihood, self.total_weight):
            value.zero_()
        if self.before is not None:
            for name, value in self.before.parameters.items():
                value.copy_(self.state.splits.parameters[name])

    def _launch(self, numbers: range) -> None:
        for number in numbers:
            self.current = self.runs[number]
            self._step(self.order, self.updates[number])

    def _scores(self, splits: AbstractSplits, x: Tensor, group: Tensor) -> Tensor:
        """Compute scores stump by stump: the host knows where the rows of a stump begin."""
        if self.state.is_whole_tree or len(x) != self.current[-1][2]:
            return super()._scores(splits, x, group)
        return torch.cat([splits.score(x[start:stop], split) for split, start, stop in self.current])[:, None]

    def _capture_graphs(self) -> list[torch.cuda.CUDAGraph]:
        """Capture the graphs of an epoch; none where a module cannot be captured, and steps are launched one by one."""
        graphs = []
        try:
            for first in range(0, len(self.updates), UPDATES_PER_GRAPH):
                numbers = range(first, min(first + UPDATES_PER_GRAPH, len(self.updates)))
                graphs.append(capture_graph(partial(self._launch, numbers)))
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
    """List (split, first row, row after its last) of every run of rows."""
    bounds = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    return [(split, start, stop) for split, (start, stop) in zip(active.tolist(), pairwise(bounds), strict=True)]
