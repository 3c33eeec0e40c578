"""Fits, predictions and what follows under ``np.errstate(all="raise")``: numbers that underflow are 0, and no error."""

import numpy as np
import pytest

from crisptree import CrispTreeRegressor
from tests.every_kind import FITS, Data, use

SOME = {"max_depth": 3, "epochs": 6, "finetune_epochs": 6, "min_updates": 60, "random_state": 0, "device": "cpu"}
"""Long enough for leaves whose densities are far apart."""

QUICK_ONES = ("regressor", "linear leaves, classes", "distill", "segmenter")


def wide():
    """Columns that single precision holds fully, as subnormal numbers, as zeros only; numbers without noise."""
    data = Data.of(200, 4)
    X = data.X * np.array([1.0, 1e-20, 1e-43, 1e-60])
    return data._replace(X=X, t=1e12 * np.round(data.X[:, 0].astype(float)))


@pytest.mark.parametrize(
    "kind", [kind if kind in QUICK_ONES else pytest.param(kind, marks=pytest.mark.slow) for kind in FITS]
)
def test_underflow_is_no_error(kind):
    data = wide()
    with np.errstate(all="raise"):
        use(FITS[kind](data, **SOME), data)


@pytest.mark.parametrize("sign_of_y", [1, -1])
@pytest.mark.parametrize("sign_of_x", [1, -1])
def test_numerical_stability_of_scikit_learns_trees(sign_of_x, sign_of_y):
    X = np.array(
        [
            [152.08097839, 140.40744019, 129.75102234, 159.90493774],
            [142.50700378, 135.81935120, 117.82884979, 162.75781250],
            [127.28772736, 140.40744019, 129.75102234, 159.90493774],
            [132.37025452, 143.71923828, 138.35694885, 157.84558105],
            [103.10237122, 143.71928406, 138.35696411, 157.84559631],
            [127.71276855, 143.71923828, 138.35694885, 157.84558105],
            [120.91514587, 140.40744019, 129.75102234, 159.90493774],
        ]
    )
    y = np.array([1.0, 0.70209277, 0.53896582, 0.0, 0.90914464, 0.48026916, 0.49622521])
    with np.errstate(all="raise"):
        model = CrispTreeRegressor(random_state=0).fit(sign_of_x * X, sign_of_y * y)
        assert np.isfinite(model.predict(sign_of_x * X)).all()
