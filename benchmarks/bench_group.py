"""A fit in a single process and in a process group of one: the cost of reductions over shards.

    python benchmarks/bench_group.py cuda     # seconds of the clock
    python benchmarks/bench_group.py cpu      # processor time of one thread

About a minute each. Prints a table, and whether two processes that share the device come to the bits of one. Every fit
is done twice: on CUDA the first one builds kernels.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from timing import table

from crisptree import CrispTreeClassifier
from crisptree.distributed import single_process

PLAIN: dict[str, Any] = {"split": "oblique", "l1": 0.0, "input_noise": 0.3, "shrinkage": 0.0, "random_state": 0}
PLAIN["optimizer"] = "adam"
"""A group trains by Adam, so that the comparison is with Adam too."""


def data(name: str) -> tuple[Any, Any]:
    if name == "digits":
        return load_digits(return_X_y=True)  # type: ignore[no-any-return]
    random = np.random.default_rng(0)
    X = random.standard_normal((20_000, 100), dtype=np.float32)
    return X, np.argmax(np.abs(X @ random.standard_normal((100, 4), dtype=np.float32)), axis=1)


def digest(model: CrispTreeClassifier) -> str:
    tree: Any = model.tree_
    return hashlib.sha256(b"".join(part.tobytes() for part in (tree.weight, tree.bias, tree.leaves))).hexdigest()[:12]


def seconds(model: CrispTreeClassifier, X: Any, y: Any) -> float:
    on_cuda = model.get_params()["training__device"] == "cuda"
    clock = time.perf_counter if on_cuda else time.process_time
    started = clock()
    model.fit(X, y)
    if on_cuda:
        torch.cuda.synchronize()
    return clock() - started


def one_process(device: str) -> None:
    """Timings of a group of one."""
    backend = "nccl" if device == "cuda" else "gloo"
    dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    lines = []
    for name, depth in (("digits", 6), ("20,000 × 100", 6)):
        X, y = data(name)
        model = CrispTreeClassifier.from_flat(**PLAIN, max_depth=depth, device=device, n_jobs=1)
        with single_process():
            apart = [seconds(model, X, y) for _ in range(2)]
            score = model.score(X, y)
        group = [seconds(model, X, y) for _ in range(2)]
        first = digest(model)
        model.fit(X, y)
        numbers = [*apart, *group, group[-1] / apart[-1]]
        same = "yes" if digest(model) == first else "no"
        lines.append([name, *(f"{n:.2f}" for n in numbers), f"{score:.4f}", f"{model.score(X, y):.4f}", same])
    dist.destroy_process_group()
    columns = ["rows", "alone, first", "alone", "group, first", "group", "group/alone", "accuracy alone", "in a group"]
    print(table([*columns, "same bits again"], lines), flush=True)


def several(device: str) -> None:
    """Compare the bits of processes that share the device; gloo copies through the host."""
    dist.init_process_group("gloo")
    X, y = data("digits")
    rank, size = dist.get_rank(), dist.get_world_size()
    part = slice(len(y) * rank // size, len(y) * (rank + 1) // size)
    short = {"epochs": 6, "finetune_epochs": 8, "max_depth": 4}
    started = time.perf_counter()
    model = CrispTreeClassifier.from_flat(**PLAIN, **short, device=device, n_jobs=-1).fit(X[part], y[part])
    if not rank:
        print(f"{size} process(es): {digest(model)}, {time.perf_counter() - started:.1f} s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    where = sys.argv[1]
    if "RANK" in os.environ:
        several(where)
    else:
        one_process(where)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
        for size in (1, 2):
            one_each = {**os.environ, "OMP_NUM_THREADS": "1"}
            subprocess.run([*command, str(size), __file__, where], check=True, env=one_each)
