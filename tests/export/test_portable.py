import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

import crisptree
from crisptree import CrispSegmenter, TableEncoder, TrainingOptions, export
from crisptree.export import ExportError, Portable
from crisptree.export.portable import convert_to_double
from crisptree.inference.flat_tree import linear_scores
from crisptree.inference.node_arrays import find_split_threshold
from tests.export.models import HOSTILE_COLUMNS, numbers, of_table, rough_rows, table, thresholds
from tests.toys import plain_tree


def encoded(portable, columns):
    """Rows of features as the documentation tells a reader to make them."""
    n = len(next(iter(columns.values())))
    X = np.zeros((n, portable.n_features), dtype=np.float32)
    for column in portable.inputs:
        for row, value in enumerate(columns[column.name]):
            if value is None:
                if column.kind != "category":
                    X[row, column.feature] = column.fill
                if column.missing:
                    X[row, column.missing_feature] = 1
            elif column.kind == "category":
                if value in column.categories:
                    X[row, column.feature + column.categories.index(value)] = 1
            else:
                X[row, column.feature] = value
    return X


def followed(tree, row):
    """The leaf of a row, by the rule that the docstring gives."""
    child = 0 if tree.structure.n_splits else -1
    while child >= 0:
        score = linear_scores(row[None], tree.weight[child], tree.bias[child])[0]
        child = tree.structure.right[child] if score > 0 else tree.structure.left[child]
    return ~child


def test_the_plain_values_are_all_that_a_prediction_needs():
    model, columns = of_table()
    portable = Portable.of(model)
    (tree,) = portable.trees
    X = encoded(portable, columns)
    leaves = np.array([followed(tree, row) for row in X])
    np.testing.assert_array_equal(leaves, model.leaf_indices(columns))
    labels = np.array(portable.classes)[tree.tables[leaves].argmax(axis=1)]
    np.testing.assert_array_equal(labels, model.predict(columns))


def test_a_loaded_model_and_a_pipeline_have_the_values_of_the_model_itself(tmp_path):
    model, columns = of_table()
    model.save(tmp_path / "m.crisp")
    other = make_pipeline(TableEncoder(), plain_tree(max_depth=2, random_state=0))
    other.fit(columns, table()[1])
    ours = Portable.of(model)
    for same in (Portable.of(crisptree.load(tmp_path / "m.crisp")), ours):
        assert same.inputs == ours.inputs
        assert same.classes == ours.classes == ("no", "yes")
        np.testing.assert_array_equal(same.trees[0].weight, model.tree_.weight)
    assert [column.name for column in Portable.of(other).inputs] == ["age", "income", "plan", "member"]
    assert Portable.of(other).inputs == ours.inputs


def test_what_a_model_uses_is_named():
    assert Portable.of(numbers(n=60, max_depth=2)[0]).uses == {"oblique", "missing"}
    assert Portable.of(thresholds()[0]).uses == {"axis", "missing"}
    assert Portable.of(of_table()[0]).uses == {"oblique", "missing", "categories"}
    images = np.random.default_rng(0).normal(size=(1, 12, 12)).astype(np.float32)
    segmenter = CrispSegmenter(
        window=3, max_depth=1, training=TrainingOptions(epochs=1, finetune_epochs=0, min_updates=2), random_state=0
    )
    segmenter.fit(images, (images > 0).astype(int))
    assert "segmenter" in Portable.of(segmenter).uses
    assert Portable.of(segmenter).takes_images


def test_steps_that_are_not_ours_are_refused_with_what_to_do():
    X = numbers(n=60, max_depth=1)[1]
    model = make_pipeline(PCA(2), plain_tree(max_depth=1, random_state=0)).fit(X, X[:, 0] > 0)
    with pytest.raises(ExportError, match=r"this Pipeline has a PCA.*Export the last step alone, pipeline\[-1\]"):
        Portable.of(model)
    assert Portable.of(model[-1]).feature_names == ("x0", "x1")


def test_names_are_kept_as_the_user_wrote_them():
    names = HOSTILE_COLUMNS[:4]
    model, _ = of_table(names=names)
    assert [column.name for column in Portable.of(model).inputs] == list(names)


@pytest.mark.parametrize("seed", range(20))
def test_a_threshold_decides_as_the_sum_does_for_every_number(seed):
    rng = np.random.default_rng(seed)
    weight = np.float32(rng.normal() * 10.0 ** rng.integers(-30, 30))
    bias = np.float32(rng.normal() * 10.0 ** rng.integers(-30, 30) * (seed % 7 > 0))
    _, value, larger_go_right = find_split_threshold(np.array([weight]), bias)
    limit, inclusive = convert_to_double(value)
    around = np.float32(np.clip(value, -3e38, 3e38)) * (1 + rng.integers(-9, 10, 400) * 2.0**-24)
    doubles = np.concatenate([around, rng.normal(size=100) * 10.0 ** rng.integers(-38, 38, 100), [0.0, -0.0, limit]])
    doubles = doubles[np.abs(doubles) < 3.4e38]
    x = doubles.astype(np.float32)
    right = linear_scores(x[:, None], np.array([weight]), bias) > 0
    np.testing.assert_array_equal((x > value) == larger_go_right, right)
    below = (doubles <= limit) if inclusive else (doubles < limit)
    np.testing.assert_array_equal(below != larger_go_right, right)


def test_a_split_without_weights_sends_all_rows_to_one_child():
    for bias, right in ((1.0, True), (0.0, False), (-1.0, False)):
        _, value, larger_go_right = find_split_threshold(np.zeros(1, np.float32), np.float32(bias))
        assert all((x > value) == larger_go_right for x in (-3e38, 0.0, 3e38)) is right


def test_an_agreement_distinguishes_rounding_from_errors():
    model, X = numbers()
    rows = export.formats.encode_rows(model, X)
    truth = export.formats.predict_with_model(model, rows.X)
    same = export.formats.compare(model, rows.X, truth, "x")
    assert (same.rows, same.equal_leaves, same.equal_classes, same.unexplained) == (400, 400, 400, 0)
    assert same.largest_difference == 0
    wrong = export.formats.Predictions(np.roll(truth.leaves, 1), truth.outputs, truth.classes)
    other = export.formats.compare(model, rows.X, wrong, "x")
    assert other.unexplained == (truth.leaves != np.roll(truth.leaves, 1)).sum() > 0
    assert not other.holds
    assert "WITHOUT being near a boundary" in str(other)
    swapped = export.formats.Predictions(truth.leaves, truth.outputs, 1 - truth.classes)
    misnamed = export.formats.compare(model, rows.X, swapped, "x")
    assert misnamed.wrong_classes == 400 - misnamed.equal_classes > 0
    assert not misnamed.holds
    assert "get ANOTHER class" in str(misnamed)


def test_rows_on_a_boundary_are_counted_as_near():
    model, X = thresholds()
    far = export.formats.sensitive_rows(model.tree_, X)[0]
    near = export.formats.sensitive_rows(model.tree_, rough_rows(model)[:90].astype(np.float32))[0]
    assert near.mean() > far.mean()
    assert near.sum() >= 10
