"""Bad input either works or raises one error that says what must hold, what came and what to do."""

from contextlib import suppress

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.exceptions import NotFittedError
from torch import nn

from crisptree import CrispTreeRegressor
from crisptree.learning.loop import DivergenceError
from tests.toys import clouds, plain_tree

QUICK = {"max_depth": 3, "epochs": 4, "finetune_epochs": 4, "min_updates": 10, "random_state": 0}
X, Y = clouds(60)


def fit(X=X, y=Y, fit_arguments=None, **parameters):
    return plain_tree(**QUICK | parameters).fit(X, y, **(fit_arguments or {}))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"split": "curved"}, r"`split` must be 'auto', 'oblique', 'axis', 'conv' or a function.*got 'curved'"),
        ({"algorithm": "sgd"}, r"`algorithm` must be one of 'em', 'alternating', 'likelihood'; got 'sgd'"),
        ({"grow": "wild"}, "`grow` must be 'greedy', 'balanced', 'cart' or a function .*; got 'wild'"),
        ({"grow": lambda context, tree: tree, "split": "axis"}, "`split` must be 'auto' or 'oblique' for grow=<"),
        ({"max_depth": -1}, r"`max_depth` must be 'auto' or a whole number of at least 0 or None.*got -1"),
        ({"max_depth": 2.5}, "`max_depth` must be 'auto' or a whole number"),
        ({"max_depth": True}, "`max_depth` must be 'auto' or a whole number"),
        ({"max_leaf_nodes": 1}, "`max_leaf_nodes` must be a whole number of at least 2"),
        ({"min_samples_split": 1}, "`min_samples_split`"),
        ({"min_weight_fraction_leaf": 0.51}, "`min_weight_fraction_leaf` must be .* at most 0.5"),
        ({"epochs": 0}, "`epochs`"),
        ({"learning_rate": 0}, "`learning_rate` must be .auto. or a number above 0"),
        ({"learning_rate": float("nan")}, "`learning_rate`"),
        ({"batch_size": 0}, "`batch_size`"),
        ({"steepness": -1.0}, "`steepness`"),
        ({"learning_rate_decay": None}, "`learning_rate_decay` must be one of 'none', 'linear', 'cosine'; got None"),
        ({"annealing": "cold"}, "`annealing` must be one of 'linear', 'geometric'"),
        ({"l1": -0.1}, "`l1`"),
        ({"spatial_penalty": 0.1}, "`spatial_penalty` must be 0 for rows that are no images; .* `image_shape`"),
        (
            {"spatial_penalty": 0.1, "split": "axis", "image_shape": (5, 1)},
            "`spatial_penalty` must be 0 for split='axis'",
        ),
        ({"l1": 0.1, "split": lambda shape: None}, "`l1` must be 'auto' or 0 for split modules"),
        ({"split": "conv"}, "needs images of at least 16 × 16 pixels"),
        ({"annealing": "geometric", "steepness_step": 1e6}, "would take it to 1e.*Lower the step"),
        ({"leaf_prior": 1e39}, "`leaf_prior` must be a number at least 0 and below 1e"),
        (
            {"image_shape": (2, 2)},
            r"`image_shape` must have as many pixels .* got \(2, 2\) \(4 pixels\) for 5 features",
        ),
        ({"image_shape": (5,)}, "`image_shape` must be None, "),
        ({"scale": "log"}, "`scale` must be one of 'auto', 'feature', 'global', None"),
        ({"class_weight": "heavy"}, "`class_weight` must be None, 'balanced' or a dict"),
        ({"class_weight": {0: -1.0}}, "`class_weight` must hold finite numbers of at least 0"),
        ({"validation_fraction": 1.0}, "`validation_fraction`"),
        ({"early_stopping": "yes"}, "`early_stopping` must be True or False"),
        ({"n_jobs": 0}, "`n_jobs`"),
        ({"device": "meta"}, "`device` must be 'auto', 'cpu' or a device that torch finds"),
        ({"device": "quantum"}, "`device` must be 'auto', 'cpu' or a device that torch finds"),
        ({"callbacks": print}, "`callbacks` must be None or a list"),
        (
            {"grow": "balanced", "max_depth": None},
            "`max_depth` must be 'auto' or a number of at most 16 for grow",
        ),
        (
            {"grow": "balanced", "max_depth": 40},
            "`max_depth` must be 'auto' or a number of at most 16 for grow",
        ),
        ({"grow": "balanced", "max_leaf_nodes": 4}, "`max_leaf_nodes` must be None for grow='balanced'"),
        ({"grow": "balanced", "warm_start": True}, "`warm_start` must be False for grow='balanced'"),
    ],
)
def test_a_wrong_parameter_is_named_with_what_must_hold_and_what_came(parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(**parameters)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_values_that_are_not_finite_numbers_are_refused(value):
    broken = X.astype(np.float64)
    broken[3, 2] = value
    with pytest.raises(ValueError, match=r"X: column 'x2' must hold finite numbers; row 3 has .*(NaN|infinity)"):
        fit(X=broken, categorical_features=None)
    with pytest.raises(ValueError, match=r"X: column 'x2' must hold finite numbers; row 3 has .*(NaN|infinity)"):
        fit(categorical_features=None).predict(broken)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"X": np.zeros((0, 5)), "y": []}, ValueError, "0 sample"),
        ({"X": np.zeros((60, 0))}, ValueError, "0 feature"),
        ({"X": X[0]}, ValueError, "1D array"),
        ({"X": X.reshape(12, 5, 5, 1, 1), "y": Y[:12]}, ValueError, "dim 5"),
        ({"y": Y[:-1]}, ValueError, "inconsistent numbers of samples"),
        ({"y": None}, ValueError, "requires y to be passed"),
        ({"y": np.linspace(0, 1, 60)}, ValueError, "continuous"),
        ({"y": np.stack([Y, Y], axis=1)}, ValueError, "1d array"),
        (
            {"X": sparse.csr_matrix(X), "split": "axis"},
            ValueError,
            "`split` must be .* for sparse rows",
        ),
        (
            {"X": np.array([["a"] * 5] * 60), "categorical_features": None},
            ValueError,
            "column 'x0' must hold .* row 0 has 'a'",
        ),
        ({"fit_arguments": {"sample_weight": -np.ones(60)}}, ValueError, "[Nn]egative"),
        ({"fit_arguments": {"sample_weight": np.zeros(60)}}, ValueError, "positive weight|all zero|zero"),
        ({"fit_arguments": {"sample_weight": np.ones(59)}}, ValueError, "sample_weight.shape"),
        ({"fit_arguments": {"eval_set": (X, Y + 5)}}, ValueError, "must be among the training classes"),
        ({"fit_arguments": {"eval_set": (X[:, :3], Y)}}, ValueError, "3 features"),
        ({"fit_arguments": {"eval_set": X}}, ValueError, r"must be a pair \(X, y\)"),
    ],
)
def test_wrong_rows_labels_and_weights_are_refused_with_the_reason(arguments, error, message):
    with pytest.raises(error, match=message):
        fit(**arguments)


def test_predicting_before_fitting_is_refused():
    for method in ("predict", "predict_proba", "apply", "decision_path", "soft_predict_proba"):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(plain_tree(), method)(X)
    for method in ("get_depth", "get_n_leaves", "before_finetuning"):
        with pytest.raises(NotFittedError):
            getattr(plain_tree(), method)()


def test_wrong_or_reordered_columns_are_refused_by_name():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    model = fit(X=frame)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("edcba")])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="4 features"):
        fit().predict(X[:, :4])


def test_a_warm_start_on_other_data_is_refused():
    pandas = pytest.importorskip("pandas")
    model = fit(warm_start=True)
    with pytest.raises(ValueError, match="X has 4 features"):
        model.fit(X[:, :4], Y)
    with pytest.raises(ValueError, match="same classes"):
        model.fit(X, Y + 1)
    frame = pandas.DataFrame(X, columns=list("abcde"))
    named = fit(X=frame, warm_start=True)
    with pytest.raises(ValueError, match="feature names"):
        named.fit(frame[list("edcba")], Y)
    assert model.predict(X).shape == named.predict(frame).shape  # a refusal leaves the tree as it was


@pytest.mark.parametrize(
    ("first", "then", "message"),
    [
        ({}, {"max_depth": 1}, "`max_depth` must be at least [23] with warm_start"),
        ({"max_leaf_nodes": 3}, {"max_leaf_nodes": 2}, "`max_leaf_nodes` must be at least 3 with warm_start"),
        ({}, {"split": "axis"}, "same kind of split.*several"),
        ({}, {"split": lambda shape: nn.Linear(shape[0], 1)}, "same kind of split"),
        ({"split": lambda shape: nn.Linear(shape[0], 1)}, {"split": "oblique"}, "same kind of split"),
        ({}, {"training__early_stopping": True, "random_state": None}, "`random_state` must be a whole number"),
    ],
)
def test_a_warm_start_to_a_smaller_tree_or_another_kind_of_split_is_refused(first, then, message):
    model = fit(warm_start=True, **first)
    with pytest.raises(ValueError, match=message):
        model.set_params(**then).fit(X, Y)


def test_one_class_only_gives_a_single_leaf():
    model = fit(y=np.full(60, "only"))
    assert model.get_n_leaves() == 1
    assert set(model.predict(X)) == {"only"}
    assert model.predict_proba(X).tolist() == [[1.0]] * 60
    assert model.soft_predict_proba(X).tolist() == [[1.0]] * 60
    assert model.decision_path(X).shape == (60, 1)


def test_a_depth_of_zero_gives_a_single_leaf_with_the_class_frequencies():
    model = fit(max_depth=0)
    assert (model.get_depth(), model.get_n_leaves()) == (0, 1)
    np.testing.assert_allclose(model.predict_proba(X[:1]), [[1 / 3, 1 / 3, 1 / 3]])


def test_fewer_rows_than_leaves_are_enough():
    model = fit(X=X[:4], y=Y[:4], max_depth=8)
    assert model.get_n_leaves() <= 4
    assert fit(X=X[:1], y=Y[:1]).get_n_leaves() == 1


def test_columns_constant_in_training_get_weight_zero():
    padded = np.concatenate([X, np.full((60, 1), 7.0), np.zeros((60, 1))], axis=1)
    for scale in ("feature", "global", None):
        model = fit(X=padded, scale=scale)
        assert not model.tree_.weight[:, 5:].any()
        moved = padded.copy()
        moved[:, 5:] = 1e6
        assert np.array_equal(model.leaf_indices(moved), model.leaf_indices(padded))


def test_only_constant_columns_give_a_single_leaf():
    assert fit(X=np.ones((60, 3))).get_n_leaves() == 1


def test_duplicated_rows_with_different_labels_leave_both_labels_in_their_leaf():
    doubled = np.concatenate([X, X])
    labels = np.concatenate([Y, (Y + 1) % 3])
    model = fit(X=doubled, y=labels)
    tables = model.predict_proba(X)
    assert (tables[np.arange(60), Y] > 0).all()
    assert (tables[np.arange(60), (Y + 1) % 3] > 0).all()


@pytest.mark.parametrize("size", [1e-50, 1e-30, 1e30, 1e300])
def test_only_the_ratios_of_the_weights_matter(size):
    plain = fit(leaf_prior=0.0)
    weighted = fit(fit_arguments={"sample_weight": np.full(60, size)})
    assert np.array_equal(weighted.predict(X), plain.predict(X))


def test_columns_too_small_for_single_precision_count_as_constant():
    for scale in ("feature", "global", None):
        assert fit(X=X.astype(np.float64) * 1e-40, scale=scale).get_n_leaves() == 1


@pytest.mark.parametrize("steepness", [0.0, -1.0, float("nan"), "steep"])
def test_the_soft_tree_needs_a_positive_steepness(steepness):
    with pytest.raises(ValueError, match="`steepness` must be a number above 0"):
        fit().soft_predict_proba(X, steepness=steepness)


def test_a_row_far_from_those_of_training_has_soft_probabilities_all_the_same():
    far = np.full((1, 5), 1e30)
    assert np.isfinite(fit(X=X * 1e-20).soft_predict_proba(far)).all()


def test_training_does_not_depend_on_the_callers_torch_settings():
    expected = fit().tree_.weight
    with torch.no_grad():
        assert np.array_equal(fit().tree_.weight, expected)


@pytest.mark.parametrize("size", [1e30, 1e-30])
def test_huge_and_tiny_values_train_like_others(size):
    model = fit(X=X.astype(np.float64) * size)
    assert model.score(X.astype(np.float64) * size, Y) > 0.9
    mixed = X.astype(np.float64) * np.array([size, 1, 1 / size, 1, size])
    assert fit(X=mixed).score(mixed, Y) > 0.9


def test_one_feature_and_26_classes_work():
    rng = np.random.default_rng(0)
    y = np.arange(520) % 26
    column = (y + rng.normal(scale=0.1, size=520))[:, None]
    model = plain_tree(max_depth=6, epochs=10, finetune_epochs=5, random_state=0).fit(column, y)
    assert len(model.classes_) == 26
    assert model.score(column, y) > 0.5


class Square(nn.Linear):
    """A split feature without a value where its argument is negative."""

    def forward(self, x):
        return super().forward(x).sqrt()


def test_a_training_that_breaks_ends_in_an_error_that_names_phase_and_epoch():
    with pytest.raises(ValueError, match=r"growth at level 1 stopped in epoch 1 .* Lower learning_rate"):
        fit(split=lambda shape: Square(shape[0], 1))


def test_absurd_rates_and_penalties_end_in_a_tree_or_in_that_error_but_never_in_nan():
    for changes in ({"learning_rate": 1e29, "scale": None}, {"l2": 1e29}, {"l1": 1e29}, {"leaf_prior": 1e29}):
        with suppress(DivergenceError):
            assert np.isfinite(fit(X=X * 1e10, **changes).predict_proba(X)).all()


def test_early_stopping_needs_rows_to_hold_out():
    with pytest.raises(ValueError, match="at least 2 rows"):
        fit(X=X[:1], y=Y[:1], early_stopping=True)
    assert fit(X=X[:5], y=Y[:5], early_stopping=True).get_n_leaves() >= 1


DAYS = np.arange("2020-01-01", "2020-03-01", dtype="datetime64[D]")


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (DAYS, r"y must hold numbers; it holds dates or durations \(datetime64\[D\]\)\. Make numbers"),
        (DAYS - DAYS[0], r"y must hold numbers; it holds dates or durations \(timedelta64"),
        (["low", "high"] * 30, r"y must hold numbers; row 0 has 'low' \(str\)\. .*use CrispTreeClassifier"),
        (np.array([1.5] * 59 + ["?"], dtype=object), r"y must hold numbers; row 59 has '\?'"),
        ([1.0] * 7 + [None] * 53, "y must have a number in every row; row 7 has none"),
        ([[1.0, 2.0]] * 7 + [[np.nan, 1.0]] * 53, "y must have a number in every row; row 7 has none"),
        ([1.0] * 9 + [np.inf] * 51, "y must be finite; row 9 is not"),
        ([1.0] * 9, "got 60 rows of X and 9 of y"),
    ],
)
def test_a_regressor_reports_what_is_wrong_with_y(y, message):
    with pytest.raises(ValueError, match=message):
        CrispTreeRegressor(max_depth=1).fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            [2.0] * 3 + [1e200] * 57,
            r"beyond the whole numbers of 64 bits, such as 1e\+200 in row 3\. .* CrispTreeRegressor",
        ),
        (X[:, 0], r"y must hold classes; it holds numbers with fractions, such as .* in row 0\. .* CrispTreeRegressor"),
        (np.array([1.5] * 59 + ["?"], dtype=object), r"y must hold classes: .* holds float, str\. Make text of them"),
        ([1.0] * 9 + [np.inf] * 51, "y must be finite; row 9 is not"),
        ([0, 1] * 9, "got 60 rows of X and 18 of y"),
    ],
)
def test_a_classifier_reports_what_is_wrong_with_y(y, message):
    with pytest.raises(ValueError, match=message):
        fit(y=y)
