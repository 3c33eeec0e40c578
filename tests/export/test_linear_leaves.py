from functools import cache

import numpy as np
import pytest

from crisptree import CrispForestRegressor, CrispTreeClassifier, export
from crisptree.export import ExportError, Portable
from crisptree.export.c99.header import DeviceCost, make_header
from tests.export import programs
from tests.export.models import QUICK, of_numbers, skip_unless_it_runs, table

MODELS = QUICK | {"leaf_model": "linear", "max_depth": 2}


def classes_of_a_table():
    columns, y = table(300)
    return CrispTreeClassifier.from_flat(**MODELS).fit(columns, y), columns


def three_classes():
    X = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
    return CrispTreeClassifier.from_flat(**MODELS).fit(X, np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])), X


KINDS = {
    "one number": lambda: of_numbers(n_features=5, **MODELS),
    "two numbers": lambda: of_numbers(n_outputs=2, n_features=5, **MODELS),
    "a forest": lambda: of_numbers(CrispForestRegressor, n_features=5, n_estimators=3, **MODELS),
    "three classes": three_classes,
    "a table": classes_of_a_table,
}


@cache
def made(kind):
    return KINDS[kind]()


@pytest.mark.parametrize("kind", KINDS)
def test_the_plain_values_of_linear_leaves_are_what_the_model_predicts(kind):
    model, X = made(kind)
    portable = Portable.of(model)
    assert "linear" in portable.uses
    if portable.encodes:
        return
    total = np.zeros((len(X), portable.n_outputs))
    for tree, reached in zip(portable.trees, np.atleast_2d(model.leaf_indices(X).T), strict=True):
        weight, offset = tree.linear
        scores = np.einsum("nkp,np->nk", weight[reached], X.astype(np.float64)) + offset[reached]
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        total += shares / shares.sum(axis=1, keepdims=True) if portable.classes else scores
    told = model.predict_proba(X) if portable.classes else model.predict(X).reshape(len(X), -1)
    np.testing.assert_allclose(total / len(portable.trees), told, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("to", ["c", "js", "onnx", "json"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_row_is_predicted_by_the_model_of_its_leaf(kind, to):
    skip_unless_it_runs(to)
    model, X = made(kind)
    found = export.check(model, X, to)
    assert found.holds, str(found)
    assert found.rows == 300
    assert found.largest_difference < 1e-6


def test_where_linear_leaves_cannot_go_they_are_refused():
    model, _ = made("three classes")
    for to, options in (("sql", {}), ("c", {"integer": "int8"})):
        with pytest.raises(ExportError, match="leaf_model='constant'"):
            export.write(model, to, **options)


def test_linear_leaves_compile_without_a_warning_and_fit_at_the_exporters_estimate(tmp_path):
    if programs.shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("needs arm-none-eabi-gcc")
    model, X = made("three classes")
    assert "warns" not in str(export.check(model, X, "c"))
    portable = Portable.of(model)
    flash, stack, _ = programs.sizes(export.c(model), tmp_path)
    costs = DeviceCost.of(portable, make_header(portable, "model", None, "auto"))
    assert flash <= costs.flash
    assert stack <= costs.stack
