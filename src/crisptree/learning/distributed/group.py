"""A process group: deterministic reduction, gather, broadcast and exchange, and errors that reach all processes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor

from crisptree.exceptions import ProcessGroupError

Doubles = npt.NDArray[np.float64]
Result = TypeVar("Result")

SUM_BITS = 50
"""Bits of the largest part of a sum; the sum of up to 4096 parts fits into 63."""


class ProcessGroup:
    """One process's handle of a process group of torch; None is the default group."""

    def __init__(self, group: Any = None) -> None:
        self.group = group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.communicates = self.size > 1
        has_cpu = "cpu:" in str(dist.get_backend_config(group))
        self.device = torch.device("cpu") if has_cpu else torch.device("cuda", torch.cuda.current_device())

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def reduce(self, values: Tensor, how: Any = dist.ReduceOp.SUM) -> None:
        """All-reduce values in place, by default to their sum."""
        if not self.communicates:
            return
        with _report_failures():
            there = values if values.is_cuda else values.to(self.device)
            dist.all_reduce(there, how, group=self.group)
            if there is not values:
                values.copy_(there)

    def reduce_rows(self, values: Tensor, index: Tensor | None) -> None:
        """All-reduce some rows of a matrix, or all, in place."""
        if not self.communicates:
            return
        if index is None:
            self.reduce(values)
            return
        some = values[index]
        self.reduce(some)
        values[index] = some

    def total(self, parts: Sequence[Any], shape: tuple[int, ...] = ()) -> Doubles:
        """Return the sum of arrays over the shards of all processes; ``parts`` are those of this process.

        Element by element the unit is 2⁻⁵⁰ of the largest absolute value in any shard. In units the parts are
        integers, whose sum is the same in any order. Where a part is not finite the sum is NaN.
        """
        own = np.zeros((len(parts), *shape))
        for place, part in enumerate(parts):
            own[place] = part.detach().cpu().numpy() if isinstance(part, Tensor) else part
        sizes = np.where(np.isfinite(own), np.abs(own), np.inf)
        largest = sizes.max(axis=0, initial=0.0)
        self.reduce(torch.from_numpy(largest.reshape(-1)), dist.ReduceOp.MAX)
        is_good = np.isfinite(largest)
        _, exponent = np.frexp(np.where(is_good, largest, 0.0))
        unit = np.ldexp(1.0, np.maximum(exponent - SUM_BITS, -1000))
        whole = np.asarray(np.rint(np.where(is_good, own, 0.0) / unit).astype(np.int64).sum(axis=0))
        self.reduce(torch.from_numpy(whole.reshape(-1)))
        return np.where(is_good, whole * unit, np.nan)

    def maximum(self, values: Doubles) -> Doubles:
        """Return the element-wise maximum over all processes."""
        found = np.array(values, dtype=np.float64)
        self.reduce(torch.from_numpy(found.reshape(-1)), dist.ReduceOp.MAX)
        return found

    def gather(self, mine: Any) -> list[Any]:
        """Return the objects of all processes, by rank."""
        if not self.communicates:
            return [mine]
        found: list[Any] = [None] * self.size
        with _report_failures(), self._on_device():
            dist.all_gather_object(found, mine, group=self.group)
        return found

    def gather_first(self, mine: Any) -> list[Any] | None:
        """Return the objects of all processes on rank 0, None on others."""
        if not self.communicates:
            return [mine]
        found: list[Any] | None = [None] * self.size if self.is_first else None
        with _report_failures(), self._on_device():
            dist.gather_object(mine, found, dst=0, group=self.group)
        return found

    def run_on_all(self, function: Callable[[], Result]) -> Result:
        """Call a function on every rank; if it fails on any, raise the error of the lowest such rank on all."""
        result, error = _try(function)
        for rank, other in enumerate(self.gather(error)):
            if other is not None:
                _raise(other, rank)
        return result  # type: ignore[return-value]

    def from_first(self, function: Callable[[], Result]) -> Result:
        """Call a function on rank 0; return its result, or raise its error, on all ranks."""
        found: list[Any] = [_try(function) if self.is_first else None]
        if self.communicates:
            with _report_failures(), self._on_device():
                dist.broadcast_object_list(found, src=0, group=self.group)
        result, error = found[0]
        if error is not None:
            _raise(error, 0)
        return result

    def exchange(self, values: npt.NDArray[Any], send: Sequence[int], receive: Sequence[int]) -> npt.NDArray[Any]:
        """Exchange rows: the first ``send[0]`` go to rank 0, and so on; ``receive`` are the numbers that come."""
        width = int(np.prod(values.shape[1:], dtype=np.int64)) * values.itemsize
        flat = torch.from_numpy(np.ascontiguousarray(values).reshape(-1).view(np.uint8))
        got = torch.empty(sum(receive) * width, dtype=torch.uint8, device=self.device)
        sizes = [n * width for n in receive], [n * width for n in send]
        with _report_failures():
            dist.all_to_all_single(got, flat.to(self.device), *sizes, group=self.group)
        return got.cpu().numpy().view(values.dtype).reshape(-1, *values.shape[1:])

    @contextmanager
    def _on_device(self) -> Iterator[None]:
        """Make the group's device the current one, through which torch sends objects."""
        if self.device.type == "cuda":
            with torch.cuda.device(self.device):
                yield
        else:
            yield


@contextmanager
def _report_failures() -> Iterator[None]:
    """Raise a ``ProcessGroupError`` for errors of communication."""
    try:
        yield
    except RuntimeError as error:
        raise ProcessGroupError(
            "all processes of the group must answer; one has died or did not within the group's timeout, and this fit "
            f"ends with it. Start all of them again; with `checkpoint` and `resume=True` they resume. ({error})"
        ) from error


def _try(function: Callable[[], Result]) -> tuple[Result | None, Exception | None]:
    try:
        return function(), None
    except ProcessGroupError:
        raise
    except Exception as error:
        return None, _make_picklable(error)


def _make_picklable(error: Exception) -> Exception:
    """Return the error, or a copy that can be pickled."""
    try:
        again = pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error.with_traceback(None) if isinstance(again, type(error)) else RuntimeError(str(error))


def _raise(error: Exception, rank: int) -> NoReturn:
    error.add_note(f"(process {rank} of the group)")
    raise error
