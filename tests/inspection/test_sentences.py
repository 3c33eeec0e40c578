"""Splits and leaves in words."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from crisptree import CrispTreeClassifier, CrispTreeRegressor, explain, export
from crisptree.inspection import view_model
from crisptree.inspection.sentences import RangeCondition, describe_path, describe_split, is_readable, make_condition
from crisptree.structure import TreeStructure
from tests.inspection.models import written

AXIS = {"split": "axis", "leaf_model": "constant", "shrinkage": 0.0, "random_state": 0}


def view_of(structure, weight, bias, **ranges):
    """View a tree of written splits; ``whole``, ``lowest`` and ``highest`` are the ranges of training."""
    model = written(structure, weight, bias, list(range(len(weight) + 1)))
    arrays = {name: np.array(values) for name, values in ranges.items()}
    model.tree_ = replace(model.tree_, statistics=replace(model.tree_.statistics, **arrays))
    return view_model(model, "this", feature_names=["months", "fee"])


def test_thresholds_on_whole_numbers_are_whole():
    bounds = {"whole": [1, 0], "lowest": [0.0, 0.0], "highest": [70.0, 90.0]}
    stump = TreeStructure.stump()
    right = [
        describe_split(view_of(stump, [weight], [bias], **bounds), 0)
        for weight, bias in (([1.0, 0.0], -6.5), ([1.0, 0.0], -6.0), ([-1.0, 0.0], 6.0), ([-2.0, 0.0], 13.0))
    ]
    assert right == ["months > 6", "months > 6", "months ≤ 5", "months ≤ 6"]
    assert describe_split(view_of(stump, [[0.0, 2.0]], [-13.0], **bounds), 0) == "fee > 6.5"
    assert describe_split(view_of(stump, [[0.0, -2.0]], [13.0], **bounds), 0) == "fee < 6.5"


@pytest.mark.parametrize("goes_right", [False, True])
@pytest.mark.parametrize(("weight", "bias"), [([1.0, 0.0], -6.5), ([1.0, 0.0], -6.0), ([-1.0, 0.0], 6.0)])
def test_conditions_hold_for_the_rows_that_go_there(weight, bias, goes_right):
    view = view_of(TreeStructure.stump(), [weight], [bias], whole=[1, 0], lowest=[0.0, 0.0], highest=[70.0, 90.0])
    condition = make_condition(view, 0, goes_right=goes_right)
    values = np.arange(0.0, 12.0)
    holds = (values > condition.low) & (values <= condition.high)
    scores = view.tree.scores(np.stack([values, values], axis=1).astype(np.float32), 0)
    assert (holds == ((scores > 0) == goes_right)).all()


def test_conditions_on_one_column_are_merged_along_a_path():
    chain = TreeStructure([~0, ~1, ~2], [1, 2, ~3])
    view = view_of(chain, [[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]], [-3.0, 9.5, -5.0], whole=[0, 0])
    paths = [describe_path(view, leaf) for leaf in range(4)]
    assert paths == ["months ≤ 3", "months ≥ 9.5", "months between 3 and 5", "months between 5 and 9.5"]
    whole = view_of(
        chain, [[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0]], [-3.0, 9.5, -8.0], whole=[1, 1], lowest=[0, 0], highest=[20, 20]
    )
    assert describe_path(whole, 2) == "months between 4 and 8"
    assert describe_path(whole, 3) == "months = 9"


def test_sums_are_written_with_a_positive_first_term_and_without_factors_of_one():
    view = view_of(TreeStructure.stump(), [[-2.0, -1.0]], [130.0])
    conditions = [str(make_condition(view, 0, goes_right=goes_right)) for goes_right in (True, False)]
    assert conditions == ["2 × months + fee < 130", "2 × months + fee ≥ 130"]


def test_bounds_of_one_sum_are_merged_along_a_path():
    chain = TreeStructure([~0, ~1, ~2], [1, 2, ~3])
    view = view_of(chain, [[2.0, 1.0], [-2.0, -1.0], [1.0, 1.0]], [-3.0, 9.5, -5.0])
    paths = [describe_path(view, leaf) for leaf in range(4)]
    assert paths[:2] == ["2 × months + fee ≤ 3", "2 × months + fee ≥ 9.5"]
    assert paths[2] == "2 × months + fee between 3 and 9.5 and months + fee ≤ 5"
    assert describe_path(view, 0, terms=1) == "2 × months + 1 more ≤ 3"
    assert describe_path(view, 2, terms=1).count("months") == 3  # what is not shown may differ


def test_long_paths_show_fewer_terms_of_long_sums():
    n_splits, n_features = 6, 5
    chain = TreeStructure([~k for k in range(n_splits)], [*range(1, n_splits), ~n_splits])
    weight = np.random.default_rng(0).uniform(1, 2, (n_splits, n_features))
    weight[0, 3:] = 0.0
    model = written(chain, weight, np.zeros(n_splits), list(range(n_splits + 1)))
    view = view_model(model, "this", feature_names=list("abcde"))
    first, *others = describe_path(view, n_splits).split(" and ")
    assert "more" not in first  # a short sum stays whole
    assert len(others) == n_splits - 1
    assert all(other.count(" × ") == 2 and "+ 3 more > 0" in other for other in others)
    assert describe_path(view, 1).count(" × ") == 6  # a path of two splits


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    plan = rng.choice(["basic", "plus", "pro"], 400)
    months = rng.integers(1, 60, 400)
    y = np.where(np.isin(plan, ["basic", "pro"]) & (months <= 6), "leaves", "stays")
    return pd.DataFrame({"plan": plan, "months": months, "paid": months % 2 == 0}), y


def test_a_split_on_levels_of_one_category_is_a_set_of_them():
    frame = pd.DataFrame({"plan": np.repeat(["a", "b", "c", "d", "e"], 40)})
    y = np.where(frame["plan"].isin(["a", "d"]), "leaves", "stays")
    model = CrispTreeClassifier(split="oblique", max_depth=1, l1=0.0, leaf_model="constant", random_state=0)
    model = model.fit(frame, y)
    assert sorted(export.sentences(model).splitlines()) == [
        "if plan in {a, d}: leaves with 100% (80 rows)",
        "if plan not in {a, d}: stays with 100% (120 rows)",
    ]
    assert any(f"split 0, 200 rows: plan {levels}?" in export.text(model) for levels in ("in {a, d}", "not in {a, d}"))


def test_splits_on_levels_do_not_shorten_the_sums_of_a_path(monkeypatch):
    plans = ["a", "b", "c", "d", "e"]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"plan": rng.choice(plans, 200), "fee": rng.normal(size=200), "age": rng.normal(size=200)})
    model = CrispTreeClassifier(max_depth=1, **AXIS).fit(frame, frame["fee"] > 0)
    model.tree_ = written(
        TreeStructure([~0, ~1], [1, ~2]),
        [[1.0, -1.0, -1.0, 1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0, 3.0, 2.0]],
        [0.0, 0.0],
        [0, 1, 0],
    ).tree_
    monkeypatch.setattr("crisptree.inspection.sentences.MAX_TERMS_ON_PATH", 2)
    assert describe_path(view_model(model, "this"), 2, terms=2).startswith("plan in {a, d} and ")
    assert describe_path(view_model(model, "this"), 2, terms=2).count("×") == 2


def test_levels_and_whole_numbers_stand_in_one_sentence(table):
    X, y = table
    model = CrispTreeClassifier.readable(max_features_per_split=1, leaf_model="constant", random_state=0).fit(X, y)
    sentences = export.sentences(model).splitlines()
    assert len(sentences) == model.get_n_leaves()
    leaving = [line for line in sentences if ": leaves with" in line]
    assert all("months ≤ 6" in line and "plan is " in line for line in leaving)
    assert sum(int(line.split("(")[1].split(" rows")[0]) for line in leaving) == (y == "leaves").sum()


def test_an_indicator_split_names_the_level():
    frame = pd.DataFrame({"plan": ["basic", "plus", "pro"] * 30, "paid": [True, True, False] * 15 + [False] * 45})
    for column, expected in (("plan", "plan is pro"), ("paid", "paid is true")):
        y = frame["plan"] == "pro" if column == "plan" else frame["paid"]
        model = CrispTreeClassifier(max_depth=1, **AXIS).fit(frame if column == "paid" else frame[["plan"]], y)
        lines = export.text(model).splitlines()
        assert expected in export.sentences(model)
        assert lines[0].endswith("?")
        assert f"{column} is " in lines[0]


def test_missing_values_are_a_level():
    frame = pd.DataFrame({"score": [1.0, 2.0, None, 3.0] * 20})
    model = CrispTreeClassifier(max_depth=1, **AXIS).fit(frame, frame["score"].isna())
    assert "if score is missing: True with 100% (20 rows)" in export.sentences(model)
    assert "if score is known: False with 100% (60 rows)" in export.sentences(model)


def test_a_regression_is_described_by_its_mean_and_a_single_leaf_by_always():
    X, y = np.arange(40.0)[:, None] + 0.5, np.repeat([1.0, 5.0], 20)
    model = CrispTreeRegressor(max_depth=1, **AXIS).fit(X, y)
    assert sorted(export.sentences(model).splitlines()) == [
        "if x0 < 20: 1 ± 0.063 (20 rows)",
        "if x0 ≥ 20: 5 ± 0.063 (20 rows)",
    ]
    assert export.sentences(CrispTreeRegressor(max_depth=0).fit(X, y)).startswith("always: 3 ± ")


def test_explanations_end_with_the_sentence_of_the_leaf_where_it_is_short(table):
    X, y = table
    model = CrispTreeClassifier.readable(random_state=0).fit(X, y)
    explained = explain.path(model, X.iloc[[3]])
    assert explained.sentence in export.sentences(model).splitlines()
    assert str(explained).endswith(explained.sentence)
    rng = np.random.default_rng(1)
    wide = rng.normal(size=(300, 8))
    long = CrispTreeClassifier(split="oblique", max_depth=2, l1=0.0, leaf_model="constant", random_state=0)
    long = long.fit(wide, wide.sum(axis=1) > 0)
    assert not is_readable(view_model(long, "this"))
    assert explain.path(long, wide[0]).sentence == ""


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ({"high": 87999.0}, "x < 88000"),
        ({"low": 87999.0}, "x ≥ 88000"),
        ({"high": 34.0}, "x ≤ 34"),
        ({"low": 34.0}, "x > 34"),
        ({"high": 99.0}, "x ≤ 99"),
        ({"low": 87999.0, "high": 90000.0}, "x between 88000 and 90000"),
    ],
)
def test_bounds_of_whole_numbers_are_round_where_they_can_be(bounds, text):
    assert str(RangeCondition("x", **bounds, is_whole=True)) == text


def test_linear_leaves_and_large_means_are_written_in_the_units_of_the_target():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"months": rng.integers(1, 72, 200), "plan": rng.choice(["basic", "pro"], 200)})
    y = (12_000.0 + 120 * X["months"] + 900 * (X["plan"] == "pro")).rename("price")
    model = CrispTreeRegressor(max_depth=0, leaf_model="linear", random_state=0).fit(X, y)
    (line,) = export.text(model).splitlines()
    assert re.fullmatch(
        r"leaf 0, 200 rows: 1\d{4} ± \d+; price = 13\d{3} \+ 104 × months ([+−] \d+ × plan=(basic|pro) ?){2}", line
    )
    assert export.sentences(model).startswith("always: 13")
    labels = np.where(X["months"] > 30, "stays", "leaves")
    model = CrispTreeClassifier(max_depth=0, leaf_model="linear", random_state=0).fit(X, labels)
    assert re.search(r"; score of (stays|leaves) = ", export.text(model))
