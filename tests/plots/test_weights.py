import numpy as np
import pytest
from matplotlib.figure import Figure

from crisptree.plots import plot_weights
from crisptree.plots.style import LEFT, RIGHT
from tests.plots.models import module_model, random_model


def image_model(**changes):
    return random_model(n_features=12, depth=3, image_shape=(3, 4), **changes)


def pixels(ax):
    return np.asarray(ax.images[0].get_array())


def test_gray_images_use_the_full_range_and_diverging_ones_have_zero_in_the_middle():
    model = image_model()
    axes = plot_weights(model, [0, 2], style="both")
    assert axes.shape == (2, 2)
    for ax in axes[0]:
        assert (pixels(ax).min(), pixels(ax).max()) == (0, 1)
    low, high = axes[1, 1].images[0].get_clim()
    assert low == -high
    assert np.allclose(pixels(axes[1, 1]).ravel(), model.tree_.scaled_hyperplanes()[0][2])


def test_gray_is_a_linear_map_of_the_weights():
    model = image_model()
    weights = model.tree_.scaled_hyperplanes()[0][1]
    drawn = pixels(plot_weights(model, [1])[0, 0]).ravel()
    assert np.allclose(drawn, (weights - weights.min()) / np.ptp(weights))


def test_two_models_stand_one_below_the_other():
    smooth, rough = image_model(spatial_penalty=0.01), image_model(seed=1)
    axes = plot_weights(smooth, [0, 1], compare=rough)
    assert [ax.get_ylabel() for ax in axes[:, 0]] == ["spatial penalty 0.01", "no spatial penalty"]
    assert [ax.get_title() for ax in axes[0]] == ["split 0", "split 1"]
    assert not np.array_equal(pixels(axes[0, 0]), pixels(axes[1, 0]))
    named = plot_weights(smooth, [0], compare=rough, labels=["$a$", "b"])
    assert [ax.get_ylabel() for ax in named[:, 0]] == ["$a$", "b"]
    named[0, 0].figure.canvas.draw()


def test_the_eight_most_visited_splits_are_drawn_by_default():
    model = random_model(n_features=4, depth=5, image_shape=(2, 2))
    visits = model.tree_.statistics.node_counts[: model.tree_.structure.n_splits].sum(axis=1)
    titles = [int(ax.get_title().removeprefix("split ")) for ax in plot_weights(model)[0]]
    assert len(titles) == 8
    assert visits[titles].min() >= np.delete(visits, titles).max()


def test_tabular_weights_are_signed_bars_with_names():
    model = random_model(n_features=20, depth=1)
    weights = model.tree_.weight[0] * model.tree_.statistics.scaling.spread
    ax = plot_weights(model, feature_names=[f"$f_{j}$" for j in range(20)])[0, 0]
    ax.figure.canvas.draw()
    largest = np.argsort(-np.abs(weights))[:8]
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"$f_{j}$" for j in largest]
    assert np.allclose([bar.get_width() for bar in ax.patches], weights[largest])
    colors = [RIGHT if weight > 0 else LEFT for weight in weights[largest]]
    assert all(bar.get_facecolor() == pytest.approx(rgba(color)) for bar, color in zip(ax.patches, colors, strict=True))


def rgba(color):
    from matplotlib.colors import to_rgba

    return to_rgba(color)


@pytest.mark.parametrize("shape", [(2, 2, 1), (2, 2, 2), (2, 2, 3)])
@pytest.mark.parametrize("style", ["gray", "diverging", "both"])
def test_channels_of_every_number_can_be_drawn(shape, style):
    model = random_model(n_features=int(np.prod(shape)), image_shape=shape)
    plot_weights(model, style=style)[0, 0].figure.canvas.draw()


def test_one_leaf_is_drawn_with_a_note():
    axes = plot_weights(random_model(depth=0))
    assert axes[0, 0].texts[0].get_text() == "one leaf, no splits"


def test_given_axes_are_used():
    axes = Figure().subplots(1, 2)
    assert plot_weights(image_model(), [0, 1], axes).ravel().tolist() == list(axes)
    with pytest.raises(ValueError, match="`axes` must be 1 × 3 axes; got 2"):
        plot_weights(image_model(), [0, 1, 2], axes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"style": "color"}, "`style` must be one of gray, diverging, both; got 'color'"),
        ({"nodes": [0, 99]}, r"`nodes` must be numbers of splits, 0 … 6; got \[99\]"),
        ({"nodes": []}, "`nodes` must be a list of numbers of splits"),
        ({"nodes": [1.7]}, "`nodes` must be a list of numbers of splits"),
        ({"nodes": 0}, "`nodes` must be a list of numbers of splits"),
        ({"labels": ["a", "b"]}, "`labels` must name the 1 models"),
        ({"compare": random_model(n_features=3)}, "`compare` must be a model of the same features"),
    ],
)
def test_wrong_arguments_are_refused(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        plot_weights(image_model(), **changes)


def test_modules_have_no_weights_to_draw():
    with pytest.raises(ValueError, match="plot_weights needs linear splits; the splits of this tree are modules"):
        plot_weights(module_model())
