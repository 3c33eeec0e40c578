"""The models that ``crisptree compare`` sets beside a tree, and what it measures of them all."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import crisptree
from crisptree.cli.training import TrainingTable
from crisptree.inference import FlatTree

OURS = "crisptree"
LEGEND = (
    "majority: always the commonest class · linear: logistic regression · tree, forest: axis-aligned, scikit-learn's "
    "with its defaults · small tree: with as many leaves as crisptree's"
)
NUMBER_LEGEND = (
    "mean: always the mean · linear: ridge regression · tree, forest: axis-aligned, scikit-learn's with its defaults · "
    "small tree: with as many leaves as crisptree's"
)
REPEATS = 5
"""Prediction is timed so often; the shortest time counts."""

ROWS_TIMED, VALUES_TIMED = 10_000, 2**24
"""Rows that prediction is timed on, the ones held out again and again: of a few, only the call would be timed."""


@dataclass(frozen=True)
class Measured:
    """One model on one set of rows that it has not seen."""

    good: dict[str, float]
    """How good it is: accuracy and log_loss of classes, r2 and rmse of numbers."""
    fit_seconds: float
    predict_seconds: float
    """For a thousand rows."""
    leaves: int | None
    weights: int


@dataclass(frozen=True)
class Settings:
    """What all models of one comparison share."""

    seed: int
    n_jobs: int | None
    class_weight: Any
    leaves: int = 2


def rivals() -> dict[str, Callable[[Settings], Any]]:
    """Scikit-learn's models with its defaults, by the names that are printed; ``LEGEND`` explains them."""
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    def linear(chosen: Settings) -> Any:
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, class_weight=chosen.class_weight))

    def tree(chosen: Settings, **more: Any) -> Any:
        return DecisionTreeClassifier(random_state=chosen.seed, class_weight=chosen.class_weight, **more)

    def forest(chosen: Settings) -> Any:
        return RandomForestClassifier(random_state=chosen.seed, class_weight=chosen.class_weight, n_jobs=chosen.n_jobs)

    return {
        "majority": lambda chosen: DummyClassifier(strategy="prior"),
        "linear": linear,
        "tree": tree,
        "small tree": lambda chosen: tree(chosen, max_leaf_nodes=max(2, chosen.leaves)),
        "forest": forest,
    }


def number_rivals() -> dict[str, Callable[[Settings], Any]]:
    """The same for numbers; ``NUMBER_LEGEND`` explains them."""
    from sklearn.dummy import DummyRegressor
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeRegressor

    def tree(chosen: Settings, **more: Any) -> Any:
        return DecisionTreeRegressor(random_state=chosen.seed, **more)

    return {
        "mean": lambda chosen: DummyRegressor(),
        "linear": lambda chosen: make_pipeline(StandardScaler(), Ridge()),
        "tree": tree,
        "small tree": lambda chosen: tree(chosen, max_leaf_nodes=max(2, chosen.leaves)),
        "forest": lambda chosen: RandomForestRegressor(random_state=chosen.seed, n_jobs=chosen.n_jobs),
    }


def measured(model: Any, table: TrainingTable, fit: Callable[[Any], None]) -> Measured:
    """Fit a model to the training rows and judge it by those held out."""
    X, truth = _held(table)
    started = time.perf_counter()
    fit(model)
    fitted = time.perf_counter()
    judged = _judged_numbers if table.has_numbers else _judged_classes
    return Measured(judged(model, table, X, truth), fitted - started, _predicting(model, X), *size(model))


def _judged_classes(model: Any, table: TrainingTable, X: Any, truth: Any) -> dict[str, float]:
    from crisptree import metrics

    accuracy = float(np.mean(model.predict(X) == table.classes[truth]))
    return {"accuracy": accuracy, "log_loss": metrics.log_loss(truth, model.predict_proba(X))}


def _judged_numbers(model: Any, table: TrainingTable, X: Any, truth: Any) -> dict[str, float]:
    square, spread = float(np.mean((model.predict(X) - truth) ** 2)), float(np.var(truth))
    return {"r2": 1 - square / spread if spread > 0 else np.nan, "rmse": float(np.sqrt(square))}


def _predicting(model: Any, X: Any) -> float:
    """The seconds that it takes to predict a thousand rows."""
    many = X[np.arange(min(ROWS_TIMED, max(len(X), VALUES_TIMED // X.shape[1]))) % len(X)]
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        model.predict(many)
        times.append(time.perf_counter() - begun)
    return 1000 * min(times) / len(many)


def fit_rival(model: Any, table: TrainingTable) -> None:
    """Fit one of scikit-learn's models, with the weights of the rows if they have any."""
    name = f"{model.steps[-1][0]}__sample_weight" if hasattr(model, "steps") else "sample_weight"
    model.fit(table.X, table.y, **({} if table.weight is None else {name: table.weight}))


def size(model: Any) -> tuple[int | None, int]:
    """How many leaves a model has, if it has any, and how many numbers decide about a row beside what leaves say.

    A hyperplane counts its weights that are not zero and its threshold, an axis-aligned split its threshold alone.
    """
    if isinstance(model, crisptree.CrispTreeClassifier | crisptree.CrispTreeRegressor):
        tree: Any = model.tree_
        flat = isinstance(tree, FlatTree)
        return tree.structure.n_leaves, int((tree.weight != 0).sum()) + tree.structure.n_splits if flat else 0
    if hasattr(model, "steps"):
        linear = model.steps[-1][1]
        return None, linear.coef_.size + np.size(linear.intercept_)
    trees = [model] if hasattr(model, "tree_") else getattr(model, "estimators_", [])
    leaves = sum(tree.tree_.n_leaves for tree in trees)
    return leaves or None, sum(tree.tree_.node_count for tree in trees) - leaves


def _held(table: TrainingTable) -> Any:
    assert table.held_out is not None
    return table.held_out
