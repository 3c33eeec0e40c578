"""Distillation of a forest into one tree: labels, copies and accuracy. Hard routing.

python benchmarks/bench_distill.py > tables.md                # with a forest of scikit-learn's
python benchmarks/bench_distill.py --connect4 > table.md       # with ten bagged trees of our own; needs CRISPTREE_DATA
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split
from timing import table

from crisptree import CrispTreeClassifier

DATA = {
    "digits": load_digits(return_X_y=True),
    "synthetic": make_classification(1500, 20, n_informative=8, n_classes=3, random_state=1),
    "breast cancer": load_breast_cancer(return_X_y=True),
}
CHOICES: dict[str, dict[str, Any] | None] = {
    "without a teacher": None,
    "hard, no copies": {"labels": "hard", "copies": 0},
    "hard, 1 copy": {"labels": "hard", "copies": 1},
    "hard, 4 copies": {"labels": "hard", "copies": 4},
    "hard, 10 copies": {"labels": "hard", "copies": 10},
    "hard, 4 copies, noise=0.25": {"labels": "hard", "copies": 4, "noise": 0.25},
    "hard, 4 copies, noise=1": {"labels": "hard", "copies": 4, "noise": 1.0},
    "sample, 4 copies": {"labels": "sample", "copies": 4},
    "soft, 4 copies": {"labels": "soft", "copies": 4},
}
STUDENTS: dict[str, tuple[dict[str, Any], dict[str, Any] | None]] = {
    "without a teacher": ({}, None),
    "distilled, defaults": ({}, {}),
    "distilled, 10 copies": ({}, {"copies": 10}),
}
PLAIN = {"split": "oblique", "algorithm": "em", "l1": 0.0, "input_noise": 0.0, "scale": "feature", "shrinkage": 0.0}
PLAIN |= {"n_jobs": -1}
"""Nothing chosen: the labels and copies alone make the difference."""

BAGGED = {"split": "oblique", "l1": 0.0, "input_noise": 0.7, "scale": "global", "shrinkage": 0.0, "max_depth": 8}
BAGGED |= {"n_jobs": -1}
"""A tree of the bag, and the student: what the defaults choose on Connect-4."""
CHOICE_SEEDS, TEST_SEEDS = range(3), range(5)
CHOICE_DEPTH = 5


class Trial(NamedTuple):
    """Accuracy, the share of rows answered as the teacher does, leaves, seconds."""

    accuracy: float
    agreement: float
    leaves: float
    seconds: float


class Parts:
    """Three fifths of the rows train, one fifth chooses, one fifth tests; the forest has seen the first only."""

    def __init__(self, name: str, seed: int) -> None:
        X, y = DATA[name]
        rest, self.test, labels, self.test_y = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
        self.X, self.held, self.y, self.held_y = train_test_split(
            rest, labels, test_size=0.25, stratify=labels, random_state=seed
        )
        self.forest = RandomForestClassifier(random_state=seed).fit(self.X, self.y)

    def trial(self, model: CrispTreeClassifier, how: dict[str, Any] | None, *, test: bool) -> Trial:
        started = time.perf_counter()
        model.fit(self.X, self.y) if how is None else model.distill(self.forest, self.X, **how)
        seconds = time.perf_counter() - started
        X, y = (self.test, self.test_y) if test else (self.held, self.held_y)
        found = model.predict(X)
        return Trial((found == y).mean(), (found == self.forest.predict(X)).mean(), model.get_n_leaves(), seconds)


def percent(values: list[float]) -> str:
    return f"{100 * np.mean(values):.1f} ± {100 * np.std(values):.1f}"


def choices() -> str:
    cells: dict[str, list[str]] = {name: [] for name in CHOICES}
    seconds: dict[str, float] = dict.fromkeys(CHOICES, 0.0)
    CrispTreeClassifier.from_flat(**PLAIN, max_depth=1, epochs=1).fit(
        *DATA["breast cancer"]
    )  # torch takes its time to start
    for data in DATA:
        parts = [Parts(data, seed) for seed in CHOICE_SEEDS]
        for name, how in CHOICES.items():
            trials = [
                part.trial(
                    CrispTreeClassifier.from_flat(**PLAIN, max_depth=CHOICE_DEPTH, random_state=seed), how, test=False
                )
                for seed, part in zip(CHOICE_SEEDS, parts, strict=True)
            ]
            cells[name].append(percent([trial.accuracy for trial in trials]))
            seconds[name] += sum(trial.seconds for trial in trials)
    fit = seconds["without a teacher"]
    lines = [[name, *cells[name], f"{seconds[name] / fit:.1f}"] for name in CHOICES]
    return table(["accuracy on validation rows, %", *DATA, "time"], lines)


def students() -> str:
    lines = []
    for data in DATA:
        parts = [Parts(data, seed) for seed in TEST_SEEDS]
        forest = [part.forest.score(part.test, part.test_y) for part in parts]
        leaves = np.mean([sum(tree.get_n_leaves() for tree in part.forest.estimators_) for part in parts])
        splits = np.mean([part.forest.decision_path(part.test)[0].sum() / len(part.test) - 100 for part in parts])
        lines.append([data, "the forest", percent(forest), "", f"{leaves:,.0f}", f"{splits:,.0f}"])
        for name, (parameters, how) in STUDENTS.items():
            trials, asked = [], []
            for seed, part in zip(TEST_SEEDS, parts, strict=True):
                model = CrispTreeClassifier.from_flat(**parameters, random_state=seed, n_jobs=-1)
                trials.append(part.trial(model, how, test=True))
                asked.append(model.decision_path(part.test).sum() / len(part.test) - 1)
            agreement = percent([trial.agreement for trial in trials])
            size = np.mean([trial.leaves for trial in trials])
            accuracy = percent([trial.accuracy for trial in trials])
            lines.append([data, name, accuracy, agreement, f"{size:.0f}", f"{np.mean(asked):.1f}"])
    return table(["data", "model", "test accuracy, %", "as the forest, %", "leaves", "splits asked"], lines)


def connect4(seeds: int, trees: int) -> str:
    """Ten bagged crisp trees into one: test rows of Connect-4."""
    from crisptree.datasets import load_connect4

    data = load_connect4()
    X, y = np.concatenate([data.X_train, data.X_valid]), np.concatenate([data.y_train, data.y_valid])
    scores: dict[str, list[float]] = {"one tree": [], f"{trees} bagged trees": [], "distilled": []}
    for seed in range(seeds):
        one = CrispTreeClassifier.from_flat(**BAGGED, random_state=seed).fit(X, y)
        bag = BaggingClassifier(CrispTreeClassifier.from_flat(**BAGGED), trees, random_state=seed).fit(X, y)
        student = CrispTreeClassifier.from_flat(**BAGGED | {"input_noise": 0.3}, random_state=seed)
        student.distill(bag, X, y, copies=4, noise=0.5)
        for name, model in zip(scores, (one, bag, student), strict=True):
            scores[name].append(model.score(data.X_test, data.y_test))
    lines = [[name, percent(values)] for name, values in scores.items()]
    return table(["Connect-4, depth 8", f"test accuracy, %, {seeds} seeds"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--connect4", action="store_true")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trees", type=int, default=10)
    given = parser.parse_args()
    if given.connect4:
        print(connect4(given.seeds, given.trees))
    else:
        print(choices())
        print(students())


if __name__ == "__main__":
    main()
