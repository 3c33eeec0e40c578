"""Tables as they are: text, categories and holes in X, and all that a fitted model then says of the columns."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import crisptree
from crisptree import CrispTreeClassifier, TableEncoder, TrainingOptions, explain, export
from crisptree.datasets import make_churn
from crisptree.inspection import view_model
from crisptree.plots import plot_tree
from crisptree.report import write as write_report
from tests.cli.running import QUICK, done
from tests.encoding.writers import write
from tests.plots.reading import texts
from tests.report.conftest import data_of
from tests.toys import clouds, plain_tree

SMALL = {"max_depth": 2, "epochs": 3, "finetune_epochs": 3, "random_state": 0}
COLUMNS = ["plan", "region", "months", "fee", "calls", "satisfaction", "paperless"]


def churn(n=300):
    frame = pd.DataFrame(make_churn(n))
    return frame[COLUMNS], frame["churned"].to_numpy(dtype=object)


@pytest.fixture(scope="module")
def model():
    return plain_tree(**SMALL).fit(*churn())


def with_holes(n=200):
    """Only whether the first feature is missing tells the class."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    X[::2, 0] = np.nan
    return X, np.arange(n) % 2


def test_a_table_is_fitted_as_its_encoded_rows_are(model):
    X, y = churn()
    encoder = TableEncoder().fit(X)
    twin = plain_tree(**SMALL).fit(encoder.transform(X), y)
    assert np.array_equal(twin.tree_.weight, model.tree_.weight)
    assert np.array_equal(twin.predict(encoder.transform(X)), model.predict(X))
    assert model.n_features_in_ == 7
    assert model.feature_names_in_.tolist() == COLUMNS
    assert model.tree_.n_features == len(encoder.get_feature_names_out())


@pytest.mark.parametrize(
    "form",
    [
        lambda frame: frame.to_dict("list"),
        lambda frame: pa.Table.from_pandas(frame),
        lambda frame: pytest.importorskip("polars").from_pandas(frame),
        lambda frame: frame.astype({"plan": "category"}),
    ],
    ids=["dictionary", "pyarrow", "polars", "categories"],
)
def test_every_kind_of_table_trains_and_predicts_alike(form, model):
    X, y = churn()
    same = plain_tree(**SMALL).fit(form(X), y)
    assert np.array_equal(same.tree_.weight, model.tree_.weight)
    assert np.array_equal(model.predict(form(X)), same.predict(X))


def test_rows_of_finite_numbers_go_without_an_encoder():
    X, y = clouds(80, n_features=4)
    plain = plain_tree(**SMALL).fit(X, y)
    forms = [X.astype(object), X.tolist(), pd.DataFrame(X), pytest.importorskip("polars").DataFrame(X)]
    for form in forms:
        same = plain_tree(**SMALL).fit(form, y)
        assert not hasattr(same, "encoder_")
        assert np.array_equal(same.tree_.weight, plain.tree_.weight)


def test_that_a_value_is_missing_can_be_all_that_counts():
    X, y = with_holes()
    for form in (X, X.tolist(), X.astype(np.float32), pd.DataFrame(X, columns=list("abc")), np.where(X > 9, None, X)):
        found = plain_tree(**SMALL).fit(form, y)
        assert found.score(form, y) == 1
        assert found.n_features_in_ == 3
    assert "x0 is missing" in export.text(plain_tree(**SMALL).fit(X, y), terms=4)
    assert found.feature_importances_.argmax() == 0
    assert cross_val_score(plain_tree(**SMALL), X, y, cv=3).tolist() == [1, 1, 1]


def test_a_value_missing_at_prediction_only_is_filled_with_one_warning_that_names_the_columns(model):
    rows, labels = clouds(60, n_features=3)
    means = rows.mean(axis=0, dtype=np.float64)
    for form, names in ((np.asarray, "'x0', 'x2'"), (lambda rows: pd.DataFrame(rows, columns=list("abc")), "'a', 'c'")):
        fitted = plain_tree(**SMALL).fit(form(rows), labels)
        broken, filled = rows.copy(), rows.copy()
        broken[4, 0], broken[5, 2] = np.nan, np.nan
        filled[4, 0], filled[5, 2] = means[0], means[2]
        with pytest.warns(crisptree.CrispTreeWarning) as caught:
            probabilities = fitted.predict_proba(form(broken))
        assert [str(warning.message) for warning in caught] == [
            f"X: columns {names}: 2 missing values, none in training; means stand in."
        ]
        assert np.array_equal(probabilities, fitted.predict_proba(form(filled)))
        assert np.isnan(broken[4, 0])
    with pytest.warns(crisptree.CrispTreeWarning, match="X: column 'months': 1 missing value, none in training; the m"):
        model.predict(churn()[0].assign(months=lambda frame: frame["months"].where(frame.index != 3)))


def test_folds_with_a_value_missing_in_the_scored_part_only_are_scored():
    X, y = clouds(60, n_features=3)
    X[7, 1] = np.nan
    with pytest.warns(crisptree.CrispTreeWarning, match="column 'x1': 1 missing value, none in training"):
        scores = cross_val_score(plain_tree(**SMALL), X, y, cv=3)
    assert np.isfinite(scores).all()
    training = TrainingOptions(epochs=3, finetune_epochs=3)
    forest = crisptree.CrispForestRegressor(n_estimators=2, training=training, random_state=0).fit(X[10:], X[10:, 0])
    with pytest.warns(crisptree.CrispTreeWarning, match="column 'x1'"):
        assert np.isfinite(forest.predict(X)).all()


def test_strict_models_refuse_values_missing_at_prediction_only(tmp_path):
    X, y = with_holes()
    broken = np.where(np.arange(200)[:, None] == 5, np.nan, X)
    strict = plain_tree(**SMALL, categorical_features=crisptree.TableEncoder(handle_missing="error")).fit(X, y)
    strict.save(tmp_path / "strict.crisp")
    for each in (strict, crisptree.load(tmp_path / "strict.crisp")):
        with pytest.raises(ValueError, match=r"column 'x1' must have a value in every row.*row 5 has none"):
            each.predict(broken)
    rows, labels = clouds(60, n_features=3)
    numbers = plain_tree(**SMALL, categorical_features=None).fit(rows, labels)
    with pytest.raises(ValueError, match=r"X: column 'x1' must hold finite numbers; row 4 .*None was missing"):
        numbers.predict(np.where(np.arange(60)[:, None] == 4, [[1.0, np.nan, 1.0]], rows))
    with pytest.raises(ValueError, match="`handle_missing` must be 'fill' or 'error'; got 'mean'"):
        crisptree.TableEncoder(handle_missing="mean").fit(X)


def test_importances_are_those_of_the_columns(model):
    inside = explain.feature_importances(model.tree_)
    shares = model.feature_importances_
    assert shares.shape == (7,)
    assert shares.sum() == pytest.approx(1)
    assert shares[0] == pytest.approx(inside[:3].sum())
    assert np.array_equal(explain.feature_importances(model), shares)
    dropping = plain_tree(**SMALL, categorical_features=TableEncoder(drop=["region"])).fit(*churn())
    assert dropping.feature_importances_[1] == 0
    assert dropping.feature_names_in_.tolist() == COLUMNS


def test_explanations_name_the_columns_of_the_table(model, tmp_path):
    X, y = churn()
    row = X.iloc[0]
    said = str(model.explain(row, top=12))
    assert f"plan is {row['plan']}" in said
    assert "paperless is " in said
    assert "=" not in said.replace(" = ", "")
    assert str(model.explain(row.to_dict(), top=12)) == said
    assert str(model.explain(X[:1], top=12)) == said
    assert "plan=plus" in export.text(model, terms=20)
    assert "plan=plus" in export.dot(model, terms=20)
    assert explain.find_counterfactual(model, row).predicted != model.predict(X[:1])[0]
    assert len(explain.attribute_errors(model, X, y).rows) == (model.predict(X) != y).sum()
    assert view_model(model, "this").feature_names == model.encoder_.get_feature_names_out().tolist()
    assert "satisfaction" in " ".join(texts(plot_tree(model, sample=row)))
    page = data_of(write_report(model, tmp_path / "r.html", X, y).read_text())
    assert page["features"] == model.encoder_.get_feature_names_out().tolist()
    assert page["summary"]["hard"] == pytest.approx(model.score(X, y))


def test_an_encoder_in_a_pipeline_is_seen_alike(model):
    X, y = churn()
    pipeline = make_pipeline(TableEncoder(), plain_tree(**SMALL)).fit(X, y)
    assert str(explain.path(pipeline, X.iloc[3])) == str(explain.path(model, X.iloc[3]))
    assert export.text(pipeline) == export.text(model)


def test_a_saved_model_takes_the_table_again(model, tmp_path):
    X, y = churn()
    model.save(tmp_path / "m.crisp")
    loaded = crisptree.load(tmp_path / "m.crisp")
    shuffled = X[COLUMNS[::-1]].assign(customer_id="C-1")
    assert np.array_equal(loaded.predict_proba(shuffled), model.predict_proba(X))
    assert loaded.feature_names_in_.tolist() == COLUMNS
    assert str(loaded.explain(X.iloc[0])) == str(model.explain(X.iloc[0]))
    assert np.array_equal(loaded.feature_importances_, model.feature_importances_)
    rows, labels = with_holes()
    plain_tree(**SMALL).fit(rows, labels).save(tmp_path / "n.crisp")
    assert crisptree.load(tmp_path / "n.crisp").score(rows, labels) == 1
    listed = plain_tree(**SMALL, categorical_features=["calls"]).fit(X, y)
    listed.save(tmp_path / "o.crisp")
    assert tuple(crisptree.load(tmp_path / "o.crisp").flat_parameters()["categorical_features"]) == ("calls",)


def test_a_model_of_the_command_line_takes_the_frame_it_was_trained_on(tmp_path):
    frame = pd.DataFrame(make_churn(300))
    path = write(pa.Table.from_pandas(frame), tmp_path / "t.csv")
    dropped = ("--drop", "customer_id", "--drop", "joined")
    done("fit", path, "-t", "churned", *dropped, "-o", tmp_path / "m.crisp", *QUICK)
    done("predict", tmp_path / "m.crisp", path, "-o", tmp_path / "p.csv")
    loaded = crisptree.load(tmp_path / "m.crisp")
    assert pd.read_csv(tmp_path / "p.csv")["prediction"].tolist() == loaded.predict(frame).tolist()
    assert "plan is " in str(loaded.explain(frame.iloc[0], top=12))
    twin = plain_tree(max_depth=2, epochs=2, finetune_epochs=2, random_state=0).fit(*churn())
    assert np.array_equal(twin.tree_.weight, loaded.tree_.weight)


def test_the_command_line_predicts_with_a_model_made_in_python(model, tmp_path):
    X, y = churn()
    model.save(tmp_path / "m.crisp")
    path = write(pa.Table.from_pandas(X.assign(churned=y)), tmp_path / "t.csv")
    done("predict", tmp_path / "m.crisp", path, "-o", tmp_path / "p.csv")
    assert pd.read_csv(tmp_path / "p.csv")["prediction"].tolist() == model.predict(X).tolist()
    assert "share of the gain" in done("inspect", tmp_path / "m.crisp").text
    said = done("evaluate", tmp_path / "m.crisp", path, "--target", "churned").text
    assert f"accuracy hard {model.score(X, y):.4f}" in said


def test_the_rest_of_the_interface_takes_tables_too(model):
    X, y = churn()
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), model.predict(X))
    assert not hasattr(clone(model), "encoder_")
    for twin in (
        model.before_finetuning(),
        model.truncate(1),
        model.prune(0.01),
    ):
        assert twin.predict(X).shape == (300,)
        assert twin.n_features_in_ == 7
    assert model.soft_predict_proba(X).shape == (300, 2)
    assert model.decision_path(X).shape[0] == 300
    judged = plain_tree(**SMALL, early_stopping=True).fit(X[:200], y[:200], eval_set=(X[200:], y[200:]))
    assert judged.history_[-1].validation_score is not None
    assert judged.fit(*clouds(60)).n_features_in_ == clouds(60)[0].shape[1]
    assert not hasattr(judged, "encoder_")


def test_a_warm_start_keeps_the_encoder():
    X, y = churn()
    model = plain_tree(**{**SMALL, "max_depth": 1}, warm_start=True).fit(X, y)
    before = model.encoder_
    model.set_params(max_depth=2).fit(X, y)
    assert model.encoder_ is before
    assert model.get_depth() == 2
    assert model.feature_names_in_.tolist() == COLUMNS


def test_rows_of_weight_zero_are_not_looked_at():
    X, y = churn(200)
    X.loc[150:, "plan"] = "secret"
    weight = (np.arange(200) < 150).astype(float)
    with pytest.warns(crisptree.CrispTreeWarning, match="'secret'"):
        weighted = plain_tree(**SMALL).fit(X, y, weight)
    assert np.array_equal(weighted.tree_.weight, plain_tree(**SMALL).fit(X[:150], y[:150]).tree_.weight)


def test_tables_train_on_probabilities_and_are_distilled_without_copies():
    X, y = churn()
    soft = np.where((y == "yes")[:, None], [0.2, 0.8], [0.9, 0.1])
    assert plain_tree(**SMALL).fit(X, soft).classes_.tolist() == [0, 1]
    teacher = make_pipeline(TableEncoder(), plain_tree(**SMALL)).fit(X, y)
    student = plain_tree(**SMALL).distill(teacher, X)
    assert (student.predict(X) == teacher.predict(X)).mean() > 0.95
    with pytest.raises(ValueError, match="`copies` must be 0 for a table with text or missing values"):
        plain_tree(**SMALL).distill(DummyClassifier().fit(X, y), X, copies=4)


def test_numbers_may_be_named_as_categories():
    X, y = with_holes()
    X = np.column_stack([X[:, 1], np.arange(200) % 4])
    by_place = plain_tree(**SMALL, categorical_features=[1]).fit(X, np.isin(X[:, 1], (0, 3)))
    assert by_place.encoder_.get_feature_names_out().tolist() == ["x0", "x1=0", "x1=1", "x1=2", "x1=3"]
    frame = pd.DataFrame(X, columns=["a", "b"])
    assert plain_tree(**SMALL, categorical_features=["b"]).fit(frame, y).tree_.n_features == 5
    with pytest.raises(ValueError, match=r"`categorical` must name columns of X; there is no 'B' among 'a', 'b'"):
        plain_tree(**SMALL, categorical_features=["B"]).fit(frame, y)
    with pytest.raises(ValueError, match="`categorical_features` must be 'auto', None, a list of columns"):
        plain_tree(**SMALL, categorical_features="a").fit(frame, y)


def test_none_refuses_all_but_finite_numbers():
    X, y = churn()
    with pytest.raises(ValueError, match=r"column 'plan' must hold finite numbers; row 0 .*`categorical_features`"):
        plain_tree(**SMALL, categorical_features=None).fit(X, y)
    with pytest.raises(ValueError, match=r"X: column 'satisfaction' must hold finite numbers; row .* has none \(NaN\)"):
        plain_tree(**SMALL, categorical_features=None).fit(X[["months", "satisfaction"]], y)


@pytest.mark.parametrize("categorical", ["auto", None])
@pytest.mark.parametrize("form", [pd.DataFrame, lambda columns: columns["day"].to_numpy()[:, None]])
def test_dates_alone_are_not_taken_for_numbers(categorical, form):
    days = form({"day": pd.Series(pd.date_range("2020-01-01", periods=40))})
    with pytest.raises(ValueError, match=r"column '(day|x0)' .*holds dates.*a weekday"):
        plain_tree(**SMALL, categorical_features=categorical).fit(days, np.arange(40) % 2)
    numbers = plain_tree(**SMALL).fit(np.arange(40.0)[:, None], np.arange(40) % 2)
    with pytest.raises(ValueError, match="dates"):
        numbers.predict(days)


def test_ids_and_dates_are_refused_together_with_what_to_do():
    frame = pd.DataFrame(make_churn(60))
    with pytest.raises(ValueError, match="X has 2 columns that cannot be used") as error:
        CrispTreeClassifier().fit(frame[["customer_id", "joined", "plan"]], frame["churned"])
    assert str(error.value).endswith("categorical_features=TableEncoder(drop=['customer_id'], dates=['joined'])).")
    encoder = TableEncoder(drop=["customer_id"], dates=["joined"])
    model = plain_tree(**SMALL, categorical_features=encoder)
    model.fit(frame[["customer_id", "joined", "plan"]], frame["churned"])


@pytest.mark.parametrize("hole", [None, np.nan, pd.NA])
def test_a_missing_label_is_reported_as_one_of_y(hole):
    X = clouds(40)[0]
    labels = np.array(["a", "b"] * 20, dtype=object)
    labels[7] = hole
    with pytest.raises(ValueError, match="y must have a label in every row; row 7 has none"):
        plain_tree(**SMALL).fit(X, labels)


def test_constraints_name_columns_of_the_table_and_hold_the_features_that_they_become():
    rng = np.random.default_rng(0)
    age, plan = rng.normal(size=120), rng.choice(["basic", "more"], 120)
    age[:10] = np.nan
    frame = pd.DataFrame({"plan": plan, "age": age, "visits": rng.normal(size=120)})
    y = (np.nan_to_num(age) + (plan == "more") - frame["visits"] > 0.5).astype(int)
    model = plain_tree(max_depth=2, epochs=5, finetune_epochs=5, random_state=0, monotonic_cst={"age": -1, "visits": 1})
    weights = model.fit(frame, y).tree_.weight
    names = model.encoder_.preprocessing_.feature_names
    assert (weights[:, names.index("age")] <= 0).all()
    assert (weights[:, names.index("visits")] >= 0).all()
    model.set_params(monotonic_cst=None, interaction_cst=[["plan", "age"], ["visits"]]).fit(frame, y)
    used = model.tree_.weight != 0
    mine = [name != "visits" for name in names]
    assert not (used[:, mine].any(axis=1) & used[:, names.index("visits")]).any()
    with pytest.raises(ValueError, match="'plan' is a category"):
        model.set_params(monotonic_cst={"plan": 1}, interaction_cst=None).fit(frame, y)


def test_whole_numbers_with_missing_values_stay_whole_in_the_nearest_change():
    X, y = pd.DataFrame(make_churn()).drop(columns=["customer_id", "joined", "churned"])[:200], make_churn()["churned"]
    model = CrispTreeClassifier(max_depth=2, training=TrainingOptions(epochs=3, finetune_epochs=3), random_state=0).fit(
        X, y[:200]
    )
    feature = model.encoder_.preprocessing_.feature_names.index("satisfaction")
    seen = model.tree_.statistics
    assert seen.whole[feature]
    values = X["satisfaction"].dropna()
    assert (seen.lowest[feature], seen.highest[feature]) == (values.min(), values.max())


def test_a_loaded_model_is_fitted_again_with_the_encoder_that_it_was_given(tmp_path):
    table = {"age": [41, 12, 30] * 20, "secret": list(range(60)), "plan": ["a", "b", "a"] * 20}
    encoder = TableEncoder(drop=["secret"], missing=["?"], max_categories=7)
    model = plain_tree(max_depth=1, epochs=2, finetune_epochs=2, categorical_features=encoder).fit(
        table, [0, 1, 0] * 20
    )
    model.save(tmp_path / "x.crisp")
    again = crisptree.load(tmp_path / "x.crisp")
    assert list(again.flat_parameters()["categorical_features"].drop) == ["secret"]
    assert again.flat_parameters()["categorical_features"].max_categories == 7
    assert "secret" not in clone(again).fit(table, [0, 1, 0] * 20).encoder_.preprocessing_.feature_names


def test_columns_may_be_named_by_their_place():
    table = {"area": [1, 2, 3] * 20, "age": [1.0, 2.0, 2.5] * 20}
    names = TableEncoder(categorical=[0]).fit(table).get_feature_names_out().tolist()
    assert names == ["area=1", "area=2", "area=3", "age"]
    with pytest.raises(ValueError, match="columns of X, from 0 to 1; got 2"):
        TableEncoder(categorical=[2]).fit(table)


def test_intervals_are_categories():
    frame = pd.DataFrame({"age": pd.cut(pd.Series([1, 5, 9] * 20), 3)})
    assert len(TableEncoder().fit(frame).get_feature_names_out()) == 3


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (pd.DataFrame({"a": [1.0, 2.0]}).iloc[0], "got a Series"),
        (pd.DataFrame({"a": [1, 2]}, dtype="Int64")["a"], "got a Series"),
        (pd.DataFrame([[1.0, 2.0]] * 2, columns=["a", "a"]), "two columns named 'a'"),
        (pd.DataFrame(index=range(2)), "at least one column"),
    ],
)
def test_what_is_no_table_is_refused_in_words(X, words):
    with pytest.raises(ValueError, match=words):
        CrispTreeClassifier().fit(X, [0, 1])


def test_a_sign_of_a_column_that_is_left_out_is_refused():
    table = {"age": [41, 12, 30] * 20, "plan": ["a", "b", "a"] * 20, "fee": [1.0, 2.0, 3.0] * 20}
    model = CrispTreeClassifier(categorical_features=TableEncoder(drop=["age"]), monotonic_cst={"age": 1})
    with pytest.raises(ValueError, match="'age' is left out"):
        model.fit(table, [0, 1, 0] * 20)
