import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from crisptree import export
from crisptree.export import ExportError
from tests.export.models import HOSTILE, numbers, of_table, rough_rows, table, thresholds


def test_every_row_reaches_the_same_leaf_also_on_the_thresholds_themselves():
    model, _ = thresholds()
    X = rough_rows(model)
    agreement = export.check(model, X, "sklearn")
    assert agreement.equal_leaves == agreement.equal_classes == agreement.rows == len(X)
    assert agreement.largest_difference == 0


def axis_table(**changes):
    return of_table(split="axis", grow="axis_aligned", finetune_epochs=0, max_depth=6, **changes)


def test_categories_go_through_the_encoder_before_the_tree():
    model, columns = axis_table()
    tree = export.sklearn_tree(model)
    both = make_pipeline(model.encoder_, tree.__class__()).fit(columns, table()[1])
    both.steps[-1] = ("tree", tree)
    np.testing.assert_array_equal(both.predict(columns), model.predict(columns))
    assert export.check(model, columns, "sklearn").equal_leaves == 400


def test_missing_numbers_are_nan_there():
    columns, y = table()
    del columns["plan"]
    model, _ = axis_table()
    model.fit(columns, y)
    asked = {int(np.flatnonzero(weight)[0]) for weight in model.tree_.weight}
    assert list(model.encoder_.get_feature_names_out()).index("age is missing") in asked  # else nothing is tested
    tree = export.sklearn_tree(model)
    X = np.array(
        [[np.nan if value is None else float(value) for value in row] for row in zip(*columns.values(), strict=True)]
    )
    assert np.isnan(X).any()
    tree.__dict__.pop("feature_names_in_")
    np.testing.assert_array_equal(tree.crisptree_leaves_[tree.apply(X)], model.apply(columns))
    np.testing.assert_array_equal(tree.predict_proba(X), model.predict_proba(columns))


def test_labels_of_every_type_stay_what_they_are():
    for labels in (HOSTILE[:4], [3, 1, 7, 5], [1.0, 2.0, 4.0, 8.0]):
        model, X = thresholds(labels=labels)
        predicted = export.sklearn_tree(model).predict(X)
        assert predicted.dtype == model.predict(X).dtype
        np.testing.assert_array_equal(predicted, model.predict(X))


def test_a_single_leaf_is_a_tree_too():
    model, X = numbers(n=60, max_depth=0)
    assert export.check(model, X, "sklearn").equal_leaves == 60


def test_hyperplanes_are_refused_with_what_to_do():
    model, _ = numbers(n=60, max_depth=1)
    with pytest.raises(ExportError, match=r"cannot hold hyperplanes: it knows thresholds.*split='axis'"):
        export.sklearn_tree(model)
