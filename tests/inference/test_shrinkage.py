import numpy as np
import pytest

from crisptree.inference import route_rows
from crisptree.inference.finalization import STRENGTHS, leaf_tables, select_strength, shrink, truncate
from crisptree.metrics import log_loss
from crisptree.structure import TreeStructure
from tests.inference.test_pruning import finalized_tree
from tests.toys import SHAPES, clouds, random_structure

STRUCTURES = [*SHAPES, random_structure(15, 0), random_structure(15, 1)]


def by_definition(tree, strength):
    """p_root + Σ (p_child − p_parent) / (1 + λ / n_parent), leaf by leaf, where every node has rows."""
    structure, counts = tree.structure, tree.statistics.node_counts
    rows = counts.sum(axis=1)
    tables = []
    for leaf in range(structure.n_leaves):
        way = [split for split, _ in structure.path(leaf)] + [structure.n_splits + leaf]
        share = [counts[node] / rows[node] for node in way]
        table = share[0].copy()
        for place in range(1, len(way)):
            table += (share[place] - share[place - 1]) / (1 + strength / rows[way[place - 1]])
        tables.append(table)
    return np.array(tables)


@pytest.mark.parametrize("structure", STRUCTURES, ids=range(len(STRUCTURES)))
@pytest.mark.parametrize("strength", [0.1, 1.0, 20.0, 1e4])
def test_shrunk_tables_equal_the_definition(structure, strength):
    tree = finalized_tree(structure, share_of_zeros=0)[0]
    counts = structure.sums_below(tree.statistics.node_counts[structure.n_splits :] + 1.0)  # rows everywhere
    tree = shrink(tree, None)
    tree.statistics.node_counts[:] = counts
    np.testing.assert_allclose(
        leaf_tables(tree.target, structure, counts, 0.0, strength), by_definition(tree, strength), atol=1e-12
    )


@pytest.mark.parametrize("structure", STRUCTURES, ids=range(len(STRUCTURES)))
@pytest.mark.parametrize("strength", [0.0, 1e-9, 3.0, 1e12])
@pytest.mark.parametrize("prior", [0.0, 0.5])
def test_shrunk_tables_are_probabilities(structure, strength, prior):
    for seed in range(3):
        tree = finalized_tree(structure, seed)[0]  # some leaves and splits have no rows
        tables = leaf_tables(tree.target, structure, tree.statistics.node_counts, prior, strength)
        assert np.isfinite(tables).all()
        assert tables.min() >= 0
        np.testing.assert_allclose(tables.sum(axis=1), 1, atol=1e-12)


def test_a_strength_of_zero_keeps_the_leaf_frequencies():
    tree = finalized_tree(random_structure(15, 2))[0]
    counts = tree.statistics.node_counts
    own = counts[tree.structure.n_splits :]
    reached = own.any(axis=1)
    for prior in (0.0, 1.0):
        tables = leaf_tables(tree.target, tree.structure, counts, prior, 0.0)
        assert np.array_equal(tables[reached], tree.target.tables(own[reached], prior))
    assert shrink(tree, 0.0) is tree


def test_a_huge_strength_gives_every_leaf_the_table_of_the_root():
    tree = finalized_tree(random_structure(15, 2))[0]
    counts = tree.statistics.node_counts
    np.testing.assert_allclose(
        shrink(tree, 1e15).leaves, np.tile(counts[0] / counts[0].sum(), (tree.structure.n_leaves, 1)), atol=1e-9
    )


def test_shrinkage_changes_no_routing_and_is_reversible():
    tree, X, _, _ = finalized_tree(random_structure(15, 2))
    moved = shrink(tree, 7.0)
    assert moved.statistics.shrinkage == 7.0
    assert not np.array_equal(moved.leaves, tree.leaves)
    assert np.array_equal(route_rows(moved, X), route_rows(tree, X))
    assert np.array_equal(shrink(moved, None).leaves, tree.leaves)
    assert shrink(moved, None).statistics.shrinkage is None
    assert shrink(moved, 7.0) is moved


def test_truncating_a_shrunk_tree_keeps_its_shrinkage():
    tree = finalized_tree(random_structure(15, 2))[0]
    assert np.array_equal(truncate(shrink(tree, 7.0), 2).leaves, shrink(truncate(tree, 2), 7.0).leaves)


def test_select_strength_minimises_the_validation_log_loss():
    tree = finalized_tree(random_structure(15, 3), 3, share_of_zeros=0)[0]
    X, y = clouds(200, n_features=4, seed=3)
    leaf = route_rows(tree, X)
    losses = [log_loss(y, np.maximum(shrink(tree, strength).leaves[leaf], 1e-15)) for strength in STRENGTHS]
    assert select_strength([(tree, (X, y, np.ones(200)))]) == STRENGTHS[int(np.argmin(losses))]


def test_the_selected_strength_scales_with_the_weights():
    structure = random_structure(15, 3)
    tree = finalized_tree(structure, 3, share_of_zeros=0)[0]
    held = clouds(100, n_features=4, seed=3)
    once = select_strength([(tree, (*held, np.ones(100)))])
    tree.statistics.node_counts[:] *= 1000
    assert select_strength([(tree, (*held, np.ones(100)))], unit=1000.0) == 1000 * once


def test_a_strength_below_zero_is_refused():
    tree = finalized_tree(TreeStructure.stump())[0]
    with pytest.raises(ValueError, match=r"shrinkage must be at least 0; got -1"):
        shrink(tree, -1.0)
