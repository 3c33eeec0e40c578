"""What a fit chooses by itself, on rows that it holds out."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from crisptree import CrispTreeClassifier
from crisptree.estimators.choices import closed, is_open
from crisptree.learning.choosing import Trial, _shorter, simplest_of_the_best
from crisptree.learning.options import Plan
from tests.toys import clouds

QUICK = {"epochs": 5, "finetune_epochs": 10, "min_updates": 60, "random_state": 0, "device": "cpu", "n_jobs": 1}


def thresholds(n=400, seed=0):
    """Two thresholds among thirty features: a tree of hyperplanes has no chance."""
    X = np.random.default_rng(seed).normal(size=(n, 30)).astype(np.float32)
    return X, ((X[:, 3] > 0.2) & (X[:, 7] > -0.3)).astype(int)


def line(n=400, seed=0):
    """A noisy plane through ten features: one split is enough."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10)).astype(np.float32)
    return X, ((X.sum(axis=1) + rng.normal(size=n)) > 0).astype(int)


def test_thresholds_are_chosen_where_thresholds_made_the_labels():
    X, y = thresholds()
    model = CrispTreeClassifier(**QUICK).fit(X, y)
    assert model.chosen_["split"] == "axis"
    assert (np.count_nonzero(model.tree_.weight, axis=1) == 1).all()
    test_X, test_y = thresholds(seed=1)
    assert model.score(test_X, test_y) > 0.93


def test_a_plane_is_chosen_where_a_plane_made_the_labels():
    X, y = line()
    model = CrispTreeClassifier(**QUICK).fit(X, y)
    assert model.chosen_["split"] == "oblique"
    assert model.get_depth() <= 4
    memorising = CrispTreeClassifier(**QUICK, split="oblique", l1=0.0, input_noise=0.0, shrinkage=0.0).fit(X, y)
    test_X, test_y = line(seed=1)
    assert model.score(test_X, test_y) >= memorising.score(test_X, test_y)
    assert model.get_n_leaves() < memorising.get_n_leaves()


def test_the_path_says_what_was_tried_and_what_it_gave():
    X, y = line()
    model = CrispTreeClassifier(**QUICK).fit(X, y)
    chosen = {name: value for name, value in model.chosen_.items() if name != "shrinkage"}
    assert chosen in [trial.values for trial in model.path_]
    assert len(model.path_) > 5
    for trial in model.path_:
        assert 0 <= trial.score <= 1
        assert len(trial.row_scores) == len(X)
        assert trial.weights >= 0


def test_a_number_switches_its_choice_off():
    X, y = line()
    model = CrispTreeClassifier(**QUICK, split="oblique", l1=0.0).fit(X, y)
    assert {name for trial in model.path_ for name in trial.values} == {"max_depth", "input_noise", "scale"} - {"scale"}
    nothing = CrispTreeClassifier(**QUICK, split="oblique", l1=0.0, input_noise=0.3, shrinkage=0.0).fit(X, y)
    assert (nothing.chosen_, nothing.path_) == ({}, [])


def test_too_few_rows_choose_nothing():
    X, y = clouds(30)
    model = CrispTreeClassifier(**QUICK).fit(X, y)
    assert (model.chosen_, model.path_) == ({}, [])


def test_the_choice_is_the_same_for_the_same_seed():
    X, y = load_iris(return_X_y=True)
    brief = QUICK | {"epochs": 2, "finetune_epochs": 2, "min_updates": 5, "max_depth": 2}
    first, second = (CrispTreeClassifier(**brief).fit(X, y) for _ in range(2))
    assert first.chosen_ == second.chosen_
    assert np.array_equal(first.tree_.weight, second.tree_.weight)


def test_validation_rows_judge_where_they_are_given():
    X, y = load_breast_cancer(return_X_y=True)
    model = CrispTreeClassifier(**QUICK).fit(X[:400], y[:400], validation=(X[400:], y[400:]))
    assert all(len(trial.row_scores) == 169 for trial in model.path_)


def test_a_second_fit_with_a_warm_start_keeps_the_choice_but_for_the_depth():
    X, y = clouds(300)
    model = CrispTreeClassifier(**{**QUICK, "max_depth": 2}, warm_start=True, split="oblique", l1=0.0).fit(X, y)
    chosen = {name: value for name, value in model.chosen_.items() if name != "max_depth"}
    assert model.set_params(max_depth=3).fit(X, y).chosen_ == chosen
    assert model.get_depth() == 3


@pytest.mark.parametrize("parameters", [{"grow": "co2"}, {"algorithm": "non_greedy", "nu": 4.0}, {"grow": "balanced"}])
def test_rivals_and_complete_trees_choose_nothing(parameters):
    X, y = clouds(100)
    model = CrispTreeClassifier(**QUICK, max_depth=2, **parameters).fit(X, y)
    assert model.path_ == []


def test_open_parameters_are_closed_with_plain_values():
    parameters = CrispTreeClassifier().get_params()
    assert is_open(parameters)
    values = closed(parameters, {}, None)
    assert not is_open(values)
    assert (values["split"], values["l1"], values["scale"]) == ("oblique", 0.0, "feature")
    assert closed(parameters, {}, (8, 8))["scale"] == "global"
    thin = closed(parameters, {"split": "axis", "max_depth": 3, "finetune_epochs": 0}, None)
    assert (thin["grow"], thin["finetune_epochs"], thin["max_depth"]) == ("axis_aligned", 0, 3)


def test_the_simplest_within_one_error_of_the_best_wins():
    rng = np.random.default_rng(0)
    right = (rng.random(1000) < 0.9).astype(float)
    nearly = right.copy()
    nearly[np.flatnonzero(right)[:3]] = 0
    nearly[np.flatnonzero(right == 0)[:2]] = 1
    worse = right.copy()
    worse[:100] = 0
    even = np.ones(len(right))
    trials = [
        Trial({"a": 1}, right, even, 50.0, 9.0),
        Trial({"a": 2}, nearly, even, 5.0, 3.0),
        Trial({"a": 3}, worse, even, 1.0, 2.0),
    ]
    assert simplest_of_the_best(trials).values == {"a": 2}


def test_thresholds_are_trained_together_and_stay_on_one_feature_each():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4)).astype(np.float32)
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    common = {"split": "axis", "grow": "axis_aligned", "max_depth": 3, "random_state": 0, "shrinkage": 0.0}
    found = CrispTreeClassifier(**common, input_noise=0.0, l1=0.0, finetune_epochs=0).fit(X, y)
    trained = CrispTreeClassifier(**common, input_noise=0.0, l1=0.0).fit(X, y)
    assert ((trained.tree_.weight != 0).sum(axis=1) == 1).all()
    assert trained.score(X, y) > found.score(X, y) + 0.05


def test_the_choice_between_thresholds_tries_them_as_found_and_trained_together():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 4)).astype(np.float32)
    y = (X[:, 0] > 0.3) & (X[:, 1] > -0.4)
    model = CrispTreeClassifier(**QUICK).fit(X, y)
    thresholds = [trial.values for trial in model.path_ if trial.values["split"] == "axis"]
    assert any(values.get("finetune_epochs") == 0 for values in thresholds)
    assert any("finetune_epochs" not in values for values in thresholds)
    assert model.chosen_["split"] == "axis"
    assert ((model.tree_.weight != 0).sum(axis=1) == 1).all()


@pytest.mark.parametrize(
    "changes", [{}, {"min_samples_leaf": 90}, {"min_impurity_decrease": 10.0}, {"min_samples_split": 1000}]
)
def test_nothing_to_split_is_no_reason_to_fail(changes):
    X = np.zeros((100, 3)) if not changes else thresholds(150)[0]
    model = CrispTreeClassifier(**QUICK, **changes).fit(X, np.arange(len(X)) % 2)
    assert model.get_n_leaves() <= 2


def test_rows_count_by_their_weight_in_the_choice():
    scores, weights = np.array([1.0, 0.0, 0.0]), np.array([8.0, 1.0, 1.0])
    one, other = Trial({}, scores, weights, 1.0, 2.0), Trial({}, 0 * scores, weights, 1.0, 2.0)
    assert one.score == pytest.approx(0.8)
    even = Trial({}, scores, np.ones(3), 1.0, 2.0), Trial({}, 0 * scores, np.ones(3), 1.0, 2.0)
    assert even[0].error_against(even[1]) == pytest.approx(scores.std() / np.sqrt(3))
    assert one.error_against(other) == pytest.approx(np.sqrt(0.8**2 * 0.2**2 + 2 * 0.1**2 * 0.8**2))


def test_a_rare_class_does_not_keep_a_fit_from_choosing():
    X, y = thresholds(150)
    y[0] = 2
    assert CrispTreeClassifier(**QUICK).fit(X, y).path_


def test_a_few_validation_rows_do_not_judge():
    X, y = thresholds(200)
    model = CrispTreeClassifier(**QUICK).fit(X[3:], y[3:], validation=(X[:3], y[:3]))
    assert len(model.path_[0].row_scores) == 197


def test_rows_held_out_for_epochs_that_are_not_trained_come_back():
    X, y = thresholds(300)
    model = CrispTreeClassifier(**QUICK, early_stopping=True).fit(X, y)
    assert model.chosen_["split"] == "axis"
    n_rows = model.tree_.statistics.node_counts[0].sum()
    assert n_rows == (300 if model.chosen_.get("finetune_epochs") == 0 else 270)


def test_what_is_set_by_now_is_no_longer_chosen():
    X, y = clouds(150)
    model = CrispTreeClassifier(**{**QUICK, "max_depth": 2}, warm_start=True, split="oblique").fit(X, y)
    assert "input_noise" in model.chosen_
    assert "input_noise" not in model.set_params(max_depth=3, input_noise=1.0).fit(X, y).chosen_


@pytest.mark.parametrize("annealing", ["linear", "geometric"])
def test_a_short_training_becomes_as_steep(annealing):
    plan = Plan(epochs=40, annealing=annealing, steepness_step=0.1)
    short = _shorter(plan, 0.3)
    assert short.epochs == 12
    assert short.steepness_at(12) == pytest.approx(plan.steepness_at(40))
