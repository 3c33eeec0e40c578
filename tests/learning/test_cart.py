import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

from crisptree.learning.cart import fit_cart, round_down
from crisptree.learning.options import GrowthLimits
from tests.learning.test_growth import samples_of
from tests.toys import clouds


def cart(X, y, **limits):
    return fit_cart(samples_of(X, y), GrowthLimits(**limits), None, 0)


def predicted(tree, X, y, rows):
    leaf = tree.route(torch.from_numpy(X))
    counts = torch.zeros(tree.structure.n_leaves, int(y.max()) + 1)
    counts.index_put_((leaf, torch.from_numpy(y)), torch.ones(len(y)), accumulate=True)
    tables = counts / counts.sum(dim=1, keepdim=True)
    return tables[tree.route(torch.from_numpy(rows))].numpy()


@pytest.mark.parametrize(
    "limits",
    [
        {"max_depth": 4, "min_samples_leaf": 10},
        {"max_leaf_nodes": 9, "min_samples_leaf": 10},
        {"max_depth": 5, "min_samples_split": 60, "min_samples_leaf": 8},
        {"max_depth": 3, "min_weight_fraction_leaf": 0.03},
    ],
    ids=str,
)
def test_it_predicts_what_scikit_learns_tree_predicts(limits):
    X, y = clouds(600, n_classes=4, seed=3)
    X += (
        np.random.default_rng(0).normal(scale=2, size=X.shape).astype(np.float32)
    )  # overlap, so that no two features tie
    fresh = np.random.default_rng(1).normal(scale=3, size=(2000, 5)).astype(np.float32)
    theirs = DecisionTreeClassifier(criterion="entropy", random_state=0, **limits).fit(X, y)
    ours = cart(X, y, **limits)
    assert ours.structure.n_leaves == theirs.get_n_leaves() >= 5
    for rows in (X, fresh):
        np.testing.assert_allclose(predicted(ours, X, y, rows), theirs.predict_proba(rows), atol=1e-6)


def test_every_row_turns_as_in_scikit_learns_stump_even_next_to_the_threshold():
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 1e6):
        near = np.float32(scale)
        X = near + np.spacing(near) * rng.integers(-4, 5, (60, 1)).astype(np.float32)
        y = (X[:, 0] > near).astype(np.int64)
        stump = DecisionTreeClassifier(criterion="entropy", max_depth=1).fit(X, y)
        assert np.array_equal(cart(X, y, max_depth=1).route(torch.from_numpy(X)) == 1, stump.apply(X) == 2)


def test_a_threshold_is_rounded_down():
    for value in (0.1, -0.1, 1 / 3, 1e-30, 5.0):
        single = round_down(value)
        assert float(single) <= value < float(np.nextafter(single, np.float32(np.inf)))


def test_a_full_tree_on_digits_classifies_its_rows_and_uses_one_feature_at_a_split():
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    tree = cart(X, y)
    assert (predicted(tree, X, y, X).argmax(axis=1) == y).all()
    weight, _ = tree.splits.hyperplanes()
    assert (torch.count_nonzero(weight, dim=1) == 1).all()
    assert tree.structure.depth < 20
