"""Speed of prediction: against other packages on the same rows, and by rows, features and depth.

    make bench-predict

Writes docs/results/prediction.md. Uses MNIST of the folder CRISPTREE_DATA; without it, random rows of the same shape,
and the page is left as it is. neural-trees, obliquetree, ydf and lightgbm take part where they are installed.
"""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier
from timing import medians, table

from crisptree import CrispTreeClassifier, TrainingOptions
from crisptree.data.raw_rows import Scaling
from crisptree.inference import FlatTree
from crisptree.inference import flat_tree as routing
from crisptree.inference.finalization import empty_statistics
from crisptree.native import router
from crisptree.structure import TreeStructure

DEPTH = 8
PAGE = Path(__file__).parents[1] / "docs" / "results" / "prediction.md"
OURS, THEIRS, PRODUCT = "crisptree", "scikit-learn, axis-aligned", "all splits as a matrix product"


def rows() -> tuple[str, np.ndarray, np.ndarray, np.ndarray]:
    """Training rows and labels, and 10,000 × 784 float32 rows to predict."""
    folder = os.environ.get("CRISPTREE_DATA")
    if folder:
        with np.load(Path(folder) / "mnist.npz") as data:
            X, X_test = (data[name].reshape(-1, 784).astype(np.float32) for name in ("X_train", "X_test"))
            return "MNIST", X[:20_000], data["y_train"][:20_000], X_test
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 784)).astype(np.float32)
    y = (X[:, :10] + rng.normal(size=(20_000, 10))).argmax(axis=1)
    return "random rows", X, y, rng.normal(size=(10_000, 784)).astype(np.float32)


def random_tree(depth: int, n_features: int) -> FlatTree:
    rng = np.random.default_rng(0)
    structure = TreeStructure.balanced(depth)
    weight = rng.normal(size=(structure.n_splits, n_features)).astype(np.float32)
    leaves = np.full((structure.n_leaves, 10), 0.1)
    statistics = empty_statistics(structure, Scaling.none(n_features), leaves, 1.0)
    return FlatTree(structure, leaves, statistics, weight=weight, bias=np.zeros(structure.n_splits, dtype=np.float32))


def others(X: np.ndarray, y: np.ndarray) -> dict[str, Callable[[np.ndarray], Any]]:
    """Fitted predictors of the other packages; training is kept short, for only prediction is timed."""
    found: dict[str, Callable[[np.ndarray], Any]] = {}

    def neural_trees() -> Callable[[np.ndarray], Any]:
        from neural_trees import SoftDecisionTree

        return SoftDecisionTree(depth=DEPTH, max_epochs=1, batch_size=1000).fit(X, y).to_hard_tree().predict

    def obliquetree() -> Callable[[np.ndarray], Any]:
        from obliquetree import Classifier

        model = Classifier(max_depth=DEPTH, random_state=0)
        model.fit(X[:3000].astype(np.float64), y[:3000])
        return model.predict

    def ydf() -> Callable[[np.ndarray], Any]:
        import ydf as package

        package.verbose(0)
        learner = package.CartLearner(label="y", max_depth=DEPTH + 1, split_axis="SPARSE_OBLIQUE")
        model = learner.train({"x": X[:3000], "y": y[:3000]})
        return lambda rows: model.predict({"x": rows})

    def lightgbm() -> Callable[[np.ndarray], Any]:
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=100, max_depth=DEPTH, verbose=-1).fit(X[:3000], y[:3000]).predict

    for name, build in {
        "neural-trees, hard": neural_trees,
        "obliquetree": obliquetree,
        "ydf CART sparse oblique": ydf,
        "lightgbm, 100 rounds": lightgbm,
    }.items():
        try:
            found[name] = build()
        except ImportError as error:
            print(f"({name}: not installed: {error.name})")
    return found


def ratios_to(base: str, found: dict[str, float]) -> dict[str, float]:
    return {name: value / found[base] for name, value in found.items()}


def verdict(is_met: bool) -> str:
    return "met" if is_met else "missed"


def against_others() -> tuple[str, dict[str, str], str]:
    """Time all packages on the same rows; return the goals with the measured values too, and the answer of the page."""
    name, X, y, X_test = rows()
    crisp = CrispTreeClassifier(
        max_depth=DEPTH,
        training=TrainingOptions(epochs=10, finetune_epochs=5, min_updates=0),
        random_state=0,
        n_jobs=-1,
    ).fit(X, y)
    plain = DecisionTreeClassifier(max_depth=DEPTH, random_state=0).fit(X, y)
    tree = crisp.tree_
    assert isinstance(tree, FlatTree)
    predictors = {
        OURS: crisp.predict,
        THEIRS: plain.predict,
        PRODUCT: lambda rows: rows @ tree.weight.T + tree.bias,
        **others(X, y),
    }
    path = np.asarray(crisp.decision_path(X_test).sum(axis=1)).mean() - 1
    one = X_test[:1].copy()
    calls = {key: lambda call=call: call(X_test) for key, call in predictors.items()}
    many, spent = medians(calls), ratios_to(THEIRS, medians(calls, rounds=15, clock=time.process_time))
    single = medians({key: lambda call=call: call(one) for key, call in predictors.items()}, rounds=25, repeat=20)
    by_clock, by_row = ratios_to(THEIRS, many), ratios_to(THEIRS, single)
    lines = [
        [key, f"{by_clock[key]:.2f}", f"{spent[key]:.2f}", f"{by_row[key]:.3f}", f"{1e6 * single[key]:.1f}"]
        for key in predictors
    ]
    header = ["", "10,000 rows, ratio to scikit-learn", "the same in processor time"]
    header += ["one row, ratio to scikit-learn", "one row, µs"]
    kernel, alone = bare(tree, one, X_test)
    title = f"## {name}, 10,000 × 784 float32, depth {DEPTH} ({tree.structure.n_splits} splits, mean path {path:.2f})"
    reached = {
        "`predict`, 10,000 MNIST rows, against scikit-learn's axis-aligned tree of depth 8 | at most 1.0 ×": (
            f"{by_clock[OURS]:.2f} × by the clock, {spent[OURS]:.2f} × in processor time | "
            f"{verdict(max(by_clock[OURS], spent[OURS]) <= 1)}"
        ),
        "against all splits as a matrix product | at least 12 × less": (
            f"{many[PRODUCT] / many[OURS]:.1f} × less | {verdict(many[PRODUCT] >= 12 * many[OURS])}"
        ),
        "one row through `predict`, against scikit-learn | at most a third": (
            f"{by_row[OURS]:.3f} ({1e6 * single[OURS]:.1f} µs) | {verdict(by_row[OURS] <= 1 / 3)}"
        ),
        "bare kernel on one row | under 2 µs + dot products": (
            f"{1e6 * alone:.2f} µs in all | "
            f"{'met' if alone < 2e-6 else 'not shown: dot products are not measured apart'}"
        ),
    }
    answer = (
        f"One MNIST image takes {1e6 * single[OURS]:.1f} µs, 1/{1 / by_row[OURS]:.0f} of the time of scikit-learn's "
        f"tree; 10,000 images take {by_clock[OURS]:.2f} of its time by the clock and {spent[OURS]:.2f} of its "
        "processor time. Predictions are bit for bit the same on every instruction set."
    )
    return f"{title}\n\n{table(header, lines)}\n{kernel}", reached, fill(f"**{answer}**", 100)


def full_leaves() -> tuple[str, dict[str, str]]:
    """256 leaves that all have rows: a complete tree of random hyperplanes on random rows, of every type of number."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 784)).astype(np.float32)
    y = rng.integers(0, 10, len(X))
    model = CrispTreeClassifier(n_jobs=-1)
    model.tree_ = random_tree(DEPTH, 784)
    model.classes_, model.n_features_in_ = np.arange(10), 784
    plain = DecisionTreeClassifier(max_depth=DEPTH, random_state=0).fit(X, y)
    wide, half, small = X.astype(np.float64), X.astype(np.float16), rng.integers(0, 256, X.shape, dtype=np.uint8)
    calls = {
        THEIRS: lambda: plain.predict(X),
        OURS: lambda: model.predict(X),
        "crisptree, float64": lambda: model.predict(wide),
        "crisptree, float16": lambda: model.predict(half),
        "scikit-learn, uint8": lambda: plain.predict(small),
        "crisptree, uint8": lambda: model.predict(small),
    }
    assert len(np.unique(model.leaf_indices(X))) > 200
    by_clock = ratios_to(THEIRS, medians(calls))
    spent = ratios_to(THEIRS, medians(calls, rounds=15, clock=time.process_time))
    lines = [[name, f"{by_clock[name]:.2f}", f"{spent[name]:.2f}"] for name in calls]
    title = f"## Random rows, 10,000 × 784, depth {DEPTH}, 256 full leaves"
    found = table(["", "ratio to scikit-learn on float32", "the same in processor time"], lines)
    result = f"{by_clock[OURS]:.2f} × by the clock, {spent[OURS]:.2f} × in processor time | "
    result += verdict(max(by_clock[OURS], spent[OURS]) <= 1)
    return f"{title}\n\n{found}", {"random rows and 256 full leaves, against scikit-learn | at most 1.0 ×": result}


def bare(tree: FlatTree, one: np.ndarray, many: np.ndarray) -> tuple[str, float]:
    """Time the kernel alone: on one row, per row of many, and with every instruction set."""
    assert router is not None
    kernel, leaf, leaves = routing.compiled_tree(tree), np.empty(1, dtype=np.int64), np.empty(len(many), dtype=np.int64)
    alone = medians({"one": lambda: kernel.route(one, leaf, 1, True)}, rounds=25, repeat=200)["one"]
    per_row = medians({"many": lambda: kernel.route(many, leaves, 1, True)}, rounds=15)["many"] / len(many)
    calls = {name: lambda name=name: kernel.route(many, leaves, 1, True, name) for name in router.instruction_sets()}
    sets = medians(calls, rounds=11, clock=time.process_time)
    quickest = min(sets.values())
    lines = [[name, f"{value / quickest:.2f}"] for name, value in sets.items()]
    words = (
        f"Bare kernel on one row: {1e6 * alone:.2f} µs; on one thread a row among 10,000 takes {1e6 * per_row:.2f} µs."
    )
    return f"{words}\n\n{table(['instruction set', '10,000 rows, ratio to the quickest'], lines)}", alone


def growth() -> str:
    """Time as one size grows and the others stay, relative to the first."""
    rng = np.random.default_rng(0)
    sweeps: list[tuple[str, list[tuple[int, int, int]], int]] = [
        ("rows (784 features, depth 8)", [(n, 784, 8) for n in (1, 10, 100, 1000, 10_000)], 0),
        ("features (10,000 rows, depth 8)", [(10_000, p, 8) for p in (16, 64, 256, 784, 4096)], 1),
        ("depth (10,000 rows, 64 features)", [(10_000, 64, d) for d in (2, 4, 8, 12, 16)], 2),
    ]
    parts = []
    for title, sizes, place in sweeps:
        calls = {}
        for n, p, depth in sizes:
            tree, X = random_tree(depth, p), rng.normal(size=(n, p)).astype(np.float32)
            routing.compiled_tree(tree)
            calls[str((n, p, depth)[place])] = lambda tree=tree, X=X: routing.route_array(tree, X, check_finite=True)
        seconds = medians(calls, rounds=15)
        first = next(iter(seconds))
        lines = [
            [key, f"{value / seconds[first]:.1f}", f"{value / seconds[first] / (float(key) / float(first)):.2f}"]
            for key, value in seconds.items()
        ]
        header = [title.split(" (")[0], "time, ratio to the first", "the same per unit"]
        parts.append(f"## Time as {title} grow\n\n{table(header, lines)}")
    return "\n".join(parts)


def machine() -> str:
    """Return the name of the processor."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return f"{os.cpu_count()} × {names[0] if names else platform.machine()}"


def main() -> None:
    warnings.simplefilter("ignore")
    (against, reached, answer), (full, reached_full) = against_others(), full_leaves()
    goals = "".join(f"| {goal} | {result} |\n" for goal, result in {**reached, **reached_full}.items())
    protocol = fill(PROTOCOL.format(machine=machine()), 100)
    parts = {"answer": answer, "protocol": protocol, "against": against, "full": full, "growth": growth()}
    parts["goals"] = goals
    print(*parts.values(), sep="\n")
    if os.environ.get("CRISPTREE_DATA"):
        PAGE.write_text(TEXT.format(**parts), encoding="utf-8")


PROTOCOL = (
    "Written by `make bench-predict` (`CRISPTREE_DATA` has mnist.npz) on {machine}. Medians over three rounds in one "
    "run, as ratios, because the machine was shared; on busy cores the wall-clock ratio approaches that of processor "
    "time, which counts both threads of ours. Other packages are measured where installed; `obliquetree`, `ydf` and "
    "`lightgbm` are trained on 3,000 rows, so their trees may be smaller. A pause before each measurement lets worker "
    "threads of the one before end."
)

TEXT = """\
# Prediction

{answer}

![Time over that of scikit-learn](../images/result-prediction.png)

{protocol}

{against}
{full}
{growth}
## Targets

| | target | measured | |
|---|---|---|---|
{goals}
A matrix product is the best case of the machine; a path reads weights and row again at every
split.

## How it is done

* **16-bit integers first.** Only the sign of a score matters. Rows and weights are also stored
  as 16-bit integers, with half the memory and fused multiply-add instructions. If such a score
  is farther from zero than its error bound it decides; otherwise the exact score does. Leaves
  are those of the exact scores, bit for bit.
* **Several rows are interleaved**, and the next rows are prefetched.
* **No branches** for left or right, which a processor would mispredict half of the time.
* **Zeros at both ends of a row are skipped.**
* **Threads start on other cores**: the scheduler leaves a new thread on its parent's core for
  longer than a call takes.

## One summation order

`tests/inference/test_routing_kernel.py` compares the scalar, SSE2, AVX2 and AVX-512 kernels with
the NumPy reference on a million rows, many of them exactly on a hyperplane. `python
tests/native/check_neon.py` cross-compiles the NEON kernel and runs it in an emulator: 0 of
24,000 rows differ.
"""


if __name__ == "__main__":
    main()
