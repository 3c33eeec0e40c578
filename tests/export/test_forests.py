import functools
import shutil

import numpy as np
import pytest

import crisptree
from crisptree import CrispForestClassifier, export
from crisptree.export import ExportError, Portable
from crisptree.export.formats import compare, encode_rows
from crisptree.export.sql_statement import ROW, fill_table, read_predictions
from tests.export.models import HOSTILE, QUICK, table
from tests.toys import clouds

PLAIN = {"split": "oblique", "algorithm": "em", "l1": 0.0, "input_noise": 0.0}


@functools.cache
def forest(n_estimators=3, **changes):
    """(forest, rows)"""
    X, y = clouds(300, n_features=40, n_classes=4)
    y = np.array(HOSTILE[:4])[y]
    return CrispForestClassifier.from_flat(n_estimators=n_estimators, **PLAIN | QUICK | {"max_depth": 3} | changes).fit(
        X, y
    ), X


@functools.cache
def forest_of_a_table():
    columns, y = table()
    model = CrispForestClassifier.from_flat(n_estimators=3, **PLAIN | QUICK | {"max_depth": 3})
    return model.fit(columns, y), columns


MODELS = {"rows of numbers": forest, "a table": forest_of_a_table}


@pytest.mark.parametrize("kind", MODELS)
def test_a_portable_forest_has_all_trees(kind):
    model, _ = MODELS[kind]()
    portable = Portable.of(model)
    assert len(portable.trees) == 3
    assert "forest" in portable.uses
    for tree, ours in zip(portable.trees, model.forest_.trees, strict=True):
        np.testing.assert_array_equal(tree.weight, ours.weight)


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
@pytest.mark.parametrize("kind", MODELS)
def test_node_reaches_the_same_leaf_in_every_tree(kind):
    model, X = MODELS[kind]()
    agreement = export.check(model, X, "js")
    assert agreement.equal_leaves == agreement.equal_classes == agreement.rows
    assert agreement.largest_difference == 0


@pytest.mark.parametrize("kind", MODELS)
def test_sqlite_predicts_the_mean_of_all_trees(kind):
    model, X = MODELS[kind]()
    agreement = export.check(model, X, "sql")
    assert agreement.holds
    assert agreement.rows - agreement.equal_leaves <= agreement.near
    assert agreement.equal_classes >= agreement.equal_leaves


def test_duckdb_predicts_the_mean_of_all_trees():
    duckdb = pytest.importorskip("duckdb")
    model, columns = forest_of_a_table()
    rows, portable = encode_rows(model, columns), Portable.of(model)
    with duckdb.connect() as database:
        fill_table(database, portable, rows)
        found = read_predictions(portable, database.execute(f"{export.sql(model)} ORDER BY r.{ROW}"), "DuckDB")
    assert compare(model, rows.X, found, "sql").holds


def test_a_forest_of_thresholds_is_a_random_forest_of_scikit_learn():
    model, X = forest(split="axis", grow="cart", finetune_epochs=0)
    fitted = export.sklearn_forest(model)
    np.testing.assert_array_equal(fitted.predict(X), model.predict(X))
    np.testing.assert_array_equal(fitted.predict_proba(X), model.predict_proba(X))
    found = export.check(model, X, "sklearn")
    assert (found.equal_leaves, found.holds) == (300, True)
    with pytest.raises(ExportError, match=r"is one tree; this forest has 3\..*sklearn_forest.*forest\.tree\(0\)"):
        export.sklearn_tree(model)
    assert export.check(model.tree(1), X, "sklearn", form="tree").equal_leaves == 300


C_AND_ONNX = [("c", {}), ("c", {"integer": "int16"}), ("onnx", {}), ("onnx", {"form": "paths"})]


@pytest.mark.parametrize(("to", "options"), C_AND_ONNX, ids=str)
def test_c_and_onnx_reach_the_same_leaves_and_give_the_same_class(to, options):
    if to == "onnx":
        pytest.importorskip("onnxruntime")
    elif not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    model, X = forest()
    found = export.check(model, X, to, **options)
    assert found.holds
    assert found.equal_classes >= found.rows - found.near - (1 if options.get("integer") else 0)
    assert found.largest_difference <= (0 if to == "c" and not options else 5e-5)


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_c_encodes_the_table_of_a_forest_too():
    model, columns = forest_of_a_table()
    found = export.check(model, columns, "c")
    assert found.equal_leaves == found.equal_classes == found.rows


def test_the_ranges_of_a_forest_are_those_of_all_its_trees():
    model, _ = forest()
    lowest = [tree.statistics.lowest for tree in model.forest_]
    np.testing.assert_array_equal(Portable.of(model).ranges.lowest, np.min(lowest, axis=0))


def test_a_json_document_of_a_forest_round_trips_bit_for_bit(tmp_path):
    model, columns = forest_of_a_table()
    assert export.check(model, columns, "json").equal_leaves == 400
    (tmp_path / "m.json").write_text(export.json(model), encoding="utf-8")
    crisptree.load(tmp_path / "m.json").save(tmp_path / "two.crisp")
    model.save(tmp_path / "one.crisp")
    crisptree.load(tmp_path / "one.crisp").save(tmp_path / "one.crisp")
    assert (tmp_path / "one.crisp").read_bytes() == (tmp_path / "two.crisp").read_bytes()
