"""Readable trees beside default trees and CART of as many leaves: test scores on real tables.

    CRISPTREE_DATA=/folder/of/data python -m benchmarks.bench_readable --jobs 16            # all tables, seeds 0 to 2
    python -m benchmarks.bench_readable --data tables.zip --tables glass,cmc --seeds 0,1    # some of them
    python -m benchmarks.bench_readable --page                                              # only the page

Records are in ``build/readable.jsonl``; what is there is not fitted again.

A table and seed is one task of one process, so that results do not depend on ``--jobs``. CART is tuned over
``max_leaf_nodes`` up to the readable tree's limit, ``min_samples_leaf`` and ``ccp_alpha`` by cross-validation.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.bench_tables import fit_and_score
from benchmarks.real_tables import CLASSIFICATION, Table, find_source, read_tables, split_rows
from benchmarks.table_models import make_tree
from benchmarks.tables_page import wrap
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
ROOT = Path(__file__).parents[1]
RECORDS, PAGE = ROOT / "build" / "readable.jsonl", ROOT / "docs" / "results" / "readable-trees.md"
POINT = 0.01
MODELS = ("default", "readable", "cart")


class Scores(NamedTuple):
    """Test results of the three models on one table and seed, by the names of ``MODELS``."""

    table: str
    task: str
    seed: int
    n_rows: int
    reachable: float
    """Share of the rows of the ``MAX_LEAVES`` largest classes, which no tree of so many leaves exceeds; 1 for R²."""
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
    return Scores(table.name, table.task, seed, len(table.y), bound_accuracy(table), results)


def bound_accuracy(table: Table) -> float:
    """Return the accuracy that no tree of ``MAX_LEAVES`` leaves exceeds on the whole table."""
    if table.task != CLASSIFICATION:
        return 1.0
    return sum(count for _, count in Counter(table.y.tolist()).most_common(MAX_LEAVES)) / len(table.y)


def print_table(scores: Scores) -> None:
    values = [f"{scores.score(model):7.4f}" for model in MODELS]
    losses = [f"{scores.results[model].get('log_loss', np.nan):6.3f}" for model in MODELS]
    size = "{leaves} leaves, {terms} terms".format(**scores.results["readable"])
    print(f"{scores.table:28s}{scores.seed:3d} {' '.join(values)}  loss {' '.join(losses)}  {size}", flush=True)


class TableScores(NamedTuple):
    """Mean scores of the three models on one table, over its seeds."""

    table: str
    task: str
    n_rows: int
    reachable: float
    scores: dict[str, float]
    leaves: float
    spread: float
    """Standard deviation of the difference of the readable to the default tree over the seeds; 0 for one seed."""

    @property
    def difference(self) -> float:
        return self.scores["readable"] - self.scores["default"]


def average_seeds(results: list[Scores]) -> list[TableScores]:
    """Average the scores of every table over its seeds."""
    tables = []
    for name in sorted({scores.table for scores in results}):
        own = [scores for scores in results if scores.table == name]
        means = {model: float(np.mean([scores.score(model) for scores in own])) for model in MODELS}
        leaves = float(np.mean([scores.results["readable"]["leaves"] for scores in own]))
        differences = [scores.score("readable") - scores.score("default") for scores in own]
        spread = float(np.std(differences, ddof=1)) if len(own) > 1 else 0.0
        tables.append(TableScores(name, own[0].task, own[0].n_rows, own[0].reachable, means, leaves, spread))
    return tables


def count_near(tables: list[TableScores]) -> int:
    return sum(one.difference >= -POINT for one in tables)


def count_above(tables: list[TableScores]) -> int:
    return sum(one.scores["readable"] > one.scores["cart"] for one in tables)


def print_summary(results: list[Scores]) -> None:
    """Print the means over all tables and how many tables lose less than a point, by the mean over the seeds."""
    tables = average_seeds(results)
    print(f"within 1 point of the default tree: {count_near(tables)} of {len(tables)} tables")
    print(f"above CART of at most {MAX_LEAVES} leaves: {count_above(tables)} of {len(tables)} tables")
    for task in sorted({one.task for one in tables}):
        mean = {model: np.mean([one.scores[model] for one in tables if one.task == task]) for model in MODELS}
        print(f"mean, {task}: " + ", ".join(f"{model} {value:.4f}" for model, value in mean.items()))


def write_page(results: list[Scores], remark: str | None = None, page: Path = PAGE) -> None:
    """Write the page of results from all records."""
    tables = average_seeds(results)
    seeds = sorted({scores.seed for scores in results})
    means = {
        task: {model: 100 * np.mean([one.scores[model] for one in tables if one.task == task]) for model in MODELS}
        for task in sorted({one.task for one in tables})
    }
    ratio = np.median(
        [one.results["readable"]["cpu_seconds"] / one.results["default"]["cpu_seconds"] for one in results]
    )
    seconds = {model: np.median([scores.results[model]["cpu_seconds"] for scores in results]) for model in MODELS}
    losses = {
        model: np.mean([one.results[model]["log_loss"] for one in results if one.task == CLASSIFICATION])
        for model in MODELS
    }
    lines = [
        "# Readable trees: what 8 leaves and 3 columns cost",
        "",
        wrap(
            f"**`readable()` is within one point of the default tree on {count_near(tables)} of {len(tables)} "
            f"development tables, and above tuned CART of at most {MAX_LEAVES} leaves on {count_above(tables)}.** "
            + " ".join(describe_mean(tables, task, mean) for task, mean in means.items())
        ).rstrip("\n"),
        "",
        "| | default tree | readable tree | CART, at most 8 leaves |",
        "|---|---|---|---|",
        *(
            f"| {'accuracy, %' if task == CLASSIFICATION else 'R² × 100'}, mean of "
            f"{sum(one.task == task for one in tables)} tables | " + " | ".join(f"{mean[m]:.1f}" for m in MODELS) + " |"
            for task, mean in means.items()
        ),
        "| log loss | " + " | ".join(f"{losses[model]:.3f}" for model in MODELS) + " |",
        "| processor time of a fit, median | " + " | ".join(f"{seconds[model]:.1f} s" for model in MODELS) + " |",
        "",
        f"A readable fit takes {ratio:.0f} times the processor time of a default fit, in the median of the tables.",
        "",
        "## Single tables",
        "",
        "Tables are sorted by the difference of the readable to the default tree, a mean over the seeds with",
        "its standard deviation; R² × 100 is in the place of the accuracy for regression. The last column is",
        "the share of the 8 largest classes, which no tree of 8 constant leaves exceeds.",
        "",
        "| table | rows | default | readable | CART, 8 leaves | difference | leaves | bound |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {one.table} | {one.n_rows:,} | "
            + " | ".join(f"{100 * one.scores[model]:.1f}" for model in MODELS)
            + f" | {100 * one.difference:+.1f} ± {100 * one.spread:.1f} | {one.leaves:.3g} | "
            + (f"{100 * one.reachable:.1f} |" if one.reachable < 1 else "— |")
            for one in sorted(tables, key=lambda one: -one.difference)
        ),
        "",
        "## Protocol",
        "",
        "    CRISPTREE_DATA=/folder/of/data python -m benchmarks.bench_readable --jobs 16",
        "",
        f"Splits of 75 / 25 by seed {', '.join(map(str, seeds))}, stratified for classification. `readable()` was",
        "developed on seeds of 20 and above. CART selects `max_leaf_nodes`, `min_samples_leaf` and",
        "`ccp_alpha` by 5-fold cross-validation. Leaves of readable trees may be sums of at most three",
        "columns, or scores of a class; CART's are constant.",
        *(["", wrap(remark).rstrip("\n")] if remark else []),
    ]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def describe_mean(tables: list[TableScores], task: str, mean: dict[str, float]) -> str:
    """Describe the mean scores of a task in a sentence."""
    score, unit = ("accuracy", " %") if task == CLASSIFICATION else ("R² × 100", "")
    readable, default, cart = (f"{mean[name]:.1f}{unit}" for name in ("readable", "default", "cart"))
    n_tables = sum(one.task == task for one in tables)
    return f"Its mean {score} over {n_tables} tables is {readable} (default {default}, CART {cart})."


def read_records(path: Path) -> list[Scores]:
    """Read the records of earlier runs."""
    return [Scores(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="zip file or folder of tables; see real_tables.py")
    parser.add_argument("--tables", type=lambda text: tuple(text.split(",")), default=())
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--page", action="store_true", help="only write docs/results/readable-trees.md, from records")
    parser.add_argument("--remark", help="a last paragraph of the page: the version that was measured, say")
    options = parser.parse_args()
    results = read_records(options.records)
    if options.page:
        write_page(results, options.remark)
        return
    tables = sorted(read_tables(options.data or find_source(), options.tables), key=lambda table: -table.X.size)
    known = {(scores.table, scores.seed) for scores in results}
    tasks = [(table, seed) for table in tables for seed in options.seeds if (table.name, seed) not in known]
    options.records.parent.mkdir(exist_ok=True)
    with ProcessPoolExecutor(options.jobs) as pool, options.records.open("a", encoding="utf-8") as file:
        for task in as_completed([pool.submit(measure, table, seed) for table, seed in tasks]):
            scores = task.result()
            print_table(scores)
            print(json.dumps(scores._asdict(), default=float), file=file, flush=True)
            results.append(scores)
    print_summary(results)


if __name__ == "__main__":
    main()
