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
    models = fit_sparse_models(x, y, np.ones(200), [np.arange(100), np.arange(100, 200), np.arange(0)], 3)
    assert [np.flatnonzero(weight).tolist() for weight in models.weight[:, 0]] == [[1, 4], [1, 4], []]
    assert models.weight[0, 0, [1, 4]] == pytest.approx([2, -3], abs=0.3)
    assert fit_sparse_models(x, y, np.ones(200), [np.arange(200)], 1).weight[0, 0].nonzero()[0].tolist() == [4]


def test_a_weight_of_two_is_the_row_twice():
    rng = np.random.default_rng(2)
    x, weight = rng.normal(size=(80, 3)), rng.integers(1, 3, 80)
    y = (x[:, [0]] + rng.normal(size=(80, 1))) * 2
    twice = np.repeat(np.arange(80), weight)
    one = fit_sparse_models(x, y, weight.astype(float), [np.arange(80)], 1)
    other = fit_sparse_models(x[twice], y[twice], np.ones(len(twice)), [np.arange(len(twice))], 1)
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


def test_sums_in_leaves_are_for_readable_regressions(trends):
    X, y = trends
    with pytest.raises(ValueError, match="'sparse_linear' is for regression"):
        CrispTreeClassifier.readable(leaf_model="sparse_linear").fit(X, y > 0)
    with pytest.raises(ValueError, match=r"round_splits.*readable\(\)"):
        CrispTreeRegressor(leaf_model="sparse_linear").fit(X, y)
    training = TrainingOptions(round_splits=True)
    with pytest.raises(ValueError, match="max_leaf_nodes"):
        CrispTreeRegressor(leaf_model="sparse_linear", training=training).fit(X, y)
