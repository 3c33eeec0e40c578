import numpy as np
import pytest
import torch
from sklearn.inspection import permutation_importance

from crisptree import CrispTreeClassifier, CrispTreeRegressor, explain
from crisptree.structure import TreeStructure
from tests.inspection.models import fitted, written


def test_importances_share_out_the_gain_by_what_a_spread_of_each_feature_moves():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(2000, 3)) * [1, 10, 5]).astype(np.float32)
    model = written(
        TreeStructure.stump(), [[1.0, 0.2, 0.0]], [0.0], [0, 1], X=X, y=(X[:, 0] > 0).astype(int), scale=None
    )
    found = explain.feature_importances(model.tree_)
    spread = model.tree_.statistics.scaling.spread  # ones: the tree was written without a scale
    assert found == pytest.approx(np.array([1.0, 0.2, 0.0]) * spread / 1.2)
    scaled = written(
        TreeStructure.stump(), [[1.0, 2.0, 0.0]], [0.0], [0, 1], X=X, y=(X[:, 0] > 0).astype(int), scale="feature"
    )
    assert explain.feature_importances(scaled) == pytest.approx([1 / 3, 2 / 3, 0], rel=1e-5)


def test_a_split_counts_by_its_gain_and_its_rows():
    # The root gains log 2 on all rows, split 1 gains log 2 on half of them.
    structure = TreeStructure([1, ~0], [~2, ~1])
    X = np.array([[-1, -1], [-1, 1], [1, 0], [1, 0]], dtype=np.float32)
    model = written(structure, [[1, 0], [0, 1]], [0, 0], [0, 1, 2], X=X, y=[0, 1, 2, 2])
    assert model.tree_.statistics.gain == pytest.approx([1.5 * np.log(2) - 0.5 * np.log(2), np.log(2)])
    assert explain.feature_importances(model) == pytest.approx([2 / 3, 1 / 3])


def test_importances_sum_to_one_and_are_an_attribute():
    model, _, _ = fitted(n_features=30)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert (model.feature_importances_ >= 0).all()
    assert model.feature_importances_.shape == (30,)


def test_one_leaf_has_no_importances():
    model, _, _ = fitted(max_depth=0)
    assert model.feature_importances_.tolist() == [0] * 6


def test_importances_of_modules_are_refused():
    model, X, y = fitted(split=lambda shape: torch.nn.Linear(shape[0], 1))
    assert not hasattr(model, "feature_importances_")
    with pytest.raises(TypeError, match="needs linear splits"):
        explain.feature_importances(model)
    assert permutation_importance(model, X, y, n_repeats=1, random_state=0).importances_mean.shape == (6,)


def test_scikit_learns_permutation_importance_finds_the_feature_that_matters():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).astype(np.float32)
    model, _, _ = fitted(max_depth=1)
    model = model.set_params(max_depth=2, training__epochs=20).fit(X, X[:, 2] > 0)
    found = permutation_importance(model, X, X[:, 2] > 0, n_repeats=3, random_state=0).importances_mean
    assert found.argmax() == explain.feature_importances(model).argmax() == 2


def test_importances_of_a_linear_leaf_are_the_influences_of_its_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)) * [1.0, 10.0, 1.0]
    model = CrispTreeRegressor(max_depth=0, leaf_model="linear", random_state=0).fit(X, 3 * X[:, 0] + 0.1 * X[:, 1])
    weight = np.abs(model.tree_.linear_weight[0, 0]) * model.tree_.statistics.scaling.spread
    assert model.feature_importances_ == pytest.approx(weight / weight.sum())
    assert model.feature_importances_ == pytest.approx([0.75, 0.25, 0.0], abs=0.03)


def test_importances_weigh_splits_and_linear_leaves_by_their_gains():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    y = 4.0 * (X[:, 0] > 0) + X[:, 1]
    model = CrispTreeRegressor(max_depth=1, split="axis", leaf_model="linear", shrinkage=0.0, random_state=0).fit(X, y)
    tree = model.tree_
    within = np.array([y[X[:, 0] <= 0].var(), y[X[:, 0] > 0].var()]).mean()
    found = model.feature_importances_
    # The split explains the variance between the halves, the leaves nearly all that within them.
    assert tree.structure.n_splits == 1
    assert found[0] == pytest.approx(1 - within / y.var(), abs=0.05)
    assert found.sum() == pytest.approx(1)


def test_importances_of_linear_leaves_of_classes_are_the_same_in_every_call():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 4))
    y = (2 * X[:, 1] - X[:, 3] + rng.logistic(size=300) > 0).astype(int)
    model = CrispTreeClassifier(max_depth=0, leaf_model="linear", random_state=0).fit(X, y)
    found = model.feature_importances_
    assert np.argsort(-found)[:2].tolist() == [1, 3]
    assert found.tolist() == model.feature_importances_.tolist()
    split = CrispTreeClassifier(max_depth=1, split="axis", leaf_model="linear", random_state=0).fit(X, y)
    assert split.feature_importances_[3] > 0.1  # which the split on column 1 does not have
