"""Alternating optimisation of splits of a few features: exact searches, limits, and a likelihood that never falls."""

from dataclasses import replace

import numpy as np
import pytest

from crisptree import CrispTreeClassifier, CrispTreeRegressor, TrainingOptions
from crisptree.inference import route_rows
from crisptree.learning.alternating_splits import SplitSearch, alternate_splits, grow_sums, search_split
from crisptree.learning.options import GrowthLimits
from crisptree.learning.samples import RowSet

LIMITS = GrowthLimits(max_leaf_nodes=8)


def cart(estimator, X, y, leaves=4):
    model = estimator(split="axis", max_leaf_nodes=leaves, max_depth=None, l1=0.0, input_noise=0.0, shrinkage=0.0)
    return model.set_params(training=TrainingOptions(grow="cart", finetune_epochs=0), leaf_model="constant").fit(X, y)


def accuracy(tree, X, y):
    """Of the classes that most rows of a leaf have."""
    leaf = route_rows(tree, X)
    return sum(np.bincount(y[leaf == number]).max() for number in np.unique(leaf)) / len(y)


@pytest.fixture(scope="module")
def diagonal():
    """Classes on both sides of x0 + 2 x1 = 0, and two features of noise."""
    X = np.random.default_rng(0).normal(size=(400, 4)).astype(np.float32)
    return X, (X[:, 0] + 2 * X[:, 1] > 0).astype(np.int64)


@pytest.mark.parametrize("max_terms", [1, 2, 3])
def test_directions_are_found_within_the_limit_of_terms(diagonal, max_terms):
    X, y = diagonal
    tree = cart(CrispTreeClassifier, X, y).tree_
    search = SplitSearch.of(RowSet(X, y, np.ones(len(y))), tree.target, LIMITS, max_terms)
    better = alternate_splits(tree, search)
    assert np.count_nonzero(better.weight, axis=1).max() <= max_terms
    assert better.structure.n_leaves == 4
    assert accuracy(better, X, y) >= accuracy(tree, X, y)
    if max_terms > 1:
        assert accuracy(better, X, y) > 0.97


def test_a_term_must_save_its_penalty(diagonal):
    X, _ = diagonal
    x, saved = X.astype(np.float64), np.where(X[:, 0] > 0.1, -1.0, 1.0)
    found = search_split(x, saved, max_terms=3, min_rows=5)
    assert np.flatnonzero(found.weight).tolist() == [0]
    assert ((x @ found.weight + found.bias > 0) == (saved < 0)).all()
    assert search_split(x, saved, max_terms=1, min_rows=201) is None


def test_regression_lowers_the_squared_error(diagonal):
    X, _ = diagonal
    y = np.where(X[:, 0] - X[:, 2] > 0, 3.0, 0.0) + np.where(X[:, 1] > 0, 1.0, 0.0)
    model = cart(CrispTreeRegressor, X, y)
    scaled = ((y - y.mean()) / y.std())[:, None]
    search = SplitSearch.of(RowSet(X, scaled, np.ones(len(y))), model.tree_.target, LIMITS, 2)
    structure, weight, bias = grow_sums(search, [4])[4]
    grown = replace(model.tree_, structure=structure, weight=weight, bias=bias)

    def error(tree):
        leaf = route_rows(tree, X)
        return sum(((y[leaf == number] - y[leaf == number].mean()) ** 2).sum() for number in np.unique(leaf))

    assert structure.n_leaves == 4
    assert np.count_nonzero(weight, axis=1).max() <= 2
    assert max(error(grown), error(alternate_splits(model.tree_, search))) < 0.01 * error(model.tree_)


def test_growth_that_ends_early_has_a_tree_for_every_size(diagonal):
    X, _ = diagonal
    y = (X[:, 0] > 0.2).astype(np.int64)
    search = SplitSearch.of(RowSet(X, y, np.ones(len(y))), cart(CrispTreeClassifier, X, y).tree_.target, LIMITS, 1)
    grown = grow_sums(search, [8, 4, 2])
    assert {size: tree.structure.n_leaves for size, tree in grown.items()} == {8: 2, 4: 2, 2: 2}
    assert grow_sums(search._replace(y=np.zeros_like(y)), [8, 2]) == {}
