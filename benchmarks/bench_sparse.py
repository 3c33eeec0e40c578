"""Memory and time of a fit on sparse rows: 20,000 × 100,000 at a density of 0.001, and dense rows where they still fit.

python benchmarks/bench_sparse.py

Every fit runs in a process of its own, whose peak memory is read at its end; what Python and its libraries take before
the rows are there is subtracted.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from timing import table

from crisptree import CrispTreeClassifier, TrainingOptions

FIXED = {"split": "oblique", "l1": 0.01, "input_noise": 1.4, "shrinkage": 0.0, "scale": "global"}
COMPLETE = {"grow": "balanced", "max_depth": 8, "finetune_epochs": 2, "min_updates": 0}
CASES = {
    "sparse, 20,000 × 100,000": (20_000, 100_000, "sparse", FIXED),
    "the same, a complete tree of depth 8, 2 epochs": (20_000, 100_000, "sparse", FIXED | COMPLETE),
    "sparse, 20,000 × 100,000, by the defaults": (20_000, 100_000, "sparse", {}),
    "sparse, 20,000 × 10,000": (20_000, 10_000, "sparse", FIXED),
    "the same rows, dense": (20_000, 10_000, "dense", FIXED),
    "scikit-learn's logistic regression, 20,000 × 100,000": (20_000, 100_000, "linear", {}),
}
DENSITY = 0.001
TRAINING = 0.8
DEPTH = 4


def texts(n: int, p: int, seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Rows like counts of words about three subjects, each of which is treated in one of two ways.

    The first subject says which of the two others decides the class; one label in twenty is drawn anew.
    """
    rng = np.random.default_rng(seed)
    per_subject, width = max(5, round(p * DENSITY / 3)), p // 3
    ways = rng.integers(0, 2, (n, 3))
    columns = np.empty((n, 3, per_subject), dtype=np.int32)
    for subject in range(3):
        popular = 1 / (rng.permutation(width) + 10.0)
        for way in range(2):
            chance = popular * rng.gamma(0.5, size=width)
            sums, here = np.cumsum(chance / chance.sum())[:-1], ways[:, subject] == way
            columns[here, subject] = subject * width + np.searchsorted(sums, rng.random((here.sum(), per_subject)))
    ends = np.arange(n + 1) * 3 * per_subject
    X = sparse.csr_matrix((np.ones(columns.size, np.float32), columns.ravel(), ends), (n, p))
    X.sum_duplicates()
    decided = np.where(ways[:, 0] == 1, ways[:, 1], ways[:, 2])
    return X, np.where(rng.random(n) < 0.05, rng.integers(0, 2, n), decided)


def peak() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one(name: str) -> None:
    n, p, kind, parameters = CASES[name]
    CrispTreeClassifier(max_depth=1, training=TrainingOptions(epochs=1)).fit(
        [[0.0], [1.0]], [0, 1]
    )  # torch and the kernels are there by now
    before = peak()
    X, y = texts(n, p)
    kept = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    rows = X.toarray() if kind == "dense" else X
    part = int(TRAINING * n)
    tree = {"max_depth": DEPTH, "random_state": 0, "device": "cpu", "n_jobs": 1, **parameters}
    model = LogisticRegression(max_iter=200, C=0.1) if kind == "linear" else CrispTreeClassifier.from_flat(**tree)
    started = time.perf_counter()
    model.fit(rows[:part], y[:part])
    seconds = time.perf_counter() - started
    started = time.perf_counter()
    score = model.score(rows[part:], y[part:])
    asked = time.perf_counter() - started
    used = f"{peak() - before:,.0f}"
    rows_mb = (rows.nbytes if kind == "dense" else kept) / 2**20
    splits = "" if kind == "linear" else str(model.get_n_leaves() - 1)
    print("|".join([name, splits, f"{rows_mb:,.0f}", used, f"{seconds:.1f}", f"{1e3 * asked:.0f}", f"{score:.1%}"]))


def main() -> None:
    lines = []
    for name in CASES:
        found = subprocess.run([sys.executable, __file__, name], check=True, capture_output=True, text=True)
        lines.append(found.stdout.strip().split("|"))
        print(lines[-1], flush=True)
    header = ["rows", "splits", "rows in MB", "peak of the fit in MB", "fit in s", "score of a fifth in ms", "accuracy"]
    print(table(header, lines))


if __name__ == "__main__":
    one(sys.argv[1]) if len(sys.argv) > 1 else main()
