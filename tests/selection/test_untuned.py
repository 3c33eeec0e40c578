"""Few rows: nothing is selected, a warning says so, and leaves are shrunk all the same."""

import numpy as np
import pytest

from crisptree import CrispForestRegressor, CrispTreeClassifier, CrispTreeWarning, TrainingOptions
from crisptree.selection.search import MIN_ROWS, UNTUNED_SHRINKAGE

X = np.random.default_rng(0).normal(size=(MIN_ROWS, 3))
Y = (X[:, 0] > 0).astype(int)
QUICK = {"max_depth": 1, "random_state": 0}


def test_a_warning_says_that_nothing_was_tuned_on_few_rows():
    with pytest.warns(CrispTreeWarning, match="fewer than 60 rows .* was tuned, and leaves are shrunk"):
        model = CrispTreeClassifier(**QUICK).fit(X[:-1], Y[:-1])
    assert model.cv_results_ == []
    assert model.shrinkage_ == UNTUNED_SHRINKAGE
    with pytest.warns(CrispTreeWarning, match="nothing was tuned. Compare"):
        CrispTreeClassifier(**QUICK, shrinkage=0.0).fit(X[:-1], Y[:-1])
    with pytest.warns(CrispTreeWarning, match="nothing was tuned"):
        CrispForestRegressor(n_estimators=2, **QUICK).fit(X[:40], X[:40, 0])


@pytest.mark.parametrize(
    ("n_rows", "parameters"),
    [
        (MIN_ROWS, {}),
        (40, {"training": TrainingOptions(effort="fast")}),
        (40, {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 0.0, "leaf_model": "constant"}),
    ],
)
def test_no_warning_where_rows_suffice_or_nothing_was_to_be_tuned(n_rows, parameters, recwarn):
    CrispTreeClassifier(**QUICK, **parameters).fit(X[:n_rows], Y[:n_rows])
    assert not [warning for warning in recwarn if "tuned" in str(warning.message)]
