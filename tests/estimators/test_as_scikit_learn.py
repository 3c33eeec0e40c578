"""Values that scikit-learn's estimators take, and ours take in the same way."""

import datetime
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import crisptree
from crisptree import CrispForestClassifier, CrispSegmenter, CrispTreeWarning
from tests.toys import clouds, plain_regressor, plain_tree

QUICK = {"epochs": 3, "finetune_epochs": 0, "min_updates": 20, "random_state": 0, "n_jobs": 1}


def rows(n=90):
    X, y = clouds(n)
    return np.asarray(X, dtype=np.float32), np.asarray(y)


def leaf_sizes(model, X):
    return np.unique(model.leaf_indices(X), return_counts=True)[1]


@pytest.mark.parametrize("make", [plain_tree, plain_regressor], ids=["classifier", "regressor"])
@pytest.mark.parametrize("name", ["min_samples_split", "min_samples_leaf"])
def test_a_fraction_is_that_share_of_the_rows(make, name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(101, 3)).astype(np.float32)
    y = rng.integers(2, size=101)
    fraction = 0.13
    by_share, by_rows = (
        make(**QUICK, max_depth=6, **{name: value}).fit(X, y) for value in (fraction, math.ceil(fraction * 101))
    )
    np.testing.assert_array_equal(by_share.leaf_indices(X), by_rows.leaf_indices(X))
    assert by_share.get_n_leaves() < make(**QUICK, max_depth=6).fit(X, y).get_n_leaves()
    if name == "min_samples_leaf":
        assert leaf_sizes(by_share, X).min() >= 14


def test_a_small_fraction_still_splits_two_rows():
    X, y = np.array([[0.0], [1.0]], dtype=np.float32), np.array([0, 1])
    assert plain_tree(**QUICK, min_samples_split=1e-6, min_samples_leaf=1e-6).fit(X, y).get_n_leaves() == 2


@pytest.mark.parametrize(
    "bad",
    [{"min_samples_split": 0.0}, {"min_samples_split": 1.5}, {"min_samples_leaf": 1.0}, {"min_samples_leaf": -0.1}],
    ids=str,
)
def test_other_fractions_are_refused(bad):
    with pytest.raises(ValueError, match=r"fraction of the rows above 0\.0 and"):
        plain_tree(**bad).fit(*rows())


def test_fractions_hold_for_batches_forests_pixels_and_choices():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 2)).astype(np.float32), rng.integers(2, size=200)

    def batches():
        yield X[:100], y[:100]
        yield X[100:], y[100:]

    model = plain_tree(**QUICK, algorithm="likelihood", max_depth=6, min_samples_leaf=0.2).fit(
        lambda: iter([(X[:100], y[:100]), (X[100:], y[100:])])
    )
    assert len(leaf_sizes(model, X)) > 1
    assert leaf_sizes(model, X).min() >= 40
    settled = {"split": "oblique", "input_noise": 0.0, "l1": 0.0}
    forest = CrispForestClassifier.from_flat(
        n_estimators=2, max_depth=6, **QUICK, **settled, bootstrap=False, min_samples_leaf=0.2
    )
    forest.fit(X, y)
    assert all(leaf_sizes(tree, X).min() >= 40 for tree in forest.estimators_)
    image = rng.normal(size=(20, 20))
    segmenter = CrispSegmenter.from_flat(window=3, max_depth=4, **QUICK, min_samples_leaf=0.2).fit(
        image, (image > 0).astype(int)
    )
    assert np.unique(segmenter.leaf_indices(image), return_counts=True)[1].min() >= 80
    numbers = y + 0.1 * X[:, 0]
    chosen = crisptree.CrispTreeRegressor.from_flat(
        min_samples_leaf=0.2, **(QUICK | {"max_depth": 2, "epochs": 2})
    ).fit(X, numbers)
    assert leaf_sizes(chosen, X).min() >= 40


@pytest.mark.parametrize("verbose", [-1, np.int64(-3), False])
def test_a_verbosity_below_zero_shows_nothing(verbose, capsys):
    plain_tree(**QUICK, max_depth=1, verbose=verbose).fit(*rows())
    assert capsys.readouterr() == ("", "")


def test_validation_is_one_pair_or_a_list_of_one():
    X, y = rows()
    alone = plain_tree(**(QUICK | {"finetune_epochs": 3}), early_stopping=True).fit(X, y, eval_set=(X, y))
    listed = plain_tree(**(QUICK | {"finetune_epochs": 3}), early_stopping=True).fit(X, y, eval_set=[(X, y)])
    assert alone.history_ == listed.history_
    for make in (plain_tree, plain_regressor):
        with pytest.raises(ValueError, match=r"`eval_set` must be one pair \(X, y\); got a list of 2 pairs"):
            make(**QUICK).fit(X, y, eval_set=[(X, y), (X, y)])
        with pytest.raises(ValueError, match=r"`eval_set` must be a pair \(X, y\); got tuple of length 3"):
            make(**QUICK).fit(X, y, eval_set=(X, y, y))
    # Rows of two numbers and two labels are a pair, however they are written.
    plain_tree(**QUICK).fit(X[:, :2], y, eval_set=[((0.0, 1.0), (1.0, 0.0)), (y[0], y[1])])


@pytest.mark.parametrize("make", [plain_tree, plain_regressor], ids=["classifier", "regressor"])
def test_rows_may_be_dictionaries(make):
    X, y = rows()
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    for table in (frame, frame.assign(c=np.where(X[:, 0] > 0, "yes", "no"))):
        model = make(**QUICK, max_depth=2).fit(table, y)
        expected = model.predict(table)
        np.testing.assert_array_equal(model.predict(table.to_dict("records")), expected)
        np.testing.assert_array_equal(model.predict(table.to_dict("list")), expected)
        records = [dict(reversed(row.items())) for row in table.to_dict("records")]
        np.testing.assert_array_equal(model.predict(records), expected)
        by_rows, by_columns = (make(**QUICK, max_depth=2).fit(table.to_dict(form), y) for form in ("records", "list"))
        np.testing.assert_array_equal(by_rows.predict(table), by_columns.predict(table))


def test_dictionaries_that_do_not_fit_are_refused_with_the_reason():
    X, y = rows()
    model = plain_tree(**QUICK, max_depth=2).fit(pd.DataFrame(X[:, :2], columns=["a", "b"]), y)
    with pytest.raises(ValueError, match="it has no 'b'"):
        model.predict([{"a": 1.0}])
    with pytest.warns(CrispTreeWarning, match="column 'b': 1 missing value, none in training"):
        model.predict([{"a": 1.0, "b": 2.0}, {"a": 1.0}])
    with pytest.raises(ValueError, match="columns had no names; got dictionaries"):
        plain_tree(**QUICK, max_depth=2).fit(X, y).predict([{"a": 1.0}])


LABELS = [
    np.array([b"left", b"right\xff", b"up"]),
    np.array(["2020-01-01", "2021-06-01", "2022-01-01"], dtype="datetime64[D]"),
    np.array(["2020-01-01", "2021-06-01", "2022-01-01"], dtype="datetime64[ns]"),
    np.array([1, 5, 9], dtype="timedelta64[h]"),
]


@pytest.mark.parametrize("names", LABELS, ids=lambda names: str(names.dtype))
def test_dates_and_bytes_are_classes_as_for_scikit_learn(names, tmp_path):
    X, y = rows()
    labels = names[y % 3]
    model = plain_tree(**QUICK, max_depth=3, class_weight="balanced").fit(X, labels, eval_set=(X, labels))
    other = DecisionTreeClassifier(max_depth=3).fit(X, labels)
    np.testing.assert_array_equal(model.classes_, other.classes_)
    assert model.predict(X).dtype == other.predict(X).dtype
    model.save(tmp_path / "model.crisp")
    loaded = crisptree.load(tmp_path / "model.crisp")
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_dates_of_another_unit_are_the_same_classes():
    X, y = rows()
    days = np.array(["2020-01-01", "2021-06-01", "2022-01-01"], dtype="datetime64[D]")[y % 3]
    model = plain_tree(**(QUICK | {"finetune_epochs": 2}), max_depth=2).fit(
        X, days, eval_set=(X, days.astype("datetime64[ns]"))
    )
    assert model.history_[-1].validation_score == pytest.approx(np.mean(model.predict(X) == days))


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (np.array([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)], dtype=object), "datetime64"),
        (np.array([b"a", b"b"], dtype=object), "holds bytes"),
        (np.array(["NaT", "2020-01-01"], dtype="datetime64[D]"), "row 0 has none"),
    ],
    ids=["dates", "bytes", "NaT"],
)
def test_labels_that_scikit_learn_refuses_are_refused_with_a_remedy(labels, reason):
    X, _ = rows()
    with pytest.raises(ValueError, match=reason):
        plain_tree(**QUICK).fit(X, np.resize(labels, len(X)))
