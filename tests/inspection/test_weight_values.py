"""Weights of pixels that are constant in training."""

import numpy as np
import pytest

from crisptree.inspection import view_model
from crisptree.inspection.model_view import fill_smoothly
from tests.toys import plain_tree


def test_filled_pixels_are_the_means_of_their_neighbours_and_others_stay():
    image = np.random.default_rng(0).normal(size=(8, 9, 1))
    missing = np.zeros(image.shape, dtype=bool)
    missing[:2] = missing[3:5, 4:6] = True
    filled = fill_smoothly(image, missing)
    assert np.array_equal(filled[~missing], image[~missing])
    assert filled[3, 4, 0] == pytest.approx(np.mean([filled[2, 4], filled[4, 4], filled[3, 3], filled[3, 5]]), abs=1e-6)
    assert filled[0, 0, 0] == pytest.approx(np.mean([filled[0, 1], filled[1, 0]]), abs=1e-6)
    assert np.array_equal(fill_smoothly(image, missing | True), image)


def test_constant_pixels_have_no_frame_under_a_spatial_penalty_and_no_weight_without():
    rng = np.random.default_rng(0)
    X = np.zeros((200, 8, 8), dtype=np.float32)
    X[:, 2:-2, 2:-2] = rng.normal(size=(200, 4, 4))
    y = X[:, 3].sum(axis=1) > 0
    for penalty in (0.0, 0.1):
        model = plain_tree(max_depth=1, spatial_penalty=penalty, epochs=3, finetune_epochs=0, random_state=0).fit(X, y)
        weights = view_model(model, "a test").scaled_weights(0).reshape(8, 8)
        steps = np.abs(weights[2, 2:-2] - weights[1, 2:-2])
        assert (np.all(weights[:2] == 0), bool(steps.max() < np.abs(weights[2, 2:-2]).max())) == (
            not penalty,
            bool(penalty),
        )
