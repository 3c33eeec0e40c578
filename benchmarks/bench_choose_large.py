"""scikit-learn's tree, forest, boosting and logistic regression on the paper's larger data sets, for comparison.

CRISPTREE_DATA=/folder/of/data python benchmarks/bench_choose_large.py     # writes docs/results/choose-large.md

Our own trees are not trained here: docs/results/paper.md has them, on the same training and test rows.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from bench_choose import COSTS
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from timing import table

from crisptree.datasets import load_connect4, load_fashion_mnist, load_mnist

PAGE = Path(__file__).parent.parent / "docs" / "results" / "choose-large.md"
DATA = {"MNIST": load_mnist, "Fashion-MNIST": load_fashion_mnist, "Connect-4": load_connect4}
MODELS: dict[str, Any] = {
    "tree, depth 8": DecisionTreeClassifier(max_depth=8, random_state=0),
    "random forest, 100 trees": RandomForestClassifier(100, n_jobs=1, random_state=0),
    "hist gradient boosting": HistGradientBoostingClassifier(random_state=0),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
}
TOO_LONG = {
    ("MNIST", "hist gradient boosting"),
    ("Fashion-MNIST", "hist gradient boosting"),
    ("MNIST", "logistic regression"),
    ("Fashion-MNIST", "logistic regression"),
}
"""Minutes each; not run."""

INTRODUCTION = """# Larger data sets, other models

Made by `python benchmarks/bench_choose_large.py` with `CRISPTREE_DATA` set: scikit-learn's models with their defaults,
one seed, trained on training and validation rows, test accuracy in %. Our trees on the same rows, at all depths, are in
[the depth curves](paper.md). Fit times are processor times as ratios to the tree's; boosting runs on all cores, and
threads that wait for each other count. What would take minutes is not run (—).

"""


def main() -> None:
    lines = []
    for name, load in DATA.items():
        data = load()
        X, y = data.all_but_test()
        first = None
        for kind, model in MODELS.items():
            if (name, kind) in TOO_LONG:
                lines.append([name, kind, "—", "—", "—", "—"])
                continue
            started = time.process_time()
            model.fit(X, y)
            seconds = time.process_time() - started
            first = first or seconds
            splits, size = COSTS[type(model)](model, data.X_test)
            score = f"{100 * model.score(data.X_test, data.y_test):.2f}"
            lines.append([name, kind, score, f"{splits:,.1f}", f"{size:,.0f}", f"{seconds / first:.1f}"])
            print(*lines[-1], flush=True)
    header = ["", "", "accuracy, %", "splits asked per row", "numbers kept", "fit time"]
    PAGE.write_text(INTRODUCTION + table(header, lines))


if __name__ == "__main__":
    main()
