"""Golden cases of single-process fits: one table per kind of fit, small data, every training phase and option.

A case is a function without arguments that returns a ``Fitted``. Process groups are in ``tests.golden.process_groups``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

from crisptree import (
    CrispForestClassifier,
    CrispForestRegressor,
    CrispPixelRegressor,
    CrispSegmenter,
    CrispTreeClassifier,
    CrispTreeRegressor,
)
from crisptree.data.batches import Batches
from crisptree.datasets import load_connect4
from tests.encoding.writers import customers
from tests.toys import clouds, connect4_like, ridges

SCHEDULE: dict[str, Any] = {"max_depth": 3, "epochs": 3, "finetune_epochs": 3, "min_updates": 20, "random_state": 0}
"""A short training; model selection stays as it is by default."""

QUICK: dict[str, Any] = {
    **SCHEDULE,
    **{"split": "oblique", "algorithm": "em", "l1": 0.0, "input_noise": 0.0, "scale": "feature", "shrinkage": 0.0},
}
"""A short training without model selection."""

ONE_THREAD: dict[str, Any] = {"device": "cpu", "n_jobs": 1}
RESOLVED: dict[str, Any] = {**QUICK, **ONE_THREAD}
BATCHES_RESOLVED: dict[str, Any] = {**RESOLVED, "algorithm": "likelihood"}
REGRESSION_RESOLVED: dict[str, Any] = {**RESOLVED, "algorithm": "likelihood", "steepness_step": 0.1}
FOREST: dict[str, Any] = {"n_estimators": 3, "max_features": 0.5, "bootstrap": True, "algorithm": "likelihood"}
FOREST_RESOLVED: dict[str, Any] = {name: value for name, value in RESOLVED.items() if name != "shrinkage"} | FOREST

Data = tuple[Any, Any]


class Fitted(NamedTuple):
    """A fitted estimator and the data it is scored on."""

    model: Any
    X: Any
    y: Any


Case = Callable[[], Fitted]


def digits() -> Data:
    X, y = load_digits(return_X_y=True)
    return X[:600], y[:600]


def iris() -> Data:
    return load_iris(return_X_y=True)


def iris_names() -> Data:
    data = load_iris(as_frame=True)
    return data.data, data.target_names[data.target]


def iris_two() -> Data:
    X, y = iris_names()
    return X[y != "setosa"], y[y != "setosa"]


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


def steps() -> Data:
    """A regression target that is constant in four oblique regions, plus noise."""
    return ridges(240)


def two_outputs() -> Data:
    X, y = ridges(240)
    return X, np.stack([y, 100.0 * X[:, 1] - y], axis=1)


def differences() -> Data:
    """Grey images whose pixels are to be regressed on the difference to their left neighbour."""
    images = np.random.default_rng(7).normal(size=(2, 22, 24)).astype(np.float32)
    return images, 10.0 + images - np.roll(images, 1, axis=2)


def colour_differences() -> Data:
    images = np.random.default_rng(8).normal(size=(2, 18, 20, 2)).astype(np.float32)
    left = np.roll(images, 1, axis=2)
    return images, np.stack([images[..., 0] - left[..., 1], images[..., 1] + left[..., 0]], axis=3)


def shop() -> Data:
    """A DataFrame with numbers, text, booleans and missing values; the label is text."""
    frame = customers(160).to_pandas()
    return frame.drop(columns="buys"), frame["buys"]


def shop_amount() -> Data:
    frame = customers(160).to_pandas()
    return frame.drop(columns="buys"), frame["income"] / 1e4 + 2.0 * (frame["buys"] == "yes")


def sparse_rows() -> Data:
    X, y = connect4()
    return sparse.csr_matrix(X), y


def sparse_steps() -> Data:
    X, _ = connect4()
    return sparse.csr_matrix(X), X[:, :20].sum(axis=1) + 3.0 * X[:, 40]


def three_clouds() -> Data:
    return clouds(200)


def soft_labels() -> Data:
    X, y = clouds(200)
    noise = np.random.default_rng(0).dirichlet(np.ones(3), len(y))
    return X, 0.8 * np.eye(3)[y] + 0.2 * noise


class SmallNetwork(torch.nn.Sequential):
    """A user-defined split module."""

    def __init__(self, input_shape: tuple[int, ...]) -> None:
        n_features = int(np.prod(input_shape))
        super().__init__(torch.nn.Flatten(), torch.nn.Linear(n_features, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))


def weights_of(y: Any) -> np.ndarray:
    return np.random.default_rng(len(y)).integers(0, 4, len(y)).astype(float)


def fit(kind: Any, data: Callable[[], Data], parameters: dict[str, Any], *, weighted: bool = False) -> Case:
    """The case of one call of ``fit``."""

    def case() -> Fitted:
        X, y = data()
        weights = {"sample_weight": weights_of(y)} if weighted else {}
        return Fitted(kind.from_flat(**parameters).fit(X, y, **weights), X, y)

    return case


def fitted(data: Callable[[], Data], **changes: Any) -> Case:
    return fit(CrispTreeClassifier, data, RESOLVED | changes)


def weighted(data: Callable[[], Data], **changes: Any) -> Case:
    return fit(CrispTreeClassifier, data, RESOLVED | changes, weighted=True)


def segmented(data: Callable[[], Data], **changes: Any) -> Case:
    return fit(CrispSegmenter, data, RESOLVED | {"window": 5} | changes)


def regressed(data: Callable[[], Data], **changes: Any) -> Case:
    return fit(CrispTreeRegressor, data, REGRESSION_RESOLVED | changes)


def pixels_regressed(data: Callable[[], Data], **changes: Any) -> Case:
    parameters = {name: value for name, value in REGRESSION_RESOLVED.items() if name != "steepness_step"}
    return fit(CrispPixelRegressor, data, parameters | {"window": 3} | changes)


def forest(data: Callable[[], Data], **changes: Any) -> Case:
    return fit(CrispForestClassifier, data, FOREST_RESOLVED | changes)


def regression_forest(data: Callable[[], Data], **changes: Any) -> Case:
    return fit(CrispForestRegressor, data, FOREST_RESOLVED | {"steepness_step": 0.1} | changes)


def grown_on() -> Fitted:
    X, y = digits()
    model = CrispTreeClassifier.from_flat(**RESOLVED, warm_start=True).fit(X, y)
    return Fitted(model.set_params(max_depth=4).fit(X, y), X, y)


def more_trees() -> Fitted:
    X, y = iris()
    model = CrispForestClassifier.from_flat(**FOREST_RESOLVED, warm_start=True).fit(X, y)
    return Fitted(model.set_params(n_estimators=5).fit(X, y), X, y)


def validated() -> Fitted:
    X, y = digits()
    model = CrispTreeClassifier.from_flat(**{**RESOLVED, "early_stopping": True, "algorithm": "likelihood"})
    return Fitted(model.fit(X[:400], y[:400], eval_set=(X[400:], y[400:])), X, y)


def validated_regression() -> Fitted:
    X, y = steps()
    model = CrispTreeRegressor.from_flat(**{**REGRESSION_RESOLVED, "early_stopping": True})
    return Fitted(model.fit(X[:160], y[:160], eval_set=(X[160:], y[160:])), X, y)


def paper() -> Fitted:
    X, y = digits()
    changes = {**ONE_THREAD, "max_depth": 3, "epochs": 4, "finetune_epochs": 4, "random_state": 0}
    return Fitted(CrispTreeClassifier.paper(**changes).fit(X, y), X, y)


def soft() -> Fitted:
    X, P = soft_labels()
    return Fitted(CrispTreeClassifier.from_flat(**RESOLVED).fit(X, P), X, P.argmax(axis=1))


def distilled(**options: Any) -> Case:
    def case() -> Fitted:
        X, y = three_clouds()
        teacher = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X, y)
        return Fitted(CrispTreeClassifier.from_flat(**RESOLVED).distill(teacher, X, copies=1, **options), X, y)

    return case


def distilled_regression() -> Fitted:
    X, y = steps()
    teacher = LinearRegression().fit(X, y)
    return Fitted(CrispTreeRegressor.from_flat(**REGRESSION_RESOLVED).distill(teacher, X, y, copies=1, trust=0.5), X, y)


def in_batches(kind: Any, data: Callable[[], Data], parameters: dict[str, Any], *, weighted: bool = False) -> Case:
    """The case of a fit on batches of 97 rows."""

    def case() -> Fitted:
        X, y = data()
        weights = weights_of(y) if weighted else None
        return Fitted(kind.from_flat(**parameters).fit(Batches.from_arrays(X, y, weights, at_once=97)), X, y)

    return case


def iterated() -> Fitted:
    X, y = digits()

    def batches() -> Iterator[Data]:
        for start in range(0, len(y), 150):
            yield X[start : start + 150], y[start : start + 150]

    return Fitted(CrispTreeClassifier.from_flat(**BATCHES_RESOLVED | {"l2": 1e-3}).fit(batches), X, y)


def updated(kind: Any, data: Callable[[], Data], parameters: dict[str, Any], **options: Any) -> Case:
    """The case of three calls of ``partial_fit`` on a third of the rows each."""

    def case() -> Fitted:
        X, y = data()
        model = kind.from_flat(**parameters)
        first = {"classes": np.unique(y)} if kind is CrispTreeClassifier else {}
        model.partial_fit(X[::3], y[::3], **first)
        for start in (1, 2):
            model.partial_fit(X[start::3], y[start::3], **options)
        return Fitted(model, X, y)

    return case


class Interruption(BaseException):
    """Ends a fit as a signal would."""


def interrupt_after(n_epochs: int) -> Callable[[Any], None]:
    left = [n_epochs]

    def callback(record: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise Interruption

    return callback


def interrupted(model: Any, X: Any, y: Any, folder: Path, n_epochs: int) -> None:
    """Fit with a checkpoint after every epoch, and end after so many epochs."""
    model.set_params(training__callbacks=[interrupt_after(n_epochs)])
    try:
        model.fit(X, y, checkpoint=folder, checkpoint_every=0, resume=True)
    except Interruption:
        return
    raise AssertionError(f"the fit must last longer than {n_epochs} epochs")


def resumed(kind: Any, data: Callable[[], Data], parameters: dict[str, Any], interruptions: tuple[int, ...]) -> Case:
    """The case of a fit that is interrupted after so many epochs, resumed, interrupted again, …"""

    def case() -> Fitted:
        X, y = data()
        with tempfile.TemporaryDirectory() as folder:
            for n_epochs in interruptions:
                interrupted(kind.from_flat(**parameters), X, y, Path(folder) / "checkpoint", n_epochs)
            model = kind.from_flat(**parameters).fit(X, y, checkpoint=Path(folder) / "checkpoint", resume=True)
        return Fitted(model, X, y)

    return case


CLASSIFICATION: dict[str, Case] = {
    "em": fitted(digits),
    "alternating": fitted(digits, algorithm="alternating"),
    "likelihood": fitted(digits, algorithm="likelihood"),
    "balanced": fitted(digits, grow="balanced", algorithm="likelihood"),
    "cart": fitted(digits, grow="cart"),
    "best first": fitted(digits, max_leaf_nodes=7, max_depth=None),
    "growth alone": fitted(digits, finetune_epochs=0),
    "fewest rows of a leaf": fitted(digits, min_samples_leaf=70),
    "fewest rows of a split": fitted(digits, min_samples_split=150),
    "least weight of a leaf": fitted(digits, min_weight_fraction_leaf=0.11),
    "least gain of a split": fitted(digits, min_impurity_decrease=0.15),
    "l1": fitted(digits, l1=1e-2),
    "l2": fitted(digits, l2=1e-2),
    "spatial_penalty": fitted(digits, spatial_penalty=1e-2, image_shape=(8, 8)),
    "geometric, cosine": fitted(digits, annealing="geometric", learning_rate_decay="cosine", steepness=2.0),
    "scaled by one number": fitted(digits, scale="global", leaf_prior=0.5),
    "not scaled, exact": fitted(iris, scale=None, mass_threshold=0.0, learning_rate=0.05),
    "input noise": fitted(digits, input_noise=0.4, algorithm="likelihood"),
    "pruned": fitted(digits, ccp_alpha=0.3),
    "pruned by validation": fitted(iris, ccp_alpha="auto", max_depth=4),
    "shrinkage": fitted(digits, shrinkage=2.0),
    "steepness continued": fitted(iris, finetune_steepness="continue"),
    "few upper levels": fitted(digits, upper_levels=1, max_depth=5),
    "weights": weighted(digits),
    "weights, balanced classes": weighted(iris, class_weight="balanced", algorithm="alternating"),
    "class weights": fitted(iris_names, class_weight={"setosa": 1.0, "versicolor": 4.0, "virginica": 0.5}),
    "early stopping": fitted(digits, early_stopping=True, n_iter_no_change=100),
    "validation rows": validated,
    "warm start": grown_on,
    "paper": paper,
    "soft labels": soft,
    "distilled": distilled(),
    "distilled, soft labels": distilled(labels="soft"),
    "connect-4": fitted(connect4, max_depth=4),
    "connect-4 by likelihood": fitted(connect4, max_depth=4, algorithm="likelihood", l2=1e-3),
    "axis": fitted(iris_names, split="axis"),
    "axis, l1": fitted(iris, split="axis", l1=1e-2, algorithm="likelihood"),
}

CONSTRAINTS: dict[str, Case] = {
    "monotone": fitted(iris_two, monotonic_cst={"petal length (cm)": 1, 1: -1}, algorithm="likelihood"),
    "few features per split": fitted(digits, max_features_per_split=5),
    "interactions": fitted(iris, interaction_cst=[[0, 1], [2, 3]]),
    "all constraints": fitted(iris_two, monotonic_cst={2: 1}, max_features_per_split=1, interaction_cst=[[0], [2]]),
    "monotone regression": regressed(steps, monotonic_cst={0: 1, 1: -1}, max_features_per_split=3),
}

REGRESSION: dict[str, Case] = {
    "regression": regressed(steps),
    "regression, two outputs": regressed(two_outputs),
    "regression, em": regressed(steps, algorithm="em"),
    "regression, best first": regressed(steps, max_leaf_nodes=6, max_depth=None),
    "regression, axis": regressed(steps, split="axis"),
    "regression, cart": regressed(steps, grow="cart"),
    "regression, weights": fit(CrispTreeRegressor, steps, REGRESSION_RESOLVED | {"shrinkage": 1.0}, weighted=True),
    "regression, early stopping": regressed(steps, early_stopping=True, ccp_alpha="auto"),
    "regression, validation rows": validated_regression,
    "regression, distilled": distilled_regression,
}

LINEAR_LEAVES: dict[str, Case] = {
    "linear leaves": fitted(three_clouds, leaf_model="linear", leaf_l2=2.0, algorithm="likelihood", max_depth=2),
    "linear leaves by validation": fitted(iris, leaf_model="linear", algorithm="likelihood", max_depth=2),
    "regression, linear leaves": regressed(steps, leaf_model="linear", leaf_l2=2.0, max_depth=2),
    "regression, linear leaves by validation": regressed(two_outputs, leaf_model="linear", max_depth=2),
}

FORESTS: dict[str, Case] = {
    "forest": forest(digits),
    "forest, em, balanced bootstrap": forest(iris_names, algorithm="em", bootstrap="balanced", class_weight="balanced"),
    "forest, axis": forest(iris, split="axis", max_samples=0.6),
    "forest, linear leaves": forest(three_clouds, leaf_model="linear", leaf_l2=2.0, max_depth=2),
    "forest, warm start": more_trees,
    "forest of a table": forest(shop),
    "forest, sparse": forest(sparse_rows),
    "regression forest": regression_forest(steps),
    "regression forest, two outputs": regression_forest(two_outputs),
    "regression forest, linear leaves": regression_forest(steps, leaf_model="linear", leaf_l2=2.0, max_depth=2),
    "regression forest of a table": regression_forest(shop_amount),
}

TABLES: dict[str, Case] = {
    "table": fitted(shop),
    "table, grouped l1": fitted(shop, l1=1e-2, algorithm="likelihood"),
    "table, axis": fitted(shop, split="axis", class_weight="balanced"),
    "table, linear leaves": fitted(shop, leaf_model="linear", leaf_l2=2.0, algorithm="likelihood", max_depth=2),
    "table, regression": regressed(shop_amount),
    "table, weights": weighted(shop),
}

SPARSE: dict[str, Case] = {
    "sparse": fitted(sparse_rows),
    "sparse, likelihood": fitted(sparse_rows, algorithm="likelihood", l1=1e-3, l2=1e-3, input_noise=0.3),
    "sparse, regression": regressed(sparse_steps),
    "sparse, early stopping": fitted(sparse_rows, early_stopping=True),
}

IMAGES: dict[str, Case] = {
    "conv": fitted(small_images, split="conv", max_depth=2, min_updates=4, batch_size=64),
    "own modules": fitted(small_images, split=SmallNetwork, max_depth=2, l2=1e-3, algorithm="alternating"),
    "shifted images": fitted(small_images, max_shift=1, scale="global", algorithm="likelihood"),
    "regression, own modules": regressed(steps, split=SmallNetwork, max_depth=2),
    "windows": segmented(cells),
    "windows, a share of the pixels": segmented(cells, pixels_per_epoch=300, spatial_penalty=1e-3),
    "windows, two scales, normalised": segmented(colour_cells, scales=(1, 2), normalise_images=True),
    "windows, two stages": segmented(colour_cells, stages=2, algorithm="likelihood"),
    "windows, early stopping": segmented(
        colour_cells, early_stopping=True, n_iter_no_change=100, class_weight="balanced"
    ),
    "windows, conv": segmented(cells, split="conv", window=17, max_depth=1, min_updates=2, pixels_per_epoch=200),
    "pixel regression": pixels_regressed(differences),
    "pixel regression, two outputs": pixels_regressed(colour_differences),
    "pixel regression, two stages": pixels_regressed(differences, stages=2, scales=(1, 2), normalise_images=True),
}

BATCHES: dict[str, Case] = {
    "batches": in_batches(CrispTreeClassifier, digits, BATCHES_RESOLVED),
    "batches, weights": in_batches(CrispTreeClassifier, iris, BATCHES_RESOLVED, weighted=True),
    "batches, l1, balanced classes": in_batches(
        CrispTreeClassifier, digits, BATCHES_RESOLVED | {"l1": 1e-3, "class_weight": "balanced"}
    ),
    "batches of an iterable": iterated,
    "batches, regression": in_batches(CrispTreeRegressor, steps, REGRESSION_RESOLVED),
    "batches, regression, two outputs": in_batches(CrispTreeRegressor, two_outputs, REGRESSION_RESOLVED),
}

UPDATES: dict[str, Case] = {
    "partial_fit": updated(CrispTreeClassifier, iris, RESOLVED),
    "partial_fit, memory": updated(CrispTreeClassifier, digits, RESOLVED | {"max_depth": 4}, decay=0.5),
    "partial_fit, regression": updated(CrispTreeRegressor, steps, REGRESSION_RESOLVED),
}

CHECKPOINTS: dict[str, Case] = {
    "likelihood": resumed(CrispTreeClassifier, digits, RESOLVED | {"algorithm": "likelihood"}, (2, 7, 11)),
    "early stopping": resumed(
        CrispTreeClassifier, digits, RESOLVED | {"early_stopping": True, "n_iter_no_change": 100}, (4, 11)
    ),
    "regression": resumed(CrispTreeRegressor, steps, REGRESSION_RESOLVED, (5,)),
    "forest": resumed(CrispForestClassifier, digits, FOREST_RESOLVED, (3, 8)),
    "windows, two stages": resumed(
        CrispSegmenter, colour_cells, RESOLVED | {"window": 5, "stages": 2, "algorithm": "likelihood"}, (6, 15)
    ),
}
"""By the case that they must equal to the bit."""

SELECTION: dict[str, Case] = {
    "selected": fit(CrispTreeClassifier, iris, SCHEDULE | ONE_THREAD),
    "selected, table": fit(CrispTreeClassifier, shop, SCHEDULE | ONE_THREAD),
    "selected, linear leaves": fit(
        CrispTreeClassifier, three_clouds, SCHEDULE | ONE_THREAD | {"leaf_model": "linear", "max_depth": 2}
    ),
    "selected, regression": fit(CrispTreeRegressor, steps, SCHEDULE | ONE_THREAD),
    "selected, batches": in_batches(CrispTreeClassifier, iris, SCHEDULE | ONE_THREAD | {"split": "oblique"}),
    "selected, forest": fit(CrispForestClassifier, iris, SCHEDULE | ONE_THREAD | {"n_estimators": 3}),
    "selected, regression forest": fit(CrispForestRegressor, steps, SCHEDULE | ONE_THREAD | {"n_estimators": 3}),
}

FITS: dict[str, Case] = {
    **CLASSIFICATION,
    **CONSTRAINTS,
    **REGRESSION,
    **LINEAR_LEAVES,
    **FORESTS,
    **TABLES,
    **SPARSE,
    **IMAGES,
    **BATCHES,
    **UPDATES,
    **SELECTION,
}

SLOW_FITS: dict[str, Case] = {
    "defaults": fit(CrispTreeClassifier, iris, ONE_THREAD | {"random_state": 0}),
    "defaults, table": fit(CrispTreeClassifier, shop, ONE_THREAD | {"random_state": 0}),
    "defaults, regression": fit(CrispTreeRegressor, steps, ONE_THREAD | {"random_state": 0}),
    "defaults, forest": fit(CrispForestClassifier, iris, ONE_THREAD | {"random_state": 0}),
    "defaults, regression forest": fit(CrispForestRegressor, steps, ONE_THREAD | {"random_state": 0}),
    "defaults, segmenter": fit(CrispSegmenter, cells, ONE_THREAD | {"random_state": 0}),
    "defaults, pixel regression": fit(CrispPixelRegressor, differences, ONE_THREAD | {"random_state": 0}),
}
"""Every parameter at its default; minutes."""

REAL_FITS: dict[str, Case] = {
    "connect-4, real rows": fitted(real_connect4, max_depth=5),
    "connect-4, real rows by likelihood": fitted(real_connect4, max_depth=5, algorithm="likelihood", l1=1e-4),
}
"""Those that need files which are not in the repository."""
