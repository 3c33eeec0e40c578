"""One crisp tree beside scikit-learn's tree, a forest, boosting and a logistic regression, where each wins and loses.

python benchmarks/bench_choose.py                 # writes docs/results/choose.md
python benchmarks/bench_choose.py --only XOR      # prints one data set

Four folds of each data set; every model of a fold trains and predicts in the same run on one thread, so times are
ratios to scikit-learn's tree of depth 8 there. Nothing is tuned on any of the data sets.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from choose_data import DATA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits
from timing import table

from crisptree import CrispTreeClassifier

PAGE = Path(__file__).parent.parent / "docs" / "results" / "choose.md"
FOLDS = 4
ROWS = 10_000
"""Rows that are predicted while the clock runs: the fold's test rows, repeated."""

AXIS = 'crisp, depth 4, split="axis"'
WIDEST_AXIS = 100
"""Features up to which axis-aligned splits are trained: they train a stump for each feature at each node."""

CRISP = {"device": "cpu", "n_jobs": 1}
PLAIN = {"algorithm": "em", "input_noise": 0.0, "scale": "feature", "shrinkage": 0.0}
"""Plain training: nothing is chosen inside the fit. What the defaults give: docs/results/contained.md."""
MODELS: dict[str, Callable[[int], Any]] = {
    "plain crisp, depth 8": lambda seed: CrispTreeClassifier.from_flat(
        split="oblique", l1=0.0, random_state=seed, **CRISP, **PLAIN
    ),
    "crisp, depth 4": lambda seed: CrispTreeClassifier.from_flat(
        split="oblique", l1=0.0, max_depth=4, random_state=seed, **CRISP, **PLAIN
    ),
    "crisp, depth 8, l2=1e-1": lambda seed: CrispTreeClassifier.from_flat(
        split="oblique", l1=0.0, l2=1e-1, random_state=seed, **CRISP, **PLAIN
    ),
    "crisp, depth 4, l1=3e-2": lambda seed: CrispTreeClassifier.from_flat(
        split="oblique", max_depth=4, l1=3e-2, random_state=seed, **CRISP, **PLAIN
    ),
    AXIS: lambda seed: CrispTreeClassifier.from_flat(
        max_depth=4, split="axis", l1=0.0, random_state=seed, **CRISP, **PLAIN
    ),
    "scikit-learn's tree, depth 8": lambda seed: DecisionTreeClassifier(max_depth=8, random_state=seed),
    "scikit-learn's tree, full": lambda seed: DecisionTreeClassifier(random_state=seed),
    "random forest, 100 trees": lambda seed: RandomForestClassifier(100, n_jobs=1, random_state=seed),
    "hist gradient boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "logistic regression": lambda seed: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
}
YARDSTICK = "scikit-learn's tree, depth 8"


def crisp_cost(model: CrispTreeClassifier, X: np.ndarray) -> tuple[float, int]:
    """Splits asked per row, and numbers kept: weights that are not zero, biases, leaf tables."""
    splits = model.decision_path(X).sum() / len(X) - 1
    return splits, int(np.count_nonzero(model.tree_.weight)) + model.tree_.bias.size + model.tree_.leaves.size


def tree_cost(model: DecisionTreeClassifier, X: np.ndarray) -> tuple[float, int]:
    """Count the values of a tree: feature and threshold per split, a table per leaf."""
    inner = int((model.tree_.children_left >= 0).sum())
    leaves = model.get_n_leaves()
    return model.decision_path(X).sum() / len(X) - 1, 2 * inner + leaves * len(model.classes_)


def forest_cost(model: RandomForestClassifier, X: np.ndarray) -> tuple[float, int]:
    """Sum the costs of all trees."""
    costs = [tree_cost(tree, X) for tree in model.estimators_]
    return sum(splits for splits, _ in costs), sum(size for _, size in costs)


def boosting_cost(model: HistGradientBoostingClassifier, X: np.ndarray) -> tuple[float, int]:
    """Sum the costs of all trees of all rounds; paths are counted on the training rows."""
    trees = [tree.nodes for stage in model._predictors for tree in stage]
    splits, size = 0.0, 0
    for nodes in trees:
        leaf = nodes["is_leaf"].astype(bool)
        splits += float(np.average(nodes["depth"][leaf], weights=nodes["count"][leaf]))
        size += 2 * int((~leaf).sum()) + int(leaf.sum())
    return splits, size


def linear_cost(model: Any, X: np.ndarray) -> tuple[float, int]:
    """Count coefficients; there are no splits, and the scaling can be folded in."""
    return 0.0, model[-1].coef_.size + model[-1].intercept_.size


COSTS: dict[type, Callable[[Any, np.ndarray], tuple[float, int]]] = {
    CrispTreeClassifier: crisp_cost,
    DecisionTreeClassifier: tree_cost,
    RandomForestClassifier: forest_cost,
    HistGradientBoostingClassifier: boosting_cost,
    type(make_pipeline(StandardScaler(), LogisticRegression())): linear_cost,
}


def seconds(call: Callable[[], object], repeat: int) -> float:
    """Processor time of the quickest of some calls on one thread: what others do on the machine hardly counts."""
    times = []
    for _ in range(repeat):
        started = time.process_time()
        call()
        times.append(time.process_time() - started)
    return min(times)


def measure(name: str, X: np.ndarray, y: np.ndarray) -> dict[str, dict[str, list[float]]]:
    """Accuracy, splits asked, numbers kept, fit and prediction time of every model on every fold."""
    results: dict[str, dict[str, list[float]]] = {
        kind: {key: [] for key in ("accuracy", "splits", "size", "fit", "predict")}
        for kind in MODELS
        if kind != AXIS or X.shape[1] <= WIDEST_AXIS
    }
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    for seed, (train, test) in enumerate(folds.split(X, y)):
        many = np.resize(test, ROWS)
        for kind in results:
            model = MODELS[kind](seed)
            fit = seconds(lambda model=model, train=train: model.fit(X[train], y[train]), 1)
            splits, size = COSTS[type(model)](model, X[test])
            row = {
                "accuracy": 100 * model.score(X[test], y[test]),
                "splits": splits,
                "size": size,
                "fit": fit,
                "predict": seconds(lambda model=model, many=many: model.predict(X[many]), 3),
            }
            for key, value in row.items():
                results[kind][key].append(float(value))
        print(f"{name}, fold {seed + 1} of {FOLDS}", flush=True)
    return results


def times(result: dict[str, list[float]], yardstick: dict[str, list[float]], key: str) -> str:
    """Compute the median over folds of the ratio to the reference in the same fold."""
    ratio = float(np.median(np.array(result[key]) / np.array(yardstick[key])))
    return f"{ratio:.1f}" if ratio < 10 else f"{ratio:,.0f}"


def section(name: str, results: dict[str, dict[str, list[float]]]) -> str:
    """Write a heading, a sentence and a table for one data set."""
    X, y = DATA[name].load()
    lines = [
        [
            model,
            f"{np.mean(result['accuracy']):.1f} ± {np.std(result['accuracy']):.1f}",
            f"{np.mean(result['splits']):,.1f}",
            f"{np.mean(result['size']):,.0f}",
            times(result, results[YARDSTICK], "fit"),
            times(result, results[YARDSTICK], "predict"),
        ]
        for model, result in results.items()
    ]
    header = ["", "accuracy, %", "splits asked per row", "numbers kept", "fit time", "predict time"]
    shape = f"{len(X):,} rows, {X.shape[1]} features, {len(np.unique(y))} classes. {DATA[name].story}"
    return f"## {name}\n\n{shape}\n\n{table(header, lines)}"


def overview(everything: dict[str, dict[str, dict[str, list[float]]]]) -> str:
    """Accuracies alone, all data sets; the best of each in bold."""
    lines = []
    for name, results in everything.items():
        means = {model: float(np.mean(result["accuracy"])) for model, result in results.items()}
        best = max(means.values())
        cells = (f"**{means[kind]:.1f}**" if means[kind] == best else f"{means[kind]:.1f}" for kind in means)
        shown = dict(zip(means, cells, strict=True))
        lines.append([name, *(shown.get(kind, "—") for kind in MODELS)])
    return table(["accuracy, %", *MODELS], lines)


INTRODUCTION = """# One tree, or something else?

Made by `python benchmarks/bench_choose.py`. Four-fold cross-validation, mean ± standard deviation over the folds.
Accuracy is that of `predict`, for crisp trees with hard routing. *Splits asked* are nodes visited for one row, over all
trees of a model; a split of an oblique tree reads every feature, the others one. *Numbers kept* are weights that are
not zero, thresholds, feature numbers and leaf tables. Times are processor time on one thread as ratios to
scikit-learn's tree of depth 8 in the same fold (medians; predictions of 10,000 rows at once). Fits of that tree take
milliseconds, so large ratios are still short times. The best mean of a data set is bold; differences below the spread
say nothing. What follows from this: [which model when](../choose.md).

No model was tuned fold by fold, and crisp trees are trained plainly, by EM, with nothing chosen inside the fit; [what
the defaults give](contained.md). The numbers of training were [chosen](defaults.md) on digits, breast cancer, wine and
moons, and the line with l1 was added after plain training had been seen to fail on the irrelevant
features. Axis-aligned crisp trees are not trained beyond 100 features: they train a stump for each at each node.

"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=list(DATA), help="print one data set's table, write nothing")
    chosen = parser.parse_args().only
    warnings.filterwarnings("ignore", message="y_pred|lbfgs failed")
    CrispTreeClassifier.from_flat(max_depth=1, **CRISP).fit([[0.0], [1.0]], [0, 1])  # imports torch before a clock runs
    with threadpool_limits(1):
        everything = {name: measure(name, *data.load()) for name, data in DATA.items() if chosen in (None, name)}
    sections = "\n".join(section(name, results) for name, results in everything.items())
    if chosen:
        print(sections)
        return
    PAGE.write_text(INTRODUCTION + overview(everything) + "\n" + sections)


if __name__ == "__main__":
    main()
