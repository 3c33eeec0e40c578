"""Cost of equal bits for any ``n_jobs``: torch's own threads against fixed blocks on ours, in one run.

    python benchmarks/bench_threads.py

Each line is the fastest epoch of a stump at the root in seconds, the ways taken in turns: torch on all cores with whole
batches (bits depend on their number), fixed pieces on one thread, and the same pieces on all cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from crisptree.data.rows import ArrayRows
from crisptree.learning.engines.base import Groups, Orders
from crisptree.learning.engines.torch_engine import VALUES_AT_ONCE, TorchEngine
from crisptree.learning.growth import Stumps
from crisptree.learning.options import Plan
from crisptree.learning.samples import Samples
from crisptree.splits import resolve_kind
from crisptree.targets import Classes, SoftClasses
from crisptree.threads import available_cores, one_thread

ROUNDS = 3
CASES: dict[str, tuple[str, int, tuple[int, ...], bool]] = {
    "axis, 24,000 × 200": ("axis", 24_000, (200,), False),
    "soft labels, 24,000 × 200": ("oblique", 24_000, (200,), True),
    "conv, 6,000 × 28 × 28": ("conv", 6_000, (1, 28, 28), False),
}


def samples_of(n_rows: int, n_features: int, *, soft: bool) -> Samples:
    """Noise with four classes."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(n_rows, n_features, generator=random)
    y = torch.softmax(x[:, :4], dim=1) if soft else x[:, :4].argmax(dim=1)
    target = SoftClasses(4) if soft else Classes(4)
    return Samples(ArrayRows(x), y, torch.ones(n_rows), target, n_jobs=1)


def epoch_of(
    split: str, n_rows: int, shape: tuple[int, ...], *, soft: bool, n_jobs: int, ours: bool
) -> Callable[[], float]:
    """Return a function that runs one epoch and returns its seconds."""
    samples = replace(samples_of(n_rows, int(np.prod(shape)), soft=soft), n_jobs=n_jobs)
    random = torch.Generator().manual_seed(0)
    kind, groups = resolve_kind(split, shape), Groups.single(n_rows, samples.device)
    n_candidates = samples.n_features if kind.compete_by_feature else 1
    splits = kind.candidates(samples.group_means(groups), random)
    tables = samples.target.random_tables(2 * n_candidates, random).reshape(2, -1)
    plan = Plan(epochs=100, batch_size=256)
    steps = TorchEngine(Stumps(splits, tables, groups, n_candidates), samples, plan, fresh=True)
    if not ours:
        steps.threads, steps.piece = 1, max(1, VALUES_AT_ONCE // samples.n_features)
    orders = Orders(groups, plan, random)

    def epoch() -> float:
        start = time.perf_counter()
        steps.epoch(plan.settings_at(0), orders.next())
        return time.perf_counter() - start

    def alone() -> float:
        with one_thread():
            return epoch()

    return alone if ours else epoch


def main() -> None:
    """Print a line for every case."""
    cores = available_cores()
    torch.set_num_threads(cores)
    print(f"{cores} cores, torch {torch.__version__}; fastest of {ROUNDS} epochs in s")
    print(f"{'':28}{'torch':>9}{'one':>9}{'pieces':>9}{'pieces / torch':>16}")
    for name, (split, n_rows, shape, soft) in CASES.items():
        ways = [
            epoch_of(split, n_rows, shape, soft=soft, n_jobs=n_jobs, ours=ours)
            for n_jobs, ours in ((1, False), (1, True), (cores, True))
        ]
        torch_s, one_s, pieces_s = np.min([[way() for way in ways] for _ in range(ROUNDS)], axis=0)
        print(f"{name:28}{torch_s:9.3f}{one_s:9.3f}{pieces_s:9.3f}{pieces_s / torch_s:16.2f}", flush=True)


if __name__ == "__main__":
    main()
