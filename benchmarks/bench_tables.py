"""Default fits on real tables: test scores, ranks and fit times beside scikit-learn's models and other packages.

    CRISPTREE_DATA=/folder/of/data make bench-tables                               # everything, and the page
    python -m benchmarks.bench_tables --jobs 8                                     # eight processes side by side
    python -m benchmarks.bench_tables --tables glass,cmc --models tree,cart --seeds 0
    python -m benchmarks.bench_tables --data FOLDER --results build/others.jsonl   # other tables, see real_tables.py
    python -m benchmarks.bench_tables --speed                                      # only the single fits of known size
    python -m benchmarks.bench_tables --page                                       # the page from records, no fits

Every fit is one record of the results file. Records that exist are not run again, so an interrupted run resumes; delete
the file to measure another version. All models of a table and seed are fitted one after the other in the same process.
A fit that fails is reported and has no record; the others go on. The single fits of ``--speed`` are measured anew each
time. XGBoost, CatBoost, LightGBM and EBM (interpret) are fitted where they are installed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.real_tables import CLASSIFICATION, REGRESSION, Split, find_source, list_names, read_tables, split_rows
from benchmarks.table_models import MODELS, is_installed, make_random_forest, make_tree
from benchmarks.tables_page import FIT, IMAGE, KEYS, SPEED, render_page
from benchmarks.timing import medians
from experiments.provenance import commit, machine, versions
from experiments.store import Store
from sklearn.datasets import make_classification, make_friedman1
from sklearn.metrics import accuracy_score, log_loss, r2_score
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "build" / "tables.jsonl"
PAGE = ROOT / "docs" / "results" / "small-tables.md"

NOTHING_TO_SELECT = {"split": "oblique", "l1": 0.0, "input_noise": 0.3, "shrinkage": 0.0, "leaf_model": "constant"}
INSTALLED = [name for name, model in MODELS.items() if is_installed(model)]
DEFAULT_MODELS = [name for name in INSTALLED if MODELS[name].is_default]


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


def fit_table(options: argparse.Namespace, provenance: dict[str, Any], name: str, seed: int) -> list[str]:
    """Fit all models to one split of a table, except where the store has the record; return the failures."""
    store, failures = Store(options.results, KEYS), []
    (table,) = read_tables(options.data, [name])
    split = split_rows(table, seed)
    for model in options.models:
        key = {"kind": FIT, "task": table.task, "table": name, "model": model, "n_jobs": options.n_jobs, "seed": seed}
        if store.get(*key.values()) is not None:
            continue
        try:
            result = fit_and_score(MODELS[model].make(table.task, seed, options.n_jobs), table.task, split)
        except Exception as error:  # of any package
            failures.append(f"{name}, seed {seed}, {model}: {type(error).__name__}: {error}")
            continue
        shape = {"rows": len(table.X), "columns": table.X.shape[1]}
        store.put(key | shape | {field: round(value, 5) for field, value in result.items()} | provenance)
        print(f"{name}, seed {seed}, {model}: {describe(result)}", flush=True)
    return failures


def run_fits(options: argparse.Namespace, provenance: dict[str, Any]) -> list[str]:
    """Fit all models to all tables with all seeds, in several processes if ``jobs`` says so; return the failures."""
    units = [(name, seed) for name in list_names(options.data, options.tables) for seed in options.seeds]
    fit = partial(fit_table, options, provenance | {"processes": options.jobs})
    if options.jobs == 1:
        with start_fitting(options.n_jobs):
            return [failure for unit in units for failure in fit(*unit)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, context, prepare_process, (options.n_jobs,)) as pool:
        return [failure for failures in pool.map(fit, *zip(*units, strict=True)) for failure in failures]


PROCESS = ExitStack()
"""Contexts that last as long as the process."""


def prepare_process(n_jobs: int) -> None:
    """Prepare a process that only fits."""
    PROCESS.enter_context(start_fitting(n_jobs))


@contextmanager
def start_fitting(n_jobs: int) -> Iterator[None]:
    """Limit the threads, ignore warnings of all packages, and load what the first fit would load."""
    load_engine()
    with warnings.catch_warnings(), limit_threads(n_jobs):
        warnings.simplefilter("ignore")
        yield


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


def write_page(options: argparse.Namespace) -> None:
    """Write the page of the records that the options select, and of all single fits; no record is made."""
    store = Store(options.results, KEYS)
    fits = [
        record
        for record in store.records(kind=FIT, n_jobs=options.n_jobs)
        if record["seed"] in options.seeds
        and record["model"] in options.models
        and (not options.tables or record["table"] in options.tables)
    ]
    titles = {name: model.title for name, model in MODELS.items()}
    text = render_page(fits, store.records(kind=SPEED), titles, options.page, options.image)
    options.page.parent.mkdir(parents=True, exist_ok=True)
    options.page.write_text(text, encoding="utf-8")


def parse_options(arguments: list[str] | None = None) -> argparse.Namespace:
    def words(text: str) -> list[str]:
        return [word.strip() for word in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="zip file or folder of tables; default: $CRISPTREE_DATA/tables.zip")
    parser.add_argument("--tables", type=words, default=[], help="names with commas; default: all")
    parser.add_argument("--models", type=words, help=f"with commas, of {', '.join(MODELS)}")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in words(text)], default=[0, 1, 2])
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side, each with tables of its own")
    parser.add_argument("--n-jobs", type=int, default=1, help="n_jobs of the fits")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file of records")
    parser.add_argument("--speed", action="store_true", help="measure the single fits of known size, and only these")
    parser.add_argument("--rounds", type=int, default=2, help="of --speed: timed fits in each of three passes")
    parser.add_argument(
        "--page", type=Path, nargs="?", const=PAGE, help="only write this page, from records; default: small-tables.md"
    )
    parser.add_argument("--image", type=Path, default=IMAGE, help="the plot of the page")
    options = parser.parse_args(arguments)
    # A page needs no package whose records it shows.
    known = list(MODELS) if options.page else INSTALLED
    options.models = options.models or (known if options.page else DEFAULT_MODELS)
    if unknown := [name for name in options.models if name not in known]:
        parser.error(f"--models must be of {', '.join(known)}; got {', '.join(unknown)}.")
    return options


def describe_provenance(options: argparse.Namespace) -> dict[str, Any]:
    """Return commit, processor and versions, those of the other packages that are fitted included."""
    provenance = {"commit": commit(options.results), "cpu": machine("cpu")["cpu"], "versions": versions()}
    packages = sorted({MODELS[name].package or "" for name in options.models} - {""})
    provenance["versions"] |= {name: import_module(name).__version__ for name in packages}
    return provenance


def main(arguments: list[str] | None = None) -> int:
    options = parse_options(arguments)
    if options.page:
        write_page(options)
        return 0
    provenance = describe_provenance(options)
    if options.speed:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            load_engine()
            run_speed(options.rounds, Store(options.results, KEYS), provenance)
        return 0
    options.data = options.data or find_source()
    failures = run_fits(options, provenance)
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
