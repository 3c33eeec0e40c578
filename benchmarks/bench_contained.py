"""The defaults compared with the two models that they contain, a tree of thresholds and a linear model, both tuned.

python benchmarks/bench_contained.py                # the sets that the defaults were developed on
python benchmarks/bench_contained.py --further      # sets that took no part in that
python benchmarks/bench_contained.py --write        # both, into docs/results/contained.md

Four folds of each set. The tuned models choose depth or C by five inner folds. Accuracy is that of `predict`, hard
routing. Fit times are processor time on one thread, as the ratio to a plain fit (hyperplanes with a fixed width of
noise, nothing chosen) of the same fold.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from choose_data import DATA, FURTHER
from joblib import Parallel, delayed
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from timing import table

from crisptree import CrispTreeClassifier, TrainingOptions

PAGE = Path(__file__).parent.parent / "docs" / "results" / "contained.md"
FOLDS = 4
CRISP = {"device": "cpu", "n_jobs": 1, "max_depth": 8}
PLAIN = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 1.0}
DEPTHS = [1, 2, 3, 4, 5, 6, 8, 10, None]
MOST = 1.0
"""How far below the better of the two the defaults may be, in points."""


def tuned_tree(seed: int) -> Any:
    return GridSearchCV(DecisionTreeClassifier(random_state=seed), {"max_depth": DEPTHS}, cv=5)


def shallow_tree(seed: int) -> Any:
    depths = [depth for depth in DEPTHS if depth is not None and depth <= CRISP["max_depth"]]
    return GridSearchCV(DecisionTreeClassifier(random_state=seed), {"max_depth": depths}, cv=5)


def linear(seed: int) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegressionCV(Cs=8, cv=5, max_iter=500, random_state=seed))


def fold(name: str, number: int) -> dict[str, float]:
    """Score all models on one fold."""
    warnings.simplefilter("ignore")
    X, y = (DATA | FURTHER)[name].load()
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    train, test = list(folds.split(X, y))[number]
    result = {}
    models = {
        "plain": CrispTreeClassifier.from_flat(**CRISP, **PLAIN, random_state=number),
        "crisp": CrispTreeClassifier.from_flat(**CRISP, random_state=number),
        "tree": tuned_tree(number),
        "shallow": shallow_tree(number),
        "linear": linear(number),
        "calibrated": CalibratedClassifierCV(tuned_tree(number), cv=3),
    }
    for kind, model in models.items():
        started = time.process_time()
        model.fit(X[train], y[train])
        result[f"{kind} seconds"] = time.process_time() - started
        result[kind] = 100 * model.score(X[test], y[test])
        result[f"{kind} loss"] = log_loss(y[test], model.predict_proba(X[test]), labels=np.unique(y))
    return result


def measured(names: list[str], jobs: int) -> dict[str, dict[str, np.ndarray]]:
    """Compute every metric of every set, one entry per fold."""
    tasks = [(name, number) for name in names for number in range(FOLDS)]
    CrispTreeClassifier(training=TrainingOptions(epochs=1, finetune_epochs=1), max_depth=1, **PLAIN).fit(
        np.eye(4), [0, 1, 0, 1]
    )
    found = Parallel(jobs)(delayed(fold)(*task) for task in tasks)
    by_set: dict[str, dict[str, np.ndarray]] = {}
    for name in names:
        own = [result for (other, _), result in zip(tasks, found, strict=True) if other == name]
        by_set[name] = {key: np.array([result[key] for result in own]) for key in own[0]}
    return by_set


def lines(results: dict[str, dict[str, np.ndarray]]) -> str:
    head = [
        "",
        "crisp, defaults",
        "plain crisp",
        "tuned tree",
        "… of depth 8 at most",
        "linear, tuned",
        "to the better",
        "log loss",
    ]
    head += ["log loss of the calibrated tree", "fit time to plain"]
    rows = []
    for name, found in results.items():
        better = max(found["tree"].mean(), found["linear"].mean())
        rows.append(
            [
                name,
                f"{found['crisp'].mean():.1f} ± {found['crisp'].std():.1f}",
                *(f"{found[kind].mean():.1f}" for kind in ("plain", "tree", "shallow", "linear")),
                f"{found['crisp'].mean() - better:+.1f}",
                *(f"{found[kind].mean():.3f}" for kind in ("crisp loss", "calibrated loss")),
                f"{np.median(found['crisp seconds'] / found['plain seconds']):.1f}",
            ]
        )
    return table(head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--further", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    groups = {"developed on": list(DATA), "judged on": list(FURTHER)}
    if not given.write:
        groups = {"": [given.only] if given.only else list(FURTHER if given.further else DATA)}
    found = {title: lines(measured(names, given.jobs)) for title, names in groups.items()}
    for text in found.values():
        print(text)
    if given.write:
        intro = (
            "# The defaults beside the models that they contain\n\nMade by `python benchmarks/bench_contained.py "
            "--write`. " + " ".join(__doc__.split("\n\n")[2].split()) + "\n"
        )
        parts = [f"\n## Sets that the defaults were {title}\n\n{text}\n" for title, text in found.items()]
        PAGE.write_text(intro + "".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
