"""Which containers X may be: tables in memory of any library are taken, lazy ones are refused with what to call."""

import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from crisptree import (
    CrispForestClassifier,
    CrispForestRegressor,
    CrispTreeClassifier,
    CrispTreeRegressor,
    TableEncoder,
    explain,
)
from crisptree.exceptions import TableError

QUICK = {"split": "oblique", "max_depth": 1, "epochs": 1, "finetune_epochs": 1, "l1": 0.0, "input_noise": 0.0}
X = np.random.default_rng(0).normal(size=(40, 2))
COLUMNS = {"a": X[:, 0], "b": X[:, 1]}
TABLE = pa.table(COLUMNS)
FRAME = pd.DataFrame(COLUMNS)
Y = (X[:, 0] > 0).astype(np.int64)


class ArrowOnly:
    """A table of any library that offers Arrow's interface alone."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class ArrowWithColumns(ArrowOnly):
    """As frames of narwhals are: ``__array__`` alone would lose the names."""

    columns = ("a", "b")

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("the Arrow stream has names and types, this has not")


def relation():
    connection = duckdb.connect()
    connection.register("rows", TABLE)
    return connection.sql("select * from rows")


TAKEN = {
    "polars": lambda: pl.DataFrame(COLUMNS),
    "RecordBatch": lambda: TABLE.to_batches()[0],
    "duckdb": relation,
    "Arrow only": lambda: ArrowOnly(TABLE),
    "Arrow and columns": lambda: ArrowWithColumns(TABLE),
}


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("kind", [CrispTreeClassifier, CrispTreeRegressor, CrispForestClassifier, CrispForestRegressor])
def test_any_table_in_memory_gives_the_model_of_a_table_of_pyarrow(kind, name):
    given = QUICK if kind in (CrispTreeClassifier, CrispTreeRegressor) else QUICK | {"n_estimators": 2}
    model = kind.from_flat(**given, random_state=0).fit(TAKEN[name](), Y)
    twin = kind.from_flat(**given, random_state=0).fit(TABLE, Y)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert np.array_equal(model.predict(TAKEN[name]()), twin.predict(TABLE))


@pytest.mark.parametrize("name", TAKEN)
def test_a_model_of_a_frame_takes_any_table_in_memory(name):
    model = CrispTreeClassifier.from_flat(**QUICK, random_state=0).fit(FRAME, Y)
    assert not hasattr(model, "encoder_")
    expected = model.predict(FRAME)
    assert np.array_equal(model.predict(TAKEN[name]()), expected)
    assert model.score(TAKEN[name](), Y) == model.score(FRAME, Y)
    answers = [explain.attribute_errors(model, rows, Y) for rows in (TAKEN[name](), FRAME)]
    assert str(answers[0]) == str(answers[1])
    students = [
        CrispTreeClassifier.from_flat(**QUICK, random_state=0).distill(model, rows, copies=0)
        for rows in (FRAME, TAKEN[name]())
    ]
    assert np.array_equal(students[0].predict(FRAME), students[1].predict(FRAME))


@pytest.mark.parametrize("name", TAKEN)
def test_the_table_encoder_takes_any_table_in_memory(name):
    encoder = TableEncoder().fit(TAKEN[name]())
    assert np.array_equal(encoder.transform(TAKEN[name]()), TableEncoder().fit(TABLE).transform(TABLE))


def named(module, name):
    """Give a stand-in the name of the class that it stands in for."""

    def rename(cls):
        cls.__module__, cls.__name__ = module, name
        return cls

    return rename


@named("dask.dataframe.dask_expr._collection", "DataFrame")
class DaskFrame:
    """What a DataFrame of dask offers of pandas' interface."""

    columns, dtypes, shape = FRAME.columns, FRAME.dtypes, (float("nan"), 2)
    iloc = property(lambda self: self)

    def __dask_graph__(self):
        return {}

    def __getitem__(self, key):
        raise NotImplementedError("'DataFrame.iloc' only supports selecting columns.")

    def __array__(self, dtype=None, copy=None):
        return X

    def __dataframe__(self, nan_as_null=False, allow_copy=True):
        raise NotImplementedError

    def __len__(self):
        return len(X)

    def compute(self):
        return FRAME


@named("datasets.arrow_dataset", "Dataset")
class HuggingFaceDataset:
    """What a Dataset of Hugging Face offers of pyarrow's interface."""

    column_names, num_rows, shape = ["a", "b"], len(X), X.shape

    def __len__(self):
        return len(X)

    def __getitem__(self, key):
        return FRAME.iloc[key].to_dict()

    def to_pandas(self):
        return FRAME


def dataset(folder):
    pyarrow.parquet.write_table(TABLE, folder / "rows.parquet")
    return pyarrow.dataset.dataset(folder / "rows.parquet")


REFUSED = {
    r"got a LazyFrame of polars. Call its collect\(\) first": lambda folder: pl.LazyFrame(COLUMNS),
    r"got a FileSystemDataset of pyarrow. Call its to_table\(\) first": dataset,
    r"got a Scanner of pyarrow. Call its to_table\(\) first": lambda folder: dataset(folder).scanner(),
    r"got a DuckDBPyConnection of _duckdb. Call its to_arrow_table\(\) first": lambda folder: duckdb.connect(),
    r"got a DataFrame of dask. Call its compute\(\) first": lambda folder: DaskFrame(),
    r"got a Dataset of datasets. Call its to_pandas\(\) first": lambda folder: HuggingFaceDataset(),
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_lazy_container_is_refused_with_what_to_call(message, tmp_path):
    lazy = REFUSED[message](tmp_path)
    numbers = CrispTreeClassifier.from_flat(**QUICK, random_state=0).fit(FRAME, Y)
    encoded = CrispTreeClassifier.from_flat(**QUICK, random_state=0).fit(TABLE, Y)
    forest = CrispForestClassifier.from_flat(**QUICK, n_estimators=2, random_state=0)
    for call in (
        lambda: CrispTreeClassifier().fit(lazy, Y),
        lambda: CrispTreeClassifier().partial_fit(lazy, Y, classes=[0, 1]),
        lambda: CrispTreeRegressor().fit(lazy, Y),
        lambda: forest.fit(lazy, Y),
        lambda: CrispTreeClassifier().distill(numbers, lazy),
        lambda: numbers.predict(lazy),
        lambda: encoded.predict(lazy),
        lambda: explain.attribute_errors(numbers, lazy, Y),
        lambda: TableEncoder().fit(lazy),
        lambda: encoded.encoder_.transform(lazy),
    ):
        with pytest.raises(TableError, match=message):
            call()


@pytest.mark.parametrize("kind", [CrispTreeClassifier, CrispTreeRegressor])
def test_a_lazy_y_is_refused_with_what_to_call(kind):
    with pytest.raises(TableError, match=r"y must be a table in memory; got a LazyFrame of polars. Call its collect"):
        kind().fit(X, pl.LazyFrame({"y": Y}))


def test_an_object_that_is_no_container_is_refused():
    with pytest.raises(TypeError, match=r"X must be an array, a list, .* or a table; got a GroupBy of polars"):
        CrispTreeClassifier().fit(pl.DataFrame(COLUMNS).group_by("a"), Y)


def test_without_pyarrow_a_foreign_table_is_refused_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"got a ArrowOnly of tests.*pip install 'crisptree\[tables\]'"):
        CrispTreeClassifier().fit(ArrowOnly(TABLE), Y)
