"""Linear leaves of a few features: selection of features, round numbers, and readable regression trees."""

import numpy as np
import pytest

from crisptree import CrispTreeClassifier, CrispTreeRegressor, TrainingOptions, explain, export, load
from crisptree.inference import route_rows
from crisptree.learning.sparse_leaves import fit_sparse_models


@pytest.fixture(scope="module")
def trends():
    """Two trends in features of very different units, on both sides of a threshold."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(600, 5)) * [1, 10, 1, 1000, 1]).astype(np.float32)
    y = np.where(X[:, 0] > 0.3, 200 + 30 * X[:, 1], -50 + 0.1 * X[:, 3]) + rng.normal(size=600) * 5
    return X, y


@pytest.fixture(scope="module")
def model(trends):
    return CrispTreeRegressor.readable(random_state=0).fit(*trends)


def test_features_are_selected_while_they_save_their_penalty():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 6))
    y = (2 * x[:, 1] - 3 * x[:, 4] + rng.normal(size=200))[:, None]
    models = fit_sparse_models(
        x, y, np.ones(200), [np.arange(100), np.arange(100, 200), np.arange(0)], 3, is_regression=True
    )
    assert [np.flatnonzero(weight).tolist() for weight in models.weight[:, 0]] == [[1, 4], [1, 4], []]
    assert models.weight[0, 0, [1, 4]] == pytest.approx([2, -3], abs=0.3)
    assert fit_sparse_models(x, y, np.ones(200), [np.arange(200)], 1, is_regression=True).weight[0, 0, 4]


def test_a_weight_of_two_is_the_row_twice():
    rng = np.random.default_rng(2)
    x, weight = rng.normal(size=(80, 3)), rng.integers(1, 3, 80)
    y = (x[:, [0]] + rng.normal(size=(80, 1))) * 2
    twice = np.repeat(np.arange(80), weight)
    one = fit_sparse_models(x, y, weight.astype(float), [np.arange(80)], 1, is_regression=True)
    other = fit_sparse_models(x[twice], y[twice], np.ones(len(twice)), [np.arange(len(twice))], 1, is_regression=True)
    assert one.weight == pytest.approx(other.weight, rel=0.02)  # the ridge is in rows of the table


def test_leaves_of_readable_regressions_are_short_round_sums(trends, model):
    X, y = trends
    tree = model.tree_
    assert model.get_n_leaves() == 2
    assert model.score(X, y) > 0.998
    assert (np.count_nonzero(tree.linear_weight, axis=2) <= 3).all()
    sentences = export.sentences(model).splitlines()
    assert sentences[0].startswith("if x0 ≤ 0.3: −")
    assert "× x3 ± " in sentences[0]
    assert "× x1 ± " in sentences[1]
    raw = tree.linear_weight * model.tree_.statistics.y_unit
    assert all(float(f"{weight:.4g}") == pytest.approx(weight, rel=1e-9) for weight in raw[raw != 0])


def test_the_displayed_sum_predicts(trends, model):
    X, _ = trends
    tree = model.tree_
    leaf, statistics = route_rows(tree, X), model.tree_.statistics
    weight = tree.linear_weight[tree.structure.n_splits + leaf, 0] * statistics.y_unit
    bias = tree.linear_bias[tree.structure.n_splits + leaf, 0] * statistics.y_unit + statistics.y_center
    assert (weight * X).sum(axis=1) + bias == pytest.approx(model.predict(X), rel=1e-6, abs=1e-6)


def test_files_and_explanations_keep_the_sums(trends, model, tmp_path):
    X, _ = trends
    model.save(tmp_path / "m.crisp")
    assert np.array_equal(load(tmp_path / "m.crisp").predict(X), model.predict(X))
    assert explain.path_attributions(model, X[:5]).predictions == pytest.approx(model.predict(X[:5]))


def test_several_outputs_and_weights(trends):
    X, y = trends
    Y, weight = np.column_stack([y, X[:, 2] - 2 * y]), np.random.default_rng(0).uniform(0.5, 2, len(y))
    model = CrispTreeRegressor.readable(random_state=0).fit(X, Y, sample_weight=weight)
    assert model.score(X, Y) > 0.99
    assert "y1 = " in export.sentences(model)


def test_constants_are_kept_where_they_are_asked_for(trends):
    X, y = trends
    model = CrispTreeRegressor.readable(leaf_model="constant", max_leaf_nodes=3, random_state=0).fit(X, y)
    assert not model.tree_.is_linear


def test_sums_in_leaves_are_for_readable_trees(trends):
    X, y = trends
    with pytest.raises(ValueError, match=r"round_splits.*readable\(\)"):
        CrispTreeRegressor(leaf_model="sparse_linear").fit(X, y)
    training = TrainingOptions(round_splits=True)
    with pytest.raises(ValueError, match="max_leaf_nodes"):
        CrispTreeRegressor(leaf_model="sparse_linear", training=training).fit(X, y)


@pytest.fixture(scope="module")
def classes():
    """Classes whose log odds are a different sum of two features on each side of a threshold."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(900, 6)) * [1, 10, 1, 1000, 1, 1]).astype(np.float32)
    odds = np.where(X[:, 0] > 0.3, 0.3 * X[:, 1] + 2 * X[:, 2], 0.004 * X[:, 3] - 3 * X[:, 4])
    return X, np.array(["no", "yes"])[(odds + rng.logistic(size=900) > 0).astype(int)]


@pytest.fixture(scope="module")
def classifier(classes):
    return CrispTreeClassifier.readable(max_leaf_nodes=2, random_state=0).fit(*classes)


def test_the_log_odds_of_the_most_frequent_class_are_fitted():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3000, 5))
    odds = np.column_stack([1 + 2 * x[:, 1] - x[:, 3], np.zeros(3000), np.full(3000, -1.0)])
    y = np.eye(3)[(odds + rng.gumbel(size=odds.shape)).argmax(axis=1)]
    models = fit_sparse_models(x, y, np.ones(3000), [np.arange(3000)], 3, is_regression=False)
    assert np.flatnonzero(models.weight[0, 0]).tolist() == [1, 3]
    assert models.weight[0, 0, [1, 3]] == pytest.approx([2, -1], abs=0.2)
    assert not models.weight[0, 1:].any()
    assert np.exp(models.bias[0, 1:]).sum() == pytest.approx(1)  # the others keep their shares among themselves
    assert models.bias[0, 0] == pytest.approx(1 - np.log(1 + np.exp(-1)), abs=0.2)


def test_leaves_without_a_useful_feature_have_shares():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(90, 4)), np.eye(3)[np.repeat([0, 1, 1, 2, 1], 18)]
    models = fit_sparse_models(x, y, np.ones(90), [np.arange(90)], 3, is_regression=False)
    shares = np.exp(models.bias[0]) / np.exp(models.bias[0]).sum()
    assert not models.weight.any()
    assert shares == pytest.approx([0.2, 0.6, 0.2])


def test_the_displayed_score_predicts(classes, classifier):
    X, y = classes
    tree = classifier.tree_
    assert classifier.score(X, y) > 0.8
    assert (np.count_nonzero(tree.linear_weight, axis=2) <= 3).all()
    leaf = route_rows(tree, X)
    node = tree.structure.n_splits + leaf
    scores = (tree.linear_weight[node] * X[:, None]).sum(axis=2) + tree.linear_bias[node]
    top = np.abs(tree.linear_weight).sum(axis=2).argmax(axis=1)[node]
    own = 1 / (1 + np.exp(-scores[np.arange(len(X)), top]))
    assert own == pytest.approx(classifier.predict_proba(X)[np.arange(len(X)), top], abs=1e-6)
    weights = tree.linear_weight[tree.structure.n_splits :]
    assert all(float(f"{weight:.3g}") == pytest.approx(weight, rel=1e-9) for weight in weights[weights != 0])
    assert "; score of " in export.sentences(classifier)


def test_files_exports_and_explanations_keep_the_scores(classes, classifier, tmp_path):
    X, _ = classes
    classifier.save(tmp_path / "m.crisp")
    assert np.array_equal(load(tmp_path / "m.crisp").predict_proba(X), classifier.predict_proba(X))
    assert "score" in str(explain.path(classifier, X[0]))
    assert explain.shapley_values(classifier, X[:2], background=X[:50]).values.shape[0] == 2
