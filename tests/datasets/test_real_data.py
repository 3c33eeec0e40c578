"""The loaders on the real files: slow, and only where CRISPTREE_DATA says that they are."""

import os

import numpy as np
import pytest

from crisptree.datasets import LOADERS
from crisptree.datasets.catalog import find
from crisptree.datasets.loaders import CELL
from tests.datasets.test_loaders import parts, same
from tests.datasets.writers import compress, write_mnist

pytestmark = pytest.mark.slow

SHAPES = {
    "mnist": [(48000, 784), (12000, 784), (10000, 784)],
    "fashion_mnist": [(48000, 784), (12000, 784), (10000, 784)],
    "connect4": [(43236, 126), (10809, 126), (13512, 126)],
    "sensit": [(63058, 100), (15765, 100), (19705, 100)],
    "protein": [(14895, 357), (2871, 357), (6621, 357)],
    "usps": [(5832, 256), (1459, 256), (2007, 256)],
    "letter": [(12800, 16), (3200, 16), (4000, 16)],
    "isbi": [(20, 512, 512), (5, 512, 512), (5, 512, 512)],
}


def compact(name):
    """The data set, and the arrays of its .npz."""
    found = find(name) if os.environ.get("CRISPTREE_DATA") else None
    if found is None or found.form != "npz":
        pytest.skip(f"CRISPTREE_DATA does not name a folder with the .npz of {name}")
    with np.load(found.paths[0]) as arrays:
        return LOADERS[name](), dict(arrays)


@pytest.mark.parametrize("name", SHAPES)
def test_the_real_data_has_the_published_shape(name):
    if not os.environ.get("CRISPTREE_DATA") or find(name) is None:
        pytest.skip(f"CRISPTREE_DATA does not name a folder with {name}")
    data = LOADERS[name]()
    assert [X.shape for X in parts(data, "X")] == SHAPES[name]
    for X, y in zip(parts(data, "X"), parts(data, "y"), strict=True):
        assert X.dtype == np.float32
        assert np.isfinite(X).all()
        assert set(np.unique(y)) == set(range(len(data.class_names)))


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist"])
def test_the_publishers_idx_files_give_the_same_as_the_compact_file(name, tmp_path):
    data, arrays = compact(name)
    order = ("X_train", "y_train", "X_test", "y_test")
    write_mnist(tmp_path / name, *(arrays[part] for part in order), ending="")
    assert same(LOADERS[name](tmp_path), data)


def test_the_publishers_connect4_gives_the_same_as_the_compact_file(tmp_path):
    data, arrays = compact("connect4")
    ends = ("draw", "loss", "win")
    rows = zip(arrays["X"].tolist(), arrays["y"].tolist(), strict=True)
    text = "".join(",".join([*("box"[cell] for cell in cells), ends[end]]) + "\n" for cells, end in rows).encode()
    (tmp_path / "connect-4.data.Z").write_bytes(compress(text))
    assert same(LOADERS["connect4"](tmp_path), data)


def test_the_publishers_isbi_stacks_give_the_same_as_the_compact_file(tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    data, arrays = compact("isbi")
    assert np.array_equal(np.concatenate(parts(data, "y")), arrays["y_train"] == CELL)
    for name, stack in (("train-volume.tif", arrays["X_train"]), ("train-labels.tif", arrays["y_train"])):
        pages = [pillow.fromarray(page) for page in stack]
        pages[0].save(tmp_path / name, save_all=True, append_images=pages[1:])
    assert same(LOADERS["isbi"](tmp_path), data)
