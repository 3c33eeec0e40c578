"""Several processes that torchrun has started: one command in each of them, and one that speaks."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import typer

from crisptree.cli.interrupts import STARTED

SECONDS_TO_SPEAK = 5.0
"""torchrun ends all processes when one has failed: others wait until the first one has said what is wrong."""


@dataclass(frozen=True)
class Processes:
    """Which of how many processes this one is."""

    rank: int = 0
    size: int = 1

    @property
    def is_first(self) -> bool:
        """Whether it is the one that prints and writes."""
        return self.rank == 0

    def part(self, rows: Any) -> Any:
        """Those of some rows that this process trains on; None stays None."""
        if rows is None:
            return None
        n = len(rows)
        return rows[n * self.rank // self.size : n * (self.rank + 1) // self.size]

    def gathered(self, *parts: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
        """Arrays of all processes, each after the other, for the first one; the others keep their own."""
        if self.size == 1:
            return parts
        import torch.distributed as dist

        found: list[Any] | None = [None] * self.size if self.is_first else None
        dist.gather_object(parts, found, dst=0)
        return parts if found is None else tuple(np.concatenate(several) for several in zip(*found, strict=True))


ALONE = Processes()


def started() -> Processes | None:
    """What this process was started as; None where it was started alone."""
    if not all(name in os.environ for name in STARTED):
        return None
    return Processes(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))


@contextmanager
def together(device: str, data: Path) -> Iterator[Processes]:
    """Inside, the processes are a group, which trains on the device: nccl between GPUs, gloo between others."""
    crew = started()
    if crew is None:
        yield ALONE
        return
    if str(data) == "-" and crew.size > 1:
        raise typer.BadParameter("several processes cannot read one stdin; name a file.")
    import torch
    import torch.distributed as dist

    on_gpus = device.startswith("cuda")
    if on_gpus:
        torch.cuda.set_device(_own_gpu(device, torch.cuda.device_count()))
    dist.init_process_group("nccl" if on_gpus else "gloo")
    try:
        yield crew
    except Exception:
        if not crew.is_first:
            time.sleep(SECONDS_TO_SPEAK)
        raise
    finally:
        dist.destroy_process_group()


def _own_gpu(device: str, n_gpus: int) -> int:
    """The number of the GPU that this process trains on: each of a machine's processes has one of its own."""
    here = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    named = device.partition(":")[2]
    if n_gpus < (1 if named else here) or (named and here > 1):
        there = f"{n_gpus} GPU{'' if n_gpus == 1 else 's'}" if n_gpus else "no GPU that torch finds"
        most = 1 if named else n_gpus
        fewer = f"start {most} with --nproc-per-node {most}, or " if most and n_gpus else ""
        raise typer.BadParameter(
            f"every process needs a GPU of its own for --device {device}; this machine has {there}, and {here} "
            f"process{'' if here == 1 else 'es'} started. To go on, {fewer}train with --device cpu."
        )
    return int(named) if named else int(os.environ.get("LOCAL_RANK", "0"))
