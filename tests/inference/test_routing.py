import numpy as np
import pytest

from crisptree.data.raw_rows import Scaling
from crisptree.inference import route_rows
from crisptree.inference.flat_tree import LANES, linear_scores
from tests.toys import FIGURE_1, SHAPES, random_tree


def crisp(structure, n_features=3, seed=0):
    return random_tree(structure, n_features, 2, seed).crisp(Scaling.none(n_features), 1.0)


def rows(n=100, n_features=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, n_features)).astype(np.float32)


def one_by_one(tree, row):
    """A row's way, as a person would walk it."""
    node = 0 if tree.structure.n_splits else -1
    while node >= 0:
        goes_right = tree.scores(row[None], node)[0] > 0
        node = tree.structure.right[node] if goes_right else tree.structure.left[node]
    return ~node


@pytest.mark.parametrize("structure", SHAPES)
def test_every_row_reaches_the_leaf_at_the_end_of_its_path(structure):
    tree, X = crisp(structure), rows()
    assert route_rows(tree, X).tolist() == [one_by_one(tree, row) for row in X]


def test_routing_a_row_does_not_depend_on_the_batch():
    tree, X = crisp(FIGURE_1), rows()
    assert [route_rows(tree, X[i : i + 1])[0] for i in range(len(X))] == route_rows(tree, X).tolist()


def test_each_sample_visits_at_most_depth_splits():
    tree, X = crisp(SHAPES[-1]), rows()
    visited = np.zeros(len(X), dtype=int)
    from crisptree.inference.flat_tree import visit_splits

    for _, visitors, _ in visit_splits(tree, X):
        visited[visitors] += 1
    assert visited.max() <= tree.structure.depth


def test_no_rows_give_no_leaves():
    assert route_rows(crisp(FIGURE_1), np.zeros((0, 3), dtype=np.float32)).shape == (0,)


@pytest.mark.parametrize("n_features", [1, 15, 16, 17, 64, 100])
def test_scores_are_summed_in_lanes_that_are_added_pairwise(n_features):
    rng = np.random.default_rng(n_features)
    X, weight = rng.normal(size=(5, n_features)).astype(np.float32), rng.normal(size=n_features).astype(np.float32)
    bias = np.float32(0.3)
    for row, score in zip(X, linear_scores(X, weight, bias), strict=True):
        lanes = [np.float32(0)] * LANES
        for j in range(n_features):
            lanes[j % LANES] = lanes[j % LANES] + row[j] * weight[j]
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [lanes[i] + lanes[half + i] for i in range(half)]
        assert score.dtype == np.float32
        assert score == lanes[0] + bias
