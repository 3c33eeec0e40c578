"""Ordered leaves: isotonic regression on the order of a tree, and predictions that rise with a column."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression

from crisptree.data.raw_rows import Scaling
from crisptree.inference.finalization import constrain_monotonic, empty_statistics, finalize, prune, shrink, truncate
from crisptree.inference.flat_tree import FlatTree, route_rows
from crisptree.inference.monotonic import order_leaf_values
from crisptree.inference.rounding import _merge_complements
from tests.toys import random_structure

SEEDS = st.integers(0, 2**32 - 1)


def ordered_pairs(structure, is_ordered):
    """Leaves a, b of which a must not be above b."""
    for split in np.flatnonzero(is_ordered):
        sides = []
        for child in (structure.left_nodes[split], structure.right_nodes[split]):
            below = structure.leaf_spans[child] if child < structure.n_splits else None
            single = [child - structure.n_splits]
            sides.append(single if below is None else structure.leaves_left_to_right[slice(*below)])
        yield from ((a, b) for a in sides[0] for b in sides[1])


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_ordered_values_are_the_nearest_ones(seed):
    rng = np.random.default_rng(seed)
    structure = random_structure(int(rng.integers(1, 9)), seed % 1000)
    is_ordered = rng.random(structure.n_splits) < 0.6
    values, weights = rng.normal(size=structure.n_leaves), rng.integers(1, 9, structure.n_leaves).astype(float)
    ordered = order_leaf_values(structure, is_ordered, values, weights)
    pairs = list(ordered_pairs(structure, is_ordered))
    assert all(ordered[a] <= ordered[b] for a, b in pairs)
    constraints = [{"type": "ineq", "fun": lambda v, a=a, b=b: v[b] - v[a]} for a, b in pairs]
    best = minimize(lambda v: weights @ (v - values) ** 2, np.full(len(values), values.mean()), constraints=constraints)
    assert weights @ (ordered - values) ** 2 <= best.fun + 1e-6


def test_a_chain_is_isotonic_regression():
    rng = np.random.default_rng(0)
    structure = random_structure(60, 3)
    order = structure.leaves_left_to_right
    values, weights = rng.normal(size=61) + np.linspace(0, 1, 61)[np.argsort(order)], rng.random(61) + 0.1
    ordered = order_leaf_values(structure, np.ones(60, dtype=bool), values, weights)
    expected = IsotonicRegression().fit(np.arange(61), values[order], sample_weight=weights[order]).predict(range(61))
    np.testing.assert_allclose(ordered[order], expected, atol=1e-12)


def random_tree(rng, structure, signs, target):
    """Hyperplanes with weights of given signs, whose leaves have not been counted."""
    shape = (structure.n_splits, len(signs))
    weight = rng.normal(size=shape) * (rng.random(shape) < 0.7)
    weight = np.where(signs == 0, weight, np.abs(weight) * signs).astype(np.float32)
    leaves = np.full((structure.n_leaves, 2), 0.5)
    statistics = empty_statistics(structure, Scaling.none(len(signs)), leaves, 1.0, None if target == "classes" else 3)
    bias = rng.normal(size=structure.n_splits).astype(np.float32)
    return FlatTree(structure, leaves, statistics, weight=weight, bias=bias, target_name=target)


def predict(trees, X, target):
    values = np.mean([tree.leaves[route_rows(tree, X)] for tree in trees], axis=0)
    return values[:, 1] if target == "classes" else values[:, 0]


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from(["classes", "gaussians"]))
def test_predictions_of_random_trees_are_monotonic(seed, target):
    rng = np.random.default_rng(seed)
    signs = np.array([1, -1, 0, 1])
    X = rng.normal(size=(300, 4)).astype(np.float32)
    y = rng.integers(0, 2, 300) if target == "classes" else rng.normal(size=(300, 1))
    trees = []
    for number in range(3):
        tree = random_tree(rng, random_structure(int(rng.integers(1, 25)), number), signs, target)
        tree = constrain_monotonic(finalize(tree, X, y, rng.random(300), 0.0), np.flatnonzero(signs))
        changed = [
            tree,
            shrink(tree, 5.0),
            prune(tree, 0.01),
            truncate(tree, 2),
            finalize(tree, X[:50], y[:50], np.ones(50), 1.0),
        ]
        trees.append(changed[seed % len(changed)])
    for feature in np.flatnonzero(signs):
        moved = X.copy()
        moved[:, feature] += (signs[feature] * rng.exponential(size=300)).astype(np.float32)
        assert (predict(trees, moved, target) >= predict(trees, X, target)).all()


def test_trees_without_the_constraint_are_not_monotonic():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)).astype(np.float32)
    tree = random_tree(rng, random_structure(12, 0), np.array([1, 0]), "classes")
    tree = finalize(tree, X, rng.integers(0, 2, 300), np.ones(300), 0.0)
    moved = X + np.array([1, 0], dtype=np.float32)
    assert (predict([tree], moved, "classes") < predict([tree], X, "classes")).any()
    assert constrain_monotonic(tree, [0]).statistics.monotonic.tolist() == [1, 0]


@pytest.mark.parametrize("target", ["classes", "gaussians"])
def test_ordered_leaves_keep_their_mean(target):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    y = rng.integers(0, 2, 200) if target == "classes" else rng.normal(size=(200, 1))
    tree = finalize(random_tree(rng, random_structure(9, 5), np.array([1, 1, 1]), target), X, y, np.ones(200), 0.0)
    ordered = constrain_monotonic(tree, [0, 1, 2])
    assert predict([ordered], X, target).mean() == pytest.approx(predict([tree], X, target).mean())


def test_rounding_of_complementary_indicators_keeps_signs():
    x = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, -1.0], [1.0, 0.0, 3.0]])
    merged, offset = _merge_complements(x, np.array([3.0, 1.0, 0.5]))
    assert merged.tolist() == [2.0, 0.0, 0.5]
    assert offset == 1.0
