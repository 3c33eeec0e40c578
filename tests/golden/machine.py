"""On what the last bits of a training depend."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import torch

from crisptree import native

CPUINFO = Path("/proc/cpuinfo")


def processor() -> str:
    """Vendor, family and model: MKL and OpenBLAS choose their kernels by these, not by the instruction set alone."""
    if not CPUINFO.exists():
        return " ".join((platform.machine(), platform.processor()))
    first = CPUINFO.read_text().split("\n\n")[0]
    values = dict(line.split(":", 1) for line in first.splitlines() if ":" in line)
    names = {name.strip(): value.strip() for name, value in values.items()}
    return " ".join(names.get(name, "?") for name in ("vendor_id", "cpu family", "model"))


def machine() -> str:
    """Two machines of the same description train the same bits."""
    compiler = getattr(native.training, "compiler", None)
    return ", ".join(
        (
            f"torch {torch.__version__.split('+')[0]} {torch.backends.cpu.get_cpu_capability()}",
            f"kernels {native.instruction_set} by {compiler}",
            f"numpy {np.__version__}",
            " ".join(platform.libc_ver()),
            processor(),
        )
    )
