"""inspect, plot and report."""

import json

import numpy as np
import pyarrow as pa
import pytest

import crisptree
import crisptree.plots.style
from tests.cli.running import QUICK, done, run
from tests.encoding.writers import write
from tests.report.conftest import data_of, unpacked
from tests.toys import clouds, plain_tree


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_tree_is_drawn_in_every_format(shop, tmp_path, ending, magic):
    done("plot", shop.model, "-o", tmp_path / f"a tree.{ending}", "--max-depth", "1")
    drawn = (tmp_path / f"a tree.{ending}").read_bytes()
    assert drawn.startswith(magic)
    assert (b'addEventListener("dblclick"' in drawn) == (ending == "svg")


def test_weights_confusion_and_regions_are_drawn(shop, tmp_path):
    done("plot", shop.model, "--kind", "weights", "-o", tmp_path / "w.png", "--dpi", "40")
    done("plot", shop.model, "--kind", "confusion", "--data", shop.csv, "-o", tmp_path / "c.png", "--dpi", "40")
    X, y = clouds(60, n_features=2)
    plane = write(pa.table({"a $x_1$": X[:, 0], "b": X[:, 1], "y": y}), tmp_path / "t.csv")
    done("fit", plane, "-t", "y", "-o", tmp_path / "m.crisp", *QUICK)
    done("plot", tmp_path / "m.crisp", "--kind", "regions", "--data", plane, "-o", tmp_path / "r.png", "--dpi", "40")
    for name in "wcr":
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    result = run("plot", shop.model, "--kind", "regions", "--data", shop.csv, "-o", tmp_path / "no.png")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")


def test_wrong_use_of_plot_is_reported(shop, tmp_path):
    for arguments, said in (
        (("-o", tmp_path / "t.docx"), "-o must end in .svg or .png or .pdf"),
        (
            ("-o", tmp_path / "t.png", "--kind", "confusion"),
            "--data is for, and needed by, --kind confusion, regions, residuals; got confusion",
        ),
        (
            ("-o", tmp_path / "t.png", "--kind", "weights", "--max-depth", "2"),
            "--max-depth and --max-width are for --kind tree",
        ),
    ):
        result = run("plot", shop.model, *arguments)
        assert result.exit_code == 2
        assert said in " ".join(result.text.replace("│", " ").split())


def test_confusion_matrices_of_many_classes_are_large_enough_for_their_names(tmp_path, monkeypatch):
    X = np.arange(260.0)
    rows = pa.table({"x": X, "y": [f"class number {int(value) // 10}" for value in X]})
    table = write(rows, tmp_path / "t.csv")
    done("fit", table, "-t", "y", "-o", tmp_path / "m.crisp", *QUICK)
    drawn = []
    save_figure = crisptree.plots.style.save_figure
    monkeypatch.setattr(
        "crisptree.plots.style.save_figure", lambda axes, *more: drawn.append(axes) or save_figure(axes, *more)
    )
    done("plot", tmp_path / "m.crisp", "--kind", "confusion", "--data", table, "-o", tmp_path / "c.png", "--dpi", "40")
    (axes,) = drawn
    assert axes.figure.get_size_inches().min() > 10
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {90.0}


def test_the_report_is_one_page_about_the_model_and_the_table(shop, tmp_path):
    result = done("report", shop.model, shop.csv, "-o", tmp_path / "a report.html", "--json")
    assert json.loads(result.stdout)["rows"] == 160
    page = (tmp_path / "a report.html").read_text(encoding="utf-8")
    assert "color=rot" in page
    assert "Decision tree for buys" in page
    samples = data_of(page)["samples"]  # rows are counted from 0, as in all messages
    assert samples["ids"] == [str(row) for row in unpacked(samples["row"])]
    assert [path.name for path in tmp_path.iterdir()] == ["a report.html"]
    assert run("report", shop.model, shop.csv, "-o", tmp_path / "r.pdf").exit_code == 2


def test_inspection_lists_what_the_file_holds(shop):
    said = json.loads(done("inspect", shop.model, "--json").stdout)
    model = crisptree.load(shop.model)
    assert said["kind"] == "CrispTreeClassifier"
    assert said["classes"] == ["no", "yes"]
    assert said["class_counts"] == model.tree_.statistics.node_counts[0].tolist()
    assert (said["depth"], said["leaves"]) == (model.get_depth(), model.get_n_leaves())
    assert said["bytes"] == shop.model.stat().st_size
    assert said["density"] == 1.0
    assert 0 < said["mean_path"] <= 2
    shares = {entry["column"]: entry["share"] for entry in said["importances"]}
    assert set(shares) <= {"age", "income", "color", "member"}
    assert sum(shares.values()) == pytest.approx(1)
    stored = said["preprocessing"]
    assert (stored["version"], stored["target"], stored["left_out"]) == (1, "buys", {"id": "dropped"})
    assert stored["columns"][2]["categories"] == ["blue green", "grün", "rot"]
    assert set(said["changed"]) == {
        "max_depth",
        "epochs",
        "finetune_epochs",
        "random_state",
        *("split", "algorithm", "l1", "input_noise", "shrinkage"),
    }
    people = done("inspect", shop.model).text
    for words in ("format 1", "max_depth=2", "share of the gain", "own feature", "left out: 'id' (dropped)"):
        assert words in people


def test_models_without_preprocessing_and_with_modules_are_inspected(tmp_path):
    X, y = clouds(40, n_features=256, n_classes=2)
    model = plain_tree(split="conv", image_shape=(16, 16), max_depth=1, epochs=1, finetune_epochs=0, min_updates=0)
    model.fit(X, y).save(tmp_path / "m.crisp")
    result = done("inspect", tmp_path / "m.crisp")
    assert "(modules)" in result.text
    assert "images of 16 × 16" in result.text
    assert "No preprocessing" in result.text
    np.savez(tmp_path / "t.npz", X=X.reshape(40, 16, 16))
    lines = done("predict", tmp_path / "m.crisp", tmp_path / "t.npz", "--explain").stdout.splitlines()
    assert [int(line.split(",")[0]) for line in lines[1:]] == model.predict(X).tolist()


def test_a_table_of_many_columns_is_inspected_in_short(tmp_path):
    X, y = clouds(40, n_features=40)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    done("fit", tmp_path / "t.npz", "-o", tmp_path / "m.crisp", *QUICK)
    assert "and 10 more columns; --json has all" in done("inspect", tmp_path / "m.crisp").text
