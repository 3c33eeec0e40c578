"""Forests: accuracy compared with a random forest and boosting, times of training and prediction, effect of options.

CRISPTREE_DATA=/folder python benchmarks/bench_forest.py accuracy --out FOLDER --device cuda
CRISPTREE_DATA=/folder python benchmarks/bench_forest.py speed --out FOLDER
CRISPTREE_DATA=/folder python benchmarks/bench_forest.py tune --out FOLDER --device cuda
python benchmarks/bench_forest.py page --out FOLDER          # writes docs/results/forests.md

Results are lines of JSON, one file for each part; what is there already is not run again. ``tune`` judges settings by a
fifth of the training rows and never looks at test rows; ``accuracy`` takes the defaults.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits
from timing import medians, table

from crisptree import CrispForestClassifier, CrispTreeClassifier
from crisptree.datasets import load_connect4, load_digits, load_fashion_mnist, load_mnist

PAGE = Path(__file__).parent.parent / "docs" / "results" / "forests.md"
TREES = 25
CPU_ROWS = 3000
"""Rows by which training is timed on two cores."""

LARGE = {"MNIST": load_mnist, "Fashion-MNIST": load_fashion_mnist, "Connect-4": load_connect4}
SETS = (*LARGE, "digits")
TARGETS = {"MNIST": 97.9, "Fashion-MNIST": 89.8, "Connect-4": 85.0, "digits": 98.0}
BASELINES: dict[str, Callable[[int], Any]] = {
    "random forest, 100 trees": lambda seed: RandomForestClassifier(100, n_jobs=1, random_state=seed),
    "hist gradient boosting": lambda seed: HistGradientBoostingClassifier(random_state=seed),
}
SLOW = {("MNIST", "hist gradient boosting"), ("Fashion-MNIST", "hist gradient boosting")}
"""Minutes of many cores each; not run."""

IMAGES = {"split": "oblique", "input_noise": 0.5, "l1": 0.0, "max_depth": 10}
TABLES = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "max_depth": 10}
SETTINGS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "depth 8": {"max_depth": 8},
    "depth 12": {"max_depth": 12},
    "depth 14": {"max_depth": 14},
    "depth 14 without noise": {"max_depth": 14, "input_noise": 0.0},
    "depth 14 with twice the noise": {"max_depth": 14, "input_noise": 1.0},
    "depth 14 with half of the features": {"max_depth": 14, "max_features": 0.5},
    "depth 14 without bootstrap": {"max_depth": 14, "bootstrap": False},
    "depth 14 with four fifths of the rows": {"max_depth": 14, "bootstrap": False, "max_samples": 0.8},
    "depth 14 and shrinkage 1": {"max_depth": 14, "shrinkage": 1.0},
    "no noise": {"input_noise": 0.0},
    "less noise": {"input_noise": 0.2},
    "more noise": {"input_noise": 0.8},
    "more noise, depth 12": {"input_noise": 0.8, "max_depth": 12},
    "half of the features": {"max_features": 0.5},
    "no bootstrap": {"bootstrap": False},
    "80 epochs": {"finetune_epochs": 80},
    "l2 1e-3": {"l2": 1e-3},
    "shrinkage 1": {"shrinkage": 1.0},
}
"""What ``tune`` tries, beside IMAGES or TABLES and a bootstrap."""


class Results:
    """Lines of JSON in a file; a run that is in it is not made again."""

    def __init__(self, folder: Path, part: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{part}.jsonl"
        self.lines = [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def has(self, **key: Any) -> bool:
        return any(all(line.get(name) == value for name, value in key.items()) for line in self.lines)

    def add(self, **line: Any) -> None:
        self.lines.append(line)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(line, flush=True)


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test rows of one of the sets with a test part of their own."""
    data = load_digits() if name == "digits" else LARGE[name]()
    return *data.all_but_test(), data.X_test, data.y_test


def image_shape(name: str) -> dict[str, Any]:
    return {"image_shape": (28, 28)} if name in ("MNIST", "Fashion-MNIST") else {}


def forest_line(model: Any, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> dict[str, Any]:
    """Accuracy and training time; of a crisp forest also how good its first trees are, and single ones."""
    started = time.perf_counter()
    model.fit(X, y)
    line: dict[str, Any] = {"seconds": time.perf_counter() - started, "accuracy": 100 * model.score(X_test, y_test)}
    if isinstance(model, CrispForestClassifier):
        each = np.stack([tree.predict_proba(X_test) for tree in model.estimators_])
        classes = model.classes_
        for number in (5, 10, 15, 20):
            line[f"first {number}"] = 100 * float(np.mean(classes[each[:number].mean(axis=0).argmax(axis=1)] == y_test))
        line["one tree"] = 100 * float(np.mean(classes[each.argmax(axis=2)] == y_test))
        line["oob"] = 100 * getattr(model, "oob_score_", np.nan)
        line["chosen"] = model.best_params_
        some = X_test[:1000]
        line["splits a row"] = sum(float(tree.decision_path(some).sum()) / len(some) - 1 for tree in model.estimators_)
        line["leaves"] = model.get_n_leaves() / len(model)
    return line


def accuracy_of(task: tuple[str, str, int, str]) -> list[dict[str, Any]]:
    """Compute all lines of one model, set and seed."""
    name, kind, seed, device = task
    X, y, X_test, y_test = rows_of(name)
    ours = CrispForestClassifier.from_flat(
        n_estimators=TREES, random_state=seed, device=device, n_jobs=-1, **image_shape(name)
    )
    if name == "digits":
        ours.set_params(n_jobs=1)
    model = ours if kind == "crisp forest" else BASELINES[kind](seed)
    if name in LARGE and kind != "crisp forest":
        model.set_params(**({"n_jobs": -1} if "n_jobs" in model.get_params() else {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [{"set": name, "model": kind, "seed": seed, **forest_line(model, X, y, X_test, y_test)}]


def tuned(task: tuple[str, str, int, str]) -> list[dict[str, Any]]:
    """Score one setting on a held-out fifth of the training rows."""
    name, setting, seed, device = task
    X, y, _, _ = rows_of(name)
    X, X_held, y, y_held = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
    base = IMAGES if image_shape(name) else TABLES
    values = {**base, "bootstrap": True, **image_shape(name), **SETTINGS[setting]}
    model = CrispForestClassifier.from_flat(n_estimators=TREES, random_state=seed, device=device, n_jobs=-1, **values)
    return [{"set": name, "setting": setting, "seed": seed, **forest_line(model, X, y, X_held, y_held)}]


def run_all(results: Results, work: Callable[[Any], list[Any]], tasks: list[Any], key: str, jobs: int) -> None:
    """Run every missing task in processes of one thread each, and write results as they end."""
    missing = [task for task in tasks if not results.has(set=task[0], seed=task[2], **{key: task[1]})]
    if jobs == 1:
        for task in missing:
            for line in work(task):
                results.add(**line)
        return
    with ProcessPoolExecutor(jobs, initializer=threadpool_limits, initargs=(1,)) as pool:
        for ended in as_completed([pool.submit(work, task) for task in missing]):
            for line in ended.result():
                results.add(**line)


def accuracy(results: Results, sets: list[str], seeds: int, device: str, jobs: int) -> None:
    kinds = ["crisp forest", *BASELINES]
    tasks = [
        (name, kind, seed, device)
        for name in sets
        for seed in range(seeds)
        for kind in kinds
        if (name, kind) not in SLOW
    ]
    run_all(results, accuracy_of, tasks, "model", jobs)


def time_of_fit(model: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Seconds by the clock, and those of all processors together."""
    started = np.array([time.perf_counter(), time.process_time()])
    model.fit(X, y, sample_weight=weight)
    return np.array([time.perf_counter(), time.process_time()]) - started


def speed(results: Results, sets: list[str], device: str) -> None:
    """Compare a forest with as many fits in sequence, and its prediction with that of a random forest."""
    for name in [name for name in sets if name in LARGE]:
        if results.has(what="training", set=name, device=device):
            continue
        X, y, X_test, _ = rows_of(name)
        if device == "cpu":
            X, _, y, _ = train_test_split(X, y, train_size=CPU_ROWS, stratify=y, random_state=0)
        values = {**(IMAGES if image_shape(name) else TABLES), **image_shape(name), "device": device}
        values |= {"n_jobs": 2 if device == "cpu" else -1}
        shared = {"scale": "global" if image_shape(name) else "feature"}
        one = {**values, **shared, "l1": 0.0, "shrinkage": 0.0}
        CrispForestClassifier.from_flat(n_estimators=2, random_state=0, **values, **shared).fit(
            X, y
        )  # compiles what it needs
        rng, n_alone, alone = np.random.default_rng(0), TREES if device == "cpu" else 3, []
        forest = CrispForestClassifier.from_flat(n_estimators=TREES, random_state=0, **values, **shared)
        forests, wholes = [], []
        for seed in range(n_alone):
            if seed == n_alone // 2 or device != "cpu":  # in between: the machine may be busier before than after
                forests.append(time_of_fit(forest, X, y))
                wholes.append(time_of_fit(CrispTreeClassifier.from_flat(random_state=seed, **one), X, y))
            times = np.bincount(rng.integers(len(y), size=len(y)), minlength=len(y))
            alone.append(time_of_fit(CrispTreeClassifier.from_flat(random_state=seed, **one), X, y, times))
        each, together, whole = (np.median(seconds, axis=0) for seconds in (alone, forests, wholes))
        results.add(
            what="training",
            set=name,
            device=device,
            rows=len(y),
            over_25=together[0] / (TREES * each[0]),
            over_25_processor=together[1] / (TREES * each[1]),
            over_one=together[0] / whole[0],
            seconds=together[0],
        )
        if name == "MNIST":
            prediction(results, forest, X, y, X_test)


def prediction(results: Results, forest: Any, X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> None:
    many = np.ascontiguousarray(X_test[np.arange(10_000) % len(X_test)], dtype=np.float32)
    baseline = RandomForestClassifier(100, n_jobs=-1, random_state=0).fit(X, y)
    one = many[:1]
    seconds = medians({"crisp": lambda: forest.predict(many), "random": lambda: baseline.predict(many)}, rounds=5)
    single = medians({"one": lambda: forest.predict(one)}, rounds=25, repeat=20)
    results.add(
        what="prediction",
        set="MNIST",
        ratio=seconds["crisp"] / seconds["random"],
        milliseconds=1e3 * seconds["crisp"],
        microseconds_of_one_row=1e6 * single["one"],
    )


def page(folder: Path) -> None:
    """Write the tables of docs/results/forests.md."""
    lines = Results(folder, "accuracy").lines
    rows = []
    for name in SETS:
        row = [name]
        for kind in ("crisp forest", *BASELINES):
            scores = [line["accuracy"] for line in lines if line["set"] == name and line["model"] == kind]
            row.append(f"{np.mean(scores):.2f} ({len(scores)})" if scores else "—")
        ours = [line for line in lines if line["set"] == name and line["model"] == "crisp forest"]
        row.append(f"{np.mean([line['one tree'] for line in ours]):.2f}" if ours else "—")
        row.append(f"{np.mean([line['oob'] for line in ours]):.2f}" if ours else "—")
        rows.append([*row, f"{TARGETS[name]:.1f}"])
    head = ["set", "crisp forest, 25 trees", *BASELINES, "one of its trees", "out of bag", "target"]
    parts = ["## Accuracy\n\n" + table(head, rows)]
    found = Results(folder, "speed").lines
    rows = [
        [
            *(line["set"], line["device"], f"{line['rows']:,}", f"{line['over_25']:.2f}"),
            f"{line['over_25_processor']:.2f}" if "over_25_processor" in line else "—",
            f"{line['over_one']:.1f}",
        ]
        for line in found
        if line["what"] == "training"
    ]
    head = [
        "set",
        "device",
        "rows",
        "over 25 fits one after the other",
        "in processor time",
        "over one fit on all rows",
    ]
    parts.append("## Time of training, 25 trees\n\n" + table(head, rows))
    predicted = [line for line in found if line["what"] == "prediction"]
    rows = [[f"{line['ratio']:.2f}", f"{line['microseconds_of_one_row']:.0f}"] for line in predicted]
    head = ["10,000 rows of MNIST, over a random forest of 100", "one row, µs"]
    parts.append("## Time of prediction, 25 trees\n\n" + table(head, rows))
    lines = Results(folder, "tune").lines
    names = sorted({line["set"] for line in lines})
    rows = []
    for setting in SETTINGS:
        if not any(line["setting"] == setting for line in lines):
            continue
        row = [setting]
        for name in names:
            scores = [line["accuracy"] for line in lines if line["set"] == name and line["setting"] == setting]
            row.append(f"{np.mean(scores):.2f} ({len(scores)})" if scores else "—")
        rows.append(row)
    title = "## Settings, on a fifth of the training rows"
    what = "Depth 10 and bootstraps unless the setting names others."
    parts.append(f"{title}\n\n{what}\n\n" + table(["setting", *names], rows))
    notes = folder / "notes.md"
    PAGE.write_text(INTRODUCTION + "\n".join([*parts, *([notes.read_text()] if notes.exists() else [])]))


INTRODUCTION = """# Forests

**25 crisp trees are more accurate than a random forest of 100 trees on MNIST, Fashion-MNIST,
Connect-4 and digits, by 0.5 to 2.4 points.**

Defaults, test accuracy in %, with the number of seeds in brackets. Settings were compared on a
fifth of the training rows, never on test rows. Times are ratios of one run. [Small
tables](small-tables.md) has forests on tables. Made by `benchmarks/bench_forest.py`.

"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=["accuracy", "speed", "tune", "page"])
    parser.add_argument("--out", type=Path, required=True, help="folder of results")
    parser.add_argument("--sets", default=",".join(SETS), help="names with commas")
    parser.add_argument("--settings", default=None, help="of tune, names with commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    given = parser.parse_args()
    names = given.sets.split(",")
    if given.part == "page":
        page(given.out)
        return
    results = Results(given.out, given.part)
    if given.part == "accuracy":
        accuracy(results, names, given.seeds, given.device, given.jobs)
    elif given.part == "speed":
        speed(results, names, given.device)
    else:
        settings = given.settings.split(",") if given.settings else [*SETTINGS]
        pairs = [(name, setting) for setting in settings for name in names]
        tasks = [(*pair, seed, given.device) for seed in range(given.seeds) for pair in pairs]
        run_all(results, tuned, tasks, "setting", given.jobs)


if __name__ == "__main__":
    main()
