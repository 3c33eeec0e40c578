"""Large trees, whose upper levels are finetuned first."""

import os
from itertools import groupby

import numpy as np
import pytest
import torch

from crisptree import CrispTreeClassifier, CrispTreeRegressor, StopTraining, TrainingOptions
from crisptree.learning.loop import FinetuningStage, UpperLevels, list_stages
from crisptree.learning.options import Plan
from crisptree.persistence.checkpoints import CheckpointStore
from crisptree.splits import ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.tree import Tree

QUICK = {"epochs": 2, "finetune_epochs": 3, "batch_size": 50, "random_state": 0, "device": "cpu", "n_jobs": 1}


def noise(n=120, n_features=4):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, n_features)), rng.integers(3, size=n)


@pytest.fixture
def three_splits_are_many(monkeypatch):
    """Trees of three splits count as large, so that tests need none of thousands."""
    monkeypatch.setattr("crisptree.learning.loop.MIN_SPLITS_OF_LARGE_TREE", 3)
    monkeypatch.setattr("crisptree.learning.loop.MAX_ROWS_PER_SPLIT", 100)


def tuned_levels(model):
    """Of every stage of finetuning the levels, splits and epochs."""
    records = [record for record in model.history_ if record.phase == "finetune"]
    runs = groupby(records, key=lambda record: (record.level, record.n_splits))
    return [(*key, len(list(run))) for key, run in runs]


def random_tree(depth, n_features=3, n_classes=2):
    generator = torch.Generator().manual_seed(0)
    structure = TreeStructure.balanced(depth)
    weight = torch.randn(structure.n_splits, n_features, generator=generator)
    leaves = torch.rand(structure.n_leaves, n_classes, generator=generator)
    splits = ObliqueSplits.from_hyperplanes(weight, torch.zeros(structure.n_splits))
    return Tree(structure, splits, leaves / leaves.sum(dim=1, keepdim=True))


def counts_of(tree, x, y):
    counts = torch.zeros(tree.structure.n_leaves, 2)
    counts.index_put_((tree.route(x), y), torch.ones(len(x)), accumulate=True)
    return counts


@pytest.mark.parametrize(
    ("upper", "depth", "levels"),
    [(4, 10, [10]), (4, 11, [4, 8, 11]), (1, 11, [1, 2, 4, 8, 11]), (10, 11, [10, 11]), (None, 11, [11])],
)
def test_levels_are_doubled_until_the_whole_of_a_large_tree_is_trained(upper, depth, levels):
    plan, structure = Plan(upper_levels=upper, mass_threshold=1e-3), TreeStructure.balanced(depth)
    found = list_stages(plan, structure, n_rows=4 * structure.n_splits)
    assert list_stages(plan, structure, n_rows=4 * structure.n_splits + 1) == [
        FinetuningStage(depth, Plan(mass_threshold=1e-3))
    ]
    assert [stage.levels for stage in found] == levels
    assert found[0].plan == Plan(mass_threshold=1e-3)
    assert len({stage.plan.mass_threshold for stage in found[1:]}) <= 1
    assert all(stage.plan.mass_threshold > 1e-3 for stage in found[1:])


def test_exact_steps_stay_exact_and_no_threshold_is_above_one():
    large = TreeStructure.balanced(11)
    assert [stage.plan.mass_threshold for stage in list_stages(Plan(upper_levels=4), large, 1)] == [0.0, 0.0, 0.0]
    assert list_stages(Plan(upper_levels=4, mass_threshold=0.5), large, 1)[-1].plan.mass_threshold == 1.0


def test_upper_levels_send_rows_where_the_whole_tree_does_and_have_their_classes():
    tree, x = random_tree(4), torch.randn(500, 3, generator=torch.Generator().manual_seed(1))
    y = (x[:, 0] > 0).long()
    upper = UpperLevels.of(tree, FinetuningStage(2, Plan()), lambda tree: counts_of(tree, x, y))
    assert (upper.tree.structure.depth, upper.splits) == (2, [0, 1, 2])
    _, nodes = tree.structure.truncate(2)
    parents, at = tree.structure.parents, tree.structure.n_splits + tree.route(x).numpy()
    for _ in range(2):
        at = parents[at]
    np.testing.assert_array_equal(nodes[3:][upper.tree.route(x).numpy()], at)
    counts = counts_of(upper.tree, x, y)
    np.testing.assert_allclose(upper.tree.leaves, counts / counts.sum(dim=1, keepdim=True), atol=1e-4)


def test_a_leaf_of_upper_levels_that_no_row_reaches_predicts_the_mean_of_the_leaves_below():
    tree = random_tree(2)
    upper = UpperLevels.of(tree, FinetuningStage(1, Plan()), lambda tree: torch.zeros(2, 2))
    np.testing.assert_allclose(upper.tree.leaves[0], tree.leaves[:2].mean(dim=0), rtol=1e-6)


def test_what_was_trained_above_is_put_back_and_nothing_else_moves():
    tree, x = random_tree(3), torch.randn(50, 3)
    upper = UpperLevels.of(tree, FinetuningStage(1, Plan()), lambda tree: torch.ones(2, 2))
    same = upper.put_back(upper.tree)
    np.testing.assert_array_equal(same.route(x), tree.route(x))
    turned = upper.tree.splits.replace_parameters(
        {name: -value for name, value in upper.tree.splits.parameters.items()}
    )
    found = upper.put_back(Tree(upper.tree.structure, turned, upper.tree.leaves)).splits.parameters["weight"]
    before = tree.splits.parameters["weight"]
    np.testing.assert_array_equal(found[0], -before[0])
    np.testing.assert_array_equal(found[1:], before[1:])


def test_trees_of_fewer_splits_are_finetuned_at_once():
    X, y = noise()
    fits = [CrispTreeClassifier.paper(**QUICK, max_depth=10, upper_levels=upper).fit(X, y) for upper in (None, 4)]
    np.testing.assert_array_equal(fits[0].tree_.weight, fits[1].tree_.weight)
    assert fits[0].history_ == fits[1].history_
    assert CrispTreeClassifier.paper().flat_parameters()["upper_levels"] is None


def test_a_tree_that_has_split_noise_to_the_end_is_finetuned_from_above():
    X, y = noise(3000, 2)
    model = CrispTreeClassifier.paper(**QUICK | {"batch_size": 1000}, max_depth=12, upper_levels=4).fit(X, y)
    assert [(levels, epochs) for levels, _, epochs in tuned_levels(model)] == [(4, 3), (8, 3), (12, 3)]


@pytest.mark.usefixtures("three_splits_are_many")
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"split": "axis"},
        {"max_features_per_split": 2},
        {"monotonic_cst": {0: 1}},
        {"algorithm": "alternating"},
        {"l1": 0.01},
    ],
    ids=str,
)
def test_every_kind_of_hyperplane_can_be_finetuned_from_above(parameters):
    X, y = noise()
    y = y % 2 if "monotonic_cst" in parameters else y
    model = CrispTreeClassifier.paper(**QUICK | {"max_depth": 3, "upper_levels": 1} | parameters).fit(X, y)
    assert [levels for levels, *_ in tuned_levels(model)] == [1, 2, 3]
    if "monotonic_cst" in parameters:
        assert (model.tree_.weight[:, 0] >= 0).all()
    if "max_features_per_split" in parameters:
        assert (np.count_nonzero(model.tree_.weight, axis=1) <= 2).all()


@pytest.mark.usefixtures("three_splits_are_many")
@pytest.mark.parametrize(("leaves", "levels"), [("constant", [1, 2, 3]), ("linear", [3])])
def test_numbers_are_finetuned_from_above_but_not_linear_leaves(leaves, levels):
    X, _ = noise()
    plain = {"split": "oblique", "l1": 0.0, "input_noise": 0.0, "shrinkage": 0.0, "max_depth": 3, "upper_levels": 1}
    model = CrispTreeRegressor.from_flat(**QUICK, **plain, leaf_model=leaves, leaf_l2=1.0).fit(X, X[:, 0] * X[:, 1])
    assert [found for found, *_ in tuned_levels(model)] == levels


@pytest.mark.usefixtures("three_splits_are_many")
def test_a_callback_that_stops_upper_levels_stops_all():
    X, y = noise()

    def stop(record):
        if record.phase == "finetune" and record.epoch == 2:
            raise StopTraining

    model = CrispTreeClassifier.paper(**QUICK, max_depth=3, upper_levels=1, callbacks=[stop]).fit(X, y)
    assert tuned_levels(model) == [(1, 1, 2)]
    assert not np.array_equal(model.tree_.weight[0], model.before_finetuning().tree_.weight[0])


@pytest.mark.usefixtures("three_splits_are_many")
def test_the_greedy_tree_is_kept_where_no_epoch_of_the_whole_tree_is_better():
    X, y = noise()
    model = CrispTreeClassifier.paper(
        **QUICK | {"learning_rate": 3.0}, max_depth=3, upper_levels=1, early_stopping=True
    ).fit(X, y, eval_set=(X, y))
    scores = [record.validation_score for record in model.history_ if record.phase == "finetune"]
    assert scores[:6] == [None] * 6
    assert model.score(X, y) == pytest.approx(max(*scores[6:], model.before_finetuning().score(X, y)))


@pytest.mark.usefixtures("three_splits_are_many")
@pytest.mark.parametrize("epochs", range(7, 15, 3))
def test_a_fit_that_is_killed_while_upper_levels_train_goes_on_to_the_same_tree(epochs, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    X, y = noise()
    model = CrispTreeClassifier.paper(**QUICK, max_depth=3, upper_levels=1)
    whole, keep, kept = model.fit(X, y).tree_, CheckpointStore.keep, []

    def crash(self, *arguments, **more):
        keep(self, *arguments, **more)
        kept.append(None)
        if len(kept) == epochs:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "keep", crash)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y, checkpoint=tmp_path, checkpoint_every=0)
    again = model.fit(X, y, checkpoint=tmp_path, resume=True).tree_
    np.testing.assert_array_equal(again.weight, whole.weight)
    np.testing.assert_array_equal(again.leaves, whole.leaves)


def test_more_levels_than_ten_are_refused():
    with pytest.raises(ValueError, match="`upper_levels` must be a whole number from 1 to 10 or None"):
        CrispTreeClassifier(training=TrainingOptions(upper_levels=11)).fit(*noise())
