"""New rows for a fitted tree."""

import numpy as np
import pytest
import torch

from crisptree import CrispTreeClassifier, TrainingOptions
from tests.toys import plain_regressor, plain_tree

CLASSES = ["a", "b", "c"]


def rows(n, seed, turned=False):
    X = np.random.default_rng(seed).normal(size=(n, 4))
    boundary = X[:, 1] if turned else X[:, 0]
    return X, np.where(boundary > 0, np.where(X[:, 2] > 0.5, "c", "b"), "a")


def model(**more):
    return plain_tree(
        **{"max_depth": 2, "epochs": 4, "finetune_epochs": 6, "min_updates": 80, "random_state": 0} | more
    )


def arrays(tree):
    return tree.structure.left, tree.structure.right, tree.weight, tree.bias


def test_the_first_call_is_a_fit():
    X, y = rows(200, 0)
    first, fitted = model().partial_fit(X, y, classes=CLASSES), model().fit(X, y)
    assert all(map(np.array_equal, arrays(first.tree_), arrays(fitted.tree_)))


def test_the_first_call_names_all_classes_and_later_ones_need_not():
    X, y = rows(200, 0)
    with pytest.raises(ValueError, match="`classes` must name all classes in the first call"):
        model().partial_fit(X, y)
    with pytest.raises(ValueError, match=r"y must be among the training classes \['a', 'b'\]; got \['c'\] too"):
        model().partial_fit(X, y, classes=["a", "b"])
    some = y != "c"
    learner = model().partial_fit(X[some], y[some], classes=CLASSES)
    assert learner.classes_.tolist() == CLASSES
    assert learner.predict_proba(X).shape == (200, 3)
    with pytest.raises(ValueError, match="`classes` must be those of the first call"):
        learner.partial_fit(X, y, classes=["a", "b"])
    learner.partial_fit(X, y, classes=CLASSES)
    assert learner.predict_proba(X[y == "c"])[:, 2].mean() > 0.1
    with pytest.raises(ValueError, match="must be among the training classes"):
        learner.partial_fit(X, np.full(200, "d"))


def test_the_structure_stays_and_counts_of_all_rows_add_up():
    learner = model().partial_fit(*rows(200, 0), classes=CLASSES)
    before = learner.tree_
    learner.partial_fit(*rows(50, 1), sample_weight=np.full(50, 2.0))
    after = learner.tree_
    assert np.array_equal(after.structure.left, before.structure.left)
    assert np.array_equal(after.structure.right, before.structure.right)
    assert not np.array_equal(after.weight, before.weight)
    counts = after.statistics.node_counts
    assert counts[0].sum() == pytest.approx(300)
    leaves = counts[after.structure.n_splits :]
    assert np.allclose(after.leaves, leaves / leaves.sum(axis=1, keepdims=True))
    assert learner.greedy_tree_ is after


def test_a_few_rows_move_splits_less_than_many():
    def moved(n):
        learner = model().partial_fit(*rows(400, 0), classes=CLASSES)
        before = learner.tree_.weight
        return np.abs(learner.partial_fit(*rows(n, 1, turned=True)).tree_.weight - before).mean()

    assert moved(4) < moved(40) < moved(400)


def test_decay_multiplies_the_statistics_of_earlier_rows():
    X, y = rows(300, 1, turned=True)

    def learned(decay):
        learner = model().partial_fit(*rows(300, 0), classes=CLASSES).partial_fit(X, y, decay=decay)
        return learner, learner.tree_.statistics.node_counts[0].sum()

    (forgetful, few), (half, some), (mindful, many) = map(learned, (0.0, 0.5, 1.0))
    assert (few, some, many) == pytest.approx((300, 450, 600))
    assert forgetful.score(X, y) > mindful.score(X, y)
    assert mindful.score(*rows(300, 2)) > forgetful.score(*rows(300, 2))
    with pytest.raises(ValueError, match="`decay` must be"):
        half.partial_fit(X, y, decay=-1)


def test_without_epochs_leaves_are_counted_on_and_nothing_else_changes():
    learner = model(finetune_epochs=0).partial_fit(*rows(200, 0), classes=CLASSES)
    before, (X, y) = learner.tree_, rows(80, 1)
    leaf = learner.leaf_indices(X)
    after = learner.partial_fit(X, y).tree_
    assert np.allclose(after.weight, before.weight, atol=1e-6)
    new = np.zeros((before.structure.n_leaves, 3))
    np.add.at(new, (leaf, np.searchsorted(CLASSES, y)), 1)
    n_splits = before.structure.n_splits
    assert np.array_equal(after.statistics.node_counts[n_splits:], before.statistics.node_counts[n_splits:] + new)
    assert np.array_equal(
        after.statistics.lowest, np.minimum(before.statistics.lowest, X.astype(np.float32).min(axis=0))
    )


def test_mean_and_spread_of_scores_are_those_of_all_rows():
    learner = model(finetune_epochs=0).partial_fit(*rows(200, 0), classes=CLASSES)
    after = learner.partial_fit(*rows(80, 1)).tree_
    X = np.concatenate([rows(200, 0)[0], rows(80, 1)[0]]).astype(np.float32)
    scores = X @ after.weight[0] + after.bias[0]
    assert after.statistics.score_mean[0] == pytest.approx(scores.mean(), abs=1e-4)
    assert after.statistics.score_spread[0] == pytest.approx(scores.std(), abs=1e-4)


@pytest.mark.parametrize(
    "more",
    [
        {"split": "axis"},
        {"split": lambda shape: torch.nn.Linear(shape[0], 1), "input_noise": 0.0},
        {"max_features_per_split": 2},
        {"shrinkage": 5.0},
        {"algorithm": "alternating", "grow": "balanced"},
    ],
    ids=["axis", "module", "few weights", "shrunk", "balanced"],
)
def test_every_kind_of_tree_goes_on(more):
    learner = model(**{"epochs": 3, "finetune_epochs": 4, "min_updates": 24} | more)
    learner.partial_fit(*rows(150, 0), classes=CLASSES)
    before = learner.tree_.structure.n_splits
    learner.partial_fit(*rows(150, 1))
    X, y = rows(300, 2)
    assert learner.tree_.structure.n_splits == before
    assert learner.score(X, y) > 0.6
    assert learner.shrinkage_ == more.get("shrinkage", 0.0)
    if "max_features_per_split" in more:
        assert (np.count_nonzero(learner.tree_.weight, axis=1) <= 2).all()


def test_a_default_fit_goes_on_with_what_it_chose_and_a_failed_call_changes_nothing():
    learner = CrispTreeClassifier(
        max_depth=1, training=TrainingOptions(epochs=2, finetune_epochs=2, min_updates=8), random_state=0
    )
    learner.partial_fit(*rows(70, 0), classes=CLASSES)
    chosen, before = learner.best_params_, learner.tree_
    with pytest.raises(ValueError, match="features"):
        learner.partial_fit(rows(50, 1)[0][:, :3], rows(50, 1)[1])
    assert learner.tree_ is before
    learner.partial_fit(*rows(50, 1))
    assert learner.best_params_ == chosen
    assert learner.leaf_model == "auto"
    assert not learner.tree_.is_linear


def test_models_in_leaves_cannot_go_on():
    with pytest.raises(ValueError, match="must be 'constant' for partial_fit"):
        model(leaf_model="linear").partial_fit(*rows(70, 0), classes=CLASSES)


QUICK = {"max_depth": 2, "epochs": 4, "finetune_epochs": 6, "min_updates": 80, "random_state": 0, "n_jobs": 1}


def slopes(n, seed, shift=0.0):
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return X, 1000 + shift + 30 * (X[:, 0] > 0) + 5 * X[:, 1]


def test_a_regression_tree_goes_on_in_the_units_of_its_first_rows():
    learner, fitted = (
        plain_regressor(**QUICK).partial_fit(*slopes(300, 0)),
        plain_regressor(**QUICK).fit(*slopes(300, 0)),
    )
    before = learner.tree_
    assert all(map(np.array_equal, arrays(before), arrays(fitted.tree_)))
    learner.partial_fit(*slopes(100, 1, shift=40), sample_weight=np.full(100, 2.0))
    after = learner.tree_
    assert np.array_equal(after.structure.left, before.structure.left)
    assert after.statistics.node_counts[0, 0] == 500
    assert np.array_equal(after.statistics.y_unit, before.statistics.y_unit)
    everyone = after.restore_units(after.target.tables(after.statistics.node_counts[:1]))[0, 0]
    assert everyone == pytest.approx(
        np.average([slopes(300, 0)[1].mean(), slopes(100, 1, 40)[1].mean()], weights=[300, 200])
    )
    learner.partial_fit(*slopes(300, 2, shift=80), decay=0.0)
    assert learner.predict(slopes(50, 3)[0]).mean() == pytest.approx(slopes(50, 3, shift=80)[1].mean(), abs=5)


def test_a_constant_y_may_change():
    learner = plain_regressor(**QUICK).partial_fit(slopes(200, 0)[0], np.full(200, 7.0))
    assert learner.get_n_leaves() == 1
    X, y = slopes(300, 1)
    assert learner.partial_fit(X, y, decay=0.0).predict(X[:5]) == pytest.approx(np.full(5, y.mean()))


def test_rounded_splits_are_rounded_again():
    learner = model(max_depth=1, max_features_per_split=2, round_splits=True).partial_fit(
        *rows(150, 0), classes=CLASSES
    )
    before = learner.tree_
    after = learner.partial_fit(*rows(150, 1, turned=True)).tree_
    assert not np.array_equal(after.bias, before.bias)
    for tree in (before, after):
        assert np.abs(tree.weight[tree.weight != 0]).min() == 1
        assert np.array_equal(tree.weight, np.round(tree.weight, 1))


def test_partial_fit_of_numbers_refuses_what_it_cannot_go_on_with():
    learner = plain_regressor(**QUICK).partial_fit(*slopes(100, 0))
    X, y = slopes(100, 1)
    with pytest.raises(ValueError, match="must have as many outputs; the tree has 1 and y has 2"):
        learner.partial_fit(X, np.stack([y, y], axis=1))
    with pytest.raises(ValueError, match="features"):
        learner.partial_fit(X[:, :3], y)
    with pytest.raises(ValueError, match="`leaf_model` must be 'constant' for partial_fit"):
        plain_regressor(leaf_model="linear", **QUICK).partial_fit(X, y)
