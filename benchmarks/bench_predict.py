"""How fast prediction is: against others on the same rows, and as rows, features and depth grow.

    make bench-predict

Uses MNIST where CRISPTREE_DATA names a folder with mnist.npz, else random rows of the same shape. neural-trees,
obliquetree, ydf and lightgbm take part where they are installed.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier
from timing import medians, table

from crisptree import CrispTreeClassifier
from crisptree.inference import FlatTree, compiled
from crisptree.inference.statistics import unsettled
from crisptree.native import router
from crisptree.scaling import Scaling
from crisptree.structure import TreeStructure

DEPTH = 8


def rows() -> tuple[str, np.ndarray, np.ndarray, np.ndarray]:
    """Training rows and labels, and 10,000 × 784 float32 rows to predict."""
    folder = os.environ.get("CRISPTREE_DATA")
    if folder:
        with np.load(Path(folder) / "mnist.npz") as data:
            X, X_test = (data[name].reshape(-1, 784).astype(np.float32) for name in ("X_train", "X_test"))
            return "MNIST", X[:20_000], data["y_train"][:20_000], X_test
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 784)).astype(np.float32)
    y = (X[:, :10] + rng.normal(size=(20_000, 10))).argmax(axis=1)
    return "random rows", X, y, rng.normal(size=(10_000, 784)).astype(np.float32)


def random_tree(depth: int, n_features: int) -> FlatTree:
    rng = np.random.default_rng(0)
    structure = TreeStructure.balanced(depth)
    weight = rng.normal(size=(structure.n_splits, n_features)).astype(np.float32)
    leaves = np.full((structure.n_leaves, 10), 0.1)
    statistics = unsettled(structure, Scaling.none(n_features), leaves, 1.0)
    return FlatTree(structure, leaves, statistics, weight=weight, bias=np.zeros(structure.n_splits, dtype=np.float32))


def others(X: np.ndarray, y: np.ndarray) -> dict[str, Callable[[np.ndarray], Any]]:
    """Fitted predictors of the other packages; training is kept short, for only prediction is timed."""
    found: dict[str, Callable[[np.ndarray], Any]] = {}

    def neural_trees() -> Callable[[np.ndarray], Any]:
        from neural_trees import SoftDecisionTree

        return SoftDecisionTree(depth=DEPTH, max_epochs=1, batch_size=1000).fit(X, y).to_hard_tree().predict

    def obliquetree() -> Callable[[np.ndarray], Any]:
        from obliquetree import Classifier

        model = Classifier(max_depth=DEPTH, random_state=0)
        model.fit(X[:3000].astype(np.float64), y[:3000])
        return model.predict

    def ydf() -> Callable[[np.ndarray], Any]:
        import ydf as package

        package.verbose(0)
        learner = package.CartLearner(label="y", max_depth=DEPTH + 1, split_axis="SPARSE_OBLIQUE")
        model = learner.train({"x": X[:3000], "y": y[:3000]})
        return lambda rows: model.predict({"x": rows})

    def lightgbm() -> Callable[[np.ndarray], Any]:
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=100, max_depth=DEPTH, verbose=-1).fit(X[:3000], y[:3000]).predict

    for name, build in {
        "neural-trees, hard": neural_trees,
        "obliquetree": obliquetree,
        "ydf CART sparse oblique": ydf,
        "lightgbm, 100 rounds": lightgbm,
    }.items():
        try:
            found[name] = build()
        except ImportError as error:
            print(f"({name}: not installed: {error.name})")
    return found


def against_others() -> None:
    name, X, y, X_test = rows()
    crisp = CrispTreeClassifier(max_depth=DEPTH, epochs=10, finetune_epochs=5, min_updates=0, random_state=0).fit(X, y)
    plain = DecisionTreeClassifier(max_depth=DEPTH, random_state=0).fit(X, y)
    tree = crisp.tree_
    assert isinstance(tree, FlatTree)
    predictors = {
        "crisptree": crisp.predict,
        "scikit-learn, axis-aligned": plain.predict,
        "all splits as a matrix product": lambda rows: rows @ tree.weight.T + tree.bias,
        **others(X, y),
    }
    path = np.asarray(crisp.decision_path(X_test).sum(axis=1)).mean() - 1
    print(f"## {name}, 10,000 × 784 float32, depth {DEPTH} ({tree.structure.n_splits} splits, mean path {path:.2f})\n")
    one = X_test[:1].copy()
    calls = {key: lambda call=call: call(X_test) for key, call in predictors.items()}
    many, spent = medians(calls), medians(calls, rounds=15, clock=time.process_time)
    single = medians({key: lambda call=call: call(one) for key, call in predictors.items()}, rounds=25, repeat=20)
    base_many, base_spent, base_one = (found["scikit-learn, axis-aligned"] for found in (many, spent, single))
    lines = [
        [
            key,
            f"{many[key] / base_many:.2f}",
            f"{spent[key] / base_spent:.2f}",
            f"{single[key] / base_one:.3f}",
            f"{1e6 * single[key]:.1f}",
        ]
        for key in predictors
    ]
    header = ["", "10,000 rows, ratio to scikit-learn", "the same in processor time"]
    print(table([*header, "one row, ratio to scikit-learn", "one row, µs"], lines))
    ratio = many["all splits as a matrix product"] / many["crisptree"]
    print(f"The matrix product of all splits takes {ratio:.1f} × as long as crisptree's path.\n")
    bare(tree, one, X_test)


def full_leaves() -> None:
    """256 leaves that all have rows: a complete tree of random hyperplanes on random rows, of every type of number."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 784)).astype(np.float32)
    y = rng.integers(0, 10, len(X))
    model = CrispTreeClassifier()
    model.tree_ = random_tree(DEPTH, 784)
    model.classes_, model.n_features_in_ = np.arange(10), 784
    plain = DecisionTreeClassifier(max_depth=DEPTH, random_state=0).fit(X, y)
    wide, half, small = X.astype(np.float64), X.astype(np.float16), rng.integers(0, 256, X.shape, dtype=np.uint8)
    calls = {
        "scikit-learn, axis-aligned": lambda: plain.predict(X),
        "crisptree": lambda: model.predict(X),
        "crisptree, float64": lambda: model.predict(wide),
        "crisptree, float16": lambda: model.predict(half),
        "scikit-learn, uint8": lambda: plain.predict(small),
        "crisptree, uint8": lambda: model.predict(small),
    }
    assert len(np.unique(model.apply(X))) > 200
    seconds, spent = medians(calls), medians(calls, rounds=15, clock=time.process_time)
    base, base_spent = (found["scikit-learn, axis-aligned"] for found in (seconds, spent))
    print(f"## Random rows, 10,000 × 784, depth {DEPTH}, 256 full leaves\n")
    lines = [[name, f"{value / base:.2f}", f"{spent[name] / base_spent:.2f}"] for name, value in seconds.items()]
    print(table(["", "ratio to scikit-learn on float32", "the same in processor time"], lines))


def bare(tree: FlatTree, one: np.ndarray, many: np.ndarray) -> None:
    """The kernel alone on one row, beside what its dot products take when they stand in a row of many."""
    assert router is not None
    kernel, leaf, leaves = compiled.prepared(tree), np.empty(1, dtype=np.int64), np.empty(len(many), dtype=np.int64)
    times = medians({"one": lambda: kernel.route(one, leaf, 1, True)}, rounds=25, repeat=200)
    per_row = medians({"many": lambda: kernel.route(many, leaves, 1, True)}, rounds=15)["many"] / len(many)
    print(
        f"Bare kernel on one row: {1e6 * times['one']:.2f} µs, of which its dot products take {1e6 * per_row:.2f} µs.\n"
    )
    sets = medians(
        {name: lambda name=name: kernel.route(many, leaves, 2, True, name) for name in router.instruction_sets()},
        rounds=11,
    )
    widest = min(sets.values())
    print(
        table(
            ["instruction set", "10,000 rows, ratio to the quickest"],
            [[k, f"{v / widest:.2f}"] for k, v in sets.items()],
        )
    )


def growth() -> None:
    """Time as one size grows and the others stay, relative to the first."""
    rng = np.random.default_rng(0)
    sweeps: list[tuple[str, list[tuple[int, int, int]], int]] = [
        ("rows (784 features, depth 8)", [(n, 784, 8) for n in (1, 10, 100, 1000, 10_000)], 0),
        ("features (10,000 rows, depth 8)", [(10_000, p, 8) for p in (16, 64, 256, 784, 4096)], 1),
        ("depth (10,000 rows, 64 features)", [(10_000, 64, d) for d in (2, 4, 8, 12, 16)], 2),
    ]
    for title, sizes, place in sweeps:
        calls = {}
        for n, p, depth in sizes:
            tree, X = random_tree(depth, p), rng.normal(size=(n, p)).astype(np.float32)
            compiled.prepared(tree)
            calls[str((n, p, depth)[place])] = lambda tree=tree, X=X: compiled.route_rows(tree, X, check_finite=True)
        seconds = medians(calls, rounds=15)
        first = next(iter(seconds.values()))
        lines = [
            [key, f"{value / first:.1f}", f"{value / first / (float(key) / float(next(iter(seconds)))):.2f}"]
            for key, value in seconds.items()
        ]
        print(f"## Time as {title} grow\n")
        print(table([title.split(" (")[0], "time, ratio to the first", "the same per unit"], lines))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    against_others()
    full_leaves()
    growth()
