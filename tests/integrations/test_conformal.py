"""Intervals of regressions, and conformal prediction with leaves as Mondrian categories, on real tables."""

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from crisptree import CrispForestRegressor, CrispTreeClassifier, CrispTreeRegressor

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

COVERAGE = 0.9
SEEDS = (0, 1)
"""Of the splits into training and test rows; the method was made on seeds 30 and 31."""

MAX_ROWS = 520
"""Larger tables of the development suite are left out for time; 230_machine_cpu and others remain."""


@pytest.fixture(scope="module")
def all_splits():
    """Splits of the 12 regression tables of the development suite."""
    tables = pytest.importorskip("benchmarks.real_tables")
    try:
        found = [table for table in tables.read_tables(tables.find_source()) if table.task == tables.REGRESSION]
    except FileNotFoundError as error:
        pytest.skip(f"needs the development tables in CRISPTREE_DATA: {error}")
    assert len(found) == 12
    return {(table.name, seed): tables.split_rows(table, seed) for table in found for seed in SEEDS}


@pytest.fixture(scope="module")
def splits(all_splits):
    few = [split for (_, seed), split in all_splits.items() if seed == 0 and len(split.y_train) <= 0.75 * MAX_ROWS]
    assert len(few) >= 3
    return few


def share_inside(y, low, high):
    return float(((low <= y) & (y <= high)).mean())


def test_intervals_of_trees_are_calibrated_on_the_development_tables(all_splits):
    covered = {}
    for name, split in all_splits.items():
        model = CrispTreeRegressor(random_state=0).fit(split.X_train, split.y_train)
        covered[name] = share_inside(split.y_test, *model.predict_interval(split.X_test, COVERAGE))
    assert 0.87 <= np.mean([*covered.values()]) <= 0.94, covered
    assert min(covered.values()) > 0.75, covered


def test_intervals_of_forests_cover_on_average_what_they_say(splits):
    covered = []
    for split in splits:
        model = CrispForestRegressor(random_state=0).fit(split.X_train, split.y_train)
        covered.append(share_inside(split.y_test, *model.predict_interval(split.X_test, COVERAGE)))
    assert np.mean(covered) == pytest.approx(COVERAGE, abs=0.05), covered


def test_leaves_as_mondrian_categories_give_calibrated_intervals(splits):
    crepes = pytest.importorskip("crepes", reason="pip install crepes")
    covered = []
    for split in splits:
        X, X_calibration, y, y_calibration = train_test_split(
            split.X_train, split.y_train, random_state=0, test_size=0.4
        )
        model = CrispTreeRegressor(max_depth=2, min_samples_leaf=0.1, leaf_model="constant", random_state=0).fit(X, y)
        wrapped = crepes.WrapRegressor(model)
        wrapped.calibrate(X_calibration, y_calibration, mc=model.apply)
        covered.append(share_inside(split.y_test, *wrapped.predict_int(split.X_test, confidence=COVERAGE).T))
    assert np.mean(covered) >= COVERAGE - 0.02, covered


def test_mapie_takes_trees():
    regression = pytest.importorskip("mapie.regression", reason="pip install mapie")
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(900, 2))
    y = np.sin(X[:, 0]) + rng.normal(size=900) * 0.3
    model = CrispTreeRegressor(max_depth=3, random_state=0).fit(X[:300], y[:300])
    conformal = regression.SplitConformalRegressor(model, confidence_level=COVERAGE, prefit=True)
    _, intervals = conformal.conformalize(X[300:600], y[300:600]).predict_interval(X[600:])
    assert share_inside(y[600:], intervals[:, 0, 0], intervals[:, 1, 0]) >= COVERAGE - 0.05


def test_classes_of_a_leaf_are_calibrated_together():
    crepes = pytest.importorskip("crepes", reason="pip install crepes")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    y = np.where(X[:, 0] + rng.normal(size=1500) * np.where(X[:, 1] > 0, 1.0, 0.1) > 0, "yes", "no")
    model = CrispTreeClassifier(max_depth=2, leaf_model="constant", random_state=0).fit(X[:500], y[:500])
    wrapped = crepes.WrapClassifier(model)
    wrapped.calibrate(X[500:1000], y[500:1000], mc=model.apply)
    p_values = wrapped.predict_p(X[1000:])
    covered = p_values[np.arange(500), np.searchsorted(model.classes_, y[1000:])] > 1 - COVERAGE
    leaves = model.apply(X[1000:])
    for leaf in np.unique(leaves):
        members = leaves == leaf
        assert covered[members].mean() >= COVERAGE - 3 * np.sqrt(0.09 / members.sum()) - 0.02
