import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import crisptree
from crisptree.encoding import containers
from tests.cli.running import QUICK, done, run
from tests.encoding.writers import text, write
from tests.report.conftest import data_of
from tests.toys import clouds, plain_tree


def csv(path):
    return pa.csv.read_csv(path).to_pydict()


def test_predictions_are_those_of_the_python_interface_row_by_row(shop, tmp_path):
    out = tmp_path / "out.csv"
    done("predict", shop.model, shop.csv, "-o", out, "--proba", "--leaf", "--keep", "id")
    model = crisptree.load(shop.model)
    X = shop.table
    found = csv(out)
    assert list(found) == ["id", "prediction", "probability of no", "probability of yes", "leaf"]
    assert found["id"] == shop.table["id"].to_pylist()
    assert found["prediction"] == model.predict(X).tolist()
    assert np.array_equal([found["probability of no"], found["probability of yes"]], model.predict_proba(X).T)
    assert found["leaf"] == model.leaf_indices(X).tolist()


def test_every_format_holds_the_same_predictions(shop, tmp_path):
    tables = {}
    for ending in ("csv", "tsv", "parquet"):
        out = tmp_path / f"out.{ending}"
        assert f"160 rows → {out}" in done("predict", shop.model, shop.parquet, "-o", out, "--leaf").text
        tables[ending] = out
    expected = csv(tables["csv"])
    assert pa.csv.read_csv(tables["tsv"], parse_options=pa.csv.ParseOptions(delimiter="\t")).to_pydict() == expected
    assert pa.parquet.read_table(tables["parquet"]).to_pydict() == expected
    assert done("predict", shop.model, shop.csv, "--leaf").stdout == tables["csv"].read_text()


def test_copied_columns_of_lists_need_parquet(shop, tmp_path):
    table = shop.table.append_column("words", pa.array([["a", "b"]] * len(shop.table)))
    rows = write(table, tmp_path / "t.parquet")
    arguments = ("predict", shop.model, rows, "--keep", "words", "-o")
    for ending in ("csv", "tsv"):
        result = run(*arguments, tmp_path / f"out.{ending}")
        assert result.exit_code == 1
        assert "column 'words' holds values of type list" in result.stderr
        assert "only a .parquet can keep" in result.stderr
    done(*arguments, tmp_path / "out.parquet")


def test_a_column_that_the_model_needs_cannot_be_dropped(shop):
    result = run("predict", shop.model, shop.csv, "--drop", "income")
    assert result.exit_code == 1
    assert "--drop cannot leave out 'income': the model was trained on that column." in result.stderr
    done("predict", shop.model, shop.csv, "--drop", "id")


def test_pieces_of_three_rows_give_the_same_file(shop, tmp_path, monkeypatch):
    arguments = ("predict", shop.model, shop.csv, "--proba", "--explain", "-o")
    done(*arguments, tmp_path / "whole.csv")
    done(*arguments, tmp_path / "whole.parquet")
    monkeypatch.setattr(containers, "MAX_ROWS_PER_BATCH", 3)
    monkeypatch.setattr(containers, "MIN_ROWS_PER_BATCH", 3)
    done(*arguments, tmp_path / "pieces.csv")
    done(*arguments, tmp_path / "pieces.parquet")
    assert (tmp_path / "pieces.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()
    tables = [pa.parquet.read_table(tmp_path / f"{name}.parquet") for name in ("pieces", "whole")]
    assert tables[0] == tables[1]


def test_the_path_names_the_columns_of_the_table(shop, tmp_path):
    done("predict", shop.model, shop.csv, "--explain", "--leaf", "-o", tmp_path / "out.csv")
    found = csv(tmp_path / "out.csv")
    for words, leaf, label in zip(found["path"], found["leaf"], found["prediction"], strict=True):
        assert words.startswith("split 0 ")
        assert words.endswith(f"leaf {leaf}: {label}")
    everything = " ".join(found["path"])
    assert "income = " in everything
    assert "color is rot" in everything or "color is not rot" in everything
    assert "color=" not in everything


def test_what_training_has_not_seen_is_counted_on_stderr_and_in_json(shop, tmp_path):
    rows = text(tmp_path / "t.csv", "age,income,color,member,extra", "30,2e4,violet,true,1", "40,,rot,false,2")
    result = done("predict", shop.model, rows, "-o", tmp_path / "out.csv", "--json")
    said = json.loads(result.stdout)
    assert said["rows"] == 2
    assert said["notes"] == [
        "columns that the model does not use: 'extra'.",
        "column 'color': 1 value that training did not know ('violet'); all its features are 0 there.",
        f"column 'income': 1 missing value, none in training; the mean {np.mean(shop.table['income']):.6g} stands in.",
    ]
    assert all(note in result.stderr for note in said["notes"])


def test_a_table_without_rows_gives_a_table_without_rows(shop, tmp_path):
    rows = text(tmp_path / "t.csv", "age,income,color,member,id")
    for ending in ("csv", "parquet"):
        done("predict", shop.model, rows, "--keep", "id", "--proba", "--explain", "-o", tmp_path / f"o.{ending}")
    assert (tmp_path / "o.csv").read_text().count("\n") == 1
    assert pa.parquet.read_table(tmp_path / "o.parquet").num_rows == 0


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["age,income,colour,member", "1,2,rot,true"], "it has no 'color'. Did you mean 'colour'?"),
        (
            ["age,income,color,member", "1,much,rot,true"],
            "column 'income' must hold numbers, as in training; row 0 has 'much'. If that means a missing value, "
            "say --missing much.",
        ),
        (
            ["age,income,color,member", "1,2,rot,perhaps"],
            "column 'member' must hold true or false, as in training; row 0 has 'perhaps'",
        ),
    ],
)
def test_tables_that_do_not_fit_the_model_are_refused_and_leave_no_file(shop, tmp_path, lines, said):
    rows = text(tmp_path / "t.csv", *lines)
    result = run("predict", shop.model, rows, "-o", tmp_path / "out.csv")
    assert result.exit_code == 1
    assert said in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_a_failure_midway_leaves_the_earlier_file_as_it_was(shop, tmp_path, monkeypatch):
    monkeypatch.setattr(containers, "MAX_ROWS_PER_BATCH", 2)
    monkeypatch.setattr(containers, "MIN_ROWS_PER_BATCH", 2)
    rows = text(tmp_path / "t.csv", "age,income,color,member", *["30,2e4,rot,true"] * 5, "x,2e4,rot,true")
    (tmp_path / "out.csv").write_text("precious")
    result = run("predict", shop.model, rows, "-o", tmp_path / "out.csv", "--force")
    assert result.exit_code == 1
    assert "row 5 has 'x'" in result.stderr
    assert (tmp_path / "out.csv").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 2


def test_another_text_for_missing_values_may_be_named(shop, tmp_path):
    rows = text(tmp_path / "t.csv", "age,income,color,member", "?,2e4,rot,true")
    assert run("predict", shop.model, rows).exit_code == 1
    assert done("predict", shop.model, rows, "--missing", "?").stdout.startswith('"prediction"')


def test_a_model_of_the_python_interface_takes_numbers_by_place_or_by_name(tmp_path):
    import pandas as pd

    X, y = clouds(60, n_features=3)
    options = {"max_depth": 2, "epochs": 2, "finetune_epochs": 2, "random_state": 0}
    model = plain_tree(**options).fit(X, y)
    model.save(tmp_path / "plain.crisp")
    names = ["a", "b", "c"]
    plain_tree(**options).fit(pd.DataFrame(X, columns=names), y).save(tmp_path / "named.crisp")
    columns = {name: X[:, place].astype(float) for place, name in enumerate(names)}
    table = write(pa.table({"label": y, "c": columns["c"], "a": columns["a"], "b": columns["b"]}), tmp_path / "t.csv")
    expected = model.predict(X).tolist()
    done("predict", tmp_path / "named.crisp", table, "-o", tmp_path / "o.csv")
    assert csv(tmp_path / "o.csv")["prediction"] == expected
    in_place = write(pa.table({"label": y, **columns}), tmp_path / "u.csv")
    done("predict", tmp_path / "plain.crisp", in_place, "--drop", "label", "-o", tmp_path / "o.csv", "--force")
    assert csv(tmp_path / "o.csv")["prediction"] == expected
    np.savez(tmp_path / "t.npz", X=X)
    done("predict", tmp_path / "plain.crisp", tmp_path / "t.npz", "-o", tmp_path / "o.csv", "--force")
    assert csv(tmp_path / "o.csv")["prediction"] == expected


def test_a_model_of_libsvm_rows_predicts_rows_whose_last_features_are_zero(tmp_path):
    X, y = clouds(40, n_features=4)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    done("fit", tmp_path / "t.npz", "-o", tmp_path / "m.crisp", *QUICK)
    rows = text(tmp_path / "t.svm", "0 1:0.5", "1 2:3")
    done("predict", tmp_path / "m.crisp", rows, "-o", tmp_path / "o.csv")
    expected = crisptree.load(tmp_path / "m.crisp").predict(np.array([[0.5, 0, 0, 0], [0, 3, 0, 0]], dtype=np.float32))
    assert csv(tmp_path / "o.csv")["prediction"] == expected.tolist()


@pytest.mark.parametrize("labels", [["<script>alert(1)</script>", "$x_1$"], ["a,b", 'c"d'], [True, False], [3, 7]])
def test_strange_class_names_come_out_as_they_went_in(tmp_path, labels):
    table = pa.table({"a": [0.0, 1.0, 10.0, 11.0] * 4, "y": [labels[0], labels[0], labels[1], labels[1]] * 4})
    write(table, tmp_path / "t.parquet")
    done("fit", tmp_path / "t.parquet", "-t", "y", "-o", tmp_path / "m.crisp", "--depth", "1")
    done("predict", tmp_path / "m.crisp", tmp_path / "t.parquet", "--proba", "-o", tmp_path / "o.parquet")
    assert pa.parquet.read_table(tmp_path / "o.parquet")["prediction"].to_pylist() == table["y"].to_pylist()
    assert done("evaluate", tmp_path / "m.crisp", tmp_path / "t.parquet").text.count(str(labels[0])) >= 2


def test_a_tree_of_one_leaf_and_one_feature_predicts_explains_and_is_inspected(tmp_path):
    rows = text(tmp_path / "t.csv", "a,y", "1,x", "2,x", "3,z")
    done("fit", rows, "-t", "y", "-o", tmp_path / "m.crisp", "--depth", "0")
    assert done("predict", tmp_path / "m.crisp", rows, "--explain").stdout.splitlines()[1] == '"x","leaf 0: x"'
    assert "1 leaves" in done("inspect", tmp_path / "m.crisp").text
    assert "hard 0.6667" in done("evaluate", tmp_path / "m.crisp", rows).text
    done("plot", tmp_path / "m.crisp", "-o", tmp_path / "tree.png")
    result = run("plot", tmp_path / "m.crisp", "--kind", "weights", "-o", tmp_path / "w.png")
    assert result.exit_code == 1
    assert "--kind weights needs splits that are hyperplanes" in result.stderr


@pytest.mark.slow
def test_many_features_and_many_classes_pass_the_whole_pipeline(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(78, 4096)).round(3)
    labels = [chr(ord("a") + row % 26) for row in range(78)]
    names = [f"column {j}" for j in range(4096)]
    write(pa.table([*X.T, labels], names=[*names, "class"]), tmp_path / "t.csv")
    done(
        "fit",
        tmp_path / "t.csv",
        "-t",
        "class",
        "-o",
        tmp_path / "m.crisp",
        "--depth",
        "1",
        "--epochs",
        "1",
        "--finetune-epochs",
        "0",
    )
    done("predict", tmp_path / "m.crisp", tmp_path / "t.csv", "--proba", "-o", tmp_path / "o.parquet")
    assert pa.parquet.read_table(tmp_path / "o.parquet").num_columns == 27
    assert "26: 'a'" in done("inspect", tmp_path / "m.crisp").text


def test_wrong_use_is_reported(shop, tmp_path):
    for arguments, said in (
        (("-o", tmp_path / "o.xlsx"), "-o must end in .csv or .tsv or .parquet"),
        (("--json",), "--json needs a file for the predictions"),
    ):
        result = run("predict", shop.model, shop.csv, *arguments)
        assert result.exit_code == 2
        assert said in " ".join(result.text.replace("│", " ").split())
    renamed = write(shop.table.rename_columns(["prediction", *shop.table.column_names[1:]]), tmp_path / "t.csv")
    assert "--keep cannot copy 'prediction'" in run("predict", shop.model, renamed, "--keep", "prediction").text
    assert "has no column 'ID' (--keep)" in run("predict", shop.model, shop.csv, "--keep", "ID").text


def test_a_file_that_is_no_model_is_refused(shop, tmp_path):
    result = run("predict", shop.csv, shop.csv)
    assert result.exit_code == 1
    assert "is not a crisptree model file" in result.stderr
    assert "cannot be read" in run("predict", tmp_path / "none.crisp", shop.csv).stderr


def german(path, n=60):
    """A table whose numbers have commas, points and a sign, and whose rows have names."""
    lines = ["id;betrag;ziel"] + [f"k{row};1.{100 + row},5 €;{'ja' if row % 2 else 'nein'}" for row in range(n)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


WRITTEN = ("--delimiter", ";", "--decimal", ",", "--thousands", ".", "--unit", "€")


def test_how_numbers_are_written_and_which_column_names_rows_is_kept_with_the_model(tmp_path):
    table = german(tmp_path / "t.csv")
    done("fit", table, "-t", "ziel", "--id", "id", *WRITTEN, *QUICK, "-o", tmp_path / "m.crisp")
    done("predict", tmp_path / "m.crisp", table, "--delimiter", ";", "-o", tmp_path / "p.csv")
    written = csv(tmp_path / "p.csv")
    assert list(written) == ["id", "prediction"]
    assert written["id"][:2] == ["k0", "k1"]
    done("evaluate", tmp_path / "m.crisp", table, "--delimiter", ";")
    done("report", tmp_path / "m.crisp", table, "--delimiter", ";", "-o", tmp_path / "r.html")
    assert data_of((tmp_path / "r.html").read_text(encoding="utf-8"))["samples"]["ids"][0].startswith("k")
    assert "--decimal ','" in done("inspect", tmp_path / "m.crisp").output
    plain = tmp_path / "plain.csv"
    plain.write_text("betrag\n1100.5\n")
    wrong = run("predict", tmp_path / "m.crisp", plain)
    assert wrong.exit_code == 1
    assert "must hold numbers, as in training; row 0 has '1100.5'" in " ".join(wrong.text.split())
    result = done("predict", tmp_path / "m.crisp", plain, "--decimal", ".")
    assert "the training table was written with --decimal ',' --thousands '.'" in " ".join(result.stderr.split())


def test_a_model_of_the_command_line_reads_the_numbers_of_its_table_in_python(tmp_path):
    table = german(tmp_path / "t.csv")
    done("fit", table, "-t", "ziel", "--drop", "id", *WRITTEN, *QUICK, "-o", tmp_path / "m.crisp")
    model = crisptree.load(tmp_path / "m.crisp")
    texts = pd.read_csv(table, sep=";")
    numbers = pd.DataFrame({"betrag": [1100.5 + row for row in range(60)]})
    assert (model.predict(texts) == model.predict(numbers)).all()


def test_a_column_can_be_one_thing_and_arguments_are_checked_before_files_that_are_there(tmp_path):
    table, there = german(tmp_path / "t.csv"), tmp_path / "m.crisp"
    there.write_text("something")
    twice = run("fit", table, "-t", "ziel", "--drop", "ziel", *WRITTEN, "-o", there)
    assert "--drop ziel is also what --target names" in " ".join(twice.text.split())
    typed = run("fit", table, "-t", "zeil", *WRITTEN, "-o", there)
    assert "Did you mean 'ziel'?" in " ".join(typed.text.split())
    assert "already exists" in run("fit", table, "-t", "ziel", "--drop", "id", *WRITTEN, "-o", there).text
