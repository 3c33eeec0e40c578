"""Batches read datasets of pyarrow, dask, Spark and Ray, and a fit on them is the fit on their rows."""

import numpy as np
import pandas as pd
import pytest

from crisptree import Batches, CrispTreeClassifier, StreamError

QUICK = {"split": "oblique", "max_depth": 1, "l1": 0.0, "input_noise": 0.3, "shrinkage": 1.0, "random_state": 0}
FEW_PASSES = {
    "epochs": 2,
    "finetune_epochs": 1,
    "min_updates": 0,
    "learning_rate": 0.1,
}  # each is a job of Spark or Ray


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=900), "b": rng.integers(0, 9, 900), "weight": rng.random(900)})
    return frame.assign(label=np.where(frame.a + 0.3 * frame.b > 1, "yes", "no"))


def open_pyarrow(frame, folder, request):
    dataset = pytest.importorskip("pyarrow.dataset")
    pytest.importorskip("pyarrow.parquet")
    frame.to_parquet(folder, partition_cols=["b"])
    return dataset.dataset(folder, partitioning="hive")


def open_dask(frame, folder, request):
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=4)


def open_spark(frame, folder, request):
    sql = pytest.importorskip("pyspark.sql")
    session = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    frame.to_parquet(folder / "rows.parquet")
    return session.read.parquet(str(folder / "rows.parquet"))


def open_ray(frame, folder, request):
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, ignore_reinit_error=True, logging_level="error")
    request.addfinalizer(ray.shutdown)
    ray.data.DataContext.get_current().enable_progress_bars = False
    frame.to_parquet(folder / "rows.parquet")
    return ray.data.read_parquet(str(folder / "rows.parquet")).materialize()  # else every pass starts tasks: seconds


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "open_table",
    [open_pyarrow, *(pytest.param(one, marks=pytest.mark.slow) for one in (open_dask, open_spark, open_ray))],
    ids=["pyarrow", "dask", "spark", "ray"],
)
def test_a_dataset_has_the_rows_of_its_table(open_table, frame, tmp_path, request):
    rows = Batches.from_dataset(open_table(frame, tmp_path, request), target="label", weights="weight", at_once=250)
    assert rows.columns == [name for name in rows.columns if name in ("a", "b")]
    for batches in (list(rows.one_pass()), list(rows.one_pass())):
        order = [rows.columns.index(name) for name in ("a", "b")]
        X = np.concatenate([batch.X for batch in batches])[:, order]
        found = pd.DataFrame(X, columns=["a", "b"]).assign(label=np.concatenate([batch.y for batch in batches]))
        expected = frame[["a", "b", "label"]].astype({"a": "float32", "b": "float32"})
        sorted_rows = [one.sort_values(["a", "b"]).reset_index(drop=True) for one in (found, expected)]
        pd.testing.assert_frame_equal(*sorted_rows, check_dtype=False)
    model = CrispTreeClassifier.from_flat(**QUICK, **FEW_PASSES).fit(rows)
    assert model.feature_names_in_.tolist() == rows.columns
    assert model.score(frame[rows.columns], frame.label) > 0.8


def test_datasets_that_cannot_be_read_are_refused(frame):
    dataset, pa = pytest.importorskip("pyarrow.dataset"), pytest.importorskip("pyarrow")
    with pytest.raises(TypeError, match="`data` must be a Dataset of pyarrow or Ray, or a DataFrame of dask or Spark"):
        Batches.from_dataset(frame, target="label")
    table = dataset.dataset(pa.table({"a": ["x", "y"], "label": [0, 1]}))
    with pytest.raises(StreamError, match="the table has no column 'y'; it has a, label"):
        Batches.from_dataset(table, target="y")
    with pytest.raises(StreamError, match="the column 'a' must have numbers to be read in batches"):
        next(Batches.from_dataset(table, target="label").one_pass())
