import numpy as np
import pytest

from crisptree.inference import route_rows
from crisptree.inference.finalization import truncate
from tests.toys import FIGURE_1, SHAPES, clouds, plain_tree, random_structure

X, Y = clouds(300, n_classes=5)
X += np.random.default_rng(0).normal(scale=2, size=X.shape).astype(np.float32)


@pytest.fixture(scope="module")
def model():
    return plain_tree(grow="cart", max_depth=5, finetune_epochs=0, random_state=0).fit(X, Y)


@pytest.mark.parametrize("structure", [*SHAPES, random_structure(12, seed=0)], ids=range(len(SHAPES) + 1))
def test_a_truncated_structure_keeps_the_upper_nodes_in_order(structure):
    for depth in range(structure.depth + 2):
        shallow, nodes = structure.truncate(depth)
        assert shallow.depth == min(depth, structure.depth)
        assert np.array_equal(shallow.node_depths, structure.node_depths[nodes])
        for number, node in enumerate(nodes[: shallow.n_splits]):
            assert nodes[shallow.left_nodes[number]] == structure.left_nodes[node]
            assert nodes[shallow.right_nodes[number]] == structure.right_nodes[node]
    whole, nodes = structure.truncate(structure.depth)
    assert whole == structure
    assert np.array_equal(nodes, np.arange(structure.n_nodes))


def test_truncation_undoes_growth():
    # Levels 2 and 3 of the figure are grown on top of the stump.
    assert FIGURE_1.truncate(1)[0].n_leaves == 2
    before = random_structure(1, seed=0).split_leaves([0, 1])
    after = before.split_leaves([1, 0, 3])
    assert after.truncate(2)[0] == before


def test_a_depth_below_zero_is_refused():
    with pytest.raises(ValueError, match="depth must be at least 0; got -1"):
        FIGURE_1.truncate(-1)


@pytest.mark.parametrize("depth", range(6))
def test_leaf_tables_of_a_truncated_tree_are_class_frequencies_of_training_rows(model, depth):
    shallow = truncate(model.tree_, depth)
    leaf = route_rows(shallow, X)
    counts = np.zeros_like(shallow.leaves)
    np.add.at(counts, (leaf, Y), 1)
    assert shallow.structure.depth == depth
    np.testing.assert_allclose(shallow.leaves, counts / counts.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(shallow.statistics.node_counts[shallow.structure.n_splits :], counts)
    np.testing.assert_allclose(shallow.statistics.soft_leaves.sum(axis=1), 1)


def test_truncating_a_deep_tree_equals_growing_a_shallower_one(model):
    shallow = plain_tree(grow="cart", max_depth=3, finetune_epochs=0, random_state=0).fit(X, Y)
    by_cutting = model.truncate(3)
    assert by_cutting.tree_.structure == shallow.tree_.structure
    assert np.array_equal(by_cutting.tree_.weight, shallow.tree_.weight)
    assert np.array_equal(by_cutting.tree_.leaves, shallow.tree_.leaves)
    assert np.array_equal(by_cutting.predict(X), shallow.predict(X))
    assert (by_cutting.max_depth, by_cutting.get_depth(), model.get_depth()) == (3, 3, 5)


def test_a_truncated_tree_of_modules_predicts():
    import torch

    deep = plain_tree(
        split=lambda shape: torch.nn.Linear(shape[0], 1), max_depth=3, epochs=3, finetune_epochs=0, random_state=0
    ).fit(X, Y)
    shallow = deep.truncate(1)
    assert shallow.get_n_leaves() == 2
    assert np.array_equal(
        shallow.tree_.leaves, shallow.predict_proba(X)[[np.argmax(shallow.leaf_indices(X) == k) for k in (0, 1)]]
    )
