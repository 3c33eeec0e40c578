"""Speed of training and prediction compared with an earlier commit: both built, and run in turn.

    python benchmarks/bench_commits.py COMMIT
    python benchmarks/bench_commits.py before.tar --jobs 6   # made by git archive, where there is no repository

Both versions train the same plain tree (EM, hyperplanes, nothing chosen) and predict with it, each in a process of its
own, one after the other and again; what is compared is processor time, the median over the rounds. MNIST where
CRISPTREE_DATA names a folder with mnist.npz, else random rows of its shape.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from timing import table

TOP = Path(__file__).parent.parent
PLAIN: dict[str, Any] = {
    "split": "oblique",
    "algorithm": "em",
    "l1": 0.0,
    "l2": 0.0,
    "input_noise": 0.0,
    "scale": "feature",
    "shrinkage": 0.0,
    "ccp_alpha": None,
    "prune": None,
    "leaf_model": "constant",
    "leaves": "constant",
    "optimizer": "adam",
    "n_init": 1,
    "verbose": 0,
    "random_state": 0,
    "n_jobs": 1,
    "device": "cpu",
}
"""Parameters by their present and earlier names; what one of the versions does not know is left out there."""

CASES: dict[str, dict[str, Any]] = {
    "fit, depth 8": {"max_depth": 8},
    "fit, depth 4, likelihood": {"max_depth": 4, "algorithm": "likelihood"},
    "fit, depth 8, balanced": {"max_depth": 8, "grow": "balanced", "finetune_epochs": 10},
}


def rows(n_rows: int) -> tuple[Any, Any]:
    folder = os.environ.get("CRISPTREE_DATA")
    if folder and (Path(folder) / "mnist.npz").exists():
        with np.load(Path(folder) / "mnist.npz") as file:
            return file["X_train"][:n_rows].reshape(n_rows, -1).astype(np.float32), file["y_train"][:n_rows]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 784)).astype(np.float32)
    return X, (X[:, :10] + 0.5 * rng.normal(size=(n_rows, 10))).argmax(axis=1)


def timed(work: Any, repeats: int = 1) -> float:
    started = time.process_time()
    for _ in range(repeats):
        work()
    return (time.process_time() - started) / repeats


def make_model(estimator: Any, values: dict[str, Any]) -> Any:
    """Make an estimator of these parameters, of which earlier versions had none in ``training``."""
    is_flat = not hasattr(estimator, "from_flat")
    known = estimator().get_params() if is_flat else estimator().flat_parameters()
    taken = {name: value for name, value in values.items() if name in known}
    if missing := {"max_depth", "algorithm", "split", "input_noise", "scale"} - taken.keys():
        raise SystemExit(f"the version must know {sorted(missing)}; compare with a later commit")
    return estimator(**taken) if is_flat else estimator.from_flat(**taken)


def measured(n_rows: int) -> dict[str, float]:
    """Time all cases with the version that can be imported here."""
    from crisptree import CrispTreeClassifier

    X, y = rows(n_rows)
    found = {}
    for name, changes in CASES.items():
        model = make_model(CrispTreeClassifier, {**PLAIN, **changes})
        found[name] = timed(lambda model=model: model.fit(X, y))
        if name == "fit, depth 8":
            model.predict(X)
            found["predict, all rows"] = timed(lambda model=model: model.predict(X), 20)
            found["predict, one row"] = timed(lambda model=model: model.predict(X[:1]), 2000)
    return found


def built(commit: str | None, home: Path) -> Path:
    """Build that version, or the working tree, in a folder from which it can be imported."""
    source = TOP
    if commit is not None:
        source = home / "source"
        if Path(commit).is_file():
            archive = Path(commit).read_bytes()
        else:
            archive = subprocess.run(["git", "archive", commit], cwd=TOP, check=True, capture_output=True).stdout
        with tarfile.open(fileobj=io.BytesIO(archive)) as file:
            file.extractall(source, filter="data")
    site = home / ("site" if commit is None else "site-before")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(source)], check=True)
    return site


def run(site: Path, n_rows: int) -> dict[str, float]:
    paths = os.pathsep.join([str(site), str(TOP / "benchmarks"), os.environ.get("PYTHONPATH", "")])
    code = f"import bench_commits, json; print(json.dumps(bench_commits.measured({n_rows})))"
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time, no more than there are quiet cores")
    parser.add_argument("--rows", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        before, now = built(given.commit, Path(folder)), built(None, Path(folder))
        with ThreadPoolExecutor(given.jobs) as pool:
            runs = list(pool.map(lambda site: run(site, given.rows), [before, now] * given.rounds))
    rounds = list(zip(runs[::2], runs[1::2], strict=True))
    lines = []
    for name in rounds[0][0]:
        ratios = sorted(new[name] / old[name] for old, new in rounds)
        cells = [f"{median(ratios):.2f}", f"{ratios[0]:.2f} to {ratios[-1]:.2f}"]
        lines.append([name, *cells])
    print(table(["processor time", f"to that of {given.commit}, median", f"of {given.rounds} rounds"], lines))


if __name__ == "__main__":
    main()
