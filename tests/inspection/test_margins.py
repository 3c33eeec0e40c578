import numpy as np
import pytest
import torch

from crisptree import explain
from crisptree.structure import TreeStructure
from tests.inspection.models import fitted, written


def test_shares_count_rows_by_their_smallest_margin():
    X = np.array([[-2, -2], [-2, 2], [2, -2], [2, 2]], dtype=np.float32)
    structure = TreeStructure([~0, ~1], [1, ~2])
    model = written(structure, [[1, 0], [0, 1]], [0, 0], [0, 1, 2], X=X, y=[0, 0, 1, 2])  # both spreads are 2
    rows = np.array([[-0.1, 9], [0.6, 0.1], [3, 0.4], [-3, 0]])
    report = explain.margin_report(model, rows, limits=[0.1, 0.25, 1])
    assert report.smallest == pytest.approx([0.05, 0.05, 0.2, 1.5])
    assert report.overall == pytest.approx([2 / 4, 3 / 4, 3 / 4])
    assert report.visits.tolist() == [4, 2]
    assert report.by_split == pytest.approx(np.array([[1 / 4, 1 / 4, 2 / 4], [1 / 2, 1, 1]]))
    assert model.margin_report(rows, limits=[0.1]).overall == pytest.approx([0.5])
    assert "split 0" in str(report)
    assert "50.0%" in str(report)


def test_it_agrees_with_the_paths():
    model, X, _ = fitted()
    report = model.margin_report(X[:20])
    for row, smallest in zip(X[:20], report.smallest, strict=True):
        assert min(abs(step.margin) for step in explain.path(model, row).steps) == smallest


@pytest.mark.parametrize("changes", [{"split": lambda shape: torch.nn.Linear(shape[0], 1)}, {"max_depth": 0}])
def test_trees_of_every_kind_have_a_report(changes):
    model, X, _ = fitted(**changes)
    report = model.margin_report(X)
    assert report.overall.shape == (4,)
    assert (np.diff(report.overall) >= 0).all()
    assert str(report)


def test_images_are_taken_as_rows():
    model, X, _ = fitted(image_shape=(2, 3))
    assert np.array_equal(model.margin_report(X.reshape(-1, 2, 3)).smallest, model.margin_report(X).smallest)


@pytest.mark.parametrize("limits", [[], 0.5, [-1.0], [np.nan], ["a"], [[0.1]]])
def test_limits_must_be_numbers_above_zero(limits):
    model, X, _ = fitted(max_depth=1)
    with pytest.raises(ValueError, match="`limits` must be numbers above 0"):
        explain.margin_report(model, X, limits=limits)
