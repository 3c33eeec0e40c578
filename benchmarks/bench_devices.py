"""Time of a fit of hyperplanes on one CPU thread and on CUDA, with the first fit of a process beside it.

    python benchmarks/bench_devices.py

Prints a table for docs/results/training-speed.md. Kernels that Triton has in its cache are not built again: remove
~/.triton/cache to see a first fit on a new machine.
"""

from __future__ import annotations

import time

import numpy as np
from timing import table

from crisptree import CrispTreeClassifier

SHARED = {"max_depth": 8, "epochs": 30, "finetune_epochs": 30, "split": "oblique", "random_state": 0}
SHARED |= {"input_noise": 0.0, "l1": 0.0, "shrinkage": 0.0, "n_jobs": 1}


def rows(n: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(n, n_features)).astype(np.float32)
    return X, (X[:, 0] * X[:, 1] > 0) + 2 * (X[:, 2] + X[:, 3] > 0)


def seconds(device: str, X: np.ndarray, y: np.ndarray) -> float:
    started = time.perf_counter()
    CrispTreeClassifier.from_flat(device=device, **SHARED).fit(X, y)
    return time.perf_counter() - started


def main() -> None:
    print(f"First fit on CUDA, 3,000 rows of 16 features: {seconds('cuda', *rows(3000, 16)):.1f} s")
    lines = []
    for n_features in (10, 100, 784):
        for n in (1000, 4000, 16_000, 64_000):
            given = rows(n, n_features)
            seconds("cuda", *given)  # builds what these sizes need
            cpu, cuda = (seconds(device, *given) for device in ("cpu", "cuda"))
            lines.append([f"{n:,}", str(n_features), f"{cpu:.2f}", f"{cuda:.2f}", f"{cpu / cuda:.1f}"])
    print(table(["rows", "features", "CPU, one thread, s", "CUDA, s", "CPU / CUDA"], lines))


if __name__ == "__main__":
    main()
