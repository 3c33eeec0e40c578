import json
import re
import shutil
import subprocess

import joblib
import numpy as np
import pytest

from tests.cli.running import QUICK, done, run


@pytest.fixture(scope="module")
def axis_model(shop):
    path = shop.folder / "axis.crisp"
    done("fit", shop.csv, "--target", "buys", "--drop", "id", "-o", path, *QUICK, "--split", "axis")
    return path


def test_an_export_is_compared_with_its_model_and_reports_the_number(shop, axis_model, tmp_path):
    result = done("export", axis_model, "--to", "sklearn", "-o", tmp_path / "m.joblib", "--check", shop.csv)
    assert "160 of 160 rows reach the same leaf, 160 get the same class" in result.text
    assert joblib.load(tmp_path / "m.joblib").estimators_[0].get_depth() == 2
    done("export", axis_model, "--to", "sklearn", "--form", "tree", "-o", tmp_path / "t.joblib", "--check", shop.csv)
    assert joblib.load(tmp_path / "t.joblib").get_depth() == 2
    document = json.loads(
        done(
            *("export", axis_model, "--to", "sklearn"), "-o", tmp_path / "n.joblib", "--check", shop.csv, "--json"
        ).stdout
    )
    assert document["agreement"]["equal_leaves"] == document["agreement"]["rows"] == 160


def test_a_model_that_a_target_cannot_hold_is_refused_and_nothing_is_written(shop, tmp_path):
    result = run("export", shop.model, "--to", "sklearn", "-o", tmp_path / "m.joblib")
    assert result.exit_code == 1
    assert "does not support oblique splits" in result.text
    assert not list(tmp_path.iterdir())


def test_wrong_targets_and_endings_are_wrong_use(shop, tmp_path):
    result = run("export", shop.model, "--to", "cobol", "-o", tmp_path / "m.cob")
    assert result.exit_code == 2
    assert "--to must be one of" in result.text
    result = run("export", shop.model, "--to", "sklearn", "-o", tmp_path / "m.txt")
    assert result.exit_code == 2
    assert "-o must end in .joblib" in result.text


@pytest.mark.parametrize(("ending", "to"), [(".c", "c"), (".mjs", "js"), (".json", "json")])
def test_the_ending_of_the_file_names_the_format(shop, tmp_path, ending, to):
    document = json.loads(done("export", shop.model, "-o", tmp_path / f"m{ending}", "--json").stdout)
    assert document["to"] == to
    refused = run("export", shop.model, "-o", tmp_path / "m.txt")
    assert refused.exit_code == 2
    assert "-o must end in one of .h, .c, .onnx, .mjs, .js, .sql, .json, .joblib" in refused.text


def test_c_and_onnx_take_their_options_and_names_from_the_command_line(shop, tmp_path):
    result = done("export", shop.model, "--to", "c", "-o", tmp_path / "my shop.h", "--check", shop.csv)
    assert "160 of 160 rows reach the same leaf" in result.text
    assert "my_shop_predict_proba" in (tmp_path / "my shop.h").read_text()
    options = ("--integer", "int16", "--name", "shop", "--max-flash", "4000", "--max-changed", "0.01")
    result = done("export", shop.model, "--to", "c", "-o", tmp_path / "m.h", "--check", shop.csv, *options)
    assert "bytes of flash" in result.text
    assert "shop_quantize" in (tmp_path / "m.h").read_text()
    done("export", shop.model, "--to", "onnx", "-o", tmp_path / "m.onnx", "--form", "paths", "--check", shop.csv)
    assert (tmp_path / "m.onnx").stat().st_size > 1000


def test_rows_that_integers_change_are_warned_of_and_can_be_refused(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = X[:, 0] + X[:, 1] > 0
    lines = [f"{row[0]!r},{row[1]!r},{label}" for row, label in zip(X.tolist(), y, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,y", *lines]))
    done("fit", tmp_path / "rows.csv", "--target", "y", "-o", tmp_path / "m.crisp", *QUICK)
    command = ("export", tmp_path / "m.crisp", "-o", tmp_path / "m.h", "--check", tmp_path / "rows.csv")
    exact = done(*command)
    assert "warning" not in exact.text
    changed = done(*command, "--integer", "int8", "--force")
    (count,) = re.findall(r"warning: (\d+) of 2,000 rows get another class than in the model", changed.text)
    assert int(count) > 0
    assert "--max-changed 0 refuses such a file" in changed.text
    (tmp_path / "m.h").unlink()
    refused = run(*command, "--integer", "int8", "--max-changed", "0")
    assert refused.exit_code == 1
    assert "at most 0.000% of the rows may change" in refused.text
    assert not (tmp_path / "m.h").exists()


def test_a_source_file_says_how_it_is_compiled(shop, tmp_path):
    done("export", shop.model, "-o", tmp_path / "m.c")
    text = (tmp_path / "m.c").read_text()
    assert text.startswith("/* Compile this file as it is.")
    assert "#define M_IMPLEMENTATION" in text.splitlines()[1]


def test_limits_that_are_exceeded_leave_no_file(shop, tmp_path):
    path = tmp_path / "m.h"
    result = run("export", shop.model, "--to", "c", "-o", path, "--max-flash", "100")
    assert result.exit_code == 1
    assert "at most `max_flash` = 100 bytes" in result.text
    result = run("export", shop.model, "--to", "c", "-o", path, "--max-changed", "0.1")
    assert result.exit_code == 2
    assert "name them with --check FILE" in result.text
    result = run("export", shop.model, "--to", "onnx", "-o", tmp_path / "m.onnx", "--integer", "int8")
    assert result.exit_code == 1
    assert "ONNX takes the options" in result.text
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("to", "file"), [("sql", "m.sql"), ("json", "m.json"), ("js", "m.mjs")])
def test_the_columns_of_a_table_go_through_the_export_too(shop, tmp_path, to, file):
    if to == "js" and shutil.which("node") is None:
        pytest.skip("Node.js is not installed")
    result = done("export", shop.model, "--to", to, "-o", tmp_path / file, "--check", shop.csv)
    assert "160 of 160 rows reach the same leaf, 160 get the same class" in result.text
    assert (tmp_path / file).stat().st_size > 1000


def test_a_document_takes_the_place_of_a_model_file(shop, tmp_path):
    done("export", shop.model, "--to", "json", "-o", tmp_path / "m.json")
    one = done("predict", shop.model, shop.csv, "--leaf").stdout
    assert done("predict", tmp_path / "m.json", shop.csv, "--leaf").stdout == one


def test_an_option_of_another_target_is_refused(shop, tmp_path):
    done("export", shop.model, "--to", "sql", "--table", "my shop", "-o", tmp_path / "m.sql")
    assert 'FROM "my shop" AS r' in (tmp_path / "m.sql").read_text()
    result = run("export", shop.model, "--to", "json", "--table", "x", "-o", tmp_path / "m.json")
    assert result.exit_code == 1
    assert "takes the options none; got `table`" in result.text


def test_an_export_that_disagrees_is_not_written(shop, tmp_path, monkeypatch):
    monkeypatch.setattr("crisptree.export.sql_statement.number", lambda value: "0.1e0")
    result = run("export", shop.model, "--to", "sql", "-o", tmp_path / "m.sql", "--check", shop.csv)
    assert result.exit_code == 1
    assert "was not written" in result.text
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_c_goes_into_a_source_file_that_compiles_by_itself(shop, tmp_path):
    done("export", shop.model, "--to", "c", "-o", tmp_path / "m.c", "--check", shop.csv)
    subprocess.run(["cc", "-std=c99", "-c", "m.c", "-o", "m.o"], cwd=tmp_path, check=True, timeout=60)
    symbols = subprocess.run(["nm", "m.o"], cwd=tmp_path, check=True, capture_output=True, text=True, timeout=60)
    assert "T m_predict" in symbols.stdout
    assert "-o must end in .h or .c" in run("export", shop.model, "--to", "c", "-o", tmp_path / "m.txt").text
