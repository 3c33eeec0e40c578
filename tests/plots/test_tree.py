import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from crisptree import CrispTreeClassifier
from crisptree.plots import plot_tree
from tests.toys import clouds

QUICK = {"max_depth": 2, "epochs": 3, "finetune_epochs": 2, "min_updates": 10, "random_state": 0}


def fitted(n_features=6, n_classes=3, **changes):
    X, y = clouds(120, n_features=n_features, n_classes=n_classes)
    return CrispTreeClassifier(**QUICK | changes).fit(X, y)


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_it_draws_on_the_given_axes_and_returns_them():
    ax = Figure().subplots()
    assert plot_tree(fitted(), ax) is ax


def test_images_are_drawn_at_the_splits_and_class_names_at_the_leaves():
    model = fitted(image_shape=(2, 3))
    ax = plot_tree(model, class_names=["cat", "dog", "owl"])
    assert len(ax.images) == model.tree_.structure.n_splits
    drawn = np.asarray(ax.images[0].get_array())
    assert (drawn.min(), drawn.max()) == (0, 1)  # the full grey range
    assert {"cat", "dog", "owl"} & set(texts(ax))


def test_tabular_splits_name_their_largest_weights():
    model = fitted()
    largest = int(np.abs(model.tree_.scaled_hyperplanes()[0][0]).argmax())
    names = [f"feature {j}" for j in range(6)]
    assert f"feature {largest}" in texts(plot_tree(model, feature_names=names))


def test_thicker_arrows_carry_more_training_rows():
    model = fitted()
    ax = plot_tree(model)
    widths = next(c for c in ax.collections if type(c).__name__ == "LineCollection").get_linewidths()
    from crisptree.plots.layout import tree_layout

    totals = model.tree_.statistics.node_counts.sum(axis=1)
    children = [child for _, child, _ in tree_layout(model.tree_.structure).edges]
    assert np.array_equal(np.argsort(widths, kind="stable"), np.argsort(totals[children], kind="stable"))


@pytest.mark.parametrize(
    "changes",
    [
        {"max_depth": 0},
        {"n_classes": 26, "max_depth": 5},
        {"split": lambda shape: torch.nn.Linear(shape[0], 1)},
        {"split": "axis"},
        {"n_features": 1},
    ],
)
def test_trees_of_every_kind_can_be_drawn(changes):
    ax = plot_tree(fitted(**changes))
    ax.figure.canvas.draw()


def test_a_deep_tree_can_be_cut():
    ax = plot_tree(fitted(max_depth=3, n_classes=8), max_depth=1)
    assert sum(text.endswith("…") for text in texts(ax)) == 2
