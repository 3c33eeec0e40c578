"""Records of model selection on real tables: candidates with their held-out scores, and their scores on test rows.

    python -m benchmarks.bench_selection record --jobs 8               # one file per table and seed in build/selection
    python -m benchmarks.bench_selection compare                       # rules of selection, leave-one-table-out

``record`` fits the default tree, takes its candidates from ``cv_results_``, and fits the promising ones again on all
training rows with their parameters set. ``compare`` applies rules of selection to these records, so that thousands of
comparisons cost seconds, and selects the constants with each table left out; then it leaves out families of candidates.
Seeds are those for development, 20 to 22; the page of small tables has others.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.bench_tables import compute_log_loss, prepare_process
from benchmarks.real_tables import CLASSIFICATION, REGRESSION, TASKS, find_source, list_names, read_tables, split_rows
from benchmarks.table_models import make_forest, make_tree
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score

from crisptree import TrainingOptions
from crisptree.selection.candidates import DEPTH_LADDER, LOSS_SHARE, NEIGHBOUR_WEIGHT
from crisptree.selection.parameters import list_changes

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "build" / "selection"
SEEDS = [20, 21, 22]
MAX_REFITS = 30
MAX_ROWS_OF_ALL_REFITS, MAX_ROWS_OF_REPEATS = 800, 1500
LOSS_SHARES, NEIGHBOUR_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5), (0.0, 0.25, 0.5, 1.0)
MAX_ERRORS = (0.25, 0.5, 1.0)
DEFAULT_RULES = {CLASSIFICATION: (LOSS_SHARE, NEIGHBOUR_WEIGHT), REGRESSION: (0.0, 0.0)}


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


class Recorded(NamedTuple):
    """Trials of a default fit: values, scores on held-out rows (n, 2), also per row, candidates, test scores (n, 2)."""

    name: str
    values: list[dict[str, Any]]
    scores: np.ndarray
    row_scores: np.ndarray
    weight: np.ndarray
    candidate: np.ndarray
    tests: np.ndarray
    repeated: np.ndarray
    """The scores in a second draw of the folds, NaN for trials that it does not have.  (n, 2)"""

    @classmethod
    def read(cls, path: Path) -> Recorded:
        """Read a record; scores and test scores are accuracy or R², and log loss."""
        arrays = np.load(path)
        weight = arrays["row_weights"] / arrays["row_weights"].sum()
        values, scores = [json.loads(text) for text in arrays["values"]], average_rows(arrays, "")
        again = {}
        if "repeat_scores" in arrays:
            names = [name_structure(json.loads(text)) for text in arrays["repeat_values"]]
            again = dict(zip(names, average_rows(arrays, "repeat_"), strict=True))
        repeated = np.array([again.get(name_structure(own), (np.nan, np.nan)) for own in values])
        own = (arrays["scores"], weight, arrays["candidate"], arrays["tests"], repeated)
        return cls(path.stem.rsplit("-", 1)[0], values, scores, *own)

    def take(self, places: np.ndarray) -> Recorded:
        """Return some of the trials."""
        values = [self.values[place] for place in places]
        parts = (self.scores, self.row_scores, self.candidate, self.tests, self.repeated)
        scores, row_scores, candidate, tests, repeated = (part[places] for part in parts)
        return Recorded(self.name, values, scores, row_scores, self.weight, candidate, tests, repeated)


def average_rows(arrays: Any, prefix: str) -> np.ndarray:
    """Return the weighted mean scores and log losses of all trials of a record.  (n, 2)"""
    weight = arrays[f"{prefix}row_weights"] / arrays[f"{prefix}row_weights"].sum()
    score = arrays[f"{prefix}scores"] @ weight
    loss = arrays[f"{prefix}losses"] @ weight if f"{prefix}losses" in arrays else np.zeros(len(score))
    return np.stack([score, loss], axis=1)


def name_structure(values: dict[str, Any]) -> str:
    """Name a candidate without the penalty of its leaves, which follows from the folds."""
    return json.dumps({name: value for name, value in values.items() if name != "leaf_l2"}, sort_keys=True)


def select(record: Recorded, share: float, weight: float) -> np.ndarray:
    """Return the test scores of the trial of the highest merit, averaged with neighbouring depths.  (2,)"""
    merit = record.scores @ (1, -share)
    beside = weight * (record.candidate[1:] == record.candidate[:-1])
    sums, total = merit.copy(), np.ones(len(merit))
    sums[1:] += beside * merit[:-1]
    sums[:-1] += beside * merit[1:]
    total[1:] += beside
    total[:-1] += beside
    return np.asarray(record.tests[np.argmax(sums / total)])


def select_repeated(record: Recorded, share: float, weight: float) -> np.ndarray:
    """Return the test scores of the trial of the highest merit in two draws of the folds; in one where there is one."""
    kept = np.flatnonzero(~np.isnan(record.repeated[:, 0]))
    if not len(kept):
        return select(record, share, weight)
    both = record._replace(scores=(record.scores + record.repeated) / 2).take(kept)
    return select(both, share, weight)


def select_close(record: Recorded, max_errors: float) -> np.ndarray:
    """Return the test scores of the lowest log loss within so many standard errors of the highest score.  (2,)"""
    best = np.lexsort((-record.scores[:, 1], record.scores[:, 0]))[-1]
    lost = record.row_scores[best] - record.row_scores
    mean = lost @ record.weight
    error = np.sqrt((record.weight**2 * (lost - mean[:, None]) ** 2).sum(axis=1))
    close = np.flatnonzero(mean <= max_errors * error)
    return np.asarray(record.tests[close[np.argmin(record.scores[close, 1])]])


def average_tables(records: Sequence[Recorded], rule: Callable[[Recorded], np.ndarray]) -> np.ndarray:
    """Return the test scores of a rule, averaged over the seeds of every table.  (n_tables, 2)"""
    scores = defaultdict(list)
    for record in records:
        scores[record.name].append(rule(record))
    return np.array([np.mean(seeds, axis=0) for seeds in scores.values()])


def describe_difference(new: np.ndarray, old: np.ndarray) -> str:
    """Describe the mean difference over tables, with its standard error; tables without a refit are left out."""
    difference = (new - old)[~np.isnan(new - old).any(axis=1)]
    mean, error = difference.mean(axis=0), difference.std(axis=0) / np.sqrt(len(difference))
    return f"{100 * mean[0]:+.2f} ± {100 * error[0]:.2f} points, log loss {mean[1]:+.4f} ± {error[1]:.4f}"


def name_families(values: dict[str, Any]) -> set[str]:
    """Name the families that a candidate belongs to."""
    family = f"{values.get('split', 'oblique')}, {values.get('leaf_model', 'constant')} leaves"
    family += "" if values.get("finetune_epochs") == 0 else ", finetuned"
    depth = f"depth {values['max_depth']}" if values["max_depth"] <= max(DEPTH_LADDER) else "larger depths"
    return {family, depth} | {name for name in ("l1", "l2") if values.get(name)}


def compare_records(options: argparse.Namespace) -> None:
    """Print what rules of selection and the absence of families change on the test rows."""
    paths = [path for path in sorted(options.records.glob("*.npz")) if not path.stem.endswith(".tmp")]
    for task in TASKS:
        records = [Recorded.read(path) for path in paths if str(np.load(path)["task"]) == task]
        records = [record for record in records if not options.tables or record.name in options.tables]
        if records:
            print(f"{task}: {len(records)} fits")
            compare_rules(records, DEFAULT_RULES[task])


def compare_rules(records: Sequence[Recorded], default: tuple[float, float]) -> None:
    """Print the differences from the default rule."""
    shares = LOSS_SHARES if default[0] else (0.0,)
    grid = [(share, weight) for share in shares for weight in NEIGHBOUR_WEIGHTS]
    tables = {rule: average_tables(records, partial(select, share=rule[0], weight=rule[1])) for rule in grid}
    for rule, table in tables.items():
        print(f"log-loss share {rule[0]}, neighbours {rule[1]}: {describe_difference(table, tables[default])}")
    for errors in MAX_ERRORS if default[0] else ():
        table = average_tables(records, partial(select_close, max_errors=errors))
        print(f"lowest log loss within {errors} standard errors: {describe_difference(table, tables[default])}")
    repeated = average_tables(records, partial(select_repeated, share=default[0], weight=default[1]))
    print(f"folds drawn twice: {describe_difference(repeated, tables[default])}")
    n_tables, left_out = len(tables[default]), []
    for number in range(n_tables):
        others = np.delete(np.arange(n_tables), number)
        best = max(grid, key=lambda rule: np.nanmean(tables[rule][others, 0]))
        left_out.append(tables[best][number])
    print(f"constants selected on all other tables: {describe_difference(np.array(left_out), tables[default])}")
    families = sorted(set().union(*(name_families(values) for record in records for values in record.values)))
    for family in families:

        def select_others(record: Recorded, family: str = family) -> np.ndarray:
            kept = [place for place, values in enumerate(record.values) if family not in name_families(values)]
            return select(record.take(np.array(kept)), *default) if kept else select(record, *default)

        print(f"without {family}: {describe_difference(average_tables(records, select_others), tables[default])}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tables", type=lambda text: text.split(","), default=[])
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=SEEDS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--forest", action="store_true")
    parser.add_argument("--records", type=Path, default=RECORDS)
    options = parser.parse_args(arguments)
    if options.what == "compare":
        compare_records(options)
    else:
        options.data = options.data or find_source()
        run_records(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
