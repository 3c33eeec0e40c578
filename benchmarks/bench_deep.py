"""Cost and accuracy of deep trees: whole fits of depth 16 against depth 4.

    CRISPTREE_DATA=/folder/with/connect4 python benchmarks/bench_deep.py [seeds] [rows] [ways whose name has this]
    python benchmarks/bench_deep.py late    # an epoch late in annealing, depth 12 over depth 8, noisy labels

Processor time of one thread, as a ratio to the tree of depth 4 on the same rows, which is fitted before each other one
because machines with other work are now quicker and now slower. Accuracies are of the deterministic tree on rows that
were not trained on; no test row of Connect-4 is used.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from functools import partial
from typing import Any

import numpy as np
from timing import table

from crisptree import CrispTreeClassifier
from crisptree.datasets import load_connect4
from crisptree.learning.history import EpochRecord

HELD_OUT = 10_000
WAYS: dict[str, dict[str, Any]] = {
    "depth 4": {"max_depth": 4},
    "depth 16": {},
    "`mass_threshold=0.01`": {"mass_threshold": 0.01},
    '`finetune_steepness="continue"`': {"finetune_steepness": "continue"},
    "`upper_levels=4`": {"upper_levels": 4},
}

COMMON = {"max_depth": 16, "epochs": 10, "finetune_epochs": 10, "n_jobs": 1}

BATCHES = 40
"""An epoch has as many updates as batches of 1,000 of the 40,000 rows of ``bench_fit`` are, whatever the rows."""


def noisy(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Random features of which 20 matter, noisy classes, as in ``bench_fit.growth_of_time``."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 100), dtype=np.float32)
    return X, np.argmax(X[:, :20] @ rng.standard_normal((20, 5)) + rng.standard_normal((n, 5)), axis=1)


def connect4(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_connect4().all_but_test()
    some = np.random.default_rng(seed).permutation(len(X))[:n]
    return X[some], y[some]


def fitted(X: np.ndarray, y: np.ndarray, seed: int, more: dict[str, Any]) -> tuple[float, CrispTreeClassifier]:
    """Processor time of a fit, and what it has come to."""
    given = COMMON | {"batch_size": len(X) // BATCHES} | more
    model = CrispTreeClassifier.paper(**given, random_state=seed)
    started = time.process_time()
    model.fit(X, y)
    return time.process_time() - started, model


def main(n_seeds: int = 2, n_rows: int = 8_000, part: str = "") -> None:
    CrispTreeClassifier.paper(max_depth=1, epochs=1).fit(np.eye(4), [0, 1, 0, 1])  # loads what a fit needs
    for name, draw in {"noisy": noisy, "Connect-4": connect4}.items():
        ratios, scores = defaultdict(list), defaultdict(list)
        for seed in range(n_seeds):
            X, y = draw(n_rows + HELD_OUT, seed)
            for way, more in WAYS.items():
                if part not in way:
                    continue
                first, _ = fitted(X[:n_rows], y[:n_rows], seed, WAYS["depth 4"])
                seconds, model = fitted(X[:n_rows], y[:n_rows], seed, more)
                ratios[way].append(seconds / first)
                scores[way].append(100 * model.score(X[n_rows:], y[n_rows:]))
                print(
                    name, seed, way, round(seconds, 1), round(ratios[way][-1], 1), round(scores[way][-1], 2), flush=True
                )
        lines = [
            [way, f"{np.median(found):.0f}", " / ".join(f"{one:.1f}" for one in scores[way])]
            for way, found in ratios.items()
        ]
        print(f"\n{name}, {n_rows:,} rows, 10 + 10 epochs\n")
        print(
            table(["", "time, to that of depth 4", "hard accuracy on held-out rows in %, by seed"], lines), flush=True
        )


def append_time(times: list[float], record: EpochRecord) -> None:
    times.append(time.process_time())


def late() -> None:
    """Median processor time of the last five of 50 finetuning epochs on 8,000 noisy rows."""
    X, y = noisy(8_000, 0)
    lines, first = [], None
    for depth in (8, 12):
        times = list[float]()
        given = COMMON | {"max_depth": depth, "epochs": 20, "finetune_epochs": 50, "batch_size": len(X) // BATCHES}
        clock = partial(append_time, times)
        model = CrispTreeClassifier.paper(**given, random_state=0, callbacks=[clock]).fit(X, y)
        median = float(np.median(np.diff(times)[-5:]))
        first = first or median
        lines.append([str(depth), str(model.tree_.structure.n_splits), f"{median / first:.2f}"])
    print(table(["depth", "splits", "median of the last 5 epochs, ratio to depth 8"], lines))


if __name__ == "__main__":
    if sys.argv[1:2] == ["late"]:
        late()
    else:
        main(*map(int, sys.argv[1:3]), *sys.argv[3:])
