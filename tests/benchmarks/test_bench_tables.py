"""The records and the page of bench_tables.py, with quick models in place of the real ones."""

import numpy as np
import pytest
from benchmarks.ranks import Ranks, draw_ranks
from benchmarks.table_models import IntegerClasses, Model, SimplestTree
from benchmarks.tables_page import FIT, KEYS, SPEED, render_page
from experiments.store import Store
from sklearn.linear_model import LogisticRegression, Ridge

from benchmarks import bench_tables
from tests.benchmarks.test_real_tables import write_npz

PROVENANCE = {"commit": "abc", "cpu": "some processor", "versions": {"python": "3"}}
TITLES = {name: model.title for name, model in bench_tables.MODELS.items()}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the benchmark on two tables; returns the calls of the models' factory."""
    write_npz(tmp_path / "data" / "classification" / "a.npz")
    write_npz(tmp_path / "data" / "regression" / "b.npz")
    made = []

    def make(task, seed, n_jobs):
        made.append((task, seed, n_jobs))
        return LogisticRegression() if task == "classification" else Ridge()

    monkeypatch.setattr(bench_tables, "INSTALLED", ["tree", "cart"])
    for name in ("tree", "cart"):
        monkeypatch.setitem(bench_tables.MODELS, name, Model(name, make))
    monkeypatch.setattr(bench_tables, "load_engine", lambda: None)

    def call(*arguments):
        made.clear()
        options = ["--data", str(tmp_path / "data"), "--results", str(tmp_path / "tables.jsonl"), *arguments]
        bench_tables.main(["--models", "tree,cart", *options])
        return list(made)

    return call


def test_every_fit_becomes_a_record_and_none_runs_twice(run, tmp_path):
    assert len(run("--seeds", "0")) == 4
    assert len((tmp_path / "tables.jsonl").read_text().splitlines()) == 4
    assert run("--seeds", "0,1") == [("classification", 1, 1)] * 2 + [("regression", 1, 1)] * 2
    assert run("--seeds", "0,1") == []
    assert run("--seeds", "0", "--n-jobs", "2", "--tables", "b") == [("regression", 0, 2)] * 2


def test_a_fit_that_fails_is_reported_and_the_others_go_on(run, monkeypatch, capsys, tmp_path):
    def fail(task, seed, n_jobs):
        raise RuntimeError("no such thing")

    make = bench_tables.MODELS["cart"].make
    monkeypatch.setitem(bench_tables.MODELS, "tree", Model("tree", fail))
    assert len(run("--seeds", "0")) == 2
    assert "failed: a, seed 0, tree: RuntimeError: no such thing" in capsys.readouterr().err
    monkeypatch.setitem(bench_tables.MODELS, "tree", Model("tree", make))
    assert len(run("--seeds", "0")) == 2


def test_processes_side_by_side_make_the_records_of_one(tmp_path):
    write_npz(tmp_path / "data" / "regression" / "a.npz")
    write_npz(tmp_path / "data" / "regression" / "b.npz")
    options = ["--data", str(tmp_path / "data"), "--models", "linear", "--seeds", "0"]
    scores = {}
    for jobs in ("1", "2"):
        results = tmp_path / f"{jobs}.jsonl"
        assert bench_tables.main([*options, "--jobs", jobs, "--results", str(results)]) == 0
        records = Store(results, KEYS).records()
        assert {one["processes"] for one in records} == {int(jobs)}
        scores[jobs] = [(one["table"], one["r2"]) for one in records]
    assert scores["1"] == scores["2"]
    assert len(scores["1"]) == 2


def test_the_page_and_its_plot_are_written_from_the_selected_records_without_a_fit(run, tmp_path):
    run("--seeds", "0,1")
    page, image = tmp_path / "page" / "tables.md", tmp_path / "images" / "ranks.png"
    assert run("--seeds", "0,1", "--tables", "a", "--page", str(page), "--image", str(image)) == []
    text = page.read_text(encoding="utf-8")
    assert "## Classification, 1 tables" in text
    assert "## Regression" not in text
    assert "](../images/ranks.png)" in text
    assert image.read_bytes().startswith(b"\x89PNG")


def test_models_that_are_not_installed_are_refused(capsys):
    with pytest.raises(SystemExit):
        bench_tables.parse_options(["--models", "tree,cart,other"])
    assert "got other" in capsys.readouterr().err


def test_a_class_that_training_did_not_see_has_probability_0():
    loss = bench_tables.compute_log_loss(np.array([0, 2]), np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([0, 1]))
    assert loss == pytest.approx(-np.log(np.finfo(float).eps) / 2)


def fit(task, table, model, seed, score, seconds):
    scores = {"accuracy": score, "log_loss": 0.5} if task == "classification" else {"r2": score}
    key = {"kind": FIT, "task": task, "table": table, "model": model, "n_jobs": 1, "seed": seed}
    return key | {"rows": 1200, "columns": 4, "seconds": seconds, "cpu_seconds": seconds} | scores | PROVENANCE


def speed(table, model, n_jobs, seconds):
    key = {"kind": SPEED, "task": "classification", "table": table, "model": model, "n_jobs": n_jobs, "seed": 0}
    return key | {"seconds": seconds} | PROVENANCE


SCORES = {
    ("classification", "a"): {"tree": 0.80, "cart": 0.85, "linear": 0.70, "random_forest": 0.9},
    ("classification", "b"): {"tree": 0.90, "cart": 0.905, "linear": 0.60, "random_forest": 0.9},
    ("regression", "c"): {"tree": 0.50, "cart": 0.40, "linear": 0.55, "random_forest": 0.6},
}
FITS = [
    fit(task, table, model, seed, score + 0.02 * seed, {"tree": 2.0, "random_forest": 0.5}.get(model, 1.0))
    for (task, table), scores in SCORES.items()
    for model, score in scores.items()
    for seed in (0, 1)
]


@pytest.fixture
def page_of(tmp_path):
    """Render a page of records."""
    return lambda fits, speed: render_page(fits, speed, TITLES, tmp_path / "page.md", tmp_path / "ranks.png")


def test_the_page_has_means_over_tables_spread_over_seeds_and_ratios_to_the_random_forest(page_of):
    page = page_of(FITS, [])
    assert "| crisp tree | 86.0 ± 1.4 | 0.500 ± 0.000 | 2 s | 2 s (a) | 4 | 4 |" in page
    assert "| crisp tree | 51.0 ± 1.4 | 2 s | 2 s (c) | 4 | 4 |" in page
    assert "LightGBM |" not in page
    answer = " ".join(page.partition("## ")[0].split())
    assert "Mean accuracy over 2 classification tables: one crisp tree 86.0 %, random forest 91.0 %." in answer
    assert "A default tree takes 2 s on classification tables (random forest: 0.5 s)" in answer


def test_the_page_lists_the_tables_where_the_tree_loses_more_than_a_point(page_of):
    page = page_of(FITS, [])
    section = page.partition("## Tables where")[2].partition("## ")[0]
    assert [line for line in section.splitlines() if line.startswith("|")][2:] == [
        "| a | 81.0 | 86.0 | 71.0 | -5.0 |",
        "| c | 51.0 | 41.0 | 56.0 | -5.0 |",
    ]
    assert "on 2 of 3 tables" in " ".join(page.split())


def test_the_page_has_average_ranks_and_counts_of_tables_far_behind(page_of):
    section = page_of(FITS, []).partition("## Average ranks")[2].partition("## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    assert rows[0].endswith("| all tables | tables > 1 point below CART or linear |")
    assert rows[2:] == [
        "| random forest, 100 trees | 1.75 | 1.00 | 1.50 | 0 |",
        "| CART, tuned | 1.50 | 4.00 | 2.33 | — |",
        "| crisp tree | 2.75 | 3.00 | 2.83 | 2 |",
        "| linear, tuned | 4.00 | 2.00 | 3.33 | — |",
    ]


def test_the_page_has_every_table_with_the_best_score_in_bold(page_of):
    section = page_of(FITS, []).partition("## Single classification tables")[2].partition("## ")[0]
    assert "| a | 81.0 | 86.0 | 71.0 | **91.0** |" in section
    assert "| b | **91.0** | **91.5** |" not in section


def test_ranks_have_nemenyis_critical_difference():
    """Table 5 of Demšar (2006): q at α = 0.05 is 2.569 for four and 3.102 for nine models."""
    for n_models, quantile in ((4, 2.569), (9, 3.102)):
        ranks = Ranks.of(np.random.default_rng(0).normal(size=(14, n_models)))
        expected = quantile * np.sqrt(n_models * (n_models + 1) / (6 * 14))
        assert ranks.critical_difference == pytest.approx(expected, abs=2e-3)
        assert ranks.mean.mean() == pytest.approx((n_models + 1) / 2)


def test_groups_are_the_largest_without_a_significant_difference():
    ranks = Ranks(np.array([4.0, 1.0, 2.0, 2.5]), 0.01, 1.2, 20)
    assert ranks.find_groups() == [(0, 1), (1, 2)]
    assert Ranks(ranks.mean, 0.01, 1.5, 20).find_groups() == [(0, 2), (2, 3)]
    assert Ranks(ranks.mean, 0.01, 0.1, 20).find_groups() == []


def test_equal_models_have_equal_ranks_and_no_significant_difference(tmp_path):
    ranks = Ranks.of(np.ones((5, 3)))
    assert (ranks.mean.tolist(), ranks.p_value) == ([2.0, 2.0, 2.0], 1.0)
    draw_ranks(ranks, ["a", "b", "c"], tmp_path / "ranks.png")
    assert (tmp_path / "ranks.png").stat().st_size > 1000


def test_packages_that_need_integer_classes_see_them():
    X, y = np.arange(12.0)[:, None], np.repeat(["b", "c", "a"], 4)
    model = IntegerClasses(LogisticRegression()).fit(X, y)
    assert model.estimator.classes_.tolist() == [0, 1, 2]
    assert set(model.predict(X)) <= {"a", "b", "c"}
    assert model.predict_proba(X).shape == (12, 3)
    assert model.classes_.tolist() == ["a", "b", "c"]


def test_the_simplest_tree_is_that_of_the_default_fit():
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    model = SimplestTree(bench_tables.make_tree("classification", 0, 1)).fit(X, y)
    assert model.model_ is not model.tree
    assert model.predict_proba(X).shape == (200, 2)
    assert model.classes_.tolist() == [0, 1]


def test_tables_with_missing_fits_are_left_out_of_all_means_and_named(page_of):
    page = page_of([*FITS, fit("classification", "d", "tree", 0, 0.1, 1.0)], [])
    assert "## Classification, 2 tables" in page
    assert "Classification tables without records of all models and seeds: d." in " ".join(page.split())


def test_single_fits_are_shown_with_their_ratios(page_of):
    records = [speed("500 × 10", "tree", 1, 2.0), speed("500 × 10", "tree", 2, 1.0)]
    records += [speed("500 × 10", "random_forest", 1, 0.5), speed("plain", "tree", 1, 0.01)]
    page = page_of([], records)
    assert "| 500 × 10, classification | 2 s | 0.5 | 4 | — |" in page
    assert "| plain, classification | 0.01 s | — | — | — |" in page


def test_a_page_is_named_by_its_tables(tmp_path):
    for name, words in (("small-tables", "development tables"), ("other-tables", "bundled_tables build/bundled")):
        page = render_page(FITS, [], TITLES, tmp_path / f"{name}.md", tmp_path / "ranks.png")
        assert words in page
