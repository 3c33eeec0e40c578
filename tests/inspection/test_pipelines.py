"""A fitted Pipeline that ends in one of our estimators answers as the estimator does to rows behind its other steps."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from crisptree import explain, export
from crisptree.inspection import view_model
from crisptree.plots import plot_regions, plot_training, plot_tree, plot_weights
from crisptree.report import write
from tests.inspection.pipelines import scaled, shop, tree
from tests.plots.reading import texts
from tests.report.conftest import data_of, unpacked
from tests.toys import clouds

ENCODED = [f"number__{name}" for name in ("age", "income")] + [f"category__town_{t}" for t in ("Aa", "Bonn", "Cork")]


def behind(pipeline, X):
    return np.asarray(pipeline[:-1].transform(X), dtype=np.float32)


def named(pipeline):
    return view_model(pipeline, "this").feature_names


@pytest.mark.parametrize("made", [scaled, shop, lambda: scaled(names=["a", "b", "c"])])
def test_explanations_are_those_of_the_last_step_behind_the_others(made):
    pipeline, X, y = made()
    model, rows = pipeline[-1], behind(pipeline, X)
    one = X[0] if isinstance(X, np.ndarray) else X.iloc[0]
    leaves = [
        str(path).partition("\nleaf ")[2].splitlines()
        for path in (explain.path(pipeline, one, top=2), explain.path(model, rows[0]))
    ]
    assert leaves[0][0] == leaves[1][0] != ""
    assert len(leaves[0]) == len(leaves[1])
    assert explain.path(pipeline, X[:1]).leaf == explain.path(pipeline, one).leaf == model.leaf_indices(rows[:1])[0]
    assert np.array_equal(explain.find_counterfactual(pipeline, one).x, explain.find_counterfactual(model, rows[0]).x)
    shuffled = np.roll(y, 1)
    assert (
        explain.attribute_errors(pipeline, X, shuffled).table()
        == explain.attribute_errors(model, rows, shuffled).table()
    )
    assert len(explain.attribute_errors(pipeline, X, shuffled).rows) == (pipeline.predict(X) != shuffled).sum()
    assert np.array_equal(explain.feature_importances(pipeline), explain.feature_importances(model))


def test_the_counterfactual_is_given_in_the_units_behind_the_earlier_steps():
    pipeline, X, _ = scaled()
    change = explain.find_counterfactual(pipeline, X[0])
    assert pipeline[-1].predict(change.x[None])[0] == change.predicted != pipeline.predict(X[:1])[0]
    assert change.changes[0].value == pytest.approx(behind(pipeline, X[:1])[0, change.changes[0].feature])


def test_names_come_out_of_the_step_before_the_tree():
    assert named(shop()[0]) == ENCODED
    assert named(scaled(names=["a", "b", "c"])[0]) == ["a", "b", "c"]
    assert named(scaled()[0]) == ["x0", "x1", "x2"]
    X, y = clouds(60, n_features=4)
    assert named(make_pipeline(PCA(2), tree()).fit(X, y)) == ["pca0", "pca1"]
    assert named(make_pipeline(FunctionTransformer(), PCA(2), tree()).fit(X, y)) == ["pca0", "pca1"]
    assert named(make_pipeline("passthrough", tree()).fit(pd.DataFrame(X, columns=list("abcd")), y)) == list("abcd")


def test_a_step_without_names_leaves_the_models_own():
    frame, y = pd.DataFrame(clouds(60, n_features=2)[0], columns=["a", "b"]), np.arange(60) % 2
    silent = FunctionTransformer(lambda rows: rows)  # hands frames on as they are, and does not say so
    assert named(make_pipeline(StandardScaler(), FunctionTransformer(np.abs), tree()).fit(frame, y)) == ["x0", "x1"]
    assert named(make_pipeline(silent, tree()).fit(frame, y)) == ["a", "b"]
    assert named(Pipeline([("only", tree())]).fit(frame, y)) == ["a", "b"]


class Broken(StandardScaler):
    def get_feature_names_out(self, input_features=None):
        raise RuntimeError("no names here")


class Short(StandardScaler):
    def get_feature_names_out(self, input_features=None):
        return ["one"]


@pytest.mark.parametrize("step", [Broken, Short])
def test_a_step_that_fails_to_name_its_columns_is_no_failure(step):
    X, y = clouds(60, n_features=2)
    assert named(make_pipeline(step(), tree()).fit(X, y)) == ["x0", "x1"]


def test_numbers_in_place_of_names_do_not_hide_pixels():
    assert named(scaled(n_features=4, image_shape=(2, 2))[0])[0] == "pixel (0, 0)"


def test_a_pipeline_may_end_in_another_one():
    X, y = clouds(80, n_features=3)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    nested = make_pipeline(StandardScaler(), make_pipeline(PCA(2), tree())).fit(frame, y)
    view = view_model(nested, "this")
    assert view.feature_names == ["pca0", "pca1"]
    assert np.array_equal(view.classes[view.tree.labels(view.apply(view.prepare_rows(frame)))], nested.predict(frame))
    inner = make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), tree())).fit(frame, y)
    assert named(inner) == ["a", "b", "c"]


def test_a_row_of_the_wrong_kind_is_refused():
    pipeline, X, _ = scaled()
    with pytest.raises(ValueError, match=r"x must be one row as the first step .* got an array of shape \(2, 3\)"):
        explain.path(pipeline, X[:2])
    with pytest.raises(ValueError, match="features"):
        explain.path(pipeline, X[0, :2])
    with pytest.raises(ValueError, match="one row; got 2"):
        explain.path(shop()[0], shop()[1][:2])


def test_unfitted_first_steps_are_refused():
    _, X, y = scaled()
    half = Pipeline([("scale", StandardScaler()), ("tree", tree().fit(X, y))])
    with pytest.raises(ValueError, match="not fitted"):
        explain.path(half, X[0])


def test_drawings_take_pipelines():
    pipeline, frame, _ = shop()
    row = frame.iloc[0]
    written = " ".join(texts(plot_tree(pipeline, sample=row)))
    assert any(name in written for name in ENCODED)
    bars = plot_weights(pipeline)[0, 0]
    starts = [label.get_text().rstrip("…") for label in bars.get_yticklabels()]
    assert all(any(name.startswith(start) for name in ENCODED) for start in starts)
    assert len(plot_training(pipeline)) == 2


def test_regions_lie_behind_the_earlier_steps():
    pipeline, X, y = scaled(names=["a", "b"], n_features=2)
    ax = plot_regions(pipeline, X, y, Figure().subplots())
    assert ax.collections[-1].get_offsets().data == pytest.approx(behind(pipeline, X), rel=1e-6)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")
    plot_regions(pipeline, X, y, Figure().subplots(), steepness=5.0, resolution=10)


def test_rules_name_what_reaches_the_tree():
    pipeline, _, _ = shop()
    rules = export.text(pipeline, terms=5)
    assert rules == export.text(pipeline[-1], ENCODED, terms=5)
    assert "category__town_" in rules
    assert export.dot(pipeline) == export.dot(pipeline[-1], ENCODED)


def test_a_report_of_a_pipeline_is_that_of_its_tree(tmp_path):
    pipeline, frame, y = shop()
    data = data_of(write(pipeline, tmp_path / "pipeline.html", frame, y).read_text())
    alone = write(pipeline[-1], tmp_path / "tree.html", behind(pipeline, frame), y, feature_names=ENCODED)
    assert data == data_of(alone.read_text())
    assert data["features"] == ENCODED
    assert data["summary"]["hard"] == pytest.approx(pipeline.score(frame, y))
    assert unpacked(data["confusion"]).sum() == 150
