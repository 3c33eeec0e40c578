"""scikit-learn's own checks: none fails, none is declared as expected to fail."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from crisptree import CrispTreeClassifier, TrainingOptions

OBLIQUE = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 0.0}
AXIS = {"split": "axis", "algorithm": "em", "input_noise": 0.0, "l1": 0.0, "shrinkage": 0.0}
SKIPPED = {"check_array_api_input": "needs SCIPY_ARRAY_API=1 before scipy is imported"}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize(
    "model",
    [
        CrispTreeClassifier(
            **OBLIQUE, max_depth=3, training=TrainingOptions(epochs=3, min_updates=12, finetune_epochs=3)
        ),
        pytest.param(  # chooses as the defaults do, only quicker
            CrispTreeClassifier(training=TrainingOptions(epochs=3, min_updates=12, finetune_epochs=3)),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            CrispTreeClassifier.from_flat(**AXIS, max_depth=3, epochs=5, min_updates=20, finetune_epochs=5),
            marks=pytest.mark.slow,
        ),
        CrispTreeClassifier(training=TrainingOptions(grow="cart", finetune_epochs=0), max_depth=3),
        pytest.param(
            CrispTreeClassifier(
                training=TrainingOptions(grow="balanced", algorithm="em", epochs=3, finetune_epochs=3, min_updates=20),
                max_depth=3,
            ),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["oblique", "default", "axis", "CART", "balanced"],
)
def test_no_check_of_scikit_learn_fails(model):
    results = check_estimator(model, on_fail=None, on_skip=None)
    assert len(results) > 40
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert not failed
    assert {result["check_name"] for result in results if result["status"] == "skipped"} <= set(SKIPPED)
