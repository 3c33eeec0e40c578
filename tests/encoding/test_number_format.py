"""Numbers as people write them: read where the user says how, else refused with what to say."""

import pytest

from crisptree.encoding.preprocessing import Column, ColumnOptions, Preprocessing, profile_table
from crisptree.encoding.table_encoder import RowEncoder
from crisptree.encoding.table_files import open_table
from crisptree.encoding.text_formats import DEFAULT_FORMAT, NumberFormat
from crisptree.exceptions import TableError
from tests.encoding.writers import text

GERMAN = NumberFormat(decimal=",", thousands=".", units=("€", "%"))


def table(path, *values):
    return text(path, "a;y", *(f"{value};{row % 2}" for row, value in enumerate(values)))


def surveyed(path, written=DEFAULT_FORMAT, **choices):
    return profile_table(open_table(path, delimiter=";", number_format=written), ["a"], ColumnOptions(**choices))


@pytest.mark.parametrize(
    ("written", "texts", "plain"),
    [
        (DEFAULT_FORMAT, ["1.5", "x"], ["1.5", "x"]),
        (NumberFormat(decimal=","), ["1,5", "-2", ",5", "1e3", "1.5", "1,5,5"], ["1.5", "-2", ".5", "1e3", "?", "?"]),
        (GERMAN, ["1.234,5", "1.234.567", "12.34", "€ 5", "-5 %", "€-7,", "5 kg"], None),
        (NumberFormat(thousands=","), ["1,234.5", "1,23", "12"], ["1234.5", "?", "12"]),
        (NumberFormat(thousands=" "), ["1\u00a0234", "1\u202f234 567", "1  234"], ["1234", "1234567", "?"]),
        (NumberFormat(thousands="'"), ["1'234", "1’234.5"], ["1234", "1234.5"]),
        (NumberFormat(units=("Fr.", "kr")), ["Fr. 5.50", "7 kr", "-Fr.3"], ["5.50", "7", "-3"]),
    ],
)
def test_numbers_are_read_as_they_are_declared_to_be_written_and_nothing_else_is_one(written, texts, plain):
    if plain is None:
        plain = ["1234.5", "1234567", "?", "5", "-5", "-7.", "?"]
    assert [written.normalize(text) for text in texts] == plain


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"decimal": ";"}, "`decimal` must be '.' or ','"),
        ({"thousands": "."}, "`thousands` must be one of"),
        ({"decimal": ",", "thousands": ","}, "where ',' begins the fraction"),
        ({"units": ("5",)}, "`unit` must be a sign or word without digits"),
        ({"units": (" ",)}, "`unit` must be a sign or word"),
    ],
)
def test_invalid_number_formats_are_refused(options, said):
    with pytest.raises(TableError, match=said):
        NumberFormat(**options)


def test_a_remedy_that_is_followed_makes_the_column_one_of_numbers(tmp_path):
    path = table(tmp_path / "t.csv", "1.234,50 €", "-7 €", "0,5 €")
    with pytest.raises(
        TableError,
        match=r"row 0 has '1.234,50 €'. Say how numbers are written, .* `decimal=','`",
    ):
        surveyed(path)
    (column,) = surveyed(path, GERMAN).columns
    assert column.kind == "number"
    assert column.mean == pytest.approx((1234.5 - 7 + 0.5) / 3)


def test_a_word_among_numbers_written_otherwise_is_named_beside_them(tmp_path):
    path = table(tmp_path / "t.csv", "1,5", "2,5", "n/a", "3,25")
    with pytest.raises(TableError, match=r"row 0 has '1,5'. Say how numbers are .*. Besides, row 2 has 'n/a'. If"):
        surveyed(path)
    column = surveyed(path, NumberFormat(decimal=","), missing=["n/a"]).columns[0]
    assert (column.kind, column.missing) == ("number", True)


def test_categories_keep_the_text_that_they_have(tmp_path):
    path = table(tmp_path / "t.csv", "1,5", "2,5", "1,5")
    column = surveyed(path, NumberFormat(decimal=","), categorical=["a"]).columns[0]
    assert column.categories == ("1,5", "2,5")


def test_other_tables_of_a_model_declare_how_their_numbers_are_written_themselves(tmp_path):
    preprocessing = Preprocessing((Column("a", "number", mean=0.0),))
    path = table(tmp_path / "t.csv", "1,5", "2,5")

    def rows(written):
        return RowEncoder(
            preprocessing, open_table(path, delimiter=";", number_format=written), without=["y"]
        ).encode_all()

    with pytest.raises(TableError, match=r"row 0 has '1,5'. Say how numbers are written, .*\.$"):
        rows(DEFAULT_FORMAT)
    assert rows(NumberFormat(decimal=",")).ravel().tolist() == [1.5, 2.5]


def test_all_columns_that_cannot_be_used_are_named_at_once(tmp_path):
    lines = [f"c{row};2024-01-{row % 28 + 1:02};1,5;{row};1e99" for row in range(30)]
    path = text(tmp_path / "t.csv", "id;since;x;n;large", *lines)
    source = open_table(path, delimiter=";")
    with pytest.raises(TableError) as error:
        profile_table(source, list(source.names), ColumnOptions())
    first, *others, last = str(error.value).splitlines()
    assert first == f"{path} has 4 columns that cannot be used as they are:"
    assert [line.split("'")[1] for line in others] == ["id", "since", "x", "large"]
    assert last == ("All of them are left out, or become numbers, with `drop=['id', 'x', 'large']` `dates=['since']`.")


def test_columns_are_named_one_by_one_or_with_commas(tmp_path):
    source = open_table(text(tmp_path / "t.csv", 'a;b;c,d;" e"', "1;2;3;4"), delimiter=";")
    assert source.columns(["a,b", "c,d", "a"], "--drop") == ["a", "b", "c,d"]
    assert source.columns(["a, b"], "--drop") == ["a", "b"]
    assert source.columns(["a, e"], "--drop") == ["a", " e"]
    with pytest.raises(TableError, match=r"has no column 'x' \(--drop\)"):
        source.columns(["a,x"], "--drop")
