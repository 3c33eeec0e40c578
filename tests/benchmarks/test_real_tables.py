"""The reader of real tables, on small files."""

from zipfile import ZipFile

import numpy as np
import pytest
from benchmarks.real_tables import Table, find_source, infer_task, read_tables, split_rows

X = np.arange(24, dtype=np.int8).reshape(12, 2)
LABELS = np.arange(12, dtype=np.int16) % 3
COLUMNS = np.array(["first", "second"])


def write_npz(path, y=LABELS):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, X=X, y=y, columns=COLUMNS)
    return path


@pytest.fixture
def archive(tmp_path):
    """A zip file with a table of each task, and a file that is no table."""
    folder = tmp_path / "unpacked"
    write_npz(folder / "classification" / "a.npz")
    write_npz(folder / "regression" / "b.npz")
    (folder / "README.md").write_text("Two tables.")
    with ZipFile(tmp_path / "tables.zip", "w") as file:
        for path in sorted(folder.rglob("*.*")):
            file.write(path, path.relative_to(folder).as_posix())
    return tmp_path / "tables.zip"


def test_tables_of_a_zip_file_have_the_task_of_their_folder(archive):
    a, b = read_tables(archive)
    assert (a.name, a.task, a.columns) == ("a", "classification", ("first", "second"))
    assert (b.name, b.task) == ("b", "regression")
    np.testing.assert_array_equal(a.X, X)
    np.testing.assert_array_equal(a.y, LABELS)
    assert (a.X.dtype, a.y.dtype, b.y.dtype) == (np.float64, np.int16, np.float64)


def test_a_folder_gives_the_same_tables_as_the_zip_file_of_it(archive):
    for one, other in zip(read_tables(archive), read_tables(archive.parent / "unpacked"), strict=True):
        assert (one.name, one.task) == (other.name, other.task)
        np.testing.assert_array_equal(one.X, other.X)


def test_only_the_named_tables_are_read_and_unknown_names_are_refused(archive):
    assert [table.name for table in read_tables(archive, ["b"])] == ["b"]
    with pytest.raises(ValueError, match=r"no tables \['c'\]; it has \['a', 'b'\]"):
        list(read_tables(archive, ["a", "c"]))


def test_the_default_source_is_tables_zip_in_the_data_folder(archive, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CRISPTREE_DATA", str(archive.parent))
    assert find_source() == archive
    monkeypatch.setenv("CRISPTREE_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(FileNotFoundError, match="CRISPTREE_DATA"):
        find_source()


def test_the_target_of_a_csv_file_is_its_column_target_or_the_last_one(tmp_path):
    (tmp_path / "last.csv").write_text("u,v,y\n1,red,0.5\n2,blue,1.5\n,,2.5\n4,red,\n")
    (tmp_path / "named.csv").write_text("u,target,v\n1,yes,3\n2,no,4\n")
    last, named = read_tables(tmp_path)
    assert (last.task, last.columns, last.y.tolist()) == ("regression", ("u", "v"), [0.5, 1.5, 2.5])
    np.testing.assert_array_equal(last.X, [[1, 1], [2, 0], [np.nan, np.nan]])  # the row without a target is dropped
    assert (named.task, named.columns, named.y.tolist()) == ("classification", ("u", "v"), [1, 0])
    np.testing.assert_array_equal(named.X, [[1, 3], [2, 4]])


def test_files_without_the_arrays_and_folders_without_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must hold \.npz or \.csv files"):
        list(read_tables(tmp_path))
    np.savez(tmp_path / "other.npz", X_train=X)
    with pytest.raises(ValueError, match="X, columns, y missing"):
        list(read_tables(tmp_path))


def test_many_distinct_integers_are_a_regression_target_and_text_is_not():
    assert infer_task(np.arange(101)) == "regression"
    assert infer_task(np.arange(100)) == "classification"
    assert infer_task(np.array([str(number) for number in range(200)])) == "classification"


def make_table(y, task="classification"):
    return Table("t", task, np.arange(2.0 * len(y)).reshape(-1, 2), np.asarray(y), ("u", "v"))


def test_a_split_is_stratified_and_determined_by_its_seed():
    table = make_table(np.repeat([0, 1], [30, 10]))
    split = split_rows(table, 0)
    assert [len(part) for part in split] == [30, 10, 30, 10]
    assert np.bincount(split.y_test).tolist() in ([7, 3], [8, 2])
    np.testing.assert_array_equal(split.X_test, split_rows(table, 0).X_test)
    assert not np.array_equal(split.X_test, split_rows(table, 1).X_test)


@pytest.mark.parametrize("table", [make_table([0] * 39 + [1]), make_table(np.arange(40.0), "regression")])
def test_single_rows_of_a_class_and_regression_targets_are_split_without_strata(table):
    assert len(split_rows(table, 0).y_test) == 10


def test_missing_values_become_medians_of_the_training_rows():
    table = make_table(np.arange(40) % 2)
    table.X[::5, 0] = np.nan
    split = split_rows(table, 0)
    kept = table.X[np.isin(table.X[:, 1], split.X_train[:, 1]), 0]
    filled = split.X_test[split.X_test[:, 1] % 10 == 1, 0]
    assert len(filled) > 0
    np.testing.assert_array_equal(filled, np.nanmedian(kept))
