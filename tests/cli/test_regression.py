"""A regression from the table to the report."""

import json

import numpy as np
import pandas as pd
import pytest

import crisptree
from tests.cli.running import done, run
from tests.encoding.writers import text

QUICK = ("--epochs", 2, "--finetune-epochs", 2, "--depth", 2, "--split", "oblique", "--input-noise", 0, "--l1", 0)
QUICK = (*QUICK, "--shrinkage", 0)


def priced(path, n=120, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    color = rng.choice(["red", "blue"], n)
    price = 3.0 * (a > b) + (color == "red") + 0.1 * rng.normal(size=n)
    lines = (f"{i:.3f},{j:.3f},{k},{v:.3f}" for i, j, k, v in zip(a, b, color, price, strict=True))
    return text(path, "a,b,color,price", *lines)


@pytest.fixture(scope="module")
def priced_shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("numbers")
    table = priced(folder / "t.csv")
    said = done("fit", table, "-t", "price", "-o", folder / "m.crisp", *QUICK)
    return folder, table, folder / "m.crisp", said


def test_fit_recognises_a_regression_and_notes_it(priced_shop):
    _, _, model, said = priced_shop
    assert "the target 'price' holds numbers" in said.text
    assert "held out" in said.text
    assert isinstance(crisptree.load(model), crisptree.CrispTreeRegressor)


def test_the_task_can_be_set(priced_shop, tmp_path):
    table = text(tmp_path / "w.csv", "x,y", *(f"{i},{i % 3}" for i in range(60)))
    for task, kind in (("regression", crisptree.CrispTreeRegressor), ("auto", crisptree.CrispTreeClassifier)):
        done("fit", table, "-t", "y", "--task", task, "-o", tmp_path / f"{task}.crisp", *QUICK)
        assert isinstance(crisptree.load(tmp_path / f"{task}.crisp"), kind)
    refused = run("fit", priced_shop[1], "-t", "price", "--task", "classification", "-o", tmp_path / "c.crisp")
    assert refused.exit_code != 0
    assert "say --task regression" in refused.text


def test_many_rounded_prices_that_are_taken_for_classes_are_noted(tmp_path):
    table = tmp_path / "prices.csv"
    table.write_text("rooms,price\n" + "".join(f"{row % 7},{1000 * (row % 40)}\n" for row in range(200)))
    flags = ("-t", "price", "--depth", "1", "--effort", "fast", "-o", tmp_path / "p.crisp", "--force")
    noted, told = run("fit", table, *flags), run("fit", table, *flags, "--task", "classification")
    assert "40 different whole numbers, taken for classes" in noted.stderr
    assert "taken for classes" not in told.stderr


def test_predictions_have_intervals_and_paths(priced_shop, tmp_path):
    _, table, model, _ = priced_shop
    done("predict", model, table, "--interval", 0.9, "--leaf", "--explain", "-o", tmp_path / "p.parquet")
    found = pd.read_parquet(tmp_path / "p.parquet")
    assert (found["low"] < found["prediction"]).all()
    assert (found["prediction"] < found["high"]).all()
    refused = run("predict", model, table, "--proba")
    assert "--proba is for classification" in refused.text


def test_evaluate_computes_errors_and_interval_coverage(priced_shop):
    _, table, model, _ = priced_shop
    found = json.loads(done("evaluate", model, table, "--json").stdout)
    assert found["rmse"] < found["mean_rmse"]
    assert 0.6 < found["within_interval"]["90%"] <= 1
    fitted = crisptree.load(model)
    assert found["rows"] == 120
    assert fitted.n_outputs_ == 1


def test_inspect_report_and_plots_accept_regression(priced_shop):
    folder, table, model, _ = priced_shop
    assert "in training" in done("inspect", model).text
    done("report", model, table, "-o", folder / "r.html")
    page = (folder / "r.html").read_text()
    for said in ("R²", "root mean squared error", "true − predicted"):
        assert said in page
    done("plot", model, "-o", folder / "tree.svg")
    done("plot", model, "--kind", "residuals", "--data", table, "-o", folder / "residuals.svg")
    refused = run("plot", model, "--kind", "confusion", "--data", table, "-o", folder / "c.svg")
    assert "is for classification" in refused.text


def test_residuals_of_many_rows_are_drawn_alike_every_time(priced_shop, tmp_path):
    table = priced(tmp_path / "many.csv", n=1200, seed=1)  # of more than 1,000 rows a sample is drawn
    for name in ("first.png", "second.png"):
        done("plot", priced_shop[2], "--kind", "residuals", "--data", table, "-o", tmp_path / name, "--dpi", "40")
    assert (tmp_path / "first.png").read_bytes() == (tmp_path / "second.png").read_bytes()
