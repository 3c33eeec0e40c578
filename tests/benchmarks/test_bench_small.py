"""The records and the page of bench_small.py, with quick models in place of the real ones."""

import numpy as np
import pytest
from benchmarks.small_page import FIT, SPEED, render_page
from sklearn.linear_model import LogisticRegression, Ridge

from benchmarks import bench_small
from tests.benchmarks.test_real_tables import write_npz

PROVENANCE = {"commit": "abc", "cpu": "some processor", "versions": {"python": "3"}}
TITLES = {name: model.title for name, model in bench_small.MODELS.items()}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the benchmark on two tables; returns the calls of the models' factory."""
    write_npz(tmp_path / "data" / "classification" / "a.npz")
    write_npz(tmp_path / "data" / "regression" / "b.npz")
    made = []

    def make(task, seed, n_jobs):
        made.append((task, seed, n_jobs))
        return LogisticRegression() if task == "classification" else Ridge()

    monkeypatch.setattr(bench_small, "INSTALLED", ["tree", "cart"])
    for name in ("tree", "cart"):
        monkeypatch.setitem(bench_small.MODELS, name, bench_small.Model(name, make))
    monkeypatch.setattr(bench_small, "load_engine", lambda: None)

    def call(*arguments):
        made.clear()
        options = ["--data", str(tmp_path / "data"), "--results", str(tmp_path / "small.jsonl"), *arguments]
        bench_small.main(["--models", "tree,cart", *options])
        return list(made)

    return call


def test_every_fit_becomes_a_record_and_none_runs_twice(run, tmp_path):
    assert len(run("--seeds", "0")) == 4
    assert len((tmp_path / "small.jsonl").read_text().splitlines()) == 4
    assert run("--seeds", "0,1") == [("classification", 1, 1)] * 2 + [("regression", 1, 1)] * 2
    assert run("--seeds", "0,1") == []
    assert run("--seeds", "0", "--jobs", "2", "--tables", "b") == [("regression", 0, 2)] * 2


def test_the_page_is_written_from_the_selected_records(run, tmp_path):
    run("--seeds", "0,1", "--tables", "a", "--page", str(tmp_path / "page" / "small.md"))
    page = (tmp_path / "page" / "small.md").read_text(encoding="utf-8")
    assert "## Classification, 1 tables" in page
    assert "## Regression" not in page


def test_models_that_are_not_installed_are_refused(capsys):
    with pytest.raises(SystemExit):
        bench_small.parse_options(["--models", "tree,cart,other"])
    assert "got other" in capsys.readouterr().err


def test_a_class_that_training_did_not_see_has_probability_0():
    loss = bench_small.compute_log_loss(np.array([0, 2]), np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([0, 1]))
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


def test_the_page_has_means_over_tables_spread_over_seeds_and_ratios_to_the_random_forest():
    page = render_page(FITS, [], TITLES)
    assert "| crisp tree | 86.0 ± 1.4 | 0.500 ± 0.000 | 2 s | 2 s (a) | 4 |" in page
    assert "| crisp tree | 51.0 ± 1.4 | 2 s | 2 s (c) | 4 |" in page
    assert "LightGBM |" not in page
    assert "an accuracy of 86.0 % in the mean of 2 classification tables at a median of 2 s a fit" in " ".join(
        page.split()
    )


def test_the_page_lists_the_tables_where_the_tree_loses_more_than_a_point():
    page = render_page(FITS, [], TITLES)
    section = page.partition("## Tables where")[2].partition("## ")[0]
    assert [line for line in section.splitlines() if line.startswith("|")][2:] == [
        "| a | 81.0 | 86.0 | 71.0 | -5.0 |",
        "| c | 51.0 | 41.0 | 56.0 | -5.0 |",
    ]
    assert "on 2 of 3 tables" in " ".join(page.split())


def test_tables_with_missing_fits_are_left_out_of_all_means_and_named():
    page = render_page([*FITS, fit("classification", "d", "tree", 0, 0.1, 1.0)], [], TITLES)
    assert "## Classification, 2 tables" in page
    assert "Classification tables without records of all models and seeds: d." in " ".join(page.split())


def test_single_fits_are_shown_with_their_ratios():
    records = [speed("500 × 10", "tree", 1, 2.0), speed("500 × 10", "tree", 2, 1.0)]
    records += [speed("500 × 10", "random_forest", 1, 0.5), speed("plain", "tree", 1, 0.01)]
    page = render_page([], records, TITLES)
    assert "| 500 × 10, classification | 2 s | 0.5 | 4 | — |" in page
    assert "| plain, classification | 0.01 s | — | — | — |" in page
