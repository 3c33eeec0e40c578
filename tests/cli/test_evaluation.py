"""Scores of fit and evaluate."""

import json
from pathlib import Path

import numpy as np
import pytest

import crisptree
from crisptree import TrainingOptions, load, metrics
from crisptree.cli.evaluation import diagnose
from crisptree.cli.fit import FitOptions
from tests.cli.running import QUICK, done, run
from tests.encoding.writers import customers, text, write
from tests.toys import clouds, plain_tree


def test_evaluation_matches_counts_of_predictions(shop):
    said = json.loads(done("evaluate", shop.model, shop.csv, "--json").stdout)
    lines = done("predict", shop.model, shop.csv).stdout.splitlines()[1:]
    predicted = np.array([line.strip('"') for line in lines])
    truth = np.array(shop.table["buys"].to_pylist())
    assert said["rows"] == 160
    assert said["accuracy"]["hard"] == np.mean(predicted == truth)
    for measure in ("accuracy", "log_loss", "brier_score", "calibration_error"):
        assert set(said[measure]) == {"hard", "soft"}
    confusion = [[int(np.sum((truth == t) & (predicted == p))) for p in ("no", "yes")] for t in ("no", "yes")]
    assert said["confusion"] == confusion
    yes = said["classes"][1]
    assert yes["class"] == "yes"
    assert yes["precision"] == pytest.approx(confusion[1][1] / (confusion[0][1] + confusion[1][1]))
    assert yes["recall"] == pytest.approx(confusion[1][1] / sum(confusion[1]))
    assert yes["f1"] == pytest.approx(2 / (1 / yes["precision"] + 1 / yes["recall"]))
    assert sum(entry["errors"] for entry in said["error_attribution"]) == np.sum(predicted != truth)


def test_evaluation_prints_hard_and_soft_scores_classes_and_error_attribution(shop):
    result = done("evaluate", shop.model, shop.parquet, "-t", "buys")
    for words in (
        "accuracy hard 0.",
        "· soft 0.",
        "log loss hard",
        "Brier score hard 0.",
        "calibration error hard 0.",
        "precision",
        "true \\ predicted",
        "causes",
    ):
        assert words in result.text


def test_a_class_unseen_in_training_counts_as_an_error(shop, tmp_path):
    rows = text(tmp_path / "t.csv", "age,income,color,member,buys", "30,2e4,rot,true,yes", "30,2e4,rot,true,never")
    result = done("evaluate", shop.model, rows, "--json")
    said = json.loads(result.stdout)
    assert said["accuracy"]["hard"] <= 0.5
    assert sum(said["confusion"][2]) == 1
    assert "1 row of a class that the model does not know ('never'), counted as errors." in result.stderr


def test_the_report_and_the_confusion_leave_out_rows_of_unknown_classes_and_report_it(shop, tmp_path):
    rows = text(tmp_path / "t.csv", "age,income,color,member,buys", "30,2e4,rot,true,yes", "30,2e4,rot,true,never")
    for command in (("report", shop.model, rows), ("plot", shop.model, "--kind", "confusion", "--data", rows)):
        ending = ".html" if command[0] == "report" else ".svg"
        said = done(*command, "-o", tmp_path / f"out{ending}").stderr
        assert "1 row of a class that the model does not know ('never'), left out." in said


def test_a_table_without_a_row_of_a_known_class_is_refused_with_both_lists_of_classes(shop, tmp_path):
    rows = text(tmp_path / "t.csv", "age,income,color,member,buys", "30,2e4,rot,true,never")
    plot = ("plot", shop.model, "--kind", "confusion", "--data", rows, "-o", tmp_path / "out.svg")
    for command in (("evaluate", shop.model, rows), ("report", shop.model, rows, "-o", tmp_path / "r.html"), plot):
        result = run(*command)
        assert result.exit_code == 1
        assert "must have rows of the model's classes, 'no', 'yes'; in column 'buys' it has 'never'." in result.stderr


def test_the_log_loss_of_certainty_is_zero_and_not_minus_zero(tmp_path):
    rows = text(tmp_path / "t.csv", "a,y", *(f"{row},{'no' if row < 20 else 'yes'}" for row in range(40)))
    done("fit", rows, "-t", "y", "--depth", "1", "--shrinkage", "0", "-o", tmp_path / "m.crisp")
    said = done("evaluate", tmp_path / "m.crisp", rows).text
    assert "accuracy hard 1.0000" in said
    assert "log loss hard 0.0000" in said


def test_evaluation_scores_probabilities(tmp_path):
    X, y = clouds(200)
    y[:20] = (y[:20] + 1) % 3
    np.savez(tmp_path / "t.npz", X=X, y=y)
    done("fit", tmp_path / "t.npz", "--shrinkage", "20", "--ccp-alpha", "0.001", "-o", tmp_path / "m.crisp", *QUICK)
    said = json.loads(done("evaluate", tmp_path / "m.crisp", tmp_path / "t.npz", "--json").stdout)
    model = load(tmp_path / "m.crisp")
    tables = {"hard": model.predict_proba(X), "soft": model.soft_predict_proba(X)}
    for name in ("log_loss", "brier_score", "calibration_error"):
        for kind, table in tables.items():
            assert said[name][kind] == pytest.approx(getattr(metrics, name)(y, table), rel=1e-5)
    assert (model.shrinkage_, model.ccp_alpha) == (20.0, 0.001)


def test_an_infinite_log_loss_is_written_out_and_is_null_in_json(tmp_path):
    rows = text(tmp_path / "t.csv", "a,y", *(f"{row},{'no' if row < 20 else 'yes'}" for row in range(40)))
    done("fit", rows, "-t", "y", "--depth", "1", "--shrinkage", "0", "-o", tmp_path / "m.crisp")
    other = text(tmp_path / "u.csv", "a,y", "1,no", "2,yes")
    assert "log loss hard infinite" in done("evaluate", tmp_path / "m.crisp", other).text
    assert json.loads(done("evaluate", tmp_path / "m.crisp", other, "--json").stdout)["log_loss"]["hard"] is None


def test_evaluation_needs_a_target(shop, tmp_path):
    rows = text(tmp_path / "t.csv", "age,income,color,member", "30,2e4,rot,true")
    assert "has no column 'buys' (--target)" in run("evaluate", shop.model, rows).stderr
    X, y = clouds(30, n_features=2)
    plain_tree(max_depth=1, epochs=1, finetune_epochs=0).fit(X, y).save(tmp_path / "m.crisp")
    table = text(tmp_path / "u.csv", "a,b,y", "1,2,0")
    result = run("evaluate", tmp_path / "m.crisp", table)
    assert result.exit_code == 1
    assert "with --target" in result.stderr
    assert "1 rows" in done("evaluate", tmp_path / "m.crisp", table, "-t", "y").text


def test_labels_of_npz_may_have_any_name(tmp_path):
    X, y = clouds(40)
    np.savez(tmp_path / "t.npz", images=X, kinds=y)
    done(
        "fit",
        tmp_path / "t.npz",
        "--target",
        "kinds",
        "-o",
        tmp_path / "m.crisp",
        *QUICK,
        "--validation",
        tmp_path / "t.npz",
    )
    assert "40 rows" in done("evaluate", tmp_path / "m.crisp", tmp_path / "t.npz").text
    np.savez(tmp_path / "u.npz", X=X, y=y)
    assert "40 rows" in done("evaluate", tmp_path / "m.crisp", tmp_path / "u.npz").text


def test_a_written_table_of_another_model_is_refused(shop, tmp_path):
    other = write(shop.table.drop_columns(["age"]), tmp_path / "t.csv")
    assert "it has no 'age'" in run("evaluate", shop.model, other).stderr


QUICK_WITHOUT = QUICK[: QUICK.index("--holdout")]


def noise(path, n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 30)).round(3)
    lines = [",".join(map(str, row)) + f",{'ab'[rng.integers(2)]}" for row in X]
    return text(path, ",".join([*(f"x{j}" for j in range(30)), "y"]), *lines)


def test_a_fifth_of_the_rows_is_held_out_by_default(tmp_path):
    data = write(customers(160), tmp_path / "t.csv")
    said = json.loads(done("fit", data, "-t", "buys", "-o", tmp_path / "m.crisp", *QUICK_WITHOUT, "--json").stdout)
    assert said["rows"] == said["accuracy"]["training"]["rows"] == 128
    assert said["accuracy"]["held out"]["rows"] == 32
    assert said["accuracy"]["held out"]["majority"] == 0.5
    model = crisptree.load(tmp_path / "m.crisp")
    assert model.tree_.statistics.node_counts[0].sum() == 128
    everything = done("fit", data, "-t", "buys", "-o", tmp_path / "n.crisp", *QUICK).text
    assert "160 rows" in everything
    assert "No rows were held out" in everything


def test_few_rows_and_validation_rows_are_reasons_to_hold_out_none():
    assert FitOptions().select_holdout(49) == 0
    assert FitOptions().select_holdout(50) == 0.2
    assert FitOptions(validation=Path("rows.csv")).select_holdout(1000) == 0
    assert FitOptions(validation=Path("rows.csv"), holdout=0.3).select_holdout(10) == 0.3


def test_a_refitted_model_is_that_of_all_rows_and_its_scores_are_those_of_the_first_fit(tmp_path):
    data = write(customers(160), tmp_path / "t.csv")

    def fitted(name, *options):
        result = done("fit", data, "-t", "buys", "-o", tmp_path / name, *QUICK_WITHOUT, *options, "--json")
        return json.loads(result.stdout), crisptree.load(tmp_path / name)

    judged, _ = fitted("judged.crisp")
    refitted, model = fitted("refitted.crisp", "--refit")
    fitted("whole.crisp", "--holdout", "0")
    assert refitted["accuracy"] == judged["accuracy"]
    assert refitted["rows"] == 160
    assert model.tree_.statistics.node_counts[0].sum() == 160
    assert (tmp_path / "refitted.crisp").read_bytes() == (tmp_path / "whole.crisp").read_bytes()
    said = done("fit", data, "-t", "buys", "-o", tmp_path / "x.crisp", *QUICK_WITHOUT, "--refit").text
    assert "Scored without the 32 held-out rows; the saved model was then trained on all 160 rows." in said
    result = run("fit", data, "-t", "buys", "-o", tmp_path / "y.crisp", *QUICK, "--refit")
    assert result.exit_code == 2
    assert "--refit follows the score of held-out rows" in result.text


def test_overfitting_is_noted(tmp_path):
    options = ("--depth", "5", "--split", "oblique", "--l1", "0", "--input-noise", "0", "--shrinkage", "0")
    result = done("fit", noise(tmp_path / "t.csv"), "-t", "y", "-o", tmp_path / "m.crisp", *options)
    assert "note: accuracy is" in result.stderr
    assert "Try a smaller --depth" in result.stderr


def test_a_gap_within_two_standard_errors_is_not_noted():
    def said(n_rows, right):
        training = {"rows": 1000, "hard": 0.9, "majority": 0.5}
        return diagnose({"training": training, "held out": {"rows": n_rows, "hard": right, "majority": 0.5}}, "no")

    assert said(20, 0.8) == []
    assert len(said(1000, 0.8)) == 1
    assert said(100_000, 0.87) == []
    assert len(said(1000, 0.5)) == 2
    assert diagnose({"training": {"rows": 10, "hard": 1.0, "majority": 0.5}}, "no") == []


@pytest.mark.parametrize("target", ["label", "value"])
def test_scores_of_the_probabilistic_tree_are_not_shown_for_thresholds_that_were_only_searched(tmp_path, target):
    rows = [f"{row % 20},{row % 7},{'uv'[row % 20 > 9]},{0.5 + row % 3}" for row in range(80)]
    path = text(tmp_path / "t.csv", "a,b,label,value", *rows)
    other = "value" if target == "label" else "label"
    flags = ("-t", target, "--drop", other, "--split", "axis", "--holdout", "0.2", "--depth", "2")
    flags += ("--shrinkage", "0", "--input-noise", "0", "--l1", "0", "--leaf-model", "constant")  # nothing is selected
    for name, values, is_shown in (("searched", {"finetune_epochs": 0}, False), ("trained", {}, True)):
        done("fit", path, *flags, "-o", tmp_path / f"{name}.crisp", "--force")
        model = crisptree.load(tmp_path / f"{name}.crisp")
        model.set_params(training=TrainingOptions(grow="cart", **values))
        model.save(tmp_path / f"{name}.crisp")
        shown = done("evaluate", tmp_path / f"{name}.crisp", path).text
        assert ("soft" in shown) == is_shown
        document = json.loads(done("evaluate", tmp_path / f"{name}.crisp", path, "--json").stdout)
        assert ((document["accuracy"]["soft"] if target == "label" else document["soft_rmse"]) is not None) == is_shown
