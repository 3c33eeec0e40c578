"""What a regressor of pixels offers beside its maps: that of a segmenter, with means and spreads for classes."""

import json

import numpy as np
import pytest

import crisptree
from crisptree import CrispPixelRegressor, explain, export
from crisptree.data.raw_rows import Canvas, WindowView
from crisptree.export import ExportError, Portable
from crisptree.plots import plot_tree
from crisptree.report import write

QUICK = {"window": 3, "max_depth": 2, "epochs": 2, "finetune_epochs": 2, "min_updates": 10, "random_state": 0}


@pytest.fixture(scope="module")
def scan():
    images = np.random.default_rng(0).normal(size=(2, 20, 22)).astype(np.float32)
    targets = images - np.roll(images, 1, axis=2)
    windows = np.asarray(Canvas.of([images[0][:, :, None]], WindowView(3, (1,), 1)).windows()[:])
    return CrispPixelRegressor.from_flat(**QUICK, stages=1).fit(images, targets), images, targets, windows


def test_the_path_of_a_window_is_that_of_its_pixel(scan):
    model, images, _, windows = scan
    leaves, found = model.leaf_indices(images[0]).ravel(), model.predict(images[0]).ravel()
    for pixel in (0, 57, 439):
        assert explain.path(model, windows[pixel].reshape(3, 3)).leaf == leaves[pixel]
    lowest = int(found.argmin())
    assert explain.find_counterfactual(model, windows[lowest], by=0.1).predicted >= found[lowest] + 0.1


def test_its_tree_is_written_and_drawn(scan, tmp_path):
    model, images, targets, windows = scan
    assert export.text(model).startswith("split 0, 880 rows: ")
    assert explain.feature_importances(model).sum() == pytest.approx(1)
    assert len(plot_tree(model, sample=images[0, :3, :3]).images) == 1 + model.tree_.structure.n_splits
    page = write(model, tmp_path / "page.html", windows, targets[0].ravel()).read_text()
    assert "R²" in page


def test_functions_for_classification_refuse_regression(scan):
    model, images, targets, _ = scan
    with pytest.raises(TypeError, match="regression model"):
        explain.attribute_errors(model, images, targets)


def test_exports_keep_it_in_json_and_refuse_the_rest_with_a_reason(scan, tmp_path):
    model, images, _, _ = scan
    (tmp_path / "x.json").write_text(export.json(model))
    assert json.loads((tmp_path / "x.json").read_text())
    assert np.array_equal(crisptree.load(tmp_path / "x.json").predict(images), model.predict(images))
    for target in ("c", "onnx", "js", "sql"):
        with pytest.raises(ExportError, match="windows that must be cut out of images first"):
            export.write(model, target)
    values = Portable.of(CrispPixelRegressor.from_flat(**QUICK, stages=2).fit(images[:1], images[:1]))
    assert (values.takes_images, values.classes, values.n_outputs) == (True, (), 1)
