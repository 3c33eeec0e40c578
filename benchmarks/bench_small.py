"""Default fits on small real tables: test scores and fit times beside scikit-learn's models and LightGBM.

    CRISPTREE_DATA=/folder/of/data make bench-small                               # everything, and the page
    python -m benchmarks.bench_small --tables glass,cmc --models tree,cart --seeds 0
    python -m benchmarks.bench_small --data FOLDER --results build/others.jsonl   # other tables, see real_tables.py
    python -m benchmarks.bench_small --speed                                      # only the single fits of known size
    python -m benchmarks.bench_small --tables glass,cmc --page build/small.md     # fits what is missing, then the page

Every fit is one record of the results file. Records that exist are not run again, so an interrupted run resumes; delete
the file to measure another version. All models of a table and seed are fitted one after the other in the same process.
The single fits of ``--speed`` are measured anew each time.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from benchmarks.real_tables import CLASSIFICATION, REGRESSION, Split, find_source, read_tables, split_rows
from benchmarks.small_page import FIT, KEYS, SPEED, render_page
from benchmarks.timing import medians
from experiments.provenance import commit, machine, versions
from experiments.store import Store
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

from crisptree import (
    CrispForestClassifier,
    CrispForestRegressor,
    CrispTreeClassifier,
    CrispTreeRegressor,
    TrainingOptions,
)

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "build" / "small.jsonl"
PAGE = ROOT / "docs" / "results" / "small-tables.md"

CART_GRID = {"ccp_alpha": [0.0, 1e-4, 1e-3, 1e-2], "min_samples_leaf": [1, 5, 20], "max_depth": [4, 8, None]}
C_GRID = np.logspace(-3, 5, 9)
ALPHA_GRID = np.logspace(-3, 4, 15)
CV = 5
NOTHING_TO_SELECT = {"split": "oblique", "l1": 0.0, "input_noise": 0.3, "shrinkage": 0.0, "leaf_model": "constant"}


class Model(NamedTuple):
    """A column of the page: its title, and the function that makes the estimator for a task, seed and n_jobs."""

    title: str
    make: Callable[[str, int, int], Any]


def make_tree(task: str, seed: int, n_jobs: int, **parameters: Any) -> Any:
    estimator = CrispTreeClassifier if task == CLASSIFICATION else CrispTreeRegressor
    return estimator(random_state=seed, n_jobs=n_jobs, training=TrainingOptions(device="cpu"), **parameters)


def make_forest(task: str, seed: int, n_jobs: int) -> Any:
    estimator = CrispForestClassifier if task == CLASSIFICATION else CrispForestRegressor
    return estimator(n_estimators=25, random_state=seed, n_jobs=n_jobs, training=TrainingOptions(device="cpu"))


def make_cart(task: str, seed: int, n_jobs: int) -> Any:
    """CART with a grid search; y of a regression is standardised, so that ccp_alpha is a fraction of its variance."""
    if task == CLASSIFICATION:
        return GridSearchCV(DecisionTreeClassifier(random_state=seed), CART_GRID, cv=CV, n_jobs=n_jobs)
    tree = TransformedTargetRegressor(DecisionTreeRegressor(random_state=seed), transformer=StandardScaler())
    grid = {f"regressor__{name}": values for name, values in CART_GRID.items()}
    return GridSearchCV(tree, grid, cv=CV, n_jobs=n_jobs)


def make_linear(task: str, seed: int, n_jobs: int) -> Any:
    if task == REGRESSION:
        return make_pipeline(StandardScaler(), RidgeCV(ALPHA_GRID, cv=CV))
    model = LogisticRegressionCV(Cs=C_GRID, cv=CV, scoring="accuracy", max_iter=1000, random_state=seed, n_jobs=n_jobs)
    return make_pipeline(StandardScaler(), model)


def make_random_forest(task: str, seed: int, n_jobs: int) -> Any:
    estimator = RandomForestClassifier if task == CLASSIFICATION else RandomForestRegressor
    return estimator(n_estimators=100, random_state=seed, n_jobs=n_jobs)


def make_boosting(task: str, seed: int, n_jobs: int) -> Any:
    """Gradient boosting of scikit-learn, with as many threads as ``limit_threads`` lets OpenMP have."""
    estimator = HistGradientBoostingClassifier if task == CLASSIFICATION else HistGradientBoostingRegressor
    return estimator(random_state=seed)


def make_lightgbm(task: str, seed: int, n_jobs: int) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    estimator = LGBMClassifier if task == CLASSIFICATION else LGBMRegressor
    return estimator(random_state=seed, n_jobs=n_jobs, verbose=-1)


MODELS = {
    "tree": Model("crisp tree", make_tree),
    "forest": Model("crisp forest, 25 trees", make_forest),
    "cart": Model("CART, tuned", make_cart),
    "linear": Model("linear, tuned", make_linear),
    "random_forest": Model("random forest, 100 trees", make_random_forest),
    "boosting": Model("HistGradientBoosting", make_boosting),
    "lightgbm": Model("LightGBM", make_lightgbm),
}
INSTALLED = [name for name in MODELS if name != "lightgbm" or find_spec("lightgbm")]


def fit_and_score(model: Any, task: str, split: Split) -> dict[str, float]:
    """Fit a model: seconds of wall-clock and of processor time, and the scores on the test rows."""
    start, cpu_start = time.perf_counter(), time.process_time()
    model.fit(split.X_train, split.y_train)
    result = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu_start}
    y_pred = model.predict(split.X_test)
    if task == REGRESSION:
        return result | {"r2": r2_score(split.y_test, y_pred)}
    return result | {
        "accuracy": accuracy_score(split.y_test, y_pred),
        "log_loss": compute_log_loss(split.y_test, model.predict_proba(split.X_test), model.classes_),
    }


def compute_log_loss(y_true: np.ndarray, y_proba: np.ndarray, classes: np.ndarray) -> float:
    """scikit-learn's log loss, which clips probabilities of 0; classes absent from training have probability 0."""
    labels = np.union1d(y_true, classes)
    table = np.zeros((len(y_true), len(labels)))
    table[:, np.searchsorted(labels, classes)] = y_proba
    return float(log_loss(y_true, table, labels=labels))


def run_fits(options: argparse.Namespace, store: Store, provenance: dict[str, Any]) -> None:
    """Fit all models to all tables with all seeds, except where the store has the record."""
    for table in read_tables(options.data or find_source(), options.tables):
        for seed in options.seeds:
            split = split_rows(table, seed)
            for name in options.models:
                key = {"kind": FIT, "task": table.task, "table": table.name, "model": name}
                key |= {"n_jobs": options.jobs, "seed": seed}
                if store.get(*key.values()) is not None:
                    continue
                result = fit_and_score(MODELS[name].make(table.task, seed, options.jobs), table.task, split)
                shape = {"rows": len(table.X), "columns": table.X.shape[1]}
                store.put(key | shape | {name: round(value, 5) for name, value in result.items()} | provenance)
                print(f"{table.name}, seed {seed}, {name}: {describe(result)}", flush=True)


def describe(result: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in result.items())


def make_speed_calls() -> dict[tuple[str, str], dict[tuple[str, int], Callable[[], object]]]:
    """Return the fits of known size: for each title and task the calls that take turns, by model and n_jobs."""
    classes = make_classification(500, 10, n_informative=6, n_classes=3, random_state=0)
    numbers = make_friedman1(500, 10, noise=1.0, random_state=0)
    calls = {
        (f"default {name}, 500 × 10", task): {
            (model, n_jobs): partial(MODELS[model].make(task, 0, n_jobs).fit, *data)
            for model, n_jobs in ((name, 1), (name, 2), ("random_forest", 1), ("cart", 1))
        }
        for name, task, data in (
            ("tree", CLASSIFICATION, classes),
            ("tree", REGRESSION, numbers),
            ("forest", CLASSIFICATION, classes),
        )
    }
    data = make_classification(435, 16, n_informative=8, random_state=0)
    models = {"tree": make_tree(CLASSIFICATION, 0, 1, max_depth=4, **NOTHING_TO_SELECT)}
    models["random_forest"] = make_random_forest(CLASSIFICATION, 0, 1)
    title = "tree of depth 4, nothing to select, 435 × 16"
    return calls | {(title, CLASSIFICATION): {(name, 1): partial(model.fit, *data) for name, model in models.items()}}


def run_speed(rounds: int, store: Store, provenance: dict[str, Any]) -> None:
    """Measure the fits of known size: medians of calls in turn."""
    for (title, task), calls in make_speed_calls().items():
        by_name = {f"{model} {n_jobs}": call for (model, n_jobs), call in calls.items()}
        seconds = dict(zip(calls, medians(by_name, rounds).values(), strict=True))
        for (model, n_jobs), value in seconds.items():
            key = {"kind": SPEED, "task": task, "table": title, "model": model, "n_jobs": n_jobs, "seed": 0}
            store.put(key | {"seconds": round(value, 5)} | provenance)
            print(f"{title}, {task}, {model}, n_jobs={n_jobs}: {value:.4f} s", flush=True)


@contextmanager
def limit_threads(n_jobs: int) -> Iterator[None]:
    """Limit the threads of OpenMP and BLAS, also of the BLAS inside torch, which threadpoolctl does not see."""
    before = torch.get_num_threads()
    torch.set_num_threads(n_jobs)
    try:
        with threadpool_limits(n_jobs):
            yield
    finally:
        torch.set_num_threads(before)


def load_engine() -> None:
    """Fit a stump, so that no measured fit imports torch."""
    make_tree(CLASSIFICATION, 0, 1, max_depth=1).fit([[0.0], [1.0]], [0, 1])


def write_page(options: argparse.Namespace, store: Store) -> None:
    """Write the page of the fits that the options select, and of all single fits."""
    fits = [
        record
        for record in store.records(kind=FIT, n_jobs=options.jobs)
        if record["seed"] in options.seeds
        and record["model"] in options.models
        and (not options.tables or record["table"] in options.tables)
    ]
    titles = {name: model.title for name, model in MODELS.items()}
    options.page.parent.mkdir(parents=True, exist_ok=True)
    options.page.write_text(render_page(fits, store.records(kind=SPEED), titles), encoding="utf-8")


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    def words(text: str) -> list[str]:
        return [word.strip() for word in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="zip file or folder of tables; default: $CRISPTREE_DATA/tables.zip")
    parser.add_argument("--tables", type=words, default=[], help="names with commas; default: all")
    parser.add_argument("--models", type=words, default=INSTALLED, help=f"with commas, of {', '.join(MODELS)}")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in words(text)], default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=1, help="n_jobs of the fits")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of records")
    parser.add_argument("--speed", action="store_true", help="measure the single fits of known size, and only these")
    parser.add_argument("--rounds", type=int, default=2, help="of --speed: timed fits in each of three passes")
    parser.add_argument("--page", type=Path, nargs="?", const=PAGE, help="write this page; default: small-tables.md")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.models if name not in INSTALLED]:
        parser.error(f"--models must be of {', '.join(INSTALLED)}; got {', '.join(unknown)}.")
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse_options(arguments)
    store = Store(options.results, KEYS)
    provenance = {"commit": commit(options.results), "cpu": machine("cpu")["cpu"], "versions": versions()}
    if "lightgbm" in INSTALLED:
        provenance["versions"]["lightgbm"] = metadata.version("lightgbm")
    load_engine()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if options.speed:
            run_speed(options.rounds, store, provenance)
        else:
            with limit_threads(options.jobs):
                run_fits(options, store, provenance)
    if options.page:
        write_page(options, store)


if __name__ == "__main__":
    main()
