"""What becomes of columns: the profile of a training table, and the encoding of others by what it found."""

import dataclasses
import datetime
import json
import re

import numpy as np
import pyarrow as pa
import pytest

from crisptree.encoding import containers
from crisptree.encoding.preprocessing import Column, ColumnOptions, Preprocessing, profile_table
from crisptree.encoding.table_encoder import RowEncoder
from crisptree.encoding.table_files import open_table
from crisptree.estimators.loading import preprocessing_from_section, preprocessing_to_section
from crisptree.exceptions import TableError
from crisptree.persistence.model_file import Section
from tests.encoding.writers import customers, text, write


def profile_file(path, *, rows=None, **choices):
    source = open_table(path)
    features, options = source.features({"y", "buys"}), ColumnOptions(**choices)
    preprocessing = profile_table(source, features, options, target="y", rows=rows)
    return preprocessing, list(preprocessing.notes)


def encoded(preprocessing, path, **options):
    encoder = RowEncoder(preprocessing, open_table(path), **options)
    return encoder.encode_all(), list(encoder.notes())


def column_file(path, *values):
    return text(path, "a,y", *(f"{value},0" for value in values))


def test_every_kind_of_column_becomes_the_features_that_the_manual_documents(tmp_path):
    path = text(
        tmp_path / "t.csv",
        "n,c,b,constant,nothing,y",
        "1,red,true,5,,0",
        ",blue,False,5,,1",
        "4, red ,TRUE,5,nan,0",
        "7,,false,5,,1",
    )
    preprocessing, notes = profile_file(path)
    assert preprocessing.feature_names == ("n", "n is missing", "c=blue", "c=red", "c is missing", "b")
    X, _ = encoded(preprocessing, path)
    assert X.dtype == np.float32
    assert X.tolist() == [
        [1, 0, 0, 1, 0, 1],
        [4, 1, 1, 0, 0, 0],
        [4, 0, 0, 1, 0, 1],
        [7, 0, 0, 0, 1, 0],
    ]
    assert preprocessing.left_out == {"constant": "constant", "nothing": "no values"}
    assert notes == [
        "left out, constant: 'constant'.",
        "left out, without any value: 'nothing'.",
        "missing values in 'n', 'c': each gets an indicator feature.",
    ]


def test_csv_and_parquet_of_one_table_give_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(containers, "MIN_ROWS_PER_BATCH", 16)
    monkeypatch.setattr(containers, "MAX_ROWS_PER_BATCH", 16)
    table = customers(100)
    coded = table.append_column("coded", table["color"].dictionary_encode())
    write(table.append_column("coded", table["color"]), tmp_path / "t.csv")
    pa.parquet.write_table(coded, tmp_path / "t.parquet", row_group_size=23)
    (ours, _), (theirs, _) = profile_file(tmp_path / "t.csv"), profile_file(tmp_path / "t.parquet")
    assert ours.columns[0] == theirs.columns[0]  # the mean to the last bit
    assert ours.feature_names == theirs.feature_names
    assert np.array_equal(encoded(ours, tmp_path / "t.csv")[0], encoded(theirs, tmp_path / "t.parquet")[0])


def test_rows_that_are_held_out_have_no_part_in_means_and_categories(tmp_path):
    path = text(tmp_path / "t.csv", "n,c,y", "1,red,0", "3,blue,1", "99,green,0")
    preprocessing, _ = profile_file(path, rows=np.array([True, True, False]))
    assert preprocessing.columns == (
        Column("n", "number", mean=2.0),
        Column("c", "category", categories=("blue", "red")),
    )


def test_unknown_categories_become_zeros_and_are_counted(tmp_path):
    preprocessing, _ = profile_file(text(tmp_path / "t.csv", "n,c,y", "1,red,0", "2,blue,1"))
    X, notes = encoded(preprocessing, text(tmp_path / "u.csv", "c,n", "violet,1", "red,2", "violet,3", ",", "ocher,1"))
    assert X[:, 1:].tolist() == [[0, 0], [0, 1], [0, 0], [0, 0], [0, 0]]
    assert X[3, 0] == 1.5
    assert notes == [
        "column 'c': 3 values that training did not know ('violet', 'ocher'); all its features are 0 there.",
        "columns 'n', 'c': 2 missing values, none in training; means stand in, and all features of a category are 0.",
    ]


def test_a_stray_text_in_a_column_of_numbers_is_named_with_its_row_and_the_remedies(tmp_path):
    path = column_file(tmp_path / "t.csv", 1, 2, 3, "n/a", 5)
    with pytest.raises(TableError) as error:
        profile_file(path)
    assert str(error.value).endswith(
        "column 'a' must hold numbers; 4 of 5 values are, but row 3 has 'n/a'. If that means a missing value, say "
        "`missing=['n/a']`; if the column holds names of categories, say `categorical=['a']`."
    )
    preprocessing, _ = profile_file(path, missing=["n/a"])
    assert preprocessing.feature_names == ("a", "a is missing")
    X, _ = encoded(preprocessing, path)
    assert X[3].tolist() == [2.75, 1.0]
    assert profile_file(path, categorical=["a"])[0].columns[0].categories == ("1", "2", "3", "5", "n/a")


def test_the_row_of_a_stray_text_is_that_of_the_file_in_later_pieces_and_with_rows_held_out(tmp_path, monkeypatch):
    monkeypatch.setattr(containers, "MIN_ROWS_PER_BATCH", 2)
    monkeypatch.setattr(containers, "MAX_ROWS_PER_BATCH", 2)
    path = column_file(tmp_path / "t.csv", 1, 2, 3, 4, "", "x", 7)
    with pytest.raises(TableError, match=r"row 5 has 'x'"):
        profile_file(path)
    with pytest.raises(TableError, match=r"row 5 has 'x'"):
        profile_file(path, rows=np.array([True, False, True, True, False, True, True]))
    with pytest.raises(TableError, match=r"column 'a' must hold numbers, as in training; row 5 has 'x'"):
        encoded(Preprocessing((Column("a", "number", 0.0),)), path)


def test_a_column_of_mostly_words_is_a_category_though_some_are_numbers(tmp_path):
    assert profile_file(column_file(tmp_path / "t.csv", "a", "b", "1"))[0].columns[0].kind == "category"


@pytest.mark.parametrize("value", ["inf", "-Infinity", "1e400", "1e39", "12,5", "0x1F", "1_000"])
def test_what_is_no_finite_single_precision_number_is_refused(tmp_path, value):
    path = text(tmp_path / "t.csv", "a;y", "1;0", "2;1", f"{value};0")
    source = open_table(path, delimiter=";")
    with pytest.raises(TableError, match=r"column 'a' must hold .*row 2"):
        profile_table(source, ["a"], ColumnOptions())


def test_infinite_numbers_in_parquet_are_refused_when_learning_and_when_predicting(tmp_path):
    pa.parquet.write_table(pa.table({"a": [1.0, 2.0, np.inf]}), tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"must hold finite numbers that single precision can hold; row 2 has inf"):
        profile_file(tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"must hold finite numbers that single precision can hold; row 2 does not"):
        encoded(Preprocessing((Column("a", "number", 0.0),)), tmp_path / "t.parquet")


def test_numbers_are_read_in_every_usual_notation(tmp_path):
    preprocessing, _ = profile_file(
        column_file(tmp_path / "t.csv", " 1 ", "+2", "-3.5", ".5", "4.", "1e-3", "007", "NaN")
    )
    X, _ = encoded(preprocessing, tmp_path / "t.csv")
    assert np.allclose(X[:7, 0], [1, 2, -3.5, 0.5, 4, 1e-3, 7])
    assert X[7, 1] == 1


def test_digits_that_begin_with_a_zero_are_names_unless_the_column_counts_otherwise(tmp_path):
    path = column_file(tmp_path / "t.csv", "01234", "99999", "00007", "01234")
    preprocessing, notes = profile_file(path)
    assert preprocessing.columns[0].categories == ("00007", "01234", "99999")
    assert "`numeric=['a']`" in notes[0]
    assert profile_file(path, numeric=["a"])[0].columns[0].kind == "number"
    assert profile_file(column_file(path, "007", "1.5", "2"))[0].columns[0].kind == "number"
    assert profile_file(column_file(path, "007", "-3", "2"))[0].columns[0].kind == "number"


@pytest.mark.parametrize(
    "values", [[datetime.date(2024, 1, 31)] * 2, ["2024-01-31", "2025-12-01 10:30"], ["31.12.2024", "1.1.25"]]
)
def test_dates_are_refused_with_two_remedies(tmp_path, values):
    pa.parquet.write_table(pa.table({"a": values}), tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"column 'a' holds dates.*Make numbers of them first.*drop=\['a'\]"):
        profile_file(tmp_path / "t.parquet")


@pytest.mark.parametrize("values", [["1,5", "2,25"], ["1.234,5", "-3,0"], ["1,234", "12,345.67"], ["3", "4", "1,5"]])
def test_numbers_with_commas_are_refused_rather_than_taken_for_words(tmp_path, values):
    path = text(tmp_path / "t.csv", "a;y", *(f"{value};{row % 2}" for row, value in enumerate(values)))
    source = open_table(path, delimiter=";")
    with pytest.raises(TableError, match=r"'a' must hold numbers such as 1234.5; row . has '.*categorical=\['a'\]"):
        profile_table(source, ["a"], ColumnOptions())
    assert profile_table(source, ["a"], ColumnOptions(categorical=["a"])).columns[0].kind == "category"


@pytest.mark.parametrize("values", [["1,5", "x"], ["1,2,3", "4"], ["1.2.3", "1.2.4"]])
def test_words_with_commas_and_points_are_categories(tmp_path, values):
    path = text(tmp_path / "t.csv", "a;y", *(f"{value};{row % 2}" for row, value in enumerate(values)))
    assert profile_table(open_table(path, delimiter=";"), ["a"], ColumnOptions()).columns[0].kind == "category"


def test_an_identifier_is_refused_by_name(tmp_path):
    ids = column_file(tmp_path / "t.csv", *(f"r{i}" for i in range(30)))
    with pytest.raises(
        TableError,
        match=r"column 'a' is a category with hardly any value twice, such as 'r0', 'r1', 'r2'. Leave .*drop=\['a'\]`.",
    ):
        profile_file(ids)
    spaced = text(tmp_path / "v.csv", "the id,y", *(f"r{i},0" for i in range(30)))
    with pytest.raises(TableError, match=r"drop=\['the id'\]"):
        profile_file(spaced)
    many = column_file(tmp_path / "u.csv", *(f"r{i // 2}" for i in range(240)))
    with pytest.raises(TableError, match=r"more than 100 different values.*`drop=\['a'\]`.* or .*`max_categories=120`"):
        profile_file(many)
    assert len(profile_file(many, max_categories=1000)[0].feature_names) == 120


def test_a_column_that_counts_the_rows_is_noted(tmp_path):
    _, notes = profile_file(column_file(tmp_path / "t.csv", *range(100, 140)))
    assert notes == ["column 'a' counts the rows; if it only numbers them, leave it out with `drop=['a']`."]
    kept = np.arange(40) % 3 > 0  # as beside held-out rows
    _, notes = profile_file(column_file(tmp_path / "t.csv", *range(100, 140)), rows=kept)
    assert len(notes) == 1
    assert "counts the rows" in notes[0]


def test_numbers_may_be_categories_and_are_the_same_in_every_format(tmp_path):
    csv = column_file(tmp_path / "t.csv", "1", "2.0", "10")
    pa.parquet.write_table(pa.table({"a": [1.0, 2.0, 10.0]}), tmp_path / "t.parquet")
    pa.parquet.write_table(pa.table({"a": pa.array([1, 2, 10], pa.int8())}), tmp_path / "u.parquet")
    for path in (csv, tmp_path / "t.parquet", tmp_path / "u.parquet"):
        assert profile_file(path, categorical=["a"])[0].feature_names == ("a=1", "a=10", "a=2")


def test_constant_columns_stay_where_rows_are_images(tmp_path):
    path = text(tmp_path / "t.csv", "a,b,y", "1,0,0", "2,0,1")
    assert len(profile_file(path)[0].columns) == 1
    assert len(profile_file(path, keep_constant=True)[0].columns) == 2


def test_a_table_without_a_usable_column_is_refused(tmp_path):
    with pytest.raises(TableError, match=r"at least one column to learn from; 'a' is constant"):
        profile_file(text(tmp_path / "t.csv", "a,y", "1,0", "1,1"))


def test_features_of_one_name_are_refused(tmp_path):
    with pytest.raises(TableError, match=r"would share the name 'a=b'"):
        profile_file(text(tmp_path / "t.csv", "a,a=b,y", "b,1,0", "c,2,1"))


def test_types_that_are_neither_numbers_nor_text_are_refused(tmp_path):
    pa.parquet.write_table(pa.table({"a": [[1, 2], [3]]}), tmp_path / "t.parquet")
    with pytest.raises(
        TableError, match=r"column 'a' must hold numbers, booleans or text; it holds values of type list"
    ):
        profile_file(tmp_path / "t.parquet")


def test_lost_columns_are_named_and_others_of_the_file_do_not_matter(tmp_path):
    preprocessing, _ = profile_file(text(tmp_path / "t.csv", "age,size,y", "1,2,0", "2,1,1"))
    X, _ = encoded(preprocessing, text(tmp_path / "u.csv", "x,size,age", "q,5,6"))
    assert X.tolist() == [[6, 5]]
    with pytest.raises(TableError, match=r"it has no 'age'. Did you mean 'Age'?"):
        encoded(preprocessing, text(tmp_path / "v.csv", "size,Age", "5,6"))


def test_without_names_columns_are_found_by_their_place(tmp_path):
    preprocessing = Preprocessing.plain(2)
    path = text(tmp_path / "t.csv", "q,r,s", "1,2,3")
    assert encoded(preprocessing, path, without=["q"])[0].tolist() == [[2, 3]]
    with pytest.raises(TableError, match=r"must have 2 features; it has 3.*leave out what is none with `drop="):
        encoded(preprocessing, path)
    with pytest.raises(TableError, match=r"column 'x1' must have a number in every row.*row 0 has none"):
        encoded(preprocessing, text(tmp_path / "u.csv", "q,r", "1,"))


def test_the_preprocessing_survives_json_and_arrays(tmp_path):
    preprocessing, _ = profile_file(write(customers(80), tmp_path / "t.csv"), missing=["?"])
    section = preprocessing_to_section(preprocessing)
    again = preprocessing_from_section(Section(json.loads(json.dumps(section.content)), section.arrays))
    assert json.dumps(preprocessing_to_section(again).content) == json.dumps(section.content)
    for ours, theirs in zip(preprocessing.columns, again.columns, strict=True):
        assert np.array_equal(ours.mean, theirs.mean, equal_nan=True)
        assert dataclasses.replace(ours, mean=0.0) == dataclasses.replace(theirs, mean=0.0)


@pytest.mark.parametrize(
    "change",
    [
        lambda content, arrays: content.pop("columns"),
        lambda content, arrays: content["columns"].pop(),
        lambda content, arrays: content["columns"][0].update(kind="vector"),
        lambda content, arrays: content["columns"][0].update(name=7),
        lambda content, arrays: content["columns"].__setitem__(0, content["columns"][1]),
        lambda content, arrays: content.update(missing=[None]),
        lambda content, arrays: content.update(left_out=[]),
        lambda content, arrays: arrays.update(mean=np.arange(2)),
        lambda content, arrays: arrays.update(mean=arrays["mean"] * np.inf),
        lambda content, arrays: arrays.pop("missing"),
    ],
)
def test_a_damaged_preprocessing_is_refused(change):
    columns = (Column("a", "number", 1.0), Column("b", "category", categories=("x", "y")))
    section = preprocessing_to_section(Preprocessing(columns))
    change(section.content, section.arrays)
    with pytest.raises(TableError, match=r"the preprocessing in the model file is damaged"):
        preprocessing_from_section(section)


def test_a_preprocessing_of_a_later_version_requires_an_update():
    section = preprocessing_to_section(Preprocessing((Column("a", "number", 1.0),)))
    section.content["version"] = 2
    with pytest.raises(TableError, match=r"has version 2; this version of crisptree reads version 1. Update it"):
        preprocessing_from_section(section)


@pytest.mark.parametrize(
    "values",
    [
        ("2012/01/01", "2013/12/31"),
        ("13:30", "09:15"),
        ("1:30 PM", "9:15 am"),
        ("13:30:01.5", "09:15:00"),
        ("1 days 02:03:04", "-2 days +03:00:00"),
        ("1 day", "12 days"),
    ],
)
def test_dates_times_and_time_differences_as_text_are_refused_as_such(tmp_path, values):
    with pytest.raises(TableError, match=r"column 'a' holds dates or times.*Make numbers of them first"):
        profile_file(column_file(tmp_path / "t.csv", *values))


def test_the_hint_of_max_categories_names_a_number_that_works(tmp_path):
    path = column_file(tmp_path / "t.csv", *(f"v{number % 137}" for number in range(900)))
    with pytest.raises(TableError) as refused:
        profile_file(path)
    number = int(re.search(r"max_categories=(\d+)", str(refused.value))[1])
    assert number == 137
    assert profile_file(path, max_categories=number)[0].n_features == 137


def test_near_ids_are_refused_and_columns_of_many_values_noted(tmp_path):
    near = column_file(tmp_path / "t.csv", *(f"r{min(row, 57)}" for row in range(63)))
    with pytest.raises(TableError, match="'a' is a category with hardly any value twice"):
        profile_file(near)
    many = column_file(tmp_path / "u.csv", *(f"r{min(row, 39)}" for row in range(63)))
    assert profile_file(many)[1][0].startswith("column 'a' has 40 different values in 63 rows; if it only names them")


@pytest.mark.parametrize("frequency", [3, 0.1])
def test_rare_values_are_grouped_and_are_no_unknown_values(tmp_path, frequency):
    path = column_file(tmp_path / "t.csv", *["a"] * 20, *["b"] * 8, "c", "d")
    preprocessing, notes = profile_file(path, min_frequency=frequency)
    assert preprocessing.feature_names == ("a=a", "a=b")
    assert any("values rarer than `min_frequency` share one encoding" in note for note in notes)
    again = preprocessing_from_section(preprocessing_to_section(preprocessing))
    X, said = encoded(again, text(tmp_path / "n.csv", "a,y", "a,0", "c,0", "new,1"))
    assert X.tolist() == [[1, 0], [0, 0], [0, 0]]
    assert said == []
    only_rare = text(tmp_path / "r.csv", "a,b,y", *(f"v{row % 15},{row},0" for row in range(30)))
    assert profile_file(only_rare, min_frequency=5)[0].left_out == {"a": "only rare values"}
