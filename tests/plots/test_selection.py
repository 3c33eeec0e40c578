import numpy as np
import pytest
from matplotlib.figure import Figure

import crisptree
from crisptree.plots import plot_selection
from crisptree.plots.style import ACCENT
from tests.plots.models import chosen_model, figure_1
from tests.plots.reading import overlaps, texts
from tests.toys import clouds


def key(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def points(ax, name):
    """The points of a kind: weights and accuracies."""
    bars = next(bars for bars in ax.containers if bars.get_label() == name)
    return np.column_stack(bars.lines[0].get_data())


def test_it_draws_on_axes_and_returns_them():
    ax = Figure().subplots()
    assert plot_selection(chosen_model(), ax) is ax


def test_every_family_has_a_marker_and_every_candidate_its_depth():
    ax = plot_selection(chosen_model())
    assert sorted(key(ax)) == ["axis splits", "oblique splits", "selected"]
    assert texts(ax) == ["4", "4", "2", "4", "1", "2"]
    assert overlaps(ax) == []


def test_points_are_accuracies_against_weights_with_their_standard_errors():
    model = chosen_model()
    ax = plot_selection(model)
    first = model.cv_results_[0]
    np.testing.assert_allclose(points(ax, "oblique splits")[0], [first.weights, 100 * first.score])
    bars = next(bars for bars in ax.containers if bars.get_label() == "oblique splits")
    low, high = bars.lines[2][0].get_segments()[0][:, 1]
    share = first.score
    assert (high - low) / 2 == pytest.approx(100 * np.sqrt(share * (1 - share) / len(first.row_scores)))


def test_the_selected_candidate_has_a_ring():
    model = chosen_model()
    ax = plot_selection(model)
    ring = next(line for line in ax.lines if line.get_label() == "selected")
    assert ring.get_color() == ACCENT
    assert ring.get_xdata().tolist() == [model.cv_results_[2].weights]


def test_what_a_fit_really_tried_can_be_drawn():
    X, y = clouds(200)
    quick = {"max_depth": 3, "epochs": 3, "finetune_epochs": 3, "min_updates": 20, "random_state": 0}
    model = crisptree.CrispTreeClassifier.from_flat(**quick).fit(X, y)
    ax = plot_selection(model)
    ax.figure.canvas.draw()
    assert "selected" in key(ax)
    assert sum(len(bars.lines[0].get_xdata()) for bars in ax.containers) == len(model.cv_results_)


def test_a_model_without_selection_is_refused():
    with pytest.raises(ValueError, match="plot_selection needs a model that selected its parameters"):
        plot_selection(figure_1())
