"""Cases of distributed fits: the rows of each process, and the estimator."""

import hashlib

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_iris

from crisptree import CrispForestClassifier, CrispForestRegressor, CrispTreeClassifier, CrispTreeRegressor

QUICK = {"split": "oblique", "max_depth": 3, "epochs": 3, "finetune_epochs": 3, "min_updates": 12, "batch_size": 40}
PLAIN = {"l1": 0.0, "input_noise": 0.3, "shrinkage": 0.0, "random_state": 0}


def halves(n, rank, size):
    """Parts of nearly one size."""
    return slice(n * rank // size, n * (rank + 1) // size)


def lopsided(n, rank, size):
    """The first process has a tenth, the others share the rest."""
    ends = [0, n // 10, *(n // 10 + (n - n // 10) * other // max(size - 1, 1) for other in range(1, size))]
    return slice(ends[rank], n if rank == size - 1 else ends[rank + 1])


def only_the_last(n, rank, size):
    """All others are without rows."""
    return slice(0, n if rank == size - 1 else 0)


CASES = {
    "level by level": (halves, {}, {}),
    "best first, em": (lopsided, {"max_leaf_nodes": 5, "max_depth": None, "algorithm": "em"}, {}),
    "alternating, validation": (
        only_the_last,
        {"algorithm": "alternating", "early_stopping": True},
        {"shards": 3, "validation": True},
    ),
    "weights and early stopping": (
        lopsided,
        {"class_weight": "balanced", "early_stopping": True, "l2": 0.01, "l1": 0.002, "validation_fraction": 0.3},
        {"weights": True},
    ),
    "numbers": (lopsided, {"max_depth": 2, "early_stopping": True}, {"numbers": True}),
    "stopped early, fractions": (
        halves,
        {"early_stopping": True, "n_iter_no_change": 2, "finetune_epochs": 12, "min_samples_leaf": 0.1},
        {},
    ),
    "constrained weights, pruned": (
        halves,
        {"max_features_per_split": 2, "ccp_alpha": "auto", "max_depth": 2},
        {},
    ),
    "thresholds": (lopsided, {"split": "axis"}, {"weights": True}),
    "thresholds, trained on": (halves, {"split": "axis", "grow": "cart", "early_stopping": True}, {}),
    "linear leaves": (lopsided, {"leaf_model": "linear", "leaf_l2": 1.0}, {"bent": True, "weights": True}),
    "linear leaves of classes": (only_the_last, {"leaf_model": "linear", "leaf_l2": 1.0, "max_depth": 2}, {}),
    "linear leaves below thresholds": (
        halves,
        {"split": "axis", "grow": "cart", "leaf_model": "branch_linear", "leaf_l2": "auto"},
        {"bent": True},
    ),
}
"""By name: who has which rows, parameters, and what else ``fit`` is given. Iris is sorted, so that processes have
different classes."""


def rows(name, rank=0, size=1):
    """X, y and what else the process's fit is given."""
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    divide, _, more = CASES[name]
    part = divide(len(y), rank, size)
    given = {key: value for key, value in more.items() if key == "shards"}
    if more.get("weights"):
        given["sample_weight"] = np.random.default_rng(0).choice([0.0, 0.3, 1.0, 7.7], len(y))[part]
    if more.get("validation"):
        odd = halves(len(y[1::2]), rank, size)
        given["eval_set"] = X[1::2][odd], names[y[1::2]][odd]
    if more.get("numbers") or more.get("bent"):
        bend = 3.0 * np.abs(X[part, 2] - 4.0) if more.get("bent") else 0.0
        return X[part], 5.0 + X[part] @ [1.0, 0.0, 2.0, -0.5] + bend, given
    return X[part], names[y[part]], given


def fit_case(name, rank=0, size=1, **more):
    """The fit of a case, by one of the processes."""
    X, y, given = rows(name, rank, size)
    is_regression = {"numbers", "bent"} & set(CASES[name][2])
    kind = CrispTreeRegressor if is_regression else CrispTreeClassifier
    return kind.from_flat(**QUICK | PLAIN | CASES[name][1]).fit(X, y, **given | more)


FORESTS = {
    "default forest": (halves, CrispForestClassifier(n_estimators=5, random_state=0)),
    "forest of a table": (lopsided, CrispForestClassifier(n_estimators=4, split="axis", random_state=1)),
    "regression forest": (halves, CrispForestRegressor(n_estimators=5, max_depth=3, random_state=2)),
}
"""By name: who has which rows, and an unfitted forest."""


def fit_forest(name, rank=0, size=1):
    """The fit of a forest by one of the processes, on a table with text where it is one of thresholds."""
    divide, forest = FORESTS[name]
    X, y = load_iris(return_X_y=True, as_frame=True)
    if "table" in name:
        X = X.assign(size=np.where(X["petal width (cm)"] > 1, "wide", "small"))
    part = divide(len(y), rank, size)
    weights = {"sample_weight": np.random.default_rng(0).integers(0, 3, len(y))[part]} if "default" in name else {}
    return clone(forest).fit(X.iloc[part], y.iloc[part], **weights)


def digest_forest(forest):
    """A checksum of the trees of a forest, its out-of-bag score and its samples."""
    found = hashlib.sha256(repr([forest.oob_score_, len(forest), forest.best_params_]).encode())
    for tree, rows in zip(forest.forest_, forest.estimators_samples_, strict=True):
        for array in (tree.weight, tree.bias, tree.leaves, tree.structure.left, tree.statistics.node_counts, rows):
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def digest(model):
    """A checksum of all that a fit has learned."""
    known = [model.n_outputs_] if isinstance(model, CrispTreeRegressor) else model.classes_.tolist()
    found = hashlib.sha256(str(known).encode())
    for tree in (model.greedy_tree_, model.tree_):
        statistics = tree.statistics
        arrays = (tree.weight, tree.bias, tree.leaves, tree.structure.left, tree.structure.right)
        arrays += (statistics.node_counts, statistics.gain, statistics.score_mean, statistics.score_spread)
        arrays += (statistics.soft_leaves, statistics.scaling.center, statistics.scaling.factor)
        arrays += (statistics.lowest, statistics.highest, statistics.whole)
        arrays += (tree.linear_weight, tree.linear_bias, tree.linear_variance)
        for array in filter(lambda one: one is not None, arrays):
            found.update(np.ascontiguousarray(array).tobytes())
    history = [(record.loss, record.validation_score, record.phase, record.level) for record in model.history_]
    found.update(repr([history, getattr(model, "best_iteration_", None)]).encode())
    return found.hexdigest()
