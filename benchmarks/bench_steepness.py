"""Initial steepness of finetuning: 1, that of the end of growth, or between. Connect-4, depth 8.

``CRISPTREE_DATA=... python benchmarks/bench_steepness.py``: the paper's protocol, and the likelihood under noise, hard
accuracy on the validation rows. ``--rows 0`` takes all training rows.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from crisptree import CrispTreeClassifier
from crisptree.datasets import load_connect4

STARTS = ("restart", 3.0, "continue")
SEEDS = range(3)
N_ROWS = 20_000
NOISY: dict[str, Any] = {
    "split": "oblique",
    "algorithm": "likelihood",
    "scale": "global",
    "input_noise": 0.7,
    "l1": 0.0,
    "shrinkage": 0.0,
}


def cell(scores: list[float]) -> str:
    """Mean ± spread over the seeds."""
    return f"{np.mean(scores):.2f} ± {np.std(scores, ddof=1):.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=N_ROWS)
    n_rows = parser.parse_args().rows
    data = load_connect4()
    some = np.random.default_rng(0).permutation(len(data.X_train))[: n_rows or None]
    print(f"| Connect-4, {len(some):,} rows, hard % | {' | '.join(map(str, STARTS))} |")
    print("|---" * (len(STARTS) + 1) + "|")
    makers = {
        "`.paper()`": CrispTreeClassifier.paper,
        "likelihood, noise 0.7": lambda **rest: CrispTreeClassifier.from_flat(**NOISY, **rest),
    }
    for name, make in makers.items():
        cells = []
        for start in STARTS:
            models = (make(max_depth=8, finetune_steepness=start, random_state=seed, n_jobs=-1) for seed in SEEDS)
            fits = (model.fit(data.X_train[some], data.y_train[some]) for model in models)
            cells.append(cell([100 * fit.score(data.X_valid, data.y_valid) for fit in fits]))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
