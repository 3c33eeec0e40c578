import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crisptree import CrispTreeClassifier, StopTraining
from crisptree.equations.penalties import grid_laplacian
from crisptree.inference import FlatTree, route_rows
from crisptree.parameters.estimators import PAPER
from tests.toys import checkerboard, clouds, diagonal, plain_tree

QUICK = {"max_depth": 3, "epochs": 5, "finetune_epochs": 5, "min_updates": 20, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    X, y = clouds(300, n_classes=4)
    return plain_tree(**QUICK).fit(X, y), X, y


def test_one_split_solves_a_diagonal_and_three_solve_a_checkerboard():
    X, y = diagonal()
    assert plain_tree(max_depth=1, random_state=0).fit(X, y).score(X, y) == 1.0
    X, y = checkerboard()
    assert plain_tree(max_depth=3, random_state=0).fit(X, y).score(X, y) > 0.97


def test_there_are_at_most_as_many_distinct_predictions_as_leaves(fitted):
    model, X, _ = fitted
    distinct = np.unique(model.predict_proba(X), axis=0)
    assert len(distinct) <= model.get_n_leaves() == len(model.tree_.leaves)


def test_prediction_is_the_table_of_one_leaf_and_not_a_mixture(fitted):
    model, X, _ = fitted
    assert np.array_equal(model.predict_proba(X), model.tree_.leaves[model.leaf_indices(X)])
    assert not np.allclose(model.soft_predict_proba(X), model.predict_proba(X), atol=1e-3)


def test_at_high_steepness_the_soft_tree_predicts_what_the_hard_one_does(fitted):
    model, X, _ = fitted
    steep = model.soft_predict_proba(X, steepness=1e6)
    soft_tables = model.tree_.statistics.soft_leaves[model.leaf_indices(X)]
    assert np.mean(np.abs(steep - soft_tables).max(axis=1) < 1e-6) > 0.99
    np.testing.assert_allclose(model.soft_predict_proba(X).sum(axis=1), 1)


def test_the_decision_path_has_the_splits_of_the_path_and_one_leaf(fitted):
    model, X, _ = fitted
    structure = model.tree_.structure
    paths, leaf = model.decision_path(X), model.leaf_indices(X)
    assert paths.shape == (len(X), structure.n_nodes)
    visited = np.asarray(paths.sum(axis=1)).ravel() - 1
    assert visited.max() <= model.get_depth()
    assert np.array_equal(visited, structure.leaf_depths[leaf])
    assert paths[np.arange(len(X)), structure.n_splits + leaf].all()


def test_training_counts_agree_with_predictions(fitted):
    model, X, y = fitted
    counts = np.zeros_like(model.tree_.leaves)
    np.add.at(counts, (model.leaf_indices(X), y), 1)
    assert np.array_equal(model.tree_.statistics.node_counts[model.tree_.structure.n_splits :], counts)


def test_the_same_seed_gives_bit_equal_trees_with_any_verbosity(capsys):
    X, y = clouds(150)
    trees = [plain_tree(**QUICK, verbose=verbose).fit(X, y).tree_ for verbose in (0, 0, 1)]
    for other in trees[1:]:
        assert np.array_equal(trees[0].weight, other.weight)
        assert np.array_equal(trees[0].bias, other.bias)
        assert np.array_equal(trees[0].leaves, other.leaves)


def test_another_seed_gives_another_tree():
    X, y = clouds(150)
    first, second = (plain_tree(**QUICK | {"random_state": seed}).fit(X, y).tree_ for seed in (0, 1))
    assert not np.array_equal(first.weight, second.weight)


def test_float64_rows_take_the_leaves_of_their_float32_values(fitted):
    model, X, _ = fitted
    fine = X.astype(np.float64) * (1 + 1e-9)
    assert np.array_equal(model.leaf_indices(fine), model.leaf_indices(fine.astype(np.float32)))


def test_read_only_strided_and_single_rows_are_welcome(fitted):
    model, X, y = fitted
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = np.zeros((len(X), 2 * X.shape[1]), dtype=np.float32)
    wide[:, ::2] = X
    expected = model.leaf_indices(X)
    for rows in (frozen, wide[:, ::2], np.asfortranarray(X)):
        assert np.array_equal(model.leaf_indices(rows), expected)
        assert np.array_equal(plain_tree(**QUICK).fit(rows, y).leaf_indices(X), expected)
    assert model.predict(X[:1]).shape == (1,)


def test_pickling_keeps_every_bit_of_the_predictions(fitted):
    model, X, _ = fitted
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.history_ == model.history_


@pytest.mark.parametrize("labels", [["a", "b", "c"], [-5, 0, 7], [True, False], [2.0, 4.0]])
def test_labels_may_be_strings_numbers_or_booleans(labels):
    X, y = clouds(90, n_classes=len(labels))
    named = np.array(labels)[y]
    model = plain_tree(**QUICK).fit(X, named)
    assert set(model.predict(X)) <= set(labels)
    assert model.classes_.dtype == named.dtype
    assert model.score(X, named) > 0.8


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_keep_their_column_names(frame):
    X, y = clouds(90)
    names = [f"column {j}" for j in range(5)]
    table = frame(dict(zip(names, X.T, strict=True)))
    model = plain_tree(**QUICK).fit(table, y)
    assert model.feature_names_in_.tolist() == names
    assert np.array_equal(model.predict(table), plain_tree(**QUICK).fit(X, y).predict(X))


def test_it_clones_searches_grids_and_sits_in_a_pipeline():
    X, y = clouds(120)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), plain_tree(**QUICK)),
        {"crisptreeclassifier__max_depth": [1, 3]},
        cv=2,
    ).fit(X, y)
    assert search.best_params_ == {"crisptreeclassifier__max_depth": 3}
    assert clone(search.best_estimator_).get_params()["crisptreeclassifier__max_depth"] == 3


def test_zero_finetuning_epochs_give_the_greedy_tree():
    X, y = clouds(150)
    model = plain_tree(**QUICK | {"finetune_epochs": 0}).fit(X, y)
    assert model.tree_ is model.greedy_tree_
    full = plain_tree(**QUICK).fit(X, y)
    assert np.array_equal(full.before_finetuning().predict_proba(X), model.predict_proba(X))
    assert not np.array_equal(full.tree_.weight, full.greedy_tree_.weight)


def test_a_warm_start_grows_the_greedy_tree_further():
    X, y = checkerboard()
    model = plain_tree(**QUICK | {"max_depth": 2, "warm_start": True}).fit(X, y)
    shallow = model.greedy_tree_
    model.set_params(max_depth=4).fit(X, y)
    n = shallow.structure.n_splits
    assert model.greedy_tree_.structure.n_splits > n
    np.testing.assert_allclose(model.greedy_tree_.weight[:n], shallow.weight, rtol=1e-5)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("split", ["axis", lambda shape: torch.nn.Linear(shape[0], 1)])
def test_a_warm_start_keeps_the_kind_of_split(split):
    X, y = checkerboard(150)
    model = plain_tree(**QUICK | {"split": split, "max_depth": 1, "warm_start": True}).fit(X, y)
    model.set_params(max_depth=2).fit(X, y)
    assert model.get_n_leaves() > 2
    if split == "axis":
        assert ((model.tree_.weight != 0).sum(axis=1) == 1).all()


def test_finetuning_an_axis_tree_keeps_the_axes_and_moves_the_thresholds():
    X, y = clouds(150)
    model = plain_tree(**QUICK | {"split": "axis"}).fit(X, y)
    assert np.array_equal(model.tree_.weight != 0, model.greedy_tree_.weight != 0)
    assert not np.array_equal(model.tree_.bias, model.greedy_tree_.bias)


def test_a_balanced_tree_learned_by_likelihood_is_a_soft_tree():
    X, y = clouds(200)
    model = plain_tree(grow="balanced", algorithm="likelihood", max_depth=3, finetune_epochs=30, random_state=0).fit(
        X, y
    )
    assert model.get_n_leaves() == 8
    assert np.mean(model.soft_predict_proba(X).argmax(axis=1) == y) > 0.9
    assert {record.phase for record in model.history_} == {"finetune"}


def test_split_modules_train_predict_and_pickle():
    X, y = checkerboard(200)
    model = plain_tree(
        split=module_factory, max_depth=2, epochs=10, finetune_epochs=5, learning_rate=0.05, random_state=0
    ).fit(X, y)
    assert model.score(X, y) > 0.85
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))
    assert np.array_equal(route_rows(model.tree_, X), model.leaf_indices(X))


def module_factory(input_shape):
    return torch.nn.Sequential(torch.nn.Linear(input_shape[0], 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def test_l1_gives_exact_zeros_and_roughness_gives_smooth_weight_images():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 64))
    blob = np.exp(-((np.mgrid[:8, :8] - 3.5) ** 2).sum(axis=0) / 4).ravel()
    y = (X @ blob > 0).astype(int)
    sparse = plain_tree(max_depth=1, l1=0.1, random_state=0).fit(X, y)
    assert (sparse.tree_.weight == 0).mean() > 0.5
    assert sparse.score(X, y) > 0.9
    rough, smooth = (
        plain_tree(max_depth=1, image_shape=(8, 8), spatial_penalty=strength, random_state=0).fit(X, y)
        for strength in (0.0, 0.1)
    )

    def relative_roughness(model):
        weights = model.tree_.scaled_hyperplanes()[0][0]
        return weights @ grid_laplacian((8, 8)) @ weights / (weights @ weights)

    assert relative_roughness(smooth) < 0.7 * relative_roughness(rough)


def test_a_leaf_prior_smooths_the_final_tables():
    X, y = diagonal()
    tables = plain_tree(max_depth=1, leaf_prior=1.0, random_state=0).fit(X, y).tree_.leaves
    assert 0 < tables.min() < 0.05


def test_validation_scores_are_recorded_and_early_stopping_keeps_the_best():
    X, y = clouds(300)
    model = plain_tree(**QUICK | {"finetune_epochs": 15, "early_stopping": True})
    model.fit(X[:200], y[:200], eval_set=(X[200:], y[200:]))
    scores = [record.validation_score for record in model.history_ if record.phase == "finetune"]
    assert model.score(X[200:], y[200:]) >= max(scores) - 1e-9
    model.fit(X, y)  # holds out its own rows
    counted = model.tree_.statistics.node_counts[0].sum()
    assert counted == 270


def test_class_weights_shift_the_decision():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), np.arange(300) % 2
    keen = plain_tree(**QUICK, class_weight={0: 50.0, 1: 1.0}, min_weight_fraction_leaf=0.1).fit(X, y)
    assert (keen.predict(X) == 0).mean() > 0.9


def test_every_epoch_reaches_the_callbacks_and_the_history():
    X, y = clouds(100)
    heard = []
    model = plain_tree(**QUICK, callbacks=[heard.append]).fit(X, y)
    assert heard == model.history_
    assert [record.epoch for record in heard[-5:]] == [1, 2, 3, 4, 5]
    assert heard[-1].phase == "finetune"


def test_the_paper_protocol_is_the_papers():
    model = CrispTreeClassifier.paper(max_depth=4, epochs=20)
    parameters = model.flat_parameters()
    assert all(parameters[name] == value for name, value in PAPER.items() if name not in ("max_depth", "epochs"))
    options = model.training
    assert (options.batch_size, options.learning_rate) == (1000, 0.001)
    assert (options.steepness, options.steepness_step) == (1.0, 0.1)
    assert (model.max_depth, options.epochs) == (4, 20)


def test_the_paper_protocol_has_one_penalty_for_all_splits_in_finetuning():
    X, y = clouds(100)
    quick = {"max_depth": 2, "epochs": 2, "finetune_epochs": 4, "batch_size": 20, "image_shape": (1, X.shape[1])}
    weights = [
        CrispTreeClassifier.paper(**quick, spatial_penalty=0.5, **share, random_state=0).fit(X, y).tree_.weight
        for share in ({}, {"penalty_share": "none"}, {"penalty_share": "rows"})
    ]
    assert np.array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])


def test_epochs_of_the_paper_protocol_are_selected_on_validation_rows():
    X, y = clouds(200)
    quick = {"max_depth": 1, "batch_size": 50, "learning_rate": 0.02, "random_state": 0}
    shuffled = (X[:60], np.random.default_rng(0).permutation(y[:60]))
    for held_out in ((X[150:], y[150:]), shuffled):
        model = CrispTreeClassifier.fit_paper(X[:150], y[:150], held_out, epochs=(8, 1, 3), **quick)
        alone = {
            n: CrispTreeClassifier.paper(epochs=n, finetune_epochs=n, **quick).fit(X[:150], y[:150]).score(*held_out)
            for n in (1, 3, 8)
        }
        assert model.validation_scores_ == alone
        assert model.training.epochs == min(n for n in alone if alone[n] == max(alone.values()))
    drawn = CrispTreeClassifier.fit_paper(X, y, epochs=(2,), **quick)
    assert drawn.tree_.statistics.node_counts[0].sum() == 200  # fitted anew on all rows
    with pytest.raises(ValueError, match="`epochs` must hold at least one number"):
        CrispTreeClassifier.fit_paper(X, y, epochs=())


def test_an_interrupted_fit_leaves_the_earlier_one_as_it_was():
    X, y = clouds(100)
    model = plain_tree(**QUICK).fit(X, y)

    def interrupt(record):
        raise KeyboardInterrupt

    before, predicted = model.tree_, model.predict(X)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(training__callbacks=[interrupt]).fit(X, y)
    assert model.tree_ is before
    assert np.array_equal(model.predict(X), predicted)
    with pytest.raises(ValueError, match="`max_depth`"):
        model.set_params(training__callbacks=None, max_depth=-1).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.set_params(max_depth=3).fit(X[:, :2], y[:5])
    assert model.tree_ is before
    assert model.n_features_in_ == X.shape[1]
    unfitted = plain_tree(**QUICK, callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        unfitted.fit(X, y)
    assert not hasattr(unfitted, "tree_")


def test_a_callback_may_end_a_fit_and_keep_what_is_there():
    X, y = clouds(200)
    for last, phase in ((3, "grow"), (12, "finetune")):
        records = []

        def stop(record, records=records, last=last):
            records.append(record)
            if len(records) == last:
                raise StopTraining

        model = plain_tree(max_depth=2, epochs=5, finetune_epochs=30, random_state=0, callbacks=[stop]).fit(X, y)
        assert len(model.history_) == len(records) == last
        assert records[-1].phase == phase
        assert model.predict(X).shape == y.shape


def test_linear_trees_are_flat_arrays_without_torch(fitted):
    model, _, _ = fitted
    assert isinstance(model.tree_, FlatTree)
    assert model.tree_.weight.dtype == model.tree_.bias.dtype == np.float32


def dropout_factory(input_shape):
    return torch.nn.Sequential(torch.nn.Linear(input_shape[0], 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))


def test_modules_with_dropout_train_repeatably_and_predict_without_it():
    X, y = clouds(100)
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    first, second = (plain_tree(**QUICK | {"split": dropout_factory}).fit(X, y) for _ in range(2))
    assert torch.equal(torch.rand(1), expected)  # the caller's random state is left alone
    assert np.array_equal(first.leaf_indices(X), first.leaf_indices(X))
    assert np.array_equal(first.soft_predict_proba(X), second.soft_predict_proba(X))


def test_light_batches_take_small_steps():
    # 20 heavy rows follow another rule than 1980 light ones: they must win, whatever the batches are.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    heavy = np.arange(2000) < 20
    y = np.where(heavy, X[:, 0] > 0, X[:, 1] > 0).astype(int)
    weight = np.where(heavy, 1e4, 1.0)
    model = plain_tree(max_depth=1, batch_size=20, random_state=0).fit(X, y, sample_weight=weight)
    assert model.score(X, y, sample_weight=weight) > 0.95


def test_the_recorded_validation_score_is_the_score_of_the_deterministic_tree():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    for seed in range(4):
        model = plain_tree(**QUICK | {"grow": "balanced", "random_state": seed})
        model.fit(X[:40], y[:40], eval_set=(X[40:], y[40:]))
        assert model.history_[-1].validation_score == pytest.approx(model.score(X[40:], y[40:]))


def test_held_out_rows_keep_their_weights(monkeypatch):
    seen = []
    from crisptree.learning import loop

    original = loop.hard_score
    monkeypatch.setattr(loop, "hard_score", lambda *arguments: seen.append(arguments[2].weight) or original(*arguments))
    X, y = clouds(100)
    weight = np.where(y == 0, 3.0, 1.0)
    plain_tree(**QUICK, early_stopping=True).fit(X, y, sample_weight=weight)
    ratio = seen[0].max() / seen[0].min()
    assert ratio.item() == pytest.approx(3.0)


def test_a_balanced_tree_before_training_has_the_first_steepness():
    X, y = clouds(60)
    model = plain_tree(**QUICK | {"grow": "balanced"}).fit(X, y)
    assert model.greedy_tree_.statistics.steepness == 1.0
    greedy = plain_tree(**QUICK).fit(X, y)
    assert greedy.greedy_tree_.statistics.steepness == pytest.approx(1.4)
    assert greedy.tree_.statistics.steepness == pytest.approx(1.4)


def test_a_tree_that_is_not_finetuned_keeps_the_steepness_that_it_was_grown_with():
    X, y = clouds(60)
    model = plain_tree(**QUICK | {"finetune_epochs": 0}).fit(X, y)
    assert model.tree_.statistics.steepness == model.greedy_tree_.statistics.steepness == pytest.approx(1.4)


def test_early_stopping_gives_back_an_earlier_epoch_where_that_was_better():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 5))
    y = ((X[:, 0] > 0) ^ (rng.random(400) < 0.2)).astype(int)
    settings = QUICK | {"max_depth": 6, "finetune_epochs": 40, "learning_rate": 0.1}
    validation = (X[200:], y[200:])
    last = plain_tree(**settings).fit(X[:200], y[:200], eval_set=validation)
    best = plain_tree(**settings, early_stopping=True).fit(X[:200], y[:200], eval_set=validation)
    assert best.score(*validation) > last.score(*validation)


def test_warm_starts_stay_within_the_largest_number_of_leaves():
    X, y = checkerboard(200)
    model = plain_tree(**QUICK | {"max_leaf_nodes": 4, "max_depth": None, "warm_start": True})
    assert [model.fit(X, y).get_n_leaves() for _ in range(3)] == [4, 4, 4]


def test_statistics_hold_mean_and_spread_of_the_features_whatever_the_scale():
    X, y = clouds(80)
    for scale in ("feature", "global", None):
        scaling = plain_tree(**QUICK, scale=scale).fit(X, y).tree_.statistics.scaling
        np.testing.assert_allclose(scaling.mean, X.mean(axis=0), atol=1e-5)
        np.testing.assert_allclose(scaling.spread, X.std(axis=0), rtol=1e-5)


def test_each_module_sees_only_the_rows_on_its_path():
    X, y = checkerboard(200)
    model = plain_tree(**QUICK | {"split": module_factory}).fit(X, y)
    seen = []
    hook = model.tree_.splits.skeleton.register_forward_hook(lambda module, inputs, output: seen.append(len(inputs[0])))
    leaf = model.leaf_indices(X)
    hook.remove()
    assert sum(seen) == model.tree_.structure.leaf_depths[leaf].sum()
