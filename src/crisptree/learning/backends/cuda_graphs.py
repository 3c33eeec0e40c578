"""Launches on CUDA, recorded as a graph."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import cache
from typing import Any

import torch


def on_device(device: torch.device) -> Any:
    """Launches inside go to this device."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


@cache
def _capture_stream(device: torch.device) -> torch.cuda.Stream:
    """One for all graphs: cuBLAS keeps working memory for every stream it has seen."""
    return torch.cuda.Stream(device)


def recorded(launch: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """The launches as a graph. ``torch.cuda.graph`` would give all spare memory back first, which takes longer."""
    graph, stream = torch.cuda.CUDAGraph(), _capture_stream(torch.device("cuda", torch.cuda.current_device()))
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
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
