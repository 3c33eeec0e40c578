import numpy as np
import pytest

from crisptree import explain
from crisptree.report.samples import ReportRows, select_rows
from tests.report.conftest import KINDS, fitted, unpacked


def rows(leaf, predicted, y):
    leaf, predicted, y = (np.array(values) for values in (leaf, predicted, y))
    return ReportRows(np.zeros((len(leaf), 1), dtype=np.float32), leaf, predicted, y)


def test_wrong_rows_come_first_in_turns_from_every_confusion():
    given = rows([0] * 6, [0, 1, 1, 1, 1, 0], [0, 0, 0, 0, 2, 0])
    assert select_rows(given, 6).tolist() == [1, 4, 2, 3, 0, 5]


def test_right_rows_keep_a_quarter_of_the_places():
    given = rows([0] * 20, [1] * 10 + [0] * 10, [0] * 20)
    chosen = select_rows(given, 8)
    assert (chosen < 10).sum() == 6
    assert len(chosen) == 8
    few = rows([0] * 11, [1] * 10 + [0], [0] * 11)
    assert sorted(select_rows(few, 8).tolist()) == [*range(7), 10]


def test_every_leaf_shows_a_right_row_before_any_shows_two():
    given = rows([0, 0, 0, 1, 2, 1], [0] * 6, [0] * 6)
    assert select_rows(given, 4).tolist() == [0, 3, 4, 1]
    assert select_rows(given, 0).tolist() == []


@pytest.mark.parametrize("kind", ["tabular", "image", "module", "axis", "one feature", "4,096 features"])
def test_steps_are_those_of_explain_path(kind, page):
    model, X, y = fitted(**KINDS[kind])
    samples = page(model, X, y, max_samples=12)[1]["samples"]
    steps, features, pushes = (unpacked(samples[name]) for name in ("steps", "push_features", "pushes"))
    for sample, row in enumerate(unpacked(samples["row"])):
        way = explain.path(model, X[row], top=features.shape[2])
        assert unpacked(samples["leaf"])[sample] == way.leaf
        for place, step in enumerate(way.steps):
            # modules see other batches here, which may round otherwise
            np.testing.assert_allclose(
                steps[sample, place], [step.score, step.margin, step.offset], rtol=1e-4, atol=1e-5
            )
            named = {push.feature: push.amount for push in step.pushes}
            mine = dict(zip(features[sample, place].tolist(), pushes[sample, place, :, 1].tolist(), strict=True))
            assert mine == pytest.approx({j: named.get(j, 0.0) for j in mine}, rel=1e-5)
        assert np.isnan(steps[sample, len(way.steps) :]).all()


@pytest.mark.parametrize("leaf_model", ["constant", "linear"])
def test_changes_are_those_of_find_counterfactual(page, leaf_model):
    model, X, y = fitted(leaf_model=leaf_model)
    samples = page(model, X, y, max_samples=5)[1]["samples"]
    rows_kept = unpacked(samples["row"])
    assert samples["changes"]
    for sample, entry in samples["changes"].items():
        change = explain.find_counterfactual(model, X[rows_kept[int(sample)]])
        assert entry["distance"] == pytest.approx(change.distance)
        assert model.classes_[entry["predicted"]] == change.predicted
        assert [tuple(column) for column in entry["columns"]][:5] == list(change.columns)


def test_a_changed_image_is_kept_as_a_picture(page):
    model, X, y = fitted(image_shape=(2, 3))
    entry = next(iter(page(model, X, y)[1]["samples"]["changes"].values()))
    assert entry["image"]["shape"] == [2, 3, 1]
    assert np.abs(unpacked(entry["difference"])).max() == 127


def test_thumbnails_are_the_rows_in_256_greys(page):
    model, X, y = fitted(image_shape=(2, 2, 3), n_features=12)
    samples = page(model, X, y)[1]["samples"]
    images, kept = unpacked(samples["images"]), X[unpacked(samples["row"])].reshape(-1, 2, 2, 3)
    shown = samples["low"] + images / 255 * (samples["high"] - samples["low"])
    assert np.abs(shown - kept).max() <= (samples["high"] - samples["low"]) / 500


def test_wide_rows_keep_the_features_with_the_largest_weights(page):
    model, X, y = fitted(n_features=60)
    samples = page(model, X, y, max_samples=3)[1]["samples"]
    shown = [int(column["name"][1:]) for column in samples["columns"]]
    assert (len(shown), samples["more_columns"]) == (40, 20)
    visits = model.tree_.statistics.node_counts[: model.tree_.structure.n_splits].sum(axis=1)
    assert int((visits @ np.abs(model.tree_.scaled_hyperplanes()[0])).argmax()) == shown[0]
    row = unpacked(samples["row"])[0]
    assert unpacked(samples["values"])[0].tolist() == X[row, shown].tolist()


@pytest.mark.parametrize("leaf_model", ["constant", "linear"])
def test_errors_are_attributed_as_by_explain(page, leaf_model):
    model, X, y = fitted(leaf_model=leaf_model)
    wrong = (y + (np.arange(len(y)) % 3 == 0)) % 4
    assert page(model, X, wrong)[1]["error_attribution"] == [
        list(entry) for entry in explain.attribute_errors(model, X, wrong).table()
    ]
