"""scikit-learn's own checks of forests; of those that fail each is named with its reason."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from crisptree import CrispForestClassifier, CrispForestRegressor

SKIPPED = {"check_array_api_input": "needs SCIPY_ARRAY_API=1 before scipy is imported"}
DRAWN = "rows are drawn by chance: a weight of two is not the same draw as the row twice; so with scikit-learn's own"
EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": DRAWN,
    "check_sample_weight_equivalence_on_sparse_data": DRAWN,
}
QUICK = {"n_estimators": 3, "epochs": 5, "min_updates": 20, "finetune_epochs": 5, "max_depth": 4}
PLAIN = {"split": "oblique", "input_noise": 0.0, "l1": 0.0, "scale": "feature"}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("kind", [CrispForestClassifier, CrispForestRegressor])
@pytest.mark.parametrize("choose", [True, False], ids=["choosing", "plain"])
def test_no_check_of_scikit_learn_fails(kind, choose):
    model = kind.from_flat(**QUICK, **({} if choose else PLAIN))
    results = check_estimator(model, on_fail=None, on_skip=None, expected_failed_checks=EXPECTED)
    assert len(results) > 40
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert not failed
    assert {result["check_name"] for result in results if result["status"] == "skipped"} <= set(SKIPPED)
    unexpected = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert unexpected <= set(EXPECTED)


@pytest.mark.parametrize("kind", [CrispForestClassifier, CrispForestRegressor])
def test_where_nothing_is_drawn_a_weight_of_two_is_the_row_twice(kind, monkeypatch):
    from sklearn.utils.estimator_checks import check_sample_weight_equivalence_on_dense_data

    # The shrinkage of leaves counts rows of mean weight, so that predictions depend on the ratios of weights only.
    monkeypatch.setattr("crisptree.pipeline.forests.LEAF_SHRINKAGE", 0.0)
    model = kind.from_flat(**QUICK, **PLAIN, bootstrap=False)
    check_sample_weight_equivalence_on_dense_data(kind.__name__, model)
