"""Rows that single precision cannot hold: counted by the check, and no fault of the export."""

from functools import cache

import numpy as np
import pytest

from crisptree import CrispTreeRegressor, export
from crisptree.export.formats import Predictions, compare, predict_with_model, sensitive_rows
from tests.export.models import QUICK, numbers, skip_unless_it_runs

N = 300


def rows_with_huge_ones(n_features, n_huge=60):
    """N common rows of small values, for which weights are large, then rows around 1e38."""
    rng = np.random.default_rng(0)
    X = np.concatenate([0.01 * rng.normal(size=(N, n_features)), 1e38 * rng.normal(size=(n_huge, n_features))])
    return X.clip(-3e38, 3e38).astype(np.float32)


@cache
def hyperplanes():
    X = rows_with_huge_ones(8)
    model, _ = numbers(8, 8, 2)
    return model.fit(X[:N], X[:N, 0] + X[:N, 1] * np.sign(X[:N, 2]) > 0), X


@cache
def linear_leaves():
    X = rows_with_huge_ones(5)
    return CrispTreeRegressor.from_flat(**QUICK | {"max_depth": 1}, leaf_model="linear").fit(
        X[:N], 1000 * X[:N, 0] - X[:N, 1]
    ), X


@pytest.mark.parametrize(
    ("to", "options"),
    [("sql", {}), ("c", {}), ("js", {}), *(("onnx", {"form": form}) for form in ("ensemble", "paths"))],
)
def test_rows_whose_scores_overflow_are_counted_and_may_reach_another_leaf(to, options):
    skip_unless_it_runs(to)
    model, X = hyperplanes()
    found = export.check(model, X, to, **options)
    assert (found.overflows, found.unexplained, found.holds) == (60, 0, True), str(found)
    assert found.equal_leaves >= N
    if to in ("c", "js"):  # the same sums in the same order
        assert found.equal_leaves == len(X)
    if to == "sql":
        assert found.equal_leaves < len(X)
    assert "60 rows overflow single precision (±3.4e+38)" in str(found)
    assert export.check(model, X[:N], to, **options).overflows == 0


@pytest.mark.parametrize("to", ["c", "js", "onnx", "json"])
def test_values_of_linear_leaves_beyond_single_precision_are_counted(to):
    skip_unless_it_runs(to)
    model, X = linear_leaves()
    found = export.check(model, X, to)
    beyond = (np.abs(predict_with_model(model, X).outputs) > np.finfo(np.float32).max).any(axis=1)
    assert 0 < beyond.sum() <= 60
    overflows = sensitive_rows(model.tree_, X)[1]
    assert found.overflows == (overflows | (beyond if to == "onnx" else False)).sum()  # other outputs are doubles
    assert found.holds, str(found)
    if to == "onnx":
        assert "larger values are infinite in single precision" in str(found)


def test_infinity_is_an_overflow_only_where_the_value_is_beyond_single_precision():
    model, X = linear_leaves()
    truth = predict_with_model(model, X)
    assert np.abs(truth.outputs[N:]).max() > np.finfo(np.float32).max
    with np.errstate(over="ignore"):
        singles = truth.outputs.astype(np.float32).astype(np.float64)
    assert compare(model, X, Predictions(truth.leaves, singles, truth.classes), "x").holds
    for wrong in (-singles, np.where(np.arange(len(X))[:, None] == 0, np.inf, singles)):
        assert not compare(model, X, Predictions(truth.leaves, wrong, truth.classes), "x").holds


def test_a_common_row_in_another_leaf_is_a_fault_beside_rows_that_overflow():
    model, X = hyperplanes()
    truth = predict_with_model(model, X)
    leaves = truth.leaves.copy()
    row = int(np.flatnonzero(truth.leaves[:N, 0] != truth.leaves[0, 0])[0])
    leaves[0] = leaves[row]
    found = compare(model, X, Predictions(leaves, truth.outputs, truth.classes), "x")
    assert (found.unexplained, found.holds) == (1, False)
