"""Every kind of fit and of prediction, for tests of what must hold for all of them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import crisptree
from crisptree import (
    CrispForestClassifier,
    CrispForestRegressor,
    CrispPixelRegressor,
    CrispSegmenter,
    CrispTreeClassifier,
    CrispTreeRegressor,
    explain,
    export,
)

QUICK = {"max_depth": 2, "epochs": 2, "finetune_epochs": 2, "min_updates": 0, "random_state": 0, "device": "cpu"}
"""Short training; what a default fit selects by validation, it selects here too."""


class Data(NamedTuple):
    """Rows X with classes y, class probabilities P and numbers t; images with a class each; an image of pixels."""

    X: np.ndarray
    y: np.ndarray
    P: np.ndarray
    t: np.ndarray
    images: np.ndarray
    picture: np.ndarray

    @classmethod
    def of(cls, n_rows: int, n_features: int, n_images: int = 40, side: int = 16) -> Data:
        """Reproducible synthetic data of some size."""
        random = np.random.default_rng(0)
        X = random.normal(size=(n_rows, n_features)).astype(np.float32)
        y = (X[:, 0] + X[:, 1] > 0).astype(int)
        t = 2.0 * X[:, 0] + random.normal(size=n_rows)
        images = random.normal(size=(n_images, 16, 16)).astype(np.float32)
        picture = random.normal(size=(side, side)).astype(np.float32)
        return cls(X, y, np.stack([1 - y, y], axis=1) * 0.8 + 0.1, t, images, picture)

    def batches(self, y: np.ndarray) -> Callable[[], Any]:
        """The rows in four batches, as often as they are asked for."""
        return lambda: iter([*zip(np.array_split(self.X, 4), np.array_split(y, 4), strict=True)])

    @property
    def image_classes(self) -> np.ndarray:
        return (self.images[:, 0, 0] > 0).astype(int)


class Mean:
    """A teacher that costs nothing."""

    classes_ = np.array([0, 1])

    def predict_proba(self, X: Any) -> np.ndarray:
        likely = np.asarray(X)[:, 0] > 0
        return np.stack([1.0 - likely, 0.0 + likely], axis=1)


class MeanNumber:
    """The same for numbers."""

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(np.asarray(X)[:, 0], dtype=float)


def _update(model: Any, data: Data, y: np.ndarray, **changes: Any) -> Any:
    half = len(y) // 2
    return model.partial_fit(data.X[:half], y[:half], **changes).partial_fit(data.X[half:], y[half:])


FITS: dict[str, Callable[..., Any]] = {
    "classifier": lambda data, **k: CrispTreeClassifier.from_flat(**k).fit(data.X, data.y),
    "regressor": lambda data, **k: CrispTreeRegressor.from_flat(**k).fit(data.X, data.t),
    "linear leaves, classes": lambda data, **k: CrispTreeClassifier.from_flat(leaf_model="linear", **k).fit(
        data.X, data.y
    ),
    "linear leaves, numbers": lambda data, **k: CrispTreeRegressor.from_flat(leaf_model="linear", **k).fit(
        data.X, data.t
    ),
    "class probabilities": lambda data, **k: CrispTreeClassifier.from_flat(**k).fit(data.X, data.P),
    "sparse rows": lambda data, **k: CrispTreeClassifier.from_flat(**k).fit(sparse.csr_matrix(data.X), data.y),
    "held-out rows": lambda data, **k: CrispTreeClassifier.from_flat(early_stopping=True, ccp_alpha="auto", **k).fit(
        data.X, data.y
    ),
    "thresholds": lambda data, **k: CrispTreeClassifier.from_flat(split="axis", **k).fit(data.X, data.y),
    "CART": lambda data, **k: CrispTreeClassifier.from_flat(grow="cart", **k).fit(data.X, data.y),
    "alternating": lambda data, **k: CrispTreeClassifier.from_flat(algorithm="alternating", **k).fit(data.X, data.y),
    "em": lambda data, **k: CrispTreeClassifier.from_flat(algorithm="em", **k).fit(data.X, data.y),
    "conv": lambda data, **k: CrispTreeClassifier.from_flat(split="conv", **k).fit(data.images, data.image_classes),
    "forest": lambda data, **k: CrispForestClassifier.from_flat(n_estimators=3, **k).fit(data.X, data.y),
    "forest of numbers": lambda data, **k: CrispForestRegressor.from_flat(n_estimators=3, **k).fit(data.X, data.t),
    "partial_fit": lambda data, **k: _update(CrispTreeClassifier.from_flat(**k), data, data.y, classes=[0, 1]),
    "partial_fit of numbers": lambda data, **k: _update(CrispTreeRegressor.from_flat(**k), data, data.t),
    "distill": lambda data, **k: CrispTreeClassifier.from_flat(**k).distill(Mean(), data.X),
    "distill probabilities": lambda data, **k: CrispTreeClassifier.from_flat(**k).distill(
        Mean(), data.X, labels="soft"
    ),
    "distill numbers": lambda data, **k: CrispTreeRegressor.from_flat(**k).distill(MeanNumber(), data.X),
    "batches": lambda data, **k: CrispTreeClassifier.from_flat(**k).fit(data.batches(data.y)),
    "batches of numbers": lambda data, **k: CrispTreeRegressor.from_flat(**k).fit(data.batches(data.t)),
    "segmenter": lambda data, **k: CrispSegmenter.from_flat(window=5, stages=2, **k).fit(
        data.picture, data.picture > 0
    ),
    "pixel regressor": lambda data, **k: CrispPixelRegressor.from_flat(window=5, **k).fit(
        data.picture, 2 * data.picture
    ),
}
"""By name, what fits an estimator with some parameters to some data."""

ANSWERS = (
    *("predict", "predict_proba", "predict_log_proba", "soft_predict_proba", "apply", "decision_path"),
    *("predict_std", "predict_interval", "soft_predict", "leaf_image"),
)
"""Methods that take rows or images alone."""


EXPORTS = ("text", "dot", "c", "js", "sql", "json", "sklearn_tree")


def use(model: Any, data: Data) -> None:
    """Predict, score, explain, cut, save and load, export and report; what a model has not got is left out."""
    X, y = data.X[:200], data.y[:200]
    if isinstance(model, CrispSegmenter | CrispPixelRegressor):
        X, y = data.picture, data.picture > 0
    elif model.image_shape_ is not None:
        X, y = data.images, data.image_classes
    for name in ANSWERS:
        if hasattr(model, name):
            getattr(model, name)(X)
    model.score(X, y if hasattr(model, "classes_") else 2.0 * y)
    if hasattr(model, "cut"):
        model.truncate(1), model.prune(0.01), model.before_finetuning()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.crisp")
        model.save(path)
        crisptree.load(path).predict(X)
        for call in (
            lambda: model.explain(X[0]),
            lambda: explain.find_counterfactual(model, X[0]),
            lambda: explain.attribute_errors(model, X, y),
            lambda: model.feature_importances_,
            lambda: model.report(Path(folder, "report.html"), X, y),
            lambda: export.check(model, X, "sql"),
            *(partial(getattr(export, name), model) for name in EXPORTS),
        ):
            with suppress(TypeError, ValueError, AttributeError):  # of such a tree there is none
                call()
