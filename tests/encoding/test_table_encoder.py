"""The command line's preprocessing as a transformer of tables in memory, whoever made them."""

import os
import pickle
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from crisptree import CrispTreeWarning, TableEncoder
from crisptree.encoding import containers
from crisptree.encoding.preprocessing import ColumnOptions, profile_table
from crisptree.encoding.table_encoder import RowEncoder
from crisptree.encoding.table_files import open_table
from crisptree.estimators.loading import preprocessing_to_section
from crisptree.exceptions import TableError
from tests.encoding.writers import customers, write

FEATURES = ["age", "age is missing", "income", *(f"color={c}" for c in ("blue green", "grün", "rot"))]
FEATURES += ["color is missing", "member"]


def shop(n=60):
    return customers(n).drop(["buys"])


def as_objects(table):
    return np.array([list(row.values()) for row in table.to_pylist()], dtype=object)


FORMS = {
    "pandas": lambda table: table.to_pandas(),
    "pandas, objects": lambda table: table.to_pandas().astype({"color": object}),
    "pandas, categories": lambda table: table.to_pandas().astype({"color": "category", "age": "Float64"}),
    "pandas, Arrow's types": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda table: pytest.importorskip("polars").from_arrow(table),
    "pyarrow": lambda table: table,
    "a dictionary of lists": lambda table: table.to_pydict(),
    "a dictionary of arrays": lambda table: {name: table[name].to_numpy() for name in table.column_names},
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_no_check_of_scikit_learn_fails():
    results = check_estimator(TableEncoder(), on_fail=None, on_skip=None)
    assert len(results) > 40
    assert not {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}


@pytest.mark.parametrize("form", FORMS)
def test_a_table_gives_the_rows_of_the_command_line_of_any_library(form, tmp_path):
    table = shop()
    source = open_table(write(table, tmp_path / "t.csv"))
    preprocessing = profile_table(source, list(source.names), ColumnOptions())
    encoder = TableEncoder(keep_constant=False).fit(FORMS[form](table))
    ours, theirs = map(preprocessing_to_section, (encoder.preprocessing_, preprocessing))
    assert ours.content == theirs.content
    assert ours.arrays["mean"].tobytes() == theirs.arrays["mean"].tobytes()
    assert encoder.notes_ == list(preprocessing.notes)
    rows = RowEncoder(preprocessing, source).encode_all()
    assert np.array_equal(encoder.transform(FORMS[form](table)), rows)
    for other in ("pyarrow", "pandas, objects"):
        assert np.array_equal(encoder.transform(FORMS[other](table)), rows)
    assert encoder.get_feature_names_out().tolist() == FEATURES


def test_an_array_of_objects_is_a_table_whose_columns_have_no_names():
    table = shop()
    encoder = TableEncoder().fit(as_objects(table))
    assert encoder.get_feature_names_out().tolist()[:4] == ["x0", "x0 is missing", "x1", "x2=blue green"]
    assert encoder.get_feature_names_out(table.column_names).tolist() == FEATURES
    assert np.array_equal(encoder.transform(as_objects(table)), TableEncoder().fit(table).transform(table))
    assert TableEncoder(categorical=[1], drop=[0]).fit([[1, 2], [3, 4]]).get_feature_names_out().tolist() == [
        "x1=2",
        "x1=4",
    ]


def test_every_type_of_pandas_is_understood():
    frame = pd.DataFrame(
        {
            "integers": pd.array([1, None, 3], dtype="Int64"),
            "flags": pd.array([True, None, False], dtype="boolean"),
            "texts": pd.array(["a ", None, "b"], dtype="string"),
            "coded": pd.Categorical([2, 1, 2], categories=[1, 2, 3]),
            "decimals": [Decimal("1.5"), None, Decimal(2)],
            "objects": [True, False, None],
            "mixed": ["a", "b", 2.0],
        }
    )
    encoder = TableEncoder().fit(frame)
    kinds = {column.name: (column.kind, column.categories) for column in encoder.preprocessing_.columns}
    assert kinds == {
        "integers": ("number", ()),
        "flags": ("boolean", ()),
        "texts": ("category", ("a", "b")),
        "coded": ("category", ("1", "2")),
        "decimals": ("number", ()),
        "objects": ("boolean", ()),
        "mixed": ("category", ("2", "a", "b")),
    }
    assert encoder.transform(frame)[1, :4].tolist() == [2.0, 1.0, 0.5, 1.0]


def test_pieces_give_what_the_whole_table_gives(monkeypatch):
    table = shop(100).to_pandas()
    whole = TableEncoder().fit(table)
    encoder = TableEncoder()
    for start in range(0, 100, 30):
        encoder.partial_fit(table[start : start + 30])
    assert encoder.preprocessing_.feature_names == whole.preprocessing_.feature_names
    assert np.allclose(encoder.transform(table), whole.transform(table))
    monkeypatch.setattr(containers, "MIN_ROWS_PER_BATCH", 7)
    monkeypatch.setattr(containers, "MAX_ROWS_PER_BATCH", 7)
    assert np.array_equal(whole.transform(table), encoder.fit(table).transform(table))


def test_what_looks_like_an_id_in_one_piece_is_judged_when_all_are_seen():
    words = [f"w{number}" for number in range(30)]
    encoder = TableEncoder().partial_fit({"a": words})
    with pytest.raises(TableError, match="hardly any value twice"):
        encoder.transform({"a": words})
    assert encoder.partial_fit({"a": words}).transform({"a": ["w7"]}).sum() == 1
    with pytest.raises(TableError, match="the columns of the batches before, 'a'; it has 'b'"):
        encoder.partial_fit({"b": words})


def test_all_columns_that_cannot_be_used_are_named_at_once_each_with_its_remedy():
    days = pd.date_range("2020-01-01", periods=30)
    frame = pd.DataFrame(
        {
            "id": [f"r{row}" for row in range(30)],
            "day": days,
            "zoned": days.tz_localize("UTC"),
            "span": days - days[0],
            "month": days.to_period("M"),
            "written": days.strftime("%Y-%m-%d"),
            "lists": [[1]] * 30,
            "huge": [1e300] * 30,
            "fine": np.arange(30.0),
        }
    )
    with pytest.raises(TableError) as error:
        TableEncoder().fit(frame)
    lines = str(error.value).splitlines()
    assert lines[0] == "X has 8 columns that cannot be used as they are:"
    assert [line.split("'")[1] for line in lines[1:]] == list(frame.columns[:-1])
    assert lines[1].endswith("hardly any value twice, such as 'r0', 'r1', 'r2'. Leave it out with `drop=['id']`.")
    assert all("holds dates" in line and "a weekday" in line for line in lines[2:7])
    assert "it holds values of type list" in lines[7]
    assert "row 0 has 1e+300" in lines[8]
    kept = TableEncoder(drop=frame.columns[:-1]).fit(frame)
    assert kept.get_feature_names_out().tolist() == ["fine"]
    assert kept.n_features_in_ == 9


def test_values_missing_only_at_prediction_are_filled_or_named_by_column_and_row():
    table = {"a": [1.0, 2.0, np.nan], "b": [1, 2, 3], "c": ["x", "y", "x"]}
    with pytest.warns(CrispTreeWarning, match="columns 'b', 'c': 2 missing values, none in training") as caught:
        assert TableEncoder().fit(table).transform({"a": [1], "b": [None], "c": [""]}).tolist() == [[1, 0, 2, 0, 0]]
    assert len(caught) == 1
    encoder = TableEncoder(handle_missing="error").fit(table)
    assert encoder.transform({"a": [None], "b": [1], "c": ["x"]}).tolist() == [[1.5, 1, 1, 1, 0]]
    with pytest.raises(TableError, match=r"X: column 'b' must have a value in every row.*row 1 has none"):
        encoder.transform({"a": [1, 1], "b": [1, None], "c": ["x", "x"]})
    with pytest.raises(TableError, match=r"X: column 'c' must have a value in every row.*row 0 has none"):
        encoder.transform({"a": [1], "b": [1], "c": [""]})
    with pytest.raises(TableError, match=r"X: column 'b' must hold finite numbers .*row 0 does not"):
        encoder.transform({"a": [1], "b": [np.inf], "c": ["x"]})
    with pytest.raises(TableError, match=r"X: column 'b' must hold numbers, as in training; row 0 has 'q'"):
        encoder.transform({"a": [1], "b": ["q"], "c": ["x"]})


def test_a_category_unseen_in_training_warns_and_counts_as_nothing():
    encoder = TableEncoder().fit({"c": ["x", "y", "x"]})
    with pytest.warns(CrispTreeWarning, match=r"X: column 'c': 2 values that training did not know \('z'\)"):
        assert encoder.transform({"c": ["z", "x", "z"]}).tolist() == [[0, 0], [1, 0], [0, 0]]


def test_columns_are_found_by_name_in_any_order_and_others_are_ignored():
    table = shop()
    encoder = TableEncoder().fit(table.to_pandas())
    mixed = table.to_pandas().assign(more="?")[["more", "member", "color", "income", "age"]]
    assert np.array_equal(encoder.transform(mixed), encoder.transform(table))
    with pytest.raises(TableError, match=r"it has no 'color'. Did you mean 'Color'?"):
        encoder.transform(mixed.rename(columns={"color": "Color"}))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        assert np.array_equal(encoder.transform(as_objects(table)), encoder.transform(table))
    with pytest.raises(ValueError, match="X has 3 features, but TableEncoder is expecting 4 features"):
        encoder.transform(as_objects(table)[:, :3])


def test_the_inverse_is_the_table():
    table = shop()
    encoder = TableEncoder().fit(table)
    back = encoder.inverse_transform(encoder.transform(table))
    assert np.allclose(back["age"], table["age"].to_pandas(), equal_nan=True)
    assert back["color"].tolist() == table["color"].to_pylist()
    assert back["member"].tolist() == table["member"].to_pylist()
    X = np.array([[1.0, np.nan], [2.0, 3.0]])
    assert np.array_equal(
        TableEncoder().fit(X).inverse_transform(TableEncoder().fit(X).transform(X)), X, equal_nan=True
    )
    with pytest.raises(ValueError, match="rows of 8 features; got the shape"):
        encoder.inverse_transform(X)


def test_it_is_cloned_pickled_and_gives_frames_on_demand():
    table = shop().to_pandas()
    encoder = clone(TableEncoder(missing=["?"], drop=["income"])).fit(table)
    again = pickle.loads(pickle.dumps(encoder))
    assert np.array_equal(again.transform(table), encoder.transform(table))
    frame = encoder.set_output(transform="pandas").transform(table)
    assert frame.columns.tolist() == [name for name in FEATURES if name != "income"]
    assert encoder.encode_rows(table).dtype == np.float32


@pytest.mark.parametrize(
    ("parameters", "X", "error", "message"),
    [
        ({"drop": ["colour"]}, {"color": ["a", "b"]}, ValueError, "there is no 'colour' among 'color'. Did you mean"),
        ({"drop": "a"}, {"a": [1]}, TypeError, r"`drop` must be a list of columns; got the text 'a'. Say \['a'\]"),
        ({}, {"a": [1, 2], "b": [1]}, ValueError, "columns of one length; 'a' has 2, 'b' has 1"),
        ({}, {"a": 1}, ValueError, "must hold a column of values under every name"),
        ({}, pd.DataFrame([[1, 2]], columns=["a", 1]), TypeError, "must all be text, or none"),
        ({}, pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "two columns named 'a'"),
        ({}, pd.DataFrame({"a": []}), ValueError, "0 sample"),
        ({}, {"a": np.ones((2, 2))}, ValueError, r"column 'a' must have one value in every row"),
    ],
)
def test_wrong_tables_are_refused_with_the_reason(parameters, X, error, message):
    with pytest.raises(error, match=message):
        TableEncoder(**parameters).fit(X)


def test_a_lazy_frame_must_be_collected():
    polars = pytest.importorskip("polars")
    with pytest.raises(TableError, match=r"got a LazyFrame of polars. Call its collect\(\) first"):
        TableEncoder().fit(polars.LazyFrame({"a": [1]}))


def test_pandas_and_polars_are_enough_without_pyarrow(tmp_path):
    (tmp_path / "pyarrow.py").write_text("raise ModuleNotFoundError('no pyarrow', name='pyarrow')")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    code = """
import pandas, polars
from crisptree import TableEncoder
table = {"a": [1, None, 3], "c": ["x", "y", None], "d": [True, False, True]}
rows = [TableEncoder().fit(X).transform(X) for X in (table, pandas.DataFrame(table), polars.DataFrame(table))]
print((rows[0] == rows[1]).all(), (rows[0] == rows[2]).all(), rows[0].shape)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert result.stdout == "True True (3, 6)\n", result.stderr


def test_arrow_columns_in_several_chunks_are_one_column():
    chunked = pa.chunked_array([["a", "b"], ["a", None]])
    assert TableEncoder().fit(pa.table({"c": chunked})).get_feature_names_out().tolist() == [
        "c=a",
        "c=b",
        "c is missing",
    ]


@pytest.mark.parametrize("unit", ["D", "s", "us", "ns"])
def test_dates_of_every_unit_are_refused_as_categories_and_unknown_to_a_category(unit):
    dates = np.arange("2020-01-01", "2020-01-04", dtype="datetime64[D]").astype(f"datetime64[{unit}]")
    for table in ({"a": dates}, pd.DataFrame({"a": dates})):
        with pytest.raises(TableError, match="column 'a' holds dates"):
            TableEncoder(categorical=["a"]).fit(table)
        with pytest.warns(CrispTreeWarning, match="3 values that training did not know"):
            assert not TableEncoder().fit({"a": ["x", "y", "x"]}).transform(table).any()
