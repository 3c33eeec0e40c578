import copy
import pickle

import numpy as np
import pytest
import torch

import crisptree
from crisptree import CrispTreeWarning
from crisptree.datasets import load_digits
from tests.toys import clouds, plain_regressor, plain_tree

QUICK = {"max_depth": 3, "epochs": 5, "finetune_epochs": 5, "min_updates": 50, "random_state": 0}


def two_of_thirty(n=1200, seed=0):
    """Only features 4 and 17 matter, in four bands of their sum."""
    X = np.random.default_rng(seed).normal(size=(n, 30)).astype(np.float32)
    return X, np.digitize(X[:, 4] + X[:, 17], [-1, 0, 1])


@pytest.fixture(scope="module")
def bands():
    X, y = two_of_thirty()
    return plain_tree(**QUICK).fit(X, y), X, y


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    return plain_tree(**QUICK | {"max_depth": 5}).fit(data.X_train, data.y_train), data


def terms(model):
    return np.count_nonzero(model.tree_.weight, axis=1)


def test_two_terms_are_the_two_that_matter_and_are_enough(bands):
    model, X, y = bands
    small = model.simplify(X, y, max_terms=2)
    assert (terms(small) <= 2).all()
    assert set(np.flatnonzero(small.tree_.weight[0])) == {4, 17}
    assert small.feature_importances_[[4, 17]].sum() > 0.95
    fresh, labels = two_of_thirty(seed=1)
    assert small.score(fresh, labels) >= model.score(fresh, labels) - 0.005
    assert small.sparsity_ >= 28 / 30


def test_the_model_itself_stays_as_it_was(bands):
    model, X, y = bands
    before = copy.deepcopy(model.__dict__)
    small = model.simplify(X, y, max_terms=3)
    assert not hasattr(model, "simplification_")
    assert np.array_equal(model.tree_.weight, before["tree_"].weight)
    assert len(model.history_) == len(before["history_"]) < len(small.history_)
    assert (terms(small) <= 3).all()


@pytest.mark.parametrize("tolerance", [0.0, 0.02])
def test_the_tolerance_holds_on_the_validation_rows(digits, tolerance):
    model, data = digits
    rows = (data.X_valid, data.y_valid)
    small = model.simplify(data.X_train, data.y_train, tolerance=tolerance, eval_set=rows, epochs=3)
    assert small.score(*rows) >= model.score(*rows) - tolerance - 1e-9
    report = small.simplification_
    assert report.score_before == pytest.approx(model.score(*rows))
    assert report.score_after == pytest.approx(small.score(*rows))
    assert report.weights_before == np.count_nonzero(model.tree_.weight)
    assert report.weights_after == np.count_nonzero(small.tree_.weight)
    assert (report.splits_before, report.splits_after) == (
        model.tree_.structure.n_splits,
        small.tree_.structure.n_splits,
    )
    if tolerance:
        assert report.weights_after < report.weights_before / 2
        assert report.splits_after < report.splits_before
    assert f"{report.weights_after:,}" in str(report)


def test_without_any_wish_a_hundredth_may_be_lost(bands):
    model, X, y = bands
    small = model.simplify(X, y, epochs=3)
    assert small.simplification_.score_after >= small.simplification_.score_before - 0.01 - 1e-9
    assert small.simplification_.weights_after < small.simplification_.weights_before


def test_leaf_tables_are_counted_on_the_rows_given(bands):
    model, X, y = bands
    fresh, labels = two_of_thirty(seed=2)
    small = model.simplify(fresh, labels, max_terms=4, eval_set=(X, y), epochs=2)
    leaf = small.leaf_indices(fresh)
    for number in range(small.get_n_leaves()):
        here = np.bincount(labels[leaf == number], minlength=4)
        if here.sum():
            assert small.tree_.leaves[number] == pytest.approx(here / here.sum())
    assert small.tree_.statistics.node_counts[0].sum() == len(fresh)


def test_more_terms_than_there_are_change_nothing(bands):
    model, X, y = bands
    same = model.simplify(X, y, max_terms=30)
    assert same.tree_ is model.tree_
    assert same.simplification_.weights_after == same.simplification_.weights_before


def test_one_leaf_passes_through():
    X, y = clouds(60)
    model = plain_tree(**QUICK | {"max_depth": 0}).fit(X, y)
    for wish in ({}, {"max_terms": 1}, {"tolerance": 0.5}):
        small = model.simplify(X, y, **wish)
        assert np.array_equal(small.predict_proba(X), model.predict_proba(X))
        assert small.simplification_.splits_after == 0


def test_a_tree_may_become_one_leaf(bands):
    model, X, y = bands
    small = model.simplify(X, y, tolerance=0.99, epochs=1)
    assert small.get_n_leaves() == 1
    assert small.predict_proba(X[:1]).sum() == pytest.approx(1)


def test_it_predicts_alike_after_save_and_pickle(bands, tmp_path):
    model, X, y = bands
    small = model.simplify(X, y, max_terms=2, tolerance=0.02, epochs=2)
    small.save(tmp_path / "small.crisp")
    for again in (crisptree.load(tmp_path / "small.crisp"), pickle.loads(pickle.dumps(small))):
        assert np.array_equal(again.predict_proba(X), small.predict_proba(X))
        assert np.array_equal(terms(again), terms(small))
        assert (terms(again.simplify(X, y, max_terms=1, epochs=1)) <= 1).all()
    assert (tmp_path / "small.crisp").stat().st_size > 0


def test_a_tree_of_thresholds_only_loses_splits():
    X, y = two_of_thirty(400)
    model = plain_tree(**QUICK | {"split": "axis", "max_depth": 4}).fit(X, y)
    small = model.simplify(X, y, tolerance=0.05)
    assert small.tree_.structure.n_splits < model.tree_.structure.n_splits
    assert (terms(small) == 1).all()


def test_zeros_that_l1_made_stay_zero():
    X, y = two_of_thirty(600)
    model = plain_tree(**QUICK | {"l1": 0.02}).fit(X, y)
    assert 0 < model.sparsity_ < 1
    most = terms(model).max()
    small = model.simplify(X, y, max_terms=int(most) - 1, epochs=2)
    never_used = (model.tree_.weight == 0).all(axis=0)  # splits may go altogether, so features are compared
    assert never_used.any()
    assert (small.tree_.weight[:, never_used] == 0).all()


def test_labels_may_be_strings_and_rows_images_or_weighted():
    X, y = clouds(200, n_features=6)
    names = np.array(["a", "b", "<c>"])[y]
    model = plain_tree(**QUICK, spatial_penalty=1e-3).fit(X.reshape(-1, 2, 3), names)
    small = model.simplify(X, names, sample_weight=np.arange(200), max_terms=2, epochs=2)
    assert (terms(small) <= 2).all()
    assert set(small.predict(X.reshape(-1, 2, 3))) <= set(names)


def test_too_few_terms_for_the_tolerance_are_reported(digits):
    model, data = digits
    with pytest.warns(CrispTreeWarning, match="max_terms=1 alone"):
        small = model.simplify(data.X_train, data.y_train, max_terms=1, tolerance=0.0, epochs=1)
    assert (terms(small) <= 1).all()


def test_a_repeated_call_gives_the_same_tree(bands):
    model, X, y = bands
    first, second = (model.simplify(X, y, max_terms=5, epochs=2) for _ in range(2))
    assert np.array_equal(first.tree_.weight, second.tree_.weight)


def test_modules_and_wrong_wishes_are_refused_with_a_sentence(bands):
    model, X, y = bands
    for wish, says in (({"max_terms": 0}, "`max_terms` must be"), ({"tolerance": -0.1}, "`tolerance` must be")):
        with pytest.raises(ValueError, match=says):
            model.simplify(X, y, **wish)
    with pytest.raises(ValueError, match=r"y must be among the training classes .* got \[9\] too"):
        model.simplify(X, np.where(y == 0, 9, y))
    modules = plain_tree(**QUICK | {"split": lambda shape: torch.nn.Linear(shape[0], 1), "max_depth": 1})
    with pytest.raises(TypeError, match="simplify needs hyperplanes"):
        modules.fit(X, y).simplify(X, y)


def test_a_new_fit_forgets_the_simplification(bands):
    model, X, y = bands
    small = model.simplify(X, y, max_terms=2, epochs=1)
    small.set_params(max_depth=1, training__epochs=1, training__finetune_epochs=0).fit(X, y)
    assert not hasattr(small, "simplification_")


def test_one_row_cannot_be_refitted_and_judged():
    X, y = clouds(60)
    model = plain_tree(max_depth=1, epochs=2, finetune_epochs=0, min_updates=5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="X must have at least 2 rows"):
        model.simplify(X[:1], y[:1])


def numbers_of_two(n=900, seed=0, n_outputs=1):
    X, _ = two_of_thirty(n, seed)
    y = 500 + 20 * np.stack([X[:, 4] + X[:, 17], X[:, 17] - X[:, 4]], axis=1)[:, :n_outputs]
    return X, y[:, 0] if n_outputs == 1 else y


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_a_tree_of_numbers_is_simplified_in_its_units(n_outputs):
    X, y = numbers_of_two(n_outputs=n_outputs)
    model = plain_regressor(**QUICK, n_jobs=1).fit(X, y)
    small = model.simplify(X, y, max_terms=2)
    assert (terms(small) <= 2).all()
    assert small.feature_importances_[[4, 17]].sum() > 0.95
    fresh = numbers_of_two(seed=1, n_outputs=n_outputs)
    assert small.score(*fresh) >= model.score(*fresh) - 0.02
    said = small.simplification_
    assert said.weights_after < said.weights_before
    assert "R² on validation rows" in str(said)
    held = numbers_of_two(300, seed=2, n_outputs=n_outputs)
    less = model.simplify(X, y, tolerance=0.2, eval_set=held)
    assert less.tree_.structure.n_splits < model.tree_.structure.n_splits
    assert less.score(*held) >= model.score(*held) - 0.21
    assert model.simplify(X, y, tolerance=0.0, max_terms=30, eval_set=held).score(*held) >= model.score(*held) - 1e-6


def test_linear_leaves_are_not_simplified():
    X, y = numbers_of_two(200)
    model = plain_regressor(leaf_model="linear", **QUICK | {"max_depth": 1}).fit(X[:, :5], y)
    with pytest.raises(TypeError, match="needs constant leaves"):
        model.simplify(X[:, :5], y)
