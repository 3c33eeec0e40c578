"""All trees in one pass: the leaves of the single trees, bit for bit, on every instruction set."""

import numpy as np
import pytest

from crisptree.data.raw_rows import Scaling
from crisptree.inference import FlatTree
from crisptree.inference import flat_tree as routing
from crisptree.inference.finalization import empty_statistics
from crisptree.inference.flat_tree import CrispForest
from crisptree.native import router
from crisptree.structure import TreeStructure

RNG = np.random.default_rng(0)


def tree_of(structure, n_features, density=1.0):
    weight = RNG.normal(size=(structure.n_splits, n_features)).astype(np.float32)
    weight[RNG.random(weight.shape) > density] = 0
    leaves = RNG.dirichlet(np.ones(3), structure.n_leaves)
    statistics = empty_statistics(structure, Scaling.none(n_features), leaves, 1.0)
    bias = RNG.normal(size=structure.n_splits).astype(np.float32)
    return FlatTree(structure, leaves, statistics, weight=weight, bias=bias)


def chain(length):
    return TreeStructure([*range(1, length), ~0], [~place for place in range(length, 0, -1)])


def forest_of(n_features):
    shapes = [TreeStructure.balanced(4), TreeStructure.single_leaf(), chain(7), TreeStructure.balanced(2)]
    return CrispForest(tuple(tree_of(shape, n_features, density) for shape in shapes for density in (1.0, 0.02)))


@pytest.mark.skipif(router is None, reason="needs the kernel")
@pytest.mark.parametrize("instruction_set", router.instruction_sets() if router is not None else [])
@pytest.mark.parametrize(("n_rows", "n_features"), [(1, 5), (15, 40), (16, 33), (700, 400), (9, 1)])
def test_forest_leaves_equal_those_of_its_trees(instruction_set, n_rows, n_features):
    forest = forest_of(n_features)
    X = RNG.normal(size=(n_rows, n_features)).astype(np.float32)
    wanted = np.stack([routing.route_reference(tree, X) for tree in forest], axis=1)
    for rows in (X, X.astype(np.float64), np.asfortranarray(X), X[::-1][::-1]):
        for n_threads in (1, 3):
            leaves = np.empty((n_rows, len(forest)), dtype=np.int64)
            assert forest.kernel.route(rows, leaves, n_threads, True, instruction_set)
            assert np.array_equal(leaves, wanted)


@pytest.mark.skipif(router is None, reason="needs the kernel")
@pytest.mark.parametrize("instruction_set", router.instruction_sets() if router is not None else [])
def test_padding_rows_with_zeros_changes_no_leaf(instruction_set):
    forest = forest_of(400)
    X = RNG.normal(size=(60, 400)).astype(np.float32)
    for row, (begin, end) in enumerate(RNG.integers(0, 400, size=(60, 2))):
        X[row, :begin], X[row, end:] = 0.0, -0.0
    wanted = np.stack([routing.route_reference(tree, X) for tree in forest], axis=1)
    leaves = np.empty((60, len(forest)), dtype=np.int64)
    assert forest.kernel.route(X, leaves, 1, True, instruction_set)
    assert np.array_equal(leaves, wanted)


def test_the_mean_is_summed_in_the_order_of_the_trees():
    forest = forest_of(6)
    X = RNG.normal(size=(300, 6)).astype(np.float32)
    sums = np.zeros((300, 3))
    for tree in forest:
        sums += tree.leaves[routing.route_reference(tree, X)]
    for n_jobs in (1, 2, None):
        assert np.array_equal(forest.values(X, n_jobs), sums / len(forest))


@pytest.mark.parametrize("n_rows", [1, 40])
def test_non_finite_values_are_detected(n_rows):
    forest = forest_of(6)
    X = RNG.normal(size=(n_rows, 6)).astype(np.float32)
    X[-1, 2] = np.nan
    assert forest.values(X, check_finite=True) is None
    assert forest.leaves(X, check_finite=True) is None
    assert forest.values(X).shape == (n_rows, 3)


def test_predictions_without_the_kernel_are_the_same(monkeypatch):
    forest = forest_of(6)
    X = RNG.normal(size=(50, 6)).astype(np.float32)
    values, leaves = forest.values(X), forest.leaves(X)
    monkeypatch.setattr(CrispForest, "kernel", None)
    slow = CrispForest(forest.trees)
    assert np.array_equal(slow.values(X), values)
    assert np.array_equal(slow.leaves(X), leaves)


@pytest.mark.skipif(router is None, reason="needs the kernel")
def test_the_kernel_checks_its_arguments():
    forest = forest_of(6)
    one, other = forest.kernel, forest_of(5).kernel
    rows = np.zeros((4, 6), dtype=np.float32)
    with pytest.raises(ValueError, match="rows have another width"):
        other.route(rows, np.empty((4, 8), dtype=np.int64), 1, False)
    with pytest.raises(ValueError, match="one leaf per row and tree"):
        one.route(rows, np.empty((4, 7), dtype=np.int64), 1, False)
    with pytest.raises(ValueError, match="one sum per row and output"):
        one.sum(rows, np.empty((4, 2)), 1, False)
    with pytest.raises(ValueError, match="there must be trees"):
        router.Forest((), np.zeros((1, 3)))
    from crisptree.inference.flat_tree import compiled_tree

    with pytest.raises(ValueError, match="every leaf must have a table"):
        router.Forest((compiled_tree(forest.trees[0]),), np.zeros((3, 3)))
    with pytest.raises(ValueError, match="the same features"):
        router.Forest((compiled_tree(forest.trees[0]), compiled_tree(forest_of(5).trees[0])), np.zeros((32, 3)))
    with pytest.raises(ValueError, match="trees must be routers"):
        router.Forest((1,), np.zeros((32, 3)))
