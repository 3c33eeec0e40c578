"""What becomes of single columns: groups under l1, digits that are names, weights, labels, refusals."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import crisptree
from crisptree import TableEncoder, explain, export
from crisptree.datasets import make_churn
from crisptree.exceptions import TableError
from crisptree.report import write as write_report
from tests.report.conftest import data_of
from tests.toys import clouds, plain_tree

SMALL = {"max_depth": 2, "epochs": 3, "finetune_epochs": 3, "random_state": 0}
COLUMNS = ["plan", "region", "months", "fee", "calls", "satisfaction", "paperless"]


def churn(n=300):
    frame = pd.DataFrame(make_churn(n))
    return frame[COLUMNS], frame["churned"]


@pytest.fixture(scope="module")
def model():
    return plain_tree(**SMALL).fit(*churn())


def test_l1_keeps_or_drops_the_features_of_a_column_together():
    X, y = churn()
    model = plain_tree(**SMALL | {"epochs": 30, "finetune_epochs": 30}, l1=0.1).fit(X, y)
    used = model.tree_.weight != 0
    groups = model.encoder_.preprocessing_.groups
    assert groups == ((0, 3), (3, 8), (11, 13))  # plan, region and its holes, satisfaction and its holes
    for begin, end in groups:
        assert np.array_equal(used[:, begin:end].any(axis=1), used[:, begin:end].all(axis=1))
    assert not used.all()
    assert used.any()


def test_rows_that_are_no_table_have_no_groups():
    X, y = clouds(60)
    alone, given = (
        plain_tree(**SMALL, l1=0.01).fit(X, y),
        plain_tree(**SMALL, l1=0.01, categorical_features=None).fit(X, y),
    )
    assert np.array_equal(alone.tree_.weight, given.tree_.weight)


def test_digits_that_begin_with_a_zero_are_names_and_others_are_numbers_with_a_note():
    table = {"zip": ["01234", "12345", "01234"], "age": ["41", "12", "7"], "size": [1.5, 2.0, 3.0]}
    encoder = TableEncoder().fit(table)
    kinds = [column.kind for column in encoder.preprocessing_.columns]
    assert kinds == ["category", "number", "number"]
    zeros, texts = encoder.notes_
    assert "'zip' has digits that begin with a zero, such as '01234'" in zeros
    assert "`numeric=['zip']`" in zeros
    assert "'age' holds numbers as text, and is taken for numbers" in texts
    numeric = TableEncoder(numeric=["zip"]).fit(table)
    assert numeric.transform(table)[:, 0].tolist() == [1234.0, 12345.0, 1234.0]
    with pytest.raises(TableError, match="both name 'zip'"):
        TableEncoder(numeric=["zip"], categorical=["zip"]).fit(table)
    many = {"zip": [f"{number:05}" for number in range(200)]}
    with pytest.raises(TableError, match=r"digits that begin with a zero.*If these are numbers, say `numeric="):
        TableEncoder().fit(many)


def test_the_mean_that_replaces_a_missing_value_is_that_of_weighted_rows():
    X = pd.DataFrame({"a": [0.0, 10.0, None, 10.0], "b": ["true", "false", "true", None], "c": list("xyxy")})
    weight = [3.0, 1.0, 1.0, 0.0]
    with pytest.warns(crisptree.CrispTreeWarning, match="column 'b': 1 missing value, none in training"):
        columns = plain_tree(**SMALL).fit(X, [0, 1, 0, 1], weight).encoder_.preprocessing_.columns
    assert columns[0].mean == 2.5
    assert columns[1].mean == 0.8
    assert columns[1].missing is False  # the only hole weighs nothing
    again = X.iloc[[0, 0, 0, 1, 2]]
    repeated = plain_tree(**SMALL).fit(again, [0, 0, 0, 1, 0]).encoder_.preprocessing_.columns
    assert [column.mean for column in repeated[:2]] == [2.5, 0.8]


def test_all_columns_that_cannot_be_predicted_from_are_named_at_once(model):
    strict = plain_tree(**SMALL, categorical_features=TableEncoder(handle_missing="error")).fit(*churn())
    X, _ = churn(20)
    X = X.astype({"months": object, "fee": object})
    X.loc[3, "months"], X.loc[5, "fee"] = "many", None
    with pytest.raises(TableError) as refused:
        strict.predict(X)
    said = str(refused.value)
    assert "2 columns" in said
    assert "row 3 has 'many'. Correct it, or leave the row out." in said
    assert "'fee' must have a value in every row" in said
    assert "missing=[" not in said
    X, _ = churn(20)
    X = X.astype({"satisfaction": object})
    X.loc[2, "satisfaction"] = "?"
    with pytest.raises(TableError, match="or put None in its place if it means a missing value"):
        model.predict(X)


def test_all_numeric_columns_with_missing_values_are_listed_at_once():
    X, y = clouds(60)
    frame = pd.DataFrame(X, columns=[f"f{number}" for number in range(X.shape[1])])
    model = plain_tree(**SMALL).fit(frame, y)
    frame = frame.copy()
    frame.iloc[2, 0], frame.iloc[4, 1] = np.nan, np.inf
    with pytest.raises(ValueError, match="2 columns") as refused:
        model.predict(frame)
    assert "'f0'" in str(refused.value)
    assert "'f1'" in str(refused.value)


def test_columns_labelled_by_numbers_or_tuples_are_found_by_label():
    X, y = clouds(60)
    tuples = [("a", number) for number in range(X.shape[1])]
    for labels in ([10 * number for number in range(X.shape[1])], pd.MultiIndex.from_tuples(tuples)):
        frame = pd.DataFrame(X, columns=labels)
        model = plain_tree(**SMALL).fit(frame, y)
        mixed = frame.iloc[:, ::-1]
        assert np.array_equal(model.predict(mixed), model.predict(frame))
        assert model.explain(mixed.iloc[[0]]).leaf == model.leaf_indices(frame)[0]
        assert np.array_equal(model.predict(X), model.predict(frame))
        with pytest.raises(ValueError, match="X must have the columns that the model was trained on"):
            model.predict(frame.iloc[:, 1:])
    assert not hasattr(model.fit(X, y), "column_labels_")


def test_texts_in_the_place_of_a_table_are_sent_to_a_vectorizer():
    for texts in (["good", "bad"], np.array(["good", "bad"]), pd.Series(["good", "bad"])):
        with pytest.raises(ValueError, match="TfidfVectorizer"):
            plain_tree().fit(texts, [0, 1])


def test_a_pipeline_of_texts_is_explained_text_by_text(tmp_path):
    texts = ["good film", "bad film", "good book", "bad book", "very good", "very bad"] * 5
    y = ["up", "down"] * 15
    model = make_pipeline(TfidfVectorizer(), plain_tree(**SMALL)).fit(texts, y)
    for one in ("good film", ["good film"], np.array(["good film"]), pd.Series(["good film"])):
        assert explain.path(model, one).predicted == model.predict(["good film"])[0]
    change = explain.find_counterfactual(model, "good film")
    assert change.predicted == "down"
    assert change.row is None  # a text cannot be told from its counts
    assert explain.attribute_errors(model, texts, y) is not None
    with pytest.raises(ValueError, match="x must be one text; got 2"):
        explain.path(model, ["good", "bad"])
    assert write_report(model, tmp_path / "texts.html", texts, y).exists()


def test_a_search_is_looked_at_as_its_best_estimator():
    X, y = churn(120)
    search = GridSearchCV(make_pipeline(plain_tree(**SMALL)), {"crisptreeclassifier__max_depth": [1, 2]}, cv=2)
    with pytest.raises(TypeError, match="It is not fitted: call fit first"):
        export.text(search)
    search.fit(X, y)
    assert export.text(search) == export.text(search.best_estimator_)
    assert explain.path(search, X.iloc[0]).leaf == search.best_estimator_[-1].leaf_indices(X)[0]
    search.set_params(refit=False).fit(X, y)
    del search.best_estimator_
    with pytest.raises(TypeError, match="refit=True"):
        export.text(search)


def test_a_change_is_also_a_row_of_the_table(model):
    X, _ = churn(40)
    change = explain.find_counterfactual(model, X.iloc[0])
    assert list(change.row) == COLUMNS
    assert model.predict(pd.DataFrame([change.row]))[0] == change.predicted
    assert isinstance(change.row["paperless"], bool)
    for name, _, after in change.columns:
        assert change.row[name] == (pytest.approx(after) if isinstance(after, float) else after)
    assert change.row["fee"] == X["fee"][0] or "fee" in {name for name, *_ in change.columns}


def test_a_change_behind_steps_that_can_be_undone_is_in_the_units_of_the_table():
    X, y = clouds(80)
    frame = pd.DataFrame(100 + 10 * X, columns=[f"f{number}" for number in range(X.shape[1])])
    model = make_pipeline(StandardScaler(), plain_tree(**SMALL)).fit(frame, y)
    row = explain.find_counterfactual(model, frame.iloc[[0]], as_in_training=False).row
    assert list(row) == list(frame)
    assert abs(row["f0"] - 100) < 100


def test_the_name_of_y_and_the_notes_are_kept(tmp_path, model):
    X, y = churn()
    model.save(tmp_path / "m.crisp")
    loaded = crisptree.load(tmp_path / "m.crisp")
    assert loaded.encoder_.preprocessing_.target == "churned"
    assert loaded.encoder_.notes_ == model.encoder_.notes_ != []
    page = data_of(write_report(loaded, tmp_path / "r.html", X[:50], np.asarray(y)[:50]).read_text(encoding="utf-8"))
    assert page["target"] == "churned"
    numbers = plain_tree(**SMALL).fit(X[["months", "fee"]], y)
    numbers.save(tmp_path / "n.crisp")
    assert crisptree.load(tmp_path / "n.crisp").target_name_ == "churned"


def test_the_report_counts_the_columns_of_the_table(tmp_path, model):
    page = write_report(model, tmp_path / "r.html").read_text(encoding="utf-8")
    assert "7 columns (encoded: 14 features)" in page


def test_parameters_name_columns_by_their_labels_where_these_are_numbers():
    X, y = clouds(80, n_features=3, n_classes=2)
    frame = pd.DataFrame(X, columns=[3, 2, 1])
    for sign in (1, -1):
        model = plain_tree(**SMALL, monotonic_cst={3: sign}).fit(frame, y)
        assert (sign * model.tree_.weight[:, 0] >= 0).all()
    with pytest.raises(ValueError, match=r"`monotonic_cst` must name columns of X; got 0\. They are 3, 2, 1\."):
        plain_tree(**SMALL, monotonic_cst={0: 1}).fit(frame, y)
    whole = frame.round().astype(int)
    assert TableEncoder(categorical=[3]).fit(whole).preprocessing_.columns[0].kind == "category"
    assert (
        plain_tree(**SMALL, categorical_features=[1]).fit(whole, y).encoder_.preprocessing_.columns[2].kind
        == "category"
    )
    with pytest.raises(TableError, match=r"`drop` must name columns of X, '?3'?, '?2'?, '?1'?; got 0"):
        TableEncoder(drop=[0]).fit(whole)


def test_levels_that_differ_in_a_line_break_only_are_distinguished_in_every_text(tmp_path):
    X, y = churn()
    X = X.assign(plan=X["plan"].replace({"basic": "pl\nus", "plus": "pl us"}))
    X = X.rename(columns={"months": "mon\nths"})
    levels = sorted(set(X["plan"]))
    assert {"pl\nus", "pl us"} < set(levels)
    model = plain_tree(**SMALL).fit(X, y)
    assert r"plan=pl\nus" in export.text(model, terms=None)
    assert "plan=pl us" in export.text(model, terms=None)
    said = str(model.explain(X.iloc[[0]], top=99))
    assert r"plan is pl\nus" in said or r"plan is not pl\nus" in said
    assert "mon ths = " in said
    assert "\\n" not in said.replace(r"pl\nus", "")
    page = data_of(write_report(model, tmp_path / "r.html", X[:20], y[:20]).read_text(encoding="utf-8"))
    assert page["samples"]["what_if"]["columns"][0]["categories"] == [r"pl\nus", "pl us", "premium"]


def test_columns_that_may_only_name_the_rows_are_warned_of():
    rows = np.arange(63)
    X = pd.DataFrame({"row": rows, "who": [f"r{min(row, 39)}" for row in rows], "kind": np.where(rows % 2, "u", "v")})
    with pytest.warns(crisptree.CrispTreeWarning) as caught:
        plain_tree(**SMALL).fit(X, rows % 2)
    said = [str(warning.message) for warning in caught]
    assert said[0].startswith("X: column 'row' counts the rows; if it only numbers them, leave it out with `drop=")
    assert said[1].startswith("X: column 'who' has 40 different values in 63 rows; if it only names them")
    assert len(said) == 2
    numbers = pd.DataFrame({"row": rows + 7, "size": np.sin(rows)})
    with pytest.warns(crisptree.CrispTreeWarning, match="column 'row' counts the rows") as caught:
        plain_tree(**SMALL).fit(numbers, rows % 2)
    assert len(caught) == 1
    plain_tree(**SMALL).fit(numbers.sample(frac=1, random_state=0), rows % 2)  # a warning would be an error


def test_the_id_of_the_rows_is_no_feature_and_need_not_be_there_to_predict():
    X, y = churn(60)
    named = X.assign(who=[f"r{row}" for row in range(60)])
    encoder = TableEncoder(id="who", min_frequency=2)
    model = plain_tree(**SMALL, categorical_features=encoder).fit(named, y)
    assert model.encoder_.preprocessing_.id == "who"
    assert np.array_equal(model.predict(named), model.predict(X))
    with pytest.raises(TableError, match=r"`id` must name other columns than .*; got 'plan'"):
        TableEncoder(id="plan", drop=["plan"]).fit(X)
    with pytest.raises(ValueError, match=r"`min_frequency` must be None, or rows or a share of them above 0; got 0"):
        TableEncoder(min_frequency=0).fit(X)


@pytest.mark.parametrize("kind", ["CrispTreeClassifier", "CrispTreeRegressor", "CrispForestClassifier"])
def test_refusals_of_columns_name_the_class_of_the_estimator(kind):
    X = {"day": ["2012/01/01", "2013/01/01", "2014/01/01"], "x": [1.0, 2.0, 3.0]}
    example = rf"for example {kind}\(categorical_features=TableEncoder\(dates=\['day'\]\)\)"
    with pytest.raises(TableError, match=example):
        getattr(crisptree, kind)().fit(X, [0, 1, 0])
