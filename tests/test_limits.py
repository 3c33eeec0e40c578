"""Compressed files that would decompress into more than their limit are refused by every reader."""

import bz2
import gzip
import lzma
import zipfile

import numpy as np
import pytest

from crisptree import limits
from crisptree.datasets.catalog import DataFormatError
from crisptree.datasets.files import read_bytes, read_compact
from crisptree.encoding.table_files import open_table
from crisptree.exceptions import TableError
from tests.datasets.writers import compress

LIMIT = 2**16
PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".Z": compress}
REFUSAL = "must decompress into at most 65,536 bytes .* decompress it first"


@pytest.fixture(autouse=True)
def low_limit(monkeypatch):
    monkeypatch.setattr(limits, "MAX_UNPACKED_BYTES", LIMIT)
    monkeypatch.setattr(limits, "MAX_EXPANSION", 2)


def read_rows(path):
    return sum(batch.num_rows for batch in open_table(path).batches(open_table(path).names))


def fill_up(line, n_bytes):
    return line * (n_bytes // len(line))


@pytest.mark.parametrize("packing", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize(("ending", "header", "line"), [(".csv", b"a,b\n", b"1,2\n"), (".svm", b"", b"1 1:2 2:3\n")])
def test_a_table_of_text_is_read_up_to_the_limit(tmp_path, ending, header, line, packing):
    path = tmp_path / f"rows{ending}{packing}"
    body = fill_up(line, LIMIT - len(header))
    path.write_bytes(PACK[packing](header + body))
    assert read_rows(path) == len(body) // len(line)
    path.write_bytes(PACK[packing](header + fill_up(line, 2**22)))
    with pytest.raises(TableError, match=f"{path.name} {REFUSAL}"):
        read_rows(path)


def test_a_header_without_end_is_refused(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"a" * 2**22))
    with pytest.raises(TableError, match=REFUSAL):
        open_table(path)


def test_an_npz_is_refused_by_the_size_of_its_arrays_before_they_are_read(tmp_path):
    path = tmp_path / "rows.npz"
    np.savez_compressed(path, X=np.zeros((100, 50)), y=np.zeros(100))
    assert read_rows(path) == 100
    np.savez_compressed(path, X=np.zeros((100, 50)), y=np.zeros(10_000))
    with pytest.raises(TableError, match=REFUSAL):
        open_table(path)
    with pytest.raises(DataFormatError, match=REFUSAL):
        read_compact(path, "X", "y")


@pytest.mark.parametrize("packing", PACK)
def test_a_file_of_a_data_set_is_read_up_to_the_limit(tmp_path, packing):
    path = tmp_path / f"rows{packing}"
    path.write_bytes(PACK[packing](bytes(LIMIT)))
    assert read_bytes(path) == bytes(LIMIT)
    path.write_bytes(PACK[packing](bytes(LIMIT + 1)))
    with pytest.raises(DataFormatError, match=f"{path.name} {REFUSAL}"):
        read_bytes(path)


@pytest.mark.parametrize("member", ["rows", "rows.gz"])
def test_a_member_of_a_zip_is_refused_also_where_it_is_compressed_itself(tmp_path, member):
    path, data = tmp_path / "all.zip", bytes(2**22)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, gzip.compress(data) if member.endswith(".gz") else data)
    with pytest.raises(DataFormatError, match=REFUSAL):
        read_bytes(path, member="rows")


def test_a_file_may_expand_by_a_factor_however_large_it_is(tmp_path):
    path = tmp_path / "rows.gz"
    noise = np.random.default_rng(0).bytes(LIMIT)
    path.write_bytes(gzip.compress(noise + bytes(LIMIT // 2)))
    assert len(read_bytes(path)) > LIMIT


def test_the_limit_is_the_larger_of_a_size_and_a_factor(monkeypatch):
    monkeypatch.undo()
    limits.check_unpacked(2**29, 1)
    limits.check_unpacked(512 * 2**24, 2**24)
    for n_unpacked, n_packed in ((2**29 + 1, 1), (512 * 2**24 + 1, 2**24)):
        with pytest.raises(limits.LimitError, match="at most"):
            limits.check_unpacked(n_unpacked, n_packed)
