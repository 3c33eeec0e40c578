"""Accuracy by the number of terms per split on MNIST at depth 8, and the time of counterfactuals.

CRISPTREE_DATA=/folder/with/mnist.npz python benchmarks/bench_simplify.py
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from timing import table

from crisptree import CrispTreeClassifier, TrainingOptions, explain
from crisptree.inspection.counterfactual_search import CounterfactualSearch

TERMS = (50, 20, 10)
SEARCHES = 200


def main() -> None:
    with np.load(Path(os.environ["CRISPTREE_DATA"]) / "mnist.npz") as data:
        X, X_test = (data[name].reshape(-1, 784).astype(np.float32) for name in ("X_train", "X_test"))
        y, y_test = data["y_train"], data["y_test"]
    train, held = (X[:50_000], y[:50_000]), (X[50_000:], y[50_000:])
    model = CrispTreeClassifier(
        split="oblique",
        training=TrainingOptions(
            algorithm="em",
            epochs=5,
            finetune_epochs=10,
            batch_size=1000,
            learning_rate=0.005,
            learning_rate_decay="none",
            scale="global",
        ),
        l1=0.0,
        input_noise=0.0,
        shrinkage=0.0,
        random_state=0,
        n_jobs=-1,
    ).fit(*train)
    lines = [line("all", model, held, (X_test, y_test))]
    small = model
    for terms in TERMS:
        small = small.simplify(*train, max_terms=terms, eval_set=held)
        lines.append(line(f"at most {terms}", small, held, (X_test, y_test)))
        print(lines[-1], flush=True)
        if terms == 20:
            fewer = small.simplify(*train, max_terms=terms, tolerance=0.01, eval_set=held)
            lines.append(line("... and tolerance=0.01", fewer, held, (X_test, y_test)))
            print(lines[-1], flush=True)
    print(table(["terms of a split", "held-out %", "test %", "splits", "weights", "not zero"], lines))
    nearest(model, X_test)


def line(name: str, model: CrispTreeClassifier, held: tuple, test: tuple) -> list[str]:
    weights = np.count_nonzero(model.tree_.weight)
    scores = (f"{100 * model.score(*rows):.2f}" for rows in (held, test))
    share = f"{weights / model.tree_.weight.size:.1%}"
    return [name, *scores, str(model.tree_.structure.n_splits), f"{weights:,}", share]


def nearest(model: CrispTreeClassifier, X: np.ndarray) -> None:
    tree, rows = model.tree_, X[:SEARCHES]
    seconds = {}
    for name, call in (
        ("predict", lambda row: model.predict(row[None])),
        ("nearest", lambda row: explain.find_counterfactual(model, row)),
    ):
        spent = []
        for row in rows:
            started = time.perf_counter()
            call(row)
            spent.append(time.perf_counter() - started)
        seconds[name] = float(np.median(spent))
    solved = []
    for row, leaf in zip(rows, model.leaf_indices(rows), strict=True):
        search = CounterfactualSearch(tree, row, tree.labels() != tree.labels(leaf))
        next(search.iterate_rows())
        solved.append(search.n_programs)
    print(
        f"find_counterfactual: {seconds['nearest'] / seconds['predict']:.0f} times predicting one row; programs "
        f"solved: mean {np.mean(solved):.1f}, most {max(solved)}, of {tree.structure.n_leaves} leaves"
    )


if __name__ == "__main__":
    main()
