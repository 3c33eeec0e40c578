"""Effect of ``mass_threshold`` on accuracy: MNIST's training set only, its last 10,000 rows held out.

CRISPTREE_DATA=/folder/with/mnist.npz python benchmarks/bench_threshold.py
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from timing import table

from crisptree import CrispTreeClassifier

SEEDS = 2


def main() -> None:
    with np.load(Path(os.environ["CRISPTREE_DATA"]) / "mnist.npz") as data:
        X, y = data["X_train"].reshape(-1, 784).astype(np.float32), data["y_train"]
    lines = []
    for threshold in (1e-3, 1e-2, 0.0):
        scores = []
        for seed in range(SEEDS):
            model = CrispTreeClassifier.paper(
                epochs=10, finetune_epochs=12, mass_threshold=threshold, random_state=seed, n_jobs=-1
            ).fit(X[:50_000], y[:50_000])
            scores.append(100 * model.score(X[50_000:], y[50_000:]))
        lines.append([f"{threshold:g}", " / ".join(f"{score:.2f}" for score in scores), f"{np.mean(scores):.2f}"])
        print(lines[-1], flush=True)
    print(table(["mass_threshold", "hard accuracy on held-out rows in %, by seed", "mean"], lines))


if __name__ == "__main__":
    main()
