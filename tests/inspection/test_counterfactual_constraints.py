"""The nearest change under conditions, against brute force over all rows that the conditions allow."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification

from crisptree import CrispTreeClassifier, explain, load
from crisptree.encoding.preprocessing import Column, Preprocessing
from crisptree.inspection.counterfactual_search import project_onto_polytope
from crisptree.inspection.counterfactuals import search_counterfactual
from crisptree.structure import TreeStructure
from tests.inspection.models import fitted, with_linear_leaves, written
from tests.toys import clouds, plain_tree, random_structure

COLUMNS = (
    Column("calls", "number"),
    Column("plan", "category", categories=("basic", "gold", "silver")),
    Column("paid", "boolean"),
    Column("age", "number", mean=2.0, missing=True),
    Column("city", "category", categories=("a", "b"), missing=True),
)
"""Features 0; 1–3; 4; 5 and 6 (missing); 7, 8 and 9 (missing)."""

CALLS, AGES = range(-2, 6), range(0, 5)


def table_model(seed, structure=None, scale="feature"):
    """Random hyperplanes over all kinds of columns, with what training has seen."""
    rng = np.random.default_rng(seed)
    structure = structure or random_structure(6, seed)
    X = np.array(list(allowed_rows()), dtype=np.float32)
    weight = rng.normal(size=(structure.n_splits, 10))
    classes = [int(leaf) % 3 for leaf in rng.permutation(structure.n_leaves)]
    bias = rng.normal(size=structure.n_splits)
    model = written(structure, weight, bias, classes, n_classes=3, X=X, y=rng.integers(0, 3, len(X)), scale=scale)
    whole = np.ones(10, dtype=np.uint8)
    statistics = replace(model.tree_.statistics, lowest=X.min(0).astype(float), highest=X.max(0).astype(float))
    model.tree_ = replace(model.tree_, statistics=replace(statistics, whole=whole))
    model.preprocessing_ = Preprocessing(COLUMNS, target="churn")
    return model, X


def allowed_rows():
    """Every row that a table may hold where age and city are there, and where both are missing."""
    for calls, plan, paid, age, city in product(CALLS, np.eye(3), (0, 1), AGES, np.eye(2)):
        yield [calls, *plan, paid, age, 0, *city, 0]
    for calls, plan, paid in product(CALLS, np.eye(3), (0, 1)):
        yield [calls, *plan, paid, 2, 1, 0, 0, 1]


def brute_force(model, row, X, may_change, cost, to=None):
    """The smallest distance to a row of another class, over all rows that differ in what may change only."""
    own = model.predict(row[None])[0]
    X = X[(X[:, ~may_change] == row[~may_change]).all(axis=1)]
    seen = model.predict(X)
    other = X[seen != own] if to is None else X[seen == to]
    factor = model.tree_.statistics.scaling.factor * cost
    return np.linalg.norm((other - row.astype(np.float64)) * factor, axis=1).min(initial=np.inf)


@pytest.mark.parametrize("is_linear", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_no_allowed_row_is_nearer(seed, is_linear):
    model, X = table_model(seed, scale=("feature", None)[seed % 2])
    model = with_linear_leaves(model, seed) if is_linear else model
    rng = np.random.default_rng(seed)
    for row in X[rng.integers(0, len(X), 6)]:
        change = explain.find_counterfactual(model, row)
        may_change = np.ones(10, dtype=bool)
        may_change[[6, 9]] = False
        nearest = brute_force(model, row, X, may_change, np.ones(10))
        assert (change is None) == np.isinf(nearest)
        if change is not None:
            assert change.proven
            assert change.distance == pytest.approx(nearest, rel=1e-9)
            assert (change.x == X).all(axis=1).any()
            assert model.predict(change.x[None])[0] == change.predicted


@pytest.mark.parametrize("seed", range(8))
def test_none_is_nearer_with_columns_fixed_and_costs(seed):
    model, X = table_model(seed)
    rng = np.random.default_rng(seed)
    cost = np.array([1, 4, 4, 4, 1, 0.5, 0.5, 1, 1, 1])
    sides = [
        ({"fixed": ["plan", "age"]}, [0, 4, 7, 8]),
        ({"actionable": ["plan", 0]}, [0, 1, 2, 3]),
        ({"actionable": ["plan", "paid", "age"], "fixed": ["paid"]}, [1, 2, 3, 5]),
    ]
    for row, (conditions, features) in product(X[rng.integers(0, 300, 2)], sides):
        may_change = np.isin(np.arange(10), features)
        for to in (None, 1):
            change = explain.find_counterfactual(model, row, to=to, costs={"plan": 4, "age": 0.5}, **conditions)
            nearest = brute_force(model, row, X, may_change, cost, to)
            assert (np.inf if change is None else change.distance) == pytest.approx(nearest, rel=1e-9)
            assert change is None or (change.x[~may_change] == row[~may_change]).all()


def test_numbers_with_fractions_move_freely_between_the_bounds_seen_in_training():
    rng = np.random.default_rng(1)
    structure = TreeStructure.balanced(3)
    for seed in range(6):
        weight, bias = rng.normal(size=(7, 2)), rng.normal(size=7) / 2
        model = written(structure, weight, bias, [0, 1, 2, 0, 1, 2, 0, 1], n_classes=3)
        bounds = {"lowest": np.array([-1.0, -1.0]), "highest": np.array([1.0, 2.0])}
        statistics = replace(model.tree_.statistics, whole=np.array([0, 1], dtype=np.uint8), **bounds)
        model.tree_ = replace(model.tree_, statistics=statistics)
        row = np.array([rng.uniform(-1, 1), rng.integers(-1, 3)], dtype=np.float32)
        change = explain.find_counterfactual(model, row, rounded=False)
        fine = np.stack(np.meshgrid(np.linspace(-1, 1, 20_001), np.arange(-1, 3)), -1).reshape(-1, 2)
        other = fine[model.predict(fine.astype(np.float32)) != model.predict(row[None])]
        nearest = np.linalg.norm(other - row, axis=1).min(initial=np.inf)
        assert (np.inf if change is None else change.distance) == pytest.approx(nearest, abs=2e-4)
        assert change is None or (change.x[1] == np.rint(change.x[1]) and -1 <= change.x[0] <= 1), seed


def written_with_income(lowest, highest):
    """Two columns, income in tens of thousands and months; rows of more than 35,104.3 + 100 × months are 1."""
    model = written(TreeStructure.stump(), [[1.0, -100.0]], [-35_104.3], [0, 1])
    statistics = model.tree_.statistics
    spread = np.array([9_000.0, 10.0])
    scaling = replace(statistics.scaling, spread=spread, factor=1 / spread)
    bounds = {"lowest": np.array(lowest), "highest": np.array(highest), "whole": np.array([0, 1], dtype=np.uint8)}
    model.tree_ = replace(model.tree_, statistics=replace(statistics, scaling=scaling, **bounds))
    return model


def test_changes_are_round_numbers_within_the_bounds_of_training():
    model, row = written_with_income([0.0, 0.0], [90_000.0, 60.0]), [35_000.0, 0.0]
    exact = explain.find_counterfactual(model, row, actionable=["x0"], rounded=False)
    assert 35_104 < exact.x[0] < 35_105
    assert explain.find_counterfactual(model, row, actionable=["x0"]).x.tolist() == [35_200.0, 0.0]
    tight = written_with_income([0.0, 0.0], [35_118.0, 60.0])
    assert explain.find_counterfactual(tight, row, actionable=["x0"]).x.tolist() == [35_110.0, 0.0]
    assert explain.find_counterfactual(written_with_income([0.0, 0.0], [35_104.0, 60.0]), row, fixed=["x1"]) is None


def test_rounded_changes_keep_the_prediction_and_stay_in_the_range_of_training():
    X, y = make_classification(400, 6, n_informative=4, random_state=3)
    X = X * [1, 1000, 3, 0.01, 7, 50]
    model = CrispTreeClassifier(max_depth=4, leaf_model="constant", random_state=0).fit(X, y)
    lowest, highest = X.astype(np.float32).min(axis=0), X.astype(np.float32).max(axis=0)
    shorter = 0
    for row in X[:25]:
        exact, rounded = (explain.find_counterfactual(model, row, rounded=flag) for flag in (False, None))
        assert rounded.predicted == exact.predicted == model.predict(rounded.x[None])[0]
        assert ((rounded.x >= lowest) & (rounded.x <= highest)).all()
        assert rounded.distance <= 1.3 * exact.distance + 0.2
        digits = [sum(len(f"{value:g}") for _, _, value in change.columns) for change in (exact, rounded)]
        shorter += digits[1] < digits[0]
    assert shorter >= 20


def test_a_tie_between_integers_takes_the_next_feasible_row():
    model = written(TreeStructure.stump(), [[1.0, 1.0]], [-3.0], [0, 1])  # 3 itself goes left
    bounds = {"lowest": np.zeros(2), "highest": np.full(2, 5.0), "whole": np.ones(2, dtype=np.uint8)}
    model.tree_ = replace(model.tree_, statistics=replace(model.tree_.statistics, **bounds))
    there = explain.find_counterfactual(model, [1.0, 1.0])
    assert there.x.tolist() == [2.0, 2.0]
    assert explain.find_counterfactual(model, [2.0, 2.0]).x.sum() == 3
    assert explain.find_counterfactual(model, [5.0, 0.0], to=0, actionable=["x1"]) is None
    assert explain.find_counterfactual(model, [5.0, 0.0], to=0, actionable=["x0"]).x.tolist() == [3.0, 0.0]


def test_a_row_beyond_the_bounds_or_with_a_fraction_may_stay_so():
    model, _, _ = fitted(n_features=3)
    bounds = {"lowest": np.zeros(3), "highest": np.ones(3), "whole": np.ones(3, dtype=np.uint8)}
    model.tree_ = replace(model.tree_, statistics=replace(model.tree_.statistics, **bounds))
    row = np.array([7.0, 0.5, 1.0], dtype=np.float32)
    same = explain.find_counterfactual(model, row, to=model.predict(row[None])[0])
    assert np.array_equal(same.x, row)


def test_missing_values_stay_missing_and_levels_are_named():
    model, X = table_model(3)
    missing = X[X[:, 6] == 1]
    for row in missing[:10]:
        change = explain.find_counterfactual(model, row, top=9)
        assert change is None or (change.x[5:] == row[5:]).all()
    said = [explain.find_counterfactual(model, row, top=9) for row in X[:120:7]]
    plans = [entry for change in said if change for entry in change.columns if entry[0] == "plan"]
    assert plans
    assert all(before != after and {before, after} <= {"basic", "gold", "silver"} for _, before, after in plans)
    assert any("plan: basic -> " in str(change) for change in said)


def test_a_level_unseen_in_training_may_stay_or_become_a_seen_one():
    model, X = table_model(4)
    row = X[0].copy()
    row[1:4] = 0
    change = explain.find_counterfactual(model, row, actionable=["plan"])
    assert change is None or change.columns[0][:2] == ("plan", None)
    assert explain.find_counterfactual(model, row, to=model.predict(row[None])[0]).distance == 0


def test_a_fit_keeps_what_it_has_seen_and_so_does_its_file(tmp_path):
    model, X, y = fitted(n_features=3)
    X = X.copy()
    X[:, 1] = np.round(3 * X[:, 1])
    model.fit(X, y)
    model.save(tmp_path / "model.crisp")
    for one in (model, load(tmp_path / "model.crisp"), model.truncate(1), model.prune(0.01)):
        seen = one.tree_.statistics
        assert np.array_equal(seen.lowest, X.min(axis=0).astype(np.float64))
        assert np.array_equal(seen.highest, X.max(axis=0).astype(np.float64))
        assert seen.whole.tolist() == [0, 1, 0]
    change = explain.find_counterfactual(load(tmp_path / "model.crisp"), X[0])
    assert change.x[1] == np.rint(change.x[1])
    assert explain.find_counterfactual(model, X[0], as_in_training=False).distance <= change.distance


def test_many_integer_columns_end_in_a_counterfactual_that_is_not_proven(monkeypatch):
    rng = np.random.default_rng(0)
    n = 24
    weight = rng.normal(size=(3, n))
    model = written(TreeStructure.balanced(2), weight, [-9.1, -8.3, -8.7], [0, 0, 1, 2])
    bounds = {"lowest": np.full(n, -9.0), "highest": np.full(n, 9.0), "whole": np.ones(n, dtype=np.uint8)}
    model.tree_ = replace(model.tree_, statistics=replace(model.tree_.statistics, **bounds))
    monkeypatch.setattr(search_counterfactual, "__defaults__", (60,))
    change = explain.find_counterfactual(model, np.zeros(n))
    assert not change.proven
    assert "there may be a nearer one" in str(change)
    assert model.predict(change.x[None])[0] == change.predicted != 0
    assert np.array_equal(change.x, np.rint(change.x))


def test_unknown_columns_and_costs_that_cannot_be_are_refused_with_a_sentence():
    model, X = table_model(0)
    with pytest.raises(ValueError, match=r"`fixed` must name columns of the table, 'calls', 'plan', .*got 'colour'"):
        explain.find_counterfactual(model, X[0], fixed=["colour"])
    with pytest.raises(TypeError, match=r"`actionable` must be a list of columns; got 'plan'. Write \['plan'\]"):
        explain.find_counterfactual(model, X[0], actionable="plan")
    with pytest.raises(ValueError, match=r"`costs` must be finite numbers above 0; got 0 for 'plan'"):
        explain.find_counterfactual(model, X[0], costs={"plan": 0})
    with pytest.raises(TypeError, match="`costs` must be a dict"):
        explain.find_counterfactual(model, X[0], costs=[1, 2])


def test_the_nearest_point_of_a_box_is_the_one_that_brute_force_finds():
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 201)] * 2), -1).reshape(-1, 2)
    for _ in range(40):
        normals = rng.normal(size=(2, 2))
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        distances, high = rng.uniform(-0.5, 0.8, 2), rng.choice([0.2, 0.5, 1.0], 2)
        found = project_onto_polytope(normals, distances, -np.ones(2), high)
        inside = grid[(grid @ normals.T >= distances).all(axis=1) & (grid <= high).all(axis=1)]
        best = np.linalg.norm(inside, axis=1).min(initial=np.inf)
        assert (np.linalg.norm(found) if found is not None else np.inf) == pytest.approx(best, abs=0.03)


def test_the_changed_row_holds_the_levels_and_names_as_the_table_has_them():
    columns = (replace(COLUMNS[0], name="ca\nlls"), replace(COLUMNS[1], categories=("ba\nsic", "ba sic", "go\tld")))
    model, X = table_model(3)
    model.preprocessing_ = Preprocessing((*columns, *COLUMNS[2:]))
    seen = set()
    for row in X[::31]:
        change = explain.find_counterfactual(model, row, actionable=["plan"])
        if change is not None:
            assert list(change.row) == ["ca\nlls", "plan", "paid", "age", "city"]
            seen |= {change.row["plan"], *change.columns[0][1:]}
            assert len(str(change).splitlines()) == 2
    assert seen == {"ba\nsic", "ba sic", "go\tld"}
    assert explain.find_counterfactual(model, X[0], actionable=["ca\nlls"]) == explain.find_counterfactual(
        model, X[0], actionable=["ca lls"]
    )


@pytest.mark.parametrize("labels", [[3, 2, 1], [("a", 1), ("a", 2), ("b", 1)]])
@pytest.mark.parametrize("with_text", [False, True])
def test_columns_that_are_labelled_by_numbers_or_tuples_are_named_by_these(labels, with_text):
    X, y = clouds(80, n_features=3, n_classes=2)
    frame = pd.DataFrame(dict(enumerate(X.T)))
    if with_text:
        frame[1] = np.where(X[:, 1] > 0, "high", "low")
    frame.columns = pd.Index(labels, tupleize_cols=False)
    model = plain_tree(max_depth=2, epochs=5, min_updates=10, random_state=0).fit(frame, y)
    change = explain.find_counterfactual(model, frame.iloc[[0]])
    assert list(change.row) == labels
    assert model.predict(pd.DataFrame([change.row])) == change.predicted
    alone = [explain.find_counterfactual(model, frame.iloc[[0]], actionable=[label]) for label in labels]
    by_name = [explain.find_counterfactual(model, frame.iloc[[0]], actionable=[f"x{place}"]) for place in range(3)]
    assert any(alone)
    for label, moved, same in zip(labels, alone, by_name, strict=True):
        assert str(moved) == str(same)
        assert moved is None or moved.row[label] != frame[label].tolist()[0]
    with pytest.raises(ValueError, match=r"`fixed` must name columns of the table, .*; got 0\."):
        explain.find_counterfactual(model, frame.iloc[[0]], fixed=[0])


@pytest.mark.parametrize("kind", ["linear", "branch_linear", "readable"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_linear_leaves_predict_the_class_within_limits(kind, n_classes):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(600, 5)) * [1, 10, 1, 100, 1], 1).astype(np.float32)
    X[:, 4] = np.rint(3 * X[:, 4])
    score = np.where(X[:, 0] > 0.3, 0.3 * X[:, 1] + 2 * X[:, 2], 0.04 * X[:, 3] - X[:, 4])
    y = np.array(["a", "b", "c"])[np.digitize(score + rng.logistic(size=600), [0, 2][: n_classes - 1])]
    readable = CrispTreeClassifier.readable(max_leaf_nodes=2, random_state=0)
    model = readable if kind == "readable" else plain_tree(leaf_model=kind, max_depth=2, random_state=0)
    assert model.fit(X, y).tree_.is_linear
    n_found = 0
    for row, to, rounded in product(X[:12], model.classes_, (False, True)):
        change = explain.find_counterfactual(model, row, to=to, rounded=rounded, fixed=["x2"], costs={"x1": 3.0})
        if change is None:
            continue
        n_found += 1
        assert change.predicted == model.predict(change.x[None])[0] == to
        assert change.leaf == model.leaf_indices(change.x[None])[0]
        assert change.x[2] == row[2]
        assert change.x[4] == np.rint(change.x[4])
        assert (change.x >= X.min(axis=0)).all()
        assert (change.x <= X.max(axis=0)).all()
    assert n_found > 24
