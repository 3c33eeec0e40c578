"""What the baselines' settings do on Connect-4: OC1's budget, and the step and the epochs of non-greedy training.

CRISPTREE_DATA=/folder/of/data PYTHONPATH=. python benchmarks/bench_baselines.py [oc1|non_greedy]

OC1 is trained on training and validation rows, mean test accuracy of two seeds. Non-greedy training starts from one CO2
tree of the training rows (ν = 43), first seed.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np
import torch
from experiments.searches.oc1 import oc1_splits
from timing import table

from crisptree import CrispTreeClassifier
from crisptree.datasets import load_connect4
from experiments.searches import growth

PLAIN: dict[str, Any] = {"split": "oblique", "l1": 0.0, "input_noise": 0.0, "scale": "feature", "shrinkage": 0.0}
PLAIN |= {"device": "cpu", "n_jobs": 1}
STEPS: dict[str, Any] = {**PLAIN, "learning_rate": 0.02, "learning_rate_decay": "none", "epochs": 20, "random_state": 0}
BUDGETS = [(50, 2000), (500, 2000), (2000, 2000), (500, 8000), (2000, 8000)]
TRIALS: list[dict[str, Any]] = [
    {"nu": 10.0},
    {"nu": 43.0},
    {"nu": 100.0},
    {"nu": 1000.0},
    {"nu": 100.0, "learning_rate": 0.005},
    {"nu": 100.0, "learning_rate": 0.001},
    {"nu": 10.0, "learning_rate": 0.002},
    {"nu": 100.0, "epochs": 60},
]


def oc1() -> str:
    """Test accuracy over the depth for some numbers of tries and rows."""
    data, depths, lines = load_connect4(), (2, 4, 6, 8), []
    for n_tries, max_rows in BUDGETS:
        growth.SEARCHES["oc1"] = functools.partial(oc1_splits, n_tries=n_tries, max_rows=max_rows)
        scores = []
        for seed in (0, 1):
            model = CrispTreeClassifier.from_flat(
                grow=growth.SearchGrowth("oc1"),
                algorithm="em",
                max_depth=8,
                finetune_epochs=0,
                random_state=seed,
                **PLAIN,
            ).fit(*data.all_but_test())
            scores.append([100 * model.truncate(depth).score(data.X_test, data.y_test) for depth in depths])
        lines.append([str(n_tries), f"{max_rows:,}", *(f"{score:.2f}" for score in np.mean(scores, axis=0))])
    return table(["tries a round", "rows of a leaf", *(f"depth {depth}" for depth in depths)], lines)


def non_greedy() -> str:
    """Validation / test / training accuracy after non-greedy training with some settings."""
    data, depths = load_connect4(), (8, 14, 18)
    rows = (data.X_train, data.y_train)
    parts = ((data.X_valid, data.y_valid), (data.X_test, data.y_test), rows)
    start = CrispTreeClassifier.from_flat(
        grow=growth.SearchGrowth("co2", 43.0), algorithm="em", max_depth=18, finetune_epochs=0, **STEPS
    ).fit(*rows)

    def shown(model: CrispTreeClassifier) -> str:
        return " / ".join(f"{100 * model.score(*part):.2f}" for part in parts)

    lines = [["the CO2 tree", *(shown(start.truncate(depth)) for depth in depths)]]
    for trial in TRIALS:
        found = []
        for depth in depths:
            settings = {f"training__{name}": value for name, value in trial.items() if name != "nu"}
            model = start.truncate(depth).set_params(training__grow=growth.NonGreedyTraining(trial["nu"]), **settings)
            found.append(shown(model.set_params(warm_start=True).fit(*rows)))
        lines.append([", ".join(f"{name}={value:g}" for name, value in trial.items()), *found])
    return table(["non-greedy", *(f"depth {depth}" for depth in depths)], lines)


def main() -> None:
    torch.set_num_threads(1)
    for name, measure in {"oc1": oc1, "non_greedy": non_greedy}.items():
        if name in sys.argv[1:] or len(sys.argv) == 1:
            print(measure(), flush=True)


if __name__ == "__main__":
    main()
