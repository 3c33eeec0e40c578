"""Test scores of all candidates of default fits on small tables, and what other ways to pool the trials would select.

    python -m benchmarks.bench_candidates fit --seeds 30,31 --jobs 2    # tables of at most --max-rows rows
    python -m benchmarks.bench_candidates compare

``fit`` records every trial of a default tree, its score on folds drawn anew and on ten folds, and the test score of a
fit with its parameters, beside tuned CART and a tuned linear model. ``compare`` prints the scores of what rules of
selection would have selected. Records that exist are not made again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from benchmarks.bench_selection import evaluate, make_refit
from benchmarks.bench_tables import prepare_process
from benchmarks.real_tables import TASKS, find_source, read_tables, split_rows
from benchmarks.table_models import MODELS, make_tree
from experiments.provenance import commit
from experiments.store import Store

from crisptree.inference.flat_tree import has_linear_leaves
from crisptree.selection import search
from crisptree.selection.candidates import LOSS_SHARE, Trial, find_best, is_oblique

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "build" / "candidates.jsonl"
KEYS = ("task", "table", "seed")
SEEDS = [30, 31, 32]
MAX_ROWS = 1100
REPEATS, MORE_FOLDS = 3, 10
BASELINES = ("cart", "linear")

Values = dict[str, Any]


def name_candidate(values: Values) -> str:
    """Name a candidate without the penalty, which folds select."""
    return json.dumps(
        {name: value for name, value in values.items() if name != "leaf_l2"}, sort_keys=True, default=float
    )


def make_search(kept: list[dict[str, Trial]], selections: list[Values]) -> type[search.CandidateSearch]:
    """Make a search that keeps its trials, what selecting each would return, and their like on other folds."""

    class Repeated(search.CandidateSearch):
        def run(self) -> tuple[Values, list[Trial]]:
            result = super().run()
            for trial in self.trials:
                with patch.object(self, "best_of", lambda belongs, trial=trial: trial):
                    selections.append(self.evaluator.select(self))
            kept.append({name_candidate(trial.values): trial for trial in result[1]})
            seeds = [self.seed + 1000 * (number + 1) for number in range(REPEATS)]
            for seed, n_folds in [*((seed, search.MAX_FOLDS) for seed in seeds), (self.seed, MORE_FOLDS)]:
                with patch.object(search, "MAX_FOLDS", n_folds):
                    kept.append(self.score_again(seed, result[1]))
            return result

        def score_again(self, seed: int, trials: Sequence[Trial]) -> dict[str, Trial]:
            evaluator = type(self.evaluator)(self.evaluator.parameters)
            own = search_class(self.parameters, self.task, evaluator, self.image_shape, seed, self.source)
            own.has_free_depth = self.has_free_depth
            search_class.run(own)
            own.evaluate([trial.values for trial in trials if is_oblique(trial.values)])
            return {name_candidate(trial.values): trial for trial in own.trials}

    search_class = search.CandidateSearch
    return Repeated


def describe(trial: Trial, best: Trial, others: Sequence[dict[str, Trial]]) -> Values:
    """Describe a trial by its values and scores, and the merits of the same candidate on other folds."""
    merits = [each.get(name_candidate(trial.values)) for each in others]
    return {
        "values": trial.values,
        "score": trial.score,
        "log_loss": trial.log_loss,
        "error": trial.error,
        "error_of_difference": best.error_against(trial),
        "size": trial.size,
        "again": [None if one is None else [one.score, one.log_loss] for one in merits],
    }


def fit_candidates(options: argparse.Namespace, name: str, seed: int) -> None:
    """Record the trials of a default fit with their test scores, and those of the baselines."""
    (table,) = read_tables(options.data, [name])
    store, key = Store(options.records, KEYS), {"task": table.task, "table": name, "seed": seed}
    if len(table.y) > options.max_rows or store.get(*key.values()) is not None:
        return
    start, split = time.process_time(), split_rows(table, seed)
    kept, selections = list[dict[str, Trial]](), list[Values]()
    with patch.object(search, "CandidateSearch", make_search(kept, selections)):
        model = make_tree(table.task, seed, 1).fit(split.X_train, split.y_train)
    trials, best, described = model.cv_results_, find_best(model.cv_results_), []
    for trial, values in zip(trials, selections, strict=True):
        refit = make_refit(model, values).fit(split.X_train, split.y_train)
        score, loss = evaluate(refit, table.task, split)
        described.append(describe(trial, best, kept[1:]) | {"test_score": score, "test_log_loss": loss})
    score, loss = evaluate(model, table.task, split)
    baselines = {
        baseline: evaluate(
            MODELS[baseline].make(table.task, seed, 1).fit(split.X_train, split.y_train), table.task, split
        )
        for baseline in BASELINES
    }
    record = {"n_rows": len(split.y_train), "selected": model.best_params_, "test_score": score, "test_log_loss": loss}
    seconds = round(time.process_time() - start, 2)
    more = {"best": trials.index(best), "baselines": baselines, "trials": described, "seconds": seconds}
    store.put(json.loads(json.dumps(key | record | more | {"commit": options.commit}, default=float)))
    print(f"{name}, seed {seed}: {len(trials)} candidates, {seconds} s", flush=True)


def run_fits(options: argparse.Namespace) -> None:
    """Fit all tables and seeds, in several processes."""
    names = options.tables or [t.name for t in read_tables(options.data) if len(t.y) <= options.max_rows]
    units = [(name, seed) for seed in options.seeds for name in names]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, context, prepare_process, (1,)) as pool:
        list(pool.map(partial(fit_candidates, options), *zip(*units, strict=True)))


Rule = Callable[[Values], int]
"""Index of the trial that a rule selects from a record."""


def list_merits(record: Values, share: float = LOSS_SHARE) -> np.ndarray:
    """Return the merits of all trials.  (n,)"""
    return np.array([one["score"] - share * one["log_loss"] for one in record["trials"]])


def find_family(values: Values) -> str:
    """Name the family of a candidate."""
    kind = "linear leaves" if has_linear_leaves(values) else "constant leaves"
    return "linear model" if is_linear_model(values) else f"{values.get('split', 'oblique')}, {kind}"


def is_linear_model(values: Values) -> bool:
    """Return True for one linear leaf."""
    return has_linear_leaves(values) and values["max_depth"] == 0


def pool_folds(record: Values, places: Sequence[int], *, with_own: bool) -> np.ndarray:
    """Average merits over folds drawn again; −inf where a candidate lacks some.  (n,)"""
    others = [
        [-np.inf if one["again"][i] is None else one["again"][i][0] - LOSS_SHARE * one["again"][i][1] for i in places]
        for one in record["trials"]
    ]
    every = np.column_stack([np.array(others), list_merits(record)]) if with_own else np.array(others)
    return np.asarray(every.mean(axis=1))


def prefer(record: Values, belongs: Callable[[Values], bool], max_errors: float) -> int:
    """Return the best trial of a family if it is within some standard errors of the best, else the best."""
    merits = list_merits(record)
    own = [i for i, one in enumerate(record["trials"]) if belongs(one["values"])]
    best, first = int(np.argmax(merits)), max(own, key=lambda i: merits[i], default=None)
    if first is None:
        return best
    is_close = merits[best] - merits[first] <= max_errors * record["trials"][first]["error_of_difference"]
    return first if is_close else best


def find_simplest(record: Values, max_errors: float) -> int:
    """Return the smallest trial within some standard errors of the best."""
    merits, trials = list_merits(record), record["trials"]
    best = merits.max()
    close = [i for i, one in enumerate(trials) if best - merits[i] <= max_errors * one["error_of_difference"]]
    return min(close, key=lambda i: (trials[i]["size"], -merits[i]))


def shrink_to_family(record: Values, weight: float) -> int:
    """Return the best merit after shrinking every merit towards the mean of its family's upper half."""
    merits = list_merits(record)
    families = np.array([find_family(one["values"]) for one in record["trials"]])
    means = {
        name: np.mean(np.sort(merits[families == name])[-((families == name).sum() + 1) // 2 :]) for name in families
    }
    return int(np.argmax((1 - weight) * merits + weight * np.array([means[name] for name in families])))


RULES: dict[str, Rule] = {
    **{f"linear within: {k} errors": partial(prefer, belongs=is_linear_model, max_errors=k) for k in (0.25, 0.5, 1, 2)},
    **{f"simplest within: {k} errors": partial(find_simplest, max_errors=k) for k in (0.1, 0.25, 0.5, 1)},
    **{f"family mean: {w}": partial(shrink_to_family, weight=w) for w in (0.1, 0.25, 0.5)},
    **{
        f"log-loss share: {s}": lambda record, s=s: int(np.argmax(list_merits(record, s))) for s in (0.0, 0.1, 0.5, 1.0)
    },
    "folds: 10": lambda record: int(np.argmax(pool_folds(record, [REPEATS], with_own=False))),
    "folds: 2 × 5": lambda record: int(np.argmax(pool_folds(record, [0], with_own=True))),
    "folds: 4 × 5": lambda record: int(np.argmax(pool_folds(record, range(REPEATS), with_own=True))),
    "folds: 10 and 4 × 5": lambda record: int(np.argmax(pool_folds(record, range(REPEATS + 1), with_own=True))),
    "oracle": lambda record: int(np.argmax([one["test_score"] for one in record["trials"]])),
}


def compare_task(records: Sequence[Values]) -> None:
    """Print the differences of rules from the highest merit, paired by table, and leave-one-table-out."""
    tables, default = sorted({record["table"] for record in records}), "highest merit"
    rules: dict[str, Rule] = {default: lambda record: int(np.argmax(list_merits(record))), **RULES}
    scores = {
        name: np.array(
            [
                np.mean([one["trials"][rule(one)]["test_score"] for one in records if one["table"] == table])
                for table in tables
            ]
        )
        for name, rule in rules.items()
    }
    groups = defaultdict[str, list[str]](list)
    for name in RULES:
        groups[name.split(":")[0]].append(name)
    for names in groups.values():
        for name in names:
            print(f"  {name}: {describe_difference(scores[name] - scores[default])}")
        every = np.array([scores[name] for name in (default, *names)])
        picked = [int(np.argmax(every.sum(axis=1) - every[:, i])) for i in range(len(tables))]
        left_out = every[picked, range(len(tables))]
        print(f"    selected on all other tables: {describe_difference(left_out - scores[default])}")
    print_tables(records, tables, scores[default])


def describe_difference(difference: np.ndarray) -> str:
    """Describe the mean difference over tables and its standard error, in points."""
    error = difference.std() / np.sqrt(max(len(difference) - 1, 1))
    up, down = (difference > 0).sum(), (difference < 0).sum()
    return f"{100 * difference.mean():+.2f} ± {100 * error:.2f} ({up} up, {down} down)"


def print_tables(records: Sequence[Values], tables: Sequence[str], scores: np.ndarray) -> None:
    """Print the scores of baselines and of each family's best merit on every table."""
    for table, score in zip(tables, scores, strict=True):
        own = [record for record in records if record["table"] == table]
        print(f"  {table} ({own[0]['n_rows']} rows, {len(own)} seeds): selected {100 * score:.1f}", end="")
        print(f", whole fit {100 * np.mean([one['test_score'] for one in own]):.1f}", end="")
        for name in BASELINES:
            print(f", {name} {100 * np.mean([one['baselines'][name][0] for one in own]):.1f}", end="")
        by_family, chosen = defaultdict[str, list[float]](list), defaultdict[str, int](int)
        for one in own:
            merits, families = list_merits(one), [find_family(trial["values"]) for trial in one["trials"]]
            chosen[families[int(np.argmax(merits))]] += 1
            for family in set(families):
                best = max((i for i, each in enumerate(families) if each == family), key=lambda i, m=merits: m[i])
                by_family[family].append(one["trials"][best]["test_score"])
        texts = [f"{name} {100 * np.mean(values):.1f} (×{chosen[name]})" for name, values in sorted(by_family.items())]
        print("; " + ", ".join(texts))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["fit", "compare"])
    parser.add_argument("--data", type=Path, help="zip file or folder of tables; default: $CRISPTREE_DATA/tables.zip")
    parser.add_argument("--tables", type=lambda text: text.split(","), default=[], help="with commas; default: all")
    parser.add_argument("--max-rows", type=int, default=MAX_ROWS, help="rows of a table at most")
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=SEEDS)
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--records", type=Path, default=RECORDS)
    options = parser.parse_args(arguments)
    if options.what == "compare":
        for task in TASKS:
            records = Store(options.records, KEYS).records(task=task)
            records = [one for one in records if not options.tables or one["table"] in options.tables]
            if records:
                print(f"{task}: {len(records)} fits")
                compare_task(records)
        return 0
    options.data, options.commit = options.data or find_source(), commit(options.records)
    run_fits(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
