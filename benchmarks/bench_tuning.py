"""Effect of each parameter on small data, one at a time: accuracy on new and on training rows, and the log loss.

python benchmarks/bench_tuning.py     # writes docs/results/tuning.md
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from choose_data import DATA
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits
from timing import table

from crisptree import CrispTreeClassifier

PAGE = Path(__file__).parent.parent / "docs" / "results" / "tuning.md"
NAMES = ("Digits", "Breast cancer", "Moons", "Irrelevant features", "Categories")
FOLDS = 4
FIXED = {"device": "cpu", "n_jobs": 1}
PLAIN: dict[str, Any] = {
    **{"split": "oblique", "algorithm": "em", "l1": 0.0, "input_noise": 0.0},
    **{"scale": "feature", "shrinkage": 0.0},
}
"""Nothing is chosen inside the fit, so that one change is one change."""

SETTINGS: dict[str, dict[str, Any]] = {
    "plain (depth 8)": {},
    "max_depth=2": {"max_depth": 2},
    "max_depth=4": {"max_depth": 4},
    "max_depth=6": {"max_depth": 6},
    "max_leaf_nodes=16": {"max_leaf_nodes": 16},
    "min_samples_leaf=10": {"min_samples_leaf": 10},
    "l2=1e-3": {"l2": 1e-3},
    "l2=1e-2": {"l2": 1e-2},
    "l2=1e-1": {"l2": 1e-1},
    "l1=3e-3": {"l1": 3e-3},
    "l1=1e-2": {"l1": 1e-2},
    "l1=3e-2": {"l1": 3e-2},
    "l1=1e-1": {"l1": 1e-1},
    "leaf_prior=1": {"leaf_prior": 1.0},
    "early_stopping=True": {"early_stopping": True},
    "finetune_epochs=0": {"finetune_epochs": 0},
    "epochs=10, finetune_epochs=20": {"epochs": 10, "finetune_epochs": 20},
    "epochs=50, finetune_epochs=100": {"epochs": 50, "finetune_epochs": 100},
    'learning_rate_decay="none"': {"learning_rate_decay": "none"},
    'algorithm="likelihood"': {"algorithm": "likelihood"},
    'scale="global"': {"scale": "global"},
    "max_depth=4, l2=1e-1": {"max_depth": 4, "l2": 1e-1},
    "max_depth=4, l1=3e-2": {"max_depth": 4, "l1": 3e-2},
}
IMAGE_SETTINGS: dict[str, dict[str, Any]] = {
    'scale="global", spatial_penalty=1e-3': {"spatial_penalty": 1e-3},
    'scale="global", spatial_penalty=1e-2': {"spatial_penalty": 1e-2},
    'scale="global", spatial_penalty=1e-1': {"spatial_penalty": 1e-1},
    "max_depth=4, the same with 1e-2": {"spatial_penalty": 1e-2, "max_depth": 4},
}


def measure(name: str, change: dict[str, Any]) -> dict[str, np.ndarray]:
    """Accuracy on new and on training rows and the log loss on new ones, per fold."""
    X, y = DATA[name].load()
    rows = []
    for seed, (train, test) in enumerate(StratifiedKFold(FOLDS, shuffle=True, random_state=1).split(X, y)):
        model = CrispTreeClassifier.from_flat(**{**PLAIN, **change}, **FIXED, random_state=seed).fit(X[train], y[train])
        scores = [100 * model.score(X[part], y[part]) for part in (test, train)]
        rows.append([*scores, log_loss(y[test], model.predict_proba(X[test]))])
    return dict(zip(("new", "train", "log loss"), np.array(rows).T, strict=True))


FORMS = {
    "accuracy": lambda result: f"{result['new'].mean():.1f} ± {result['new'].std():.1f} ({result['train'].mean():.1f})",
    "log loss": lambda result: f"{result['log loss'].mean():.2f}",
}


def lines_of(results: dict[str, dict[str, dict[str, np.ndarray]]], key: str) -> list[list[str]]:
    """Format a line per setting, a column per data set."""
    return [[setting, *map(FORMS[key], result.values())] for setting, result in results.items()]


INTRODUCTION = """# Settings

Made by `python benchmarks/bench_tuning.py`: one change of plain training (`PLAIN` there: hyperplanes by
EM, nothing chosen inside the fit) at a time, four-fold cross-validation
on data sets of [the comparison](choose.md), hard routing. What follows from it stands in the
[tuning guide](../tuning.md). Whoever chooses a setting by these tables has used the rows: the best number of a column
is no clean estimate.

## Accuracy

On new rows, mean ± standard deviation over folds; in brackets on the training rows. In %.

"""


def main() -> None:
    warnings.filterwarnings("ignore", category=UserWarning)
    with threadpool_limits(1):
        results = {setting: {name: measure(name, change) for name in NAMES} for setting, change in SETTINGS.items()}
        base = results["plain (depth 8)"]["Digits"]
        images = {"plain (depth 8)": {"Digits": base}} | {
            setting: {"Digits": measure("Digits", {"image_shape": (8, 8), "scale": "global", **change})}
            for setting, change in IMAGE_SETTINGS.items()
        }
    page = INTRODUCTION + table(["", *NAMES], lines_of(results, "accuracy"))
    page += "\n## Images\n\nDigits, accuracy as above.\n\n" + table(["", "Digits"], lines_of(images, "accuracy"))
    page += "\n## Log loss on new rows\n\n" + table(["", *NAMES], lines_of(results, "log loss"))
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
