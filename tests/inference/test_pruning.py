from dataclasses import replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from crisptree.data.raw_rows import Scaling
from crisptree.inference import FlatTree, route_rows
from crisptree.inference.finalization import (
    cost_complexity_path,
    empty_statistics,
    finalize,
    find_dead_splits,
    prune,
    select_alpha,
    select_nodes,
)
from crisptree.structure import TreeStructure
from tests.toys import CHAIN, SHAPES, clouds, plain_tree, random_structure


def random_flat(structure, n_features=4, n_classes=3, seed=0, share_of_zeros=0.3):
    """Random hyperplanes; those of some splits are zero, and others lie beside all rows."""
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(structure.n_splits, n_features)).astype(np.float32)
    bias = (5 * rng.normal(size=structure.n_splits)).astype(np.float32)
    weight[rng.random(structure.n_splits) < share_of_zeros] = 0
    tables = rng.dirichlet(np.ones(n_classes), structure.n_leaves)
    statistics = empty_statistics(structure, Scaling.none(n_features), tables, 3.0)
    return FlatTree(structure, tables, statistics, weight=weight, bias=bias)


def finalized_tree(structure, seed=0, n=150, **options):
    X, y = clouds(n, n_features=4, seed=seed)
    weight = np.random.default_rng(seed).integers(1, 4, n).astype(float)
    return finalize(random_flat(structure, seed=seed, **options), X, y, weight, 0.0), X, y, weight


def remove_dead_splits(tree):
    """The tree with every split without training rows on both sides replaced by the child that has them."""
    dead, to_right = find_dead_splits(tree)
    return select_nodes(tree, *tree.structure.splice(dead, to_right), 0.0) if len(dead) else tree


def rows_on_both_sides(tree):
    structure, counts = tree.structure, tree.statistics.node_counts.sum(axis=1)
    return bool((counts[structure.left_nodes] > 0).all() and (counts[structure.right_nodes] > 0).all())


STRUCTURES = [*SHAPES, *(random_structure(15, seed) for seed in range(6))]


@pytest.mark.parametrize("structure", STRUCTURES, ids=range(len(STRUCTURES)))
def test_removing_dead_splits_changes_no_prediction_of_training_rows(structure):
    for seed in range(4):
        tree, X, y, weight = finalized_tree(structure, seed)
        alive = remove_dead_splits(tree)
        assert rows_on_both_sides(alive)
        before, after = route_rows(tree, X), route_rows(alive, X)
        assert np.array_equal(tree.leaves[before], alive.leaves[after])
        assert np.array_equal(tree.statistics.soft_leaves[before], alive.statistics.soft_leaves[after])
        assert not (alive.weight == 0).all(axis=1).any()
        assert alive.structure.n_leaves == len(np.unique(before))
        again = finalize(alive, X, y, weight, 0.0)
        for name in ("node_counts", "gain", "score_mean", "score_spread"):
            assert np.array_equal(getattr(again.statistics, name), getattr(alive.statistics, name))


def test_a_tree_without_dead_splits_is_returned_as_it_is():
    alive = remove_dead_splits(finalized_tree(random_structure(15, 0))[0])
    assert remove_dead_splits(alive) is alive


def test_a_tree_without_node_counts_is_returned_unchanged():
    tree = random_flat(CHAIN)
    assert len(find_dead_splits(tree)[0]) == 0
    assert remove_dead_splits(tree) is tree


def test_removing_a_dead_split_reroutes_rows_of_its_empty_side():
    stump = FlatTree(
        TreeStructure.stump(),
        np.eye(2),
        empty_statistics(TreeStructure.stump(), Scaling.none(1), np.eye(2), 1.0),
        weight=np.ones((1, 1), dtype=np.float32),
        bias=np.zeros(1, dtype=np.float32),
    )
    X = np.array([[-1.0], [-2.0], [-3.0]], dtype=np.float32)
    tree = remove_dead_splits(finalize(stump, X, np.array([0, 0, 1]), np.ones(3), 0.0))
    assert tree.structure == TreeStructure.single_leaf()
    np.testing.assert_allclose(tree.leaves, [[2 / 3, 1 / 3]])
    assert route_rows(tree, np.array([[5.0]], dtype=np.float32)).tolist() == [0]


def impurity(tree):
    structure, counts = tree.structure, tree.statistics.node_counts
    return float(tree.target.impurity(counts[structure.n_splits :]).sum() / counts[0].sum())


@pytest.mark.parametrize("seed", range(5))
def test_pruning_minimises_cost_complexity_over_all_subtrees(seed):
    tree = remove_dead_splits(finalized_tree(random_structure(9, seed), seed, share_of_zeros=0)[0])
    structure = tree.structure
    everything = [structure.prune([])]
    for chosen in range(2**structure.n_splits):
        ends = [split for split in range(structure.n_splits) if chosen >> split & 1]
        everything.append(structure.prune(ends))
    counts = tree.statistics.node_counts
    per_row = tree.target.impurity(counts) / counts[0].sum()
    costs = np.array([per_row[nodes[shape.n_splits :]].sum() for shape, nodes in everything])
    sizes = np.array([shape.n_leaves for shape, _ in everything])
    path = cost_complexity_path(tree)
    for alpha in [*path.ccp_alphas, *(path.ccp_alphas[1:] - 1e-6), 0.013, 10.0]:
        small = prune(tree, alpha)
        prices = costs + alpha * sizes
        assert impurity(small) + alpha * small.structure.n_leaves == pytest.approx(prices.min(), abs=1e-10)
        assert small.structure.n_leaves == sizes[prices <= prices.min() + 1e-10].min()


@pytest.mark.parametrize("seed", range(5))
def test_the_pruning_path_counts_leaves(seed):
    tree = finalized_tree(random_structure(20, seed), seed)[0]
    path = cost_complexity_path(tree)
    assert path.ccp_alphas[0] == 0
    assert (np.diff(path.ccp_alphas) > 0).all()
    assert (np.diff(path.n_leaves) < 0).all()
    assert path.n_leaves[-1] == 1
    assert [prune(tree, alpha).structure.n_leaves for alpha in path.ccp_alphas] == path.n_leaves.tolist()


def test_the_pruning_path_equals_that_of_scikit_learn():
    X, y = clouds(300, n_features=3, n_classes=3, seed=4)
    X = np.round(X + np.random.default_rng(0).normal(scale=3, size=X.shape), 1).astype(np.float32)
    theirs = DecisionTreeClassifier(criterion="entropy", max_depth=5, random_state=0).fit(X, y).tree_
    inner = np.flatnonzero(theirs.children_left >= 0)
    leaves = np.flatnonzero(theirs.children_left < 0)
    number = np.zeros(theirs.node_count, dtype=int)
    number[inner], number[leaves] = np.arange(len(inner)), ~np.arange(len(leaves))
    structure = TreeStructure(number[theirs.children_left[inner]], number[theirs.children_right[inner]])
    counts = theirs.value[:, 0] * theirs.weighted_n_node_samples[:, None]
    flat = random_flat(structure, 3)
    tree = replace(flat, statistics=replace(flat.statistics, node_counts=counts[np.concatenate([inner, leaves])]))
    path = DecisionTreeClassifier(criterion="entropy", max_depth=5, random_state=0).cost_complexity_pruning_path(X, y)
    expected = np.log(2) * path.ccp_alphas  # theirs are bits
    expected = expected[np.append(True, np.diff(expected) > 1e-12)]
    np.testing.assert_allclose(cost_complexity_path(tree).ccp_alphas, expected, atol=1e-9)


def test_select_alpha_takes_the_smallest_tree_within_one_standard_error():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 6)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    y[rng.random(1200) < 0.2] ^= 1  # noise that a deep tree learns by heart
    model = plain_tree(max_depth=6, epochs=5, finetune_epochs=5, random_state=0).fit(X[:600], y[:600])
    alpha = select_alpha(model.tree_, X[600:], y[600:], np.ones(600))
    small = model.prune(alpha)
    assert small.get_n_leaves() < model.get_n_leaves() / 3
    assert small.score(X[600:], y[600:]) > model.score(X[600:], y[600:])
    # By the definition, tree by tree and row by row.
    rights = [
        model.prune(price).predict(X[600:]) == y[600:] for price in model.cost_complexity_pruning_path().ccp_alphas
    ]
    best = max(rights, key=np.mean)
    close = [
        (best.astype(int) - right).mean() <= (best.astype(int) - right).std() / np.sqrt(600) + 1e-12 for right in rights
    ]
    assert alpha == model.cost_complexity_pruning_path().ccp_alphas[np.flatnonzero(close)[-1]]


def test_select_alpha_does_not_depend_on_the_scale_of_weights():
    tree = finalized_tree(random_structure(20, 1), 1, share_of_zeros=0)[0]
    X_held, y_held = clouds(80, n_features=4, seed=1)
    path = cost_complexity_path(tree).ccp_alphas
    assert select_alpha(tree, X_held, y_held, np.full(80, 2.0)) == select_alpha(tree, X_held, y_held, np.ones(80))
    assert select_alpha(tree, X_held, y_held, np.ones(80)) in path


def test_a_single_leaf_has_a_path_of_one_step():
    tree = finalized_tree(TreeStructure.single_leaf())[0]
    assert cost_complexity_path(tree).ccp_alphas.tolist() == [0.0]
    assert cost_complexity_path(tree).n_leaves.tolist() == [1]
    assert prune(tree, 5.0) is tree
    X, y = clouds(20, n_features=4)
    assert select_alpha(tree, X, y, np.ones(20)) == 0.0
