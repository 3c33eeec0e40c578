from functools import cache

import numpy as np
import pytest

import crisptree
from crisptree import CrispForestRegressor, CrispTreeRegressor, export
from crisptree.export import ExportError, Portable
from tests.export.models import QUICK, of_numbers, skip_unless_it_runs, table

PLAIN = {"split": "oblique", "l1": 0.0, "input_noise": 0.0, "scale": "feature"} | QUICK


def regressor_of_a_table():
    columns, _ = table()
    return CrispTreeRegressor.from_flat(**PLAIN).fit(columns, columns["income"]), columns


MODELS = {
    "a forest": lambda: of_numbers(CrispForestRegressor, n_estimators=3, **PLAIN),
    "one number": lambda: of_numbers(**PLAIN),
    "two numbers": lambda: of_numbers(n_outputs=2, **PLAIN),
    "a table": regressor_of_a_table,
}


@cache
def made(kind):
    return MODELS[kind]()


@pytest.mark.parametrize("kind", MODELS)
def test_the_values_of_a_regression_are_what_it_predicts(kind):
    model, X = made(kind)
    portable = Portable.of(model)
    assert portable.classes == ()
    leaves = model.leaf_indices(X).reshape(len(model.predict(X)), -1)
    sums = sum(tree.tables[reached] for tree, reached in zip(portable.trees, leaves.T, strict=True))
    np.testing.assert_array_equal((sums / len(portable.trees)).reshape(model.predict(X).shape), model.predict(X))


def test_an_agreement_of_regressions_names_no_classes():
    model, X = made("one number")
    said = str(export.check(model, X, "json"))
    assert "values differ by at most 0;" in said
    assert "class" not in said
    assert "probabilit" not in said


@pytest.mark.parametrize("to", ["js", "sql", "json", "onnx", "c"])
@pytest.mark.parametrize("kind", MODELS)
def test_every_row_reaches_the_same_leaf_and_gets_the_same_values(kind, to):
    skip_unless_it_runs(to)
    model, X = made(kind)
    agreement = export.check(model, X, to)
    assert agreement.holds
    assert agreement.equal_leaves == agreement.rows
    assert agreement.largest_difference <= (1e-6 if to == "onnx" else 0)  # its numbers are single precision


def test_a_document_of_a_regression_comes_back_bit_for_bit(tmp_path):
    model, _ = regressor_of_a_table()
    model.save(tmp_path / "one.crisp")
    (tmp_path / "m.json").write_text(export.json(model), encoding="utf-8")
    crisptree.load(tmp_path / "m.json").save(tmp_path / "two.crisp")
    crisptree.load(tmp_path / "one.crisp").save(tmp_path / "one.crisp")
    assert (tmp_path / "one.crisp").read_bytes() == (tmp_path / "two.crisp").read_bytes()


THRESHOLDS = PLAIN | {"split": "axis", "grow": "cart", "finetune_epochs": 0}


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_axis_splits_become_trees_and_forests_of_scikit_learn_with_equal_predictions(n_outputs):
    model, X = of_numbers(n_outputs=n_outputs, n_features=3 + n_outputs, **THRESHOLDS)
    for form, fitted in (("forest", export.sklearn_forest(model)), ("tree", export.sklearn_tree(model))):
        np.testing.assert_array_equal(fitted.predict(X), model.predict(X))
        found = export.check(model, X, "sklearn", form=form)
        assert (found.equal_leaves, found.largest_difference, found.holds) == (300, 0, True)


def test_nodes_of_scikit_learn_have_the_variance_of_their_training_rows():
    model, X = of_numbers(n_features=4, **THRESHOLDS)
    y = 1000 * (X[:, 0] + X[:, 1] * (X[:, 2] > 0))
    tree = export.sklearn_tree(model)
    at_root, leaves = tree.tree_.impurity[0], tree.apply(X)
    np.testing.assert_allclose(at_root, np.var(y), rtol=1e-6)
    assert (tree.feature_importances_ > 0).sum() >= 2
    np.testing.assert_allclose(tree.tree_.n_node_samples[leaves], np.bincount(leaves)[leaves])


def test_hyperplanes_of_a_regression_are_refused_with_what_to_do():
    model, _ = made("one number")
    with pytest.raises(ExportError, match=r"scikit-learn does not support oblique splits: .*split='axis'"):
        export.sklearn_forest(model)
