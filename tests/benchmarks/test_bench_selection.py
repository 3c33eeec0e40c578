"""Rules of model selection, replayed on the candidates of default fits."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from benchmarks.bench_selection import (
    DEFAULT,
    RULES,
    Rule,
    make_refit,
    make_replay,
    select_by_family,
    select_linear_model,
    select_simplest,
)
from benchmarks.real_tables import CLASSIFICATION

from benchmarks import bench_selection
from crisptree import CrispTreeClassifier
from crisptree.inference.flat_tree import has_linear_leaves
from crisptree.selection import search
from crisptree.selection.candidates import Trial

SHRUNK, LARGER, LEAFLESS = "trial shrinkage: 30.0", "leaf sizes: 1, 5, 20", "without linear leaves"
SIMPLEST = "simplest: 1 errors"


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray]:
    """Rows with noisy labels, for which linear leaves are selected."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4)).round(2)
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=150) > 0).astype(int)


def test_rules_select_what_default_fits_with_their_constants_select(rows: tuple[np.ndarray, np.ndarray]):
    every = {DEFAULT: Rule(), **RULES["tree", CLASSIFICATION]}
    rules = {name: every[name] for name in (DEFAULT, SHRUNK, LARGER, LEAFLESS, SIMPLEST, "log-loss share: 0.0")}
    selections = dict[str, dict]()
    with patch.object(search, "CandidateSearch", make_replay(rules, selections)):
        model = CrispTreeClassifier(random_state=0).fit(*rows)
    assert model.best_params_ == selections[DEFAULT]
    assert set(selections) == set(rules)
    assert has_linear_leaves(selections[DEFAULT])
    for name in (SHRUNK, LARGER):
        with rules[name].applied():
            assert CrispTreeClassifier(random_state=0).fit(*rows).best_params_ == selections[name]
    assert selections[SIMPLEST] != selections[DEFAULT]
    fixed = CrispTreeClassifier(leaf_model="constant", random_state=0).fit(*rows)
    without = make_refit(model, selections[LEAFLESS]).fit(*rows)
    assert np.array_equal(fixed.predict_proba(rows[0]), without.predict_proba(rows[0]))


def test_fit_records_every_rule_once_and_compare_prints_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    rng = np.random.default_rng(1)
    for name in ("a", "b"):
        X = rng.normal(size=(120, 3)).round(1)
        y = (X[:, 0] + rng.normal(size=120) > 0).astype(int)
        (tmp_path / "classification").mkdir(exist_ok=True)
        np.savez(tmp_path / "classification" / f"{name}.npz", X=X, y=y, columns=["p", "q", "r"])
    records = tmp_path / "records" / "selection.jsonl"
    arguments = ["--records", str(records), "--seeds", "30"]
    assert bench_selection.main(["fit", "--data", str(tmp_path), *arguments]) == 0
    first = records.read_text()
    assert first.count("\n") == 2 * (1 + len(RULES["tree", CLASSIFICATION]))
    assert bench_selection.main(["fit", "--data", str(tmp_path), *arguments]) == 0
    assert records.read_text() == first
    assert bench_selection.main(["compare", *arguments]) == 0
    printed = capsys.readouterr().out
    assert "tree, classification: 2 fits of 2 tables" in printed
    assert all(f"\n  {rule}: " in printed for rule in RULES["tree", CLASSIFICATION])


def test_a_constant_is_selected_on_the_other_tables():
    of_default, of_other = np.array([[0.5, 0.0]] * 3), np.array([[0.9, 0.0], [0.45, 0.0], [0.45, 0.0]])
    scores = {DEFAULT: of_default, "constant: 1": of_other}
    left_out, selected = bench_selection.select_left_out(scores, [DEFAULT, "constant: 1"])
    assert selected == [DEFAULT, "constant: 1", "constant: 1"]
    assert left_out[:, 0].tolist() == [0.5, 0.45, 0.45]


def make_trial(n_right: int, size: float, **values: object) -> Trial:
    """A trial that is right on the first of 100 rows."""
    scores = (np.arange(100) < n_right).astype(float)
    return Trial(values, scores, np.ones(100), size, 1.0, np.zeros(100))


def test_trials_within_some_errors_are_equivalent():
    best, wide = make_trial(82, 9.0, split="axis"), make_trial(81, 30.0, split="oblique")
    linear = make_trial(80, 4.0, split="oblique", leaf_model="linear", max_depth=0)
    trials = [best, wide, linear]  # two rows of 100 are 1.4 standard errors
    assert select_linear_model(trials, 1.0) is best
    assert select_linear_model(trials, 2.0) is linear
    assert select_simplest(trials, 0.5) is best
    assert select_simplest(trials, 2.0) is linear


def test_a_single_high_merit_is_shrunk_towards_its_family():
    lucky = [make_trial(n, 1.0, split="axis") for n in (85, 70, 70, 70)]
    steady = [make_trial(n, 1.0, split="oblique") for n in (84, 84, 83, 83)]
    assert select_by_family(lucky + steady, 0.0) is lucky[0]
    assert select_by_family(lucky + steady, 0.5) is steady[0]
