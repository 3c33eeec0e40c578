"""The paper's baselines through the estimator."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier

import crisptree
from crisptree.baselines.co2 import NU_CANDIDATES
from crisptree.parameters.training import BASELINES
from tests.toys import clouds, diagonal, plain_tree

QUICK = {"max_depth": 4, "epochs": 5, "finetune_epochs": 5, "min_updates": 20, "random_state": 0}
X, Y = clouds(300, n_features=6, n_classes=5)


def fitted(**parameters):
    return plain_tree(**QUICK | parameters).fit(X, Y)


def test_cart_through_the_estimator_predicts_what_scikit_learn_predicts():
    rows, labels = load_digits(return_X_y=True)
    limits = {"max_depth": 6, "min_samples_leaf": 15}
    ours = plain_tree(grow="axis_aligned", finetune_epochs=0, random_state=0, **limits).fit(rows, labels)
    theirs = DecisionTreeClassifier(criterion="entropy", random_state=0, **limits).fit(rows, labels)
    assert np.mean(ours.predict(rows) == theirs.predict(rows)) > 0.995  # features that tie may differ
    assert ours.score(rows, labels) == pytest.approx(theirs.score(rows, labels), abs=0.005)
    assert (np.count_nonzero(ours.tree_.weight, axis=1) == 1).all()


@pytest.mark.parametrize("grow", BASELINES)
def test_a_baseline_repeats_predicts_and_is_saved_like_any_tree(grow, tmp_path):
    model, again = fitted(grow=grow, finetune_epochs=0), fitted(grow=grow, finetune_epochs=0)
    assert np.array_equal(model.tree_.weight, again.tree_.weight)
    assert model.score(X, Y) > 0.8
    assert model.get_depth() <= 4
    model.save(tmp_path / "baseline.crisp")
    assert np.array_equal(crisptree.load(tmp_path / "baseline.crisp").predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("grow", BASELINES)
@pytest.mark.parametrize("algorithm", ["em", "non_greedy"])
def test_every_baselines_tree_can_be_finetuned(grow, algorithm):
    model = fitted(grow=grow, algorithm=algorithm, nu=100.0)
    # Splits that finetuning has moved away from all rows are gone.
    assert 1 < model.get_n_leaves() <= model.greedy_tree_.structure.n_leaves
    assert not np.isin(model.tree_.weight, model.greedy_tree_.weight).all()
    assert [record.phase for record in model.history_].count("finetune") == 5


def test_em_turns_the_axes_of_a_cart_tree_into_a_diagonal():
    rows, labels = diagonal(400)
    model = plain_tree(grow="axis_aligned", max_depth=2, random_state=0).fit(rows, labels)
    assert model.score(rows, labels) > max(model.before_finetuning().score(rows, labels), 0.99)


def test_non_greedy_training_takes_over_any_grown_tree():
    for grow in ("greedy", "balanced"):
        model = fitted(grow=grow, algorithm="non_greedy", nu=100.0, finetune_epochs=10)
        assert model.score(X, Y) > 0.6
        assert model.nu_ == 100.0


def test_nu_is_selected_on_held_out_rows():
    model = fitted(grow="co2", algorithm="non_greedy")
    assert model.nu_ in NU_CANDIDATES
    assert model.tree_.statistics.node_counts[0].sum() == 270
    assert sum(record.phase == "finetune" for record in model.history_) == len(NU_CANDIDATES) * 5
    given = plain_tree(**QUICK, grow="co2", algorithm="non_greedy").fit(X, Y, eval_set=(X[:50], Y[:50]))
    assert given.tree_.statistics.node_counts[0].sum() == 300
    assert not hasattr(given.set_params(training__algorithm="em").fit(X, Y), "nu_")


def test_early_stopping_keeps_the_best_epoch_of_non_greedy_training():
    model = plain_tree(
        **QUICK | {"learning_rate": 2.0}, grow="axis_aligned", algorithm="non_greedy", nu=1.0, early_stopping=True
    ).fit(X, Y, eval_set=(X, Y))
    scores = [record.validation_score for record in model.history_ if record.phase == "finetune"]
    assert model.score(X, Y) == pytest.approx(max(*scores, model.before_finetuning().score(X, Y)), abs=1e-6)


@pytest.mark.parametrize("algorithm", ["em", "non_greedy"])
def test_a_tree_grown_once_is_cut_and_finetuned_at_any_depth(algorithm):
    deep = fitted(grow="axis_aligned", finetune_epochs=0)
    shallow = (
        deep.truncate(2)
        .set_params(warm_start=True, training__algorithm=algorithm, training__nu=100.0, training__finetune_epochs=5)
        .fit(X, Y)
    )
    assert (shallow.get_depth(), deep.get_depth()) == (2, 4)
    np.testing.assert_allclose(shallow.greedy_tree_.weight, deep.truncate(2).tree_.weight, rtol=1e-5)
    assert not np.array_equal(shallow.tree_.weight, shallow.greedy_tree_.weight)


def test_a_baseline_grows_on_with_warm_start():
    model = fitted(grow="axis_aligned", max_depth=2, warm_start=True, finetune_epochs=0)
    before = model.tree_.weight
    model.set_params(max_depth=4).fit(X, Y)
    assert model.get_depth() == 4
    np.testing.assert_allclose(model.tree_.weight[: len(before)], before, rtol=1e-5)


def test_cutting_names_what_a_depth_must_be():
    with pytest.raises(ValueError, match=r"`depth` must be a whole number of at least 0; got 2.5"):
        fitted(grow="random", finetune_epochs=0).truncate(2.5)
