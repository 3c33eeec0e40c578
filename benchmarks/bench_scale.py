"""One tree by 1 and 2 processes: strong and weak scaling, bytes between them, and what equal bits cost.

    python benchmarks/bench_scale.py            # writes docs/results/scale.md, a few minutes

Starts torchrun with this file. Every number is the fastest of some epochs, because others may use the machine.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from benchmarks.timing import table

PAGE = Path(__file__).parents[1] / "docs" / "results" / "scale.md"
CLASSES, DEPTH, SHARDS = 4, 6, 8
PLAIN = {"split": "oblique", "l1": 0.0, "input_noise": 0.3, "shrinkage": 0.0, "random_state": 0, "n_jobs": 1}
SHORT = {"max_depth": DEPTH, "epochs": 3, "finetune_epochs": 6, "min_updates": 0}

NARROW, WIDE, BATCH = 32, 784, 4096
ROWS = {NARROW: 120_000, WIDE: 12_000}
RUNS: list[dict[str, Any]] = [
    {"n": ROWS[NARROW], "p": NARROW, "batch": BATCH, "sums": "exact"},
    {"n": ROWS[NARROW], "p": NARROW, "batch": BATCH, "sums": "plain"},
    {"n": ROWS[NARROW], "p": NARROW, "batch": 256, "sums": "exact"},
    {"n": ROWS[NARROW], "p": NARROW, "batch": 256, "sums": "plain"},
    {"n": ROWS[WIDE], "p": WIDE, "batch": 1024, "sums": "exact"},
    {"n": ROWS[WIDE], "p": WIDE, "batch": 1024, "sums": "plain"},
]
WEAK = {"n": ROWS[NARROW] // 2, "p": NARROW, "batch": BATCH, "sums": "exact"}

PROCESSES, ALL_ROWS = 1000, 10**10
LATENCY, BANDWIDTH = 20e-6, 1e10
"""Assumed of a network: seconds for a message between two processes, and bytes a second."""


def data(n: int, p: int, seed: int = 0) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Rows whose class is the largest of four noisy sums of features."""
    X = np.random.default_rng(seed).standard_normal((n, p), dtype=np.float32)
    planes = np.random.default_rng(1).standard_normal((p, CLASSES)) / math.sqrt(p)
    noise = np.random.default_rng(seed + 2).standard_normal((n, CLASSES))
    return X, np.argmax(np.abs(X @ planes) + 0.1 * noise, axis=1)


def measured(run: dict[str, Any], rank: int, size: int, *, ordinary: bool = False) -> dict[str, Any]:
    """One fit: its fastest epochs, what is added up in an epoch, and how accurate the tree is."""
    from crisptree import CrispTreeClassifier
    from crisptree.learning.sharded.team import Team

    X, y = data(run["n"], run["p"])
    part = slice(run["n"] * rank // size, run["n"] * (rank + 1) // size)
    ends: list[tuple[str, float, int, int]] = []
    sent = [0, 0]
    reduce = Team.reduce

    def counted(self: Team, values: Any, *how: Any) -> None:
        sent[0], sent[1] = sent[0] + 1, sent[1] + values.nbytes
        reduce(self, values, *how)

    def hear(record: Any) -> None:
        ends.append((record.phase, time.perf_counter(), *sent))

    Team.reduce = counted  # type: ignore[method-assign]
    model = CrispTreeClassifier(**PLAIN, **SHORT, batch_size=run["batch"], callbacks=[hear])
    how = {} if ordinary else {"shards": SHARDS, "sums": run["sums"]}
    try:
        model.fit(X[part], y[part], **how)
    finally:
        Team.reduce = reduce  # type: ignore[method-assign]
    if rank:
        return {}
    found: dict[str, Any] = {}
    for phase in ("grow", "finetune"):
        own = [end for end in ends if end[0] == phase][-SHORT["epochs"] :]
        pairs = list(zip(own, own[1:], strict=False))
        found[phase] = min(after[1] - before[1] for before, after in pairs)
        found[f"{phase} sums"], found[f"{phase} bytes"] = (max(b[k] - a[k] for a, b in pairs) for k in (2, 3))
    return found | {"splits": len(model.tree_.bias), "accuracy": float(model.score(*data(20_000, run["p"], 7)))}


def work(folder: Path) -> None:
    """What torchrun starts."""
    import torch.distributed as dist

    from crisptree.distributed import alone

    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    found = [measured(run, rank, size) for run in RUNS]
    if size == 1:
        found.append(measured(WEAK, 0, 1))
        with alone():
            found += [measured(RUNS[place], 0, 1, ordinary=True) for place in (0, 2, 4)]
    if not rank:
        (folder / f"{size}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


def ran(size: int, folder: Path) -> list[dict[str, Any]]:
    """All runs with so many processes."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)]
    root = Path(__file__).parents[1]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)}
    subprocess.run([*command, __file__, str(folder)], check=True, env=environment)
    found: list[dict[str, Any]] = json.loads((folder / f"{size}.json").read_text())
    return found


def scaling(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> str:
    """Epochs of finetuning and of the last level of growth."""
    ordinary = {0: one[7], 2: one[8], 4: one[9]}
    rows = []
    for place, run in enumerate(RUNS):
        alone = ordinary.get(place)
        for phase in ("finetune", "grow"):
            times = [f"{found[place][phase]:.3f}" for found in (one, two)]
            first = f"{alone[phase]:.3f}" if alone else ""
            speed = f"{one[place][phase] / two[place][phase]:.2f}"
            rows.append([f"{run['n']:,} × {run['p']}", str(run["batch"]), run["sums"], phase, first, *times, speed])
    return table(["rows", "batch", "sums", "phase", "ordinary fit, s", "1 process, s", "2 processes, s", "1 / 2"], rows)


def traffic(two: list[dict[str, Any]]) -> str:
    """What is added up in an epoch of finetuning, beside what is read."""
    rows = []
    for run, found in zip(RUNS, two, strict=True):
        read, sent = 4 * run["n"] * run["p"], found["finetune bytes"]
        numbers = [f"{found['finetune sums']:,}", f"{sent / 1e6:.2f}", f"{read / 1e6:.1f}", f"{sent / read:.2f}"]
        rows.append([f"{run['n']:,} × {run['p']}", str(run["batch"]), run["sums"], str(found["splits"]), *numbers])
    return table(
        ["rows", "batch", "sums", "splits", "sums in an epoch", "MB added up", "MB read", "added up / read"], rows
    )


def model_of(one: list[dict[str, Any]]) -> tuple[float, float]:
    """Seconds for a row in an epoch of finetuning, and for a shard in a step, from batches of two sizes."""
    n = ROWS[NARROW]
    large, small = one[0]["finetune"], one[2]["finetune"]
    steps = [SHARDS * math.ceil(n / batch) for batch in (BATCH, 256)]
    per_shard = max((small - large) / (steps[1] - steps[0]), 0.0)
    return (large - steps[0] * per_shard) / n, per_shard


def modelled(one: list[dict[str, Any]]) -> str:
    """1,000 processes and 10^10 rows, one shard each."""
    per_row, per_shard = model_of(one)
    epochs = DEPTH * 20 + 40
    rows = []
    for p, batch in ((NARROW, 2**16), (NARROW, 2**20), (NARROW, 2**24), (WIDE, 2**20), (WIDE, 2**24)):
        steps = math.ceil(ALL_ROWS / batch)
        size = (2**DEPTH - 1) * (p + 2) * 8
        work = batch / PROCESSES * per_row * p / NARROW + per_shard
        talk = 2 * math.log2(PROCESSES) * LATENCY + 2 * size / BANDWIDTH
        whole = steps * (work + talk)
        share, days = talk / (work + talk), epochs * whole / 3600
        speed = ALL_ROWS * per_row * p / NARROW / whole
        numbers = [f"{steps:,}", f"{1e3 * work:.2f}", f"{1e3 * talk:.2f}", f"{share:.0%}", f"{whole:,.0f}"]
        rows.append([f"{p}", f"{batch:,}", *numbers, f"{days:,.1f}", f"{speed:,.0f}"])
    names = [
        "features",
        "batch",
        "steps",
        "work, ms",
        "talk, ms",
        "talk",
        "epoch, s",
        f"{epochs} epochs, h",
        "speed-up",
    ]
    return table(names, rows)


def page(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> str:
    """The page of the results."""
    per_row, per_shard = model_of(one)
    weak = one[6]["finetune"], two[0]["finetune"]
    exact, plain = (two[place]["accuracy"] for place in (0, 1))
    return f"""# One tree by several processes

Made by `python benchmarks/bench_scale.py`: {os.cpu_count()} cores, each process on one thread, gloo between processes of
one machine, which others used at the same time. Seconds are the fastest of the last epochs; they are to be compared within
a table, and roughly. Rows are normal numbers, four classes, a tree of depth {DEPTH}, {SHARDS} shards for exact sums.

## Strong scaling: the same rows, 1 and 2 processes

{scaling(one, two)}
"grow" is an epoch of the last level, "finetune" one of the whole tree. The ordinary fit knows no shards and no processes, on
one thread. With plain sums a process is one shard, so that the column of 1 process is the ordinary computation but for
its last digits. What a fit by 1 process with exact sums takes longer than with plain ones is the price of equal bits without any network: a batch is computed
in {SHARDS} parts. The difference in the column of 2 processes is the price with one.

Accuracy on 20,000 other rows, first line: {one[0]["accuracy"]:.4f} with exact sums (the same tree for 1 and 2 processes:
{exact:.4f}), {plain:.4f} with plain sums of 2 processes, {one[7]["accuracy"]:.4f} by the ordinary fit.

## Weak scaling: {WEAK["n"]:,} rows for each process

An epoch of finetuning with batches of {BATCH}: {weak[0]:.3f} s for {WEAK["n"]:,} rows by 1 process, {weak[1]:.3f} s for
{ROWS[NARROW]:,} by 2; {weak[0] / weak[1]:.0%} of what no cost at all would give.

## Bytes

What is added up over all processes in an epoch of finetuning (every process sends and receives up to twice as much), and what
all of them read:

{traffic(two)}
A step adds up one number for every weight, of 8 bytes where sums are exact and of 4 where they are plain, whatever the number of rows: twice the batch is half the bytes.
Exact sums of an epoch's counts look for the largest part first, hence the few further sums.

## A model of {PROCESSES:,} processes and 10¹⁰ rows

Not measured: computed by `modelled` in the same file from what 1 process needs in an epoch of finetuning with batches of two sizes, {1e9 * per_row:,.0f} ns for a row of
{NARROW} features and {1e6 * per_shard:,.0f} µs for a shard in a step. Assumptions: `shards={PROCESSES}`, one on each process and one core for each; 10⁷ rows each, in memory ({10**7 * NARROW * 4 / 1e9:.1f} GB of {NARROW} features
and as much again for the scaled copy); rows are where they belong and need not move; a row costs in proportion to its features; a sum over all processes takes 2 log₂({PROCESSES}) messages of {1e6 * LATENCY:.0f} µs and sends each number twice at
{BANDWIDTH / 1e9:.0f} GB/s; no process is slower than the others; all epochs cost what one of finetuning costs, and there are 20 for each of {DEPTH} levels and 40 of finetuning. The speed-up is that over one core with the same batches and no shards.

{modelled(one)}
Small batches are all talk: with a thousand processes a batch of 2¹⁶ rows has 66 for each. Batches so large need a learning rate and a number of epochs of their own, which nobody has tried here.
"""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            results = [ran(size, Path(name)) for size in (1, 2)]
        PAGE.write_text(page(*results))
        print(PAGE.read_text())
