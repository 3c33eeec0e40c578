"""Explanations, plots and reports of regression models."""

import numpy as np
import pandas as pd
import pytest

from crisptree import explain, export
from crisptree.inspection import view_model
from crisptree.plots import plot_regions, plot_tree
from tests.report.conftest import data_of, unpacked
from tests.toys import plain_regressor, ridges


@pytest.fixture(scope="module")
def rows():
    return ridges(300)


@pytest.fixture(scope="module")
def model(rows):
    return plain_regressor(max_depth=2).fit(*rows)


@pytest.fixture(scope="module")
def double(rows):
    X, y = rows
    return plain_regressor(max_depth=2).fit(X, np.stack([y, -y], axis=1))


def test_rules_have_means_and_standard_deviations_of_the_training_rows(rows, model):
    X, y = rows
    own = y[model.leaf_indices(X) == 0]
    assert f"leaf 0, {len(own)} rows: {own.mean():.4g} ± {own.std():.2g}" in export.text(model)
    assert "label=" in export.dot(model)


def test_several_outputs_are_named(double):
    assert view_model(double, "a test").class_names == ["y0", "y1"]
    assert "y0 " in export.text(double)
    assert view_model(double, "a test", class_names=["up", "down"]).describe_node(0).startswith("up ")


def test_a_path_goes_from_mean_to_mean(rows, model):
    X, y = rows
    way = explain.path(model, X[0])
    assert way.predicted == pytest.approx(model.predict(X[:1])[0])
    assert way.steps[0].before[0] == pytest.approx(y.mean())
    assert f"leaf {way.leaf}: {way.predicted:.4g} ± " in str(way)
    assert "mean" in way._repr_html_()


def test_the_nearest_change_raises_or_lowers_the_prediction(rows, model):
    X, _ = rows
    lowest = X[[model.predict(X).argmin()]]
    change = explain.find_counterfactual(model, lowest, by=1.0)
    assert model.predict(change.x[None])[0] >= model.predict(lowest)[0] + 1
    assert explain.find_counterfactual(model, lowest, by=-1.0) is None
    for by in (None, 0.0):
        with pytest.raises(ValueError, match="`by` must be a nonzero number"):
            explain.find_counterfactual(model, lowest, by=by)


def test_counterfactuals_may_require_a_change_of_every_output(rows):
    X, y = rows
    model = plain_regressor().fit(X, np.stack([y, -y], axis=1))
    lowest = X[[model.predict(X)[:, 0].argmin()]]
    now = model.predict(lowest)[0]
    first, second = (explain.find_counterfactual(model, lowest, by=by).x[None] for by in (1.0, [0.0, -1.0]))
    assert model.predict(first)[0, 0] >= now[0] + 1
    assert model.predict(second)[0, 1] <= now[1] - 1
    assert explain.find_counterfactual(model, lowest, by=[1.0, 1.0]) is None  # one falls where the other rises
    for by in ([0.0, 0.0], [1.0], [1.0, np.nan]):
        with pytest.raises(ValueError, match="or one for each of 2 outputs"):
            explain.find_counterfactual(model, lowest, by=by)


def test_functions_for_classification_refuse_regression(rows, model):
    X, y = rows
    with pytest.raises(TypeError, match="regression model"):
        explain.attribute_errors(model, X, y)
    with pytest.raises(TypeError, match="regression model"):
        plot_regions(model, X)


def test_importances_are_those_of_the_steps(model):
    assert model.feature_importances_[:2].sum() > 0.4
    assert model.feature_importances_.sum() == pytest.approx(1)


def test_drawings_have_means_in_their_leaves(rows, model, double):
    X, _ = rows
    texts = [text.get_text() for text in plot_tree(model, sample=X[0]).texts]
    assert f"{model.tree_.labels(0)[0]:.4g}" in texts
    assert any(text.startswith("y1: ") for text in (one.get_text() for one in plot_tree(double).texts))


def test_the_report_has_the_errors(rows, model, double, tmp_path):
    X, y = rows
    page = model.report(tmp_path / "r.html", X, y, feature_names=["<a>", "b", "c", "d"]).read_text()
    assert f"{model.score(X, y):.3f}" in page
    assert "<a>" not in page
    data = data_of(page)
    (output,) = data["residuals"]
    assert output["rmse"] == pytest.approx(np.sqrt(np.mean((y - model.predict(X)) ** 2)))
    assert sum(output["counts"]) == len(y)
    assert unpacked(data["samples"]["predicted"])[:, 0] == pytest.approx(
        model.predict(X[unpacked(data["samples"]["row"])]), rel=1e-6
    )
    assert data_of(model.report(tmp_path / "plain.html").read_text())["residuals"] is None
    page = double.report(tmp_path / "two.html", X, np.stack([y, -y], axis=1)).read_text()
    assert [one["name"] for one in data_of(page)["residuals"]] == ["y0", "y1"]
    assert "RMSE of y1" in page


def test_a_report_checks_the_targets(rows, model, tmp_path):
    X, y = rows
    with pytest.raises(ValueError, match="got y without X"):
        model.report(tmp_path / "r.html", None, y)
    for wrong in (y[:-1], np.stack([y, y], axis=1), np.where(y == y[0], np.nan, y)):
        with pytest.raises(ValueError, match=f"a finite number for each of the {len(X)} rows"):
            model.report(tmp_path / "r.html", X, wrong)


def test_a_report_lists_importances_by_column_of_the_table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.normal(40, 10, 90), "plan": rng.choice(["basic", "gold", "silver"], 90)})
    model = plain_regressor(max_depth=2).fit(frame, frame.age + 30 * (frame.plan == "gold"))
    page = model.report(tmp_path / "r.html").read_text()
    importances = dict(data_of(page)["importances"])
    assert set(importances) == {"age", "plan"}
    assert sum(importances.values()) == pytest.approx(1, abs=1e-5)
