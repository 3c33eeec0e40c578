"""Weights, targets and model files whose sums or predictions would overflow are refused, never NaN in silence."""

import numpy as np
import pytest

import crisptree
from crisptree import (
    CrispForestClassifier,
    CrispForestRegressor,
    CrispSegmenter,
    CrispTreeClassifier,
    CrispTreeRegressor,
    ModelFileError,
)
from crisptree.data.batches import Batches
from crisptree.estimators.loading import KNOWN
from crisptree.persistence.model_file import read, write
from tests.toys import clouds, ridges

QUICK = {"max_depth": 2, "epochs": 4, "finetune_epochs": 4, "min_updates": 10, "input_noise": 0.5, "l1": 0.0}
QUICK |= {"random_state": 0, "split": "oblique"}
TREE = QUICK | {"shrinkage": 0.0}
N_ROWS = 120
X, CLASSES = clouds(N_ROWS)
NUMBERS = ridges(N_ROWS, n_features=X.shape[1])[1]
REFUSED = "must add up to 1e-100 to 1e\\+100"


def fit_batches(kind, y):
    return lambda weight: kind.from_flat(**TREE).fit(Batches.from_arrays(X, y, weight, at_once=50))


def partial_fit_twice(kind, y, **first):
    def fit(weight):
        return kind.from_flat(**TREE).partial_fit(X, y, **first).partial_fit(X, y, sample_weight=weight)

    return fit


FITS = {
    "classifier": lambda weight: CrispTreeClassifier.from_flat(**TREE).fit(X, CLASSES, weight),
    "classifier, balanced": lambda weight: CrispTreeClassifier.from_flat(**TREE, class_weight="balanced").fit(
        X, CLASSES, weight
    ),
    "classifier, linear leaves": lambda weight: CrispTreeClassifier.from_flat(**TREE, leaf_model="linear").fit(
        X, CLASSES, weight
    ),
    "classifier, partial_fit": partial_fit_twice(CrispTreeClassifier, CLASSES, classes=[0, 1, 2]),
    "classifier, batches": fit_batches(CrispTreeClassifier, CLASSES),
    "regressor": lambda weight: CrispTreeRegressor.from_flat(**TREE).fit(X, NUMBERS, weight),
    "regressor, linear leaves": lambda weight: CrispTreeRegressor.from_flat(**TREE, leaf_model="linear").fit(
        X, NUMBERS, weight
    ),
    "regressor, partial_fit": partial_fit_twice(CrispTreeRegressor, NUMBERS),
    "regressor, batches": fit_batches(CrispTreeRegressor, NUMBERS),
    "forest of classifiers": lambda weight: CrispForestClassifier.from_flat(**QUICK, n_estimators=3).fit(
        X, CLASSES, weight
    ),
    "forest of regressors": lambda weight: CrispForestRegressor.from_flat(**QUICK, n_estimators=3).fit(
        X, NUMBERS, weight
    ),
    "table": lambda weight: CrispTreeClassifier.from_flat(**TREE).fit(
        {"a": X[:, 0], "b": np.array(["x", "y"])[np.arange(N_ROWS) % 2]}, CLASSES, weight
    ),
}


def predictions(model):
    rows = {"a": X[:, 0], "b": np.array(["x", "y"])[np.arange(N_ROWS) % 2]} if "encoder_" in model.__dict__ else X
    return model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows)


BATCHED = [kind for kind in FITS if "batches" in kind]


@pytest.mark.parametrize("scale", [1e307, 1e200, 1e99, 1e-103, 1e-310])
@pytest.mark.parametrize("kind", BATCHED)
def test_weights_of_batches_whose_sum_is_out_of_bounds_are_refused(kind, scale):
    with pytest.raises(ValueError, match=REFUSED):
        FITS[kind](np.full(N_ROWS, scale))


@pytest.mark.parametrize("kind", FITS)
def test_predictions_depend_on_the_ratios_of_weights_only(kind):
    weight = 1.0 + np.arange(N_ROWS) % 2
    if "partial_fit" in kind:  # ratios to the weights of the first call count too, unless these are negligible
        expected, scales = predictions(FITS[kind](1e90 * weight)), (2.0**700, 2.0**1022)
    else:
        expected, scales = predictions(FITS[kind](weight)), (2.0**1022, 2.0**300, 2.0**-300, 2.0**-1022, 2.0**-1073)
    for scale in scales:
        if kind not in BATCHED or 1e-100 < scale < 1e100:
            np.testing.assert_allclose(predictions(FITS[kind](scale * weight)), expected, atol=1e-9)


@pytest.mark.parametrize("kind", FITS)
def test_weights_of_very_different_size_give_finite_predictions(kind):
    weight = np.choose(np.arange(N_ROWS) // 3 % 3, [1e-310, 1e-40, 1.0])
    assert np.isfinite(predictions(FITS[kind](weight))).all()


@pytest.mark.parametrize("factor", [1e250, 1e308])
def test_class_weights_that_overflow_are_refused(factor):
    with pytest.raises(ValueError, match=REFUSED):
        CrispTreeClassifier.from_flat(**TREE, class_weight={0: factor, 1: 1.0, 2: 1.0}).fit(
            X, CLASSES, np.full(N_ROWS, 1e90)
        )
    with pytest.raises(ValueError, match=REFUSED):
        CrispTreeClassifier.from_flat(**TREE, class_weight={0: factor}).fit(Batches.from_arrays(X, CLASSES, at_once=50))


@pytest.mark.parametrize("factor", [1e307, 1e-307])
def test_the_segmenter_depends_on_the_ratios_of_class_weights_only(factor):
    images = np.random.default_rng(0).normal(size=(2, 12, 12))
    found = []
    for scale in (1.0, factor):
        model = CrispSegmenter(max_depth=1, window=3, class_weight={0: scale, 1: 2 * scale}, random_state=0)
        found.append(model.fit(images, (images > 0).astype(int)).predict_proba(images))
    np.testing.assert_allclose(*found, atol=1e-9)


def test_a_class_of_nearly_no_weight_cannot_be_balanced():
    weight = np.where(CLASSES == 0, 5e-324, 1.0)
    with pytest.raises(ValueError, match=REFUSED):
        CrispTreeClassifier.from_flat(**TREE, class_weight="balanced").fit(X, CLASSES, weight)


@pytest.mark.parametrize("batches", [False, True])
def test_a_sum_of_weighted_squares_of_y_that_overflows_is_refused(batches):
    y, weight = 1e149 * NUMBERS / np.abs(NUMBERS).max(), np.full(N_ROWS, 1e20)
    model = CrispTreeRegressor.from_flat(**TREE)
    with pytest.raises(ValueError, match="finite sum of weighted squares"):
        _ = model.fit(Batches.from_arrays(X, y, weight)) if batches else model.fit(X, y, weight)


def test_a_y_too_many_standard_deviations_away_is_refused():
    model = CrispTreeRegressor.from_flat(**TREE).partial_fit(X, NUMBERS)
    with pytest.raises(ValueError, match="within 1e\\+15 standard deviations"):
        model.partial_fit(X, 1e30 * NUMBERS)
    far, weight = NUMBERS.copy(), np.ones(N_ROWS)
    far[0], weight[0] = 1e40, 1e-100
    with pytest.raises(ValueError, match="within 1e\\+15 standard deviations"):
        CrispTreeRegressor.from_flat(**TREE).fit(X, far, weight)


def test_a_large_y_that_differs_by_rounding_only_is_constant():
    y = 1e100 * (1 + 1e-14 * NUMBERS / np.abs(NUMBERS).max())
    np.testing.assert_allclose(CrispTreeRegressor.from_flat(**TREE).fit(X, y).predict(X), 1e100, rtol=1e-12)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    models = {
        "constant": CrispTreeRegressor.from_flat(**TREE),
        "linear": CrispTreeRegressor.from_flat(**TREE, leaf_model="linear"),
        "forest": CrispForestRegressor.from_flat(**QUICK, n_estimators=2),
    }
    for name, model in models.items():
        model.fit(X, NUMBERS).save(folder / f"{name}.crisp")
    CrispTreeClassifier.from_flat(**TREE, leaf_model="linear").fit(X, CLASSES).save(folder / "classes.crisp")
    return folder


@pytest.mark.parametrize("value", [1e300, -1e300, 1.7e308, -1.7e308])
@pytest.mark.parametrize(
    ("kind", "section", "array"),
    [
        ("constant", "tree", "leaves"),
        *(("constant", "statistics", name) for name in ("y_center", "y_unit", "soft_leaves")),
        *(("linear", "tree", name) for name in ("linear_weight", "linear_bias", "linear_variance")),
        *(("classes", "tree", name) for name in ("linear_weight", "linear_bias")),
        ("forest", "member_1", "leaves"),
        ("forest", "member_1_statistics", "y_center"),
    ],
)
def test_a_file_whose_predictions_would_overflow_is_refused(files, tmp_path, kind, section, array, value):
    file = read(files / f"{kind}.crisp", KNOWN)
    values = file.sections[section].arrays[array].copy()
    values.flat[0] = values.flat[-1] = abs(value) if "variance" in array or array == "y_unit" else value
    file.sections[section].arrays[array] = values
    write(tmp_path / "x.crisp", file.sections)
    with pytest.raises(ModelFileError):
        crisptree.load(tmp_path / "x.crisp")


@pytest.mark.parametrize("kind", ["constant", "linear"])
def test_a_model_of_the_largest_y_is_saved_and_loaded(tmp_path, kind):
    y = 1e150 * NUMBERS / np.abs(NUMBERS).max()
    model = CrispTreeRegressor.from_flat(**TREE, leaf_model=kind).fit(1e-30 * X, y)
    model.save(tmp_path / "x.crisp")
    again = crisptree.load(tmp_path / "x.crisp").predict(1e-30 * X)
    assert np.isfinite(again).all()
    assert np.array_equal(again, model.predict(1e-30 * X))
