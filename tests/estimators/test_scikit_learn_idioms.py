"""What programs for scikit-learn's trees and forests read: node ids, arrays of nodes, attributes, parameters."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier

from crisptree import CrispForestClassifier, CrispForestRegressor, CrispTreeClassifier, CrispTreeRegressor
from crisptree import TrainingOptions as Options
from tests.estimators.forests import classifier as plain_forest
from tests.estimators.forests import regressor
from tests.toys import plain_tree

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4)).astype(np.float32)
Y = (X[:, 0] + X[:, 1] > 0.3).astype(int) + (X[:, 2] > 0.8)


def thresholds(kind=CrispTreeClassifier, **parameters):
    """Return an estimator of CART's thresholds."""
    fixed = {"split": "axis", "l1": 0.0, "input_noise": 0.0, "shrinkage": 0.0, "leaf_model": "constant"}
    return kind(
        **fixed | {"max_depth": 4, "random_state": 0} | parameters, training=Options(grow="cart", finetune_epochs=0)
    )


@pytest.fixture(scope="module", params=["thresholds", "hyperplanes"])
def model(request):
    return (thresholds() if request.param == "thresholds" else plain_tree(max_depth=3, random_state=0)).fit(X, Y)


def test_apply_is_a_column_of_the_decision_path(model):
    paths, nodes = model.decision_path(X), model.apply(X)
    assert paths[np.arange(len(X)), nodes].all()
    assert (model.tree_.children_left[nodes] == -1).all()
    np.testing.assert_array_equal(nodes, model.tree_.apply(X))
    np.testing.assert_array_equal(nodes - model.tree_.structure.n_splits, model.leaf_indices(X))
    assert (paths != model.tree_.decision_path(X)).nnz == 0


def test_the_arrays_route_rows_as_the_tree_does(model):
    tree, nodes = model.tree_, np.zeros(len(X), dtype=int)
    for _ in range(tree.max_depth):
        for row in np.flatnonzero(tree.children_left[nodes] >= 0):
            node = nodes[row]
            if tree.feature[node] >= 0:
                is_left = X[row, tree.feature[node]] <= tree.threshold[node]
            else:
                assert tree.feature[node] == -3
                assert np.isnan(tree.threshold[node])
                is_left = tree.weights_[node] @ X[row] + tree.biases_[node] <= 0
            nodes[row] = (tree.children_left if is_left else tree.children_right)[node]
    np.testing.assert_array_equal(nodes, model.apply(X))


def test_the_values_of_nodes_are_those_of_their_training_rows(model):
    tree, paths = model.tree_, model.decision_path(X).toarray()
    np.testing.assert_allclose(tree.n_node_samples, paths.sum(axis=0))
    np.testing.assert_allclose(tree.weighted_n_node_samples, paths.sum(axis=0))
    for node in range(tree.node_count):
        shares = np.bincount(Y[paths[:, node]], minlength=3) / paths[:, node].sum()
        np.testing.assert_allclose(tree.value[node, 0], shares, atol=1e-12)
        np.testing.assert_allclose(tree.impurity[node], -(shares[shares > 0] * np.log2(shares[shares > 0])).sum())
    assert (tree.n_outputs, tree.max_n_classes, tree.n_leaves) == (1, 3, model.get_n_leaves())
    assert (model.n_outputs_, model.n_classes_, model.max_features_) == (1, 3, 4)


def test_a_stump_has_the_arrays_of_scikit_learn():
    ours = thresholds(max_depth=1).fit(X, Y)
    theirs = DecisionTreeClassifier(criterion="entropy", max_depth=1).fit(X, Y)
    for name in ("children_left", "children_right", "feature", "impurity", "n_node_samples", "value"):
        np.testing.assert_allclose(getattr(ours.tree_, name), getattr(theirs.tree_, name), err_msg=name)
    assert ours.tree_.threshold[0] == pytest.approx(theirs.tree_.threshold[0])


def test_values_and_impurities_of_regression_are_in_the_units_of_y():
    y = np.stack([1000 * X[:, 0], 5 + X[:, 1]], axis=1)
    model = thresholds(CrispTreeRegressor).fit(X, y)
    tree, paths = model.tree_, model.decision_path(X).toarray()
    assert tree.n_outputs == 2
    for node in range(tree.node_count):
        rows = y[paths[:, node]]
        np.testing.assert_allclose(tree.value[node, :, 0], rows.mean(axis=0), rtol=1e-4, atol=1e-2)
        np.testing.assert_allclose(tree.impurity[node], rows.var(axis=0).mean(), rtol=1e-4, atol=1e-2)


def test_the_pruning_path_has_the_names_and_the_order_of_scikit_learn():
    unfitted = thresholds(max_depth=None)
    path = unfitted.cost_complexity_pruning_path(X, Y)
    assert not hasattr(unfitted, "tree_")
    assert (np.diff(path.ccp_alphas) > 0).all()
    assert (np.diff(path.impurities) > 0).all()
    assert path.impurities[0] == pytest.approx(0, abs=1e-12)
    shares = np.bincount(Y) / len(Y)
    assert path.impurities[-1] == pytest.approx(-(shares * np.log(shares)).sum())
    fitted = thresholds(max_depth=None).fit(X, Y)
    np.testing.assert_array_equal(fitted.cost_complexity_pruning_path().ccp_alphas, path.ccp_alphas)


@pytest.fixture(scope="module")
def forest():
    return plain_forest(n_estimators=3).fit(X, Y)


def test_forests_iterate_and_index(forest):
    assert len(forest.estimators_) == len(list(forest)) == len(forest) == 3
    np.testing.assert_array_equal(forest[-1].predict(X), list(forest)[2].predict(X))
    with pytest.raises(IndexError, match="from 0 to 2"):
        forest[3]
    assert isinstance(forest.estimator_, CrispTreeClassifier)
    assert not hasattr(forest.estimator_, "tree_")


def test_nodes_of_a_forest_are_columns_of_its_decision_path(forest):
    paths, starts = forest.decision_path(X)
    nodes = forest.apply(X)
    assert nodes.shape == (200, 3)
    for number in range(3):
        assert paths[np.arange(len(X)), starts[number] + nodes[:, number]].all()


@pytest.mark.parametrize("bootstrap", [True, False, "balanced"])
def test_samples_of_estimators_are_those_that_trained_them(bootstrap):
    weight = np.ones(len(X))
    weight[:20] = 0  # rows that no tree sees
    forest = plain_forest(n_estimators=2, bootstrap=bootstrap, max_samples=0.5).fit(X, Y, weight)
    for samples, tree in zip(forest.estimators_samples_, forest, strict=True):
        assert len(samples) == 90
        assert samples.min() >= 20
        counts = np.bincount(tree.apply(X[samples]), minlength=tree.tree_.node_count)
        leaves = slice(tree.tree_.structure.n_splits, None)
        np.testing.assert_allclose(tree.tree_.weighted_n_node_samples[leaves], counts[leaves])


def test_balanced_subsample_balances_the_classes_of_every_tree():
    forest = plain_forest(n_estimators=3, class_weight="balanced_subsample").fit(X, Y)
    for tree in forest:
        np.testing.assert_allclose(tree.tree_.value[0, 0], 1 / 3)
    assert forest[0].class_weight is None
    with pytest.raises(ValueError, match="`class_weight` must be None, 'balanced' or a dict"):
        plain_tree(class_weight="balanced_subsample").fit(X, Y)


@pytest.mark.parametrize("share", ["sqrt", "log2"])
def test_features_are_drawn_for_splits_by_word(share):
    models = [plain_forest(n_estimators=1, max_features=each, split="axis").fit(X, Y) for each in (share, 2)]
    np.testing.assert_array_equal(*(model.apply(X) for model in models))  # both words mean 2 of 4 features


@pytest.mark.parametrize(
    ("kind", "name", "hint"),
    [
        (CrispTreeClassifier, "num_leaves", "here: `max_leaf_nodes`"),
        (CrispTreeClassifier, "criterion", "the loss is the log loss"),
        (CrispTreeRegressor, "min_child_samples", "here: `min_samples_leaf`"),
        (CrispTreeRegressor, "n_estimators", "forests have it"),
        (CrispTreeRegressor, "max_features", "`max_features_per_split`"),
        (CrispForestClassifier, "oob_score", "see the attribute `oob_score_`"),
        (CrispForestRegressor, "early_stopping_rounds", r"TrainingOptions\(n_iter_no_change="),
        (CrispForestRegressor, "colsample_bytree", "here: `max_features`"),
        (CrispForestRegressor, "learning_rate", "it is a training option"),
        (CrispTreeClassifier, "prune", "called 'ccp_alpha' now"),
        (CrispTreeClassifier, "nonsense", "it has split, max_depth"),
    ],
)
def test_parameters_of_other_libraries_get_a_hint(kind, name, hint):
    with pytest.raises(TypeError, match=f"has no parameter '{name}'.*{hint}"):
        kind(**{name: 1})


def test_every_hint_names_a_parameter_that_exists_or_explains_why_there_is_none():
    from crisptree.parameters.names import ELSEWHERE

    known = set(CrispForestClassifier.declared_parameters()) | set(CrispTreeRegressor.declared_parameters())
    for name, here in ELSEWHERE.items():
        assert name not in known
        assert " " in here or here in known, name


def test_arrays_are_part_of_no_file(tmp_path):
    import crisptree

    model = plain_tree(max_depth=3, random_state=0).fit(*load_iris(return_X_y=True))
    model.save(tmp_path / "iris.crisp")
    again = crisptree.load(tmp_path / "iris.crisp")
    for name in ("children_left", "feature", "threshold", "value", "impurity", "weights_"):
        np.testing.assert_array_equal(getattr(again.tree_, name), getattr(model.tree_, name))
    forest = regressor(n_estimators=2).fit(*load_diabetes(return_X_y=True))
    forest.save(tmp_path / "forest.crisp")
    with pytest.raises(AttributeError, match="not part of a model file"):
        _ = crisptree.load(tmp_path / "forest.crisp").estimators_samples_
