import json

import numpy as np
import pytest

import crisptree
from tests.cli.running import QUICK, done
from tests.toys import clouds, plain_tree


def test_inspection_tells_what_the_file_holds(shop):
    said = json.loads(done("inspect", shop.model, "--json").raw)
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
    people = done("inspect", shop.model).said
    for words in ("format 1", "max_depth=2", "share of the gain", "own feature", "left out: 'id' (dropped)"):
        assert words in people


def test_models_without_preprocessing_and_with_modules_are_inspected(tmp_path):
    X, y = clouds(40, n_features=256, n_classes=2)
    model = plain_tree(split="conv", image_shape=(16, 16), max_depth=1, epochs=1, finetune_epochs=0, min_updates=0)
    model.fit(X, y).save(tmp_path / "m.crisp")
    answer = done("inspect", tmp_path / "m.crisp")
    assert "(modules)" in answer.said
    assert "images of 16 × 16" in answer.said
    assert "No preprocessing" in answer.said
    np.savez(tmp_path / "t.npz", X=X.reshape(40, 16, 16))
    lines = done("predict", tmp_path / "m.crisp", tmp_path / "t.npz", "--explain").raw.splitlines()
    assert [int(line.split(",")[0]) for line in lines[1:]] == model.predict(X).tolist()


def test_a_table_of_many_columns_is_inspected_in_short(tmp_path):
    X, y = clouds(40, n_features=40)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    done("fit", tmp_path / "t.npz", "-o", tmp_path / "m.crisp", *QUICK)
    assert "and 10 more columns; --json has all" in done("inspect", tmp_path / "m.crisp").said
