"""A segmenter's tree looks at windows: what explains rows explains one window; what needs labelled rows says so."""

import numpy as np
import pytest

from crisptree import CrispSegmenter, CrispTreeClassifier, explain, export
from crisptree.data.raw_rows import Canvas, WindowView
from crisptree.plots import plot_tree
from crisptree.report import write

QUICK = {"window": 3, "max_depth": 2, "epochs": 2, "finetune_epochs": 2, "min_updates": 10, "random_state": 0}


@pytest.fixture(scope="module")
def scan():
    images = np.random.default_rng(0).normal(size=(2, 20, 22)).astype(np.float32)
    labels = (images < np.roll(images, 1, axis=2)).astype(int)
    return CrispSegmenter.from_flat(**QUICK).fit(images, labels), images, labels


def test_the_path_of_a_window_is_that_of_its_pixel(scan):
    model, images, _ = scan
    windows = np.asarray(Canvas.of([images[0][:, :, None]], WindowView(3, (1,), 1)).windows()[:])
    leaves = model.leaf_indices(images[0]).ravel()
    for pixel in (0, 57, 439):
        assert explain.path(model, windows[pixel]).leaf == leaves[pixel]
        assert explain.path(model, windows[pixel].reshape(3, 3)).leaf == leaves[pixel]
        change = explain.find_counterfactual(model, windows[pixel])
        assert change.predicted != model.predict(images[0]).ravel()[pixel]


@pytest.mark.parametrize(
    "changes", [{}, {"normalise_images": True}, {"scales": (1, 2)}, {"stages": 2}], ids=lambda changes: str(changes)
)
def test_a_pixel_of_an_image_is_explained_by_the_window_that_the_tree_sees(scan, changes):
    _, images, labels = scan
    images = 40 + 7 * images  # windows that are not normalised lie far from what a normalising model has seen
    model = CrispSegmenter.from_flat(**QUICK | changes).fit(images, labels)
    leaves, predicted = model.leaf_indices(images[1]), model.predict(images[1])
    for row, column in ((0, 0), (19, 21), (7, 12), (3, 20)):
        pixel = explain.Pixel(images[1], row, column)
        path = explain.path(model, pixel)
        assert path.leaf == leaves[row, column]
        assert path.predicted == predicted[row, column]
        assert explain.find_counterfactual(model, pixel).predicted != predicted[row, column]
    if changes:
        for ask in (explain.path, explain.find_counterfactual):
            with pytest.raises(ValueError, match=r"cannot be taken alone .* explain\.Pixel\(image, row, column\)"):
                ask(model, np.zeros(model.n_features_in_))


def test_a_pixel_must_lie_in_one_image_of_a_model_of_pixels(scan):
    model, images, labels = scan
    with pytest.raises(ValueError, match="`column` must lie between 0 and 21 for an image of 20 × 22; got 22"):
        explain.path(model, explain.Pixel(images[0], 3, 22))
    with pytest.raises(ValueError, match="`row` must be a whole number of at least 0; got -1"):
        explain.path(model, explain.Pixel(images[0], -1, 2))
    with pytest.raises(ValueError, match="`image` must be one image; got 2"):
        explain.path(model, explain.Pixel(images, 0, 0))
    rows = CrispTreeClassifier(max_depth=1, random_state=0).fit(images[0], labels[0, :, 0])
    with pytest.raises(TypeError, match=r"explain\.Pixel is for a segmenter or a pixel regressor"):
        explain.path(rows, explain.Pixel(images[0], 0, 0))


def test_its_tree_is_written_and_drawn(scan, tmp_path):
    model, images, _ = scan
    assert export.text(model).startswith("split 0, 880 rows: ")
    assert explain.feature_importances(model).sum() == pytest.approx(1)
    assert len(plot_tree(model, sample=images[0, :3, :3]).images) == 1 + model.tree_.structure.n_splits
    page = write(model, tmp_path / "page.html").read_text()
    assert "windows of 3 × 3" in page
    assert "with X and y" not in page
    assert page.count("A report of a segmenter has none.") == 2


def test_labelled_rows_need_a_classifier(scan, tmp_path):
    model, images, labels = scan
    for ask in (
        lambda: explain.attribute_errors(model, images, labels),
        lambda: write(model, tmp_path / "page.html", images, labels),
    ):
        with pytest.raises(TypeError, match="needs a classifier of rows; got a CrispSegmenter"):
            ask()


def test_entire_images_are_refused_as_windows(scan):
    model, images, _ = scan
    with pytest.raises(ValueError, match=r"x must be one row of 9 features or of shape \(3, 3\)"):
        explain.path(model, images[0])
