"""Alternating optimisation of splits of a few features: exact searches, limits, and leaves of several kinds."""

import numpy as np
import pytest

from crisptree.learning.alternating_splits import SplitSearch, best_thresholds, grow_sums, search_split
from crisptree.learning.options import GrowthLimits
from crisptree.learning.sparse_leaves import TargetRows

LIMITS = GrowthLimits(max_leaf_nodes=8)


def make_search(X, y, max_terms, leaf_terms=0, weight=None):
    """Search for class indices, or for numbers."""
    is_regression = y.dtype.kind == "f"
    values = y[:, None] if is_regression else np.eye(y.max() + 1)[y]
    rows = TargetRows(X, values, np.ones(len(y)) if weight is None else weight)
    return SplitSearch.of(rows, LIMITS, max_terms, leaf_terms, is_regression=is_regression)


def route(grown, X, node=0):
    structure, leaves = grown.structure, np.zeros(len(X), dtype=np.intp)
    for row, x in enumerate(X):
        node = 0
        while node < structure.n_splits:
            right = x @ grown.weight[node] + grown.bias[node] > 0
            node = structure.right_nodes[node] if right else structure.left_nodes[node]
        leaves[row] = node - structure.n_splits
    return leaves


def accuracy(grown, X, y):
    """Of the classes that most rows of a leaf have."""
    leaf = route(grown, X)
    return sum(np.bincount(y[leaf == number]).max() for number in np.unique(leaf)) / len(y)


@pytest.fixture(scope="module")
def diagonal():
    """Classes on both sides of x0 + 2 x1 = 0, and two features of noise."""
    X = np.random.default_rng(0).normal(size=(400, 4)).astype(np.float32)
    return X, (X[:, 0] + 2 * X[:, 1] > 0).astype(np.int64)


@pytest.mark.parametrize("max_terms", [1, 2, 3])
def test_directions_are_found_within_the_limit_of_terms(diagonal, max_terms):
    X, y = diagonal
    grown = grow_sums(make_search(X, y, max_terms), [4])[4]
    assert np.count_nonzero(grown.weight, axis=1).max() <= max_terms
    assert grown.structure.n_leaves <= 4
    assert accuracy(grown, X, y) > (0.97 if max_terms > 1 else 0.85)


def test_a_term_must_save_its_penalty(diagonal):
    X, _ = diagonal
    x, saved = X.astype(np.float64), np.where(X[:, 0] > 0.1, -1.0, 1.0)
    found = search_split(x, saved, max_terms=3, min_rows=5)
    assert np.flatnonzero(found.weight).tolist() == [0]
    assert ((x @ found.weight + found.bias > 0) == (saved < 0)).all()
    assert search_split(x, saved, max_terms=1, min_rows=201) is None


@pytest.mark.parametrize("min_rows", [1, 7, 30])
def test_thresholds_have_the_lowest_cost_of_all(min_rows):
    rng = np.random.default_rng(min_rows)
    lines = np.stack([rng.normal(size=60), rng.integers(0, 5, 60), np.ones(60)]).astype(np.float32)
    saved = rng.normal(size=60)
    found = best_thresholds(lines, saved, min_rows)
    for line, cost, cut, is_flipped in zip(lines, found.cost, found.cut, found.is_flipped, strict=True):
        sides = [line > value for value in np.unique(line)[:-1]]
        sides = [side for side in sides if min_rows <= side.sum() <= 60 - min_rows]
        lowest = min([min(saved[side].sum(), saved[~side].sum()) for side in sides], default=np.inf)
        assert cost == pytest.approx(lowest)
        if sides:
            assert saved[(line > cut) != is_flipped].sum() == pytest.approx(lowest)


def test_no_side_is_smaller_than_the_limit_of_rows():
    lines, saved = np.arange(8, dtype=np.float32)[None], np.ones(8)
    assert np.isinf(best_thresholds(lines, saved, 5).cost).all()
    assert np.isinf(best_thresholds(lines, saved, 9).cost).all()


def test_regression_lowers_the_squared_error(diagonal):
    X, _ = diagonal
    y = np.where(X[:, 0] - X[:, 2] > 0, 3.0, 0.0) + np.where(X[:, 1] > 0, 1.0, 0.0)
    grown = grow_sums(make_search(X, (y - y.mean()) / y.std(), 2), [4])[4]
    leaf = route(grown, X)
    error = sum(((y[leaf == number] - y[leaf == number].mean()) ** 2).sum() for number in np.unique(leaf))
    assert grown.structure.n_leaves == 4
    assert np.count_nonzero(grown.weight, axis=1).max() <= 2
    assert error < 0.02 * len(y) * y.var()


def test_scores_in_leaves_need_fewer_splits(diagonal):
    """Two boundaries, one on each side of a threshold: one split, whose leaves are sums."""
    X, _ = diagonal
    y = np.where(X[:, 2] > 0, X[:, 0] + X[:, 1] > 0, X[:, 3] - X[:, 0] > 0).astype(np.int64)
    search = make_search(X, y, 3, leaf_terms=3)
    grown = grow_sums(search, [2])[2]
    leaf = route(grown, X)
    outputs = search.fit_leaves(leaf, 2).predict(search.x)[np.arange(len(y)), leaf]
    assert (outputs.argmax(axis=1) == y).mean() > 0.85
    assert accuracy(grown, X, y) < 0.8


def test_growth_that_ends_early_has_a_tree_for_every_size(diagonal):
    X, _ = diagonal
    search = make_search(X, (X[:, 0] > 0.2).astype(np.int64), 1)
    grown = grow_sums(search, [8, 4, 2])
    assert {size: tree.structure.n_leaves for size, tree in grown.items()} == {8: 2, 4: 2, 2: 2}
    assert grow_sums(search._replace(y=np.eye(2)[np.zeros(len(X), dtype=int)]), [8, 2]) == {}
