"""Readable trees beside default trees and CART of as many leaves: test scores on real tables.

    CRISPTREE_DATA=/folder/of/data python -m benchmarks.bench_readable --jobs 16            # all tables, seed 0
    python -m benchmarks.bench_readable --data tables.zip --tables glass,cmc --seeds 0,1    # some of them

A table and seed is one task of one process, so that results do not depend on ``--jobs``. CART is tuned over
``max_leaf_nodes`` up to the readable tree's limit, ``min_samples_leaf`` and ``ccp_alpha`` by cross-validation.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.bench_tables import fit_and_score
from benchmarks.real_tables import CLASSIFICATION, Table, find_source, read_tables, split_rows
from benchmarks.table_models import make_tree
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

from crisptree import CrispTreeClassifier, CrispTreeRegressor
from crisptree.parameters.estimators import READABLE

MAX_LEAVES = READABLE["max_leaf_nodes"]
GRID = {
    "max_leaf_nodes": list(range(2, MAX_LEAVES + 1)),
    "min_samples_leaf": [1, 5, 20],
    "ccp_alpha": [0.0, 1e-3, 1e-2],
}
POINT = 0.01
MODELS = ("default", "readable", "cart")


class Scores(NamedTuple):
    """Test results of the three models on one table and seed, by the names of ``MODELS``."""

    table: str
    task: str
    seed: int
    results: dict[str, dict[str, float]]

    def score(self, model: str) -> float:
        """Accuracy or R² on the test rows."""
        result = self.results[model]
        return result["accuracy" if self.task == CLASSIFICATION else "r2"]


def make_cart(task: str, seed: int) -> Any:
    """CART of at most as many leaves; y of a regression is standardised, as ccp_alpha has its unit."""
    if task == CLASSIFICATION:
        return GridSearchCV(DecisionTreeClassifier(random_state=seed), GRID, cv=5)
    grid = {f"regressor__{name}": values for name, values in GRID.items()}
    tree = DecisionTreeRegressor(random_state=seed)
    return GridSearchCV(TransformedTargetRegressor(tree, transformer=StandardScaler()), grid, cv=5)


def measure(table: Table, seed: int) -> Scores:
    """Fit the three models to one split of a table."""
    split, kind = split_rows(table, seed), CrispTreeClassifier if table.task == CLASSIFICATION else CrispTreeRegressor
    models = {
        "default": make_tree(table.task, seed, 1),
        "readable": kind.readable(random_state=seed, device="cpu"),
        "cart": make_cart(table.task, seed),
    }
    with threadpool_limits(1):
        results = {name: fit_and_score(model, table.task, split) for name, model in models.items()}
    tree = models["readable"]
    results["readable"] |= {
        "leaves": tree.get_n_leaves(),
        "terms": int((tree.tree_.weight != 0).sum(axis=1).max(initial=0)),
    }
    return Scores(table.name, table.task, seed, results)


def print_table(scores: Scores) -> None:
    values = [f"{scores.score(model):7.4f}" for model in MODELS]
    losses = [f"{scores.results[model].get('log_loss', np.nan):6.3f}" for model in MODELS]
    size = "{leaves} leaves, {terms} terms".format(**scores.results["readable"])
    print(f"{scores.table:28s}{scores.seed:3d} {' '.join(values)}  loss {' '.join(losses)}  {size}", flush=True)


def print_summary(results: list[Scores]) -> None:
    """Print the means over all tables and how many tables lose less than a point, by the mean over the seeds."""
    tables = sorted({scores.table for scores in results})
    means = {
        (table, model): float(np.mean([scores.score(model) for scores in results if scores.table == table]))
        for table in tables
        for model in MODELS
    }
    near = [table for table in tables if means[table, "readable"] >= means[table, "default"] - POINT]
    above = [table for table in tables if means[table, "readable"] > means[table, "cart"]]
    print(f"within 1 point of the default tree: {len(near)} of {len(tables)} tables")
    print(f"above CART of at most {MAX_LEAVES} leaves: {len(above)} of {len(tables)} tables")
    for task in sorted({scores.task for scores in results}):
        own = {scores.table for scores in results if scores.task == task}
        mean = {model: np.mean([means[table, model] for table in own]) for model in MODELS}
        print(f"mean, {task}: " + ", ".join(f"{model} {value:.4f}" for model, value in mean.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="zip file or folder of tables; see real_tables.py")
    parser.add_argument("--tables", type=lambda text: tuple(text.split(",")), default=())
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[0])
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    tables = sorted(read_tables(options.data or find_source(), options.tables), key=lambda table: -table.X.size)
    tasks = [(table, seed) for table in tables for seed in options.seeds]
    results = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for scores in pool.map(measure, *zip(*tasks, strict=True)):
            print_table(scores)
            results.append(scores)
    print_summary(results)


if __name__ == "__main__":
    main()
