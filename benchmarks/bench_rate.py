"""Why ``learning_rate="auto"`` shrinks with the number of features: wide data, scored on validation rows.

``CRISPTREE_DATA=... python benchmarks/bench_rate.py``
"""

from __future__ import annotations

import numpy as np
from bench_defaults import PLAIN

from crisptree import CrispTreeClassifier
from crisptree.datasets import Dataset, load_connect4, load_fashion_mnist, load_mnist

N_ROWS = 15_000
RATES = (0.02, 0.008, 0.004, 0.002, 0.001, "auto")
LOADERS = {"Connect-4 (126)": load_connect4, "MNIST (784)": load_mnist, "Fashion-MNIST (784)": load_fashion_mnist}


def row(name: str, data: Dataset) -> str:
    """Format one line of the table: hard accuracy on the validation rows for every rate."""
    some = np.random.default_rng(0).permutation(len(data.X_train))[:N_ROWS]
    scores = []
    for rate in RATES:
        model = CrispTreeClassifier.from_flat(**PLAIN, learning_rate=rate, random_state=0, n_jobs=-1).fit(
            data.X_train[some], data.y_train[some]
        )
        scores.append(f"{100 * model.score(data.X_valid, data.y_valid):.1f}")
    return f"| {name} | {' | '.join(scores)} |"


def main() -> None:
    """Print the table."""
    print(f"| data (features) | {' | '.join(map(str, RATES))} |")
    print("|---" * (len(RATES) + 1) + "|")
    for name, load in LOADERS.items():
        print(row(name, load()), flush=True)


if __name__ == "__main__":
    main()
