"""What holds for every baseline that grows a tree."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from experiments.searches.co2 import co2_splits
from experiments.searches.growth import SEARCHES, grow_by_search
from experiments.searches.oc1 import oc1_splits
from experiments.searches.thresholds import SearchContext, random_splits

from crisptree.equations.routing import goes_right
from crisptree.learning.cart import LeafLimits
from crisptree.learning.engines.base import Groups
from crisptree.learning.growth import Stumps, single_leaf
from crisptree.learning.options import GrowthLimits, Plan
from crisptree.splits import resolve_kind
from tests.learning.test_growth import samples_of, training_accuracy
from tests.toys import checkerboard, clouds, diagonal, generator

PLAN = Plan(epochs=10, learning_rate=0.02, batch_size=10_000, min_updates=100)
OBLIQUE = sorted(set(SEARCHES) - {"axis_aligned"})
NOISE = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2


def grown(name, X, y, *, weight=None, seed=0, on_epoch=None, start=None, **limits):
    samples, random = samples_of(X, y), generator(seed)
    if weight is not None:
        samples = replace(samples, weight=torch.from_numpy(weight / weight.mean()).float())
    start = start or single_leaf(samples, resolve_kind("oblique", (np.shape(X)[1],)), random)
    return grow_by_search(name, start, samples, PLAN, GrowthLimits(**limits), random, on_epoch=on_epoch)


def gains(search, X, y, **options):
    samples = samples_of(X, y)
    groups = Groups(torch.arange(len(samples)), torch.tensor([len(samples)]))
    splits = search(SearchContext(samples, PLAN, LeafLimits(), generator()), groups, **options)
    leaves = torch.zeros(2, samples.target.n_values)
    return float(Stumps(splits, leaves, groups).outcome(samples, 1, 0.0).gains[0])


@pytest.mark.parametrize("name", OBLIQUE)
def test_one_oblique_split_finds_a_diagonal_boundary(name):
    X, y = diagonal()
    assert training_accuracy(grown(name, X, y, max_depth=1), X, y) == 1.0


def test_axis_aligned_splits_need_many_for_a_diagonal():
    X, y = diagonal()
    assert training_accuracy(grown("axis_aligned", X, y, max_depth=1), X, y) < 0.9
    assert training_accuracy(grown("axis_aligned", X, y), X, y) == 1.0


@pytest.mark.parametrize("name", SEARCHES)
def test_growth_ends_with_pure_leaves(name):
    for X, y in (clouds(90), checkerboard(120)):
        assert training_accuracy(grown(name, X, y), X, y) == 1.0


@pytest.mark.parametrize("name", SEARCHES)
def test_the_stopping_rules_hold(name):
    X, y = NOISE
    x = samples_of(X, y).rows.values
    assert grown(name, X, y, max_depth=3).structure.depth == 3
    assert grown(name, X, y, max_depth=0).structure.n_splits == 0
    assert grown(name, X, y, max_leaf_nodes=5).structure.n_leaves == 5
    assert torch.bincount(grown(name, X, y, max_depth=6, min_samples_leaf=20).route(x)).min() >= 20
    assert torch.bincount(grown(name, X, y, max_depth=6, min_weight_fraction_leaf=0.2).route(x)).min() >= 40
    assert grown(name, X, y, max_depth=4, min_impurity_decrease=0.5).structure.n_splits == 0
    assert grown(name, X, y, max_depth=6, min_samples_split=150).structure.n_splits <= 50


@pytest.mark.parametrize("name", SEARCHES)
def test_rows_that_cannot_be_distinguished_stay_in_one_leaf(name):
    assert grown(name, np.ones((10, 2)), np.arange(10) % 2, max_depth=3).structure.n_splits == 0


@pytest.mark.parametrize("name", SEARCHES)
def test_the_same_seed_gives_the_same_tree(name):
    X, y = clouds(120, n_classes=4)
    first, second = (grown(name, X, y, max_depth=3).splits.parameters for _ in range(2))
    assert all(torch.equal(first[part], second[part]) for part in first)


@pytest.mark.parametrize("name", OBLIQUE)
def test_another_seed_gives_another_tree(name):
    X, y = NOISE
    first, second = (grown(name, X, y, max_depth=2, seed=seed).splits.parameters["weight"] for seed in (0, 1))
    assert first.shape != second.shape or not torch.equal(first, second)


@pytest.mark.parametrize("name", SEARCHES)
def test_an_integer_weight_equals_repeating_the_row(name):
    X, y = NOISE
    weight = 1 + np.arange(200) % 3
    weighted = grown(name, X, y, weight=weight.astype(float), max_depth=3)
    repeated = grown(name, np.repeat(X, weight, axis=0), np.repeat(y, weight), max_depth=3)
    x = samples_of(X, y).rows.values
    assert torch.equal(weighted.route(x), repeated.route(x))
    torch.testing.assert_close(weighted.leaves, repeated.leaves, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_tree_can_grow_on_from_where_it_stands(name):
    X, y = NOISE
    shallow = grown(name, X, y, max_depth=1)
    deep = grown(name, X, y, max_depth=3, start=shallow)
    assert torch.equal(deep.splits.parameters["weight"][:1], shallow.splits.parameters["weight"])
    assert deep.structure.depth == 3


@pytest.mark.parametrize("name", SEARCHES)
def test_a_listener_is_called_at_every_level(name):
    records = []
    X, y = NOISE
    grown(name, X, y, max_depth=3, on_epoch=records.append)
    assert [record.level for record in records] == [1, 2, 3]
    assert records[0].loss > records[-1].loss > 0


def test_more_random_directions_gain_more():
    X, y = clouds(200, n_features=20, n_classes=4)
    assert gains(random_splits, X, y, n_directions=100) > gains(random_splits, X, y, n_directions=1)


def test_coordinate_descent_gains_over_its_starts_and_over_the_axis():
    X, y = clouds(300, n_features=10, n_classes=4)
    still = gains(oc1_splits, X, y, n_tries=0, n_jumps=0)
    assert still >= gains(SEARCHES["axis_aligned"], X, y) - 1e-9
    assert gains(oc1_splits, X, y) > still + 0.01


def test_coordinate_descent_on_some_of_the_rows_still_never_loses_to_the_axis():
    X, y = clouds(300, n_features=10, n_classes=4)
    assert gains(oc1_splits, X, y, max_rows=50) >= gains(SEARCHES["axis_aligned"], X, y) - 1e-9


def test_the_bound_gains_over_the_random_split_it_starts_from():
    X, y = clouds(300, n_features=20, n_classes=2)
    X = X / 10 + np.random.default_rng(0).normal(size=X.shape)
    assert gains(co2_splits, X, y) > gains(random_splits, X, y) + 0.01


def test_leaves_of_many_sizes_descend_side_by_side():
    X, y = clouds(400, n_features=6, n_classes=4)
    samples = samples_of(X, y)
    sizes = [5, 200, 40, 100, 55]
    groups = Groups(torch.randperm(400, generator=generator()), torch.tensor(sizes))
    splits = oc1_splits(SearchContext(samples, PLAN, LeafLimits(), generator()), groups)
    for number, rows in enumerate(groups.rows.split(sizes)):
        turns = goes_right(splits.score(samples.rows.values[rows], number))
        assert 0 < int(turns.sum()) < len(rows)
