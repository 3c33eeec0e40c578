"""Accuracy of linear leaves beside constant ones, a logistic regression and a forest.

    python -m benchmarks.bench_linear_leaves                    # minutes on two cores
    python -m benchmarks.bench_linear_leaves --rows 16000

"letters" is a made table of 26 classes, three clouds each, in 16 features; "digits" are scikit-learn's 8 × 8 images.
All trees are oblique with input noise 0.3 and no other choice, so that only the leaves differ; "once" fits the same
models to the finetuned tree of constant leaves, "in turn" trains them with the splits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crisptree import CrispTreeClassifier
from crisptree.learning.linear_leaves import with_models
from crisptree.learning.problem import Part, Problem
from crisptree.targets import Classes

PLAIN: dict[str, Any] = {"split": "oblique", "l1": 0.0, "input_noise": 0.3, "shrinkage": 0.0, "scale": "feature"}


def tables(n_rows: int) -> Iterator[tuple[str, Any, Any]]:
    """Names, rows and classes."""
    made = {"n_informative": 14, "n_redundant": 2, "n_classes": 26, "n_clusters_per_class": 3, "class_sep": 2.5}
    yield "letters", *make_classification(n_rows, 16, random_state=0, **made)
    yield "digits", *load_digits(return_X_y=True)


def models(seed: int, penalty: float, depths: list[int]) -> Iterator[tuple[str, Any]]:
    """What is compared, by name."""
    common = {**PLAIN, "random_state": seed, "n_jobs": 1}
    yield "constant leaves, depth 10", CrispTreeClassifier(max_depth=10, **common)
    for depth in depths:
        linear = {"leaves": "linear", "leaf_penalty": penalty}
        yield f"linear leaves in turn, depth {depth}", CrispTreeClassifier(max_depth=depth, **linear, **common)
    yield "logistic regression", make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    yield "forest of 100", RandomForestClassifier(random_state=seed)


def once(depth: int, penalty: float, seed: int, X: Any, y: Any) -> CrispTreeClassifier:
    """Models fitted to a tree that was trained without them."""
    model = CrispTreeClassifier(max_depth=depth, **PLAIN, random_state=seed, n_jobs=1).fit(X, y)
    part = Part(X, y.astype(np.int64), np.ones(len(y)))
    problem = Problem(part, model.tree_.statistics.scaling, Classes(len(model.classes_)))
    model.tree_ = with_models(model.tree_, problem, penalty, 1)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--penalty", type=float, default=10.0)
    parser.add_argument("--depths", nargs="*", type=int, default=[3, 5, 7])
    parser.add_argument("--only", nargs="*")
    arguments = parser.parse_args()
    for name, X, y in tables(arguments.rows):
        if arguments.only and name not in arguments.only:
            continue
        X, X_test, y, y_test = train_test_split(X.astype(np.float32), y, test_size=0.4, random_state=0)
        print(f"{name}, {len(X):,} rows to train on")
        last = arguments.depths[-1]
        for title, model in models(0, arguments.penalty, arguments.depths):
            begun = time.perf_counter()
            model.fit(X, y)
            print(
                f"| {title} | {100 * model.score(X_test, y_test):.1f} | {time.perf_counter() - begun:.0f} s |",
                flush=True,
            )
        fitted = once(last, arguments.penalty, 0, X, y)
        print(f"| linear leaves once, depth {last} | {100 * fitted.score(X_test, y_test):.1f} | |", flush=True)


if __name__ == "__main__":
    main()
