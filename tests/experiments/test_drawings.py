"""The pictures that are drawn from the paper's own numbers."""

import runpy

import matplotlib
import numpy as np
import torch


def test_figure_1_has_the_surface_and_the_leaves_of_the_papers_source(monkeypatch):
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    drawn = runpy.run_module("experiments.drawings.figure_1")
    matplotlib.pyplot.close(drawn["figure"])
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 21), np.linspace(0, 1, 21)), axis=-1).reshape(-1, 2)
    x, y = grid.T

    def right(score):
        return 1 / (1 + np.exp(-45 * score))

    first, second, third = right(x - 0.8 * y - 0.1), right(0.05 * x + 0.65 * y - 0.4), right(0.38 * x + 0.6 * y - 0.38)
    published = first * third + (1 - first) * (0.66 * second * right(x - 0.3) + 0.33 * (1 - second))
    rows = torch.tensor(grid, dtype=torch.float32)
    ours = drawn["tree"].log_class_probabilities(rows, drawn["steepness"]).exp()[:, 1].numpy()
    np.testing.assert_allclose(ours, published, atol=0.0067)  # thirds here, two decimals there
    letters = [(0.2, 0.4), (0.1, 0.8), (0.5, 0.8), (0.42, 0.1), (0.8, 0.4)]
    assert drawn["model"].apply(np.array(letters)).argsort().argsort().tolist() == [0, 1, 2, 3, 4]
