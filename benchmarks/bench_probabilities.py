"""Quality of class probabilities: our tree plain, pruned and shrunk, beside scikit-learn's tree, calibrated.

python benchmarks/bench_probabilities.py     # prints the tables of docs/results/probabilities.md
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits, load_wine, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits
from timing import table

from crisptree import CrispTreeClassifier, metrics
from crisptree.inference.finalization import STRENGTHS, shrink
from crisptree.targets.classification import LOG_LOSS_EPS

FOLDS = 4
DATA: dict[str, Callable[[], tuple[Any, Any]]] = {
    "digits": lambda: load_digits(return_X_y=True),
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "made, 3 classes": lambda: make_classification(
        1500, 20, n_informative=6, n_redundant=2, n_classes=3, flip_y=0.05, random_state=0
    ),
    "made, noisy": lambda: make_classification(
        1500, 30, n_informative=5, n_redundant=5, flip_y=0.2, class_sep=0.8, random_state=1
    ),
}


def ours(**changes: Any) -> Callable[[], Any]:
    return lambda: CrispTreeClassifier.from_flat(random_state=0, n_jobs=1, device="cpu", **changes)


class RestHeldOut:
    """Both chosen by a tenth of the rows that does not train in the end."""

    def fit(self, X: Any, y: Any) -> Any:
        rest, held, labels, held_labels = train_test_split(X, y, test_size=0.1, stratify=y, random_state=0)
        return ours(shrinkage="auto", ccp_alpha="auto")().fit(rest, labels, eval_set=(held, held_labels))


class ByCounts:
    """The strength by training counts alone: every row is judged by its path's counts without itself."""

    def fit(self, X: Any, y: Any) -> Any:
        model = ours()().fit(X, y)
        strengths = (0.0, *STRENGTHS)
        losses = [left_out_loss(model.tree_, strength) for strength in strengths]
        model.tree_ = shrink(model.tree_, strengths[int(np.argmin(losses))])
        return model


def left_out_loss(tree: Any, strength: float) -> float:
    """−Σ log p(y) of the training rows, each with one taken off the counts of all nodes on its path."""
    structure, counts, loss = tree.structure, tree.statistics.node_counts, 0.0
    for leaf in range(structure.n_leaves):
        way = [split for split, _ in structure.path(leaf)] + [structure.n_splits + leaf]
        rows = counts[way].sum(axis=1) - 1
        for label in np.flatnonzero(counts[way[-1]]):
            same, share = counts[way, label] - 1, np.zeros(len(way))
            for place in range(len(way)):
                share[place] = same[place] / rows[place] if rows[place] else share[place - 1]
            trust = rows[:-1] / np.maximum(rows[:-1] + strength, 1e-9)
            said = share[0] + trust @ np.diff(share)
            loss -= counts[way[-1], label] * np.log(max(said, LOG_LOSS_EPS))
    return float(loss)


def theirs(**calibration: Any) -> Callable[[], Any]:
    depths = {"max_depth": [2, 3, 4, 5, 6, 8, 10, None]}

    def make() -> Any:
        search = GridSearchCV(DecisionTreeClassifier(random_state=0), depths, cv=4)
        return CalibratedClassifierCV(search, **calibration) if calibration else search

    return make


MODELS: dict[str, Callable[[], Any]] = {
    "CrispTreeClassifier()": ours(),
    'shrinkage="auto"': ours(shrinkage="auto"),
    'ccp_alpha="auto"': ours(ccp_alpha="auto"),
    "both": ours(shrinkage="auto", ccp_alpha="auto"),
    "both, without the second training": RestHeldOut,
    "shrinkage by training counts": ByCounts,
    "scikit-learn's tree, depth by CV": theirs(),
    "... calibrated, one tree": theirs(ensemble=False),
    "... calibrated, mean of five trees": theirs(ensemble=True),
}

MEASURES: dict[str, tuple[str, Callable[[Any, Any, Any], float]]] = {
    "Log loss": ("{:.3f}", lambda model, X, y: log_loss(y, model.predict_proba(X), labels=model.classes_)),
    "Brier score": ("{:.3f}", lambda model, X, y: metrics.brier_score(y, model.predict_proba(X), model.classes_)),
    "Calibration error": (
        "{:.3f}",
        lambda model, X, y: metrics.calibration_error(y, model.predict_proba(X), model.classes_),
    ),
    "Accuracy in %": ("{:.1f}", lambda model, X, y: 100 * model.score(X, y)),
    "Leaves": ("{:.0f}", lambda model, X, y: leaves_of(model)),
}


def leaves_of(model: Any) -> float:
    if isinstance(model, CrispTreeClassifier):
        return model.get_n_leaves()
    if isinstance(model, GridSearchCV):
        return float(model.best_estimator_.get_n_leaves())
    return sum(leaves_of(part.estimator) for part in model.calibrated_classifiers_)


def measure(make: Callable[[], Any], X: Any, y: Any) -> dict[str, float]:
    """Means over folds of what is measured on the rows of each."""
    found: dict[str, list[float]] = {name: [] for name in MEASURES}
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        model = make().fit(X[train], y[train])
        for name, (_, function) in MEASURES.items():
            found[name].append(function(model, X[test], y[test]))
    return {name: float(np.mean(values)) for name, values in found.items()}


def main() -> None:
    started = time.perf_counter()
    results: dict[tuple[str, str], dict[str, float]] = {}
    for kind, make in MODELS.items():
        for data, load in DATA.items():
            results[kind, data] = measure(make, *load())
            print(kind, data, results[kind, data], flush=True)
    for name, (form, _) in MEASURES.items():
        rows = [[kind, *(form.format(results[kind, data][name]) for data in DATA)] for kind in MODELS]
        print(f"\n## {name}\n\n{table(['', *DATA], rows)}")
    print(f"{time.perf_counter() - started:.0f} seconds")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
