import numpy as np
import pytest

from crisptree.data.raw_rows import Scaling
from crisptree.inference import route_rows
from crisptree.inference.finalization import finalize, leaf_tables
from crisptree.structure import TreeStructure
from crisptree.targets import Classes
from tests.toys import FIGURE_1, SHAPES, clouds, random_tree


def finalized_tree(structure, prior=0.0):
    X, y = clouds(150)
    weight = np.random.default_rng(0).uniform(0.5, 2, 150)
    tree = random_tree(structure, 5, 3).crisp(Scaling.none(5), 1.0)
    return finalize(tree, X, y, weight, prior), X, y, weight


@pytest.mark.parametrize("structure", SHAPES)
def test_node_counts_equal_the_rows_that_pass_each_node(structure):
    tree, X, y, weight = finalized_tree(structure)
    leaf = route_rows(tree, X)
    for node, (start, stop) in enumerate(structure.leaf_spans):
        here = np.isin(leaf, structure.leaves_left_to_right[start:stop])
        for label in range(3):
            expected = weight[here & (y == label)].sum()
            assert tree.statistics.node_counts[node, label] == pytest.approx(expected)


def test_leaf_tables_are_the_class_frequencies_of_the_rows_that_reach_the_leaf():
    tree, X, y, weight = finalized_tree(FIGURE_1)
    leaf = route_rows(tree, X)
    for number in np.unique(leaf):
        here = leaf == number
        expected = np.bincount(y[here], weights=weight[here], minlength=3) / weight[here].sum()
        np.testing.assert_allclose(tree.leaves[number], expected)


def test_an_empty_leaf_inherits_the_table_of_its_nearest_nonempty_ancestor():
    # Of figure 1 the leaves B and C are empty, and so is the split above them; A holds what split 2 sees.
    leaf_counts = np.array([[3.0, 1.0], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [0.0, 4.0]])
    tables = leaf_tables(Classes(leaf_counts.shape[1]), FIGURE_1, FIGURE_1.sums_below(leaf_counts), 0.0)
    np.testing.assert_allclose(tables, [[0.75, 0.25], [0.75, 0.25], [0.75, 0.25], [1, 0], [0, 1]])


def test_a_prior_smooths_the_final_tables():
    tables = leaf_tables(Classes(2), TreeStructure.single_leaf(), np.array([[3.0, 1.0]]), 1.0)
    np.testing.assert_allclose(tables, [[4 / 6, 2 / 6]])


def test_score_moments_are_those_of_the_rows_that_visit_the_split():
    tree, X, _, weight = finalized_tree(FIGURE_1)
    leaf = route_rows(tree, X)
    here = np.isin(leaf, [0, 1, 2])  # the rows that go left at the root visit split 1
    scores = X[here] @ tree.weight[1] + tree.bias[1]
    mean = np.average(scores, weights=weight[here])
    assert tree.statistics.score_mean[1] == pytest.approx(mean, rel=1e-4)
    spread = np.sqrt(np.average((scores - mean) ** 2, weights=weight[here]))
    assert tree.statistics.score_spread[1] == pytest.approx(spread, rel=1e-4)


def test_gains_add_up_to_the_entropy_that_the_tree_removes():
    tree, *_ = finalized_tree(FIGURE_1)
    counts = tree.statistics.node_counts

    def entropy(row):
        shares = row[row > 0] / row.sum()
        return -(shares * np.log(shares)).sum()

    totals = counts.sum(axis=1)
    removed = totals[0] * entropy(counts[0]) - sum(
        t * entropy(c) for t, c in zip(totals[4:], counts[4:], strict=True) if t
    )
    assert (tree.statistics.gain * totals[:4]).sum() == pytest.approx(removed)
