"""Speed of training: against a plain transcription of the paper, against memory bandwidth, and by tree size.

    CRISPTREE_DATA=/folder/with/mnist.npz make bench-fit

On a CUDA device it prints the time of a whole fit there instead.
"""

from __future__ import annotations

import os
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
from crisptree.datasets import load_connect4
from crisptree.learning.engines.native_engine import NativeEngine
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

    def of(self, phase: str) -> list[float]:
        """Seconds of the epochs of a phase, the first of each level left out: it prepares the level."""
        times = [(name, seconds) for (name, _), seconds in self.seconds.items() if name == phase]
        return [second for name, seconds in times for second in (seconds[1:] if name == "grow" else seconds)]


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
    model = CrispTreeClassifier.paper(random_state=0, n_jobs=-1, callbacks=[clock]).fit(X, y)
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
    return f"{100 * model.before_finetuning().score(X, y):.1f} / {100 * model.score(X, y):.1f}"


def by_depth(X: np.ndarray, y: np.ndarray) -> None:
    """Time the last epochs of the paper's protocol, when most rows have one dominant path."""
    lines, first = [], None
    for depth in (8, 12, 16):
        clock = Clock()
        model = CrispTreeClassifier.paper(max_depth=depth, random_state=0, n_jobs=-1, callbacks=[clock]).fit(X, y)
        late = np.median(clock.of("finetune")[-5:])
        first = first or late
        lines.append([str(depth), str(model.tree_.structure.n_splits), f"{late / first:.2f}"])
    print("## A finetuning epoch late in annealing, MNIST, 50 + 50 epochs\n")
    print(table(["depth", "splits", "median of the last 5 epochs, ratio to depth 8"], lines))


def ceilings(device: str) -> tuple[float, float]:
    """Bytes and floating-point operations per second that the device reaches at best, in single precision."""
    size = 4096 if device == "cuda" else 2048
    matrix, long = torch.rand(size, size, device=device), torch.rand(2**26, device=device)
    times: dict[str, list[float]] = {"multiply": [], "read": []}
    for _ in range(9):
        for name, work in (("multiply", lambda: matrix @ matrix), ("read", long.sum)):
            started = time.perf_counter()
            work()
            if device == "cuda":
                torch.cuda.synchronize()
            times[name].append(time.perf_counter() - started)
    return 4 * 2**26 / np.median(times["read"]), 2 * size**3 / np.median(times["multiply"])


def floors(X: np.ndarray, y: np.ndarray, device: str) -> None:
    """Compare an epoch with the lower bounds of its memory traffic and arithmetic."""
    bytes_per_second, flops = ceilings(device)
    clock, pairs = Clock(), Pairs()
    with pairs:
        model = CrispTreeClassifier.paper(random_state=0, n_jobs=-1, device=device, callbacks=[clock]).fit(X, y)
    n, p = X.shape
    n_splits = model.tree_.structure.n_splits
    read = 4 * n * p / bytes_per_second
    # A score before the epoch, a score now and a term of the gradient: three products of p terms for a row at a split.
    growth, dense = 6 * n * p / flops, 6 * n * p * n_splits / flops
    lines = [["growth, an epoch of a level", read, growth, float(np.median(clock.of("grow")))]]
    for name, epoch in (("finetuning, second epoch", 1), ("finetuning, last epoch", -1)):
        work = dense if device == "cuda" else growth * pairs.per_row[epoch]
        if device != "cuda":
            name += f" ({pairs.per_row[epoch]:.0f} of {n_splits} splits a row)"
        lines.append([name, read, work, clock.of("finetune")[epoch]])
    print(f"## How near the floor, MNIST, depth 8, {device}\n")
    head = ["phase", "bytes / ceiling, share of the time", "operations / ceiling, share", "time over floor"]
    print(table(head, [[a, f"{b / t:.0%}", f"{c / t:.0%}", f"{t / max(b, c):.1f}"] for a, b, c, t in lines]))
    if device == "cuda":
        print(f"(measured ceilings: {bytes_per_second / 1e12:.1f} TB/s, {flops / 1e12:.0f} TFLOP/s in float32)\n")


class Pairs:
    """Counts the (row, split) pairs that a finetuning epoch differentiates, while it is open."""

    def __init__(self) -> None:
        self.per_row: list[float] = []

    def __enter__(self) -> None:
        self.epoch = NativeEngine.epoch

        def counting(steps: NativeEngine, *arguments: object) -> object:
            result = self.epoch(steps, *arguments)  # type: ignore[arg-type]
            if steps.state.is_whole_tree:
                self.per_row.append(steps.pairs / len(steps.samples))
            return result

        NativeEngine.epoch = counting  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        NativeEngine.epoch = self.epoch  # type: ignore[method-assign]


def growth_of_time() -> None:
    """Measure how the time of a fit grows with each size of the problem."""
    base = {"rows": 40_000, "features": 100, "depth": 4, "classes": 5}

    def seconds(rows: int, features: int, depth: int, classes: int) -> float:
        rng = np.random.default_rng(0)
        X = rng.standard_normal((rows, features), dtype=np.float32)
        y = np.argmax(X[:, :20] @ rng.standard_normal((20, classes)) + rng.standard_normal((rows, classes)), axis=1)
        started = time.perf_counter()
        CrispTreeClassifier.paper(max_depth=depth, epochs=10, finetune_epochs=10, random_state=0, n_jobs=-1).fit(X, y)
        return time.perf_counter() - started

    seconds(**base)
    first = np.median([seconds(**base) for _ in range(3)])
    lines = []
    for name, value in base.items():
        times = [np.median([seconds(**{**base, name: k * value}) for _ in range(3)]) for k in (2, 4)]
        lines.append([f"{name} ({value})", *(f"{t / first:.1f}" for t in times)])
    print("## Time of a whole fit as the problem grows (10 + 10 epochs, random features, noisy classes)\n")
    print(table(["from", "twice as many", "four times as many"], lines))


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
        "CrispTreeClassifier.paper(max_depth=10, epochs=10, finetune_epochs=10, random_state=0, n_jobs=-1).fit(X, y)\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before\n"
        "print(f'{peak / 1024:.0f} MB, of which the data are {X.nbytes / 2**20:.0f} MB')\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    print("## 1,000,000 × 100 rows, depth 10, 10 + 10 epochs\n")
    print(f"Peak memory beyond interpreter and libraries: {result.stdout.strip()}.\n")


def on_cuda(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> None:
    connect4 = load_connect4()
    problems = {
        "MNIST": (X, y, X_test, y_test),
        "Connect-4": (*connect4.all_but_test(), connect4.X_test, connect4.y_test),
    }
    lines = []
    for name, (X, y, X_test, y_test) in problems.items():
        seconds = []
        for _ in range(6):
            clock, started = Clock(), time.perf_counter()
            model = CrispTreeClassifier.paper(random_state=0, n_jobs=-1, device="cuda", callbacks=[clock]).fit(X, y)
            seconds.append(time.perf_counter() - started)
        lines.append(
            [
                name,
                *(f"{t:.2f}" for t in (seconds[0], seconds[1], np.median(seconds[1:]))),
                shares(clock, seconds[-1]),
                scores(model, X_test, y_test),
            ]
        )
    print(f"## Whole fits on one {torch.cuda.get_device_name()}, depth 8, 50 + 50 epochs, transfer included\n")
    head = [
        "data",
        "first fit, s",
        "second, s",
        "median of 5 more, s",
        "growth / finetuning / rest in %",
        "accuracy in %",
    ]
    print(table(head, lines))
    floors(*problems["MNIST"][:2], "cuda")


if __name__ == "__main__":
    data = mnist()
    if torch.cuda.is_available():
        on_cuda(*data)
    else:
        against_memory_and_naive(*data)
        by_depth(*data[:2])
        floors(*data[:2], "cpu")
        growth_of_time()
        memory()
