"""Launches on CUDA: recorded as a graph, and on several streams at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, partial
from queue import SimpleQueue
from threading import Lock
from typing import Any, TypeVar

import torch

from crisptree.one_thread import Mapping, workers

Given = TypeVar("Given")
Result = TypeVar("Result")

STREAMS = 3
"""So many trees are finetuned on a device at once; more were no quicker."""

KNOWS_THREADS = "2.11"
"""The first version of torch by which several threads were seen to train on one device; the memory that earlier ones
keep for cuBLAS is not safe from them."""

launching = Lock()
"""Held by who launches kernels for the first time or records them: building and recording know one thread only."""


def on_device(device: torch.device) -> Any:
    """Launches inside go to this device."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


@cache
def _capture_stream(device: torch.device) -> torch.cuda.Stream:
    """One for all launches on the default stream, which cannot be recorded: cuBLAS keeps memory for every stream."""
    return torch.cuda.Stream(device)


@cache
def _streams(device: torch.device) -> SimpleQueue[torch.cuda.Stream]:
    """Those of a device that nobody works on, few and the same ones always, for the same reason."""
    free = SimpleQueue[torch.cuda.Stream]()
    for _ in range(STREAMS):
        free.put(torch.cuda.Stream(device))
    return free


def n_streams(device: torch.device, n_works: int, bytes_each: int) -> int:
    """How many works of so many bytes may share a device: no more than together take the half of its memory."""
    if device.type != "cuda" or torch.__version__ < KNOWS_THREADS:
        return 1
    _, total = torch.cuda.mem_get_info(device)
    return max(1, min(STREAMS, n_works, total // 2 // max(1, bytes_each)))


@contextmanager
def streams(device: torch.device, number: int) -> Iterator[Mapping]:
    """A ``map`` whose work goes to so many streams of the device, a thread each: small launches do not fill a device.

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


def recorded(launch: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """The launches as a graph. ``torch.cuda.graph`` would give all spare memory back first, which takes longer."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
    if stream == torch.cuda.default_stream():
        stream = _capture_stream(stream.device)
    stream.wait_stream(torch.cuda.current_stream())
    with launching, torch.cuda.stream(stream):
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            launch()
        except BaseException:
            with suppress(RuntimeError):  # what went wrong first is what must be heard
                graph.capture_end()
            raise
        graph.capture_end()
    torch.cuda.current_stream().wait_stream(stream)
    return graph
