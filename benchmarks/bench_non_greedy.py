"""Non-greedy training along paths against evaluating all splits of the tree, in the same run.

PYTHONPATH=. python benchmarks/bench_non_greedy.py

Both take the same steps on a sample of rows with a complete tree; each epoch is one pass over the rows.
"""

from __future__ import annotations

import numpy as np
import torch
from experiments.searches.co2 import NativeBound, TorchBound, losses
from experiments.searches.non_greedy import TreeRoutes
from timing import medians, table

from crisptree.data.rows import ArrayRows
from crisptree.learning.engines.base import Groups
from crisptree.learning.options import Plan
from crisptree.learning.samples import Samples
from crisptree.splits import ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.targets import Classes

ROWS, FEATURES, N_CLASSES, NU = 1024, 126, 10, 100.0
DEPTHS = (6, 8, 10, 12, 14, 16, 18)
PLAN = Plan(epochs=1, learning_rate=0.02, batch_size=256)


def sample(random: np.random.Generator) -> Samples:
    """Rows whose classes lie in clouds that overlap."""
    y = random.integers(N_CLASSES, size=ROWS)
    X = random.normal(size=(N_CLASSES, FEATURES))[y] / 4 + random.normal(size=(ROWS, FEATURES))
    rows = ArrayRows(torch.from_numpy(X.astype(np.float32)))
    return Samples(rows, torch.from_numpy(y), torch.ones(ROWS), Classes(N_CLASSES))


class Training:
    """Steps on a complete tree with random splits; only they are timed."""

    def __init__(self, kind: type[TorchBound] | type[NativeBound], samples: Samples, structure: TreeStructure) -> None:
        self.generator = torch.Generator().manual_seed(0)
        weight = torch.randn(structure.n_splits, FEATURES, generator=self.generator) / FEATURES**0.5
        splits = ObliqueSplits(weight, torch.zeros(structure.n_splits)).trainable()
        self.steps = kind(splits, samples, TreeRoutes(structure), NU)
        self.steps.begin(losses(9 * torch.rand(structure.n_leaves, N_CLASSES)), PLAN.learning_rate)
        self.groups = Groups.single(ROWS, samples.device)

    def epoch(self) -> None:
        for rows, group in self.groups.epoch(PLAN, self.generator):
            self.steps.take(rows, group)


def main() -> None:
    torch.set_num_threads(1)
    samples, lines = sample(np.random.default_rng(0)), []
    for depth in DEPTHS:
        structure = TreeStructure.balanced(depth)
        kinds = {"all splits": TorchBound, "paths": NativeBound}
        calls = {name: Training(kind, samples, structure).epoch for name, kind in kinds.items()}
        seconds = medians(calls, rounds=2)
        found = (f"{1e3 * seconds[name]:.1f} ms" for name in kinds)
        lines.append([str(depth), *found, f"{seconds['all splits'] / seconds['paths']:.1f}"])
    print(table(["depth, complete tree", "all splits", "along paths", "ratio"], lines))


if __name__ == "__main__":
    main()
