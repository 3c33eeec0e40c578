import io

import joblib
import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from crisptree import export
from crisptree.export import ExportError
from tests.export.models import HOSTILE, QUICK, numbers, of_numbers, of_table, rough_rows, table, thresholds


def test_every_row_reaches_the_same_leaf_also_on_the_thresholds_themselves():
    model, _ = thresholds()
    X = rough_rows(model)
    agreement = export.check(model, X, "sklearn")
    assert agreement.equal_leaves == agreement.equal_classes == agreement.rows == len(X)
    assert agreement.largest_difference == 0


def axis_table(**changes):
    return of_table(split="axis", grow="cart", finetune_epochs=0, max_depth=6, **changes)


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
    np.testing.assert_array_equal(tree.crisptree_leaves_[tree.apply(X)], model.leaf_indices(columns))
    np.testing.assert_array_equal(tree.predict_proba(X), model.predict_proba(columns))
    forest = export.sklearn_forest(model)
    del forest.feature_names_in_
    np.testing.assert_array_equal(forest.predict_proba(X), model.predict_proba(columns))


def test_labels_of_every_type_stay_what_they_are():
    for labels in (HOSTILE[:4], [3, 1, 7, 5], [1.0, 2.0, 4.0, 8.0]):
        model, X = thresholds(labels=labels)
        for fitted in (export.sklearn_tree(model), export.sklearn_forest(model)):
            assert fitted.predict(X).dtype == model.predict(X).dtype
            np.testing.assert_array_equal(fitted.predict(X), model.predict(X))


def test_a_single_leaf_is_a_tree_too():
    model, X = numbers(n=60, max_depth=0)
    assert export.check(model, X, "sklearn").equal_leaves == 60


def test_hyperplanes_are_refused_with_what_to_do():
    model, _ = numbers(n=60, max_depth=1)
    with pytest.raises(ExportError, match=r"does not support oblique splits: .*threshold.*split='axis'"):
        export.sklearn_tree(model)


def test_files_hold_a_forest_of_one_tree_unless_the_tree_itself_is_wanted():
    model, X = thresholds()
    for form, kind in (({}, "RandomForestClassifier"), ({"form": "tree"}, "DecisionTreeClassifier")):
        fitted = joblib.load(io.BytesIO(export.write(model, "sklearn", **form)))
        assert type(fitted).__name__ == kind
        np.testing.assert_array_equal(fitted.predict_proba(X), model.predict_proba(X))
        assert export.check(model, X, "sklearn", **form).equal_leaves == len(X)
    with pytest.raises(ExportError, match="form must be one of forest, tree; got 'oak'"):
        export.write(model, "sklearn", form="oak")


def test_columns_are_found_by_name_in_a_forest():
    pandas = pytest.importorskip("pandas")
    model, X = thresholds(n_features=3)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model.fit(frame, model.predict(X))
    forest = export.sklearn_forest(model)
    assert list(forest.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(forest.predict(frame), model.predict(frame))


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_treelite_takes_the_forest_and_predicts_the_same(kind):
    treelite = pytest.importorskip("treelite")
    if kind == "classes":
        model, X = thresholds()
        expected = model.predict_proba(X)
    else:
        parameters = QUICK | {"split": "axis", "grow": "cart", "finetune_epochs": 0}
        model, X = of_numbers(n_features=4, **parameters)
        expected = model.predict(X)[:, None]
    taken = treelite.sklearn.import_model(export.sklearn_forest(model))
    found = treelite.gtil.predict(taken, X.astype(np.float32))
    np.testing.assert_allclose(found.reshape(len(X), -1), expected, rtol=1e-12)
