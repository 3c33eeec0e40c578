"""Provenance of a result: commit, machine, versions. No host names and no paths."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch

from crisptree.datasets import Dataset

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("crisptree", "numpy", "scikit-learn", "torch")
RESULTS = ROOT / "docs" / "results"
UNKNOWN = "unknown"


def commit(results: Path) -> str:
    """Return the commit that is checked out, with "+changes" if files outside the results differ from it."""
    try:
        name = _git("rev-parse", "HEAD")
        places = [f":(exclude,top){place}" for place in _inside(RESULTS, results)]
        changes = _git("status", "--porcelain", "--", ":(top)", *places)
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN
    return f"{name}+changes" if changes else name


def is_known(name: str) -> bool:
    """Return True if the code of a result can be checked out again."""
    return name != UNKNOWN and not name.endswith("+changes")


def fingerprint(data: Dataset) -> str:
    """Return a hash of all rows and labels, which tells published data from others of the same shape."""
    digest = hashlib.sha256()
    for name in ("X_train", "y_train", "X_valid", "y_valid", "X_test", "y_test"):
        array = np.ascontiguousarray(getattr(data, name))
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array)
    return digest.hexdigest()[:16]


def machine(device: str) -> dict[str, Any]:
    """Processor, cores and, where it trains, the accelerator."""
    uses_gpu = device.startswith("cuda") or (device == "auto" and torch.cuda.is_available())
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "gpu": torch.cuda.get_device_name() if uses_gpu else None,
    }


def versions() -> dict[str, str]:
    """Python and the libraries that the numbers depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = UNKNOWN
    return found


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _inside(*places: Path) -> list[str]:
    resolved = (place.resolve() for place in places)
    return [place.relative_to(ROOT).as_posix() for place in resolved if place.is_relative_to(ROOT)]


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
