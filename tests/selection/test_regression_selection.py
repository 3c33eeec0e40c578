"""Model selection of regression trees and forests."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_friedman3

import crisptree
from crisptree import CrispForestRegressor, CrispTreeRegressor
from crisptree.data.rows import learn_scaling
from crisptree.learning.linear_leaves import PENALTIES, best_penalty
from crisptree.learning.task import RowSet, TrainingTask
from crisptree.selection import candidates
from crisptree.selection.candidates import try_finalists
from crisptree.selection.evaluators import EnsemblePredictions, TreeEvaluator
from crisptree.selection.folds import make_folds
from crisptree.selection.search import CandidateSearch
from crisptree.selection.trials import Trial
from crisptree.targets import Gaussians
from tests.estimators.forests import QUICK, regressor
from tests.toys import plain_regressor

X, y = make_friedman3(240, noise=0.1, random_state=0)


def predict(n_trees, noise, rng, y, bias):
    """Predictions of trees with independent errors and a shared one."""
    predicted = y + bias + noise * rng.normal(size=(n_trees, *y.shape))
    return EnsemblePredictions(predicted.mean(axis=0), predicted.var(axis=0, ddof=1), y, n_trees)


def test_a_few_trees_tell_how_good_many_would_be():
    rng = np.random.default_rng(0)
    y, bias = rng.normal(size=(20_000, 1)), 0.3
    few, many = (predict(trees, 1.0, rng, y, bias) for trees in (5, 25))
    expected = many.score(Gaussians(1), 25).mean()
    assert few.score(Gaussians(1), 5).mean() < expected - 0.1
    assert few.score(Gaussians(1), 25).mean() == pytest.approx(expected, abs=0.02)


def test_a_few_trees_of_two_kinds_tell_how_good_a_mixture_would_be():
    rng = np.random.default_rng(1)
    y, shared = rng.normal(size=(20_000, 1)), rng.normal(size=(20_000, 1))
    one, other = predict(5, 0.5, rng, y, 0.6 * shared), predict(5, 1.0, rng, y, -0.4 * shared)
    together = one.mix_with(other).score(Gaussians(1), 24).mean()
    halves = [predict(12, 0.5, rng, y, 0.6 * shared).mean, predict(12, 1.0, rng, y, -0.4 * shared).mean]
    assert together == pytest.approx(Gaussians(1).score_predictions(sum(halves) / 2, y).mean(), abs=0.02)


def weights_of(forest):
    """Most weights that a split of every tree has."""
    return [int(np.count_nonzero(tree.weight, axis=1).max()) for tree in forest.forest_]


def test_every_second_tree_of_a_mixed_forest_has_thresholds_and_as_many_rows_as_it_takes(tmp_path):
    forest = regressor(split="mixed", max_depth="auto", n_estimators=3, epochs=1).fit(X, y)
    assert [most > 1 for most in weights_of(forest)] == [True, False, True]
    assert forest.forest_.trees[1].structure.n_leaves > 100
    forest.save(tmp_path / "mixed.crisp")
    again = crisptree.load(tmp_path / "mixed.crisp")
    assert again.split == "mixed"
    np.testing.assert_array_equal(again.predict(X), forest.predict(X))
    assert forest.tree(1).get_params()["split"] == "auto"


def test_trees_of_a_mixed_forest_are_those_of_the_forests_of_either_kind():
    forest = regressor(split="mixed", n_estimators=3).fit(X, y)
    planes = regressor(n_estimators=3).fit(X, y)
    thresholds = regressor(split="axis", grow="axis_aligned", finetune_epochs=0, max_features=None).fit(X, y)
    for number, whole in enumerate((planes, thresholds, planes)):
        np.testing.assert_array_equal(forest.tree(number).predict(X), whole.tree(number).predict(X))


def test_a_warm_start_goes_on_with_either_kind():
    forest = regressor(split="mixed", n_estimators=1, warm_start=True).fit(X, y)
    more = forest.set_params(n_estimators=4).fit(X, y)
    np.testing.assert_array_equal(more.predict(X), regressor(split="mixed", n_estimators=4).fit(X, y).predict(X))


@pytest.mark.parametrize("changes", [{"sign_cst": {0: 1}}, {"leaf_model": "linear"}, {"spatial_penalty": 0.1}])
def test_a_mixed_forest_refuses_what_thresholds_cannot_have(changes):
    with pytest.raises(ValueError, match="must be"):
        regressor(split="mixed", **changes).fit(X, y)


def test_a_forest_of_numbers_tries_the_sharp_mixture_and_the_best_one():
    brief = QUICK | {"epochs": 1, "finetune_epochs": 1, "min_updates": 1, "max_depth": 2}
    forest = CrispForestRegressor.from_flat(**brief, n_estimators=4).fit(X[:90], y[:90])
    mixtures = [trial for trial in forest.cv_results_ if trial.values["split"] == "mixed"]
    values = {"max_depth": 2, "split": "mixed", "input_noise": 0.0, "l1": 0.0, "steepness_step": 1.0}
    (sharp,) = [trial for trial in mixtures if trial.values == values]
    assert len(mixtures) <= 2
    assert all(trial.score >= sharp.score for trial in mixtures)
    best = max(forest.cv_results_, key=lambda trial: trial.score)
    beyond_chance = best.score - sharp.score > best.error_against(sharp)
    assert forest.best_params_ == (best if beyond_chance else sharp).values


def problem():
    scaled = (y - y.mean()) / y.std()
    part = RowSet(X.astype(np.float32), scaled[:, None], np.ones(len(y)))
    return TrainingTask(part, learn_scaling(part.X, part.weight, "feature", 1), Gaussians(1))


class RecordedEvaluator(TreeEvaluator):
    """Gives known trials instead of training trees."""

    def __init__(self, parameters, trial):
        super().__init__(parameters)
        self.trial = trial

    def evaluate(self, values, spec, folds):
        return [self.trial(values, len(folds))]


def search_of(trial=None, **changes):
    """A search of a regression tree in three folds."""
    parameters = CrispTreeRegressor.from_flat(**changes).training_parameters()
    search = CandidateSearch(parameters, problem(), RecordedEvaluator(parameters, trial), None, 0)
    search.folds = make_folds(search.problem, 0, n_folds=3)
    return search


def run_round(search, candidates):
    for values in candidates(search):
        search.evaluate(search.complete(values))


def test_close_families_are_tried_once_more_in_five_folds():
    noise, even = np.random.default_rng(0).normal(size=len(y)), np.ones(len(y))
    noise -= noise.mean()

    def trial(score, **values):
        return Trial({"max_depth": 8} | values, score + 2 * noise * values["l1"], even, 9.0, 9.0)

    n_folds = []

    def evaluate(values, n):
        n_folds.append(n)
        return trial(0.8 - values["l1"] - 0.01 * n, **values)

    search = search_of(evaluate)
    search.trials = [
        trial(0.70, split="oblique", l1=0.0),
        trial(0.71, split="oblique", l1=0.1),
        trial(0.70, split="axis", l1=0.2),
        trial(0.20, split="axis", l1=0.3, finetune_epochs=0),
    ]
    run_round(search, try_finalists)
    assert sorted(one.values["l1"] for one in search.compared) == [0.0, 0.1, 0.2]
    assert n_folds == [5, 5, 5]
    assert search.best.values["l1"] == 0.0
    assert search.best.score == pytest.approx(0.75)


def test_thresholds_as_cart_finds_them_win_close_final_rounds():
    search = search_of(shrinkage=0.0)
    noise, even = np.random.default_rng(0).normal(size=len(y)), np.ones(len(y))
    planes = Trial({"max_depth": 8, "split": "oblique"}, np.full(len(y), 0.7), even, 9.0, 9.0)
    near, far = (
        Trial({"max_depth": depth, "split": "axis", "finetune_epochs": 0}, lower + 0.3 * noise, even, 99.0, 99.0)
        for depth, lower in ((7, 0.69 - 0.3 * noise.mean()), (8, 0.6))
    )
    for found, trials in ((near, [planes, near, far]), (planes, [planes, far])):
        search.trials, search.n_preliminary = [far, *trials], 1
        assert search.evaluator.select(search) == found.values
    search.n_preliminary = 0
    assert search.evaluator.select(search) == planes.values


def test_a_family_that_is_far_ahead_is_not_tried_again():
    search = search_of()
    first = Trial({"max_depth": 8, "split": "oblique", "l1": 0.0}, np.full(len(y), 0.7), np.ones(len(y)), 9.0, 9.0)
    search.trials = [first, replace(first, values=first.values | {"l1": 0.1}, row_scores=np.full(len(y), 0.6))]
    run_round(search, try_finalists)
    assert len(search.trials) == 2
    assert search.best is first


def test_only_regression_in_constant_leaves_on_few_rows_has_a_final_round(monkeypatch):
    asked = []
    monkeypatch.setattr(candidates, "find_finalists", lambda trials: asked.append(len(trials)) or [])
    brief = {"epochs": 1, "finetune_epochs": 1, "min_updates": 2, "max_depth": 2, "random_state": 0}
    rows, numbers = make_friedman3(520, random_state=0)
    CrispTreeRegressor.from_flat(**brief).fit(rows, numbers)
    assert len(asked) == 1
    CrispTreeRegressor.from_flat(**brief, leaf_model="linear").fit(rows, numbers)
    CrispTreeRegressor.from_flat(**brief).fit(X, y)
    assert len(asked) == 1


def test_few_rows_draw_the_models_of_leaves_together():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120, 4)).astype(np.float32)
    numbers = rows @ [1.0, 2.0, 0.0, 0.0] + rng.normal(size=120)
    tree = plain_regressor(max_depth=1, epochs=2, finetune_epochs=0, random_state=0).fit(rows, numbers).tree_

    def penalty(numbers):
        part = RowSet(rows, ((numbers - numbers.mean()) / numbers.std())[:, None], np.ones(120))
        own = RowSet(part.X[:80], part.y[:80], part.weight[:80])
        held = RowSet(part.X[80:], part.y[80:], part.weight[80:])
        return best_penalty(
            [tree], [TrainingTask(own, learn_scaling(rows, part.weight, "feature", 1), Gaussians(1))], [held], 1
        )

    assert penalty(numbers) == PENALTIES[-1]
    side = crisptree.inference.route_rows(tree, rows) == 0
    assert penalty(np.where(side, 3 * rows[:, 2], -3 * rows[:, 2])) < 100.0
