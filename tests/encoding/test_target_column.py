import numpy as np
import pyarrow as pa
import pytest

from crisptree.encoding.table_files import open_table
from crisptree.encoding.target_column import (
    encode_class_labels,
    parse_class_labels,
    read_labels,
    read_numbers,
    read_weights,
)
from crisptree.exceptions import TableError
from tests.encoding.writers import text


def labels(path, name="y"):
    return read_labels(open_table(path), name)


def classes(path):
    return parse_class_labels(labels(path), path, "y")


@pytest.mark.parametrize(
    ("in_csv", "in_parquet", "expected"),
    [
        (["1", "0", "-2"], [1, 0, -2], np.array([1, 0, -2])),
        (["1", "2.0", "1.0"], [1.0, 2.0, 1.0], np.array([1, 2, 1])),
        (["+1", "-1", "+1"], [1, -1, 1], np.array([1, -1, 1])),
        (["1.00", "2.000000", "-0"], [1.0, 2.0, -0.0], np.array([1, 2, 0])),
        ([str(2**63 - 1), str(-(2**63))], [2**63 - 1, -(2**63)], np.array([2**63 - 1, -(2**63)])),
        ([str(10**20), str(10**20 + 1)], [str(10**20), str(10**20 + 1)], np.array([str(10**20), str(10**20 + 1)])),
        (["true", "False", "true"], [True, False, True], np.array([True, False, True])),
        (["007", "12", "007"], ["007", "12", "007"], np.array(["007", "12", "007"])),
        (["a b", "$x_1$", "<b>"], ["a b", "$x_1$", "<b>"], np.array(["a b", "$x_1$", "<b>"])),
    ],
)
def test_labels_have_their_own_type_whatever_the_format(tmp_path, in_csv, in_parquet, expected):
    text(tmp_path / "t.csv", "x,y", *(f"0,{label}" for label in in_csv))
    pa.parquet.write_table(pa.table({"y": in_parquet}), tmp_path / "t.parquet")
    for path in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        found = classes(path)
        assert found.dtype.kind == expected.dtype.kind
        assert found.tolist() == expected.tolist()
        known = np.unique(found)
        assert known[encode_class_labels(labels(path), known)].tolist() == expected.tolist()


def test_long_numbers_keep_their_digits(tmp_path):
    pa.parquet.write_table(pa.table({"y": [2**60 + 1, 2**60]}), tmp_path / "t.parquet")
    assert labels(tmp_path / "t.parquet").tolist() == [str(2**60 + 1), str(2**60)]


def test_a_label_of_a_part_of_the_table_means_what_it_meant_in_the_whole(tmp_path):
    # "1" alone would be a number; beside "3+" it is text.
    known = np.unique(classes(text(tmp_path / "t.csv", "x,y", "0,1", "0,3+")))
    assert encode_class_labels(labels(text(tmp_path / "u.csv", "x,y", "0,1", "0,2")), known).tolist() == [0, -1]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["a", "", "b"], "the target 'y' must have a value in every row; row 1 has none"),
        (["a", "a"], "must have at least two classes; every row has 'a'"),
        (["-0", "0", "0.0"], "must have at least two classes; every row has '-0'"),
        (["True", "true"], "must have at least two classes; every row has 'True'"),
        (["0.5", "1", "2.25"], "must name classes; it holds numbers with a fraction, such as '0.5'"),
        ([f"t{i}" for i in range(40)], "40 different values in 40 rows are too many"),
        ([], "must have rows; it has none"),
    ],
)
def test_targets_that_are_no_classes_are_refused(tmp_path, values, said):
    with pytest.raises(TableError, match=said):
        classes(text(tmp_path / "t.csv", "x,y", *(f"0,{value}" for value in values)))


def test_weights_must_be_numbers_of_at_least_zero(tmp_path):
    good = text(tmp_path / "t.csv", "w,y", "1,a", "0,b", "2.5,a")
    assert read_weights(open_table(good), "w").tolist() == [1, 0, 2.5]
    for value in ("-1", "", "x", "inf"):
        with pytest.raises(TableError, match=r"the weights 'w' must be finite numbers of at least 0.*; row 1 has"):
            read_weights(open_table(text(tmp_path / "u.csv", "w,y", "1,a", f"{value},b")), "w")


@pytest.mark.parametrize(
    ("third", "said"),
    [
        ("", "row 2 has none"),
        ("inf", "row 2 has 'inf'"),
        ("n.a.", "row 2 has 'n.a.'"),
        ("2020-01-01", "row 2 has '2020"),
    ],
)
def test_a_target_or_weight_that_is_no_number_is_named_with_its_row(tmp_path, third, said):
    (tmp_path / "t.csv").write_text(f"y,x\n1.5,1\n2,1\n{third},1\n4,1\n")
    for read, what in ((read_numbers, "the target 'y' must be a finite number"), (read_weights, "the weights 'y'")):
        with pytest.raises(TableError, match=f"{what}.*; {said}"):
            read(open_table(tmp_path / "t.csv"), "y")
