import json

import joblib
import pytest

from tests.cli.running import QUICK, done, run


@pytest.fixture(scope="module")
def axis_model(shop):
    path = shop.folder / "axis.crisp"
    done("fit", shop.csv, "--target", "buys", "--drop", "id", "-o", path, *QUICK, "--split", "axis")
    return path


def test_an_export_is_compared_with_its_model_and_says_the_number(shop, axis_model, tmp_path):
    answer = done("export", axis_model, "--to", "sklearn", "-o", tmp_path / "m.joblib", "--check", shop.csv)
    assert "160 of 160 rows reach the same leaf, 160 get the same class" in answer.said
    assert joblib.load(tmp_path / "m.joblib").get_depth() == 2
    document = json.loads(
        done(*("export", axis_model, "--to", "sklearn"), "-o", tmp_path / "n.joblib", "--check", shop.csv, "--json").raw
    )
    assert document["agreement"]["equal_leaves"] == document["agreement"]["rows"] == 160


def test_a_model_that_a_target_cannot_hold_is_refused_and_nothing_is_written(shop, tmp_path):
    answer = run("export", shop.model, "--to", "sklearn", "-o", tmp_path / "m.joblib")
    assert answer.code == 1
    assert "cannot hold hyperplanes" in answer.said
    assert not list(tmp_path.iterdir())


def test_wrong_targets_and_endings_are_wrong_use(shop, tmp_path):
    answer = run("export", shop.model, "--to", "cobol", "-o", tmp_path / "m.cob")
    assert answer.code == 2
    assert "--to must be one of" in answer.said
    answer = run("export", shop.model, "--to", "sklearn", "-o", tmp_path / "m.txt")
    assert answer.code == 2
    assert "-o must end in .joblib" in answer.said
