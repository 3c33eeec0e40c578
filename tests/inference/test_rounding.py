"""Splits in round numbers."""

import numpy as np
import pytest

from crisptree import CrispTreeClassifier, CrispTreeRegressor
from crisptree.inference import round_splits, route_rows
from crisptree.inference.rounding import MAX_REROUTED, find_round_threshold, round_split, round_within
from crisptree.structure import TreeStructure
from tests.inspection.models import written


def test_the_roundest_number_has_the_fewest_digits_and_lies_in_the_interval():
    rng = np.random.default_rng(0)
    for low, width in zip(rng.normal(size=200) * 10.0 ** rng.integers(-3, 6, 200), rng.uniform(0, 1, 200), strict=True):
        high = low + width * abs(low)
        number = round_within(low, high)
        assert low <= number <= high
        digits = len(f"{abs(number):.12e}".split("e")[0].replace(".", "").rstrip("0"))
        fewer = [float(f"{value:.{digits - 1}g}") for value in np.linspace(low, high, 50)] if digits > 1 else []
        assert not any(low <= one <= high for one in fewer)


def test_thresholds_keep_all_but_a_small_share_of_the_rows_on_their_side():
    rng = np.random.default_rng(1)
    scores, weight = rng.normal(50_000, 20_000, 5000), rng.uniform(0.5, 2, 5000)
    for limit in rng.normal(50_000, 10_000, 20):
        threshold = find_round_threshold(scores, scores > limit, weight)
        moved = (scores > threshold) != (scores > limit)
        assert weight[moved].sum() <= MAX_REROUTED * weight.sum()
        assert len(f"{threshold:g}".rstrip("0")) <= 4


def test_scores_in_another_order_have_no_threshold():
    assert find_round_threshold(np.array([1.0, 2, 3, 4]), np.array([True, False, True, False]), np.ones(4)) is None
    assert find_round_threshold(np.ones(4), np.array([True, False, True, False]), np.ones(4)) is None


def test_weights_get_few_digits_where_rows_allow_and_are_kept_where_they_do_not():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 2))
    gap = np.abs(x @ [2.0, 1.0] - 0.3) > 0.2
    weights, bias = np.array([0.4021, 0.1997]), -0.06
    rounded, offset = round_split(x[gap], weights, bias, x[gap] @ weights + bias > 0, np.ones(gap.sum()))
    assert rounded.tolist() == [2.0, 1.0]
    assert ((x[gap] @ rounded + offset > 0) == (x[gap] @ weights + bias > 0)).mean() >= 1 - MAX_REROUTED
    many = rng.normal(size=(200_000, 2))
    exact = np.array([1.0, np.pi / 3])
    kept, _ = round_split(many, exact, 0.0, many @ exact > 0, np.ones(len(many)))
    assert len(f"{kept[1]:g}") <= 5


def test_terms_that_reroute_no_row_are_dropped():
    x = np.stack([np.repeat([0.0, 1.0], 50), np.linspace(0, 1, 100)], axis=1)
    rounded, bias = round_split(x, np.array([3.0, 0.1]), -1.5, x[:, 0] > 0, np.ones(100))
    assert rounded.tolist() == [1.0, 0.0]
    assert bias == -0.5


def test_two_indicators_that_add_up_to_one_become_one_term():
    first = np.random.default_rng(3).integers(0, 2, 200).astype(float)
    x = np.stack([first, 1 - first, np.random.default_rng(4).normal(size=200)], axis=1)
    weights = np.array([1.0, -1.0, 1.0])
    rounded, bias = round_split(x, weights, 0.2, x @ weights + 0.2 > 0, np.ones(200))
    assert np.count_nonzero(rounded[:2]) == 1
    assert ((x @ rounded + bias > 0) == (x @ weights + 0.2 > 0)).mean() >= 1 - 2 * MAX_REROUTED


def test_rows_reach_nearly_the_same_leaves_of_a_rounded_tree():
    rng = np.random.default_rng(5)
    X = (rng.normal(size=(4000, 3)) * [1, 100, 0.01]).astype(np.float32)
    weight = rng.normal(size=(3, 3)) / [1, 100, 0.01]
    model = written(TreeStructure.balanced(2), weight, rng.normal(size=3) / 4, [0, 1, 0, 1], X=X, y=np.arange(4000) % 2)
    rounded = round_splits(model.tree_, X, np.ones(len(X)))
    same = route_rows(rounded, X, 1) == route_rows(model.tree_, X, 1)
    assert same.mean() >= 1 - 3 * MAX_REROUTED
    characters = [sum(len(f"{value:g}") for value in tree.weight.ravel()) for tree in (model.tree_, rounded)]
    assert characters[1] < 0.7 * characters[0]


@pytest.mark.parametrize("kind", [CrispTreeClassifier, CrispTreeRegressor])
def test_leaves_of_a_rounded_fit_are_counted_with_the_rounded_splits(kind):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(500, 4)).astype(np.float32)
    y = (X[:, 0] + 0.7 * X[:, 1] > 0.2).astype(int)
    model = kind.readable(max_leaf_nodes=4, random_state=0).fit(X, y)
    leaves = model.leaf_indices(X)
    tree = model.tree_
    counts = tree.target.weight(tree.statistics.node_counts[tree.structure.n_splits :])
    assert np.bincount(leaves, minlength=len(counts)).tolist() == counts.tolist()
