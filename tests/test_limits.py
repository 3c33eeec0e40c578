"""One policy for all readers: what asks for too much is refused before memory is taken for it."""

import bz2
import gzip
import io
import os
import threading
import tracemalloc
import zipfile

import numpy as np
import pytest

import crisptree
from crisptree import ModelFileError, TrainingOptions, limits
from crisptree.datasets.catalog import DataFormatError
from crisptree.datasets.files import read_bytes, read_compact, read_images
from crisptree.datasets.loaders import read_idx
from crisptree.encoding.column_values import TableError
from crisptree.encoding.preprocessing import Column, Preprocessing, RowEncoder
from crisptree.encoding.table_files import open_table
from crisptree.encoding.target_column import read_labels
from crisptree.pipeline.pixels import check_window_reach
from crisptree.structure import TreeStructure
from tests.toys import clouds, plain_tree

MEGABYTE = 2**20
READERS = {
    "x.crisp": (crisptree.load, ModelFileError),
    "x.csv": (open_table, TableError),
    "x.csv.gz": (open_table, TableError),
    "x.parquet": (open_table, TableError),
    "x.npz": (open_table, TableError),
    "x.libsvm": (open_table, TableError),
    "x-idx1-ubyte": (read_idx, DataFormatError),
    "x.bz2": (read_bytes, DataFormatError),
    "compact.npz": (lambda path: read_compact(path, "X"), DataFormatError),
    "x.tif": (read_images, DataFormatError),
}


class peak:
    """The bytes that Python and NumPy took in the block beyond those before."""

    def __enter__(self):
        tracemalloc.start()
        return self

    def __exit__(self, *_):
        self.bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()


def npy(shape, dtype="<f8"):
    sink = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(sink, header)
    return sink.getvalue()


def archive(path, **members):
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


def whole_table(path):
    source = open_table(path)
    columns = tuple(Column(name, "number") for name in source.features([source.target]))
    return RowEncoder(Preprocessing(columns, named=False), source, without=["y"]).encode_all()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes in folders")
@pytest.mark.parametrize("name", READERS)
def test_only_regular_files_are_opened(tmp_path, name):
    read, error = READERS[name]
    os.mkfifo(tmp_path / name)
    answers = []

    def ask():  # in a thread: a reader that opens the pipe waits for ever
        try:
            read(tmp_path / name)
        except Exception as raised:
            answers.append(raised)

    waiting = threading.Thread(target=ask, daemon=True)
    waiting.start()
    waiting.join(300)
    assert isinstance(answers[0], error)
    assert "must be a regular file" in str(answers[0])
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(error, match="must be a regular file"):
        read(tmp_path / name)


@pytest.mark.parametrize("name", READERS)
def test_a_sparse_file_of_five_gigabytes_is_refused_at_once(tmp_path, name):
    read, error = READERS[name]
    with (tmp_path / name).open("wb") as file:
        file.truncate(5 * 10**9)
    with peak() as taken, pytest.raises(error, match=r"5,000,000,000 bytes, more than the limit of 4,294,967,296"):
        read(tmp_path / name)
    assert taken.bytes < 8 * MEGABYTE


def test_a_short_libsvm_file_of_wide_rows_is_refused_before_they_are_made_dense(tmp_path):
    (tmp_path / "x.libsvm").write_text("1 262144:1\n" * 600)  # 6 KB; 600 × 262,144 values were to follow
    with peak() as taken, pytest.raises(TableError, match=r"x\.libsvm has 262,144 columns, .* the limit of 65,536"):
        open_table(tmp_path / "x.libsvm")
    assert taken.bytes < 64 * MEGABYTE
    (tmp_path / "x.libsvm").write_text("1 65000:1\n" * 2_100)
    with peak() as taken, pytest.raises(TableError, match=r"stands for 2,100 rows × 65,000 columns, more than the 536"):
        open_table(tmp_path / "x.libsvm")
    assert taken.bytes < 64 * MEGABYTE


def test_wide_libsvm_rows_are_made_dense_a_few_at_a_time(tmp_path):
    (tmp_path / "x.libsvm").write_text("1 50000:1\n" * 100)
    source = open_table(tmp_path / "x.libsvm")
    sizes = [batch.num_rows for batch in source.raw_batches(["x49999", "y"])]
    assert sizes == [64, 36]


@pytest.mark.parametrize("shape", [(0, 10**18), (10**18, 0), (10**6, 10**6), (2**40,)])
def test_an_npz_that_claims_more_than_it_may_become_is_refused(tmp_path, shape):
    path = archive(tmp_path / "x.npz", X=npy(shape), y=npy((3,)))
    with pytest.raises(TableError, match=r"x\.npz says that its arrays hold [\d,]+ bytes"):
        open_table(path)
    with pytest.raises(DataFormatError, match=r"x\.npz says that its arrays hold [\d,]+ bytes"):
        read_compact(path, "X", "y")


def test_no_rows_of_many_columns_are_refused(tmp_path):
    path = archive(tmp_path / "x.npz", X=npy((0, 300_000), "|u1"))
    with pytest.raises(TableError, match=r"has 300,000 columns, .* more than the limit of 65,536"):
        open_table(path)


def test_a_table_of_very_many_named_columns_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text(",".join(f"c{number}" for number in range(70_000)) + "\n")
    with pytest.raises(TableError, match=r"has 69,999 columns, .* more than the limit of 65,536"):
        open_table(tmp_path / "x.csv")


def zeros_compressed(n_codes):
    """Unix ``compress`` of zeros: the code of every new entry, used before it is written, in groups of eight."""
    out, width, code, group = bytearray(b"\x1f\x9d\x90"), 9, 256, [0]
    for _ in range(n_codes):
        code += 1
        if code >= 1 << width and width < 16:
            bits = sum(one << place * width for place, one in enumerate(group))
            out += bits.to_bytes(width, "little") if group else b""
            width, group = width + 1, []
        group.append(code)
        if len(group) == 8:
            out += sum(one << place * width for place, one in enumerate(group)).to_bytes(width, "little")
            group = []
    return bytes(out)


BOMBS = {
    "x.bz2": bz2.compress(bytes(64 * MEGABYTE)),
    "x.gz": gzip.compress(bytes(64 * MEGABYTE)),
    "x.Z": zeros_compressed(6_000),
}


@pytest.mark.parametrize("name", BOMBS)
def test_decompression_of_a_small_file_stops_at_the_limit(tmp_path, name):
    (tmp_path / name).write_bytes(BOMBS[name])
    with (
        limits.changed(unpacked_bytes=8 * MEGABYTE),
        peak() as taken,
        pytest.raises(DataFormatError, match=rf"x\{name[1:]} unpacks to more than"),
    ):
        read_bytes(tmp_path / name)
    assert taken.bytes < 40 * MEGABYTE


def test_decompression_of_a_zip_member_stops_at_the_limit(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("rows.data", bytes(64 * MEGABYTE))
        file.writestr("inner.data.bz2", BOMBS["x.bz2"])
    for member in ("rows.data", "inner.data"):
        with (
            limits.changed(unpacked_bytes=8 * MEGABYTE),
            peak() as taken,
            pytest.raises(DataFormatError, match=r"x\.zip unpacks to more than"),
        ):
            read_bytes(tmp_path / "x.zip", member)
        assert taken.bytes < 40 * MEGABYTE


@pytest.mark.parametrize("text", [b"a" * 32 * MEGABYTE, b"a,y\n" + b"1,2\n" * 8 * MEGABYTE], ids=["a line", "rows"])
def test_decompression_of_a_table_stops_at_the_limit(tmp_path, text):
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(text, 1))
    with limits.changed(unpacked_bytes=8 * MEGABYTE, unpacked_ratio=1), peak() as taken:  # noqa: SIM117
        with pytest.raises(TableError, match=r"x\.csv\.gz (unpacks to|begins with a line of) more than"):
            read_labels(open_table(tmp_path / "x.csv.gz"), "y")
    assert taken.bytes < 64 * MEGABYTE


def test_reading_an_endless_line_stops_at_the_limit(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"a" * 4 * MEGABYTE)
    with (
        limits.changed(line_bytes=MEGABYTE),
        pytest.raises(TableError, match=r"x\.csv begins with a line of more than 1,048,576 bytes"),
    ):
        open_table(tmp_path / "x.csv")


def test_a_parquet_that_claims_many_rows_is_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"a": np.zeros(2_000_000, dtype=np.int64), "y": np.zeros(2_000_000, dtype=np.int64)})
    parquet.write_table(table, tmp_path / "x.parquet")  # a few kilobytes
    with limits.changed(unpacked_bytes=8 * MEGABYTE), pytest.raises(TableError, match="2,000,000 rows × 2 columns"):
        open_table(tmp_path / "x.parquet")


@pytest.mark.parametrize("kind", ["pages", "pixels"])
def test_an_image_file_of_many_pages_or_pixels_is_refused_before_they_are_read(tmp_path, kind):
    image = pytest.importorskip("PIL.Image")
    page = image.new("L", (4, 4) if kind == "pages" else (4000, 4000))
    page.save(tmp_path / "x.tif", save_all=True, append_images=[page] * 3, compression="tiff_deflate")
    bounds, said = {"pages": ({"pages": 3}, "has 4 pages"), "pixels": ({"unpacked_bytes": 20 * 10**6}, "hold 32,000")}[
        kind
    ]
    with limits.changed(**bounds), pytest.raises(DataFormatError, match=said):
        read_images(tmp_path / "x.tif")
    assert len(read_images(tmp_path / "x.tif")) == 4


def chained(n_splits):
    return TreeStructure([*(~leaf for leaf in range(n_splits))], [*range(1, n_splits), ~n_splits])


def chained_model(n_splits):
    """A tree in which every left child is a leaf, by the arrays of a stump repeated."""
    X, y = clouds(60, n_features=2, n_classes=2)
    model = plain_tree(max_depth=1, epochs=1, finetune_epochs=0, random_state=0).fit(X, y)
    tree, structure = model.tree_, chained(n_splits)
    nodes = np.zeros(structure.n_nodes, dtype=np.int64)
    statistics = tree.statistics
    zeros, table = np.zeros(n_splits), np.full((n_splits + 1, 2), 0.5)
    parts = {"gain": zeros, "score_mean": zeros, "score_spread": zeros, "soft_leaves": table}
    kept = {name: getattr(statistics, name) for name in ("scaling", "steepness", "shrinkage")}
    statistics = type(statistics)(node_counts=statistics.node_counts[nodes], **parts, **kept)
    weight, bias = np.zeros((n_splits, 2), dtype=np.float32), np.full(n_splits, 1, dtype=np.float32)
    model.tree_ = model.greedy_tree_ = type(tree)(structure, table, statistics, weight=weight, bias=bias)
    return model, X


def test_the_path_through_a_chain_of_thirty_thousand_splits_takes_its_own_length():
    model, X = chained_model(30_000)
    with peak() as taken:
        visited = model.decision_path(X[:3])
    assert visited.sum(axis=1).ravel().tolist() == [[30_001] * 3] or visited.sum() == 3 * 30_001
    assert taken.bytes < 64 * MEGABYTE


def test_a_file_with_a_chain_of_splits_is_refused(tmp_path):
    model, X = chained_model(2_000)
    model.save(tmp_path / "x.crisp")
    with pytest.raises(ModelFileError, match=r"x\.crisp holds a tree of depth 2,000, more than the limit of 1,000"):
        crisptree.load(tmp_path / "x.crisp")
    with limits.changed(depth=2_000):
        assert np.array_equal(crisptree.load(tmp_path / "x.crisp").leaf_indices(X), model.leaf_indices(X))


def test_a_segmenter_of_enormous_scales_is_refused_by_its_file_and_by_fit(tmp_path):
    from tests.persistence.test_model_file import rewritten, set_header

    image = np.random.default_rng(0).normal(size=(12, 12))
    model = crisptree.CrispSegmenter(
        window=1, scales=(1,), max_depth=1, training=TrainingOptions(epochs=1, finetune_epochs=0), random_state=0
    )
    model.fit(image, image > 0).save(tmp_path / "x.crisp")
    change = set_header("sections", "estimator", "parameters", "scales", value=[10**9])
    path = rewritten(tmp_path / "x.crisp", tmp_path / "y.crisp", change)
    with pytest.raises(ModelFileError, match=r"y\.crisp.* window × scale is 1,000,000,000 pixels"):
        crisptree.load(path)
    with pytest.raises(ValueError, match="window × scale is 1,000,000,000 pixels"):
        model.set_params(scales=(10**9,)).fit(image, image > 0)
    check_window_reach(31, (1, 4))


def test_total_length_of_feature_names_is_limited():
    content = {"version": 1, "named": True, "missing": [], "target": None, "left_out": {}}
    content["columns"] = [{"name": "n" * 10**6, "kind": "category", "categories": [str(n) for n in range(10**4)]}]
    arrays = {"mean": np.array([np.nan]), "missing": np.array([0], dtype=np.uint8)}
    with pytest.raises(limits.LimitError, match="names of 10,002,000,000 letters"):
        Preprocessing.from_section(content, arrays)


def test_limits_are_changed_for_a_block_and_by_the_environment(monkeypatch):
    monkeypatch.setenv("CRISPTREE_LIMIT_PAGES", "7")
    assert limits.current().pages == 7
    with limits.changed(pages=9) as here:
        assert here.pages == limits.current().pages == 9
    assert limits.current().pages == 7
    monkeypatch.setenv("CRISPTREE_LIMIT_PAGES", "many")
    with pytest.raises(ValueError, match="CRISPTREE_LIMIT_PAGES must be a whole number; got 'many'"):
        limits.current()


@pytest.mark.parametrize(("change", "error"), [({"pagse": 3}, TypeError), ({"pages": 0}, ValueError)])
def test_an_invalid_limit_is_rejected(change, error):
    with pytest.raises(error, match="limit"), limits.changed(**change):
        limits.current()


def test_the_error_names_the_limit_and_how_to_raise_it(tmp_path):
    (tmp_path / "x.csv").write_text("a,y\n1,2\n")
    with limits.changed(file_bytes=4), pytest.raises(TableError, match="CRISPTREE_LIMIT_FILE_BYTES=8"):
        open_table(tmp_path / "x.csv")
