"""Columns that are called like what an export makes, and models that stand in a search or in a forest of a table."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from crisptree import CrispForestClassifier, CrispTreeClassifier, CrispTreeRegressor, export

PLAIN = {"split": "oblique", "l1": 0.0, "input_noise": 0.1, "max_depth": 2, "epochs": 3, "finetune_epochs": 3}


def rows(n=80):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3)).astype(np.float32)
    return X, np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")


@pytest.mark.parametrize("name", ["probability of yes", "Probability of NO", "crisptree_leaf", "crisptree_node_3"])
def test_sql_refuses_columns_that_are_called_like_its_own(name):
    X, y = rows()
    model = CrispTreeClassifier.from_flat(**PLAIN, random_state=0).fit(pd.DataFrame(X, columns=[name, "k", "z"]), y)
    with pytest.raises(export.ExportError, match="statement's own"):
        export.sql(model)


def test_sql_refuses_classes_that_a_database_takes_for_one():
    X, y = rows()
    model = CrispTreeClassifier.from_flat(**PLAIN, random_state=0).fit(X, np.where(y == "no", "Yes", y))
    with pytest.raises(export.ExportError, match="upper and lower case"):
        export.sql(model)


@pytest.mark.parametrize("to", ["sql", "json"])
def test_the_best_model_of_a_search_is_exported(to):
    X, y = rows()
    number = GridSearchCV(CrispTreeRegressor.from_flat(**PLAIN, random_state=0), {"max_depth": [1]}, cv=2).fit(
        X, X[:, 0]
    )
    forest = CrispForestClassifier.from_flat(**PLAIN, n_estimators=2, random_state=0)
    for search in (number, GridSearchCV(forest, {"max_depth": [1]}, cv=2).fit(X, y)):
        assert export.check(search, X, to).holds


def test_trees_of_a_forest_record_how_its_tables_are_encoded():
    X, y = rows()
    table = pd.DataFrame({"size": X[:, 0], "kind": np.where(X[:, 1] > 0, "a", "b")})
    forest = CrispForestClassifier.from_flat(**PLAIN, n_estimators=2, random_state=0).fit(table, y)
    from crisptree.inspection.model_view import strip_encoder

    assert strip_encoder(forest).tree(0).preprocessing_ is forest.encoder_.preprocessing_


def test_functions_for_one_tree_refuse_forests():
    X, y = rows()
    forest = CrispForestClassifier.from_flat(**PLAIN, n_estimators=2, random_state=0).fit(X, y)
    with pytest.raises(TypeError, match=r"needs a single tree; got a CrispForestClassifier.*tree\(0\)"):
        export.text(forest)
