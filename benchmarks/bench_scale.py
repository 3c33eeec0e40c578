"""One tree by 1 and 2 processes: strong and weak scaling, and bytes between them.

python benchmarks/bench_scale.py

Starts torchrun with this file and writes docs/results/scale.md, in a few minutes. Epochs of one tree are timed, the
same in all runs, so that all do the same work; a number is the fastest of some, because others may use the machine.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import train_test_split
from timing import table

from crisptree import CrispTreeClassifier
from crisptree.data.rows import ArrayRows
from crisptree.distributed import single_process
from crisptree.learning.engines.base import Orders
from crisptree.learning.engines.native_engine import NativeEngine
from crisptree.learning.growth import Stumps, SummedLevel
from crisptree.learning.loop import WholeTree
from crisptree.learning.options import EpochSettings, Plan
from crisptree.learning.process_group import ProcessGroup, ShardedRows
from crisptree.learning.samples import LeafGroups, Samples, group_leaves
from crisptree.splits import resolve_kind
from crisptree.targets import Classes
from crisptree.threads import one_thread
from crisptree.tree import Tree

PAGE = Path(__file__).parent.parent / "docs" / "results" / "scale.md"
CLASSES, DEPTH, SHARDS, EPOCHS = 4, 6, 8, 5
NARROW, WIDE = 32, 784
PACE = EpochSettings(steepness=3.0, learning_rate=1e-6)  # so slow that all epochs find the same tree
PLAIN: dict[str, Any] = {"split": "oblique", "l1": 0.0, "input_noise": 0.3, "shrinkage": 0.0}

PROCESSES, ALL_ROWS = 1000, 10**10
LATENCY, BANDWIDTH = 20e-6, 1e10
"""Assumed of a network: seconds for a message between two processes, and bytes a second."""


@dataclass(frozen=True)
class Run:
    """So many rows of so many features, in batches."""

    n: int
    p: int
    batch: int

    @property
    def name(self) -> list[str]:
        return [f"{self.n:,} × {self.p}", f"{self.batch:,}"]


RUNS = [Run(120_000, NARROW, 256), Run(120_000, NARROW, 4096), Run(12_000, WIDE, 256), Run(12_000, WIDE, 4096)]
WEAK = Run(60_000, NARROW, 4096)


def data(n: int, p: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Rows whose class is the largest of four sums of features, without their signs."""
    random = np.random.default_rng(0)
    planes = random.standard_normal((p, CLASSES), dtype=np.float32) / math.sqrt(p)
    X = random.standard_normal((n, p), dtype=np.float32)
    return X, np.argmax(np.abs(X @ planes), axis=1)


def samples_of(X: npt.NDArray[np.float32], y: npt.NDArray[np.int64]) -> Samples:
    return Samples(ArrayRows(torch.from_numpy(X)), torch.from_numpy(y), torch.ones(len(y)), Classes(CLASSES))


def some_tree(p: int) -> Tree:
    """Make a complete tree, the same in every process."""
    X, y = data(4000, p)
    with single_process():
        model = CrispTreeClassifier.from_flat(
            **PLAIN, grow="balanced", max_depth=DEPTH, finetune_epochs=8, random_state=0, n_jobs=-1
        )
        return Tree.soft(model.fit(X, y).tree_)


def fastest(epoch: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the fastest of some epochs, of the processor and by the clock; of the slowest process."""
    clocks = (time.process_time, time.perf_counter)
    seconds = []
    for _ in range(EPOCHS):
        started = [clock() for clock in clocks]
        epoch()
        seconds.append([clock() - before for clock, before in zip(clocks, started, strict=True)])
    everywhere: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everywhere, np.min(seconds, axis=0).tolist())
    processor, clock = np.max(everywhere, axis=0).tolist()
    return processor, clock


class CountingGroup(ProcessGroup):
    """A process group that counts what it adds up."""

    sums = bytes = 0

    def reduce(self, values: torch.Tensor, *how: Any) -> None:
        self.sums, self.bytes = self.sums + 1, self.bytes + values.nbytes
        super().reduce(values, *how)


def stumps_at(tree: Tree, p: int) -> tuple[Any, torch.Tensor]:
    """New splits at all leaves of a tree, and random tables."""
    random = torch.Generator().manual_seed(0)
    splits = resolve_kind("oblique", (p,)).candidates(torch.zeros(tree.structure.n_leaves, p), random)
    return splits, Classes(CLASSES).random_tables(2 * tree.structure.n_leaves, random).reshape(2, -1)


def by_processes(run: Run, tree: Tree) -> dict[str, Any]:
    """Epochs of the whole tree and of stumps at its leaves, by the processes of the group."""
    group = CountingGroup()
    X, y = data(run.n, run.p)
    cuts = [run.n * shard // SHARDS for shard in range(SHARDS + 1)]
    first, last = SHARDS * group.rank // group.size, SHARDS * (group.rank + 1) // group.size
    own = slice(cuts[first], cuts[last])
    rows = ShardedRows(group, samples_of(X[own], y[own]), np.array(cuts[first : last + 1]) - cuts[first], first, SHARDS)
    plan, found = Plan(epochs=100, batch_size=run.batch, mass_threshold=1e-3, input_noise=0.3), dict[str, Any]()
    leaves = list(range(tree.structure.n_leaves))
    everything, _ = rows.sides(tree, leaves, None)
    states = [everything.leaf(leaf, rows.target, rows.weight) for leaf in leaves]
    stumps = SummedLevel(rows, LeafGroups(tree, leaves, states), *stumps_at(tree, run.p))
    for name, trainee in {"tree": WholeTree(tree, rows), "stumps": stumps}.items():
        steps = rows.make_engine(trainee, plan, torch.Generator().manual_seed(0), fresh=True)  # type: ignore[arg-type]
        group.sums = group.bytes = 0
        found[name] = fastest(lambda steps=steps: steps.epoch(PACE, torch.zeros(0)))  # type: ignore[misc]
        found |= {f"{name} sums": group.sums / EPOCHS, f"{name} bytes": group.bytes / EPOCHS}
    return found


def ordinarily(run: Run, tree: Tree) -> dict[str, Any]:
    """Time the same epochs in a single process."""
    samples = samples_of(*data(run.n, run.p))
    plan = Plan(epochs=100, batch_size=run.batch, mass_threshold=1e-3, input_noise=0.3)
    leaves = list(range(tree.structure.n_leaves))
    trainees = {"tree": WholeTree(tree, samples)}
    trainees |= {"stumps": Stumps(*stumps_at(tree, run.p), group_leaves(tree, samples, leaves))}  # type: ignore[dict-item]
    found = {}
    for name, trainee in trainees.items():
        steps = NativeEngine(trainee, samples, plan, fresh=True)
        orders = Orders(trainee.groups, plan, torch.Generator().manual_seed(0))
        found[name] = fastest(lambda steps=steps, orders=orders: steps.epoch(PACE, orders.next()))  # type: ignore[misc]
    return found


SETS = {"digits": (load_digits, 6), "breast cancer": (load_breast_cancer, 4), "wine": (load_wine, 3)}


def quality() -> dict[str, list[tuple[float, float]]]:
    """Accuracies of an ordinary fit and of one on shards, for some seeds."""
    found = {}
    for name, (load, depth) in SETS.items():
        X, y = load(return_X_y=True)
        pairs = []
        for seed in range(5):
            train, test, own, other = train_test_split(X, y, test_size=0.3, random_state=seed, stratify=y)
            model = CrispTreeClassifier.from_flat(**PLAIN, max_depth=depth, random_state=seed, n_jobs=1)
            on_shards = model.fit(train, own, shards=SHARDS).score(test, other)
            with single_process():
                pairs.append((float(model.fit(train, own).score(test, other)), float(on_shards)))
        found[name] = pairs
    return found


@one_thread()
def work_of(folder: Path) -> None:
    """Run what torchrun starts."""
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    found: dict[str, Any] = {}
    trees = {p: some_tree(p) for p in (NARROW, WIDE)}
    for place, run in enumerate(RUNS):
        found[f"{place} sharded"] = by_processes(run, trees[run.p])
        if size == 1:
            found[f"{place} ordinary"] = ordinarily(run, trees[run.p])
    if size == 1:
        found["weak"], found["quality"] = by_processes(WEAK, trees[WEAK.p]), quality()
    if not rank:
        (folder / f"{size}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


def ran(size: int, folder: Path) -> dict[str, Any]:
    """Run all cases with so many processes."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)]
    subprocess.run([*command, __file__, str(folder)], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    found: dict[str, Any] = json.loads((folder / f"{size}.json").read_text())
    return found


def epoch_table(one: dict[str, Any], two: dict[str, Any], clock: int) -> str:
    """Seconds of an epoch by the processor (0) or by the clock (1)."""
    rows = []
    for place, run in enumerate(RUNS):
        for what in ("tree", "stumps"):
            alone_, first, second = one[f"{place} ordinary"], one[f"{place} sharded"], two[f"{place} sharded"]
            seconds = [found[what][clock] for found in (alone_, first, second)]
            rows.append([*run.name, what, *(f"{x:.3f}" for x in seconds), f"{seconds[1] / seconds[2]:.2f}"])
    return table(["rows", "batch", "epoch of", "without a group, s", "1 process, s", "2 processes, s", "1/2"], rows)


def traffic(two: dict[str, Any]) -> str:
    rows = []
    for place, run in enumerate(RUNS):
        for what in ("tree", "stumps"):
            sums, sent = (two[f"{place} sharded"][f"{what} {how}"] for how in ("sums", "bytes"))
            read = 4 * run.n * run.p
            numbers = f"{sums:,.0f}", f"{sent / 1e6:.2f}", f"{read / 1e6:.2f}", f"{sent / read:.3f}"
            rows.append([*run.name, what, *numbers])
    return table(["rows", "batch", "epoch of", "sums", "MB added up", "MB read", "ratio"], rows)


def costs(one: dict[str, Any]) -> tuple[float, float]:
    """Seconds for a row in an epoch of the tree, and for a shard in a step, from batches of two sizes."""
    small, large = (one[f"{place} sharded"]["tree"][0] for place in (0, 1))
    steps = [SHARDS * math.ceil(run.n / run.batch) for run in RUNS[:2]]
    per_shard = max((small - large) / (steps[0] - steps[1]), 0.0)
    return (large - steps[1] * per_shard) / RUNS[1].n, per_shard


def modelled(one: dict[str, Any]) -> str:
    """1,000 processes and 10^10 rows, one shard each."""
    per_row, per_shard = costs(one)
    rows = []
    for p, batch in ((NARROW, 2**16), (NARROW, 2**20), (NARROW, 2**24), (WIDE, 2**20), (WIDE, 2**24)):
        steps, of_row = math.ceil(ALL_ROWS / batch), per_row * p / NARROW
        work = batch / PROCESSES * of_row + per_shard
        talk = 2 * math.log2(PROCESSES) * LATENCY + 2 * (2**DEPTH - 1) * (p + 2) * 8 / BANDWIDTH
        whole = steps * (work + talk)
        numbers = [f"{steps:,}", f"{1e3 * work:.2f}", f"{1e3 * talk:.2f}", f"{whole:,.0f}"]
        rows.append([str(p), f"{batch:,}", *numbers, f"{(DEPTH * 20 + 40) * whole / 3600:,.1f}"])
        rows[-1].append(f"{ALL_ROWS * of_row / whole:,.0f}")
    names = ["features", "batch", "steps", "work, ms", "talk, ms", "epoch, s", "160 epochs, h", "speed-up"]
    return table(names, rows)


def qualities(found: dict[str, list[tuple[float, float]]]) -> str:
    rows = []
    for name, pairs in found.items():
        ordinary, sharded = np.array(pairs).T
        numbers = (f"{100 * x.mean():.2f} ± {100 * x.std(ddof=1):.2f}" for x in (ordinary, sharded))
        rows.append([name, *numbers, f"{100 * (sharded - ordinary).mean():+.2f}"])
    return table(["set", "ordinary fit, %", f"{SHARDS} shards, %", "difference"], rows)


def page(one: dict[str, Any], two: dict[str, Any]) -> str:
    """Write the page of results."""
    per_row, per_shard = costs(one)
    weak = one["weak"]["tree"], two["1 sharded"]["tree"]
    load = max(os.getloadavg())
    return f"""# Distributed training

**Two processes nearly halve the work of a tree with batches of 4,096 rows (1.6 to 1.8 times as
fast); with batches of 256 they gain nothing, because waiting and sums take as long. Accuracy is
that of an ordinary fit.**

{os.cpu_count()} cores, one thread per process, gloo between processes of one machine. Seconds
are the fastest of {EPOCHS} epochs of a complete tree of depth {DEPTH} at γ = {PACE.steepness:g}
and of stumps at its leaves; {CLASSES} classes and {SHARDS} shards. Made by `python
benchmarks/bench_scale.py`.

## Strong scaling: the same rows, 1 and 2 processes

Processor seconds of the busier process, without waiting.

{epoch_table(one, two, 0)}
"Without a group" is an ordinary fit. A step in a process group computes its batch in {SHARDS}
parts and converts their gradients to integers, whose sum does not depend on the number of
processes.

Wall-clock seconds. The load was {load:.1f} on {os.cpu_count()} cores; on a busy machine each
step waits for the slowest process, so these figures are unreliable.

{epoch_table(one, two, 1)}
## Weak scaling

An epoch of the tree, batches of {WEAK.batch:,}, {WEAK.n:,} × {WEAK.p} for each process:
{weak[0][0]:.3f} s of the processor by 1 process, {weak[1][0]:.3f} s for each of 2
({weak[0][0] / weak[1][0]:.0%} of what a second process would ideally give); {weak[0][1]:.3f} s
and {weak[1][1]:.3f} s of wall-clock time.

## Bytes

Bytes reduced per epoch (each process sends and receives up to twice as much), and bytes read:

{traffic(two)}
A step reduces 8 bytes per weight, whatever the batch and the numbers of processes and shards:
doubling the batch halves the bytes.

## Accuracy

Accuracy on 30 % of the rows, mean ± standard deviation over 5 seeds, `input_noise=0.3`, no other
penalty:

{qualities(one["quality"])}
## A model of {PROCESSES:,} processes and 10¹⁰ rows

Not measured, but computed (`modelled` in the same file) from the processor seconds of an epoch
by one process with batches of two sizes: {1e9 * per_row:,.0f} ns for a row of {NARROW} features
and {1e6 * per_shard:,.0f} µs per shard and step. Assumptions:

* `shards={PROCESSES}`, one for each process, one core for each; 10⁷ rows each, in memory
  ({10**7 * NARROW * 4 / 1e9:.1f} GB for {NARROW} features, and as much again for the scaled copy
  below 256 MB a shard).
* Rows need not move; a row costs in proportion to its features; every epoch costs as much as one
  of the tree: 20 for each of {DEPTH} levels, and 40 of finetuning.
* A sum over all processes takes 2 log₂ {PROCESSES} messages of {1e6 * LATENCY:.0f} µs, and every
  number is sent twice at {BANDWIDTH / 1e9:.0f} GB/s. No process is slower than the others, and
  none dies.

{modelled(one)}
The speed-up is relative to one core without shards. Such batches need another learning rate and
number of epochs, which were not tried, and the model ignores slow processes.
"""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        work_of(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            PAGE.write_text(page(*(ran(size, Path(name)) for size in (1, 2))), encoding="utf-8")
        print(PAGE.read_text(encoding="utf-8"))
