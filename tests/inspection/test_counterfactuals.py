from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch

from crisptree import explain
from crisptree.inspection import counterfactual_search
from crisptree.inspection.counterfactual_search import CounterfactualSearch
from crisptree.structure import TreeStructure
from tests.inspection.models import fitted, with_linear_leaves, written
from tests.toys import CHAIN, FIGURE_1, plain_regressor, random_structure

find_exactly = partial(explain.find_counterfactual, rounded=False)


def planes(structure, n_features, n_classes, seed, X=None, scale=None):
    rng = np.random.default_rng(seed)
    weight, bias = rng.normal(size=(structure.n_splits, n_features)), rng.normal(size=structure.n_splits) / 2
    classes = [int(leaf) % n_classes for leaf in rng.permutation(structure.n_leaves)]
    return written(structure, weight, bias, classes, n_classes=n_classes, X=X, scale=scale)


@pytest.mark.parametrize("structure", [FIGURE_1, CHAIN, TreeStructure.balanced(3), random_structure(20, 1)])
@pytest.mark.parametrize("to", [None, 1])
@pytest.mark.parametrize("is_linear", [False, True])
def test_no_point_is_nearer_in_the_plane(structure, to, is_linear):
    model = planes(structure, 2, 3, seed=structure.n_splits)
    model = with_linear_leaves(model, seed=1) if is_linear else model
    rng = np.random.default_rng(0)
    for row in rng.normal(size=(5, 2)).astype(np.float32):
        own = model.predict(row[None])[0]
        change = find_exactly(model, row, to=to)
        if own == to:
            continue
        angle, radius = rng.uniform(0, 2 * np.pi, 40_000), np.sqrt(rng.uniform(0, 1, 40_000))
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=1) * radius[:, None]
        near = (row + 0.999 * change.distance * circle).astype(np.float32)
        seen = model.predict(near)
        assert (seen == own).all() if to is None else (seen != to).all()
        assert change.predicted == model.predict(change.x[None])[0]
        assert change.predicted != own if to is None else change.predicted == to
        assert change.leaf == model.leaf_indices(change.x[None])[0]


def test_the_boundary_of_a_leafs_model_is_the_nearest():
    model = written(TreeStructure.stump(), [[1.0, 0.0]], [0.0], [0, 1])
    weight, bias = np.zeros((3, 2, 2)), np.zeros((3, 2))
    weight[1, 1], bias[1, 1] = [0.0, 2.0], -1.0  # left of 0, class 1 is above x1 = 0.5
    bias[2] = [1.0, 0.0]  # right of it there is class 0 only
    model.tree_ = replace(model.tree_, linear_weight=weight, linear_bias=bias)
    change = find_exactly(model, [-1.0, 0.0])
    assert change.x == pytest.approx([-1.0, 0.5], abs=1e-6)
    assert (change.predicted, change.leaf) == (1, 0)
    assert find_exactly(model, [1.0, 0.0]).x == pytest.approx([0.0, 0.5], abs=1e-6)
    assert find_exactly(model, [1.0, 0.0], to=0).distance == 0


def test_equal_scores_are_the_class_that_is_predicted():
    model = written(TreeStructure.stump(), [[1.0, 0.0]], [0.0], [0, 1])
    weight, bias = np.zeros((3, 2, 2)), np.zeros((3, 2))
    weight[:, 1] = [0.0, 1.0]
    model.tree_ = replace(model.tree_, linear_weight=weight, linear_bias=bias)
    assert 0 < find_exactly(model, [3.0, 0.0], to=1).distance < 1e-5
    assert find_exactly(model, [3.0, 0.5], to=0).x.tolist() == [3.0, 0.0]


def test_models_of_one_leaf_and_of_outputs_have_counterfactuals():
    X = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    model, _, _ = fitted(max_depth=0, leaf_model="linear")
    model.fit(X, (X[:, 0] + X[:, 1] > 0).astype(int))
    for row in X[:10]:
        change = find_exactly(model, row)
        assert change.predicted == model.predict(change.x[None])[0] != model.predict(row[None])[0]
    numbers = plain_regressor(max_depth=1, leaf_model="linear").fit(X, np.abs(X[:, 0]) + X[:, 1])
    for row, by in product(X[:10], (0.5, -0.5)):
        change = find_exactly(numbers, row, by=by)
        moved = (numbers.predict(change.x[None]) - numbers.predict(row[None]))[0] / by
        assert moved >= 1
        assert change.predicted == pytest.approx(numbers.predict(change.x[None])[0])
        random = np.random.default_rng(1).normal(size=(5000, 3))
        sphere = random / np.linalg.norm(random, axis=1, keepdims=True) / numbers.tree_.statistics.scaling.factor
        near = (row + 0.999 * change.distance * sphere).astype(np.float32)
        assert ((numbers.predict(near) - numbers.predict(row[None])) / by < 1).all()


def test_distances_are_measured_in_the_scale_of_the_training():
    X = (np.random.default_rng(0).normal(size=(500, 2)) * [1, 100]).astype(np.float32)
    # In scaled units the boundary z_0 + z_1 = 0 is nearest along (1, 1), which is (1, 100) in raw ones.
    model = written(TreeStructure.stump(), [[1, 1]], [0], [0, 1], X=X, scale="feature")
    row = np.array([1, 100], dtype=np.float32)
    scaling = model.tree_.statistics.scaling
    change = find_exactly(model, row)
    start = (row - scaling.center) * scaling.factor
    assert change.distance == pytest.approx(start.sum() / np.sqrt(2), rel=1e-4)
    ratio = [push.amount / spread for push, spread in zip(sorted_by_feature(change), scaling.spread, strict=True)]
    assert ratio[0] == pytest.approx(ratio[1], rel=1e-3)


def sorted_by_feature(change):
    return sorted(change.changes, key=lambda push: push.feature)


def test_changes_are_the_largest_in_scaled_size_and_add_up_to_the_new_row():
    model, X, _ = fitted(n_features=12)
    change = find_exactly(model, X[0], top=12)
    moved = change.x.astype(np.float64) - X[0]
    for push in change.changes:
        assert push.value == X[0, push.feature]
        assert push.amount == moved[push.feature]
    sizes = [abs(push.amount) * model.tree_.statistics.scaling.factor[push.feature] for push in change.changes]
    assert sizes == sorted(sizes, reverse=True)
    assert len(find_exactly(model, X[0], top=3).changes) == 3
    assert str(change.predicted) in str(change)
    assert change.changes[0].name in str(change)


def test_a_row_that_ties_needs_next_to_no_change():
    model = written(TreeStructure.stump(), [[1.0, 1.0]], [0.0], [0, 1])
    change = find_exactly(model, [3.0, -3.0])  # a score of exactly zero goes left
    assert change.predicted == 1
    assert 0 < change.distance < 1e-5


@pytest.mark.parametrize("whole", [False, True])
def test_a_row_of_zeros_on_a_boundary_needs_a_change(whole):
    X = np.random.default_rng(0).integers(-3, 4, (50, 2)).astype(np.float32)
    model = written(TreeStructure.stump(), [[0.0, 1.0]], [0.0], [0, 1], X=X, y=(X[:, 1] > 0).astype(int))
    assert model.predict([[0.0, 0.0]])[0] == 0
    statistics = replace(model.tree_.statistics, whole=np.full(2, whole, dtype=np.uint8))
    model.tree_ = replace(model.tree_, statistics=statistics)
    change = find_exactly(model, [0.0, 0.0])
    assert change.predicted == model.predict(change.x[None])[0] == 1
    assert change.x[1] == 1 if whole else change.x[1] < 1e-6


def test_the_class_of_the_row_itself_is_reached_by_no_change():
    model, X, _ = fitted()
    change = find_exactly(model, X[0], to=model.predict(X[:1])[0])
    assert (change.distance, change.changes) == (0, ())
    assert np.array_equal(change.x, X[0])


def test_a_cell_too_thin_for_single_precision_is_passed_over():
    # Between 1 and 1 + 2⁻³⁰ lies no float32; what is right of it is class 2.
    structure = TreeStructure([~0, ~1], [1, ~2])
    model = written(structure, [[1.0], [1.0]], [-1.0, -1.0], [0, 1, 2])
    assert find_exactly(model, [0.0]).predicted == 2
    assert find_exactly(model, [0.0], to=1) is None
    wedge = written(structure, [[1.0, 1e-4], [1.0, -1e-4]], [-1.0, -1.0], [0, 1, 2])
    change = find_exactly(wedge, [0.0, 0.0], to=1)  # opens slowly as x1 grows
    assert change.predicted == 1
    assert change.distance >= 1


def test_a_contradiction_on_the_path_is_an_empty_cell():
    structure = TreeStructure([~0, ~1], [1, ~2])
    model = written(structure, [[1.0], [1.0]], [-1.0, 1.0], [0, 1, 2])  # above 1, then not above −1
    assert find_exactly(model, [0.0], to=1) is None
    assert find_exactly(model, [0.0]).predicted == 2


def test_a_split_without_weights_sends_all_rows_to_one_child():
    structure = TreeStructure([1, ~0], [~2, ~1])
    model = written(structure, [[0.0, 0.0], [1.0, 0.0]], [-1.0, 0.0], [0, 1, 2])
    assert find_exactly(model, [-1.0, 0.0], to=2) is None
    assert find_exactly(model, [-1.0, 0.0]).distance == pytest.approx(1, rel=1e-5)


def test_columns_constant_in_training_stay_as_they_are():
    model, X, y = fitted(n_features=3)
    X = np.concatenate([X, np.full((len(X), 1), 7, dtype=np.float32)], axis=1)
    model.fit(X, y)
    assert find_exactly(model, X[0]).x[3] == 7


def test_there_is_no_other_class_in_one_leaf_or_where_all_leaves_agree():
    model, X, _ = fitted(max_depth=0)
    assert find_exactly(model, X[0]) is None
    same = written(TreeStructure.balanced(2), np.ones((3, 2)), [0, 1, -1], [1, 1, 1, 1])
    assert find_exactly(same, [0.0, 0.0]) is None
    assert find_exactly(same, [0.0, 0.0], to=0) is None


def test_large_raw_values_are_no_trouble():
    rng = np.random.default_rng(0)
    X = (1e7 + 100 * rng.normal(size=(200, 3))).astype(np.float32)
    y = (X.astype(np.float64).sum(axis=1) > 3e7).astype(int)
    model, _, _ = fitted(max_depth=1)
    model.fit(X, y)
    for row in X[:10]:
        change = find_exactly(model, row)
        assert change.predicted != model.predict(row[None])[0]


@pytest.mark.parametrize(("n_features", "depth"), [(784, 8), (4096, 6), (1, 4)])
def test_many_features_and_leaves_need_few_projections(n_features, depth, monkeypatch):
    model = planes(TreeStructure.balanced(depth), n_features, 10, seed=0)
    row = np.random.default_rng(1).normal(size=n_features).astype(np.float32)
    projections = []
    project = counterfactual_search.project_onto_polytope
    monkeypatch.setattr(
        counterfactual_search, "project_onto_polytope", lambda *given: projections.append(given) or project(*given)
    )
    change = find_exactly(model, row)
    assert len(projections) < 40
    assert change is None or change.predicted != model.predict(row[None])[0]


def test_far_leaves_are_never_solved():
    model = planes(TreeStructure.balanced(8), 50, 10, seed=0)
    row = np.zeros(50, dtype=np.float32)
    tree = model.tree_
    wanted = tree.labels() != tree.labels(model.leaf_indices(row[None])[0])
    search = CounterfactualSearch(tree, row, wanted)
    next(search.iterate_rows())
    assert search.n_programs < 40


def test_leaves_come_from_near_to_far():
    model = planes(FIGURE_1, 3, 5, seed=3)
    search = CounterfactualSearch(model.tree_, np.zeros(3, dtype=np.float32), np.ones(5, dtype=bool))
    distances = [found.distance for found in search.iterate_rows()]
    assert distances == sorted(distances)
    assert len(distances) == 5


def test_modules_and_unknown_classes_are_refused_with_a_sentence():
    model, X, _ = fitted(split=lambda shape: torch.nn.Linear(shape[0], 1))
    with pytest.raises(TypeError, match="find_counterfactual needs linear splits"):
        find_exactly(model, X[0])
    model, X, _ = fitted(labels=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"`to` must be one of the classes \['a', 'b', 'c'\]; got 'd'"):
        find_exactly(model, X[0], to="d")
    with pytest.raises(ValueError, match="`to` must be one of the classes"):
        find_exactly(model, X[0], to=np.array(["a", "b"]))
    assert find_exactly(model, X[0], to=np.str_("c")).predicted == "c"
