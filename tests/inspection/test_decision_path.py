import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

import crisptree
from crisptree import explain
from crisptree.structure import TreeStructure
from tests.inspection.models import QUICK, STRANGE, fitted, written
from tests.toys import clouds, plain_tree


def test_offset_and_all_pushes_add_up_to_the_score_of_the_kernel():
    model, X, _ = fitted(n_features=40, scale="global")
    for row in X[:20]:
        for step in explain.path(model, row, top=40).steps:
            amounts = [push.amount for push in step.pushes]
            scale = np.abs(amounts).sum() + abs(step.offset)
            assert step.offset + sum(amounts) == pytest.approx(step.score, abs=1e-5 * scale)
            assert step.score == model.tree_.scores(row[None], step.split)[0]


def test_a_path_ends_where_the_model_predicts():
    model, X, _ = fitted(labels=["a", "b", "c"])
    for row in X[:30]:
        way = explain.path(model, row)
        assert way.leaf == model.leaf_indices(row[None])[0]
        assert way.node == model.tree_.structure.n_splits + way.leaf
        assert way.predicted == model.predict(row[None])[0]
        assert np.array_equal(way.probabilities, model.predict_proba(row[None])[0])
        assert [step.goes_right for step in way.steps] == [step.score > 0 for step in way.steps]
        visited = model.decision_path(row[None]).indices[:-1]
        assert [step.split for step in way.steps] == sorted(visited)


def test_each_step_begins_with_the_classes_that_the_step_before_left():
    model, X, y = fitted()
    way = explain.path(model, X[0])
    assert way.steps[0].before == pytest.approx(np.bincount(y) / len(y))
    for earlier, later in zip(way.steps[:-1], way.steps[1:], strict=True):
        assert np.array_equal(earlier.after, later.before)
    assert np.array_equal(way.steps[-1].after, way.probabilities)


def test_pushes_are_the_largest_and_have_the_sign_of_their_side():
    model = written(TreeStructure.stump(), [[2.0, -1.0, 0.1]], [0.0], [0, 1])
    (step,) = explain.path(model, [1.0, 5.0, 1.0], top=2).steps
    assert [(push.feature, push.amount) for push in step.pushes] == [(1, -5.0), (0, 2.0)]
    assert step.pushes[0].value == 5.0
    assert not step.goes_right


def test_a_split_on_one_column_shows_value_and_threshold():
    model = written(TreeStructure.stump(), [[0.0, 2.0]], [-3.0], [0, 1])
    right, left = (explain.path(model, [9.0, value]) for value in (1.625, 1.5))
    assert [way.steps[0].condition for way in (right, left)] == ["x1 = 1.625 > 1.5", "x1 = 1.5 ≤ 1.5"]
    assert str(right).splitlines()[1] == "    x1 = 1.625 > 1.5"
    assert "contributions" not in str(right)
    two = written(TreeStructure.stump(), [[1.0, 2.0]], [-3.0], [0, 1])
    assert explain.path(two, [9.0, 1.0]).steps[0].condition == ""


def test_a_missing_value_is_not_shown_as_the_mean_that_replaces_it():
    frame = pd.DataFrame({"age": [1.0, 2.0, 8.0, 9.0, None, 5.0] * 12})
    y = np.where(frame["age"].fillna(5) > 4, "old", "young")
    model = plain_tree(split="axis", max_depth=1, leaf_model="constant", random_state=0).fit(frame, y)
    assert explain.path(model, frame.iloc[2]).steps[0].condition.startswith("age = 8 > ")
    assert explain.path(model, frame.iloc[4]).steps[0].condition.startswith("age is missing, the mean 5 > ")


def test_a_margin_counts_spreads_of_the_training_scores():
    X, y = np.array([[-2.0], [2.0]], dtype=np.float32), [0, 1]
    model = written(TreeStructure.stump(), [[3.0]], [0.0], [0, 1], X=X, y=y)
    assert explain.path(model, [1.0]).steps[0].margin == pytest.approx(3 / 6)


@pytest.mark.parametrize("value", [0.0, 2.0])
def test_a_margin_is_finite_where_all_training_scores_are_the_same(value):
    X = np.full((3, 1), value, dtype=np.float32)
    model = written(TreeStructure.stump(), [[1.0]], [0.0], [0, 1], X=X, y=[0, 1, 1])
    assert explain.path(model, [1.0]).steps[0].margin == pytest.approx(1 / (value or 1))


def test_a_split_that_no_training_row_reaches_shows_the_classes_above_it():
    structure = TreeStructure([1, ~0], [~2, ~1])
    X = np.array([[1.0], [2.0], [3.0]], dtype=np.float32)
    model = written(structure, [[1.0], [1.0]], [0.0, 1.0], [0, 1, 1], X=X, y=[0, 1, 1])
    for step in explain.path(model, [-5.0]).steps:
        assert step.before == pytest.approx([1 / 3, 2 / 3])
        assert step.after == pytest.approx([1 / 3, 2 / 3])


def test_one_leaf_is_a_path_without_steps():
    model, X, _ = fitted(max_depth=0)
    way = explain.path(model, X[0])
    assert (way.steps, way.leaf, way.node) == ((), 0, 0)
    assert str(way).startswith("leaf 0")


def test_modules_have_scores_and_no_pushes():
    model, X, _ = fitted(split=lambda shape: torch.nn.Linear(shape[0], 1))
    way = explain.path(model, X[0])
    assert way.steps
    assert all(step.pushes == () and step.offset == step.score for step in way.steps)
    assert way.leaf == model.leaf_indices(X[:1])[0]


def test_networks_on_images_of_two_channels_have_paths_and_attributed_errors():
    images = np.random.default_rng(0).normal(size=(30, 16, 16, 2)).astype(np.float32)
    y = np.arange(30) % 2
    model = plain_tree(**QUICK | {"split": "conv", "max_depth": 1, "epochs": 1}).fit(images, y)
    way = explain.path(model, images[0])
    assert way.leaf == model.leaf_indices(images[:1])[0]
    assert all(step.pushes == () for step in way.steps)
    assert len(explain.attribute_errors(model, images, y).rows) == (model.predict(images) != y).sum()


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 1), (1, 2, 3)])
def test_an_image_may_come_in_its_own_shape(shape):
    model, X, _ = fitted(image_shape=shape)
    way = explain.path(model, X[0].reshape(shape))
    assert way.leaf == explain.path(model, X[0]).leaf == explain.path(model, X[:1]).leaf
    assert way.steps[0].pushes[0].name.startswith("pixel (")


def test_rows_of_frames_are_named():
    X, y = clouds(90, n_features=3)
    frame = pd.DataFrame(X, columns=["length", "a $ b", "<b>"])
    model = plain_tree(**QUICK).fit(frame, y)
    for row in (frame.iloc[0], frame.iloc[:1], X[0]):
        way = explain.path(model, row)
        assert {push.name for push in way.steps[0].pushes} == set(frame.columns)
        assert way.leaf == model.leaf_indices(frame.iloc[:1])[0]
    with pytest.raises(ValueError, match="feature names"):
        explain.path(model, frame.iloc[:1].rename(columns={"length": "width"}))


def test_the_text_names_turns_features_and_any_class():
    model, X, _ = fitted(labels=STRANGE)
    way = explain.path(model, X[0])
    text = str(way)
    assert str(way.predicted) in text
    assert text.splitlines()[0].startswith("split 0: ")
    assert text.splitlines()[-1] == f"leaf {way.leaf}: {way.predicted} ({way.probabilities.max():.1%})"
    assert way.steps[0].pushes[0].name in text


@pytest.mark.parametrize(
    ("x", "says"),
    [
        (np.zeros(5), "one row of 6 features; got an array of shape"),
        (np.zeros((2, 6)), "one row at a time"),
        (np.full(6, np.inf), "infinity"),
        (np.full(6, 1e300), "infinity"),
        (pd.DataFrame(np.zeros((2, 6))), "got 2"),
    ],
)
def test_what_is_no_row_is_refused_with_a_sentence(x, says):
    model, _, _ = fitted(max_depth=1)
    with pytest.raises(ValueError, match=says):
        explain.path(model, x)


def test_an_unfitted_model_is_refused():
    with pytest.raises(NotFittedError):
        explain.path(plain_tree(), [0.0])


def test_a_model_must_be_one_of_ours_and_have_its_classes():
    model, X, y = fitted(max_depth=1)
    other = DecisionTreeClassifier().fit(X, y)
    for ask in (explain.path, explain.find_counterfactual):
        with pytest.raises(TypeError, match="or a Pipeline that ends in one; got a DecisionTreeClassifier"):
            ask(other, X[0])
        with pytest.raises(TypeError, match="Pass the model"):
            ask(model.tree_, X[0])


@pytest.mark.parametrize("top", [-1, 1.5, "a", None, True])
def test_top_must_be_an_integer(top):
    model, X, _ = fitted(max_depth=1)
    for ask in (explain.path, explain.find_counterfactual):
        with pytest.raises(ValueError, match="`top` must be a whole number of at least 0"):
            ask(model, X[0], top=top)


def test_sparse_rows_are_explained_as_the_same_rows_with_zeros_are(monkeypatch):
    model, X, _ = fitted(max_depth=1)
    assert str(explain.path(model, csr_matrix(X[:1]))) == str(explain.path(model, X[0]))
    y = model.predict(X)[::-1]
    assert str(explain.attribute_errors(model, csr_matrix(X), y)) == str(explain.attribute_errors(model, X, y))
    monkeypatch.setattr("crisptree.inspection.validation.MAX_DENSE_VALUES", 10 * X.shape[1])
    with pytest.raises(ValueError, match="at most 10 of them"):
        explain.attribute_errors(model, csr_matrix(X), y)


def test_a_loaded_model_is_explained_without_torch(tmp_path):
    model, X, _ = fitted(n_features=1)
    model.save(tmp_path / "m.crisp")
    code = (
        f"import crisptree, sys; model = crisptree.load({str(tmp_path / 'm.crisp')!r}); "
        f"print(crisptree.explain.path(model, [{float(X[0, 0])!r}]).leaf, 'torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == [str(model.leaf_indices(X[:1])[0]), "False"]
    assert crisptree.explain is explain
