from dataclasses import replace

import numpy as np
import pytest
import torch

from crisptree import explain
from crisptree.structure import TreeStructure
from tests.inspection.models import fitted, written


def line(points):
    return np.array(points, dtype=np.float32)[:, None]


@pytest.fixture
def four_bins():
    """Thresholds 0, then −1 and 1: leaves of the classes 0, 1, 2, 0 from left to right."""
    X, y = line([-2, -2, -0.5, 0.5, 2, 2]), [0, 0, 1, 2, 0, 0]
    structure = TreeStructure.balanced(2)
    return written(structure, [[1], [1], [1]], [0, 1, -1], [0, 1, 2, 0], X=X, y=y)


def test_an_error_is_attributed_to_the_split_where_the_row_left_its_class(four_bins):
    found = explain.attribute_errors(four_bins, line([-0.5, 0.5, -2, -2]), [2, 1, 2, 1])
    assert found.rows.tolist() == [0, 1, 2, 3]
    assert found.split.tolist() == [0, 0, 0, 1]


def test_it_is_the_deepest_such_split():
    # Class 0 has most rows on the right of the root, and on the left most of the rest are left of split 1.
    X, y = line([-2, -0.5, -0.5, 2, 2, 2]), [0, 1, 1, 0, 0, 0]
    model = written(TreeStructure([1, ~0], [~2, ~1]), [[1], [1]], [0, 1], [0, 1, 0], X=X, y=y)
    assert explain.attribute_errors(model, line([-0.5]), [0]).split.tolist() == [1]


def test_a_split_that_divides_a_class_evenly_is_not_responsible(four_bins):
    # Class 0 is as often left as right of the root, so only split 1 is left.
    assert explain.attribute_errors(four_bins, line([-0.5]), [0]).split.tolist() == [1]
    X, y = line([-1, -1, -1, 1]), [0, 1, 0, 1]
    model = written(TreeStructure.stump(), [[1]], [0], [0, 1], X=X, y=y)
    assert explain.attribute_errors(model, line([-1]), [1]).split.tolist() == [-1]  # one of two goes each way


def test_errors_of_a_class_without_a_leaf_have_no_split():
    model = written(
        TreeStructure.stump(), [[1]], [0], [0, 1], X=line([-1, -1, 1, 1, 1]), y=[0, 0, 1, 1, 2], n_classes=3
    )
    found = explain.attribute_errors(model, line([-1, 1]), [2, 2])
    assert found.split.tolist() == [-1, -1]


def test_correct_rows_are_left_out_and_unknown_labels_have_no_split(four_bins):
    found = explain.attribute_errors(four_bins, line([-2, -0.5, 0.5]), [0, 1, 99])
    assert (found.rows.tolist(), found.split.tolist()) == ([2], [-1])


def test_the_table_counts_errors_and_ends_with_those_without_a_split():
    attribution = explain.ErrorAttribution(np.arange(6), np.array([3, -1, -1, -1, 0, 3]))
    assert attribution.table() == [(3, 2, 2 / 6), (0, 1, 1 / 6), (-1, 3, 3 / 6)]
    assert "split 3: 2" in str(attribution)
    assert "no split: 3" in str(attribution)


def test_no_errors_make_an_empty_table(four_bins):
    found = explain.attribute_errors(four_bins, line([-2]), [0])
    assert found.table() == []
    assert str(found) == "0 errors"


@pytest.mark.parametrize("changes", [{"split": lambda shape: torch.nn.Linear(shape[0], 1)}, {"max_depth": 0}, {}])
def test_errors_of_every_kind_of_tree_and_string_labels_are_attributed(changes):
    model, X, y = fitted(labels=["x", "y", "z"], **changes)
    found = explain.attribute_errors(model, X, np.roll(y, 1))
    assert np.array_equal(found.rows, np.flatnonzero(model.predict(X) != np.roll(y, 1)))
    assert ((found.split >= -1) & (found.split < model.tree_.structure.n_splits)).all()
    for row, split in zip(found.rows, found.split, strict=True):
        assert split == -1 or split in model.decision_path(X[row : row + 1]).indices


def test_labels_must_be_as_many_as_rows(four_bins):
    with pytest.raises(ValueError, match="inconsistent"):
        explain.attribute_errors(four_bins, line([1, 2]), [0])


def test_linear_leaves_predict_the_true_class_of_a_row_or_not(four_bins):
    weight, bias = np.zeros((7, 3, 1)), np.log(np.eye(3)[[0, 0, 0, 0, 1, 2, 0]] + 1e-3)
    weight[5, 1], bias[5, 1] = 4.0, 4.0  # right of −0.75, leaf 2 of most rows of class 2 predicts class 1
    four_bins.tree_ = replace(four_bins.tree_, linear_weight=weight, linear_bias=bias)
    rows = line([-0.5, -0.9, -0.5, 0.5, 0.5])
    assert four_bins.predict(rows).tolist() == [1, 1, 1, 1, 1]
    found = explain.attribute_errors(four_bins, rows, [2, 0, 0, 2, 1])
    assert found.rows.tolist() == [0, 1, 2, 3]
    # In the place of the first row the other side has no class 2 either, and the last one is an error of its leaf.
    assert found.split.tolist() == [-1, 1, 1, -1]
    assert explain.attribute_errors(four_bins, line([-2.5]), [2]).split.tolist() == [0]
