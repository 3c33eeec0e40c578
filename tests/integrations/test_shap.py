"""shap.Explainer takes trees and forests, and its plots draw the values."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crisptree import CrispForestClassifier, CrispForestRegressor, CrispTreeClassifier, CrispTreeRegressor, explain

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

AXIS = {"split": "axis", "leaf_model": "constant", "max_depth": 3, "random_state": 0}
OBLIQUE = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "max_depth": 3, "random_state": 0}


@pytest.fixture(scope="module")
def shap():
    shap = pytest.importorskip("shap", reason="pip install shap")
    pytest.importorskip("crisptree.shap")
    return shap


@pytest.mark.parametrize(
    ("model", "load"),
    [
        (CrispTreeClassifier(**AXIS), load_breast_cancer),
        (CrispTreeRegressor(**AXIS), load_diabetes),
        (CrispForestClassifier(**AXIS, n_estimators=4), load_iris),
        (CrispForestRegressor(**AXIS, n_estimators=4), load_diabetes),
    ],
    ids=lambda one: type(one).__name__ if hasattr(one, "fit") else one.__name__,
)
def test_thresholds_have_the_values_of_the_tree_explainer(shap, model, load):
    X, y = load(return_X_y=True, as_frame=True)
    model.fit(X, y)
    twin = model.to_sklearn()
    for background in (None, X[:50]):
        explanation = shap.Explainer(model, background)(X[:20])
        theirs = shap.TreeExplainer(twin, background)(X[:20])
        np.testing.assert_allclose(explanation.values, theirs.values, atol=1e-6 * np.abs(theirs.values).max() + 1e-6)
        assert explanation.feature_names == list(X.columns)


def test_hyperplanes_have_sampled_values_with_errors(shap):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), CrispForestClassifier(**OBLIQUE, n_estimators=3)).fit(X, y)
    explanation = shap.Explainer(model, X[:40], seed=0, n_permutations=400)(X[:3])
    assert explanation.error_std.shape == explanation.values.shape
    np.testing.assert_allclose(
        explanation.values.sum(axis=1) + explanation.base_values, model.predict_proba(X[:3]), atol=1e-6
    )
    theirs = shap.explainers.Permutation(model.predict_proba, X[:40].to_numpy(), seed=0)(X[:3].to_numpy())
    assert np.abs(explanation.values - theirs.values).max() < 0.1


def test_a_model_is_a_function_for_model_agnostic_explainers(shap):
    X, y = load_iris(return_X_y=True)
    for model in (CrispTreeClassifier(**OBLIQUE), CrispTreeRegressor(**OBLIQUE, shrinkage=1.0)):
        model.fit(X, y)
        theirs = shap.Explainer(model, X[:40], algorithm="exact")(X[:5])
        np.testing.assert_allclose(explain.shapley_values(model, X[:5], X[:40]).values, theirs.values, atol=1e-6)


def test_other_models_are_left_to_shap(shap):
    X, y = load_iris(return_X_y=True)
    assert type(shap.Explainer(RandomForestClassifier(n_estimators=3).fit(X, y))) is shap.TreeExplainer


def test_plots_draw_explanations(shap):
    import matplotlib as mpl

    mpl.use("agg")
    X, y = load_iris(return_X_y=True, as_frame=True)
    explanation = shap.Explainer(CrispTreeClassifier(**AXIS).fit(X, y), X)(X)
    shap.plots.waterfall(explanation[0, :, 1], show=False)
    shap.plots.beeswarm(explanation[:, :, 1], show=False)
    shap.plots.bar(explanation[:, :, 1], show=False)
