"""Postprocessing of a fitted tree: removal of dead splits, pruning, shrinkage."""

import numpy as np
import pytest
import torch

import crisptree
from crisptree import CrispSegmenter
from crisptree.inference.finalization import find_dead_splits
from tests.toys import clouds, connect4_like, plain_tree

QUICK = {"max_depth": 4, "epochs": 4, "finetune_epochs": 4, "min_updates": 20, "random_state": 0, "n_jobs": 1}


def noisy(n=500, seed=0):
    """One hyperplane and labels of which a sixth is wrong: a deep tree learns them by heart."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    y[rng.random(n) < 1 / 6] ^= 1
    return X, y


@pytest.fixture(scope="module")
def model():
    return plain_tree(**QUICK | {"max_depth": 6}).fit(*noisy())


WAYS = [
    {},
    {"algorithm": "likelihood"},
    {"algorithm": "alternating", "l1": 0.1},
    {"grow": "balanced"},
    {"grow": "balanced", "algorithm": "likelihood", "l1": 0.3},
    {"grow": "cart", "learning_rate": 0.5},
    {"split": "axis", "l1": 0.05},
    {"split": lambda shape: torch.nn.Linear(shape[0], 1), "max_depth": 3},
    {"input_noise": 1.0, "learning_rate": 0.3},
    {"early_stopping": True},
]


@pytest.mark.parametrize("way", WAYS, ids=range(len(WAYS)))
def test_no_dead_split_remains_after_any_fit(way):
    for seed in range(3):
        X, y = connect4_like(150, seed) if seed % 2 else clouds(80, seed=seed)
        X = X[:, :20]
        model = plain_tree(**QUICK | way | {"random_state": seed}).fit(X, y)
        for tree in (model.tree_, model.greedy_tree_):
            assert len(find_dead_splits(tree)[0]) == 0
        leaves = model.leaf_indices(X)
        if not way.get("early_stopping"):
            assert len(np.unique(leaves)) == model.get_n_leaves()
            shares = np.array([np.bincount(y[leaves == leaf], minlength=3) for leaf in range(model.get_n_leaves())])
            np.testing.assert_allclose(model.tree_.leaves, shares / shares.sum(axis=1, keepdims=True))
        assert model.predict_proba(X).sum(axis=1) == pytest.approx(1)


def test_a_price_prunes_the_tree_and_leaves_the_greedy_one(model):
    alpha = float(model.cost_complexity_pruning_path().ccp_alphas[-2])
    pruned = plain_tree(**QUICK | {"max_depth": 6}, ccp_alpha=alpha).fit(*noisy())
    assert pruned.get_n_leaves() == model.cost_complexity_pruning_path().n_leaves[-2] < model.get_n_leaves()
    assert pruned.greedy_tree_.structure == model.greedy_tree_.structure
    assert np.array_equal(pruned.tree_.leaves, model.prune(alpha).tree_.leaves)
    assert np.array_equal(pruned.predict(noisy()[0]), model.prune(alpha).predict(noisy()[0]))


def test_a_price_that_no_leaf_is_worth_leaves_one(model):
    assert model.prune(1e6).get_n_leaves() == 1
    assert model.prune(0).predict_proba(noisy()[0]) == pytest.approx(model.predict_proba(noisy()[0]))


def test_pruning_on_validation_rows_gives_a_smaller_and_better_tree(model):
    validation, fresh = noisy(400, seed=1), noisy(2000, seed=2)
    chosen = plain_tree(**QUICK | {"max_depth": 6}, ccp_alpha="auto").fit(*noisy(), eval_set=validation)
    assert chosen.get_n_leaves() < model.get_n_leaves() / 2
    assert chosen.score(*fresh) > model.score(*fresh) + 0.01
    # Rows that were given do not train, so that the tree is the same but for what went.
    assert chosen.greedy_tree_.structure == model.greedy_tree_.structure


def test_rows_held_out_for_postprocessing_train_the_final_tree(model):
    X, y = noisy()
    chosen = plain_tree(**QUICK | {"max_depth": 6}, ccp_alpha="auto", shrinkage="auto").fit(X, y)
    assert chosen.tree_.statistics.node_counts[0].sum() == len(y)
    plain = plain_tree(**QUICK | {"max_depth": chosen.best_params_["max_depth"]}).fit(X, y)
    assert np.array_equal(chosen.greedy_tree_.weight, plain.greedy_tree_.weight)
    assert len(chosen.history_) == len(plain.history_)
    assert chosen.get_n_leaves() < model.get_n_leaves()
    again = plain_tree(**QUICK | {"max_depth": 6}, ccp_alpha="auto", shrinkage="auto").fit(X, y)
    assert np.array_equal(again.tree_.leaves, chosen.tree_.leaves)


def test_rows_held_out_for_early_stopping_resolve_postprocessing():
    X, y = noisy()
    plain, chosen = (
        plain_tree(**QUICK | {"max_depth": 6}, early_stopping=True, **more).fit(X, y)
        for more in ({}, {"ccp_alpha": "auto", "shrinkage": "auto"})
    )
    assert chosen.tree_.statistics.node_counts[0].sum() == plain.tree_.statistics.node_counts[0].sum() < len(y)
    assert chosen.get_n_leaves() < plain.get_n_leaves()
    assert chosen.shrinkage_ > 0


def test_probabilities_are_what_predict_takes_the_largest_of(model):
    X, y = noisy(300, seed=5)
    for strength in (0.0, 1.0, 50.0, 1e4, "auto"):
        shrunk = plain_tree(**QUICK | {"max_depth": 6}, shrinkage=strength).fit(*noisy())
        if strength == "auto":
            model = plain_tree(**QUICK | {"max_depth": shrunk.best_params_["max_depth"]}).fit(*noisy())
        said = shrunk.predict_proba(X)
        assert np.isfinite(said).all()
        assert said.sum(axis=1) == pytest.approx(1)
        assert np.array_equal(shrunk.predict(X), shrunk.classes_[said.argmax(axis=1)])
        assert np.array_equal(shrunk.leaf_indices(X), model.leaf_indices(X))
        assert np.array_equal(shrunk.tree_.weight, model.tree_.weight)
        assert np.array_equal(shrunk.greedy_tree_.leaves, model.greedy_tree_.leaves)
        assert shrunk.shrinkage_ > 0 if strength == "auto" else shrunk.shrinkage_ == strength
        if strength:
            assert crisptree.metrics.log_loss(y, said) < 1.0
        else:
            assert np.array_equal(shrunk.tree_.leaves, model.tree_.leaves)


def test_a_shrunk_tree_stays_shrunk_when_it_is_cut_pruned_and_loaded(tmp_path):
    X, y = noisy()
    model = plain_tree(**QUICK, shrinkage=12.0).fit(X, y)
    model.save(tmp_path / "model.crisp")
    again = crisptree.load(tmp_path / "model.crisp")
    assert again.shrinkage_ == 12.0
    smaller = (model.truncate(2), again.truncate(2), model.prune(0.01))
    for twin in smaller:
        assert twin.shrinkage_ == 12.0
        assert twin.tree_.leaves.min() > 0
    assert np.array_equal(smaller[0].tree_.leaves, smaller[1].tree_.leaves)


def test_files_of_trees_that_are_not_shrunk_are_as_they_were(model):
    from crisptree.persistence.trees import arrays_of

    assert "shrinkage" not in arrays_of(model.tree_.statistics)


def test_postprocessing_does_not_depend_on_the_scale_of_weights():
    X, y = noisy()
    one, other = (
        plain_tree(**QUICK, ccp_alpha="auto", shrinkage="auto").fit(X, y, np.full(len(y), weight))
        for weight in (1.0, 1000.0)
    )
    assert one.tree_.structure == other.tree_.structure
    assert other.shrinkage_ == pytest.approx(1000 * one.shrinkage_)
    np.testing.assert_allclose(one.tree_.leaves, other.tree_.leaves)


@pytest.mark.parametrize(
    "wrong", [{"ccp_alpha": -1.0}, {"ccp_alpha": "best"}, {"shrinkage": -0.5}, {"shrinkage": None}]
)
def test_what_is_no_price_and_no_strength_is_refused_with_a_sentence(wrong, model):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"`{name}` must be 'auto' or a number at least 0"):
        plain_tree(**wrong).fit(*noisy(20))
    with pytest.raises(ValueError, match="`alpha` must be"):
        model.prune(-1)


def test_one_row_cannot_be_held_out():
    X, y = noisy(1)
    with pytest.raises(ValueError, match="ccp_alpha and shrinkage a number"):
        plain_tree(**QUICK, ccp_alpha="auto").fit(X, y)


def test_a_tree_grown_on_is_pruned_after_it_has_grown():
    X, y = noisy()
    model = plain_tree(**QUICK | {"max_depth": 2}, warm_start=True, ccp_alpha="auto").fit(X, y)
    deeper = model.set_params(max_depth=4).fit(X, y)
    assert deeper.greedy_tree_.structure.depth == 4
    assert deeper.get_n_leaves() <= deeper.greedy_tree_.structure.n_leaves


def test_every_stage_of_a_segmenter_is_pruned_and_shrunk():
    images = np.random.default_rng(5).normal(size=(4, 16, 16)).astype(np.float32)
    labels = (images < np.roll(images, 1, axis=2)).astype(int)
    labels[np.random.default_rng(6).random(labels.shape) < 0.1] ^= 1
    common = {**QUICK, "window": 3, "stages": 2}
    plain, chosen = (
        CrispSegmenter.from_flat(**common, **more).fit(images[:3], labels[:3], eval_set=(images[3:], labels[3:]))
        for more in ({}, {"ccp_alpha": "auto", "shrinkage": "auto"})
    )
    assert chosen.earlier_trees_[0].structure.n_leaves < plain.earlier_trees_[0].structure.n_leaves
    assert chosen.earlier_trees_[0].statistics.shrinkage > 0
    assert chosen.get_n_leaves() < plain.get_n_leaves()
    assert chosen.score(images[3:], labels[3:]) > 0.75
    held = CrispSegmenter.from_flat(**common, ccp_alpha="auto").fit(images, labels)
    assert held.tree_.statistics.node_counts[0].sum() == labels[:3].size
    with pytest.raises(ValueError, match="a fit that holds images out must have at least 2"):
        CrispSegmenter.from_flat(**common, shrinkage="auto").fit(images[0], labels[0])
