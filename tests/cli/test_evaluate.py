import json

import numpy as np
import pytest

from crisptree import load, metrics
from tests.cli.running import QUICK, done, run
from tests.encoding.writers import text, write
from tests.toys import clouds, plain_tree


def test_evaluation_counts_what_it_says(shop):
    said = json.loads(done("evaluate", shop.model, shop.csv, "--json").raw)
    lines = done("predict", shop.model, shop.csv).raw.splitlines()[1:]
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
    assert sum(entry["errors"] for entry in said["blamed"]) == np.sum(predicted != truth)


def test_evaluation_for_people_shows_hard_and_soft_classes_and_culprits(shop):
    answer = done("evaluate", shop.model, shop.parquet, "-t", "buys")
    for words in (
        "accuracy hard 0.",
        "· soft 0.",
        "log loss hard",
        "Brier score hard 0.",
        "calibration error hard 0.",
        "precision",
        "true \\ predicted",
        "is to blame for",
    ):
        assert words in answer.said


def test_a_class_that_training_did_not_know_counts_as_an_error(shop, tmp_path):
    rows = text(tmp_path / "t.csv", "age,income,color,member,buys", "30,2e4,rot,true,yes", "30,2e4,rot,true,never")
    answer = done("evaluate", shop.model, rows, "--json")
    said = json.loads(answer.raw)
    assert said["accuracy"]["hard"] <= 0.5
    assert sum(said["confusion"][2]) == 1
    assert "1 row of a class that the model does not know ('never'), counted as errors." in answer.notes


def test_the_report_and_the_confusion_leave_out_rows_of_unknown_classes_and_say_so(shop, tmp_path):
    rows = text(tmp_path / "t.csv", "age,income,color,member,buys", "30,2e4,rot,true,yes", "30,2e4,rot,true,never")
    for command in (("report", shop.model, rows), ("plot", shop.model, "--kind", "confusion", "--data", rows)):
        ending = ".html" if command[0] == "report" else ".svg"
        said = done(*command, "-o", tmp_path / f"out{ending}").notes
        assert "1 row of a class that the model does not know ('never'), left out." in said


def test_a_table_without_a_row_of_a_known_class_is_refused_with_both_lists_of_classes(shop, tmp_path):
    rows = text(tmp_path / "t.csv", "age,income,color,member,buys", "30,2e4,rot,true,never")
    plot = ("plot", shop.model, "--kind", "confusion", "--data", rows, "-o", tmp_path / "out.svg")
    for command in (("evaluate", shop.model, rows), ("report", shop.model, rows, "-o", tmp_path / "r.html"), plot):
        answer = run(*command)
        assert answer.code == 1
        assert "must have rows of the model's classes, 'no', 'yes'; in column 'buys' it has 'never'." in answer.notes


def test_the_log_loss_of_certainty_is_zero_and_not_minus_zero(tmp_path):
    rows = text(tmp_path / "t.csv", "a,y", *(f"{row},{'no' if row < 20 else 'yes'}" for row in range(40)))
    done("fit", rows, "-t", "y", "--depth", "1", "-o", tmp_path / "m.crisp")
    said = done("evaluate", tmp_path / "m.crisp", rows).said
    assert "accuracy hard 1.0000" in said
    assert "log loss hard 0.0000" in said


def test_evaluation_says_how_good_probabilities_are(tmp_path):
    X, y = clouds(200)
    y[:20] = (y[:20] + 1) % 3
    np.savez(tmp_path / "t.npz", X=X, y=y)
    done("fit", tmp_path / "t.npz", "--shrinkage", "20", "--prune", "0.001", "-o", tmp_path / "m.crisp", *QUICK)
    said = json.loads(done("evaluate", tmp_path / "m.crisp", tmp_path / "t.npz", "--json").raw)
    model = load(tmp_path / "m.crisp")
    tables = {"hard": model.predict_proba(X), "soft": model.soft_predict_proba(X)}
    for name in ("log_loss", "brier_score", "calibration_error"):
        for kind, table in tables.items():
            assert said[name][kind] == pytest.approx(getattr(metrics, name)(y, table), rel=1e-5)
    assert (model.shrinkage_, model.prune) == (20.0, 0.001)


def test_an_infinite_log_loss_is_said_in_words_and_is_null_in_json(tmp_path):
    rows = text(tmp_path / "t.csv", "a,y", *(f"{row},{'no' if row < 20 else 'yes'}" for row in range(40)))
    done("fit", rows, "-t", "y", "--depth", "1", "-o", tmp_path / "m.crisp")
    other = text(tmp_path / "u.csv", "a,y", "1,no", "2,yes")
    assert "log loss hard infinite" in done("evaluate", tmp_path / "m.crisp", other).said
    assert json.loads(done("evaluate", tmp_path / "m.crisp", other, "--json").raw)["log_loss"]["hard"] is None


def test_evaluation_needs_a_target(shop, tmp_path):
    rows = text(tmp_path / "t.csv", "age,income,color,member", "30,2e4,rot,true")
    assert "has no column 'buys' (--target)" in run("evaluate", shop.model, rows).notes
    X, y = clouds(30, n_features=2)
    plain_tree(max_depth=1, epochs=1, finetune_epochs=0).fit(X, y).save(tmp_path / "m.crisp")
    table = text(tmp_path / "u.csv", "a,b,y", "1,2,0")
    answer = run("evaluate", tmp_path / "m.crisp", table)
    assert answer.code == 1
    assert "holds the classes with --target" in answer.notes
    assert "1 rows" in done("evaluate", tmp_path / "m.crisp", table, "-t", "y").said


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
    assert "40 rows" in done("evaluate", tmp_path / "m.crisp", tmp_path / "t.npz").said
    np.savez(tmp_path / "u.npz", X=X, y=y)
    assert "40 rows" in done("evaluate", tmp_path / "m.crisp", tmp_path / "u.npz").said


def test_a_written_table_of_another_model_is_refused(shop, tmp_path):
    other = write(shop.table.drop_columns(["age"]), tmp_path / "t.csv")
    assert "it has no 'age'" in run("evaluate", shop.model, other).notes
