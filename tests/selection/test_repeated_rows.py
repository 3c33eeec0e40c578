"""Held-out rows whose features a training row has too: their weight in the comparison of candidates."""

from __future__ import annotations

import numpy as np
import pytest

from crisptree import CrispForestClassifier
from crisptree.learning.samples import RowSet
from crisptree.selection.search import hash_rows, weigh_repeated


def make_rows(n_distinct: int, times: int) -> RowSet:
    """Rows of which every one is there so many times."""
    X = np.random.default_rng(0).normal(size=(n_distinct, 3)).astype(np.float32)
    X = np.concatenate([np.tile(X, (times, 1)), -X - 9])
    return RowSet(X, np.zeros(len(X), dtype=np.int64), np.ones(len(X)))


def test_repeated_rows_have_the_share_that_they_have_in_the_whole_table():
    rows = make_rows(50, 2)
    order = np.random.default_rng(1).permutation(150)
    scored = np.array_split(order, 3)
    trained = [np.setdiff1d(order, part) for part in scored]
    factors = weigh_repeated(rows, order, trained, scored)
    is_seen = [
        np.isin(hash_rows(rows.X[part]), hash_rows(rows.X[train])) for part, train in zip(scored, trained, strict=True)
    ]
    weight, seen = np.concatenate(factors), np.concatenate(is_seen)
    assert seen.mean() < 0.6  # of the two rows, one may be in the same fold
    assert weight[seen].sum() / weight.sum() == pytest.approx(100 / 150)
    assert weight.sum() == pytest.approx(150)


@pytest.mark.parametrize("times", [1, 5])
def test_distinct_rows_weigh_one(times: int):
    rows = make_rows(30, 1)
    parts = np.array_split(np.arange(60), times + 1)
    factors = weigh_repeated(rows, np.arange(60), [np.arange(60)] * len(parts) if times > 1 else parts[::-1], parts)
    assert all((factor == 1).all() for factor in factors)


def test_negative_zero_equals_zero():
    keys = hash_rows(np.float32([[0.0, 1.0], [-0.0, 1.0]]))
    assert keys[0] == keys[1]


def test_no_class_of_a_forest_has_a_probability_of_zero():
    X = np.arange(60, dtype=np.float32)[:, None]
    y = np.repeat([0, 1, 2], 20)
    parameters = {"split": "axis", "max_depth": 3, "n_estimators": 3, "random_state": 0}
    probabilities = CrispForestClassifier(**parameters).fit(X, y).predict_proba(X)
    assert (probabilities > 0).all()
    assert (probabilities.argmax(axis=1) == y).mean() > 0.9
