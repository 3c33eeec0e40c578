"""Models with known trees, built without training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crisptree.data.raw_rows import Scaling
from crisptree.inference import FlatTree
from crisptree.inference.finalization import empty_statistics, finalize
from crisptree.learning.history import EpochRecord
from crisptree.selection.candidates import Trial
from crisptree.structure import TreeStructure
from tests.toys import FIGURE_1, plain_tree

FIGURE_1_WEIGHT = np.array([[1.0, -0.8], [0.05, 0.65], [0.38, 0.6], [1.0, 0.0]])
FIGURE_1_BIAS = np.array([-0.1, -0.4, -0.38, -0.3])
"""The hyperplanes of the paper's figure 1."""

FIGURE_1_ROWS = np.array(
    [
        *([0.15, 0.5], [0.25, 0.25], [0.4, 0.55], [0.05, 0.9], [0.25, 0.72], [0.37, 0.65], [0.33, 0.95]),
        *([0.6, 0.76], [0.3, 0.15], [0.65, 0.18], [0.8, 0.8], [0.93, 0.58], [0.65, 0.35], [0.87, 0.24]),
    ]
)
FIGURE_1_CLASSES = np.array([0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1])


def built(structure, weight, bias, X, y, classes, **parameters):
    """An estimator with the given tree, its leaves and statistics from the rows; ``y`` are class numbers."""
    scaling = Scaling.learn(X, np.ones(len(X)), "feature")
    scaling = replace(scaling, center=np.zeros(X.shape[1]), factor=np.ones(X.shape[1]))
    tables = np.full((structure.n_leaves, len(classes)), 1 / len(classes))
    tree = FlatTree(
        structure,
        tables,
        empty_statistics(structure, scaling, tables, 5.0),
        weight=np.asarray(weight, dtype=np.float32).reshape(structure.n_splits, X.shape[1]),
        bias=np.asarray(bias, dtype=np.float32),
    )
    tree = finalize(tree, X.astype(np.float32), np.asarray(y), np.ones(len(X)), 0.0)
    tree = replace(tree, statistics=replace(tree.statistics, soft_leaves=tree.leaves))
    model = plain_tree(**parameters)
    model.tree_ = model.greedy_tree_ = tree
    model.classes_ = np.array(classes)
    model.n_features_in_ = X.shape[1]
    model.history_ = []
    model.image_shape_ = parameters.get("image_shape")
    return model


def figure_1():
    """The paper's figure 1: two features, two classes, five leaves."""
    names = ["blue", "red"]
    return built(FIGURE_1, FIGURE_1_WEIGHT, FIGURE_1_BIAS, FIGURE_1_ROWS, FIGURE_1_CLASSES, names)


def random_model(n_features=6, classes=("a", "b", "c"), depth=2, n=200, seed=0, **parameters):
    """Random hyperplanes through random rows."""
    rng = np.random.default_rng(seed)
    structure = TreeStructure.balanced(depth)
    weight, bias = rng.normal(size=(structure.n_splits, n_features)), 0.3 * rng.normal(size=structure.n_splits)
    X = rng.normal(size=(n, n_features))
    y = rng.integers(len(classes), size=n)
    return built(structure, weight, bias, X, y, list(classes), **parameters)


def module_model(**changes):
    """A tree of two levels whose splits are modules; its training is a few steps."""
    import torch

    from tests.toys import clouds

    def network(shape):
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(int(np.prod(shape)), 1))

    X, y = clouds(80, n_features=4, n_classes=3)
    quick = {"max_depth": 2, "epochs": 2, "finetune_epochs": 1, "min_updates": 5, "random_state": 0, "split": network}
    return plain_tree(**quick | changes).fit(X, y)


def records(scores=True):
    """Two levels of three epochs and four of finetuning."""
    grown = [
        EpochRecord("grow", level, 2, level, e, 3, 1 + e / 10, 1 / level + 1 / e) for level in (1, 2) for e in (1, 2, 3)
    ]
    tuned = [
        EpochRecord("finetune", 2, 1, 3, e, 4, 1 + e / 10, 0.5 / e, 0.8 + e / 50 if scores else None)
        for e in (1, 2, 3, 4)
    ]
    return grown + tuned


def chosen_model():
    """A model that tried six settings, of which the third was chosen."""
    model = figure_1()
    tried = [
        ({"max_depth": 4, "split": "oblique", "input_noise": 0.3, "l1": 0.0}, 180, 150.0),
        ({"max_depth": 4, "split": "oblique", "input_noise": 0.7, "l1": 0.0}, 172, 190.0),
        ({"max_depth": 2, "split": "oblique", "input_noise": 0.3, "l1": 0.0}, 179, 30.0),
        ({"max_depth": 4, "split": "oblique", "input_noise": 0.0, "l1": 0.03}, 166, 45.0),
        ({"max_depth": 1, "split": "axis", "input_noise": 0.0, "l1": 0.0}, 140, 1.0),
        ({"max_depth": 2, "split": "axis", "input_noise": 0.0, "l1": 0.0}, 150, 3.0),
    ]
    model.cv_results_ = [
        Trial(values, np.repeat([1.0, 0.0], [right, 200 - right]), np.ones(200), size, 4.0)
        for values, right, size in tried
    ]
    model.best_params_ = tried[2][0] | {"shrinkage": 10.0}
    return model
