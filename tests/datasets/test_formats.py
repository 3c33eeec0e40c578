import gzip
import io
import zipfile

import numpy as np
import pytest

from crisptree.datasets import DataFormatError
from crisptree.datasets.files import read_bytes, read_compact, read_stack
from crisptree.datasets.loaders import read_idx, read_libsvm_file
from tests.datasets.writers import compress, write_idx, write_libsvm


def zipped(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize("name", ["array-idx3-ubyte", "array-idx3-ubyte.gz"])
def test_an_idx_file_gives_its_array(tmp_path, name):
    array = np.random.default_rng(0).integers(0, 256, (4, 3, 2))
    write_idx(tmp_path / name, array)
    assert np.array_equal(read_idx(tmp_path / name), array)


def test_an_idx_file_that_is_cut_short_or_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "labels"
    write_idx(path, [1, 2, 3])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataFormatError, match=r"must hold 11 bytes for an array of shape \(3,\); it holds 10"):
        read_idx(path)
    path.write_bytes(b"\x00\x00\x0d\x01")
    with pytest.raises(DataFormatError, match="must begin with 00 00 08"):
        read_idx(path)


def test_a_damaged_archive_is_refused_by_its_name(tmp_path):
    for ending in (".gz", ".bz2", ".Z", ".zip"):
        path = tmp_path / f"labels{ending}"
        path.write_bytes(b"not what it says")
        with pytest.raises(DataFormatError, match=f"labels{ending}"):
            read_bytes(path, member="labels")
    path = tmp_path / "short.gz"
    path.write_bytes(gzip.compress(bytes(1000))[:-9])
    with pytest.raises(DataFormatError, match="Download it again"):
        read_bytes(path)


def test_a_member_of_a_zip_is_read_from_any_folder(tmp_path):
    path = zipped(tmp_path / "a.zip", **{"readme": b"no", "deep/rows.data.Z": compress(b"1,2,3")})
    assert read_bytes(path, member="rows.data") == b"1,2,3"
    with pytest.raises(DataFormatError, match=r"no other\.data in it, only readme, deep/rows\.data\.Z"):
        read_bytes(path, member="other.data")


def test_a_file_of_unix_compress_is_unpacked_by_gzip_and_without_it_refused(tmp_path, monkeypatch):
    rows = np.random.default_rng(0).choice([b"b,", b"o,", b"x,", b"win\n"], 60_000, p=[0.6, 0.2, 0.15, 0.05])
    path, text = tmp_path / "rows.Z", b"".join(rows)
    path.write_bytes(compress(text))
    assert read_bytes(path) == text
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataFormatError, match=r"rows\.Z: a \.Z file needs the gzip program"):
        read_bytes(path)


@pytest.mark.parametrize("pair", ["{}:{:.2f}", "  {}: {:.2f}"], ids=["plain", "with spaces"])
@pytest.mark.parametrize("name", ["rows", "rows.bz2"])
def test_libsvm_text_gives_dense_rows(tmp_path, name, pair):
    X = np.array([[0, 0.5, 0], [1, 0, 0.25], [0, 0, 0]])
    write_libsvm(tmp_path / name, X, [2, 0, 1], pair)
    rows, labels = read_libsvm_file(tmp_path / name, 3)
    assert np.array_equal(rows, X)
    assert rows.dtype == np.float32
    assert labels.tolist() == [2, 0, 1]


@pytest.mark.parametrize(
    "text", [b"1 4:1\n", b"1 2:one\n", b"1 2:\n", b"0.5 1:1\n", b"1 0:1\n", b"1 1:nan\n", b"<html>"]
)
def test_libsvm_text_that_is_wrong_is_refused_by_its_name(tmp_path, text):
    (tmp_path / "rows.t").write_bytes(text)
    with pytest.raises(DataFormatError, match=r"rows\.t"):
        read_libsvm_file(tmp_path / "rows.t", 3)


def test_a_compact_file_must_hold_the_requested_arrays(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.zeros(3), y=np.ones(3))
    assert [array.sum() for array in read_compact(tmp_path / "a.npz", "y", "X")] == [3, 0]
    with pytest.raises(DataFormatError, match="must hold the arrays X, y_train; it holds X, y"):
        read_compact(tmp_path / "a.npz", "X", "y_train")


@pytest.mark.parametrize("data", [b"", b"garbage", b"PK\x03\x04 cut"])
def test_a_compact_file_that_is_damaged_is_refused(tmp_path, data):
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(DataFormatError, match=r"a\.npz is damaged"):
        read_compact(tmp_path / "a.npz", "X")


def test_a_compact_file_cannot_run_code(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.array([{}], dtype=object))
    with pytest.raises(DataFormatError, match="damaged"):
        read_compact(tmp_path / "a.npz", "X")


def read_tif(data, shown):
    return read_stack(io.BytesIO(data), shown)


class TestStacks:
    @pytest.fixture
    def pillow(self):
        return pytest.importorskip("PIL.Image")

    @pytest.fixture
    def stack(self):
        return np.random.default_rng(0).integers(0, 256, (12, 5, 4), dtype=np.uint8)

    @staticmethod
    def tif(pillow, stack):
        pages, file = [pillow.fromarray(page) for page in stack], io.BytesIO()
        pages[0].save(file, format="TIFF", save_all=True, append_images=pages[1:])
        return file.getvalue()

    def test_a_tif_gives_all_its_pages(self, pillow, stack):
        assert np.array_equal(read_tif(self.tif(pillow, stack), "a.tif"), stack)

    def test_a_tif_of_two_colours_gives_0_and_255(self, pillow):
        page = np.array([[True, False], [False, True]])
        assert np.array_equal(read_tif(self.tif(pillow, [page]), "a.tif"), [np.where(page, 255, 0)])

    def test_other_files_are_refused(self, pillow, stack, tmp_path):
        with pytest.raises(DataFormatError, match=r"a\.tif is damaged"):
            read_tif(b"no picture", "a.tif")
        with pytest.raises(DataFormatError, match="is damaged"):
            read_tif(self.tif(pillow, stack)[:700], "a.tif")
        with pytest.raises(DataFormatError, match="must hold grey images of 8 bits"):
            read_tif(self.tif(pillow, np.zeros((1, 4, 4, 3), np.uint8)), "a.tif")

    def test_without_pillow_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "PIL", None)
        with pytest.raises(ModuleNotFoundError, match=r"crisptree\[images\]"):
            read_tif(b"", "a.tif")
