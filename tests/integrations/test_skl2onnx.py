"""Pipelines that skl2onnx converts predict as in Python, row by row."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from crisptree import CrispForestClassifier, CrispForestRegressor, CrispTreeClassifier, CrispTreeRegressor
from crisptree.export import ExportError
from tests.every_kind import QUICK, Data

pytestmark = pytest.mark.slow
skl2onnx = pytest.importorskip("skl2onnx", reason="needs skl2onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
import crisptree.export.skl2onnx  # noqa: E402, F401

SMALL = QUICK | {"split": "oblique", "input_noise": 0.0, "l1": 0.0}
MODELS = {
    "labels": (CrispTreeClassifier, {}, lambda data: np.array(["down", "up"])[data.y]),
    "linear leaves": (CrispTreeClassifier, {"leaf_model": "linear"}, lambda data: data.y),
    "forest": (CrispForestClassifier, {"n_estimators": 3}, lambda data: data.y == 1),
    "regression": (CrispTreeRegressor, {"leaf_model": "linear"}, lambda data: data.t),
    "outputs": (CrispForestRegressor, {"n_estimators": 3}, lambda data: np.stack([data.t, data.X[:, 0]], axis=1)),
}


def run(converted, inputs):
    session = onnxruntime.InferenceSession(converted.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def converted_options(model):
    return {"zipmap": False} if hasattr(model, "classes_") else None


def check(pipeline, X, outputs):
    if not hasattr(pipeline, "classes_"):
        expected = pipeline.predict(X)
        np.testing.assert_allclose(outputs[0].reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)
        return
    np.testing.assert_array_equal(outputs[0].astype(pipeline.classes_.dtype), pipeline.predict(X))
    np.testing.assert_allclose(outputs[1], pipeline.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("target_opset", [13, None])
@pytest.mark.parametrize("kind", MODELS)
def test_a_scaled_model_predicts_as_in_python(kind, target_opset):
    data = Data.of(400, 4)
    model, changes, target = MODELS[kind]
    X = data.X.astype(np.float64)  # scikit-learn's scaler works in double precision, so the graph must
    pipeline = make_pipeline(StandardScaler(), model.from_flat(**SMALL | changes)).fit(X, target(data))
    converted = skl2onnx.to_onnx(pipeline, X[:1], options=converted_options(pipeline), target_opset=target_opset)
    check(pipeline, X, run(converted, {"X": X}))


@pytest.mark.parametrize("kind", ["labels", "regression"])
def test_a_column_transformer_of_numbers_and_words_converts(kind):
    pandas = pytest.importorskip("pandas")
    data = Data.of(400, 4)
    words = np.array(["blue", "green", "red"])[np.digitize(data.X[:, 3], [-0.5, 0.5])]
    table = pandas.DataFrame({"a": data.X[:, 0].astype(float), "b": data.X[:, 1].astype(float), "word": words})
    columns = ColumnTransformer([("numbers", StandardScaler(), ["a", "b"]), ("words", OneHotEncoder(), ["word"])])
    model, changes, target = MODELS[kind]
    pipeline = Pipeline([("columns", columns), ("tree", model.from_flat(**SMALL | changes))]).fit(table, target(data))
    types = skl2onnx.common.data_types
    kinds = {"a": types.DoubleTensorType, "b": types.DoubleTensorType, "word": types.StringTensorType}
    inputs = [(name, each([None, 1])) for name, each in kinds.items()]
    converted = skl2onnx.convert_sklearn(pipeline, initial_types=inputs, options=converted_options(pipeline))
    check(pipeline, table, run(converted, {name: table[[name]].to_numpy() for name in table}))


def test_a_dictionary_of_probabilities_is_skl2onnx_own():
    data = Data.of(100, 4)
    model = CrispTreeClassifier.from_flat(**SMALL).fit(data.X, data.y)
    _, likely = run(skl2onnx.to_onnx(model, data.X[:1]), {"X": data.X})
    np.testing.assert_allclose([row[1] for row in likely], model.predict_proba(data.X)[:, 1], atol=1e-6)


def test_a_model_that_encodes_tables_and_an_old_opset_are_refused():
    pandas = pytest.importorskip("pandas")
    data = Data.of(100, 2)
    model = CrispTreeClassifier.from_flat(**SMALL).fit(data.X, data.y)
    with pytest.raises(ExportError, match="`target_opset` must be at least 13; got 12"):
        skl2onnx.to_onnx(model, data.X[:1], target_opset=12)
    table = pandas.DataFrame({"word": np.where(data.y, "a", "b")})
    tree = CrispTreeClassifier.from_flat(**SMALL).fit(table, data.y)
    with pytest.raises(ExportError, match="must take numbers; this one encodes tables itself"):
        skl2onnx.convert_sklearn(tree, initial_types=[("word", skl2onnx.common.data_types.StringTensorType([None, 1]))])
