"""Rows are held out by default, and the user is told what that says."""

import json

import numpy as np

import crisptree
from crisptree.cli.judging import remarks, share_to_hold_out
from tests.cli.running import QUICK, done, run
from tests.encoding.writers import customers, text, write

QUICK_WITHOUT = QUICK[: QUICK.index("--holdout")]


def noise(path, n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 30)).round(3)
    lines = [",".join(map(str, row)) + f",{'ab'[rng.integers(2)]}" for row in X]
    return text(path, ",".join([*(f"x{j}" for j in range(30)), "y"]), *lines)


def test_a_fifth_of_the_rows_is_held_out_unless_the_user_says_otherwise(tmp_path):
    data = write(customers(160), tmp_path / "t.csv")
    said = json.loads(done("fit", data, "-t", "buys", "-o", tmp_path / "m.crisp", *QUICK_WITHOUT, "--json").raw)
    assert said["rows"] == said["accuracy"]["training"]["rows"] == 128
    assert said["accuracy"]["held out"]["rows"] == 32
    assert said["accuracy"]["held out"]["majority"] == 0.5
    model = crisptree.load(tmp_path / "m.crisp")
    assert model.tree_.statistics.node_counts[0].sum() == 128
    everything = done("fit", data, "-t", "buys", "-o", tmp_path / "n.crisp", *QUICK).said
    assert "160 rows" in everything
    assert "No rows were held out" in everything


def test_few_rows_and_validation_rows_are_reasons_to_hold_out_none():
    assert share_to_hold_out(None, 49, has_validation=False) == 0
    assert share_to_hold_out(None, 50, has_validation=False) == 0.2
    assert share_to_hold_out(None, 1000, has_validation=True) == 0
    assert share_to_hold_out(0.3, 10, has_validation=True) == 0.3


def test_a_refitted_model_is_that_of_all_rows_and_its_scores_are_those_of_the_judged_one(tmp_path):
    data = write(customers(160), tmp_path / "t.csv")

    def fitted(name, *options):
        answer = done("fit", data, "-t", "buys", "-o", tmp_path / name, *QUICK_WITHOUT, *options, "--json")
        return json.loads(answer.raw), crisptree.load(tmp_path / name)

    judged, _ = fitted("judged.crisp")
    refitted, model = fitted("refitted.crisp", "--refit")
    fitted("whole.crisp", "--holdout", "0")
    assert refitted["accuracy"] == judged["accuracy"]
    assert refitted["rows"] == 160
    assert model.tree_.statistics.node_counts[0].sum() == 160
    assert (tmp_path / "refitted.crisp").read_bytes() == (tmp_path / "whole.crisp").read_bytes()
    said = done("fit", data, "-t", "buys", "-o", tmp_path / "x.crisp", *QUICK_WITHOUT, "--refit").said
    assert "Judged without the 32 rows held out; the model that is saved was then trained on all 160 rows." in said
    answer = run("fit", data, "-t", "buys", "-o", tmp_path / "y.crisp", *QUICK, "--refit")
    assert answer.code == 2
    assert "--refit is for after judging" in answer.said


def test_a_large_gap_and_a_tree_that_learned_nothing_are_said(tmp_path):
    options = ("--depth", "5", "--split", "oblique", "--l1", "0", "--input-noise", "0", "--shrinkage", "0")
    answer = done("fit", noise(tmp_path / "t.csv"), "-t", "y", "-o", tmp_path / "m.crisp", *options)
    assert "note: of training rows" in answer.notes
    assert "Try a smaller --depth" in answer.notes


def test_a_gap_within_chance_is_no_news():
    def said(n_rows, right):
        training = {"rows": 1000, "hard": 0.9, "majority": 0.5}
        return remarks({"training": training, "held out": {"rows": n_rows, "hard": right, "majority": 0.5}}, "no")

    assert said(20, 0.8) == []
    assert len(said(1000, 0.8)) == 1
    assert said(100_000, 0.87) == []
    assert len(said(1000, 0.5)) == 2
    assert remarks({"training": {"rows": 10, "hard": 1.0, "majority": 0.5}}, "no") == []
