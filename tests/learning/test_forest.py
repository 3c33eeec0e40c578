"""Trees that train together are those that train alone, and share the memory of their rows."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from crisptree.data.rows import ArrayRows, SelectedRows, learn_scaling
from crisptree.learning.fitting import Bootstrap, fit_forest, fit_tree
from crisptree.learning.options import Spec
from crisptree.learning.samples import RowSet, TrainingTask, relative_weights
from crisptree.targets import Classes, Gaussians
from tests.estimators.forests import parameters

N = 260
X = np.random.default_rng(0).normal(size=(N, 6)).astype(np.float32)
SIDES = (X[:, 0] * X[:, 1] > 0).astype(np.int64) + (X[:, 2] > 1)
NUMBERS = ((X[:, :1] + X[:, 1:2] ** 2) - 1).astype(np.float64)


def problem(y=SIDES, target=None):
    weight = np.linspace(0.5, 1.5, N)
    return TrainingTask(RowSet(X, y, weight), learn_scaling(X, weight, "feature"), target or Classes(3))


def spec_of(whole, **changes):
    quick = {"epochs": 3, "finetune_epochs": 3, "min_updates": 12, "batch_size": 64}
    values = parameters(**quick | changes)
    return Spec.of(values, input_norm=6, mean_weight=1.0, n_rows=N, image_shape=None, seed=0)


def bags(number=3):
    rng = np.random.default_rng(1)
    return [Bootstrap(np.bincount(rng.integers(N, size=N), minlength=N), seed) for seed in range(number)]


def alone(spec, whole, bag):
    rows, here = whole.training, np.flatnonzero(bag.counts)
    own = RowSet(rows.X[here], rows.y[here], bag.weight(rows)[here])
    return fit_tree(replace(spec, seed=bag.seed), TrainingTask(own, whole.scaling, whole.target)).tree


@pytest.mark.parametrize(
    ("changes", "n_drawn", "y", "target"),
    [
        ({}, None, SIDES, Classes(3)),
        ({"input_noise": 0.4, "l1": 0.01}, None, SIDES, Classes(3)),
        ({"algorithm": "em", "max_leaf_nodes": 5}, None, SIDES, Classes(3)),
        ({}, 2, SIDES, Classes(3)),
        ({"max_features_per_split": 2, "monotonic_cst": {0: 1}}, None, SIDES, Classes(3)),
        ({}, None, NUMBERS, Gaussians(2)),
    ],
    ids=["plain", "noise", "best first", "drawn features", "constraints", "numbers"],
)
def test_a_tree_of_a_forest_is_the_tree_of_its_rows_and_seed_alone(changes, n_drawn, y, target):
    whole = problem(y, target)
    spec = replace(spec_of(whole, **changes), n_drawn=n_drawn)
    for bag, found in zip(bags(), fit_forest(spec, whole, bags()), strict=True):
        one = alone(spec, whole, bag)
        assert np.array_equal(one.structure.left, found.tree.structure.left)
        assert np.array_equal(one.weight, found.tree.weight)
        assert np.array_equal(one.bias, found.tree.bias)
        assert np.array_equal(one.leaves, found.tree.leaves)
        assert np.allclose(one.statistics.score_spread, found.tree.statistics.score_spread)


def test_a_forest_is_the_same_on_any_number_of_threads():
    whole = problem()
    spec = spec_of(whole)
    one, two = ([found.tree.weight for found in fit_forest(replace(spec, n_jobs=n), whole, bags())] for n in (1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_trees_that_wait_become_the_same(monkeypatch):
    whole = problem()
    spec = spec_of(whole)
    at_once = [found.tree.weight for found in fit_forest(spec, whole, bags())]
    monkeypatch.setattr("crisptree.learning.fitting.MAX_PAIRS_AT_ONCE", N)
    one_by_one = [found.tree.weight for found in fit_forest(spec, whole, bags())]
    assert all(np.array_equal(a, b) for a, b in zip(at_once, one_by_one, strict=True))


def test_features_that_were_not_drawn_have_no_weight():
    whole = problem()
    for found in fit_forest(replace(spec_of(whole), n_drawn=2), whole, bags(2)):
        assert (np.count_nonzero(found.tree.weight, axis=1) <= 2).all()


def test_thresholds_are_those_of_scikit_learns_tree():
    from sklearn.tree import DecisionTreeClassifier

    whole = problem()
    spec = replace(spec_of(whole, finetune_epochs=0), split="axis", grow="cart", n_drawn=None)
    spec = replace(spec, limits=replace(spec.limits, max_depth=None))
    bag = bags(1)[0]
    tree = next(iter(fit_forest(spec, whole, [bag]))).tree
    assert (np.count_nonzero(tree.weight, axis=1) == 1).all()
    here = np.flatnonzero(bag.counts)
    scaled = whole.scaling.apply(X)
    rival = DecisionTreeClassifier(criterion="entropy", random_state=bag.seed)
    weight = relative_weights(bag.weight(whole.training)[here]).double().numpy()
    rival.fit(scaled[here], SIDES[here], sample_weight=weight)
    assert tree.structure.n_leaves == rival.get_n_leaves()
    from crisptree.inference import route_rows

    assert np.mean(tree.labels(route_rows(tree, X)) == rival.predict(scaled)) > 0.99


def test_picked_rows_are_read_in_place():
    values = torch.arange(12.0).reshape(4, 3)
    rows = SelectedRows.of(ArrayRows(values), torch.tensor([3, 0, 3]))
    again = SelectedRows.of(rows, torch.tensor([0, 1]))
    assert again.index.tolist() == [3, 0]
    assert rows.data.data_ptr() == values.data_ptr()
    assert torch.equal(rows.batch(torch.tensor([0, 2])), values[[3, 3]])
