"""Records of model selection on real tables: candidates with their held-out scores, and their scores on test rows.

    python -m benchmarks.bench_selection record --jobs 8               # one file per table and seed in build/selection
    python -m benchmarks.bench_selection compare                       # rules of selection, leave-one-table-out

``record`` fits the default tree, takes its candidates from ``cv_results_``, and fits the promising ones again on all
training rows with their parameters set. ``compare`` applies rules of selection to these records, so that thousands of
comparisons cost seconds, and selects the constant of every rule with each table left out. Seeds are those for
development, 20 to 22; the page of small tables has others.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.bench_tables import compute_log_loss, prepare_process
from benchmarks.real_tables import CLASSIFICATION, find_source, list_names, read_tables, split_rows
from benchmarks.table_models import make_forest, make_tree
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score

from crisptree import TrainingOptions
from crisptree.selection.parameters import list_changes

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "build" / "selection"
SEEDS = [20, 21, 22]
MAX_REFITS = 30
MAX_ROWS_OF_ALL_REFITS, MAX_ROWS_OF_REPEATS = 800, 1500


def make_refit(model: Any, values: dict[str, Any]) -> Any:
    """Make the estimator whose fit selects nothing and trains a candidate of a fitted model."""
    target = next(iter(model._named_trees().values())).target.name
    changes = list_changes(model.training_parameters(), values, target, None)
    options = {name: f"training__{name}" for name in TrainingOptions.PARAMETERS}
    return clone(model).set_params(**{options.get(name, name): value for name, value in changes.items()})


def find_promising(trials: list[Any], n_rows: int) -> list[int]:
    """Return the places of the trials that a rule may select: the highest scores and the lowest log losses."""
    if n_rows <= MAX_ROWS_OF_ALL_REFITS:
        return list(range(len(trials)))
    n_best = max(4, min(MAX_REFITS, 30_000 // n_rows))
    by_score = sorted(range(len(trials)), key=lambda place: -trials[place].score)[:n_best]
    by_loss = sorted(range(len(trials)), key=lambda place: trials[place].log_loss)[:n_best]
    return sorted({*by_score, *(by_loss if trials[0].row_losses is not None else ())})


def record_table(options: argparse.Namespace, name: str, seed: int) -> None:
    """Record the trials of a default fit and the test scores of their refits."""
    path = options.records / f"{name}-{seed}.npz"
    if path.exists():
        return
    (table,) = read_tables(options.data, [name])
    split = split_rows(table, seed)
    make = make_forest if options.forest else make_tree
    model = make(table.task, seed, 1).fit(split.X_train, split.y_train)
    trials = model.cv_results_
    arrays: dict[str, Any] = describe_trials(trials)
    if len(split.y_train) <= MAX_ROWS_OF_REPEATS and not options.forest:
        again = make(table.task, seed + 1000, 1).fit(split.X_train, split.y_train).cv_results_
        arrays |= {f"repeat_{key}": value for key, value in describe_trials(again).items()}
    tests = np.full((len(trials), 2), np.nan)
    for place in find_promising(trials, len(split.y_train)):
        try:
            tests[place] = score_test(make_refit(model, trials[place].values), table.task, split)
        except ValueError as error:
            print(f"{name}, seed {seed}: {trials[place].values}: {error}", file=sys.stderr)
    arrays |= {"task": table.task, "tests": tests, "selected": json.dumps(model.best_params_, default=float)}
    arrays |= {"selected_test": evaluate(model, table.task, split), "n_train": len(split.y_train)}
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path.with_suffix(".tmp.npz"), **arrays)
    path.with_suffix(".tmp.npz").rename(path)
    print(f"{name}, seed {seed}: {len(trials)} trials", flush=True)


def describe_trials(trials: list[Any]) -> dict[str, Any]:
    """Return the values and the scores of held-out rows of all trials as arrays."""
    arrays = {
        "values": [json.dumps(trial.values, default=float) for trial in trials],
        "scores": np.float32([trial.row_scores for trial in trials]),
        "row_weights": trials[0].row_weights,
        "weights": [trial.weights for trial in trials],
        "leaves": [trial.leaves for trial in trials],
        "candidate": [trial.candidate for trial in trials],
    }
    if trials[0].row_losses is not None:
        arrays["losses"] = np.float32([trial.row_losses for trial in trials])
    return arrays


def score_test(model: Any, task: str, split: Any) -> tuple[float, float]:
    """Fit a model and score it on test rows."""
    return evaluate(model.fit(split.X_train, split.y_train), task, split)


def evaluate(model: Any, task: str, split: Any) -> tuple[float, float]:
    """Return accuracy and log loss on test rows, or R² and 0."""
    predicted = model.predict(split.X_test)
    if task != CLASSIFICATION:
        return r2_score(split.y_test, predicted), 0.0
    loss = compute_log_loss(split.y_test, model.predict_proba(split.X_test), model.classes_)
    return accuracy_score(split.y_test, predicted), loss


def run_records(options: argparse.Namespace) -> None:
    """Record all tables and seeds in several processes."""
    names = list_names(options.data, options.tables)
    sizes = {table.name: len(table.X) * table.X.shape[1] for table in read_tables(options.data, names)}
    names.sort(key=lambda name: -sizes[name] if options.jobs > 1 else sizes[name])
    units = [(name, seed) for name in names for seed in options.seeds]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, context, prepare_process, (1,)) as pool:
        list(pool.map(partial(record_table, options), *zip(*units, strict=True)))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tables", type=lambda text: text.split(","), default=[])
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=SEEDS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--forest", action="store_true")
    parser.add_argument("--records", type=Path, default=RECORDS)
    options = parser.parse_args(arguments)
    options.data = options.data or find_source()
    run_records(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
