"""Fits that must not change: small data, every phase, way of growing, algorithm, penalty and kind of split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits, load_iris

from crisptree import CrispSegmenter, CrispTreeClassifier
from crisptree.datasets import load_connect4
from tests.toys import connect4_like

QUICK: dict[str, Any] = {
    "max_depth": 3,
    "epochs": 3,
    "finetune_epochs": 3,
    "min_updates": 20,
    "random_state": 0,
    **{"split": "oblique", "algorithm": "em", "l1": 0.0, "input_noise": 0.0, "scale": "feature", "shrinkage": 0.0},
}
ONE_THREAD: dict[str, Any] = {"device": "cpu", "n_jobs": 1}

Data = tuple[Any, Any]


def digits() -> Data:
    X, y = load_digits(return_X_y=True)
    return X[:600], y[:600]


def iris() -> Data:
    return load_iris(return_X_y=True)


def iris_names() -> Data:
    data = load_iris(as_frame=True)
    return data.data, data.target_names[data.target]


def connect4() -> Data:
    return connect4_like(500)


def real_connect4() -> Data:
    data = load_connect4()
    return data.X_train[:3000], data.y_train[:3000]


def small_images() -> Data:
    X, y = load_digits(return_X_y=True)
    return X[:100].reshape(-1, 8, 8).repeat(2, axis=1).repeat(2, axis=2), y[:100]


def cells() -> Data:
    """Two grey images with stripes that only a window can see."""
    images = np.random.default_rng(5).normal(size=(2, 24, 20)).astype(np.float32)
    return images, (images < np.roll(images, 1, axis=2)).astype(int)


def colour_cells() -> Data:
    images = np.random.default_rng(6).normal(size=(3, 20, 22, 2)).astype(np.float32)
    return images, np.where(images[..., 0] < np.roll(images[..., 1], 1, axis=2), "in", "out")


class SmallNetwork(torch.nn.Sequential):
    """A split of one's own."""

    def __init__(self, input_shape: tuple[int, ...]) -> None:
        n_features = int(np.prod(input_shape))
        super().__init__(torch.nn.Flatten(), torch.nn.Linear(n_features, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))


def weights_of(y: Any) -> np.ndarray:
    return np.random.default_rng(len(y)).integers(0, 4, len(y)).astype(float)


def fitted(data: Callable[[], Data], **parameters: Any) -> Callable[[], Any]:
    return lambda: CrispTreeClassifier(**{**QUICK, **ONE_THREAD, **parameters}).fit(*data())


def weighted(data: Callable[[], Data], **parameters: Any) -> Callable[[], Any]:
    def fit() -> Any:
        X, y = data()
        return CrispTreeClassifier(**{**QUICK, **ONE_THREAD, **parameters}).fit(X, y, weights_of(y))

    return fit


def segmented(data: Callable[[], Data], **parameters: Any) -> Callable[[], Any]:
    return lambda: CrispSegmenter(**{**QUICK, "window": 5, **ONE_THREAD, **parameters}).fit(*data())


def grown_on() -> Any:
    X, y = digits()
    model = CrispTreeClassifier(**{**QUICK, **ONE_THREAD}, warm_start=True).fit(X, y)
    return model.set_params(max_depth=4).fit(X, y)


def validated() -> Any:
    X, y = digits()
    model = CrispTreeClassifier(**{**QUICK, **ONE_THREAD, "early_stopping": True, "algorithm": "likelihood"})
    return model.fit(X[:400], y[:400], validation=(X[400:], y[400:]))


def paper() -> Any:
    changes = {**ONE_THREAD, "max_depth": 3, "epochs": 4, "finetune_epochs": 4, "random_state": 0}
    return CrispTreeClassifier.paper(**changes).fit(*digits())


def simplified() -> Any:
    return fitted(digits)().simplified(*digits(), max_terms=20, tolerance=0.05, epochs=2)


FITS: dict[str, Callable[[], Any]] = {
    "em": fitted(digits),
    "alternating": fitted(digits, algorithm="alternating"),
    "likelihood": fitted(digits, algorithm="likelihood"),
    "non_greedy": fitted(digits, algorithm="non_greedy", nu=4.0),
    "non_greedy by validation": fitted(iris, algorithm="non_greedy", max_depth=2),
    "balanced": fitted(digits, grow="balanced", algorithm="likelihood"),
    "axis_aligned": fitted(digits, grow="axis_aligned"),
    "random": fitted(digits, grow="random"),
    "oc1": fitted(iris, grow="oc1"),
    "co2": fitted(iris, grow="co2"),
    "best first": fitted(digits, max_leaf_nodes=7, max_depth=None),
    "growth alone": fitted(digits, finetune_epochs=0),
    "limits": fitted(
        digits, min_samples_leaf=9, min_samples_split=40, min_impurity_decrease=0.01, min_weight_fraction_leaf=0.02
    ),
    "l1": fitted(digits, l1=1e-2),
    "l2": fitted(digits, l2=1e-2),
    "roughness": fitted(digits, roughness=1e-2, image_shape=(8, 8)),
    "geometric, cosine": fitted(digits, annealing="geometric", learning_rate_decay="cosine", steepness=2.0),
    "scaled by one number": fitted(digits, scale="global", leaf_prior=0.5),
    "not scaled, exact": fitted(iris, scale=None, mass_threshold=0.0, learning_rate=0.05),
    "weights": weighted(digits),
    "weights, balanced classes": weighted(iris, class_weight="balanced", algorithm="alternating"),
    "early stopping": fitted(digits, early_stopping=True, n_iter_no_change=100),
    "validation rows": validated,
    "warm start": grown_on,
    "paper": paper,
    "simplified": simplified,
    "connect-4": fitted(connect4, max_depth=4),
    "connect-4 by likelihood": fitted(connect4, max_depth=4, algorithm="likelihood", l2=1e-3),
    "axis": fitted(iris_names, split="axis"),
    "axis, l1": fitted(iris, split="axis", l1=1e-2, algorithm="likelihood"),
    "conv": fitted(small_images, split="conv", max_depth=2, min_updates=4, batch_size=64),
    "own modules": fitted(small_images, split=SmallNetwork, max_depth=2, l2=1e-3, algorithm="alternating"),
    "windows": segmented(cells),
    "windows, a share of the pixels": segmented(cells, pixels_per_epoch=300, roughness=1e-3),
    "windows, two scales, normalised": segmented(colour_cells, scales=(1, 2), normalise_images=True),
    "windows, two stages": segmented(colour_cells, stages=2, algorithm="likelihood"),
    "windows, early stopping": segmented(
        colour_cells, early_stopping=True, n_iter_no_change=100, class_weight="balanced"
    ),
    "windows, conv": segmented(cells, split="conv", window=17, max_depth=1, min_updates=2, pixels_per_epoch=200),
}

REAL_FITS: dict[str, Callable[[], Any]] = {
    "connect-4, real rows": fitted(real_connect4, max_depth=5),
    "connect-4, real rows by likelihood": fitted(real_connect4, max_depth=5, algorithm="likelihood", l1=1e-4),
}
"""Those that need files which are not in the repository."""
