"""Selection of the default training options: four-fold cross-validation on small data sets of scikit-learn.

python benchmarks/bench_defaults.py
"""

from __future__ import annotations

from typing import Any

from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification, make_moons
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.tree import DecisionTreeClassifier
from timing import table

from crisptree import CrispTreeClassifier

DATA = {
    "digits": load_digits(return_X_y=True),
    "breast cancer": load_breast_cancer(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "moons": make_moons(1000, noise=0.25, random_state=0),
    "synthetic": make_classification(2000, 20, n_informative=8, n_classes=3, random_state=1),
}
PLAIN: dict[str, Any] = {
    **{"split": "oblique", "algorithm": "em", "l1": 0.0, "input_noise": 0.0},
    **{"scale": "feature", "shrinkage": 0.0},
}
"""Nothing is chosen inside the fit."""

CHANGES: list[dict[str, Any]] = [
    {},
    {"learning_rate": 0.01},
    {"learning_rate": 0.05},
    {"learning_rate_decay": "none"},
    {"learning_rate_decay": "cosine"},
    {"min_updates": 400},
    {"algorithm": "likelihood"},
    {"scale": "global"},
    {"l2": 1e-3},
]


def main() -> None:
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    models = {"scikit-learn's tree, depth 8": DecisionTreeClassifier(max_depth=8, random_state=0)} | {
        ", ".join(f"{name}={value!r}" for name, value in change.items()) or "plain": CrispTreeClassifier.from_flat(
            **{**PLAIN, **change}, random_state=1, n_jobs=-1
        )
        for change in CHANGES
    }
    lines = []
    for name, model in models.items():
        scores = [cross_val_score(model, X, y, cv=folds) for X, y in DATA.values()]
        lines.append([name, *(f"{100 * score.mean():.1f} ± {100 * score.std():.1f}" for score in scores)])
    print(table(["accuracy in %, hard routing, mean ± spread over folds", *DATA], lines))


if __name__ == "__main__":
    main()
