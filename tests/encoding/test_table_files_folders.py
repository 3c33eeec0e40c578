"""Folders of Parquet files as one table."""

import pyarrow
import pyarrow.parquet
import pytest

from crisptree.encoding.preprocessing import ColumnOptions, profile_table
from crisptree.encoding.table_encoder import RowEncoder
from crisptree.encoding.table_files import open_table
from crisptree.exceptions import TableError


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def test_hidden_folders_are_not_read(tmp_path):
    write(tmp_path / "a.parquet", x=[1.0, 2.0], y=["u", "v"])
    write(tmp_path / "_temporary" / "0" / "a.parquet", x=[1.0, 2.0], y=["u", "v"])
    assert sum(len(part) for part in open_table(tmp_path).raw_batches(["x"])) == 2


def test_columns_may_be_empty_or_whole_in_one_file(tmp_path):
    write(tmp_path / "a.parquet", k=[1, 2], note=pyarrow.nulls(2))
    write(tmp_path / "b.parquet", k=[1.5, 2.5], note=["x", "y"])
    batches = [part.to_pydict() for part in open_table(tmp_path).raw_batches(["k", "note"])]
    assert [value for part in batches for value in part["k"]] == [1.0, 2.0, 1.5, 2.5]
    assert [value for part in batches for value in part["note"]] == [None, None, "x", "y"]


def test_text_and_numbers_in_one_column_are_refused(tmp_path):
    write(tmp_path / "a.parquet", k=[1, 2])
    write(tmp_path / "b.parquet", k=["x", "y"])
    with pytest.raises(TableError, match="must have the same types in all files"):
        open_table(tmp_path)


def test_keys_of_folders_mean_the_same_whichever_folders_there_are(tmp_path):
    for region, year in (("01", 2023), ("02", 2024), ("north", 2024)):
        write(tmp_path / "all" / f"region={region}" / f"year={year}" / "a.parquet", x=[1.0, 2.0])
    write(tmp_path / "some" / "region=02" / "year=2024" / "a.parquet", x=[3.0])
    table = open_table(tmp_path / "all")
    preprocessing = profile_table(table, list(table.names), ColumnOptions())
    assert preprocessing.feature_names == ("x", "region=01", "region=02", "region=north", "year")
    assert RowEncoder(preprocessing, open_table(tmp_path / "some")).encode_all().tolist() == [[3.0, 0, 1, 0, 2024]]


def test_padded_keys_of_folders_are_names(tmp_path):
    for region in ("01", "02"):
        write(tmp_path / f"region={region}" / "a.parquet", x=[1.0, 2.0])
    table = open_table(tmp_path)
    assert profile_table(table, list(table.names), ColumnOptions()).feature_names == ("x", "region=01", "region=02")
