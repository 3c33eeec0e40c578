"""Forests on the command line."""

import json

import numpy as np
import pytest

from crisptree import CrispForestClassifier, CrispForestRegressor, load
from tests.cli.running import FOREST_QUICK, done, run
from tests.encoding.writers import text


@pytest.fixture(scope="module")
def forest(shop, tmp_path_factory):
    path = tmp_path_factory.mktemp("forest") / "forest.crisp"
    done("fit", shop.csv, "-t", "buys", "--drop", "id", "--trees", "3", *FOREST_QUICK, "-o", path)
    return path


def test_trees_make_a_forest(forest):
    model = load(forest)
    assert isinstance(model, CrispForestClassifier)
    assert len(model) == 3


def test_a_forest_predicts_and_is_evaluated_with_all_trees(forest, shop):
    said = json.loads(done("evaluate", forest, shop.csv, "--json").stdout)
    lines = done("predict", forest, shop.csv, "--proba", "--leaf").stdout.splitlines()
    assert lines[0].count("leaf in tree") == 3
    predicted = np.array([line.split(",")[0].strip('"') for line in lines[1:]])
    assert said["accuracy"]["hard"] == np.mean(predicted == np.array(shop.table["buys"].to_pylist()))
    assert said["error_attribution"] == []


def test_inspection_and_report_accept_forests(forest, shop, tmp_path):
    said = json.loads(done("inspect", forest, "--json").stdout)
    assert (said["trees"], said["kind"]) == (3, "CrispForestClassifier")
    assert said["importances"]
    assert "3 trees of depth" in done("inspect", forest).stdout
    done("report", forest, shop.csv, "-o", tmp_path / "page.html")
    assert "of a forest (3 trees" in (tmp_path / "page.html").read_text()


def test_flags_that_forests_do_not_support_are_refused(forest, shop, tmp_path):
    result = run("plot", forest, "-o", tmp_path / "tree.svg")
    assert result.exit_code != 0
    assert "it holds a forest" in result.text
    result = run("fit", shop.csv, "-t", "buys", "--drop", "id", "--trees", "3", "--paper", "-o", tmp_path / "x.crisp")
    assert result.exit_code != 0
    assert "--paper is for one tree" in result.text
    for trees in ("zero", "0"):
        result = run("fit", shop.csv, "-t", "buys", "--trees", trees, "-o", tmp_path / "x.crisp")
        assert result.exit_code == 2
        assert "Invalid value for '--trees'" in result.text
    assert "--explain is for one tree" in run("predict", forest, shop.csv, "--explain").text
    result = run("predict", forest, shop.csv, "--interval", "0.9")
    assert result.exit_code != 0
    assert "the model is a classification" in result.text


def test_regression_forests_are_fitted_predicted_evaluated_and_reported(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{3 * (a > b) + 0.1 * b:.4f}" for a, b in rng.normal(size=(120, 2))]
    table, model = text(tmp_path / "t.csv", "a,b,price", *rows), tmp_path / "m.crisp"
    kept = ("--checkpoint", tmp_path / "kept")
    done("fit", table, "-t", "price", "--trees", "3", *FOREST_QUICK, *kept, "-o", model)
    assert isinstance(load(model), CrispForestRegressor)
    assert json.loads(done("evaluate", model, table, "--json").stdout)["r2"] > 0.3
    lines = done("predict", model, table, "--interval", "0.8", "--leaf").stdout.splitlines()
    names = ["prediction", "low", "high", *(f"leaf in tree {number}" for number in range(3))]
    assert lines[0].replace('"', "").split(",") == names
    done("report", model, table, "-o", tmp_path / "page.html")
    assert "of a forest (3 trees, R² " in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("flag", ["--shrinkage", "--ccp-alpha"])
def test_regularisation_of_one_tree_is_refused_for_a_forest(shop, tmp_path, flag):
    result = run("fit", shop.csv, "-t", "buys", "--drop", "id", "--trees", "3", flag, "0.1", "-o", tmp_path / "x.crisp")
    assert result.exit_code == 2
    assert f"{flag} is for one tree" in result.text
