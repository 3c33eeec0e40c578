import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import crisptree
from crisptree import explain
from crisptree.plots import plot_path
from tests.plots.models import figure_1, module_model, random_model
from tests.plots.reading import overlaps, texts
from tests.toys import plain_tree

LETTERS = [f"the_{chr(ord('a') + number)}$" for number in range(26)]

MODELS = {
    "one leaf": lambda: random_model(depth=0),
    "26 classes": lambda: random_model(classes=LETTERS, depth=4, n=600),
    "one feature": lambda: random_model(n_features=1),
    "4096 features": lambda: random_model(n_features=4096),
    "images": lambda: random_model(n_features=64, image_shape=(8, 8), depth=3),
    "two channels": lambda: random_model(n_features=12, image_shape=(2, 3, 2)),
    "three channels": lambda: random_model(n_features=12, image_shape=(2, 2, 3)),
    "an image of one leaf": lambda: random_model(n_features=4, image_shape=(2, 2), depth=0),
    "modules": module_model,
}


@pytest.mark.parametrize("name", MODELS)
def test_paths_of_every_kind_are_drawn_without_text_over_text(name):
    model = MODELS[name]()
    ax = plot_path(model, np.linspace(-1, 1, model.n_features_in_))
    assert overlaps(ax) == []


def test_it_draws_on_the_given_axes_and_returns_them():
    ax = Figure().subplots()
    assert plot_path(figure_1(), [0.1, 0.8], ax) is ax


def test_every_split_on_the_way_is_named_with_its_turn():
    written = texts(plot_path(figure_1(), [0.1, 0.8]))  # to B
    assert [text for text in written if text.startswith("split")] == [
        "split 0: left",
        "split 1: right",
        "split 3: left",
    ]
    assert "leaf 1" in written
    assert "predicts blue" in written


def test_pushes_are_those_of_the_explanation():
    model, row = random_model(n_features=6), np.arange(6.0)
    written = texts(plot_path(model, row, top=2, feature_names=[f"f{j}" for j in range(6)]))
    for step in explain.path(model, row, top=2).steps:
        for push in step.pushes:
            assert f"f{push.feature} = {push.value:.4g}" in written


def test_images_show_sample_weights_and_their_product():
    model = random_model(n_features=4, image_shape=(2, 2), depth=1)
    row = np.array([1.0, 2.0, 3.0, 4.0])
    sample, weights, pushes = plot_path(model, row.reshape(2, 2)).images
    assert np.asarray(sample.get_array()).ravel().tolist() == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert np.ptp(np.asarray(weights.get_array())) == 1
    expected = model.tree_.weight[0] * (row - model.tree_.statistics.scaling.mean)
    assert np.allclose(np.asarray(pushes.get_array()).ravel(), expected)


def test_a_path_itself_is_drawn_the_same_way():
    model, row = figure_1(), [0.1, 0.8]
    assert texts(plot_path(explain.path(model, row, top=4))) == texts(plot_path(model, row))


def test_a_row_of_a_frame_and_a_loaded_model_will_do(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["$a$", "b_c", "d"])
    model = plain_tree(max_depth=2, epochs=2, finetune_epochs=1, min_updates=5, random_state=0)
    model.fit(frame, np.arange(40) % 2).save(tmp_path / "model.crisp")
    loaded = crisptree.load(tmp_path / "model.crisp")
    written = texts(plot_path(loaded, frame.iloc[0]))
    assert any(text.startswith("$a$ = ") for text in written)


def test_class_names_replace_the_classes():
    assert "predicts sky" in texts(plot_path(figure_1(), [0.1, 0.8], class_names=["sky", "fire"]))
    way = explain.path(figure_1(), [0.1, 0.8])
    assert "predicts sky" in texts(plot_path(way, class_names=["sky", "fire"]))


def test_one_sample_at_a_time():
    with pytest.raises(ValueError, match="x must be one row of 2 features"):
        plot_path(figure_1(), np.ones((2, 2)))


def test_long_names_lose_letters_but_never_their_numbers():
    names = [f"a class with a name that is far too long, number {number}" for number in range(3)]
    features = ["the " * 30 + str(number) for number in range(6)]
    written = texts(plot_path(random_model(classes=names), np.arange(6.0), class_names=names, feature_names=features))
    assert any(text.endswith(" = 5") for text in written)
    assert all(text.count("%") == 2 for text in written if "…:" in text)
    assert any("…:" in text for text in written)
