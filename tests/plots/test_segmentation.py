import numpy as np
import pytest
from matplotlib.figure import Figure

from crisptree import CrispSegmenter, TrainingOptions
from crisptree.plots import plot_pixel_regression, plot_segmentation, plot_tree

RNG = np.random.default_rng(0)
GREY, LEAVES, CHANCE = RNG.random((12, 16)), RNG.random((12, 16)), RNG.random((12, 16))
TRUTH = GREY > 0.5


@pytest.mark.parametrize("channels", [None, 1, 2, 3, 5])
def test_four_panels_show_their_arrays(channels):
    image = GREY if channels is None else RNG.random((12, 16, channels)) * 255
    axes = plot_segmentation(image, TRUTH, LEAVES, CHANCE, class_name="$x_1$ <b>")
    assert [ax.get_title() for ax in axes] == ["image", "ground truth", "p($x_1$ <b>)", "leaf affiliation"]
    shown = [np.asarray(ax.images[0].get_array()) for ax in axes]
    assert np.allclose(shown[3], LEAVES)
    assert np.allclose(shown[2], 1 - CHANCE)  # darker is likelier
    axes[0].figure.canvas.draw()


def test_without_truth_three_panels_are_left():
    axes = Figure().subplots(1, 3)
    drawn = plot_segmentation(GREY, None, LEAVES, CHANCE, axes, titles=False)
    assert list(drawn) == list(axes)
    assert drawn[0].get_title() == ""


def test_labels_may_be_words():
    axes = plot_segmentation(GREY, np.where(TRUTH, "cell", "membrane"), LEAVES, CHANCE)
    assert set(np.unique(axes[1].images[0].get_array())) == {0, 1}


def test_panels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="the image's"):
        plot_segmentation(GREY, TRUTH, LEAVES[1:], CHANCE)
    with pytest.raises(ValueError, match="draw one class"):
        plot_segmentation(GREY, TRUTH, LEAVES, np.stack([CHANCE, CHANCE, CHANCE], axis=2))
    with pytest.raises(ValueError, match="`image` must be"):
        plot_segmentation(GREY[None, None], TRUTH, LEAVES, CHANCE)
    with pytest.raises(ValueError, match="one for each panel"):
        plot_segmentation(GREY, TRUTH, LEAVES, CHANCE, Figure().subplots(1, 3))


def test_the_splits_of_a_segmenter_are_drawn_as_windows():
    model = CrispSegmenter(
        window=5, max_depth=2, training=TrainingOptions(epochs=1, finetune_epochs=0, min_updates=1), random_state=0
    )
    model.fit(GREY, TRUTH)
    assert len(plot_tree(model).images) == model.tree_.structure.n_splits


def test_true_and_predicted_values_share_one_gray_scale():
    truth = np.where(GREY > 0.9, np.nan, 10 * GREY)
    axes = plot_pixel_regression(GREY, truth, LEAVES, 20 * CHANCE, name="depth")
    assert [ax.get_title() for ax in axes] == ["image", "ground truth", "leaf affiliation", "depth"]
    assert axes[1].images[0].get_clim() == axes[3].images[0].get_clim() == (np.nanmin(truth), np.nanmax(truth))
    assert np.allclose(axes[3].images[0].get_array(), 20 * CHANCE)
    alone = plot_pixel_regression(GREY, None, LEAVES, CHANCE)
    assert alone[2].images[0].get_clim() == (CHANCE.min(), CHANCE.max())
    with pytest.raises(ValueError, match="Of several outputs draw one"):
        plot_pixel_regression(GREY, truth, LEAVES, np.stack([CHANCE, CHANCE], axis=2))
