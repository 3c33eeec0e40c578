import re
import sqlite3
from functools import cache, partial
from types import SimpleNamespace

import numpy as np
import pytest

from crisptree import CrispTreeWarning, export
from crisptree.export import ExportError, Portable
from crisptree.export.formats import compare, encode_rows
from crisptree.export.sql_statement import MAX_LEVELS, ROW, fill_table, read_predictions
from crisptree.structure import TreeStructure
from tests.export.models import HOSTILE, HOSTILE_COLUMNS, numbers, of_table, rough_rows, thresholds
from tests.inspection.models import written


def axis_table(**changes):
    return of_table(split="axis", grow="cart", finetune_epochs=0, max_depth=6, **changes)


def a_deep_tree():
    """A chain of 25 thresholds, every left child a leaf."""
    depth = 25
    structure = TreeStructure([~k for k in range(depth)], [*range(1, depth), ~depth])
    X = np.random.default_rng(0).uniform(0, depth + 1, (400, 2)).astype(np.float32)
    model = written(
        structure, [[1.0, 0.0]] * depth, [-k - 0.5 for k in range(depth)], [k % 3 for k in range(depth + 1)]
    )
    return model, X


MODELS = {
    "hyperplanes": numbers,
    "many features": lambda: numbers(n=200, n_features=333, n_classes=3),
    "few of them used": lambda: numbers(n=200, n_features=100, n_classes=3, max_features_per_split=5),
    "thresholds": thresholds,
    "a table": of_table,
    "a table by thresholds": axis_table,
    "hostile names": lambda: of_table(names=HOSTILE[:4], levels=HOSTILE[1:4], labels=HOSTILE[:2]),
    "more of them": lambda: axis_table(names=HOSTILE_COLUMNS[4:8], levels=HOSTILE[1:4], labels=HOSTILE[3:5]),
    "categories that are numbers": lambda: of_table(levels=("1", "20", "-3")),
    "a single leaf": lambda: numbers(n=60, max_depth=0),
    "a deep tree": a_deep_tree,
}
EXACT = ("thresholds", "a single leaf", "a deep tree", "a table by thresholds", "more of them")


@cache
def made(kind):
    """A model and rows for it: those of its training, and rough ones."""
    model, X = MODELS[kind]()
    return model, X if isinstance(X, dict) else np.vstack([X, rough_rows(model, min(1000, 100_000 // X.shape[1]))])


@pytest.mark.parametrize("kind", MODELS)
def test_sqlite_reaches_the_same_leaf_or_the_row_lies_within_rounding_of_a_boundary(kind):
    model, X = made(kind)
    agreement = export.check(model, X, "sql")
    assert agreement.holds
    assert agreement.rows - agreement.equal_leaves <= agreement.near
    assert agreement.largest_difference == 0
    if kind in EXACT:
        assert agreement.equal_leaves == agreement.equal_classes == agreement.rows


@pytest.mark.parametrize("kind", MODELS)
def test_duckdb_reaches_the_same_leaf_or_the_row_lies_within_rounding_of_a_boundary(kind):
    duckdb = pytest.importorskip("duckdb")
    model, X = made(kind)
    rows, portable = encode_rows(model, X), Portable.of(model)
    if HOSTILE_COLUMNS[8] in rows.columns:
        pytest.skip("a column needs a name there")
    with duckdb.connect() as database:
        by_column = SimpleNamespace(execute=database.execute, executemany=partial(insert_columns, database))
        fill_table(by_column, portable, rows)
        found = read_predictions(portable, database.execute(f"{export.sql(model)} ORDER BY r.{ROW}"), "DuckDB")
    agreement = compare(model, rows.X, found, "sql")
    assert agreement.holds
    assert agreement.largest_difference == 0
    if kind in EXACT:
        assert agreement.equal_leaves == agreement.equal_classes == agreement.rows


def insert_columns(database, text, values):
    """DuckDB inserts row by row too slowly: the same through a table of Arrow's."""
    import pyarrow as pa

    given = pa.table(
        [pa.array(column) for column in zip(*values, strict=True)], [f"c{k}" for k in range(len(values[0]))]
    )
    database.register("given", given)
    database.execute(re.sub(r"VALUES \(.*\)$", "SELECT * FROM given", text))


def test_thresholds_read_as_conditions_on_columns():
    model, _ = axis_table()
    text = export.sql(model, table="my shop")
    assert re.search(r'CASE WHEN \(?r\."income" >=? [\d.]+(e0)?', text)
    assert 'FROM "my shop" AS r' in text
    assert "VALUES (0, '" in text


@pytest.mark.parametrize("categorical_features", ["auto", None])
def test_a_missing_number_is_filled_with_the_mean_or_has_no_leaf_in_a_strict_model(categorical_features):
    model, X = thresholds()
    model.set_params(categorical_features=categorical_features)
    database = sqlite3.connect(":memory:")
    portable, rows = Portable.of(model), encode_rows(model, X[:3])
    asked = {int(np.flatnonzero(weight)[0]) for weight in model.tree_.weight}
    for column in portable.inputs:
        rows.columns[column.name][1] = None if column.feature in asked else rows.columns[column.name][1]
    fill_table(database, portable, rows)
    found = read_predictions(portable, database.execute(f"{export.sql(model)} ORDER BY r.{ROW}"), "")
    middle = -1
    if categorical_features == "auto":
        broken = X[1:2].copy()
        broken[0, sorted(asked)] = np.nan
        with pytest.warns(CrispTreeWarning, match="none in training"):
            middle = model.leaf_indices(broken)[0]
    assert found.leaves.ravel().tolist() == [model.leaf_indices(X[:1])[0], middle, model.leaf_indices(X[2:3])[0]]
    assert (found.classes[1] == -1) == (middle == -1)
    database.close()


def test_texts_that_mean_a_missing_value_count_as_missing():
    model, columns = of_table()
    changed = {name: list(values) for name, values in columns.items()}
    changed["plan"] = ["nan" if value is None else value for value in changed["plan"]]
    portable, rows = Portable.of(model), encode_rows(model, columns)
    database = sqlite3.connect(":memory:")
    fill_table(database, portable, type(rows)(rows.X, changed))
    found = read_predictions(portable, database.execute(f"{export.sql(model)} ORDER BY r.{ROW}"), "")
    np.testing.assert_array_equal(found.leaves.ravel(), model.leaf_indices(columns))
    database.close()


def test_labels_keep_their_types():
    for labels in ([3, 1, 7, 5], [1.0, 2.0, 4.0, 8.0], HOSTILE[:4]):
        model, X = thresholds(n=80, labels=labels)
        assert export.check(model, X, "sql").equal_classes == 80


def test_names_that_a_database_cannot_store_are_rejected():
    model, _ = of_table(n=80, names=("age", "Age", "plan", "member"))
    with pytest.raises(ExportError, match="must differ in more than upper and lower case; got 'age' and 'Age'"):
        export.sql(model)
    model, _ = of_table(n=80, names=("a\x00", "b", "plan", "member"))
    with pytest.raises(ValueError, match="has a null or half a character"):
        export.sql(model)
    with pytest.raises(ExportError, match="`table` must be the name of a table"):
        export.sql(of_table(n=80)[0], table="")


def test_a_deep_tree_is_written_in_steps():
    model, _ = a_deep_tree()
    text = export.sql(model)
    assert model.get_depth() > 2 * MAX_LEVELS
    assert text.count(" AS (") == 4  # the answers and three steps


def test_a_statement_with_too_many_weights_is_rejected_with_a_remedy():
    depth, n_features = 5, 784
    structure = TreeStructure.balanced(depth)
    model = written(structure, np.ones((structure.n_splits, n_features)), [0.0] * 31, [k % 3 for k in range(32)])
    with pytest.raises(ExportError, match=r"at most 15,000 weights.*has 24,304.*max_features_per_split=483"):
        export.sql(model)
