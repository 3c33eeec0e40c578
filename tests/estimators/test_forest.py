"""Forests: bags, what is said of rows out of them, and what many trees say together."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError

import crisptree
from crisptree import CrispForestClassifier, CrispForestRegressor, explain
from crisptree.pipeline.forests import Bagging, count_share
from tests.estimators.forests import PLAIN, QUICK, classifier, regressor
from tests.toys import clouds

X, y = load_wine(return_X_y=True)
NUMBERS = X[:, 0] * 2 + (X[:, 1] > 2)


@pytest.fixture(scope="module")
def forest():
    return classifier(n_estimators=6).fit(X, y)


@pytest.fixture(scope="module")
def numbers():
    return regressor().fit(X, NUMBERS)


def test_a_forest_predicts_the_mean_of_its_trees(forest):
    each = np.stack([tree.predict_proba(X) for tree in forest.estimators_])
    assert np.allclose(forest.predict_proba(X), each.mean(axis=0), atol=1e-15)
    assert np.array_equal(forest.predict(X), forest.classes_[forest.predict_proba(X).argmax(axis=1)])
    assert forest.score(X, y) > 0.9


def test_sums_are_in_the_order_of_the_trees_on_any_count_share_threads_and_for_one_row(forest):
    whole = forest.predict_proba(X)
    in_order = sum(tree.tree_.leaf_values(tree.leaf_indices(X)) for tree in forest.estimators_) / len(forest)
    assert np.array_equal(whole, in_order)
    assert np.array_equal(whole[:1], forest.predict_proba(X[:1]))
    assert np.array_equal(whole, forest.set_params(n_jobs=1).predict_proba(X.astype(np.float32).astype(float)))


def test_out_of_bag_rows_are_scored_by_trees_not_trained_on_them(forest):
    bagging = Bagging(len(y), len(y), True, forest.seed_)
    said, trees = np.zeros((len(y), 3)), np.zeros(len(y))
    for number, tree in enumerate(forest.estimators_):
        unseen = bagging.times(number) == 0
        said[unseen] += tree.predict_proba(X[unseen])
        trees += unseen
    known = trees > 0
    assert np.allclose(forest.oob_decision_function_[known], said[known] / trees[known, None])
    assert np.isnan(forest.oob_decision_function_[~known]).all()
    assert forest.oob_score_ == pytest.approx(np.mean(said[known].argmax(axis=1) == y[known]))


def test_a_tree_follows_from_the_seed_and_its_number_alone(forest):
    fewer = classifier(n_estimators=2).fit(X, y)
    assert all(np.array_equal(a.weight, b.weight) for a, b in zip(fewer.forest_, forest.forest_.trees[:2], strict=True))


@pytest.mark.parametrize("random_state", [0, None])
def test_a_warm_start_adds_trees(random_state):
    model = classifier(n_estimators=2, warm_start=True, random_state=random_state).fit(X, y)
    first = model.forest_.trees
    model.set_params(n_estimators=4).fit(X, y)
    assert model.forest_.trees[:2] == first
    assert len(model) == 4
    if random_state == 0:
        at_once = classifier(n_estimators=4).fit(X, y)
        assert np.array_equal(at_once.predict_proba(X), model.predict_proba(X))
        assert at_once.oob_score_ == model.oob_score_
    with pytest.raises(ValueError, match="`n_estimators` must be at least 4"):
        model.set_params(n_estimators=3).fit(X, y)
    with pytest.raises(ValueError, match="must continue with the same rows, 178"):
        model.set_params(n_estimators=5).fit(X[:-1], y[:-1])


def test_there_is_no_oob_score_without_out_of_bag_rows():
    model = classifier(bootstrap=False).fit(X, y)
    assert not hasattr(model, "oob_score_")


def test_rows_of_no_weight_have_no_word_out_of_the_bag():
    weight = np.ones(len(y))
    weight[:20] = 0
    model = classifier().fit(X, y, weight)
    assert model.oob_decision_function_.shape == (len(y), 3)
    assert np.isnan(model.oob_decision_function_[:20]).all()
    assert np.isfinite(model.oob_decision_function_[20:]).any()


@pytest.mark.parametrize("bootstrap", [True, False, "balanced"])
def test_max_samples_sets_the_number_of_drawn_rows(bootstrap):
    times = Bagging(len(y), 60, bootstrap, 3, y).times(5)
    assert times.sum() == 60
    assert len(times) == len(y)
    if bootstrap == "balanced":
        assert np.bincount(y, weights=times).tolist() == [20, 20, 20]
    if bootstrap is False:
        assert times.max() == 1


@pytest.mark.parametrize(
    ("given", "are_images", "drawn"),
    [
        ({}, False, (True, 100)),
        ({}, True, (False, 80)),
        ({"max_samples": 0.5}, True, (True, 50)),
        ({"bootstrap": True}, True, (True, 100)),
        ({"bootstrap": False}, False, (False, 100)),
    ],
    ids=str,
)
def test_every_tree_sees_four_fifths_of_images_and_a_bootstrap_of_other_rows(given, are_images, drawn):
    parameters = CrispForestClassifier.from_flat(**given).get_params()
    bagging = Bagging.of(parameters, 100, 0, np.zeros(100, dtype=np.int64), are_images=are_images)
    assert (bagging.bootstrap, bagging.n_drawn) == drawn


def test_a_forest_of_images_has_an_oob_score():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(90, 4, 4)) + (np.arange(90) % 2)[:, None, None]
    model = classifier(n_estimators=4).fit(images, np.arange(90) % 2)
    unseen = np.stack([Bagging(90, 72, False, model.seed_).times(tree) == 0 for tree in range(4)])
    assert unseen.sum(axis=1).tolist() == [18] * 4
    assert np.array_equal(np.isfinite(model.oob_decision_function_[:, 0]), unseen.any(axis=0))


@pytest.mark.parametrize("make", [classifier, regressor])
def test_thresholds_that_compete_are_those_of_the_features_drawn_for_a_split(make):
    rows = np.random.default_rng(0).normal(size=(200, 5))
    said = {"split": "axis", "max_depth": 1, "n_estimators": 8}
    for share, asked in ((None, {0}), (1, set(range(5)))):
        forest = make(**said, max_features=share).fit(rows, rows[:, 0] > 0)
        found = {int(feature) for tree in forest.forest_ for feature in np.flatnonzero(tree.weight[0])}
        assert found == asked if share is None else found <= asked and len(found) > 2


@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize("more", [{}, {"optimizer": "adam", "algorithm": "em"}], ids=["defaults", "adam"])
def test_every_split_has_weights_for_a_patch_of_the_image_only(make, more):
    rng = np.random.default_rng(0)
    images = rng.normal(size=(200, 6, 5, 2)) + (np.arange(200) % 2)[:, None, None, None]
    forest = make(n_estimators=8, max_features=(3, 2), max_depth=2, **more).fit(images, np.arange(200) % 2)
    places = set()
    for tree in forest.forest_:
        for weight in np.asarray(tree.weight).reshape(-1, 6, 5, 2):
            rows, columns, _ = np.nonzero(weight)
            places.add((rows.min(), columns.min()))
            assert np.array_equal(np.unique(rows), rows.min() + np.arange(3))
            assert np.array_equal(np.unique(columns), columns.min() + np.arange(2))
    assert {row for row, _ in places} == {0, 1, 2, 3}
    assert len(places) > 6


@pytest.mark.parametrize(
    ("rows", "patch", "seen"),
    [((6, 5), (2, 6), "images of 6 × 5"), ((6, 5), (7, 1), "images of 6 × 5"), ((30,), (2, 2), "rows that are no")],
    ids=str,
)
def test_a_patch_lies_in_the_image(rows, patch, seen):
    images = np.random.default_rng(0).normal(size=(40, *rows))
    with pytest.raises(ValueError, match=rf"patch of the image; got \({patch[0]}, {patch[1]}\) for {seen}"):
        classifier(max_features=patch).fit(images, np.arange(40) % 2)


@pytest.mark.parametrize("other", [{"split": "axis"}, {"grow": "cart"}, {"optimizer": "lbfgs"}], ids=str)
def test_patches_are_those_of_hyperplanes_that_gradients_train(other):
    images = np.random.default_rng(0).normal(size=(40, 4, 4))
    with pytest.raises(ValueError, match=r"`(split|grow|optimizer)` must be .* for max_features=\(2, 2\)"):
        classifier(max_features=(2, 2), **other).fit(images, np.arange(40) % 2)


@pytest.mark.parametrize(
    "other",
    [
        {"grow": "balanced"},
        {"split": "conv", "image_shape": (2, 2)},
    ],
    ids=str,
)
def test_features_are_drawn_for_splits_that_are_found_one_by_one_only(other):
    with pytest.raises(ValueError, match=r"`max_features` must be 'auto', None or 1\.0 for"):
        classifier(max_features=2, **other).fit(X[:, :4], y)


def test_a_share_of_all_features_goes_with_every_growth():
    model = classifier(max_features=1.0, grow="balanced").fit(X, y)
    assert np.array_equal(model.predict(X), classifier(grow="balanced").fit(X, y).predict(X))


@pytest.mark.parametrize("n_images", [1, 2, 3])
def test_few_images_leave_some_out_too(n_images):
    images = np.random.default_rng(0).normal(size=(n_images, 4, 4))
    assert len(regressor(n_estimators=10).fit(images, np.arange(n_images))) == 10


@pytest.mark.parametrize(("first", "second"), [({"bootstrap": True}, {"bootstrap": False}), ({}, {"max_samples": 0.5})])
def test_a_warm_start_refuses_other_bags(first, second):
    model = classifier(warm_start=True, **first).fit(X, y)
    with pytest.raises(ValueError, match="draw rows as those that are there did"):
        model.set_params(n_estimators=5, **second).fit(X, y)


def test_a_warm_start_on_images_refuses_the_same_rows_as_a_table():
    images = np.random.default_rng(0).normal(size=(60, 4, 4))
    model = classifier(warm_start=True).fit(images, np.arange(60) % 2)
    with pytest.raises(ValueError, match=r"did \(48 of 60 rows, each once\)"):
        model.set_params(n_estimators=5).fit(images.reshape(60, 16), np.arange(60) % 2)


def test_counts_and_shares_are_converted_to_counts():
    assert [count_share(share, 10) for share in (None, 3, 30, 0.5, 0.01, 1.0)] == [10, 3, 10, 5, 1, 10]


def test_importances_sum_to_one_and_find_the_feature_that_matters():
    rows = np.random.default_rng(0).normal(size=(200, 5))
    model = classifier(epochs=10, finetune_epochs=10).fit(rows, rows[:, 3] > 0)
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.feature_importances_.argmax() == 3


def test_a_forest_distills_into_one_tree(forest):
    tree = forest.to_tree(X, copies=1, **QUICK | {"max_depth": 2})
    assert tree.get_depth() <= 2
    assert np.mean(tree.predict(X) == forest.predict(X)) > 0.8


def test_tables_and_names_go_through_a_forest():
    frame = load_iris(as_frame=True)
    words = frame.data.assign(kind=["a", "b", None] * 50)
    model = classifier(n_estimators=2).fit(words, frame.target)
    assert model.feature_importances_.shape == (5,)
    assert model.tree(0).predict(words).shape == (150,)
    assert explain.path_attributions(model, words[:1]).values.shape == (1, 5, 3)


def test_sparse_rows_are_taken():
    from scipy import sparse

    rows = sparse.csr_matrix(np.where(X.mean(axis=0) < X, X, 0))
    model = classifier(n_estimators=2, scale="global").fit(rows, y)
    assert np.array_equal(model.predict_proba(rows), model.predict_proba(rows.toarray()))


def test_a_warm_start_on_other_rows_is_refused():
    model = classifier(n_estimators=2, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="differ from those of the fit before"):
        model.set_params(n_estimators=3).fit(X[::-1], y)
    with pytest.raises(ValueError, match="differ from those of the fit before"):
        model.fit(X, y, sample_weight=1.0 + (y == 0))
    assert len(model.fit(X, y)) == 3


def test_a_tree_that_is_not_there_is_named(forest):
    for number in (99, -99, "one"):
        with pytest.raises(IndexError, match=rf"from 0 to {len(forest) - 1}.* got {number!r}"):
            forest.tree(number)
    assert forest.tree(-1).get_n_leaves() == forest.tree(len(forest) - 1).get_n_leaves()


def test_choices_are_made_once_by_small_forests():
    quick = QUICK | {"epochs": 1, "finetune_epochs": 1, "min_updates": 2, "max_depth": 2}
    model = CrispForestClassifier.from_flat(**quick, n_estimators=2).fit(X[::2], y[::2])
    assert {"split", "max_depth"} <= model.best_params_.keys()
    assert {trial.values["split"] for trial in model.cv_results_} == {"oblique", "axis"}
    assert model.best_params_ == max(model.cv_results_, key=lambda trial: trial.score).values


def test_every_candidate_of_a_forest_is_scored_once():
    quick = QUICK | {"epochs": 1, "finetune_epochs": 1, "min_updates": 2, "max_depth": 2}
    model = CrispForestClassifier.from_flat(**quick, n_estimators=6).fit(X[::2, :5], y[::2])
    tried = [trial.values for trial in model.cv_results_]
    assert not [values for number, values in enumerate(tried) if values in tried[:number]]
    assert model.best_params_ == max(model.cv_results_, key=lambda trial: trial.score).values


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_estimators": 0}, "`n_estimators` must be a whole number from 1"),
        ({"bootstrap": "yes"}, "`bootstrap` must be 'auto' or 'balanced' or True or False"),
        ({"max_samples": 1.5}, "`max_samples` must be None, a whole number of at least 1 or a share"),
        ({"max_features": "half"}, "`max_features` must be 'auto' or 'sqrt' or 'log2' or None"),
        ({"early_stopping": True}, "`early_stopping` must be False for a forest without `eval_set`"),
    ],
)
def test_unsupported_combinations_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        classifier(**changes).fit(X, y)


def test_an_unfitted_forest_is_refused():
    with pytest.raises(NotFittedError):
        classifier().predict(X)


def test_validation_rows_score_epochs():
    model = classifier(early_stopping=True).fit(X[::2], y[::2], eval_set=(X[1::2], y[1::2]))
    assert any(record.validation_score is not None for record in model.history_)


def test_a_regression_forest_predicts_the_mean_of_its_trees(numbers):
    assert np.allclose(numbers.predict(X), np.mean([tree.predict(X) for tree in numbers.estimators_], axis=0))
    means, spreads = np.stack([(tree.predict(X), tree.predict_std(X)) for tree in numbers.estimators_]).transpose(
        1, 0, 2
    )
    assert np.allclose(numbers.predict_std(X) ** 2, (spreads**2 + means**2).mean(axis=0) - means.mean(axis=0) ** 2)
    known = ~np.isnan(numbers.oob_prediction_)
    errors = np.mean((numbers.oob_prediction_[known] - NUMBERS[known]) ** 2)
    assert numbers.oob_score_ == pytest.approx(1 - errors / np.var(NUMBERS))


def test_a_regression_forest_predicts_in_the_units_of_y(numbers):
    shifted = regressor().fit(X, 1000 + 10 * NUMBERS)
    assert np.allclose(shifted.predict(X), 1000 + 10 * numbers.predict(X), rtol=1e-4)
    low, high = numbers.predict_interval(X)
    assert (low <= high).all()
    assert numbers.to_tree(X, copies=1, **QUICK | {"max_depth": 2}).get_depth() == 2


def test_several_outputs_are_predicted_together():
    both = np.stack([NUMBERS, -NUMBERS], axis=1)
    model = regressor(n_estimators=2).fit(X, both)
    assert model.predict(X).shape == model.oob_prediction_.shape == (len(X), 2)
    assert model.predict_std(X).shape == (len(X), 2)


def test_a_callback_is_called_for_all_trees_and_may_stop():
    from crisptree import StopTraining

    heard = []

    def stop(record):
        heard.append(record)
        if record.level == 2:
            raise StopTraining

    model = CrispForestClassifier.from_flat(**PLAIN, n_estimators=3, callbacks=[stop]).fit(X, y)
    assert heard[0].n_splits == 3
    assert model.get_depth() == 1


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_forest_comes_back_from_its_file(kind, tmp_path):
    words = load_iris(as_frame=True).data.assign(kind=["a", "b", None] * 50)
    model = classifier(n_estimators=3) if kind == "classes" else regressor(n_estimators=3)
    model.fit(words, load_iris().target)
    model.save(tmp_path / "forest.crisp")
    again = crisptree.load(tmp_path / "forest.crisp")
    assert type(again) is type(model)
    assert np.array_equal(again.predict(words), model.predict(words))
    assert (again.seed_, again.n_rows_, again.oob_score_) == (model.seed_, model.n_rows_, model.oob_score_)
    assert np.array_equal(again.tree(1).tree_.weight, model.tree(1).tree_.weight)
    more = again.set_params(warm_start=True, n_estimators=4).fit(words, load_iris().target)
    at_once = model.set_params(n_estimators=4).fit(words, load_iris().target)
    assert np.array_equal(more.predict(words), at_once.predict(words))


def test_a_file_with_other_trees_than_declared_is_refused(tmp_path, forest):
    from crisptree.estimators.loading import KNOWN
    from crisptree.persistence.model_file import read, write

    path = tmp_path / "forest.crisp"
    forest.save(path)
    for trees, words in (
        (7, "section 'member_6' is missing"),
        (0, "must hold 1 to 10,000 trees"),
        ("a", "number of trees"),
    ):
        sections = dict(read(path, KNOWN).sections)
        sections["estimator"].content["trees"] = trees
        write(tmp_path / "other.crisp", sections)
        with pytest.raises(crisptree.ModelFileError, match=words):
            crisptree.load(tmp_path / "other.crisp")


def test_a_report_is_about_the_tree_that_represents_the_forest(forest, tmp_path):
    page = forest.report(tmp_path / "wine.html", X, y).read_text()
    agree = [np.mean(tree.predict(X) == forest.predict(X)) for tree in forest.estimators_]
    assert f"Tree {int(np.argmax(agree))} of a forest (6 trees" in page


def test_the_standard_deviation_does_not_depend_on_the_mean_of_y():
    X = np.linspace(0, 1, 60, dtype=np.float32)[:, None]
    y = np.sin(6 * X[:, 0]) + np.tile([-0.3, 0.3], 30)
    given = {"n_estimators": 3, "max_depth": 2, "split": "oblique", "input_noise": 0.0, "l1": 0.0, "random_state": 0}
    near, far = (CrispForestRegressor(**given).fit(X, y + offset).predict_std(X) for offset in (0.0, 1e8))
    assert np.quantile(np.abs(far / near - 1), 0.9) < 0.05  # y is rounded: a row may change its leaf


def test_a_warm_start_keeps_the_kind_of_leaves():
    X, y = clouds(60)
    given = {"n_estimators": 2, "max_depth": 1, "split": "oblique", "input_noise": 0.0, "l1": 0.0, "epochs": 1}
    forest = CrispForestClassifier.from_flat(**given, finetune_epochs=0, random_state=0).fit(X, y)
    forest.set_params(leaf_model="linear", training__leaf_l2=0.1, warm_start=True, n_estimators=3)
    with pytest.raises(ValueError, match="`leaf_model` must be 'constant' with warm_start=True"):
        forest.fit(X, y)


def test_the_paths_of_all_trees_stand_side_by_side(forest):
    visited, begins = forest.decision_path(X[:20])
    assert begins.tolist() == np.cumsum([0, *(tree.tree_.structure.n_nodes for tree in forest.estimators_)]).tolist()
    for number, tree in enumerate(forest.estimators_):
        own = visited[:, begins[number] : begins[number + 1]]
        assert np.array_equal(own.toarray(), tree.decision_path(X[:20]).toarray())
    with pytest.raises(NotFittedError):
        classifier().decision_path(X)
