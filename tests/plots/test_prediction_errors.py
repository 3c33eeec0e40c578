import numpy as np
import pytest
from matplotlib.figure import Figure

from crisptree.plots import plot_confusion
from tests.plots.models import FIGURE_1_CLASSES, FIGURE_1_ROWS, figure_1
from tests.plots.reading import overlaps, texts
from tests.toys import plain_tree

LABELS = np.array(["blue", "red"])[FIGURE_1_CLASSES]


def test_it_draws_on_axes_and_returns_them():
    ax = Figure().subplots()
    assert plot_confusion([[1, 0], [0, 1]], ax=ax) is ax


def test_counts_are_annotated_and_colors_are_normalized_by_row():
    ax = plot_confusion(figure_1(), FIGURE_1_ROWS, LABELS)
    # A: two blue, one red; B: two blue; C: one blue, two red; D: two blue; E: four red
    assert texts(ax) == ["6", "1", "1", "6"]
    assert np.allclose(np.asarray(ax.images[0].get_array()), [[6 / 7, 1 / 7], [1 / 7, 6 / 7]])
    assert ax.get_title() == "85.7 % of 14 rows right"


def test_zeros_are_left_out_and_an_empty_line_stays_empty():
    ax = plot_confusion([[3, 0], [0, 0]], class_names=["$a$", "_b"])
    ax.figure.canvas.draw()
    assert texts(ax) == ["3"]
    assert np.asarray(ax.images[0].get_array()).tolist() == [[1, 0], [0, 0]]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["$a$", "_b"]


def test_26_classes_with_large_counts_are_readable():
    names = [f"letter {chr(ord('a') + number)}" for number in range(26)]
    counts = np.where(np.arange(26)[:, None] < 8, 123456, 0) * np.ones(26)
    assert overlaps(plot_confusion(counts, class_names=names)) == []


def test_two_hundred_classes_have_colours_only():
    assert texts(plot_confusion(np.eye(200))) == []


def test_no_rows_at_all_are_drawn_as_nothing():
    assert plot_confusion(np.zeros((2, 2))).get_title() == "0.0 % of 0 rows right"


@pytest.mark.parametrize("matrix", [np.ones((2, 3)), np.ones(4), np.zeros((0, 0)), [[1, -1], [0, 1]]])
def test_a_matrix_must_be_square_and_count(matrix):
    with pytest.raises(ValueError, match="or a square matrix of counts"):
        plot_confusion(matrix)


def test_a_model_needs_rows_and_must_be_fitted():
    with pytest.raises(ValueError, match="plot_confusion needs X and y with a model"):
        plot_confusion(figure_1())
    with pytest.raises(ValueError, match="plot_confusion needs a fitted crisptree model"):
        plot_confusion(plain_tree(), FIGURE_1_ROWS, LABELS)
