import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from crisptree import CrispTreeClassifier, CrispTreeRegressor, export
from crisptree.inspection import view_model
from crisptree.plots import plot_tree
from crisptree.plots.style import ACCENT
from crisptree.plots.tree import compute_layout, select_collapsed
from crisptree.structure import TreeStructure
from tests.plots.models import figure_1, module_model, random_model
from tests.plots.reading import overlaps, texts
from tests.toys import plain_tree

STRANGE = ("<script>alert(1)</script>", "$x_1$", "_hidden", "two\nlines", "costs $5", r"\frac{1}{2}")
LETTERS = [chr(ord("a") + number) for number in range(26)]

MODELS = {
    "one leaf": lambda: random_model(depth=0),
    "26 classes": lambda: random_model(classes=LETTERS, depth=5, n=600),
    "26 long names": lambda: random_model(classes=[f"the letter {name}" for name in LETTERS], depth=3),
    "two classes": lambda: random_model(classes=("no", "yes")),
    "strange names": lambda: random_model(classes=STRANGE, depth=3),
    "one feature": lambda: random_model(n_features=1),
    "4096 features": lambda: random_model(n_features=4096, depth=3),
    "images": lambda: random_model(n_features=64, depth=5, image_shape=(8, 8)),
    "64 x 64": lambda: random_model(n_features=4096, depth=2, image_shape=(64, 64)),
    "one channel": lambda: random_model(n_features=6, image_shape=(2, 3, 1)),
    "three channels": lambda: random_model(n_features=18, image_shape=(2, 3, 3)),
    "two channels": lambda: random_model(n_features=12, image_shape=(2, 3, 2)),
    "modules": module_model,
    "figure 1": figure_1,
}


def arrows(ax):
    return next(c for c in ax.collections if isinstance(c, PolyCollection) and c.get_label() == "arrows")


def thickness(outline):
    """The width of an arrow's tail."""
    return np.linalg.norm(outline.vertices[0] - outline.vertices[6])


def test_it_draws_on_axes_and_returns_them():
    ax = Figure().subplots()
    assert plot_tree(figure_1(), ax) is ax


@pytest.mark.parametrize("name", MODELS)
def test_no_text_lies_over_another_and_everything_stays_inside_the_axes(name):
    model = MODELS[name]()
    ax = plot_tree(model, sample=np.ones(model.n_features_in_))
    assert overlaps(ax) == []
    frame = ax.get_window_extent().padded(1)
    for artist in [*ax.texts, *ax.patches]:
        box = artist.get_window_extent()
        assert frame.contains(box.x0, box.y0), artist
        assert frame.contains(box.x1, box.y1), artist


@pytest.mark.parametrize("name", ["26 long names", "one channel", "modules"])
def test_text_shrinks_with_small_axes(name):
    _, ax = plt.subplots(figsize=(3, 3), dpi=500)  # finer than the hinting of glyphs
    plot_tree(MODELS[name](), ax)
    assert overlaps(ax) == []


def test_images_are_drawn_at_the_splits_and_class_names_at_the_leaves():
    model = random_model(n_features=64, image_shape=(8, 8))
    ax = plot_tree(model, class_names=["cat", "dog", "owl"])
    assert len(ax.images) == model.tree_.structure.n_splits
    for image in ax.images:
        drawn = np.asarray(image.get_array())
        assert (drawn.min(), drawn.max()) == (0, 1)  # the full grey range
    assert {"cat", "dog", "owl"} <= set(texts(ax))


def test_names_are_written_as_they_are():
    ax = plot_tree(random_model(classes=STRANGE, depth=3, n=300))
    ax.figure.canvas.draw()
    written = " ".join(texts(ax))
    assert "$x_1$" in written
    assert "two lines" in written
    assert not any(text.get_parse_math() for text in ax.texts)


def test_tabular_splits_name_their_largest_weights():
    model = random_model()
    largest = int(np.abs(model.tree_.scaled_hyperplanes()[0][0]).argmax())
    names = [f"feature {j}" for j in range(6)]
    assert any(text.endswith(f"× feature {largest}") for text in texts(plot_tree(model, feature_names=names)))


def test_a_split_on_one_feature_is_a_threshold_in_its_unit():
    model = random_model(n_features=1, depth=1)
    weight, bias = float(model.tree_.weight[0, 0]), float(model.tree_.bias[0])
    ax = plot_tree(model, feature_names=["size"])
    assert f"{'>' if weight > 0 else '<'} {-bias / weight:.4g}" in texts(ax)
    assert {"left: no", "right: yes"} <= set(texts(ax))


def test_module_splits_are_labelled_boxes():
    written = texts(plot_tree(module_model()))
    assert written.count("network") == 3
    assert "split 0" in written


def test_arrows_have_heads_and_thicker_ones_carry_more_training_rows():
    model = random_model(depth=3)
    outlines = arrows(plot_tree(model)).get_paths()
    totals = model.tree_.statistics.node_counts.sum(axis=1)
    children = [child for _, child, _ in compute_layout(model.tree_.structure).edges]
    widths = [thickness(outline) for outline in outlines]
    assert np.allclose(np.array(widths) - 0.012, (0.17 - 0.012) * totals[children] / totals[0])
    assert all(len(outline.vertices) >= 7 for outline in outlines)


def test_left_is_minus_right_is_plus_and_the_legend_explains_it():
    model = random_model(n_features=4, depth=1, image_shape=(2, 2))
    written = texts(plot_tree(model))
    assert written.count("+") == written.count("−") == 2  # at the arrows and in the key
    assert "right: resembles the image" in written
    assert "+" in texts(plot_tree(model, key=False))
    assert "right: resembles the image" not in texts(plot_tree(model, key=False))


def test_the_path_of_a_sample_is_coloured():
    model = random_model(n_features=4, depth=3, image_shape=(2, 2))
    row = np.array([1.0, -1.0, 0.5, 2.0])
    ax = plot_tree(model, sample=row.reshape(2, 2))
    way = set(model.decision_path(row.reshape(1, -1)).indices.tolist())
    children = [child for _, child, _ in compute_layout(model.tree_.structure).edges]
    paint = arrows(ax).get_facecolors()
    accent = np.array(plt.matplotlib.colors.to_rgba(ACCENT))
    assert {child for child, color in zip(children, paint, strict=True) if np.allclose(color, accent)} == way - {0}
    assert len(ax.images) == model.tree_.structure.n_splits + 1
    assert "the sample" in texts(ax)


def test_the_values_of_a_tabular_sample_stand_beside_the_root():
    model = figure_1()
    assert {"x0 = 0.25", "x1 = 0.5"} <= set(texts(plot_tree(model, sample=[0.25, 0.5])))


@pytest.mark.parametrize("sample", [np.ones(3), np.ones((2, 2)), [np.inf, 1.0]])
def test_a_sample_of_the_wrong_kind_is_refused(sample):
    with pytest.raises(ValueError, match=r"sample must be one row|Input sample contains infinity"):
        plot_tree(figure_1(), sample=sample)


def test_a_sample_with_columns_in_another_order_is_refused():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    model = plain_tree(max_depth=1, epochs=2, finetune_epochs=0, min_updates=5, random_state=0)
    model.fit(frame, frame.a > frame.b)
    plot_tree(model, sample=frame.iloc[0])
    for row in (frame[["b", "a"]].iloc[0], frame[["b", "a"]][:1]):
        with pytest.raises(ValueError, match="same order as they were in fit"):
            plot_tree(model, sample=row)


def test_a_deep_tree_can_be_cut():
    ax = plot_tree(random_model(depth=3), max_depth=1)
    assert texts(ax).count("… 4 leaves") == 2
    assert len(arrows(ax).get_paths()) == 2


def test_a_tree_of_64_leaves_is_collapsed_to_a_width():
    model = random_model(depth=6)
    ax = plot_tree(model)
    assert ax.figure.get_size_inches()[0] <= 16
    assert any(text.startswith("… ") for text in texts(ax))
    assert plot_tree(model, max_width=7.5).figure.get_size_inches()[0] <= 7.5
    assert not any(text.startswith("… ") for text in texts(plot_tree(model, max_width=None)))
    with pytest.raises(ValueError, match="`max_width` must be a positive number of inches"):
        plot_tree(model, max_width=0)


def test_collapsed_subtrees_have_the_fewest_rows():
    structure = TreeStructure.balanced(2)
    assert select_collapsed(structure, np.array([9.0, 2.0, 7.0, 1.0, 1.0, 3.0, 4.0]), 3) == [1]
    assert select_collapsed(structure, np.ones(7), 0) == [1, 2]  # the root is always drawn


@pytest.mark.parametrize("max_depth", [-1, 1.5, True, "2"])
def test_max_depth_must_be_an_integer(max_depth):
    with pytest.raises(ValueError, match="`max_depth` must be a whole number"):
        plot_tree(figure_1(), max_depth=max_depth)


def test_leaves_and_splits_can_be_named_as_in_the_plane():
    written = texts(plot_tree(figure_1(), letters=True))
    assert {"A: blue", "B: blue", "C: red", "D: blue", "E: red"} <= set(written)
    assert {"0", "1", "2", "3"} <= set(written)


def test_a_vector_file_keeps_pixels_and_stays_small(tmp_path):
    ax = plot_tree(random_model(n_features=784, depth=5, image_shape=(28, 28)), max_width=None)
    ax.figure.savefig(tmp_path / "tree.svg")
    content = (tmp_path / "tree.svg").read_text()
    assert content.count("<image") == 31  # each for itself, not one large bitmap
    assert len(content) < 500_000


@pytest.mark.slow
def test_a_tree_of_512_leaves_makes_a_figure_that_can_be_saved():
    ax = plot_tree(random_model(n_features=4, depth=9, image_shape=(2, 2)))
    assert max(ax.figure.get_size_inches()) <= 120
    assert len(ax.images) == 511


def test_a_model_must_be_fitted():
    with pytest.raises(ValueError, match="plot_tree needs a fitted crisptree model"):
        plot_tree(plain_tree())


def test_all_classes_must_be_named():
    with pytest.raises(ValueError, match="`class_names` must name all 2 classes; got 1"):
        plot_tree(figure_1(), class_names=["one"])


def test_long_class_names_leave_room_for_their_shares():
    names = [f"a class with a name that is far too long, number {number}" for number in range(3)]
    written = texts(plot_tree(random_model(classes=names), key=False))
    shortened = [text for text in written if "…:" in text]
    assert shortened
    assert all(text.endswith(" %") for text in shortened)


def test_a_split_of_a_table_has_its_weights_and_its_threshold_written():
    model = random_model(n_features=3, depth=1, n=60)
    drawn = texts(plot_tree(model, feature_names=["age", "income", "calls"]))
    weight, bias = model.tree_.weight[0], float(model.tree_.bias[0])
    for name, value in zip(["age", "income", "calls"], weight, strict=True):
        assert any(text.endswith(f"{abs(value):.3g} × {name}") for text in drawn)
    assert f"> {-bias:.4g}".replace("-", "−") in drawn


@pytest.fixture(scope="module")
def customers():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"months": rng.integers(1, 72, 300), "plan": rng.choice(["basic", "plus", "pro"], 300)})
    return X, (12_000.0 + 120 * X["months"] + 9000 * (X["plan"] == "pro")).rename("price")


def test_splits_on_columns_of_a_table_read_as_sentences_do(customers):
    X, _ = customers
    labels = np.where((X["plan"] == "pro") | (X["months"] > 40), "stays", "leaves")
    model = CrispTreeClassifier(max_depth=2, split="axis", leaf_model="constant", random_state=0).fit(X, labels)
    ax = plot_tree(model)
    drawn, rules = texts(ax), [line for line in export.text(model).splitlines() if line.endswith("?")]
    assert any("plan is" in rule for rule in rules)
    assert any("months >" in rule for rule in rules)
    for rule in rules:
        name, condition = rule.partition("rows: ")[2].removesuffix("?").split(" ", 1)
        assert drawn[drawn.index(name) + 1 :].count(condition) >= 1
    assert not overlaps(ax)


@pytest.mark.parametrize("leaf_model", ["linear", "sparse_linear"])
def test_linear_leaves_show_their_largest_terms(customers, leaf_model):
    model = CrispTreeRegressor(max_depth=1, split="axis", leaf_model="linear", random_state=0)
    if leaf_model == "sparse_linear":
        model = CrispTreeRegressor.readable(random_state=0)
    model = model.fit(*customers)
    ax = plot_tree(model)
    drawn, view = texts(ax), view_model(model, "this")
    for leaf in range(model.get_n_leaves()):
        ((name, parts),) = view.linear_leaf_terms(model.tree_.structure.n_splits + leaf)
        assert name == "price"
        assert f"price = {parts[0]}" in drawn
        assert set(parts[1:]) <= set(drawn)
    assert "price" not in drawn  # a single output needs no name below its bars
    assert not any("e+" in text for text in drawn)
    assert not overlaps(ax)


def test_small_trees_are_drawn_wider_for_the_formulas_of_their_leaves():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)), columns=[f"{w} charges in euros" for w in "abc"])
    y = np.where(X.iloc[:, 0] > 0, 3 * X.iloc[:, 1], -2 * X.iloc[:, 2])
    model = CrispTreeRegressor(max_depth=1, split="axis", leaf_model="linear", random_state=0).fit(X, y)
    ax = plot_tree(model)
    assert not any(text.endswith("…") for text in texts(ax))
    assert not overlaps(ax)
    assert any(text.endswith("…") for text in texts(plot_tree(model, max_width=2.5)))


def test_a_missing_matplotlib_names_the_extra():
    code = (
        "import sys; sys.modules['matplotlib'] = None\ntry:\n import crisptree.plots\nexcept ImportError as e: print(e)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip().endswith("pip install 'crisptree[plots]'")
