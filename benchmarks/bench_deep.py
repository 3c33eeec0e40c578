"""What deep trees cost while they are soft: whole fits of depth 16 against depth 4, at γ ≤ 3, and how they predict.

    CRISPTREE_DATA=/folder/with/connect4 python benchmarks/bench_deep.py [seeds] [rows]

Processor time of one thread, as a ratio to the tree of depth 4 on the same rows. Accuracies are of the deterministic
tree on rows that were not trained on; no test row of Connect-4 is used.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from typing import Any

import numpy as np
from timing import table

from crisptree import CrispTreeClassifier
from crisptree.datasets import load_connect4

HELD_OUT = 10_000
WAYS: dict[str, dict[str, Any]] = {
    "depth 4": {"max_depth": 4},
    "depth 16": {},
    "`mass_threshold=0.01`": {"mass_threshold": 0.01},
    "`mass_threshold=0.05`": {"mass_threshold": 0.05},
    '`finetune_steepness="continue"`': {"finetune_steepness": "continue"},
    "both, 0.01": {"finetune_steepness": "continue", "mass_threshold": 0.01},
}

COMMON = {"max_depth": 16, "epochs": 10, "finetune_epochs": 10, "batch_size": 200, "n_jobs": 1}
"""Batches of 200 rows of 8,000 are as many updates as batches of 1,000 of the 40,000 rows of ``bench_fit``."""


def noisy(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random features of which 20 matter, noisy classes, as in ``bench_fit.growth_of_time``."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 100), dtype=np.float32)
    return X, np.argmax(X[:, :20] @ rng.standard_normal((20, 5)) + rng.standard_normal((n, 5)), axis=1)


def connect4(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_connect4().all_but_test()
    some = np.random.default_rng(seed).permutation(len(X))[:n]
    return X[some], y[some]


def main(n_seeds: int = 2, n_rows: int = 8_000) -> None:
    CrispTreeClassifier.paper(max_depth=1, epochs=1).fit(np.eye(4), [0, 1, 0, 1])  # loads what a fit needs
    for name, draw in {"noisy": noisy, "Connect-4": connect4}.items():
        ratios, scores = defaultdict(list), defaultdict(list)
        for seed in range(n_seeds):
            X, y = draw(n_rows + HELD_OUT, seed)
            for way, more in WAYS.items():
                model = CrispTreeClassifier.paper(**COMMON | more, random_state=seed)
                started = time.process_time()
                model.fit(X[:n_rows], y[:n_rows])
                ratios[way].append(time.process_time() - started)
                scores[way].append(100 * model.score(X[n_rows:], y[n_rows:]))
                print(name, seed, way, round(ratios[way][-1], 1), round(scores[way][-1], 2), flush=True)
        first = np.median(ratios["depth 4"])
        lines = [
            [way, f"{np.median(ratios[way]) / first:.0f}", " / ".join(f"{one:.1f}" for one in scores[way])]
            for way in WAYS
        ]
        print(f"\n{name}, {n_rows:,} rows, 10 + 10 epochs\n")
        print(
            table(["", "time, to that of depth 4", "hard accuracy on held-out rows in %, by seed"], lines), flush=True
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
