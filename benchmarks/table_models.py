"""Models of bench_tables.py: crisptree's defaults and variants, scikit-learn's models, and other packages' defaults."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple, Self

import numpy as np
from benchmarks.real_tables import CLASSIFICATION, REGRESSION
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from crisptree import (
    CrispForestClassifier,
    CrispForestRegressor,
    CrispTreeClassifier,
    CrispTreeRegressor,
    TrainingOptions,
)

CART_GRID = {"ccp_alpha": [0.0, 1e-4, 1e-3, 1e-2], "min_samples_leaf": [1, 5, 20], "max_depth": [4, 8, None]}
C_GRID = np.logspace(-3, 5, 9)
ALPHA_GRID = np.logspace(-3, 4, 15)
CV = 5
POINTS = 0.5
"""Points that the simplest candidate may be below the best one."""


class Model(NamedTuple):
    """A model of the benchmark.

    Its title, the function that makes the estimator for a task, seed and n_jobs, the package that it needs beside those
    of the tests, and whether it is fitted unless ``--models`` names others.
    """

    title: str
    make: Callable[[str, int, int], Any]
    package: str | None = None
    is_default: bool = True


class IntegerClasses(BaseEstimator):
    """Classifier of a package that takes classes 0, 1, … only."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        self.classes_, numbers = np.unique(y, return_inverse=True)
        self.estimator.fit(X, numbers)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.classes_[np.ravel(self.estimator.predict(X)).astype(np.int64)]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.estimator.predict_proba(X))


class SimplestTree(BaseEstimator):
    """The simplest candidate within ``POINTS`` of the best one, fitted after a default fit has compared them."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        self.model_ = self.tree.fit(X, y)
        if self.tree.cv_results_:
            self.model_ = self.tree.simplest_within(POINTS).fit(X, y)
        return self

    def __getattr__(self, name: str) -> Any:
        if name in ("predict", "predict_proba", "classes_"):
            return getattr(self.model_, name)
        raise AttributeError(name)


def make_tree(task: str, seed: int, n_jobs: int, **parameters: Any) -> Any:
    estimator = CrispTreeClassifier if task == CLASSIFICATION else CrispTreeRegressor
    return estimator(random_state=seed, n_jobs=n_jobs, training=TrainingOptions(device="cpu"), **parameters)


def make_effort(task: str, seed: int, n_jobs: int, effort: str) -> Any:
    tree = make_tree(task, seed, n_jobs)
    return tree.set_params(training__effort=effort)


def make_simplest(task: str, seed: int, n_jobs: int) -> Any:
    return SimplestTree(make_tree(task, seed, n_jobs))


def make_forest(task: str, seed: int, n_jobs: int) -> Any:
    estimator = CrispForestClassifier if task == CLASSIFICATION else CrispForestRegressor
    return estimator(n_estimators=25, random_state=seed, n_jobs=n_jobs, training=TrainingOptions(device="cpu"))


def make_cart(task: str, seed: int, n_jobs: int) -> Any:
    """CART with a grid search; y of a regression is standardised, so that ccp_alpha is a fraction of its variance."""
    if task == CLASSIFICATION:
        return GridSearchCV(DecisionTreeClassifier(random_state=seed), CART_GRID, cv=CV, n_jobs=n_jobs)
    tree = TransformedTargetRegressor(DecisionTreeRegressor(random_state=seed), transformer=StandardScaler())
    grid = {f"regressor__{name}": values for name, values in CART_GRID.items()}
    return GridSearchCV(tree, grid, cv=CV, n_jobs=n_jobs)


def make_linear(task: str, seed: int, n_jobs: int) -> Any:
    if task == REGRESSION:
        return make_pipeline(StandardScaler(), RidgeCV(ALPHA_GRID, cv=CV))
    model = LogisticRegressionCV(Cs=C_GRID, cv=CV, scoring="accuracy", max_iter=1000, random_state=seed, n_jobs=n_jobs)
    return make_pipeline(StandardScaler(), model)


def make_random_forest(task: str, seed: int, n_jobs: int) -> Any:
    estimator = RandomForestClassifier if task == CLASSIFICATION else RandomForestRegressor
    return estimator(n_estimators=100, random_state=seed, n_jobs=n_jobs)


def make_boosting(task: str, seed: int, n_jobs: int) -> Any:
    """Gradient boosting of scikit-learn, with as many threads as ``limit_threads`` lets OpenMP have."""
    estimator = HistGradientBoostingClassifier if task == CLASSIFICATION else HistGradientBoostingRegressor
    return estimator(random_state=seed)


def make_lightgbm(task: str, seed: int, n_jobs: int) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    estimator = LGBMClassifier if task == CLASSIFICATION else LGBMRegressor
    return estimator(random_state=seed, n_jobs=n_jobs, verbose=-1)


def make_xgboost(task: str, seed: int, n_jobs: int) -> Any:
    from xgboost import XGBClassifier, XGBRegressor

    options = {"random_state": seed, "n_jobs": n_jobs}
    return IntegerClasses(XGBClassifier(**options)) if task == CLASSIFICATION else XGBRegressor(**options)


def make_catboost(task: str, seed: int, n_jobs: int) -> Any:
    from catboost import CatBoostClassifier, CatBoostRegressor

    options = {"random_seed": seed, "thread_count": n_jobs, "verbose": False, "allow_writing_files": False}
    return IntegerClasses(CatBoostClassifier(**options)) if task == CLASSIFICATION else CatBoostRegressor(**options)


def make_ebm(task: str, seed: int, n_jobs: int) -> Any:
    from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

    estimator = ExplainableBoostingClassifier if task == CLASSIFICATION else ExplainableBoostingRegressor
    return estimator(random_state=seed, n_jobs=n_jobs)


MODELS = {
    "tree": Model("crisp tree", make_tree),
    "simplest": Model(f"simplest crisp tree within {POINTS:g}", make_simplest, is_default=False),
    "fast": Model("crisp tree, effort fast", partial(make_effort, effort="fast"), is_default=False),
    "thorough": Model("crisp tree, effort thorough", partial(make_effort, effort="thorough"), is_default=False),
    "forest": Model("crisp forest, 25 trees", make_forest),
    "cart": Model("CART, tuned", make_cart),
    "linear": Model("linear, tuned", make_linear),
    "random_forest": Model("random forest, 100 trees", make_random_forest),
    "boosting": Model("HistGradientBoosting", make_boosting),
    "lightgbm": Model("LightGBM", make_lightgbm, "lightgbm"),
    "xgboost": Model("XGBoost", make_xgboost, "xgboost"),
    "catboost": Model("CatBoost", make_catboost, "catboost"),
    "ebm": Model("EBM", make_ebm, "interpret"),
}


def is_installed(model: Model) -> bool:
    return model.package is None or find_spec(model.package) is not None
