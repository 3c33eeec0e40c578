"""How fast training is: against a plain transcription of the paper, against the memory, and as the tree grows.

    CRISPTREE_DATA=/folder/with/mnist.npz make bench-fit

On a CUDA device it prints the time of a whole fit there instead.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import naive
import numpy as np
import torch
from timing import table

from crisptree import CrispTreeClassifier
from crisptree.learning.history import EpochRecord


def mnist() -> tuple[np.ndarray, ...]:
    with np.load(Path(os.environ["CRISPTREE_DATA"]) / "mnist.npz") as data:
        X, X_test = (data[name].reshape(-1, 784).astype(np.float32) for name in ("X_train", "X_test"))
        return X, data["y_train"].astype(np.int64), X_test, data["y_test"].astype(np.int64)


class Clock:
    """Seconds of every epoch, by phase and level."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[str, int], list[float]] = defaultdict(list)
        self.last = time.perf_counter()

    def __call__(self, record: EpochRecord) -> None:
        now = time.perf_counter()
        self.seconds[record.phase, record.level].append(now - self.last)
        self.last = now


def seconds_to_read_twice(X: np.ndarray) -> float:
    """At the memory bandwidth of all cores, measured now."""
    x = torch.from_numpy(X)
    times = []
    for _ in range(9):
        started = time.perf_counter()
        x.sum()
        times.append(time.perf_counter() - started)
    return 2 * float(np.median(times))


def against_memory_and_naive(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> None:
    twice = seconds_to_read_twice(X)
    clock = Clock()
    started = time.perf_counter()
    model = CrispTreeClassifier.paper(random_state=0, callbacks=[clock]).fit(X, y)
    whole = time.perf_counter() - started
    growth = [np.median(times) for (phase, _), times in clock.seconds.items() if phase == "grow"]
    tuning = next(times for (phase, _), times in clock.seconds.items() if phase == "finetune")
    print("## MNIST 60,000 × 784, depth 8, the paper's protocol, 50 + 50 epochs\n")
    x, labels = torch.from_numpy((X - X.mean(0)) / np.maximum(X.std(0), 1e-6)), torch.from_numpy(y)
    epochs = 2
    torch.manual_seed(0)
    started = time.perf_counter()
    root = naive.grow(x, labels, 8, 10, epochs)
    naive_growth = (time.perf_counter() - started) / epochs / 8
    assert root is not None
    started = time.perf_counter()
    naive.train(root, x, labels, 1)
    naive_tuning = time.perf_counter() - started
    naive_whole = 50 * 8 * naive_growth + 50 * naive_tuning
    print(
        table(
            ["", "measured"],
            [
                [
                    "growth per epoch and level, over reading X twice from memory, mean of levels",
                    f"{np.mean(growth) / twice:.1f}",
                ],
                ["the same, largest level", f"{np.max(growth) / twice:.1f}"],
                ["growth per epoch and level, naive over ours", f"{naive_growth / np.mean(growth):.1f}"],
                ["finetuning per epoch, naive over ours (mean)", f"{naive_tuning / np.mean(tuning):.1f}"],
                ["finetuning, first epoch over last", f"{tuning[0] / tuning[-1]:.1f}"],
                ["whole fit, naive over ours", f"{naive_whole / whole:.1f}"],
                ["share of growth, finetuning, the rest in %", shares(clock, whole)],
                ["hard test accuracy in %, greedy and finetuned", scores(model, X_test, y_test)],
            ],
        )
    )
    print(f"(naive: {naive_growth:.2f} s per epoch and level of growth, measured over {epochs} epochs of all levels)\n")


def shares(clock: Clock, whole: float) -> str:
    sums = [sum(sum(t) for (phase, _), t in clock.seconds.items() if phase == name) for name in ("grow", "finetune")]
    return " / ".join(f"{100 * part / whole:.0f}" for part in (*sums, whole - sum(sums)))


def scores(model: CrispTreeClassifier, X: np.ndarray, y: np.ndarray) -> str:
    return f"{100 * model.greedy().score(X, y):.1f} / {100 * model.score(X, y):.1f}"


def by_depth(X: np.ndarray, y: np.ndarray) -> None:
    lines, first = [], None
    for depth in (8, 12, 16):
        clock = Clock()
        model = CrispTreeClassifier.paper(
            max_depth=depth,
            epochs=15,
            finetune_epochs=3,
            steepness=4.0,
            steepness_step=0.1,
            random_state=0,
            callbacks=[clock],
        ).fit(X, y)
        late = min(t for (phase, _), times in clock.seconds.items() if phase == "finetune" for t in times)
        first = first or late
        lines.append([str(depth), str(model.tree_.structure.n_splits), f"{late / first:.2f}"])
    print("## A finetuning epoch late in annealing (γ = 4), MNIST\n")
    print(table(["depth", "splits", "time, ratio to depth 8"], lines))


def memory() -> None:
    """Peak memory of one fit on a million rows, in a process of its own."""
    code = (
        "import numpy as np, resource\n"
        "from crisptree import CrispTreeClassifier\n"
        "CrispTreeClassifier.paper(max_depth=1, epochs=1).fit(np.eye(4), [0, 1, 0, 1])\n"
        "before = int(open('/proc/self/statm').read().split()[1]) * resource.getpagesize() // 1024\n"
        "rng = np.random.default_rng(0)\n"
        "X = rng.standard_normal((1_000_000, 100), dtype=np.float32)\n"
        "y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int) + (X[:, 3] > 0.5)\n"
        "CrispTreeClassifier.paper(max_depth=10, epochs=10, finetune_epochs=10, random_state=0).fit(X, y)\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before\n"
        "print(f'{peak / 1024:.0f} MB, of which the data are {X.nbytes / 2**20:.0f} MB')\n"
    )
    started = time.perf_counter()
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - started
    print("## 1,000,000 × 100 rows, depth 10, 10 + 10 epochs\n")
    print(f"Peak memory beyond interpreter and libraries: {result.stdout.strip()}. ({seconds:.0f} s)\n")


def on_cuda(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> None:
    for _ in range(2):
        started = time.perf_counter()
        model = CrispTreeClassifier.paper(random_state=0, device="cuda").fit(X, y)
        print(
            f"whole fit on {torch.cuda.get_device_name()}: {time.perf_counter() - started:.1f} s",
            scores(model, X_test, y_test),
        )


if __name__ == "__main__":
    data = mnist()
    if torch.cuda.is_available():
        on_cuda(*data)
    else:
        against_memory_and_naive(*data)
        by_depth(*data[:2])
        memory()
        print(f"(this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB at most)")
