"""Root mean squared errors of regression trees, with constant and linear leaves, and of forests, beside other models.

Each data set also comes rotated: its standardised columns turned by a random orthogonal matrix, after which no
threshold on one column follows what made the numbers. Every seed draws rows, rotation and split anew. Ours are plain
defaults with the depth of the column. scikit-learn's tree is tuned by 5-fold cross-validation over the rows in a leaf
at the same largest depth. LightGBM's tree of linear leaves (one tree, its learning rate 1, leaves and penalty tuned)
takes part where lightgbm is installed; where it is not, its cells say so.

    python -m benchmarks.bench_regression run --out FOLDER --jobs 16            # 5 seeds, depths 2 to 10, all sets
    python -m benchmarks.bench_regression run --out FOLDER --sets diabetes,friedman1 --depths 4,8 --seeds 0,1 --rows 250
    python -m benchmarks.bench_regression time --out FOLDER                     # training time over the classifier's
    python -m benchmarks.bench_regression time --out FOLDER --device cuda       # the same on a device
    python -m benchmarks.bench_regression predict --out FOLDER                  # the same of prediction
    python -m benchmarks.bench_regression page --out FOLDER                     # writes docs/results/regression.md

Results are lines of JSON; what is there already is not run again, so a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.regression_data import NAMES, parts
from benchmarks.regression_page import write_page
from benchmarks.timing import medians
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeRegressor
from threadpoolctl import threadpool_limits

from crisptree import CrispForestRegressor, CrispTreeClassifier, CrispTreeRegressor

LEAF_SIZES = [1, 5, 20]
"""Fewest rows in a leaf."""

BY_DEPTH = ("crisp", "tuned tree")
LIGHTGBM = "LightGBM, one linear tree"
ONCE = ("crisp forest", "random forest", "crisp, linear leaves", LIGHTGBM, "linear regression")


class Task(NamedTuple):
    """One model on one set; depth None where the model has its own."""

    set: str
    model: str
    depth: int | None
    seed: int

    @property
    def size(self) -> float:
        """Estimate the relative duration: the longest tasks start first."""
        effort = {"crisp forest": 60.0, "crisp, linear leaves": 30.0, "crisp": 1.0 + (self.depth or 0)}
        return effort.get(self.model, 0.1) * (10 if self.set.startswith("houses") else 1)


def tuned_tree(seed: int, depth: int | None) -> Any:
    tree, grid = DecisionTreeRegressor(max_depth=depth, random_state=seed), {"min_samples_leaf": LEAF_SIZES}
    return GridSearchCV(tree, grid, cv=5, scoring="neg_mean_squared_error")


def one_linear_tree(seed: int) -> Any:
    """LightGBM's; its number of leaves is tuned like ours."""
    from lightgbm import LGBMRegressor

    model = LGBMRegressor(n_estimators=1, learning_rate=1.0, linear_tree=True, verbose=-1, random_state=seed, n_jobs=1)
    grid = {"num_leaves": [4, 16, 64], "linear_lambda": [0.0, 1.0, 10.0]}
    return GridSearchCV(model, grid, cv=3, scoring="neg_mean_squared_error")


def model_of(task: Task) -> Any:
    """Make the model."""
    ours = {"random_state": task.seed, "n_jobs": 1, "device": "cpu"}
    made = {
        "crisp": lambda: CrispTreeRegressor.from_flat(max_depth=task.depth, **ours),
        "tuned tree": lambda: tuned_tree(task.seed, task.depth),
        "crisp, linear leaves": lambda: CrispTreeRegressor.from_flat(leaf_model="linear", **ours),
        "linear regression": LinearRegression,
        LIGHTGBM: lambda: one_linear_tree(task.seed),
        "crisp forest": lambda: CrispForestRegressor.from_flat(**ours),
        "random forest": lambda: RandomForestRegressor(random_state=task.seed, n_jobs=1),
    }
    return made[task.model]()


def done(task: Task, n_made: int, n_houses: int) -> dict[str, Any]:
    """Compute the error on test rows, the seconds of one core, and the selected parameters."""
    line: dict[str, Any] = task._asdict()
    X, X_test, y, y_test = parts(task.set, task.seed, n_made, n_houses)
    line["rows"] = len(y)
    if task.model == LIGHTGBM and find_spec("lightgbm") is None:
        return line | {"missing": "lightgbm is not installed"}
    model, begun = model_of(task), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    line["seconds"] = round(time.process_time() - begun, 2)
    line["rmse"] = float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
    if isinstance(model, GridSearchCV):
        return line | {"chosen": model.best_params_, "validated": float(np.sqrt(-model.best_score_))}
    return line | {"chosen": getattr(model, "best_params_", None)}


def tasks_of(names: list[str], depths: list[int], seeds: list[int], models: list[str]) -> list[Task]:
    found = [
        Task(name, model, depth, seed) for seed in seeds for name in names for depth in depths for model in BY_DEPTH
    ]
    found += [Task(name, model, None, seed) for seed in seeds for name in names for model in ONCE]
    return sorted((task for task in found if task.model in models), key=lambda task: -task.size)


def run(given: argparse.Namespace) -> None:
    """Run every missing task in processes of one thread each, and write results as they end."""
    kept = lines_of(given.out / "errors.jsonl")
    there = {Task(line["set"], line["model"], line["depth"], line["seed"]) for line in kept if "rmse" in line}
    missing = [task for task in tasks_of(given.sets, given.depths, given.seeds, given.models) if task not in there]
    given.out.mkdir(parents=True, exist_ok=True)
    with (
        ProcessPoolExecutor(
            given.jobs, mp_context=get_context("spawn"), initializer=threadpool_limits, initargs=(1,)
        ) as pool,
        (given.out / "errors.jsonl").open("a", encoding="utf-8") as file,
    ):
        for ended in as_completed([pool.submit(done, task, given.rows, given.houses) for task in missing]):
            print(json.dumps(ended.result()), file=file, flush=True)
            print(ended.result(), flush=True)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


SETTLED: dict[str, Any] = {"split": "oblique", "l1": 0.0, "input_noise": 0.3, "shrinkage": 0.0, "scale": "feature"}


def training_time(given: argparse.Namespace) -> None:
    """Seconds of fits with the same X and no choices, in turn: numbers, and the same numbers cut into five classes.

    On a device they are those of the clock, after a round that nobody counts: it builds kernels. What is there of other
    sets stays.
    """
    on_host = given.device == "cpu"
    clock, unseen = (time.process_time, 0) if on_host else (time.perf_counter, 1)
    path = given.out / ("times.jsonl" if on_host else f"times-{given.device}.jsonl")
    kept = [line for line in lines_of(path) if line["set"] not in given.sets]
    with threadpool_limits(1), path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in kept)
        for name, depth in (("friedman1", 4), ("friedman1", 8), ("houses", 4), ("houses", 8), ("houses", 10)):
            if name not in given.sets:
                continue
            X, _, y, _ = parts(name, 0, 2000, 25_000 if on_host else given.houses)
            classes = np.searchsorted(np.quantile(y, [0.2, 0.4, 0.6, 0.8]), y)
            values = {**SETTLED, "max_depth": depth, "n_jobs": 1, "device": given.device}
            seconds: dict[str, list[float]] = {"numbers": [], "classes": []}
            for seed in range(-unseen, given.rounds):
                for kind, model, target in (
                    ("numbers", CrispTreeRegressor.from_flat(random_state=max(seed, 0), **values), y),
                    ("classes", CrispTreeClassifier.from_flat(random_state=max(seed, 0), **values), classes),
                ):
                    begun = clock()
                    model.fit(X, target)
                    if seed >= 0:
                        seconds[kind].append(clock() - begun)
            numbers, of_classes = (float(np.median(found)) for found in seconds.values())
            line = {"set": name, "rows": len(y), "depth": depth, "rounds": given.rounds, "seconds": round(numbers, 4)}
            line["device"] = given.device
            line["over the classifier"] = round(numbers / of_classes, 2)
            print(json.dumps(line), file=file, flush=True)
            print(line, flush=True)


def prediction_time(given: argparse.Namespace) -> None:
    """Seconds of the clock of predictions, in turn: trees on the same X, a leaf of the one for a leaf of the other.

    Numbers cut into classes would grow another tree. So both have complete trees, which differ in their leaves only.
    """
    X, _, y, _ = parts("houses", 0, 2000, 25_000)
    classes = np.searchsorted(np.quantile(y, [0.2, 0.4, 0.6, 0.8]), y)
    many = np.resize(X, (100_000, X.shape[1]))
    with (given.out / "predictions.jsonl").open("w", encoding="utf-8") as file:
        for depth in (4, 8):
            values = {**SETTLED, "grow": "balanced", "max_depth": depth, "finetune_epochs": 5, "random_state": 0}
            trees = {
                "numbers": CrispTreeRegressor.from_flat(**values).fit(X, y),
                "classes": CrispTreeClassifier.from_flat(**values).fit(X, classes),
            }
            line: dict[str, Any] = {"depth": depth}
            for rows, repeat in ((many, 1), (many[:1], 100)):
                seconds = medians({name: partial(tree.predict, rows) for name, tree in trees.items()}, repeat=repeat)
                line[str(len(rows))] = round(seconds["numbers"] / seconds["classes"], 2)
            print(json.dumps(line), file=file, flush=True)
            print(line, flush=True)


def main() -> None:
    def words(text: str) -> list[str]:
        return [name.strip() for name in text.split(",")]

    def models(text: str) -> list[str]:
        return [name.strip() for name in text.split(";")]  # some of the names hold a comma

    def numbers(text: str) -> list[int]:
        return [int(number) for number in text.split(",") if number]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["run", "time", "predict", "page"])
    parser.add_argument("--out", type=Path, required=True, help="folder of results")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--sets", type=words, default=None, help="names with commas; each with its rotated version")
    parser.add_argument("--depths", type=numbers, default=list(range(2, 11)), help="with commas; empty for none")
    parser.add_argument("--seeds", type=numbers, default=list(range(5)), help="with commas")
    parser.add_argument("--models", type=models, default=[*BY_DEPTH, *ONCE], help="names with semicolons")
    parser.add_argument("--rows", type=int, default=1000, help="training rows of Friedman's functions")
    parser.add_argument("--houses", type=int, default=100_000, help="houses, of which four fifths train")
    parser.add_argument("--rounds", type=int, default=5, help="of time")
    parser.add_argument("--device", default="cpu", help="of time: cpu or cuda")
    given = parser.parse_args()
    if unknown := set(given.models) - {*BY_DEPTH, *ONCE}:
        parser.error(
            f"no such models: {sorted(unknown)}. Known are {'; '.join([*BY_DEPTH, *ONCE])}; put ';' between them."
        )
    given.sets = [name for name in NAMES if given.sets is None or name.split(",")[0] in given.sets]
    given.out.mkdir(parents=True, exist_ok=True)
    if given.part == "page":
        times = [line for name in ("times.jsonl", "times-cuda.jsonl") for line in lines_of(given.out / name)]
        write_page(lines_of(given.out / "errors.jsonl"), times, lines_of(given.out / "predictions.jsonl"))
    else:
        {"run": run, "time": training_time, "predict": prediction_time}[given.part](given)


if __name__ == "__main__":
    main()
