import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

from crisptree.plots import class_colors, plot_regions
from tests.plots.models import FIGURE_1_CLASSES, FIGURE_1_ROWS, figure_1, module_model, random_model
from tests.plots.reading import texts
from tests.toys import plain_tree

LABELS = np.array(["blue", "red"])[FIGURE_1_CLASSES]
UNIT = (0.0, 1.0, 0.0, 1.0)


def collection(ax, kind, label):
    return next(c for c in ax.collections if isinstance(c, kind) and c.get_label() == label)


def test_it_draws_on_axes_and_returns_them():
    ax = Figure().subplots()
    assert plot_regions(figure_1(), FIGURE_1_ROWS, LABELS, ax) is ax


def test_every_leaf_is_a_cell_in_the_mixture_of_its_classes():
    model = figure_1()
    found = collection(plot_regions(model, FIGURE_1_ROWS, bounds=UNIT), PolyCollection, "cells")
    colors = class_colors(2)[:, :3]
    assert len(found.get_paths()) == 5
    for leaf, paint in enumerate(found.get_facecolors()):
        assert np.allclose(paint[:3], 0.45 * model.tree_.leaves[leaf] @ colors + 0.55)


def test_hyperplanes_are_clipped_and_leaves_have_letters():
    ax = plot_regions(figure_1(), FIGURE_1_ROWS, LABELS, hyperplanes=True, bounds=UNIT)
    segments = collection(ax, LineCollection, "splits").get_segments()
    assert len(segments) == 4
    assert np.allclose(segments[3][:, 0], 0.3)
    assert segments[3][:, 1].min() > 0.5  # split 3 ends at the line of split 1
    assert {"A", "B", "C", "D", "E", "0", "1", "2", "3"} == set(texts(ax))


def test_a_steeper_surface_is_nearer_to_the_hard_one():
    model, rows = figure_1(), FIGURE_1_ROWS
    surfaces = [
        np.asarray(plot_regions(model, rows, steepness=steepness, resolution=40).images[0].get_array())
        for steepness in (1.0, 10.0, 1e4)
    ]
    far = [np.abs(surface - surfaces[-1]).mean() for surface in surfaces]
    assert far[0] > far[1] > 0
    assert len(np.unique(surfaces[-1].round(3).reshape(-1, 3), axis=0)) < 40  # nearly as few colours as leaves
    assert len(np.unique(surfaces[0].round(3).reshape(-1, 3), axis=0)) > 100


def test_a_model_with_column_names_draws_without_a_warning():
    frame = pd.DataFrame(FIGURE_1_ROWS, columns=["width", "$height_1$"])
    model = plain_tree(max_depth=2, epochs=2, finetune_epochs=1, min_updates=5, random_state=0)
    ax = plot_regions(model.fit(frame, LABELS), frame, LABELS, steepness=2.0, resolution=20)
    ax.figure.canvas.draw()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("width", "$height_1$")
    assert hasattr(model, "feature_names_in_")


def test_modules_are_drawn_on_a_grid():
    import torch

    model = plain_tree(
        split=lambda shape: torch.nn.Linear(2, 1), max_depth=1, epochs=1, finetune_epochs=0, min_updates=1
    ).fit(FIGURE_1_ROWS, LABELS)
    ax = plot_regions(model, FIGURE_1_ROWS, LABELS, hyperplanes=True, resolution=30)
    assert np.asarray(ax.images[0].get_array()).shape == (30, 30, 3)


@pytest.mark.parametrize("depth", [0, 5])
def test_one_leaf_and_26_classes_can_be_drawn(depth):
    names = [f"_${number}_$" for number in range(26)]
    model = random_model(n_features=2, classes=names, depth=depth, n=500)
    ax = plot_regions(model, np.random.default_rng(0).normal(size=(50, 2)), hyperplanes=True)
    ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == names


def test_all_points_at_one_place_have_room_around_them():
    left, right = plot_regions(figure_1(), np.ones((3, 2))).get_xlim()
    assert left < 1 < right


@pytest.mark.parametrize(
    ("model", "rows"),
    [(random_model(n_features=3), np.ones((4, 2))), (figure_1(), np.ones((4, 3))), (figure_1(), [1, 2])],
)
def test_rows_of_other_features_than_the_models_are_refused(model, rows):
    with pytest.raises(ValueError, match=r"plot_regions must have rows of the \d features of the model; got an array"):
        plot_regions(model, rows)


def test_labels_unknown_to_the_model_are_named():
    with pytest.raises(
        ValueError, match=r"`y` must hold classes that the model knows, \['blue', 'red'\]; got \['green'\]"
    ):
        plot_regions(figure_1(), FIGURE_1_ROWS[:2], ["green", "red"])
    with pytest.raises(ValueError, match="`y` must have a label for each of the 2 rows"):
        plot_regions(figure_1(), FIGURE_1_ROWS[:2], ["red"])


def test_a_model_must_be_fitted():
    with pytest.raises(ValueError, match="plot_regions needs a fitted crisptree model"):
        plot_regions(plain_tree(), np.ones((2, 2)))
    assert module_model().tree_ is not None


@pytest.mark.parametrize("names", [[f"class {number}" for number in range(26)], ["a rather long name of a class"] * 10])
def test_a_large_legend_stands_beside_the_picture(names):
    model = random_model(n_features=2, classes=range(len(names)), n=400)
    ax = plot_regions(model, np.random.default_rng(0).normal(size=(40, 2)), class_names=names)
    ax.figure.canvas.draw()
    legend = ax.get_legend().get_window_extent()
    assert legend.x0 >= ax.get_window_extent().x1
    assert legend.x1 <= ax.figure.bbox.x1
    assert legend.y0 >= ax.figure.bbox.y0


def test_a_frame_with_columns_in_another_order_is_refused():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    model = plain_tree(max_depth=1, epochs=2, finetune_epochs=0, min_updates=5, random_state=0)
    model.fit(frame, frame.a > frame.b)
    plot_regions(model, frame)
    with pytest.raises(ValueError, match="same order as they were in fit"):
        plot_regions(model, frame[["b", "a"]])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"X": np.zeros((0, 2))}, "`X` must have rows of finite numbers"),
        ({"X": [[np.nan, 1.0]]}, "`X` must have rows of finite numbers"),
        ({"bounds": (0, 1)}, "`bounds` must be"),
        ({"bounds": (1, 0, 0, 1)}, "`bounds` must be"),
        ({"bounds": (0, 1, 0, np.nan)}, "`bounds` must be"),
        ({"resolution": 0}, "`resolution` must be"),
    ],
)
def test_wrong_arguments_are_refused(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        plot_regions(figure_1(), **{"X": [[0.5, 0.5]]} | changes)


def test_any_two_features_are_drawn_with_the_others_at_their_median():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 5)) * [1, 2, 3, 4, 5] + 1
    names = list("abcde")
    model = random_model(n_features=5, depth=3, n=120)
    ax = plot_regions(model, X, features=("d", 1), hyperplanes=True, feature_names=names, resolution=20)
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("d", "b", "3 other features at their median")
    cells = collection(ax, PolyCollection, "cells")
    colors = class_colors(len(model.classes_))[:, :3]
    left, right, lower, upper = *ax.get_xlim(), *ax.get_ylim()
    points = rng.uniform([left, lower], [right, upper], size=(300, 2))
    rows = np.repeat(np.median(X, axis=0)[None], 300, axis=0)
    rows[:, [3, 1]] = points
    said = 0.45 * model.predict_proba(rows) @ colors + 0.55
    found = np.array([[path.contains_point(point) for path in cells.get_paths()] for point in points])
    assert (found.sum(axis=1) <= 1).all()
    for point, color in zip(found, said, strict=True):
        for cell in np.flatnonzero(point):
            assert np.allclose(cells.get_facecolors()[cell][:3], color)
    assert found.any(axis=1).mean() > 0.98  # but for points on a border


def test_features_that_cannot_be_drawn_are_refused_with_a_sentence():
    model, X = random_model(n_features=3, depth=2, n=40), np.zeros((4, 3))
    with pytest.raises(ValueError, match=r"must know which two of the 3 features to draw. Pass them, e.g. features="):
        plot_regions(model, X)
    with pytest.raises(ValueError, match=r"`features` must be features of the model, 'x0', 'x1', 'x2', .* got 'z'"):
        plot_regions(model, X, features=("x0", "z"))
    with pytest.raises(ValueError, match="two different features"):
        plot_regions(model, X, features=(1, "x1"))
    with pytest.raises(ValueError, match="must be two features"):
        plot_regions(model, X, features="x0")
