"""Rules of model selection on real tables, one at a time against the default, on splits of their own.

    python -m benchmarks.bench_selection fit --seeds 30,31 --jobs 8                # default trees
    python -m benchmarks.bench_selection fit --models forest,adam --seeds 30       # forests; trees that Adam trains
    python -m benchmarks.bench_selection fit --rules l2 --max-rows 1100            # some of the rules and tables
    python -m benchmarks.bench_selection compare                                   # differences, leave-one-table-out

``fit`` runs the search of a default fit once for every rule, on the same folds: candidates that several rules train are
trained once. What a rule selects is fitted to all training rows with the parameters set, and scored on test rows.
``compare`` prints for every rule the difference from the default, paired by table, and for every constant what the
value selected on all other tables scores on each table. Seeds are those for development, from 30; the page of small
tables has others. Records that exist are not made again.
"""

from __future__ import annotations

import argparse
import copy
import json
import multiprocessing
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from benchmarks.bench_tables import compute_log_loss, prepare_process
from benchmarks.real_tables import CLASSIFICATION, REGRESSION, TASKS, find_source, list_names, read_tables, split_rows
from benchmarks.table_models import make_forest, make_tree
from experiments.provenance import commit
from experiments.store import Store
from sklearn.base import clone
from sklearn.metrics import accuracy_score, r2_score

from crisptree import TrainingOptions
from crisptree.inference.flat_tree import BRANCH_LINEAR, has_linear_leaves
from crisptree.pipeline import forests
from crisptree.selection import candidates, evaluators, search
from crisptree.selection.candidates import (
    Candidates,
    Round,
    Trial,
    climb,
    find_best,
    is_hopeless,
    is_oblique,
    list_changes,
)

ROOT = Path(__file__).parent.parent
RECORDS = ROOT / "build" / "selection.jsonl"
KEYS = ("model", "task", "table", "seed", "rule")
SEEDS = [30, 31, 32]
DEFAULT = "default"

Values = dict[str, Any]


class Rule(NamedTuple):
    """A departure from the default.

    ``changes`` are constants with another value, ``rounds`` further candidates at the end. Candidates that ``omits``
    names are left out. With ``has_own_folds`` the folds may differ. ``selects`` picks one of all trials in the end, and
    ``parameters`` are those of the final fit.
    """

    changes: tuple[tuple[Any, str, Any], ...] = ()
    omits: Callable[[Values], bool] = lambda values: False
    has_own_folds: bool = False
    rounds: tuple[Round, ...] = ()
    selects: Callable[[Sequence[Trial]], Trial] = find_best
    parameters: tuple[tuple[str, Any], ...] = ()

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Select and fit by this rule."""
        with ExitStack() as stack:
            for owner, name, value in self.changes:
                stack.enter_context(patch.object(owner, name, value))
            yield


def select_penalty_by_merit(trials: Sequence[Trial]) -> Trial:
    """Return the trial of the highest merit."""
    return find_best(trials)


def has_fewer_features(values: Values) -> bool:
    """Return True for thresholds with a fraction of the features per split."""
    return values.get("split") == "axis" and values.get("max_features") in candidates.FEWER_FEATURES


def has_more_penalties(values: Values) -> bool:
    """Return True for linear leaves of all features, but for one size and penalty."""
    return values.get("leaf_model") == "linear" and (values["min_samples_leaf"], values["leaf_l2"]) != (20, 10.0)


def equal_weights(part: Any, own: Any, trained: Any, scored: Sequence[Any]) -> list[Any]:
    """Weigh all held-out rows the same."""
    return [np.ones(len(rows)) for rows in scored]


def try_l2(search: search.CandidateSearch) -> Candidates:
    """Penalise squared weights of the best hyperplanes."""
    if search.has_linear_leaves or is_hopeless(search):
        return
    yield [search.best_of(is_oblique).values | {"l2": l2} for l2 in START_L2]
    yield from climb(search, "l2", L2_LADDER)


def find_close(trials: Sequence[Trial], max_errors: float) -> list[Trial]:
    """List the trials within some standard errors of the highest merit."""
    best = find_best(trials)
    return [trial for trial in trials if best.merit - trial.merit <= max_errors * best.error_against(trial)]


def select_linear_model(trials: Sequence[Trial], max_errors: float) -> Trial:
    """Return the linear model if it is close to the highest merit, else the trial of that merit."""
    close = find_close(trials, max_errors)
    return next((one for one in close if find_family(one.values) == "linear model"), find_best(trials))


def select_simplest(trials: Sequence[Trial], max_errors: float) -> Trial:
    """Return the smallest trial that is close to the highest merit."""
    return min(find_close(trials, max_errors), key=lambda trial: (trial.size, -trial.merit))


def select_by_family(trials: Sequence[Trial], weight: float) -> Trial:
    """Return the highest merit after shrinking every merit towards the mean of its family's upper half."""
    merits = defaultdict[str, list[float]](list)
    for trial in trials:
        merits[find_family(trial.values)].append(trial.merit)
    means = {family: np.mean(sorted(own)[len(own) // 2 :]) for family, own in merits.items()}
    return max(trials, key=lambda trial: (1 - weight) * trial.merit + weight * means[find_family(trial.values)])


def find_family(values: Values) -> str:
    """Name the family of a candidate: its splits and leaves."""
    if has_linear_leaves(values):
        return "linear leaves" if values["max_depth"] else "linear model"
    return "hyperplanes" if is_oblique(values) else "thresholds"


def omit(name: str, **wanted: Any) -> dict[str, Rule]:
    """Make the rule without the candidates that have these values; ... is any value but zero."""

    def omits(values: Values) -> bool:
        return all(bool(values.get(key)) if value is ... else values.get(key) == value for key, value in wanted.items())

    return {f"without {name}": Rule(omits=omits)}


def change(owner: Any, name: str, value: Any) -> Rule:
    """Make the rule with another value of a constant or another function."""
    return Rule(((owner, name, value),))


L2_LADDER, START_L2 = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1), (0.01, 0.003)
"""Penalties of squared weights that the rule ``l2`` compares."""

WITH_L2 = {"l2": Rule(rounds=(try_l2,))}
WITHOUT_L1, WITHOUT_SCALE = omit("l1", l1=...), omit("another scale", scale=...)
SHRINKAGES = {
    f"trial shrinkage: {', '.join(map(str, one))}": change(
        evaluators, "CART_SHRINKAGES", {"classes": one, "gaussians": one}
    )
    for one in ((3.0,), (10.0,), (30.0,), (1.0, 3.0, 10.0, 30.0))
}
MERITS = {
    **{f"log-loss share: {value}": change(candidates, "LOSS_SHARE", value) for value in (0.0, 0.1, 0.3, 0.5)},
    "penalties: by merit": change(evaluators, "select_penalty", select_penalty_by_merit),
}
OF_TREES = {
    **SHRINKAGES,
    "repeated rows: equal weights": Rule(((search, "weigh_repeated", equal_weights),), has_own_folds=True),
    "leaf sizes: 1, 5, 20": change(candidates, "CART_MIN_SAMPLES_LEAF", (1, 5, 20)),
    "leaf sizes: 1": change(candidates, "CART_MIN_SAMPLES_LEAF", (1,)),
    "without linear leaves": Rule(omits=has_linear_leaves),
    **omit("linear leaves of all features", leaf_model="linear"),
    **omit("linear leaves of the path", leaf_model=BRANCH_LINEAR),
    **WITHOUT_L1,
    **WITHOUT_SCALE,
    **WITH_L2,
    "folds: 10": Rule(((search, "MAX_FOLDS", 10),), has_own_folds=True),
    **{f"linear model: {k} errors": Rule(selects=partial(select_linear_model, max_errors=k)) for k in (0.5, 1, 2)},
    **{f"simplest: {k} errors": Rule(selects=partial(select_simplest, max_errors=k)) for k in (0.25, 0.5, 1)},
    **{f"family mean: {weight}": Rule(selects=partial(select_by_family, weight=weight)) for weight in (0.25, 0.5)},
}
ROUNDS = tuple(one for one in candidates.LARGE_TREE_ROUNDS if one is not candidates.try_noise_again)
WITHOUT_NOISE_AGAIN = {"without noise on another scale": change(search, "LARGE_TREE_ROUNDS", ROUNDS)}
OF_ADAM = {**WITH_L2, **WITHOUT_L1, **WITHOUT_SCALE, **WITHOUT_NOISE_AGAIN}
RULES: dict[tuple[str, str], dict[str, Rule]] = {
    ("tree", CLASSIFICATION): {**MERITS, **OF_TREES},
    ("tree", REGRESSION): OF_TREES,
    ("adam", CLASSIFICATION): {**OF_ADAM, **MERITS, **SHRINKAGES},
    ("adam", REGRESSION): OF_ADAM,
    ("forest", CLASSIFICATION): {
        **{f"leaf shrinkage: {value}": change(forests, "LEAF_SHRINKAGE", value) for value in (0.1, 1.0)},
        **omit("fewer features of hyperplanes", max_features=candidates.FEATURE_FRACTION),
        **WITHOUT_L1,
        **WITHOUT_SCALE,
        **WITH_L2,
    },
    ("forest", REGRESSION): {
        "trees: 100": Rule(parameters=(("n_estimators", 100),)),
        "rows of a tree: 0.8, none twice": Rule(parameters=(("bootstrap", False), ("max_samples", 0.8))),
        "folds: scored": Rule(((search.CandidateSearch, "is_bagged", False),), has_own_folds=True),
        "trees of trials: 10": change(evaluators, "MAX_CART_TRIAL_TREES", 10),
        "without more linear leaves": Rule(omits=has_more_penalties),
        "without linear leaves": Rule(omits=has_linear_leaves),
        "without fewer features": Rule(omits=has_fewer_features),
        "linear leaves: any number of features": change(candidates, "MAX_FEATURES_OF_LINEAR_LEAVES_OF_CART", 10**6),
        **omit("fewer features of hyperplanes", max_features=candidates.FEATURE_FRACTION),
        **WITHOUT_L1,
        **WITHOUT_SCALE,
        **WITH_L2,
    },
}
"""Rules by model and task. The values of a constant share the name before the colon."""


def make_adam_tree(task: str, seed: int, n_jobs: int) -> Any:
    """Make a default tree that Adam trains on tables of any size, as it does on large ones."""
    return make_tree(task, seed, n_jobs).set_params(training__optimizer="adam")


MODELS: dict[str, Callable[[str, int, int], Any]] = {"tree": make_tree, "forest": make_forest, "adam": make_adam_tree}


class Remembering:
    """An evaluator that trains every candidate once, whichever rules request it."""

    def __init__(self, evaluator: Any) -> None:
        self.evaluator, self.trials = copy.copy(evaluator), dict[str, list[Trial]]()
        self.evaluator.searches = []
        self.penalties = dict[str, list[Trial]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.evaluator, name)

    def evaluate(self, tasks: Sequence[Any]) -> Iterator[list[Trial]]:
        """Return the trials of candidates; those of hyperplanes do not depend on the constants of other trials."""
        for one in tasks:
            key = json.dumps(one.values, sort_keys=True, default=float)
            if not is_oblique(one.values):
                key += repr([evaluators.CART_SHRINKAGES, evaluators.MAX_CART_TRIAL_TREES])
                key += repr([candidates.LOSS_SHARE, evaluators.select_penalty])
            if key not in self.trials:
                (self.trials[key],) = self.evaluator.evaluate([one])
            yield self.trials[key]


def make_replay(rules: dict[str, Rule], selections: dict[str, Values]) -> type[search.CandidateSearch]:
    """Make a search that is run by all rules, records what each selects, and returns the result of the default."""

    class Replay(search.CandidateSearch):
        rule = rules[DEFAULT]

        def __init__(self, *arguments: Any, **how: Any) -> None:
            super().__init__(*arguments, **how)
            self.arguments, self.evaluator = arguments, Remembering(self.evaluator)
            self.parameters = self.parameters | {"l2": "auto"}

        @property
        def rounds(self) -> tuple[Round, ...]:
            return super().rounds + self.rule.rounds

        def evaluate(self, batch: list[Values]) -> bool:
            batch = [{name: value for name, value in one.items() if (name, value) != ("l2", 0.0)} for one in batch]
            return super().evaluate([values for values in batch if not self.rule.omits(values)])

        def select_by(self, rule: Rule) -> tuple[Values, list[Trial]]:
            self.rule, self.trials, self.n_candidates = rule, [], 0
            selected, trials = super().run()
            if trials and rule.selects is not find_best:
                own = rule.selects(self.trials)
                with patch.object(self, "best_of", lambda belongs: own):
                    selected = self.evaluator.select(self)
            return selected, trials

        def run(self) -> tuple[Values, list[Trial]]:
            with patch.dict(candidates.FALLBACKS, l2=0.0):
                return self.run_rules()

        def run_rules(self) -> tuple[Values, list[Trial]]:
            results = {}
            for name, rule in rules.items():
                with rule.applied():
                    own = type(self)(*self.arguments) if rule.has_own_folds else self
                    if own is not self and has_equal_folds(own.folds, self.folds):
                        results[name] = results[DEFAULT]
                        continue
                    results[name] = own.select_by(rule)
            selections.update({name: values for name, (values, _) in results.items()})
            return results[DEFAULT]

    return Replay


def has_equal_folds(own: Sequence[search.Fold], others: Sequence[search.Fold]) -> bool:
    """Return True if folds have the same held-out rows and weights."""
    return len(own) == len(others) and all(
        a.is_out_of_bag == b.is_out_of_bag and np.array_equal(a.held_out.weight, b.held_out.weight)
        for a, b in zip(own, others, strict=True)
    )


def make_refit(model: Any, values: Values) -> Any:
    """Make the estimator whose fit selects nothing and trains a candidate of a fitted model."""
    target = next(iter(model._named_trees().values())).target.name
    changes = list_changes(model.training_parameters(), values, target, model.image_shape_)
    changes |= {name: values[name] for name in ("l2",) if name in values}
    options = {name: f"training__{name}" for name in TrainingOptions.PARAMETERS}
    return clone(model).set_params(**{options.get(name, name): value for name, value in changes.items()})


def evaluate(model: Any, task: str, split: Any) -> tuple[float, float]:
    """Return accuracy and log loss on test rows, or R² and 0."""
    predicted = model.predict(split.X_test)
    if task != CLASSIFICATION:
        return r2_score(split.y_test, predicted), 0.0
    loss = compute_log_loss(split.y_test, model.predict_proba(split.X_test), model.classes_)
    return accuracy_score(split.y_test, predicted), loss


def is_wanted(rule: str, names: Sequence[str]) -> bool:
    """Return True for a rule whose name, or the part of it before the colon, is listed, or if none is."""
    return not names or rule in names or rule.split(":")[0] in names


def fit_rules(options: argparse.Namespace, model_name: str, name: str, seed: int) -> None:
    """Record what all rules select on a table, and its scores on test rows."""
    (table,) = read_tables(options.data, [name])
    store, key = Store(options.records, KEYS), {"model": model_name, "task": table.task, "table": name, "seed": seed}
    if store.get(*key.values(), DEFAULT) is not None:
        return
    start, split = time.process_time(), split_rows(table, seed)
    wanted = {rule: each for rule, each in RULES[model_name, table.task].items() if is_wanted(rule, options.rules)}
    rules = {DEFAULT: Rule(), **wanted}
    selections = dict[str, Values]()
    with patch.object(search, "CandidateSearch", make_replay(rules, selections)):
        model = MODELS[model_name](table.task, seed, 1).fit(split.X_train, split.y_train)
    scores, records = dict[str, tuple[float, float]](), []
    for rule, values in selections.items():
        text = json.dumps(values, sort_keys=True, default=float)
        with rules[rule].applied():
            known = repr([text, forests.LEAF_SHRINKAGE, rules[rule].parameters])
            if known not in scores:
                refit = model
                if rule != DEFAULT:
                    refit = make_refit(model, values).set_params(**dict(rules[rule].parameters))
                    refit.fit(split.X_train, split.y_train)
                scores[known] = evaluate(refit, table.task, split)
        score, loss = scores[known]
        records.append(key | {"rule": rule, "score": score, "log_loss": loss, "selected": values})
    seconds = time.process_time() - start
    store.put(*(record | {"seconds": round(seconds, 2), "commit": options.commit} for record in records))
    print(f"{model_name}, {name}, seed {seed}: {len(scores)} fits, {seconds:.1f} s", flush=True)


def run_fits(options: argparse.Namespace) -> None:
    """Fit all models, tables and seeds in several processes; seeds of all tables one after the other."""
    tables = list(read_tables(options.data, list_names(options.data, options.tables)))
    tables = [table for table in tables if options.max_rows is None or len(table.y) <= options.max_rows]
    tables.sort(key=lambda table: table.X.size, reverse=options.jobs > 1)
    units = [(model, table.name, seed) for model in options.models for seed in options.seeds for table in tables]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, context, prepare_process, (1,)) as pool:
        list(pool.map(partial(fit_rules, options), *zip(*units, strict=True)))


Scores = dict[str, np.ndarray]
"""Test scores and log losses by rule, averaged over seeds.  (n_tables, 2)"""


def average_seeds(records: Sequence[dict[str, Any]]) -> tuple[list[str], Scores]:
    """Return the names of the tables, and the mean scores of every rule on them."""
    cells = defaultdict[tuple[str, str], list[tuple[float, float]]](list)
    for record in records:
        cells[record["rule"], record["table"]].append((record["score"], record["log_loss"]))
    tables = sorted({table for _, table in cells})
    rules = dict.fromkeys(record["rule"] for record in records)
    return tables, {rule: np.array([np.mean(cells[rule, table], axis=0) for table in tables]) for rule in rules}


def describe_difference(new: np.ndarray, old: np.ndarray) -> str:
    """Describe the mean difference over tables with its standard error, and on how many tables there is one."""
    difference = new - old
    mean, error = difference.mean(axis=0), difference.std(axis=0) / np.sqrt(max(len(difference) - 1, 1))
    better, worse = (difference[:, 0] > 0).sum(), (difference[:, 0] < 0).sum()
    text = f"{100 * mean[0]:+.2f} ± {100 * error[0]:.2f} points ({better} better, {worse} worse)"
    return text + (f", log loss {mean[1]:+.4f} ± {error[1]:.4f}" if old[:, 1].any() else "")


def select_left_out(scores: Scores, rules: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Return the scores on every table of the rule that is best on all others, and those rules."""
    every, total = np.array([scores[rule] for rule in rules]), np.array([scores[rule].sum(axis=0) for rule in rules])
    best = [int(np.argmax((total - every[:, table])[:, 0])) for table in range(every.shape[1])]
    return every[best, np.arange(every.shape[1])], [rules[place] for place in best]


def compare_rules(records: Sequence[dict[str, Any]]) -> None:
    """Print the differences from the default rule, and the values of constants that other tables select."""
    tables, scores = average_seeds(records)
    fits = len({(record["table"], record["seed"]) for record in records})
    print(f"{fits} fits of {len(tables)} tables, mean {100 * scores[DEFAULT][:, 0].mean():.2f}")
    groups = defaultdict[str, list[str]](list)
    for rule in scores:
        groups[rule.split(":")[0]].append(rule)
    for name, rules in groups.items():
        if name == DEFAULT:
            continue
        for rule in rules:
            print(f"  {rule}: {describe_difference(scores[rule], scores[DEFAULT])}")
        left_out, selected = select_left_out(scores, [DEFAULT, *rules])
        times = ", ".join(f"{rule} {selected.count(rule)}" for rule in dict.fromkeys(selected))
        print(f"    selected on all other tables ({times}): {describe_difference(left_out, scores[DEFAULT])}")


def compare_records(options: argparse.Namespace) -> None:
    """Print all comparisons, by model and task."""
    store = Store(options.records, KEYS)
    for model in MODELS:
        for task in TASKS:
            records = [
                record
                for record in store.records(model=model, task=task)
                if (not options.tables or record["table"] in options.tables) and record["seed"] in options.seeds
            ]
            if records:
                print(f"{model}, {task}: ", end="")
                compare_rules(records)


def main(arguments: list[str] | None = None) -> int:
    def numbers(text: str) -> list[int]:
        return [int(number) for number in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["fit", "compare"])
    parser.add_argument("--data", type=Path, help="zip file or folder of tables; default: $CRISPTREE_DATA/tables.zip")
    parser.add_argument("--tables", type=lambda text: text.split(","), default=[], help="with commas; default: all")
    parser.add_argument("--max-rows", type=int, help="rows of a table at most")
    parser.add_argument("--models", type=lambda text: text.split(","), default=["tree"], help=", ".join(MODELS))
    parser.add_argument(
        "--rules", type=lambda text: text.split(","), default=[], help="names, or parts before the colon"
    )
    parser.add_argument("--seeds", type=numbers, default=SEEDS)
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--records", type=Path, default=RECORDS)
    options = parser.parse_args(arguments)
    if options.what == "compare":
        compare_records(options)
        return 0
    options.data, options.commit = options.data or find_source(), commit(options.records)
    run_fits(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
