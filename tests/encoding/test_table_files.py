import numpy as np
import pyarrow as pa
import pytest

from crisptree.encoding import containers
from crisptree.encoding.table_files import open_table
from crisptree.exceptions import TableError
from tests.encoding.writers import PACK, customers, text, write


def rows(source, columns=None):
    return [row for batch in source.batches(columns or source.names) for row in batch.to_pylist()]


@pytest.mark.parametrize("packing", ["", *PACK])
def test_text_is_read_plain_or_packed(tmp_path, packing):
    table = customers(30)
    source = open_table(write(table, tmp_path / f"a table ü.csv{packing}"))
    assert source.names == tuple(table.column_names)
    found = rows(source, ["color", "income"])
    assert [row["color"] for row in found] == [value or "" for value in table["color"].to_pylist()]
    assert [float(row["income"]) for row in found] == table["income"].to_pylist()


def test_parquet_reads_only_the_columns_that_are_requested(tmp_path):
    source = open_table(write(customers(30), tmp_path / "t.parquet"))
    assert next(source.batches(["member", "age"])).column_names == ["age", "member"]


def test_a_folder_of_parquet_files_is_one_table_with_its_partitions(tmp_path):
    table = customers(40)
    pa.parquet.write_to_dataset(table, tmp_path / "by color", partition_cols=["color"])
    source = open_table(tmp_path / "by color")
    assert set(source.names) == set(table.column_names)
    given, found = table.select(source.names).to_pylist(), rows(source)
    assert sorted(map(str, found)) == sorted(map(str, given))


def test_several_parquet_files_are_one_table_in_their_order(tmp_path):
    table = customers(30)
    paths = [write(table.slice(start, 10), tmp_path / f"part-{start}.parquet") for start in (20, 0, 10)]
    assert rows(open_table(paths)) == [row for start in (20, 0, 10) for row in table.slice(start, 10).to_pylist()]
    write(table.drop_columns(["age"]), tmp_path / "other.parquet")
    with pytest.raises(TableError, match=r"other\.parquet must have the columns of the other files"):
        open_table([*paths, tmp_path / "other.parquet"])
    (tmp_path / "t.csv").write_text("age\n1\n")
    with pytest.raises(
        TableError, match=r"several tables must be \.parquet files with the same columns; .*t\.csv is none"
    ):
        open_table([*paths, tmp_path / "t.csv"])


def test_pieces_have_one_size_whatever_the_file_gives(tmp_path, monkeypatch):
    monkeypatch.setattr(containers, "MAX_ROWS_PER_BATCH", 7)
    monkeypatch.setattr(containers, "MIN_ROWS_PER_BATCH", 7)
    path = tmp_path / "t.parquet"
    pa.parquet.write_table(customers(30), path, row_group_size=4)
    source = open_table(path)
    assert [batch.num_rows for batch in source.batches(["age"])] == [7, 7, 7, 7, 2]
    assert rows(source) == customers(30).to_pylist()


def test_a_byte_order_mark_quotes_and_line_breaks_in_values_are_no_trouble(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes('\ufeffa,b\r\n"1","x, ""y""\nz"\r\n'.encode())
    assert rows(open_table(path)) == [{"a": "1", "b": 'x, "y"\nz'}]


def test_an_empty_line_is_a_missing_value_where_there_is_one_column(tmp_path):
    assert len(rows(open_table(text(tmp_path / "t.csv", "a", "1", "", "2")))) == 3
    assert len(rows(open_table(text(tmp_path / "u.csv", "a,b", "1,2", "", "2,3")))) == 2


def test_tabs_and_other_delimiters(tmp_path):
    assert open_table(text(tmp_path / "t.tsv", "a\tb", "1\t2")).names == ("a", "b")
    path = text(tmp_path / "t.csv", "a;b", "1;2")
    with pytest.raises(TableError, match=r"separated by ','; its header is 'a;b'. Say `delimiter=';'`"):
        open_table(path)
    assert open_table(path, delimiter=";").names == ("a", "b")


def test_npz_takes_x_and_every_array_with_a_value_per_row(tmp_path):
    X = np.arange(24.0).reshape(4, 2, 3)
    np.savez(tmp_path / "t.npz", X=X, y=["a", "b", "a", "b"], w=np.ones(4), note=np.zeros(9))
    source = open_table(tmp_path / "t.npz")
    assert (source.matrix, source.target, source.image_shape) == (6, "y", (2, 3))
    assert source.names[6:] == ("y", "w")
    found = rows(source)
    assert [found[2][f"x{j}"] for j in range(6)] == X[2].ravel().tolist()
    assert found[3]["y"] == "b"


def test_npz_takes_the_only_matrix_under_any_name(tmp_path):
    np.savez(tmp_path / "t.npz", images=np.ones((3, 2)), labels=[0, 1, 0])
    assert open_table(tmp_path / "t.npz").names == ("x0", "x1", "labels")
    np.savez(tmp_path / "u.npz", a=np.ones((3, 2)), b=np.ones((3, 2)))
    with pytest.raises(TableError, match=r"an array X of numbers, a row per sample; it holds 'a', 'b'"):
        open_table(tmp_path / "u.npz")
    np.savez(tmp_path / "w.npz", X=np.ones((3, 0)))
    with pytest.raises(TableError, match=r"an array X with columns; that of \(3, 0\) has none"):
        open_table(tmp_path / "w.npz")
    np.savez(tmp_path / "v.npz", X=np.array([[1], [{}]], dtype=object))
    with pytest.raises(TableError, match="Object arrays cannot be loaded"):
        open_table(tmp_path / "v.npz")


@pytest.mark.parametrize("packing", ["", ".bz2"])
def test_libsvm_rows_are_dense_and_indices_count_from_one(tmp_path, packing):
    path = tmp_path / f"t.libsvm{packing}"
    data = b"+1 1:0.5 3:2 # a remark\n\n-1 2:1e-3\n3\n"
    path.write_bytes(PACK[packing](data) if packing else data)
    assert rows(open_table(path)) == [
        {"x0": 0.5, "x1": 0.0, "x2": 2.0, "y": 1.0},
        {"x0": 0.0, "x1": 1e-3, "x2": 0.0, "y": -1.0},
        {"x0": 0.0, "x1": 0.0, "x2": 0.0, "y": 3.0},
    ]
    assert open_table(path, n_features=5).matrix == 5
    with pytest.raises(TableError, match=r"must have 2 features at most, as in training; it has a feature 3"):
        rows(open_table(path, n_features=2))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.csv", b"", "is empty"),
        ("t.csv", b"\n\n", "is empty; the first line of a table must name its columns"),
        ("t.csv", b"a,b,a\n1,2,3\n", "has two columns named 'a'"),
        ("t.csv", b"a,b\n1,2\n3\n", "cannot be read as a table: Row #3: Expected 2 columns, got 1"),
        ("t.csv", b"a,b\n1,\xff\xfe\n", "line 2 must be text in UTF-8; it is not"),
        ("t.csv", b'a,b\n1,"' + b"x" * 2**21, "a quotation mark that is never closed"),
        ("t.csv.gz", b"no gzip", "is damaged or not a .gz file"),
        ("t.csv.bz2", b"no bzip", "is damaged or not a .bz2 file"),
        ("t.csv.xz", b"no lzma", "is damaged or not a .xz file"),
        ("t.csv.gz", PACK[".gz"](b"a,b\n1,2\n")[:-9], "is damaged or not a .gz file"),
        ("t.parquet", b"PAR1 not really", "is damaged or not a .parquet file"),
        ("t.npz", b"PK not really", "is damaged or not a .npz file"),
        ("t.svm", b"1 0:3\n", "with ascending indices from 1; it does not"),
        ("t.svm", b"1 3:4\n2 x:3\n", "must hold lines such as"),
        ("t.svm", b"1 3:4 3:5\n", "must hold lines such as"),
        ("t.svm", b"1 4\n", "must hold lines such as"),
        ("t.svm", b"1 4000000000:2\n", "must hold lines such as"),
        ("t.svm.gz", b"no gzip", "is damaged or not a .gz file"),
        ("t.svm", b"yes 3:4\n", "must hold lines such as"),
        ("t.svm", b"1\n2\n", "it has no features"),
        ("t.svm", b"1 2000000000:2\n2 1:3\n", "at most 65,536 columns; it has 2,000,000,000"),
        ("t.xlsx", b"x", "must end in one of .csv, .tsv, .parquet, .npz, .libsvm"),
        ("t.parquet.gz", b"x", "it ends in '.parquet.gz'"),
        ("table", b"x", "it ends in 'nothing'"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=r"(?s)" + said.replace(".", r"\.")):
        rows(open_table(tmp_path / name))


def test_a_folder_and_a_file_that_is_not_there_are_refused(tmp_path):
    with pytest.raises(TableError, match=r"is a folder without .parquet files; name a file in it"):
        open_table(tmp_path)
    with pytest.raises(TableError, match=r"there is no file .*t\.csv"):
        open_table(tmp_path / "t.csv")


def test_a_wrong_name_suggests_the_right_one(tmp_path):
    source = open_table(text(tmp_path / "t.csv", "species,petal width", "a,1"))
    with pytest.raises(
        TableError, match=r"has no column 'Spezies' \(--target\); it has 'species', .* mean 'species'\?"
    ):
        source.column("Spezies", "--target")
