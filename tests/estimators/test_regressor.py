"""The regressor: numbers in the leaves, everything else as in the classifier."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator

import crisptree
from crisptree import CrispTreeRegressor, ModelFileError, StopTraining, TrainingOptions
from crisptree.targets.regression import RegressionEncoding
from tests.toys import plain_regressor, ridges

BRIEF = {"epochs": 5, "min_updates": 20, "finetune_epochs": 5}
WAYS = [
    {},
    {"algorithm": "em"},
    {"algorithm": "alternating", "l2": 1e-3},
    {"grow": "balanced"},
    {"split": "axis", "algorithm": "em", "epochs": 5, "min_updates": 40, "max_depth": 4},
    {"max_leaf_nodes": 4},
    {"grow": "cart"},
    {"l1": 0.01, "input_noise": 0.3},
    {"monotonic_cst": {0: 1, 1: -1}, "max_features_per_split": 2},
    {"early_stopping": True, "ccp_alpha": "auto", "shrinkage": "auto"},
]


@pytest.fixture(scope="module")
def rows():
    return ridges(400)


@pytest.fixture(scope="module")
def model(rows):
    return plain_regressor().fit(*rows)


@pytest.mark.parametrize("way", WAYS)
def test_a_regression_tree_trains_with_every_option(way, rows):
    assert plain_regressor(**way).fit(*rows).score(*ridges(400, seed=1)) > 0.5


def test_oblique_steps_are_found_where_thresholds_and_planes_fail(rows, model):
    X, y = ridges(2000, seed=1)
    baselines = [LinearRegression().fit(*rows), DecisionTreeRegressor(max_depth=3, random_state=0).fit(*rows)]
    assert model.score(X, y) > 0.8 > 0.7 > max(baseline.score(X, y) for baseline in baselines)


def test_a_leaf_predicts_mean_and_spread_of_its_training_rows(rows, model):
    X, y = rows
    leaf = model.leaf_indices(X)
    for number in np.unique(leaf):
        own = y[leaf == number]
        assert model.predict(X[leaf == number])[0] == pytest.approx(own.mean())
        assert model.predict_std(X[leaf == number])[0] == pytest.approx(max(own.std(), np.sqrt(1e-3) * y.std()))


def test_units_of_y_change_nothing_but_the_units(rows, model):
    X, y = rows
    other = plain_regressor().fit(X, 1e9 + 1e3 * y)
    np.testing.assert_array_equal(other.leaf_indices(X), model.leaf_indices(X))
    np.testing.assert_allclose(other.predict(X), 1e9 + 1e3 * model.predict(X))
    np.testing.assert_allclose(other.predict_std(X), 1e3 * model.predict_std(X), rtol=1e-6)


def test_several_outputs_share_one_tree():
    X, y = ridges(400)
    both = np.stack([y, -3 * y + 7], axis=1)
    model = plain_regressor().fit(X, both)
    assert model.n_outputs_ == 2
    assert model.predict(X).shape == model.predict_std(X).shape == model.soft_predict(X).shape == (400, 2)
    assert model.score(X, both) > 0.9
    np.testing.assert_allclose(model.predict(X)[:, 1], -3 * model.predict(X)[:, 0] + 7, rtol=1e-6)


def test_a_weight_of_two_is_the_row_twice_and_of_zero_is_not_there(rows):
    X, y = rows
    weight = np.where(np.arange(400) < 100, 0.0, np.where(np.arange(400) < 200, 2.0, 1.0))
    repeated = np.repeat(np.arange(400), weight.astype(int))
    # One batch per node and epoch, so that both see the same steps.
    one, other = (plain_regressor(batch_size=10_000, min_updates=0) for _ in range(2))
    one.fit(X, y, weight)
    other.fit(X[repeated], y[repeated])
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-3)


def test_intervals_have_their_nominal_coverage():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.3, 1, (4000, 1)) * rng.choice([-1, 1], (4000, 1))  # a gap, in which the split lies
    y = np.where(X[:, 0] > 0, 5.0, 0.0) + np.where(X[:, 0] > 0, 2.0, 0.5) * rng.normal(size=4000)
    model = plain_regressor(max_depth=1).fit(X, y)
    for coverage in (0.5, 0.9):
        low, high = model.predict_interval(X, coverage)
        assert np.mean((y >= low) & (y <= high)) == pytest.approx(coverage, abs=0.03)
    with pytest.raises(ValueError, match="`coverage` must be a number between 0 and 1"):
        model.predict_interval(X, 1.0)


def test_intervals_of_overfitted_trees_are_as_wide_as_held_out_errors(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 8))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=400)
    X_test = X[200:]
    model = CrispTreeRegressor(random_state=0).fit(X[:200], y[:200])
    assert model.interval_scale_ > 1
    low, high = model.predict_interval(X_test)
    deviation = (high - low) / 2 / model.predict_std(X_test)
    np.testing.assert_allclose(deviation, 1.6448536 * model.interval_scale_, rtol=1e-6)
    variance = (np.square(model.predict_std(X[:200])).mean() * model.interval_scale_**2) / y[:200].var()
    assert variance == pytest.approx(1 - max(trial.score for trial in model.cv_results_), rel=1e-3)
    model.save(tmp_path / "model.crisp")
    np.testing.assert_array_equal(crisptree.load(tmp_path / "model.crisp").predict_interval(X_test)[0], low)


def test_the_soft_tree_is_near_the_crisp_one(rows, model):
    X, _ = rows
    assert np.corrcoef(model.soft_predict(X, steepness=1e4), model.predict(X))[0, 1] > 0.99
    assert model.soft_predict(X).std() < model.predict(X).std()


def test_a_model_file_gives_the_same_numbers(rows, model, tmp_path):
    X, y = rows
    for one in (model, plain_regressor(shrinkage=3.0).fit(X, np.stack([y, y**2], axis=1))):
        one.save(tmp_path / "model.crisp")
        again = crisptree.load(tmp_path / "model.crisp")
        assert isinstance(again, CrispTreeRegressor)
        assert again.get_params()["shrinkage"] == one.shrinkage
        for ask in ("predict", "predict_std", "soft_predict"):
            np.testing.assert_array_equal(getattr(again, ask)(X), getattr(one, ask)(X))
        np.testing.assert_array_equal(again.truncate(1).predict(X), one.truncate(1).predict(X))


def test_a_file_whose_leaves_are_of_another_kind_is_refused(model, tmp_path):
    from crisptree.persistence.model_file import Section, read, write

    model.save(tmp_path / "model.crisp")
    file = read(tmp_path / "model.crisp", ["estimator", "tree", "statistics", "greedy", "greedy_statistics"])
    sections = dict(file.sections)
    sections["tree"] = Section({"target": "classes"}, sections["tree"].arrays)
    write(tmp_path / "model.crisp", sections)
    with pytest.raises(ModelFileError):
        crisptree.load(tmp_path / "model.crisp")


def test_a_warm_start_grows_on_in_the_same_units(rows):
    X, y = rows
    model = plain_regressor(warm_start=True, max_depth=1).fit(X, y)
    before = model.score(X, y)
    model.set_params(max_depth=3).fit(X, y)
    assert model.get_depth() == 3
    assert model.score(X, y) > before
    with pytest.raises(ValueError, match="as many outputs"):
        model.fit(X, np.stack([y, y], axis=1))


def test_pruning_goes_by_the_variance(model):
    path = model.cost_complexity_pruning_path()
    assert path.n_leaves[-1] == 1
    assert 0 < path.ccp_alphas[-1] < 1  # shares of the variance of y
    assert model.prune(path.ccp_alphas[-1]).predict(np.zeros((1, 4))) == pytest.approx(
        model.truncate(0).predict(np.zeros((1, 4)))
    )


def test_what_the_fit_chooses_is_judged_by_the_squared_error():
    X, y = load_diabetes(return_X_y=True)
    model = CrispTreeRegressor(
        training=TrainingOptions(epochs=3, finetune_epochs=3, min_updates=20), max_depth=3, random_state=0
    ).fit(X, y)
    assert {"input_noise", "l1", "shrinkage", "max_depth"} <= set(model.best_params_)
    assert model.score(X, y) > 0.3
    assert all(trial.score < 1 for trial in model.cv_results_)


def test_early_stopping_listens_to_validation_rows(rows):
    X, y = rows
    held = ridges(200, seed=5)
    model = plain_regressor(early_stopping=True).fit(X, y, eval_set=held)
    scores = [record.validation_score for record in model.history_ if record.phase == "finetune"]
    unit = RegressionEncoding.of_rows(y[:, None], np.ones(len(y))).unit[0]
    mean_square = np.mean((model.predict(held[0]) - held[1]) ** 2) / unit**2
    assert max(scores) == pytest.approx(1 - mean_square, abs=1e-4) or mean_square < 1 - max(scores)


def test_constant_numbers_give_one_leaf(rows):
    X, _ = rows
    model = plain_regressor().fit(X, np.full(400, 3.5))
    assert model.get_n_leaves() == 1
    assert (model.predict(X) == 3.5).all()
    assert (model.predict_std(X) == 0).all()
    assert model.predict_interval(X[:1]) == (3.5, 3.5)


def test_a_constant_output_beside_another_has_no_spread(rows, tmp_path):
    X, y = rows
    model = plain_regressor().fit(X, np.stack([y, np.full(400, 3.5)], axis=1))
    model.save(tmp_path / "m.crisp")
    for one in (model, crisptree.load(tmp_path / "m.crisp")):
        assert (one.predict(X)[:, 1] == 3.5).all()
        assert (one.predict_std(X)[:, 1] == 0).all()
        assert (one.predict_std(X)[:, 0] > 0).all()


def test_a_constant_output_may_be_no_longer_constant_in_a_warm_start(rows):
    X, y = rows
    model = plain_regressor(warm_start=True).fit(X, np.full(400, 3.5))
    assert model.fit(X, 3.5 + 0.1 * y).score(X, 3.5 + 0.1 * y) > 0.5


def test_sparse_rows_and_tables_are_taken():
    X, y = ridges(300)
    thin = sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    assert plain_regressor(scale="global").fit(thin, y).score(thin, y) > 0.5
    table = {"side": np.where(X[:, 0] > 0, "left", "right"), "x": X[:, 1].astype(float)}
    fitted = plain_regressor().fit(table, np.where(X[:, 0] > 0, 1.0, -1.0))
    assert fitted.score(table, np.where(X[:, 0] > 0, 1.0, -1.0)) > 0.99


def test_a_callback_ends_a_fit(rows):
    def stop(record):
        raise StopTraining

    assert plain_regressor(callbacks=[stop]).fit(*rows).get_n_leaves() == 1


def test_numbers_that_cannot_be_are_refused(rows):
    X, y = rows
    with pytest.raises(ValueError, match="NaN"):
        plain_regressor().fit(X, np.where(y > 2, np.nan, y))
    with pytest.raises(ValueError, match=r"at most 1e\+150"):
        plain_regressor().fit(X, y * 1e200)
    with pytest.raises(ValueError, match="validation numbers must have 1 outputs"):
        plain_regressor().fit(X, y, eval_set=(X, np.stack([y, y], axis=1)))


def test_a_clone_trains_the_same_bits(rows, model):
    assert np.array_equal(clone(model).fit(*rows).predict(rows[0]), model.predict(rows[0]))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize(
    "model",
    [
        CrispTreeRegressor(training=TrainingOptions(grow="cart", finetune_epochs=0), max_depth=3),
        pytest.param(
            plain_regressor(epochs=5, min_updates=20, finetune_epochs=5, random_state=None), marks=pytest.mark.slow
        ),
        pytest.param(CrispTreeRegressor.from_flat(**BRIEF), marks=pytest.mark.slow),
    ],
    ids=["CART", "oblique", "default"],
)
def test_no_check_of_scikit_learn_fails(model):
    results = check_estimator(model, on_fail=None, on_skip=None)
    assert len(results) > 40
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert not failed
