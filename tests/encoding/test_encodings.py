import pytest

from crisptree.encoding.table_files import open_table, resolve_encoding
from crisptree.exceptions import TableError
from tests.encoding.writers import PACK, customers, write

CITIES = "city,y\nMünchen,1\nKöln – Süd,0\n"


def rows(source):
    return [row for batch in source.batches(source.names) for row in batch.to_pylist()]


def rows_with_a_target(path, encoding):
    source = open_table(path, encoding=encoding)
    source.column("y", "--target")
    return rows(source)


@pytest.mark.parametrize("packing", ["", ".gz"])
@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "UTF-8-sig", "mac-roman"])
def test_text_of_other_encodings_is_read_as_it_was_meant(tmp_path, encoding, packing):
    path = tmp_path / f"t.csv{packing}"
    data = CITIES.encode(encoding)
    path.write_bytes(PACK[packing](data) if packing else data)
    found = rows(open_table(path, encoding=encoding))
    assert [row["city"] for row in found] == ["München", "Köln – Süd"]


@pytest.mark.parametrize(
    ("content", "encoding", "said"),
    [
        (
            CITIES.encode("cp1252"),
            None,
            "line 2 must be text in UTF-8; it is not. If 'München,1' is what",
        ),
        (b"city,stra\xdfe\nx,1\n", None, "line 1 must be text in UTF-8; it is not. If 'city,straße' is"),
        (CITIES.encode("utf-16"), None, "begins as text in utf-16 does. Say `encoding='utf-16'`."),
        (b"a,b\n1,2\n3,\x81\n", "cp1252", "line 3 must be text in cp1252; it is not. Name the encoding"),
        (CITIES.encode("utf-16-be"), "utf-16-le", "has no column 'y'"),
        (b"a,b\n1,2\n3,4", "utf-16", "t.csv"),
        (CITIES.encode(), "zip", "`encoding` must be an encoding of text that Python knows"),
        (CITIES.encode(), "punycode", "`encoding` must be an encoding of text that Python knows"),
        (CITIES.encode(), "no such", "got 'no such'"),
    ],
)
def test_what_is_no_text_is_refused_with_file_and_line(tmp_path, content, encoding, said):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(TableError, match=said) as error:
        rows_with_a_target(path, encoding)
    assert str(path) in str(error.value)


def test_the_line_is_found_far_behind_the_first_piece(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"1,2\n" * 600_000 + b"1,\xe4\n")
    for encoding, line in ((None, 600_002), ("ascii", 600_002)):
        with pytest.raises(TableError, match=f"line {line} must be text"):
            rows(open_table(path, encoding=encoding))


def test_encodings_are_for_text(tmp_path):
    path = write(customers(5), tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"`encoding` is for \.csv and \.tsv; .*t\.parquet says itself"):
        open_table(path, encoding="cp1252")


def test_names_of_encodings_are_pythons():
    assert [resolve_encoding(name) for name in ("Latin1", "ANSI_X3.4-1968")] == ["iso8859-1", "ascii"]
