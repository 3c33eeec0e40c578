"""Arguments that drawings refuse: what is no axes, and what is no boolean."""

import numpy as np
import pytest

import crisptree
from crisptree import plots
from tests.toys import clouds, plain_tree

X, Y = clouds(60, n_features=2)
MODEL = plain_tree(max_depth=1, epochs=2, finetune_epochs=2, random_state=0).fit(X, Y)
IMAGE = np.arange(12.0).reshape(3, 4)

DRAWINGS = {
    "plot_tree": lambda ax: plots.plot_tree(MODEL, ax),
    "plot_regions": lambda ax: plots.plot_regions(MODEL, X, Y, ax=ax),
    "plot_training": lambda ax: plots.plot_training(MODEL, axes=[ax, ax]),
    "plot_weights": lambda ax: plots.plot_weights(MODEL, [0], [ax]),
    "plot_segmentation": lambda ax: plots.plot_segmentation(IMAGE, None, IMAGE / 12, IMAGE / 12, axes=[ax, ax, ax]),
    "plot_pixel_regression": lambda ax: plots.plot_pixel_regression(IMAGE, None, IMAGE / 12, IMAGE, axes=[ax, ax, ax]),
}


@pytest.mark.parametrize("wrong", ["ax", 3, np.zeros((2, 2)), X])
@pytest.mark.parametrize("name", DRAWINGS)
def test_what_is_no_axes_is_refused(name, wrong):
    with pytest.raises((TypeError, ValueError), match=r"must be .*axes"):
        DRAWINGS[name](wrong)
    if np.ndim(wrong) == 0:
        with pytest.raises(TypeError, match=f"must be matplotlib axes, .*; got {type(wrong).__name__}"):
            DRAWINGS[name](wrong)


FLAGS = {
    "letters": lambda value: plots.plot_tree(MODEL, letters=value),
    "key": lambda value: plots.plot_tree(MODEL, key=value),
    "hyperplanes": lambda value: plots.plot_regions(MODEL, X, Y, hyperplanes=value),
    "legend": lambda value: plots.plot_regions(MODEL, X, Y, legend=value),
    "titles": lambda value: plots.plot_segmentation(IMAGE, None, IMAGE / 12, IMAGE / 12, titles=value),
    "as_in_training": lambda value: crisptree.explain.find_counterfactual(MODEL, X[0], as_in_training=value),
}


@pytest.mark.parametrize("wrong", [2.0, 1, "yes"])
@pytest.mark.parametrize("name", FLAGS)
def test_what_is_no_boolean_is_refused(name, wrong):
    with pytest.raises(ValueError, match=f"`{name}` must be True or False; got "):
        FLAGS[name](wrong)


@pytest.mark.parametrize("name", FLAGS)
def test_booleans_of_numpy_are_taken(name):
    FLAGS[name](np.bool_(True))
