"""Growth by CART and by functions of one's own, through the estimator."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

import crisptree
from crisptree.learning.cart import fit_cart
from tests.toys import clouds, diagonal, plain_tree

QUICK = {"max_depth": 4, "epochs": 5, "finetune_epochs": 5, "min_updates": 20, "random_state": 0}
X, Y = clouds(300, n_features=6, n_classes=5)


def fitted(**parameters):
    return plain_tree(**QUICK | parameters).fit(X, Y)


def test_cart_through_the_estimator_predicts_what_scikit_learn_predicts():
    rows, labels = load_digits(return_X_y=True)
    limits = {"max_depth": 6, "min_samples_leaf": 15}
    ours = plain_tree(grow="cart", finetune_epochs=0, random_state=0, **limits).fit(rows, labels)
    theirs = DecisionTreeClassifier(criterion="entropy", random_state=0, **limits).fit(rows, labels)
    assert np.mean(ours.predict(rows) == theirs.predict(rows)) > 0.99  # features that tie may differ
    assert ours.score(rows, labels) == pytest.approx(theirs.score(rows, labels), abs=0.005)
    assert (np.count_nonzero(ours.tree_.weight, axis=1) == 1).all()


def test_em_turns_the_axes_of_a_cart_tree_into_a_diagonal():
    rows, labels = diagonal(400)
    model = plain_tree(grow="cart", max_depth=2, random_state=0).fit(rows, labels)
    assert model.score(rows, labels) > max(model.before_finetuning().score(rows, labels), 0.99)


def test_a_cart_tree_is_truncated_and_finetuned_at_any_depth():
    deep = fitted(grow="cart", finetune_epochs=0)
    shallow = deep.truncate(2).set_params(warm_start=True, training__grow="greedy", training__finetune_epochs=5)
    shallow.set_params(max_depth=2).fit(X, Y)
    assert (shallow.get_depth(), deep.get_depth()) == (2, 4)
    np.testing.assert_allclose(shallow.greedy_tree_.weight, deep.truncate(2).tree_.weight, rtol=1e-5)
    assert not np.array_equal(shallow.tree_.weight, shallow.greedy_tree_.weight)


def grow_stump(context, tree):
    """A stump of CART, or the tree of a warm start."""
    if tree.structure.n_splits:
        return tree
    return fit_cart(context.samples, context.spec.limits, None, context.spec.seed)


def test_a_function_grows_the_tree_that_finetuning_starts_from(tmp_path):
    grown = fitted(grow=grow_stump, finetune_epochs=0, max_depth=1)
    assert grown.get_n_leaves() == 2
    tuned = fitted(grow=grow_stump, max_depth=1)
    assert np.array_equal(tuned.greedy_tree_.weight, grown.tree_.weight)
    assert not np.array_equal(tuned.tree_.weight, grown.tree_.weight)
    again = grown.set_params(warm_start=True).fit(X, Y)
    assert again.get_n_leaves() == 2
    again.save(tmp_path / "model.crisp")
    assert crisptree.load(tmp_path / "model.crisp").training.grow == "greedy"  # a file holds no functions


@pytest.mark.parametrize(
    ("earlier", "now"), [("axis_aligned", "cart"), ("oc1", "greedy"), ("co2", "greedy"), ("random", "greedy")]
)
def test_earlier_growth_methods_are_read_from_model_files(earlier, now, tmp_path):
    model = fitted(finetune_epochs=0, max_depth=1)
    model.training.__dict__["grow"] = earlier
    model.save(tmp_path / "model.crisp")
    assert crisptree.load(tmp_path / "model.crisp").training.grow == now
