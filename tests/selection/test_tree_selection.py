"""Model selection of classification trees on held-out rows."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import log_loss

from crisptree import CrispForestClassifier, CrispTreeClassifier, TrainingOptions
from crisptree.learning.options import Plan, Spec
from crisptree.selection import evaluators, search
from crisptree.selection.candidates import (
    Trial,
    apply_selected,
    find_best,
    is_unresolved,
    list_changes,
    try_noise_levels,
)
from crisptree.selection.search import shorten_phase
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


def test_thresholds_are_selected_where_thresholds_made_the_labels():
    X, y = thresholds()
    model = CrispTreeClassifier.from_flat(**QUICK).fit(X, y)
    assert model.best_params_["split"] == "axis"
    assert (np.count_nonzero(model.tree_.weight, axis=1) == 1).all()
    test_X, test_y = thresholds(seed=1)
    assert model.score(test_X, test_y) > 0.93


def test_candidates_of_axis_aligned_splits_are_searched_thresholds():
    X, y = thresholds()
    model = CrispTreeClassifier(split="axis", leaf_model="constant", random_state=0).fit(X, y)
    assert {trial.values["finetune_epochs"] for trial in model.cv_results_} == {0}
    assert (np.count_nonzero(model.tree_.weight, axis=1) == 1).all()
    # The tree that split="auto" trains where it selects these values, and the fit that selects nothing.
    changes = list_changes(model.training_parameters(), model.best_params_, "classes", None)
    assert changes["grow"] == "cart"
    again = CrispTreeClassifier.from_flat(**model.training_parameters() | changes).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_thresholds_of_forests_are_searched_where_splits_are_axis_aligned():
    X, y = thresholds()
    model = CrispForestClassifier(split="axis", n_estimators=5, random_state=0).fit(X, y)
    assert {trial.values["max_features"] for trial in model.cv_results_} == {"sqrt", None}
    assert all((np.count_nonzero(tree.weight, axis=1) == 1).all() for tree in model.forest_)


def test_a_hyperplane_is_selected_where_a_hyperplane_made_the_labels():
    X, y = line()
    model = CrispTreeClassifier.from_flat(**QUICK).fit(X, y)
    assert model.best_params_["split"] == "oblique"
    assert model.get_depth() <= 4
    memorising = CrispTreeClassifier.from_flat(**QUICK, split="oblique", l1=0.0, input_noise=0.0, shrinkage=0.0).fit(
        X, y
    )
    test_X, test_y = line(seed=1)
    assert model.score(test_X, test_y) >= memorising.score(test_X, test_y)
    assert model.get_n_leaves() < memorising.get_n_leaves()


def test_path_lists_all_trials_with_their_scores():
    X, y = line()
    model = CrispTreeClassifier.from_flat(**QUICK).fit(X, y)
    chosen = {name: value for name, value in model.best_params_.items() if name != "shrinkage"}
    assert chosen in [trial.values for trial in model.cv_results_]
    assert len(model.cv_results_) > 5
    for trial in model.cv_results_:
        assert 0 <= trial.score <= 1
        assert len(trial.row_scores) == len(X)
        assert trial.weights >= 0


def test_a_parameter_with_a_value_is_not_selected():
    X, y = line()
    model = CrispTreeClassifier.from_flat(**QUICK, split="oblique", l1=0.0).fit(X, y)
    assert {name for trial in model.cv_results_ for name in trial.values} == {"max_depth", "input_noise", "scale"} - {
        "scale"
    }
    nothing = CrispTreeClassifier.from_flat(**QUICK, split="oblique", l1=0.0, input_noise=0.3, shrinkage=0.0).fit(X, y)
    assert (nothing.best_params_, nothing.cv_results_) == ({}, [])


def test_nothing_is_selected_on_too_few_rows():
    X, y = clouds(30)
    model = CrispTreeClassifier.from_flat(**QUICK).fit(X, y)
    assert (model.best_params_, model.cv_results_) == ({}, [])


def test_selection_is_reproducible():
    X, y = load_iris(return_X_y=True)
    brief = QUICK | {"epochs": 2, "finetune_epochs": 2, "min_updates": 5, "max_depth": 2}
    first, second = (CrispTreeClassifier.from_flat(**brief).fit(X, y) for _ in range(2))
    assert first.best_params_ == second.best_params_
    assert np.array_equal(first.tree_.weight, second.tree_.weight)


def test_candidates_are_scored_on_given_validation_rows():
    X, y = load_breast_cancer(return_X_y=True)
    model = CrispTreeClassifier.from_flat(**QUICK).fit(X[:400], y[:400], eval_set=(X[400:], y[400:]))
    assert all(len(trial.row_scores) == 169 for trial in model.cv_results_)


def test_a_warm_start_retains_the_selected_values_except_the_depth():
    X, y = clouds(300)
    model = CrispTreeClassifier.from_flat(**{**QUICK, "max_depth": 2}, warm_start=True, split="oblique", l1=0.0).fit(
        X, y
    )
    chosen = {name: value for name, value in model.best_params_.items() if name != "max_depth"}
    assert model.set_params(max_depth=3).fit(X, y).best_params_ == chosen
    assert model.get_depth() == 3


@pytest.mark.parametrize("parameters", [{"grow": "cart"}, {"grow": "balanced"}])
def test_cart_and_complete_trees_have_no_candidates(parameters):
    X, y = clouds(100)
    model = CrispTreeClassifier.from_flat(**QUICK, max_depth=2, **parameters).fit(X, y)
    assert model.cv_results_ == []


def test_unresolved_parameters_fall_back():
    parameters = CrispTreeClassifier().training_parameters()
    assert is_unresolved(parameters)
    values = apply_selected(parameters, {}, None)
    assert not is_unresolved(values)
    assert (values["split"], values["l1"], values["scale"]) == ("oblique", 0.0, "feature")
    assert apply_selected(parameters, {}, (8, 8))["scale"] == "global"
    thin = apply_selected(parameters, {"split": "axis", "max_depth": 3, "finetune_epochs": 0}, None)
    assert (thin["grow"], thin["finetune_epochs"], thin["max_depth"]) == ("cart", 0, 3)


def make_trial(score: float, loss: float | None, candidate: int) -> Trial:
    even = np.ones(100)
    losses = None if loss is None else loss * even
    return Trial({}, score * even, even, 1.0, 1.0, losses, candidate=candidate)


def test_trials_are_compared_by_accuracy_and_log_loss_and_in_regression_by_their_scores():
    trials = [make_trial(0.85, 0.5, 1), make_trial(0.85, 0.4, 2), make_trial(0.86, 0.8, 3), make_trial(0.84, 0.4, 4)]
    assert find_best(trials) is trials[1]
    regression = [make_trial(score, None, 1) for score in (0.70, 0.86, 0.80)]
    assert find_best(regression) is regression[1]


def test_thresholds_are_scored_with_the_better_of_two_strengths_of_shrinkage(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = ((X[:, 0] > 0) ^ (rng.random(400) < 0.25)).astype(int)

    def fit():
        return CrispTreeClassifier(split="axis", leaf_model="constant", random_state=0).fit(X, y).cv_results_

    both = fit()
    monkeypatch.setitem(evaluators.CART_SHRINKAGES, "classes", (3.0,))
    weak = fit()
    assert [trial.values for trial in both] == [trial.values for trial in weak]
    gains = np.array([one.merit - other.merit for one, other in zip(both, weak, strict=True)])
    assert gains.min() >= 0
    assert gains[-1] > 0  # of the deepest tree


def two_lines(n=300, seed=0):
    """Two planes that cross: two oblique splits, or many thresholds."""
    X = np.random.default_rng(seed).normal(size=(n, 6))
    return X, ((X[:, 0] + X[:, 1] > 0) ^ (X[:, 2] - X[:, 3] > 0)).astype(int)


def test_small_tables_try_depths_leaf_models_and_thresholds():
    X, y = two_lines()
    model = CrispTreeClassifier(random_state=0).fit(X, y)
    tried = [trial.values for trial in model.cv_results_]
    assert {values["max_depth"] for values in tried if values["split"] == "axis"} >= {1, 2, 3, 4, 6}
    assert len({values["max_depth"] for values in tried if values["split"] == "oblique"}) >= 3
    assert any(values.get("leaf_model") == "linear" for values in tried)
    assert {values["input_noise"] for values in tried} > {0.3, 0.7}
    assert model.best_params_["split"] == "oblique"
    assert model.score(*two_lines(600, seed=1)) > 0.85


def test_a_given_depth_limits_those_that_are_tried():
    X, y = two_lines()
    model = CrispTreeClassifier(max_depth=3, random_state=0).fit(X, y)
    assert max(trial.values["max_depth"] for trial in model.cv_results_) == 3
    assert model.get_depth() <= 3


def test_hyperplanes_far_behind_thresholds_are_not_tried_further():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(600, 12)).astype(float)
    y = ((X[:, 0] == 1) ^ (X[:, 1] == 2)).astype(int)
    model = CrispTreeClassifier(random_state=0).fit(X, y)
    assert model.best_params_["split"] == "axis"
    assert not any(trial.values.get("l1") for trial in model.cv_results_)


def test_the_best_of_several_starts_is_kept():
    X, y = two_lines()
    fixed = {"split": "oblique", "max_depth": 3, "input_noise": 0.1, "l1": 0.0, "shrinkage": 0.0, "random_state": 0}
    scores = [
        CrispTreeClassifier(**fixed, training=TrainingOptions(n_init=number)).fit(X, y).score(X, y)
        for number in (1, 2, 6)
    ]
    assert scores == sorted(scores)
    assert scores[-1] > scores[0]
    same = CrispTreeClassifier(**fixed, n_jobs=2).fit(X, y)
    alone = CrispTreeClassifier(**fixed, n_jobs=1).fit(X, y)
    assert np.array_equal(same.tree_.weight, alone.tree_.weight)


def test_a_default_fit_is_continued_by_a_warm_start():
    X, y = two_lines(150)
    model = CrispTreeClassifier(warm_start=True, random_state=0).fit(X, y)
    depth = model.get_depth()
    assert model.fit(X, y).get_depth() >= depth


@pytest.mark.parametrize(
    "parameters", [{"ccp_alpha": 0.01}, {"max_features_per_split": 1}, {"interaction_cst": [[0], [1, 2]]}]
)
def test_linear_leaves_are_not_tried_under_pruning_and_constraints(parameters):
    X = np.random.default_rng(0).normal(size=(150, 3))
    model = CrispTreeClassifier(**parameters, max_depth=2, random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)
    assert model.cv_results_
    assert not any(trial.values.get("leaf_model") for trial in model.cv_results_)


def test_a_given_leaf_size_is_a_lower_bound_of_those_that_are_tried():
    X, y = two_lines(150)
    model = CrispTreeClassifier(min_samples_leaf=10, random_state=0).fit(X, y)
    sizes = [trial.values["min_samples_leaf"] for trial in model.cv_results_ if "min_samples_leaf" in trial.values]
    assert set(sizes) == {10, 20}


def test_selection_does_not_depend_on_the_number_of_threads():
    X, y = two_lines(150)
    one, two = (CrispTreeClassifier(random_state=0, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    assert one.best_params_ == two.best_params_
    assert np.array_equal(one.tree_.weight, two.tree_.weight)
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))


def test_thresholds_are_trained_together_and_stay_on_one_feature_each():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4)).astype(np.float32)
    y = (X[:, 0] > 0) ^ (X[:, 1] > 0)
    common = {"split": "axis", "grow": "cart", "max_depth": 3, "random_state": 0, "shrinkage": 0.0}
    found = CrispTreeClassifier.from_flat(**common, input_noise=0.0, l1=0.0, finetune_epochs=0).fit(X, y)
    trained = CrispTreeClassifier.from_flat(**common, input_noise=0.0, l1=0.0).fit(X, y)
    assert ((trained.tree_.weight != 0).sum(axis=1) == 1).all()
    assert trained.score(X, y) > found.score(X, y) + 0.05


@pytest.mark.parametrize(("is_planar", "sizes"), [(False, {1, 5}), (True, {1})])
def test_large_tables_try_further_leaf_sizes_of_thresholds_unless_the_first_is_far_behind(is_planar, sizes):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 10)).astype(np.float32)
    y = X.sum(axis=1) > 0 if is_planar else (X[:, 0] > 0.3) & (X[:, 1] > -0.4)
    model = CrispTreeClassifier.from_flat(**QUICK).fit(X, y)
    thresholds = [trial.values for trial in model.cv_results_ if trial.values["split"] == "axis"]
    assert {values["min_samples_leaf"] for values in thresholds} == sizes
    assert {values["finetune_epochs"] for values in thresholds} == {0}
    assert model.best_params_["split"] == ("oblique" if is_planar else "axis")


@pytest.mark.parametrize("is_planar", [False, True])
def test_beside_trials_on_cuda_thresholds_are_searched_on_few_rows_first(is_planar, monkeypatch):
    monkeypatch.setattr(search, "resolve_device", lambda *arguments: torch.device("cuda"))
    monkeypatch.setattr(search, "PROBE_ROWS", 200)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1000, 20)).astype(np.float32)
    y = X.sum(axis=1) > 0 if is_planar else (X[:, 0] > 0.3) & (X[:, 1] > -0.4)
    model = CrispTreeClassifier.from_flat(**QUICK, optimizer="adam").fit(X, y)
    assert any(trial.values["split"] == "axis" for trial in model.cv_results_) is not is_planar
    assert model.best_params_["split"] == ("oblique" if is_planar else "axis")


@pytest.mark.parametrize(
    "changes", [{}, {"min_samples_leaf": 90}, {"min_impurity_decrease": 10.0}, {"min_samples_split": 1000}]
)
def test_nothing_to_split_is_no_reason_to_fail(changes):
    X = np.zeros((100, 3)) if not changes else thresholds(150)[0]
    model = CrispTreeClassifier.from_flat(**QUICK, **changes).fit(X, np.arange(len(X)) % 2)
    assert model.get_n_leaves() <= 2


def test_scores_and_their_errors_are_weighted():
    scores, weights = np.array([1.0, 0.0, 0.0]), np.array([8.0, 1.0, 1.0])
    one, other = Trial({}, scores, weights, 1.0, 2.0), Trial({}, 0 * scores, weights, 1.0, 2.0)
    assert one.score == pytest.approx(0.8)
    even = Trial({}, scores, np.ones(3), 1.0, 2.0), Trial({}, 0 * scores, np.ones(3), 1.0, 2.0)
    assert even[0].error_against(even[1]) == pytest.approx(scores.std() / np.sqrt(3))
    assert one.error_against(other) == pytest.approx(np.sqrt(0.8**2 * 0.2**2 + 2 * 0.1**2 * 0.8**2))


def test_a_rare_class_does_not_prevent_selection():
    X, y = thresholds(150)
    y[0] = 2
    assert CrispTreeClassifier.from_flat(**QUICK).fit(X, y).cv_results_


def test_too_few_validation_rows_are_not_scored_on():
    X, y = thresholds(200)
    model = CrispTreeClassifier.from_flat(**QUICK).fit(X[3:], y[3:], eval_set=(X[:3], y[:3]))
    assert len(model.cv_results_[0].row_scores) == 197


def test_rows_held_out_for_epochs_that_are_not_trained_come_back():
    X, y = thresholds(300)
    model = CrispTreeClassifier.from_flat(**QUICK, early_stopping=True).fit(X, y)
    assert model.best_params_["split"] == "axis"
    n_rows = model.tree_.statistics.node_counts[0].sum()
    assert n_rows == (300 if model.best_params_.get("finetune_epochs") == 0 else 270)


def test_a_warm_start_drops_selected_values_that_are_set_now():
    X, y = clouds(150)
    model = CrispTreeClassifier.from_flat(**{**QUICK, "max_depth": 2}, warm_start=True, split="oblique").fit(X, y)
    assert "input_noise" in model.best_params_
    assert "input_noise" not in model.set_params(max_depth=3, input_noise=1.0).fit(X, y).best_params_


@pytest.mark.parametrize("annealing", ["linear", "geometric"])
def test_a_short_training_becomes_as_steep(annealing):
    plan = Plan(epochs=40, annealing=annealing, steepness_step=0.1)
    short = shorten_phase(plan, 0.3)
    assert short.epochs == 12
    assert short.steepness_at(12) == pytest.approx(plan.steepness_at(40))


@pytest.mark.parametrize("estimator", [CrispTreeClassifier, CrispForestClassifier])
def test_a_new_fit_forgets_what_the_last_one_selected(estimator):
    X, y = clouds(150)
    brief = {**QUICK, "epochs": 1, "finetune_epochs": 1, "min_updates": 2, "max_depth": 5}
    if estimator is CrispForestClassifier:
        brief["n_estimators"] = 2
    model = estimator.from_flat(**brief).fit(X, y)
    assert model.best_params_["max_depth"] <= 5
    model.best_params_["max_depth"] = 1
    resolved = {"split": "oblique", "input_noise": 0.0, "l1": 0.0, "l2": 0.0, "shrinkage": 0.0}
    model.set_params(**{name: value for name, value in resolved.items() if name in model.PARAMETERS}).fit(X, y)
    assert (model.best_params_, model.cv_results_) == ({}, [])
    trees = model.forest_ if estimator is CrispForestClassifier else [model.tree_]
    assert max(tree.structure.depth for tree in trees) > 1


def try_low_learning_rate(search):
    yield [search.best.values | {"learning_rate": 1e-6}]


def test_a_candidate_is_added_by_one_generator(monkeypatch):
    monkeypatch.setattr(search, "LARGE_TREE_ROUNDS", (try_noise_levels, try_low_learning_rate))
    X, y = clouds(90)
    assert CrispTreeClassifier().flat_parameters()["learning_rate"] == "auto"
    model = CrispTreeClassifier.from_flat(**QUICK, max_depth=2).fit(X, y)
    *others, added = model.cv_results_
    assert [trial.values.get("learning_rate") for trial in model.cv_results_] == [None] * len(others) + [1e-6]
    assert added.score < max(trial.score for trial in others)
    assert "learning_rate" not in model.best_params_


@pytest.mark.parametrize("n_rows", [24, 40, 59])
def test_leaves_of_few_rows_are_shrunk_by_a_fixed_strength(n_rows):
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(400, 6))
    y = (X[:, 0] + X[:, 1] + 1.5 * rng.normal(size=400) > 0).astype(int)
    model = CrispTreeClassifier(random_state=0).fit(X[:n_rows], y[:n_rows])
    assert model.cv_results_ == []
    assert model.shrinkage_ == pytest.approx(min(8, n_rows / 5))
    assert log_loss(y[60:], model.predict_proba(X[60:])) < 1.2  # 13 without shrinkage
    assert CrispTreeClassifier(random_state=0, shrinkage=0.0).fit(X[:n_rows], y[:n_rows]).shrinkage_ == 0


def test_the_effort_decides_on_candidates_folds_and_starts(monkeypatch):
    X, y = clouds(120)
    folds, make_folds = [], search.make_folds
    monkeypatch.setattr(search, "make_folds", lambda *a, **k: folds.append(make_folds(*a, **k)) or folds[-1])
    models, starts = {}, {}
    for effort in ("fast", "default", "thorough"):
        model = CrispTreeClassifier(max_depth=1, training=TrainingOptions(effort=effort), random_state=0)
        values = apply_selected(model.training_parameters(), {}, None)
        how = {"input_norm": 1.0, "mean_weight": 1.0, "n_rows": 100, "image_shape": None, "seed": 0}
        starts[effort] = Spec.of(values, **how, is_small_table=True).n_init
        models[effort] = model.fit(X, y)
    assert starts == {"fast": 1, "default": 6, "thorough": 12}
    assert [len(each) for each in folds] == [5, 10]
    assert models["fast"].cv_results_ == []
    assert models["fast"].shrinkage_ == search.UNTUNED_SHRINKAGE
    assert models["default"].cv_results_
    assert models["thorough"].cv_results_
    forest = CrispForestClassifier(n_estimators=3, max_depth=2, training=TrainingOptions(effort="fast"))
    assert forest.fit(X, y).cv_results_ == []


def test_thresholds_of_no_depth_are_a_single_leaf():
    parameters = CrispTreeClassifier().training_parameters()
    values = apply_selected(parameters, {"split": "axis", "max_depth": 0, "finetune_epochs": 0}, None)
    assert (values["grow"], values["max_depth"]) == ("greedy", 0)
