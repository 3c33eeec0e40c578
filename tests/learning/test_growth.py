import numpy as np
import pytest
import torch

from crisptree.learning.fitting import grow_balanced
from crisptree.learning.growth import TRIES, grow, single_leaf
from crisptree.learning.options import GrowthLimits, Plan
from crisptree.splits import resolve_kind
from tests.toys import checkerboard, class_samples, clouds, diagonal, generator

PLAN = Plan(epochs=20, learning_rate=0.05, min_updates=100)


def samples_of(X, y):
    return class_samples(
        torch.from_numpy(np.asarray(X, dtype=np.float32)),
        torch.from_numpy(np.asarray(y, dtype=np.int64)),
        torch.ones(len(X)),
        int(np.max(y)) + 1,
    )


def grown(X, y, *, split="oblique", plan=PLAN, on_epoch=None, start=None, **limits):
    samples, kind = samples_of(X, y), resolve_kind(split, (np.shape(X)[1],))
    random = generator()
    start = start or single_leaf(samples, kind, random)
    return grow(start, samples, plan, GrowthLimits(**limits), kind, generator=random, on_epoch=on_epoch)


def training_accuracy(tree, X, y):
    samples = samples_of(X, y)
    leaf = tree.route(samples.rows.values)
    majority = torch.zeros(tree.structure.n_leaves, samples.target.n_values).index_put_(
        (leaf, samples.y), torch.ones(len(y)), accumulate=True
    )
    return (majority.argmax(dim=1)[leaf] == samples.y).float().mean().item()


def test_one_oblique_split_finds_a_diagonal_boundary():
    X, y = diagonal()
    tree = grown(X, y, max_depth=1)
    assert training_accuracy(tree, X, y) == 1.0


@pytest.mark.parametrize("algorithm", ["em", "alternating", "likelihood"])
def test_growth_stops_when_the_leaves_are_pure(algorithm):
    X, y = clouds(90, n_classes=3)
    tree = grown(X, y, plan=Plan(algorithm, epochs=20, learning_rate=0.05, min_updates=200), max_depth=None)
    assert training_accuracy(tree, X, y) == 1.0
    assert tree.structure.n_leaves < 12


def test_no_leaf_is_deeper_than_the_largest_depth():
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    assert grown(X, y, max_depth=3).structure.depth == 3
    assert grown(X, y, max_depth=0).structure.n_splits == 0


def test_best_first_growth_splits_where_most_is_gained_and_stops_at_the_number_of_leaves():
    # Three clouds: the first split cannot separate all; the second goes to the mixed side.
    X, y = clouds(150, n_classes=3)
    tree = grown(X, y, max_leaf_nodes=3)
    assert tree.structure.n_leaves == 3
    assert training_accuracy(tree, X, y) > 0.95


def test_a_leaf_is_split_only_with_enough_rows_and_keeps_enough_on_both_sides():
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    tree = grown(X, y, max_depth=6, min_samples_leaf=20)
    sizes = torch.bincount(tree.route(samples_of(X, y).rows.values))
    assert sizes.min() >= 20
    tree = grown(X, y, max_depth=6, min_samples_split=150)
    assert tree.structure.n_splits <= 2


def test_a_split_must_reach_the_required_gain():
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    assert grown(X, y, max_depth=4, min_impurity_decrease=0.5).structure.n_splits == 0
    X, y = diagonal()
    assert grown(X, y, max_depth=4, min_impurity_decrease=0.5).structure.n_splits == 1


def test_a_stump_that_cannot_separate_its_rows_is_tried_again_five_times_and_stays_a_leaf():
    X, y = np.ones((10, 2)), np.arange(10) % 2
    records = []
    tree = grown(X, y, max_depth=3, on_epoch=records.append)
    assert tree.structure.n_splits == 0
    assert len(records) == TRIES * PLAN.epochs == 6 * PLAN.epochs


def test_the_children_of_a_new_split_have_different_tables():
    X, y = checkerboard()
    tree = grown(X, y, max_depth=1)
    assert not torch.allclose(tree.leaves[0], tree.leaves[1])


def test_a_tree_can_grow_on_from_where_it_stands():
    X, y = checkerboard()
    shallow = grown(X, y, max_depth=1)
    deep = grown(X, y, max_depth=4, start=shallow)
    assert torch.equal(deep.splits.select([0])(torch.ones(1, 2)), shallow.splits(torch.ones(1, 2)))
    assert deep.structure.n_leaves > shallow.structure.n_leaves


def test_axis_splits_use_one_feature_and_find_the_informative_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    y = (X[:, 4] > 0.3).astype(int)
    tree = grown(X, y, split="axis", max_depth=1)
    assert tree.splits.parameters["axis"].tolist() == [4]
    assert training_accuracy(tree, X, y) > 0.97


def test_module_splits_bend_where_a_hyperplane_cannot():
    X, y = checkerboard()

    def net(input_shape):
        hidden = torch.nn.Linear(input_shape[0], 16)
        return torch.nn.Sequential(hidden, torch.nn.Tanh(), torch.nn.Linear(16, 1))

    plan = Plan(epochs=30, learning_rate=0.05, min_updates=300)
    assert training_accuracy(grown(X, y, split=net, plan=plan, max_depth=1), X, y) > 0.9
    assert training_accuracy(grown(X, y, plan=plan, max_depth=1), X, y) < 0.8


def test_a_balanced_tree_is_complete_and_random():
    samples = samples_of(*clouds(60))
    tree = grow_balanced(samples, 3, resolve_kind("oblique", (5,)), generator())
    assert tree.structure.n_leaves == 8
    torch.testing.assert_close(tree.leaves.sum(dim=1), torch.ones(8))
    assert len(torch.unique(tree.leaves, dim=0)) == 8


def test_best_first_growth_takes_the_split_that_gains_most_before_others():
    # After the root separates the clouds, the left one is a clean diagonal and the right one is noise.
    left, labels = diagonal(200)
    rng = np.random.default_rng(0)
    X = np.concatenate([left - np.array([10, 0]), rng.uniform(-1, 1, (200, 2)) + np.array([10, 0])])
    y = np.concatenate([labels, 2 + rng.integers(0, 2, 200)])
    tree = grown(X, y, max_leaf_nodes=3, plan=Plan(epochs=20, learning_rate=0.05, min_updates=300))
    root_children = (tree.structure.left[0], tree.structure.right[0])
    assert 1 in root_children
    scores = tree.splits(torch.from_numpy(X.astype(np.float32)))[:200, 1]
    side = (scores > 0).numpy()
    assert max((side == labels).mean(), (side != labels).mean()) > 0.97


def test_each_side_keeps_its_share_of_the_weights():
    X, y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2
    tree = grown(X, y, max_depth=6, min_weight_fraction_leaf=0.2)
    sizes = torch.bincount(tree.route(samples_of(X, y).rows.values))
    assert sizes.min() >= 40


def test_a_leaf_prior_smooths_the_tables_of_training():
    X, y = diagonal()
    plain, smooth = (
        grown(X, y, plan=Plan(epochs=20, learning_rate=0.05, min_updates=100, leaf_prior=prior), max_depth=1)
        for prior in (0.0, 50.0)
    )
    assert plain.leaves.max() > 0.9 > smooth.leaves.max()
