"""An integer weight equals repeating the row; a weight of zero equals leaving it out."""

import numpy as np
import pytest

from tests.toys import clouds, plain_tree

SETTINGS = [
    {},
    {"algorithm": "alternating"},
    {"algorithm": "likelihood", "grow": "balanced"},
    {"split": "axis"},
    {"scale": "global", "leaf_prior": 0.5, "l2": 1e-3},
    {"class_weight": "balanced", "max_leaf_nodes": 4},
    {"grow": "cart"},
]


def model(**changes):
    return plain_tree(
        **{"max_depth": 3, "epochs": 10, "finetune_epochs": 10, "batch_size": 10_000, "random_state": 0} | changes
    )


@pytest.mark.parametrize("changes", SETTINGS)
def test_an_integer_weight_equals_repeating_the_row(changes):
    X, y = clouds(80)
    weight = np.arange(80) % 4
    weighted = model(**changes).fit(X, y, sample_weight=weight)
    repeated = model(**changes).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(weighted.tree_.weight, repeated.tree_.weight, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(weighted.tree_.statistics.node_counts, repeated.tree_.statistics.node_counts)


@pytest.mark.parametrize("changes", SETTINGS)
def test_a_weight_of_zero_equals_leaving_the_row_out(changes):
    X, y = clouds(80)
    weight = (np.arange(80) % 3 > 0).astype(float)
    weighted = model(**changes).fit(X, y, sample_weight=weight)
    without = model(**changes).fit(X[weight > 0], y[weight > 0])
    assert np.array_equal(weighted.tree_.weight, without.tree_.weight)
    assert np.array_equal(weighted.tree_.leaves, without.tree_.leaves)


def test_balanced_classes_weigh_the_same_in_all():
    X, y = clouds(90)
    y = np.where(np.arange(90) < 70, 0, y)
    counts = model(class_weight="balanced").fit(X, y).tree_.statistics.node_counts[0]
    np.testing.assert_allclose(counts, counts[0])
    assert counts.sum() == pytest.approx(90)
