import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from crisptree import CrispTreeRegressor, explain, export
from crisptree.encoding.preprocessing import Column, Preprocessing
from crisptree.inspection import view_model
from crisptree.inspection.linear_splits import rank_columns
from crisptree.report.contents import calibration_curve, roc_curves
from tests.report.conftest import fitted, unpacked


def test_areas_under_the_curves_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    for n_classes in (2, 3, 20):
        truth = rng.integers(0, n_classes, 300)
        said = np.round(rng.dirichlet(np.ones(n_classes), 300), 1) + 0.01
        curves = roc_curves(truth, said)
        assert [curve["class"] for curve in curves] == ([1] if n_classes == 2 else list(range(n_classes)))
        assert sum(bool(curve["found"]) for curve in curves) == min(12, len(curves))
        for curve in curves:
            assert curve["area"] == pytest.approx(roc_auc_score(truth == curve["class"], said[:, curve["class"]]))


def test_a_class_that_no_row_has_has_no_curve():
    assert [curve["class"] for curve in roc_curves(np.array([0, 2]), np.full((2, 3), 1 / 3))] == [0, 2]


def test_calibration_holds_all_rows_and_equal_chances_stay_together():
    said = np.array([[0.9, 0.1]] * 30 + [[0.2, 0.8]] * 10)
    truth = np.array([0] * 27 + [1] * 3 + [1] * 10)
    found = calibration_curve(truth, said)
    assert (found["rows"], found["predicted"], found["observed"]) == ([30, 10], [0.1, 0.8], [0.1, 1.0])


def test_the_pruning_path_has_the_accuracy_of_each_pruned_model(page):
    model, X, y = fitted(max_depth=3)
    data = page(model, X, y)[1]["pruning"]
    path = model.cost_complexity_pruning_path()
    assert data["leaves"] == path.n_leaves.tolist()
    for alpha, given in zip(path.ccp_alphas, data["given"], strict=True):
        assert given == pytest.approx(model.prune(alpha).score(X, y), abs=1e-4)
    assert data["training"] == data["given"]  # these are the rows of training


def test_the_baseline_is_the_most_frequent_class_of_training(page):
    model, X, y = fitted(n_classes=2)
    first = int(np.bincount(y).argmax())
    text, data = page(model, X, np.full(len(X), first))
    assert data["baseline"]["given"] == 1
    assert data["baseline"]["training"] == pytest.approx(np.bincount(y).max() / len(y))
    assert f"always {first}" in text


def test_importances_are_added_up_by_column_and_named():
    model, _, _ = fitted(n_features=5)
    columns = (
        Column("calls", "number"),
        Column("plan", "category", categories=("a", "b", "c")),
        Column("paid", "boolean"),
    )
    model.preprocessing_ = Preprocessing(columns)
    shares = explain.feature_importances(model)
    found = dict(rank_columns(view_model(model, "a test"), 300))
    assert found["plan"] == pytest.approx(shares[1:4].sum(), abs=1e-5)
    assert set(found) == {"calls", "plan", "paid"}


def test_rows_show_levels_and_what_is_missing(page):
    model, _, y = fitted(n_features=6)
    columns = (
        Column("calls", "number", mean=0.0, missing=True),
        Column("plan", "category", categories=("a", "b", "<c>", "d")),
    )
    model.preprocessing_ = Preprocessing(columns, target="who <leaves>")
    rows = np.zeros((4, 6), dtype=np.float32)
    rows[:, 0], rows[1, 1] = [3, 0, 1, 2], 1
    rows[[0, 1, 2], [2, 3, 5]] = 1
    text, data = page(model, rows, y[:4])
    samples = data["samples"]
    names = [column["name"] for column in samples["columns"]]
    values = unpacked(samples["values"])[np.argsort(unpacked(samples["row"]))]
    assert sorted(names) == ["calls", "plan"]
    assert values[:, names.index("plan")].tolist() == [0, 1, 3, -1]
    assert np.isnan(values[:, names.index("calls")]).tolist() == [False, True, False, False]
    assert "Decision tree for who &lt;leaves&gt;" in text


def test_rows_are_called_by_their_ids_and_the_target_by_the_name_of_y(page):
    model, X, y = fitted()
    frame = pd.DataFrame(X, index=[f"customer {number}" for number in range(len(X))])
    text, data = page(model, frame.to_numpy(), pd.Series(y, name="churn"), ids=frame.index)
    rows = unpacked(data["samples"]["row"])
    assert data["samples"]["ids"] == [f"customer {row}" for row in rows]
    assert "classes of churn" in text
    assert page(model, X, y)[1]["samples"]["ids"] is None
    with pytest.raises(ValueError, match=r"`ids` must have one for each of the \d+ rows"):
        page(model, X, y, ids=[1, 2])


def test_the_index_of_a_frame_is_an_id_unless_it_only_counts(page):
    model, X, y = fitted()
    frame = pd.DataFrame(X, columns=[f"c{number}" for number in range(X.shape[1])])
    model.fit(frame, y)
    assert page(model, frame, y)[1]["samples"]["ids"] is None
    shuffled = frame.sample(frac=1, random_state=0)
    data = page(model, shuffled, y[shuffled.index])[1]["samples"]
    assert data["ids"] == [str(shuffled.index[row]) for row in unpacked(data["row"])]


def test_leaves_of_small_trees_have_a_sentence_each(page):
    model, X, y = fitted(split="axis", max_depth=2)
    sentences = page(model, X, y, feature_names=list("abcdef"))[1]["sentences"]
    assert len(sentences) == model.get_n_leaves()
    assert sorted(sentences) == sorted(export.sentences(model, list("abcdef")).splitlines())
    model, X, y = fitted(split="oblique", max_depth=2)
    assert page(model, X, y)[1]["sentences"] is None


def test_every_split_is_a_rule_that_predict_agrees_with(page):
    model, X, y = fitted(split="axis", max_depth=2)
    rules = page(model, X, y, feature_names=list("abcdef"))[1]["rules"]
    assert len(rules) == model.tree_.structure.n_splits
    for split, rule in enumerate(rules):
        name, sign, threshold = rule.split()
        values = X[:, "abcdef".index(name)]
        holds = (
            values > float(threshold.replace("−", "-")) if sign == ">" else values < float(threshold.replace("−", "-"))
        )
        clear = np.abs(values - float(threshold.replace("−", "-"))) > 1e-2
        assert np.array_equal(holds[clear], (model.tree_.scores(X, split) > 0)[clear])


def test_boxes_of_splits_have_the_terms_of_their_rules(page):
    model, X, y = fitted(split="oblique", max_depth=2, l1=0.0)
    data = page(model, X, y, feature_names=list("abcdef"))[1]
    for (terms, comparison), rule in zip(data["lines"], data["rules"], strict=True):
        assert len(terms) == 3
        assert comparison.startswith("+ 3 more ")
        assert comparison.split()[-2] == rule.split()[-2]  # the sign
        assert [text.split()[-1] for text, _ in terms] == re.findall(r"× ([a-f])", rule)[:3]
        sizes = np.abs([effect for _, effect in terms])
        assert (np.diff(sizes) <= 0).all()
    axis = page(*fitted(split="axis", max_depth=1), feature_names=list("abcdef"))[1]
    assert [effect for _, effect in axis["lines"][0][0]] == [0.0]
    assert page(*fitted(n_features=6, image_shape=(2, 3)))[1]["lines"] is None


def test_linear_leaves_show_their_models_and_what_these_look_at(page):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(size=80), "member": rng.random(80) < 0.5, "plan": ["a", "b"] * 40})
    y = (5 * X["age"] + 3 * X["member"]).rename("price")
    model = CrispTreeRegressor(max_depth=0, leaf_model="linear", random_state=0).fit(X, y)
    text, data = page(model, X, y)
    assert data["models"][0][0].startswith("price = ")
    assert [name for name, _ in data["importances"]][:2] == ["age", "member"]
    assert {column["name"]: column["levels"] for column in data["samples"]["columns"]}["member"] == ["false", "true"]
    assert data["classes"] == ["price"]
    assert "a single leaf with one linear model" in text
    assert "predicts the same for every row" not in text.split("<script")[0]
    assert "constant leaves" in text  # of pruning
    assert page(model, X, y.to_numpy(), target="amount")[1]["classes"] == ["amount"]
    assert page(*fitted())[1]["models"] is None
