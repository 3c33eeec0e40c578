"""Attributions add up, and agree with the definition of Shapley values and with shap."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from crisptree import CrispForestClassifier, CrispForestRegressor, CrispTreeClassifier, CrispTreeRegressor, explain
from crisptree.export import sklearn_tree
from tests.toys import plain_regressor, plain_tree


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)).astype(np.float32)
    return X, np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] + X[:, 2] > 0.5)]


@pytest.fixture(scope="module")
def axis_tree(rows):
    return CrispTreeClassifier(max_depth=4, split="axis", leaf_model="constant", shrinkage=0.0, random_state=0).fit(
        *rows
    )


def shapley_by_orders(predict, row, background, n_columns):
    """The definition: the mean over all orders and background rows of what a column changes."""
    values = 0
    orders = list(permutations(range(n_columns)))
    for order in orders:
        mixed, steps = background.copy(), [predict(background).mean(axis=0)]
        for column in order:
            mixed[:, column] = row[column]
            steps.append(predict(mixed).mean(axis=0))
        changes = np.empty((n_columns, *np.shape(steps[0])))
        changes[list(order)] = np.diff(steps, axis=0)
        values = values + changes / len(orders)
    return values


def predict_for(model):
    return getattr(model, "predict_proba", model.predict)


@pytest.mark.parametrize(
    "model",
    [
        plain_tree(max_depth=3, random_state=0),
        plain_regressor(max_depth=3, random_state=0),
        plain_regressor(max_depth=2, leaf_model="linear", random_state=0),
        CrispForestClassifier(n_estimators=3, max_depth=3, random_state=0),
        CrispForestRegressor(n_estimators=3, max_depth=3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_path_attributions_add_up_to_the_predictions(model, rows):
    X, y = rows
    model.fit(X, y if hasattr(model, "predict_proba") else X[:, 0] + 2 * (X[:, 1] > 0))
    result = explain.path_attributions(model, X)
    np.testing.assert_allclose(result.predictions, predict_for(model)(X), rtol=1e-10, atol=1e-10)


def test_thresholds_attribute_each_step_to_their_feature(axis_tree, rows):
    result = explain.path_attributions(axis_tree, rows[0][:1])
    path, expected = explain.path(axis_tree, rows[0][0]), np.zeros((4, 3))
    for step in path.steps:
        expected[step.pushes[0].feature] += step.after - step.before
    np.testing.assert_allclose(result.values[0], expected, atol=1e-12)


def test_exact_values_are_those_of_the_definition(axis_tree, rows):
    X, background = rows[0][:3], rows[0][20:40]
    oblique = plain_tree(max_depth=2, random_state=0).fit(*rows)
    for model in (axis_tree, oblique):
        result = explain.shapley_values(model, X, background)
        assert result.standard_errors is None
        assert "exact" in result.method
        for number, row in enumerate(X):
            expected = shapley_by_orders(model.predict_proba, row, background, 4)
            np.testing.assert_allclose(result.values[number], expected, atol=1e-10)


def test_a_tree_of_one_leaf_attributes_nothing(rows):
    model = CrispTreeClassifier(max_depth=0, random_state=0).fit(*rows)
    for background in (None, rows[0][:5]):
        result = explain.shapley_values(model, rows[0][:2], background)
        assert not result.values.any()
        np.testing.assert_allclose(result.predictions, model.predict_proba(rows[0][:2]))


def test_path_dependent_values_add_up(axis_tree, rows):
    result = explain.shapley_values(axis_tree, rows[0])
    np.testing.assert_allclose(result.predictions, axis_tree.predict_proba(rows[0]), atol=1e-10)
    shares = axis_tree.tree_.statistics.node_counts[0] / len(rows[0])
    np.testing.assert_allclose(result.base_values[0], shares, atol=1e-6)


def test_sampled_values_lie_within_their_errors(rows, monkeypatch):
    model = plain_tree(max_depth=3, random_state=0).fit(*rows)
    X, background = rows[0][:3], rows[0][20:30]
    exact = explain.shapley_values(model, X, background)
    monkeypatch.setattr("crisptree.inspection.attributions.MAX_ENUMERATED", 1)
    sampled = explain.shapley_values(model, X, background, n_permutations=995, random_state=0)
    assert "sampled, 1000 pairs" in sampled.method
    errors = np.abs(sampled.values - exact.values)
    assert (errors <= 5 * sampled.standard_errors + 0.005).all()
    assert np.sqrt(np.mean(errors**2)) <= 1.5 * np.sqrt(np.mean(sampled.standard_errors**2))
    np.testing.assert_allclose(sampled.predictions, model.predict_proba(X), atol=1e-10)


def test_columns_of_a_table_are_the_players():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(20, 60, 200), "plan": rng.choice(["basic", "plus", "pro"], 200)})
    y = 10.0 * (frame.plan == "pro") + frame.age
    model = CrispTreeRegressor(max_depth=4, split="axis", shrinkage=0.0, leaf_model="constant", random_state=0)
    model.fit(frame, y)
    for result in (explain.path_attributions(model, frame), explain.shapley_values(model, frame)):
        assert result.column_names == ["age", "plan"]
        assert result.values.shape == (200, 2)
        np.testing.assert_allclose(result.predictions, model.predict(frame))
        assert f"plan = {frame.plan[0]}" in str(result)


def test_several_columns_need_a_background(rows):
    model = plain_tree(max_depth=2, random_state=0).fit(*rows)
    with pytest.raises(ValueError, match="`background` must be given where splits have several columns"):
        explain.shapley_values(model, rows[0])


def test_importances_over_folds_have_a_spread(rows):
    X, y = rows
    result = explain.importances_over_folds(plain_tree(max_depth=2, random_state=0), X, y, n_folds=3)
    assert result.importances.shape == (3, 4)
    np.testing.assert_allclose(result.importances.sum(axis=1), 1)
    assert result.std.max() > 0
    assert "over 3 fits" in str(result)


@pytest.mark.slow
def test_values_agree_with_shap_and_go_into_its_plots(axis_tree, rows):
    shap = pytest.importorskip("shap", reason="pip install shap")
    import matplotlib as mpl

    mpl.use("agg")
    X, background = rows[0][:10], rows[0][20:60]
    twin = sklearn_tree(axis_tree)
    for own, theirs in (
        (explain.shapley_values(axis_tree, X), shap.TreeExplainer(twin, feature_perturbation="tree_path_dependent")),
        (
            explain.shapley_values(axis_tree, X, background),
            shap.TreeExplainer(twin, background, feature_perturbation="interventional"),
        ),
    ):
        np.testing.assert_allclose(own.values, theirs(X).values, atol=1e-6)
    explanation = explain.shapley_values(axis_tree, X, background).to_shap()
    shap.plots.waterfall(explanation[0, :, 1], show=False)
    shap.plots.beeswarm(explanation[:, :, 1], show=False)
    sampled = shap.Explainer(axis_tree.predict_proba, background)(X[:2])
    exact = explain.shapley_values(axis_tree, X[:2], background)
    np.testing.assert_allclose(sampled.values, exact.values, atol=1e-6)


def test_path_attributions_of_linear_leaves_of_classes_add_up():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    y = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0)]
    model = CrispTreeClassifier(max_depth=1, split="axis", leaf_model="linear", random_state=0).fit(X, y)
    assert model.tree_.is_linear
    result = explain.path_attributions(model, X)
    assert result.predictions == pytest.approx(model.predict_proba(X), abs=1e-12)
    single = CrispTreeClassifier(max_depth=0, leaf_model="linear", random_state=0).fit(X, X[:, 1] > 0)
    values = explain.path_attributions(single, X).values[..., 1]
    assert np.abs(values[:, 1]).mean() > 5 * np.abs(values[:, [0, 2]]).mean()  # column 1 decides
    assert ((values[:, 1] > 0) == (X[:, 1] > single.tree_.statistics.scaling.mean[1])).mean() > 0.95


def test_values_of_booleans_and_large_numbers_are_printed_as_in_the_table():
    rng = np.random.default_rng(4)
    X = pd.DataFrame(
        {"member": rng.random(80) < 0.5, "income": rng.integers(200, 900, 80) * 100, "plan": ["a", "b"] * 40}
    )
    model = CrispTreeRegressor(max_depth=2, split="axis", leaf_model="constant", random_state=0)
    model = model.fit(X, (90_000.0 * X["member"] + X["income"]).rename("price"))
    printed = str(explain.path_attributions(model, X[:1]))
    assert f"member = {str(bool(X['member'][0])).lower()}" in printed
    assert f"income = {X['income'][0]}" in printed
    assert printed.splitlines()[1].startswith("price: ")
    assert "e+" not in printed + str(explain.path(model, X[:1]))
