"""fit(X, P): a row with probabilities equals one row of every class with these weights."""

import numpy as np
import pytest
from sklearn.base import clone

import crisptree
from crisptree import CrispTreeClassifier
from crisptree.learning import loop as training_loop
from crisptree.learning.loop import ENGINES
from crisptree.targets.classification import Classes
from tests.toys import clouds, plain_tree

X, Y = clouds(80)
P = 0.8 * np.eye(3)[Y] + 0.2 * np.random.default_rng(0).dirichlet(np.ones(3), 80)
P[::4] = np.eye(3)[Y[::4]]  # some rows are certain
P /= P.sum(axis=1, keepdims=True)

SETTINGS = [
    {},
    {"algorithm": "alternating"},
    {"algorithm": "likelihood", "grow": "balanced", "max_depth": 2},
    {"split": "axis", "max_depth": 2},
    {"scale": "global", "leaf_prior": 0.5, "l2": 1e-3, "max_leaf_nodes": 4},
]


def model(**changes):
    quick = {"max_depth": 2, "epochs": 10, "finetune_epochs": 10, "batch_size": 10_000, "min_updates": 50}
    return plain_tree(**quick | {"mass_threshold": 0.0, "random_state": 0} | changes)


def repeated(weight=None):
    """The rows of every class, without those of weight zero: rows, labels, weights."""
    row, label = np.nonzero(P)
    return X[row], label, P[row, label] * (1 if weight is None else weight[row])


@pytest.mark.parametrize("changes", SETTINGS)
def test_probabilities_equal_repeated_rows_with_their_weights(changes, monkeypatch):
    monkeypatch.setattr(training_loop, "select_engine", lambda *_: ENGINES["torch"])
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 80)
    soft = model(**changes).fit(X, P, weight)
    rows, labels, weights = repeated(weight)
    plain = model(**changes).fit(rows, labels, weights)
    np.testing.assert_allclose(soft.predict_proba(X), plain.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(soft.tree_.weight, plain.tree_.weight, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(soft.tree_.statistics.node_counts, plain.tree_.statistics.node_counts)
    np.testing.assert_allclose(soft.tree_.statistics.gain, plain.tree_.statistics.gain, atol=1e-12)


def test_a_matrix_of_certain_rows_is_its_labels():
    certain, plain = model().fit(X, np.eye(3)[Y]), model().fit(X, Y)
    assert np.array_equal(certain.tree_.weight, plain.tree_.weight)
    assert np.array_equal(certain.tree_.leaves, plain.tree_.leaves)


def test_the_fitted_tree_is_any_classifiers(tmp_path):
    soft = model().fit(X, P)
    assert soft.tree_.target == Classes(3)
    assert soft.classes_.tolist() == [0, 1, 2]
    assert soft.score(X, Y) > 0.9
    soft.save(tmp_path / "soft.crisp")
    again = crisptree.load(tmp_path / "soft.crisp")
    assert np.array_equal(again.predict_proba(X), soft.predict_proba(X))
    assert soft.explain(X[0]).steps
    np.testing.assert_allclose(soft.truncate(0).predict_proba(X[:1])[0], P.mean(axis=0))


def test_columns_of_a_table_are_the_classes(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(P[:, [2, 0, 1]], columns=["c", "a", "b"])
    named, plain = model().fit(X, table), model().fit(X, P)
    assert named.classes_.tolist() == ["a", "b", "c"]
    assert np.array_equal(named.predict_proba(X), plain.predict_proba(X))
    named.save(tmp_path / "named.crisp")
    assert crisptree.load(tmp_path / "named.crisp").predict(X).tolist() == named.predict(X).tolist()
    judged = model(early_stopping=True).fit(X, table, eval_set=(X, table[["b", "a", "c"]]))
    assert judged.history_[-1].validation_score > 0.7


def test_lists_of_floats_are_probabilities_too():
    assert np.array_equal(model().fit(X, P.tolist()).predict_proba(X), model().fit(X, P).predict_proba(X))


def test_a_class_without_any_probability_stays_a_class():
    wider = model().fit(X, np.insert(P, 1, 0.0, axis=1))
    assert wider.classes_.tolist() == [0, 1, 2, 3]
    assert not wider.predict_proba(X)[:, 1].any()


@pytest.mark.parametrize("held", [Y, P])
@pytest.mark.parametrize("labels", [Y, P])
def test_validation_rows_may_have_labels_or_probabilities(labels, held):
    fitted = model(early_stopping=True).fit(X, labels, eval_set=(X, held))
    best = max(record.validation_score for record in fitted.history_ if record.phase == "finetune")
    truth = P if held is P and labels is P else np.eye(3)[held.argmax(axis=1) if held is P else held]
    expected = truth[np.arange(80), fitted.predict(X)].mean()
    assert best == pytest.approx(expected, abs=0.05)


def test_rows_are_held_out_and_weights_of_zero_left_out():
    fitted = model(early_stopping=True).fit(X, P)
    assert fitted.tree_.statistics.node_counts[0].sum() == pytest.approx(72)
    weight = (np.arange(80) % 3 > 0).astype(float)
    weighted, without = model().fit(X, P, weight), model().fit(X[weight > 0], P[weight > 0])
    assert np.array_equal(weighted.tree_.weight, without.tree_.weight)


def test_a_warm_start_grows_on():
    warm = model(max_depth=1, warm_start=True).fit(X, P)
    assert warm.set_params(max_depth=2).fit(X, P).get_depth() == 2
    assert clone(warm).get_params() == warm.get_params()


def test_probabilities_that_are_nearly_some_are_mended():
    rounded = P.astype(np.float16)
    fitted = model().fit(X, rounded)
    np.testing.assert_allclose(fitted.tree_.statistics.node_counts[0].sum(), 80)


@pytest.mark.parametrize(
    ("y", "arguments", "parameters", "message"),
    [
        (2 * P, {}, {}, r"must hold probabilities of 3 classes.*row 0 is \[.*\] with the sum 2\. Divide scores"),
        (np.where(P > 0.5, P - 1, P), {}, {}, "numbers of at least 0 that sum to 1"),
        (np.full_like(P, np.nan), {}, {}, "NaN"),
        (P[:-1], {}, {}, "inconsistent numbers of samples"),
        (P, {}, {"class_weight": "balanced"}, "`class_weight` must be None where y are probabilities.*sample_weight"),
        (P, {}, {"grow": "cart"}, "y must be one label per row for grow='cart'"),
        (P, {"eval_set": (X, P[:, :2])}, {}, r"a column for each of the training classes \[0, 1, 2\]; got 2 columns"),
        (P, {"eval_set": (X, 2 * P)}, {}, "validation labels as a matrix must hold probabilities"),
        (P, {"eval_set": (X, np.where(np.arange(80)[:, None] == 5, np.nan, P))}, {}, r"row 5 is \[nan, nan, nan\]"),
        (Y, {"eval_set": (X, np.where(np.arange(80)[:, None] == 5, np.nan, P))}, {}, "validation labels .*row 5 is"),
        (P, {"eval_set": (X[:3], P)}, {}, "inconsistent numbers of samples"),
        (np.stack([Y, Y], axis=1), {}, {}, "1d array"),
        (np.eye(3, dtype=int)[Y], {}, {}, "1d array"),
        (np.eye(3, dtype=bool)[Y], {}, {}, "1d array"),
    ],
)
def test_what_is_no_probability_is_refused_with_the_reason(y, arguments, parameters, message):
    with pytest.raises(ValueError, match=message):
        model(**parameters).fit(X, y, **arguments)


def test_two_columns_of_one_name_are_refused():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="unique column names"):
        model().fit(X, pandas.DataFrame(P, columns=["a", "a", "b"]))


def test_column_names_that_cannot_be_sorted_are_refused_with_a_remedy():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"of one type that can be sorted; got \['a', 1, 'b'\]\. Make text of them"):
        model().fit(X, pandas.DataFrame(P, columns=["a", 1, "b"]))


def test_what_is_left_open_is_chosen_by_the_likeliest_classes():
    quick = {"epochs": 3, "finetune_epochs": 3, "min_updates": 10, "random_state": 0}
    tree = CrispTreeClassifier.from_flat(**quick).fit(X, P)
    assert tree.cv_results_
    assert "input_noise" in tree.best_params_
    assert (tree.predict(X) == P.argmax(axis=1)).mean() > 0.8


def test_probabilities_of_validation_rows_do_not_slow_down_a_fit_on_labels():
    fitted = model(early_stopping=True).fit(X, Y, eval_set=(X, P))
    assert fitted.history_[-1].validation_score is not None
