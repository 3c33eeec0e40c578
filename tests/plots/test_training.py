import numpy as np
import pytest
from matplotlib.figure import Figure

import crisptree
from crisptree.plots import plot_training
from crisptree.plots.style import ACCENT, RIGHT
from tests.plots.models import figure_1, records
from tests.plots.reading import texts
from tests.toys import plain_tree


def with_history(history):
    model = figure_1()
    model.history_ = history
    return model


def test_growth_and_finetuning_have_different_colors():
    axes = plot_training(with_history(records()))
    assert len(axes) == 3
    assert [line.get_color() for line in axes[0].lines] == [RIGHT, RIGHT, ACCENT]
    assert texts(axes[0]) == ["level 1", "level 2", "finetuning"]


def test_curves_are_likelihood_steepness_and_hard_score():
    history = records()
    likelihood, steepness, score = plot_training(with_history(history))
    assert np.concatenate([line.get_ydata() for line in likelihood.lines]).tolist() == [-r.loss for r in history]
    assert np.concatenate([line.get_xdata() for line in steepness.lines]).tolist() == list(range(1, 11))
    assert score.lines[2].get_ydata().tolist() == [r.validation_score for r in history[6:]]
    assert np.isnan(score.lines[0].get_ydata()).all()


def test_without_validation_rows_there_are_two_axes():
    assert len(plot_training(with_history(records(scores=False)))) == 2


def test_stumps_of_one_level_that_follow_each_other_are_not_joined():
    history = [record for record in records() if record.level == 1] * 2
    heights = plot_training(with_history(history))[0].lines[0].get_ydata()
    assert np.flatnonzero(np.isnan(heights)).tolist() == [3]


def test_given_axes_are_used():
    axes = Figure().subplots(2, 1)
    assert plot_training(with_history(records()), axes).tolist() == list(axes)
    with pytest.raises(ValueError, match="`axes` must be 2 or 3 axes"):
        plot_training(with_history(records()), Figure().subplots())


def test_a_loaded_model_has_no_history_and_is_refused(tmp_path):
    figure_1().save(tmp_path / "model.crisp")
    with pytest.raises(ValueError, match="loaded from a file, which does not store it"):
        plot_training(crisptree.load(tmp_path / "model.crisp"))


def test_best_first_growth_can_be_drawn():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = plain_tree(max_leaf_nodes=4, epochs=2, finetune_epochs=2, min_updates=2, random_state=0)
    plot_training(model.fit(X, np.arange(60) % 3))[0].figure.canvas.draw()
