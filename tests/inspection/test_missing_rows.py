"""Missing numbers in rows that are explained: filled with a warning where predict fills them, else refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from crisptree import CrispTreeClassifier, CrispTreeWarning, explain

FIXED = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 0.0, "max_depth": 2, "random_state": 0}
X = np.random.default_rng(0).normal(size=(80, 3))
Y = (X.sum(axis=1) > 0).astype(int)
ROW = np.array([np.nan, 1.0, -0.5])


@pytest.fixture(scope="module")
def models():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    plain = CrispTreeClassifier(**FIXED).fit(X, Y)
    piped = make_pipeline(FunctionTransformer(), CrispTreeClassifier(**FIXED)).fit(X, Y)
    return plain, piped, CrispTreeClassifier(**FIXED).fit(frame, Y)


def test_a_row_with_a_missing_number_is_explained_as_it_is_predicted(models):
    plain, piped, named = models
    rows = [(plain, ROW, "x0"), (piped, ROW[None], "x0"), (named, pd.Series(ROW, index=["a", "b", "c"]), "a")]
    for model, row, name in rows:
        table = row.to_frame().T if isinstance(row, pd.Series) else np.atleast_2d(row)
        with pytest.warns(CrispTreeWarning, match=f"column .{name}.: 1 missing value"):
            explained = explain.path(model, row)
        with pytest.warns(CrispTreeWarning, match=f"column .{name}.: 1 missing value"):
            assert explained.predicted == model.predict(table)[0]
        with pytest.warns(CrispTreeWarning, match=f"column .{name}.: 1 missing value"):
            attributed = explain.path_attributions(model, table)
        assert attributed.predictions[0] == pytest.approx(explained.probabilities)


def test_missing_numbers_are_refused_where_predict_refuses_them():
    strict = CrispTreeClassifier(**FIXED, categorical_features=None).fit(X, Y)
    for call in (strict.predict, lambda rows: explain.path(strict, rows[0])):
        with pytest.raises(ValueError, match="NaN"):
            call(ROW[None])
