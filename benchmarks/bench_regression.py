"""Root mean squared errors of trees of numbers: constant and linear leaves beside scikit-learn's tree and others.

Each data set also comes rotated: its standardised columns turned by a random orthogonal matrix, after which no
threshold on one column follows what made the numbers. Every seed draws rows, rotation and split anew; the tree of
scikit-learn is tuned by 5-fold cross-validation over depths 2 to 10 and rows in a leaf. LightGBM's tree of linear
leaves (one tree, its learning rate 1) takes part where lightgbm is installed.

    python -m benchmarks.bench_regression                 # 5 seeds, 100,000 rows of houses: hours on two cores
    python -m benchmarks.bench_regression --quick         # 3 seeds, small tables: some minutes
    python -m benchmarks.bench_regression --quick --depths 2 4 6 8 10     # and ours beside theirs, depth by depth
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2, make_friedman3
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.tree import DecisionTreeRegressor

from crisptree import CrispTreeRegressor

Doubles = npt.NDArray[np.float64]
Rows = tuple[Doubles, Doubles]

PAGE = Path(__file__).parent.parent / "docs" / "results" / "regression.md"
LEAF_SIZES = [1, 5, 20]


def houses(n: int, seed: int) -> Rows:
    """Numbers like those of house prices: income, age and size of houses, and how far the coast and two towns are."""
    rng = np.random.default_rng(seed)
    towns = np.array([[-1.5, 1.0], [1.0, -1.2]])
    place = np.where(rng.random((n, 1)) < 0.7, towns[rng.integers(2, size=n)], 0.0) + rng.normal(size=(n, 2))
    income, age = rng.gamma(3.0, 1.3, n), rng.uniform(1, 52, n)
    rooms = 4 + 0.4 * income + rng.normal(size=n)
    bedrooms, people = rooms / 5 + 0.1 * rng.normal(size=n), 3 + rng.exponential(0.8, n)
    crowd = rng.lognormal(7, 0.7, n)
    far = np.sqrt(((place[:, None] - towns) ** 2).sum(axis=2)).min(axis=1)
    coast = place[:, 0] + 0.8 * place[:, 1]
    price = (
        0.45 * income + 1.2 * np.exp(-far) - 0.35 * coast * (coast > 0) + 0.01 * age * (far < 1) - 0.3 * (people - 3)
    )
    price = np.minimum(np.exp(0.25 * price) + 0.25 * rng.normal(size=n), 5.0)
    return np.column_stack([income, age, rooms, bedrooms, crowd, people, place]), price


def rotated(X: Doubles, seed: int) -> Doubles:
    """Standardised columns, turned."""
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(X.shape[1], X.shape[1])))[0]
    return (X - X.mean(axis=0)) / X.std(axis=0) @ turn


def data(n_made: int, n_houses: int) -> dict[str, Callable[[int], Rows]]:
    """By name, a function of the seed."""
    return {
        "diabetes": lambda seed: load_diabetes(return_X_y=True),
        "friedman1": lambda seed: make_friedman1(2 * n_made, noise=1.0, random_state=seed),
        "friedman2": lambda seed: make_friedman2(2 * n_made, noise=100.0, random_state=seed),
        "friedman3": lambda seed: make_friedman3(2 * n_made, noise=0.1, random_state=seed),
        "houses": lambda seed: houses(n_houses, seed),
    }


def tuned_tree(seed: int, depths: list[int]) -> Any:
    grid = {"max_depth": depths, "min_samples_leaf": LEAF_SIZES}
    return GridSearchCV(DecisionTreeRegressor(random_state=seed), grid, cv=5, scoring="neg_mean_squared_error")


def one_linear_tree(seed: int) -> Any:
    """LightGBM's, or None where it is not installed; its number of leaves is tuned like ours."""
    try:
        from lightgbm import LGBMRegressor
    except ImportError:
        return None
    model = LGBMRegressor(n_estimators=1, learning_rate=1.0, linear_tree=True, verbose=-1, random_state=seed)
    return GridSearchCV(model, {"num_leaves": [4, 16, 64], "linear_lambda": [0.0, 1.0, 10.0]}, cv=3)


def models(seed: int, jobs: int) -> dict[str, Any]:
    """What is compared."""
    ours = {"random_state": seed, "n_jobs": jobs}
    found = {
        "crisp": CrispTreeRegressor(**ours),
        "crisp, linear leaves": CrispTreeRegressor(leaves="linear", **ours),
        "tuned tree": tuned_tree(seed, list(range(2, 11))),
        "linear regression": LinearRegression(),
        "LightGBM, one linear tree": one_linear_tree(seed),
        "forest of 100": RandomForestRegressor(random_state=seed, n_jobs=jobs),
    }
    return {name: model for name, model in found.items() if model is not None}


def parts(make: Callable[[int], Rows], seed: int, turned: bool) -> tuple[Any, ...]:
    X, y = make(seed)
    X = rotated(X, seed) if turned else X
    return tuple(
        train_test_split(X.astype(np.float32), y, test_size=0.5 if len(y) < 20_000 else 0.2, random_state=seed)
    )


def rmse(model: Any, split: tuple[Any, ...]) -> tuple[float, float]:
    """The error on rows that were not seen, and the seconds of the fit."""
    X, X_test, y, y_test = split
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    seconds = time.perf_counter() - begun
    return float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))), seconds


def said(values: list[float]) -> str:
    spread = f" ± {np.std(values, ddof=1):.2g}" if len(values) > 1 else ""
    return f"{np.mean(values):.4g}{spread}"


def compare(arguments: argparse.Namespace) -> list[str]:
    """A line for every data set."""
    n_made, n_houses = (500, 4000) if arguments.quick else (2000, 100_000)
    names = list(models(0, 1))
    lines = ["| data | " + " | ".join(names) + " |", "| --- |" + " --- |" * len(names)]
    for name, make in data(n_made, n_houses).items():
        for turned in (False, True):
            if arguments.only and name not in arguments.only:
                continue
            errors: dict[str, list[float]] = {one: [] for one in names}
            times: dict[str, list[float]] = {one: [] for one in names}
            for seed in range(arguments.seeds):
                split = parts(make, seed, turned)
                for one, model in models(seed, arguments.jobs).items():
                    error, seconds = rmse(model, split)
                    errors[one].append(error)
                    times[one].append(seconds)
            title = f"{name}, rotated" if turned else name
            lines.append(f"| {title} ({len(split[0]):,} rows) | " + " | ".join(map(said, errors.values())) + " |")
            print(lines[-1], {one: round(float(np.mean(each)), 1) for one, each in times.items()}, flush=True)
    return lines


def by_depth(arguments: argparse.Namespace) -> list[str]:
    """Ours and the tuned tree with the same largest depth."""
    n_made, n_houses = (500, 4000) if arguments.quick else (2000, 100_000)
    depths = arguments.depths
    lines = ["| data | " + " | ".join(f"depth {depth}" for depth in depths) + " |", "| --- |" + " --- |" * len(depths)]
    for name, make in data(n_made, n_houses).items():
        for turned in (False, True):
            if arguments.only and name not in arguments.only:
                continue
            cells = []
            for depth in depths:
                ours, theirs = [], []
                for seed in range(arguments.seeds):
                    split = parts(make, seed, turned)
                    model = CrispTreeRegressor(max_depth=depth, random_state=seed, n_jobs=arguments.jobs)
                    ours.append(rmse(model, split)[0])
                    theirs.append(rmse(tuned_tree(seed, [depth]), split)[0])
                cells.append(f"{np.mean(ours):.4g} / {np.mean(theirs):.4g}")
            lines.append(f"| {name}{', rotated' if turned else ''} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=None)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--depths", nargs="*", type=int)
    parser.add_argument("--output", type=Path, default=None)
    arguments = parser.parse_args()
    arguments.seeds = arguments.seeds or (3 if arguments.quick else 5)
    lines = compare(arguments)
    if arguments.depths:
        lines += ["", "Largest depth: crisp / tuned tree.", "", *by_depth(arguments)]
    if arguments.output is not None:
        arguments.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
