"""Estimators around trees that are written down, not trained."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from crisptree.data.raw_rows import Scaling
from crisptree.inference.finalization import finalize
from crisptree.splits import ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.tree import Tree
from tests.toys import clouds, plain_tree

QUICK = {"max_depth": 3, "epochs": 3, "finetune_epochs": 2, "min_updates": 10, "random_state": 0}
STRANGE = np.array(["<script>alert(1)</script>", "$a_b$", 'say "no"\\'])


def fitted(n=150, n_features=6, n_classes=3, labels=None, **changes):
    X, y = clouds(n, n_features=n_features, n_classes=n_classes)
    y = y if labels is None else np.asarray(labels)[y]
    return plain_tree(**QUICK | changes).fit(X, y), X, y


def written(structure: TreeStructure, weight, bias, leaf_classes, *, X=None, y=None, scale=None, n_classes=None):
    """A model with these hyperplanes on scaled features and these majorities; counts from X, y where given."""
    weight = np.asarray(weight, dtype=np.float64).reshape(structure.n_splits, -1)
    n_features = weight.shape[1] if structure.n_splits else np.shape(X)[1]
    weight = weight.reshape(structure.n_splits, n_features)
    n_classes = n_classes or max(leaf_classes) + 1
    scaling = Scaling.none(n_features) if scale is None else Scaling.learn(X, np.ones(len(X)), scale)
    splits = ObliqueSplits(torch.from_numpy(weight), torch.as_tensor(np.asarray(bias, dtype=np.float64)))
    soft = Tree(structure, splits, torch.eye(n_classes, dtype=torch.float64)[list(leaf_classes)])
    tree = soft.crisp(scaling, 1.0)
    if y is not None:
        tree = finalize(tree, X, np.asarray(y), np.ones(len(y)), 0.0)
    model = plain_tree()
    model.tree_ = model.greedy_tree_ = tree
    model.classes_, model.n_features_in_ = np.arange(n_classes), n_features
    model.history_, model.image_shape_ = [], None
    return model


def with_linear_leaves(model, seed, size=1.0):
    """Give a model of classes random linear models in its leaves."""
    rng, tree = np.random.default_rng(seed), model.tree_
    shape = (tree.structure.n_nodes, tree.n_values)
    weight, bias = size * rng.normal(size=(*shape, tree.n_features)), size * rng.normal(size=shape)
    model.tree_ = model.greedy_tree_ = replace(tree, linear_weight=weight, linear_bias=bias)
    return model
