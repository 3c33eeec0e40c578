"""What the pages of exports say of MNIST: real data, minutes."""

import os
from pathlib import Path

import numpy as np
import pytest

from crisptree import export
from crisptree.export import Portable
from crisptree.export.c99.header import DeviceCost, make_header
from crisptree.export.c99.quantization import quantize
from tests.export import programs
from tests.toys import plain_tree

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def mnist():
    if "CRISPTREE_DATA" not in os.environ:
        pytest.skip("CRISPTREE_DATA must name the folder of mnist.npz")
    with np.load(Path(os.environ["CRISPTREE_DATA"]) / "mnist.npz") as data:
        X, X_test = (data[name].reshape(-1, 784).astype(np.float32) for name in ("X_train", "X_test"))
        y = data["y_train"]
    quick = {
        "max_depth": 8,
        "epochs": 2,
        "finetune_epochs": 2,
        "batch_size": 1000,
        "scale": "global",
        "random_state": 0,
    }
    return plain_tree(**quick).fit(X, y), X_test


def test_single_precision_and_graphs_reach_every_leaf(mnist):
    model, X = mnist
    found = export.check(model, X, "c")
    assert found.equal_leaves == found.rows == 10_000
    for form in ("ensemble", "paths"):
        found = export.check(model, X, "onnx", form=form)
        assert found.holds
        assert found.near <= 50


@pytest.mark.parametrize(("precision", "most"), [("int8", 0.01), ("int16", 0.001)])
def test_quantization_changes_few_classes(mnist, precision, most):
    model, X = mnist
    assert export.check(model, X, "c", integer=precision).changed <= most


def test_one_byte_a_weight_fits_a_small_machine_that_gets_the_same_classes(mnist, tmp_path):
    model, X = mnist
    portable = Portable.of(model)
    header, trees = make_header(portable, "model", "int8", "auto"), quantize(portable, "int8")
    assert DeviceCost.of(portable, header).flash <= 210_000
    if not programs.shutil.which("arm-none-eabi-gcc"):
        pytest.skip("needs arm-none-eabi-gcc")
    said = programs.on_a_microbit(export.c(model, integer="int8"), trees.inputs(X[:40]), tmp_path)
    if said is not None:
        np.testing.assert_array_equal(said, trees.classes(trees.route(X[:40])))
