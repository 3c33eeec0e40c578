"""``simplest_within``: the smallest candidate that scores nearly as the best one."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine, make_friedman1

from crisptree import CrispForestClassifier, CrispForestRegressor, CrispTreeClassifier, CrispTreeRegressor, load
from crisptree.selection.candidates import Trial, apply_selected, find_simplest, list_changes, resolve_depth


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return CrispTreeClassifier(random_state=0).fit(X, y), X, y


def trial(score, leaves, weights):
    return Trial({"score": score}, np.array([score]), np.ones(1), weights=weights, leaves=leaves)


def test_the_smallest_product_of_leaves_and_weights_within_the_tolerance():
    best, near, far = trial(0.9, 10, 9), trial(0.89, 4, 20), trial(0.8, 1, 1)
    assert find_simplest([best, near, far], 0.02) is near
    assert find_simplest([best, near, far], 0.0) is best
    assert find_simplest([best, near, far], 0.2) is far
    worse = trial(0.895, 8, 10)
    assert find_simplest([worse, near], 0.02) is worse  # the same size, but a better score


def test_sizes_fall_and_scores_stay_within_the_points(cancer):
    model, X, y = cancer
    before = np.inf
    for points in (0, 0.5, 2, 10):
        chosen = find_simplest(model.cv_results_, points / 100)
        assert chosen.score >= max(trial.score for trial in model.cv_results_) - points / 100
        assert chosen.size <= before
        before = chosen.size
    fitted = model.simplest_within(10).fit(X, y)
    assert (fitted.get_n_leaves(), np.count_nonzero(fitted.tree_.weight)) == (2, 1)


def test_the_estimator_is_unfitted_and_its_fit_selects_nothing(cancer):
    model, X, y = cancer
    simple = model.simplest_within()
    assert not hasattr(simple, "tree_")
    assert clone(simple).get_params() == simple.get_params()
    assert simple.fit(X, y).cv_results_ == []
    assert model.set_params(random_state=0).get_params()["split"] == "auto"


@pytest.mark.parametrize(
    ("kind", "data", "parameters"),
    [
        (CrispTreeClassifier, load_wine(return_X_y=True), {}),
        (CrispTreeRegressor, make_friedman1(150, random_state=0), {}),
        (CrispForestClassifier, load_wine(return_X_y=True), {"n_estimators": 3}),
        (CrispForestRegressor, make_friedman1(150, random_state=0), {"n_estimators": 3}),
    ],
)
def test_every_trial_can_be_repeated_by_its_parameters(kind, data, parameters):
    """What a fit trains with these parameters is what it would have trained if it had selected the trial."""
    model = kind(random_state=0, **parameters).fit(*data)
    auto = model.training_parameters()
    target = "classes" if hasattr(model, "classes_") else "gaussians"
    for one in model.cv_results_:
        changes = list_changes(auto, one.values, target, None)
        again = kind.from_flat(**{**model.flat_parameters(), **changes}).training_parameters()
        repeated = apply_selected(resolve_depth(again, target), {}, None)
        selected = apply_selected(resolve_depth(auto, target), one.values, None)
        ignored = {"shrinkage"}  # resolved after the trials
        assert {name: value for name, value in repeated.items() if name not in ignored} == {
            name: value for name, value in selected.items() if name not in ignored
        }


@pytest.mark.parametrize("leaf_model", ["auto", "linear"])
def test_the_selected_trial_is_fitted_to_the_same_tree(leaf_model):
    X, y = make_friedman1(150, random_state=0)
    model = CrispTreeRegressor(random_state=0, leaf_model=leaf_model).fit(X, y)
    best = {name: value for name, value in model.best_params_.items() if name != "shrinkage"}
    model.cv_results_ = [trial for trial in model.cv_results_ if trial.values == best]
    assert np.array_equal(model.simplest_within().fit(X, y).predict(X), model.predict(X))


def test_linear_leaves_count_with_their_weights():
    X, y = make_friedman1(150, n_features=7, random_state=0)
    trials = CrispTreeRegressor(random_state=0, leaf_model="linear", split="oblique").fit(X, y).cv_results_
    assert next(trial.weights for trial in trials if trial.values["max_depth"] == 0) == 7
    assert next(trial.weights for trial in trials if trial.values["max_depth"] == 1) == 3 * 7


def test_a_linear_leaf_alone_is_fitted_by_cart_too():
    X, y = make_friedman1(150, random_state=0)
    leaf = CrispTreeRegressor.from_flat(
        split="axis", grow="cart", max_depth=0, leaf_model="linear", leaf_l2=1.0, finetune_epochs=0
    ).fit(X, y)
    assert leaf.get_n_leaves() == 1
    assert leaf.score(X, y) > 0.6


def test_without_candidates_there_is_nothing_to_choose_from(cancer, tmp_path):
    X, y = load_wine(return_X_y=True)
    model = CrispTreeClassifier(max_depth=1, split="oblique", l1=0.0, input_noise=0.3, shrinkage=0.0).fit(X, y)
    with pytest.raises(ValueError, match="needs the candidates of model selection"):
        model.simplest_within()
    cancer[0].save(tmp_path / "model.crisp")
    with pytest.raises(ValueError, match="or it was loaded from a file"):
        load(tmp_path / "model.crisp").simplest_within()
    with pytest.raises(ValueError, match="`points` must be a number at least 0"):
        model.simplest_within(-1)
